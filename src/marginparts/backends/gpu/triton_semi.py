"""The sweep of semi-NMF for GPUs: a sample's codes stay in registers until all have moved.

It also runs on a CPU, through Triton's interpreter.
"""

# mypy: ignore-errors
# Triton reads these functions as source: no annotations but constexpr, no helpers from outside.

import triton
import triton.language as tl


@triton.jit
def sweep_kernel(H, XV, gram, out, n, r, h_part, x_part, out_part, sweeps, SETTLED: tl.constexpr,
                 M: tl.constexpr, R: tl.constexpr):  # fmt: skip
    """Sweep over the codes of M samples, until each is settled.

    Parts are rows here: H and XV (r, n), their rows ``h_part`` and ``x_part`` numbers apart, for
    neighboring samples to be read at once. Entry k goes to ``max(0, h - slope / G)``.
    """
    i = tl.program_id(0).to(tl.int64) * M + tl.arange(0, M)
    parts = tl.arange(0, R)
    seen = i < n
    inside = (parts < r)[:, None] & seen[None, :]
    h = tl.load(H + parts.to(tl.int64)[:, None] * h_part + i[None, :], mask=inside, other=0.0)
    left = seen
    sweep = 0
    while tl.sum(left.to(tl.int32), axis=0) > 0:
        moved = tl.zeros((M,), dtype=h.dtype)
        largest = tl.zeros((M,), dtype=h.dtype)
        place = XV + i
        for k in range(r):
            row = tl.load(gram + k * r + parts, mask=parts < r, other=0.0)
            squares = tl.load(gram + k * r + k)
            old = tl.sum(tl.where((parts == k)[:, None], h, 0.0), axis=0)
            slope = tl.sum(row[:, None] * h, axis=0) - tl.load(place, mask=seen, other=0.0)
            new = tl.maximum(old - slope / tl.where(squares > 0, squares, 1.0), 0.0)
            new = tl.where(left, tl.where(squares > 0, new, 0.0), old)
            h = tl.where((parts == k)[:, None], new[None, :], h)
            moved = tl.maximum(moved, tl.abs(new - old))
            largest = tl.maximum(largest, new)
            place += x_part
        sweep += 1
        left = left & (moved > SETTLED * largest) & (sweep < sweeps)
    tl.store(out + parts.to(tl.int64)[:, None] * out_part + i[None, :], h, mask=inside)
