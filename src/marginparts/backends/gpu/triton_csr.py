"""The sparse kernels for GPUs: rows of a CSR matrix, cut into pieces, each with one owner.

A program takes one piece of one row: it keeps the row of A in registers, gathers rows of B a block
of nonzeros at a time, and uses each of them twice, for ``a.b`` and for the sum. Short rows are one
piece, and their update is finished on the spot. The pieces of a long row (a frequent word) are
summed by a second kernel, in their order. There are no atomics: the same data gives the same bits.

The kernels also run on a CPU, through Triton's interpreter (``TRITON_INTERPRET=1``): that is how
they are tested without a GPU.
"""

# mypy: ignore-errors
# Triton reads these functions as source: no annotations but constexpr, no helpers from outside.

import triton
import triton.language as tl


@triton.jit
def _add_row(acc, a, start, stop, indices, values, B, r, RATIO: tl.constexpr,
             FLOOR: tl.constexpr, WIDE: tl.constexpr, K: tl.constexpr,
             R: tl.constexpr):  # fmt: skip
    """Add ``sum x / a.b * b`` (or ``sum x * b``) over some nonzeros of a row to acc (R,)."""
    cols = tl.arange(0, R)
    for first in range(start, stop, K):
        p = first + tl.arange(0, K)
        valid = p < stop
        j = tl.load(indices + p, mask=valid, other=0)
        if WIDE:  # places of more than 32 bits, which take twice the registers
            j = j.to(tl.int64)
        x = tl.load(values + p, mask=valid, other=0.0)
        within = valid[:, None] & (cols < r)[None, :]
        b = tl.load(B + j[:, None] * r + cols[None, :], mask=within, other=0.0).to(acc.dtype)
        if RATIO:
            fitted = tl.sum(b * a[None, :], axis=1)
            seen = fitted > FLOOR
            x = tl.where(seen, x / tl.where(seen, fitted, 1.0), 0.0)
        acc += tl.sum(x[:, None] * b, axis=0)
    return acc


@triton.jit
def _finish(acc, a, row, den, weight, also_indptr, also_indices, also_values, also_B, plus_indptr,
            plus_indices, plus_values, plus_B, also_hi, also_lo, plus_hi, plus_lo, out, gauge, r,
            STEP: tl.constexpr, WEIGHT: tl.constexpr, ALSO: tl.constexpr, PLUS: tl.constexpr,
            GAUGE: tl.constexpr, FLOOR: tl.constexpr, TINY: tl.constexpr, WIDE: tl.constexpr,
            K: tl.constexpr, R: tl.constexpr):  # fmt: skip
    """Write what a row has come to: the sum itself, or with STEP the row's multiplicative update.

    A weight comes as two numbers whose sum is exact in float64 as well.
    """
    cols = tl.arange(0, R)
    within = cols < r
    dtype = acc.dtype
    if ALSO:
        start, stop = tl.load(also_indptr + row), tl.load(also_indptr + row + 1)
        more = tl.zeros((R,), dtype=dtype)
        more = _add_row(more, a, start, stop, also_indices, also_values, also_B, r, True, FLOOR,
                        WIDE, K, R)  # fmt: skip
        acc += more * also_hi + more * also_lo
    if PLUS:
        start, stop = tl.load(plus_indptr + row), tl.load(plus_indptr + row + 1)
        more = tl.zeros((R,), dtype=dtype)
        more = _add_row(more, a, start, stop, plus_indices, plus_values, plus_B, r, False, FLOOR,
                        WIDE, K, R)  # fmt: skip
        acc += more * plus_hi + more * plus_lo
    place = row.to(tl.int64) * r + cols
    if STEP:
        u = tl.load(den + cols, mask=within, other=0.0)
        alive = u >= TINY
        inverse = tl.where(alive, 1.0 / tl.where(alive, u, 1.0), 0.0).to(dtype)
        heavy = tl.full((1,), 1.0, dtype=dtype)
        if WEIGHT:
            heavy = heavy * tl.load(weight + row).to(dtype)
        tl.store(out + place, a * acc * inverse / heavy, mask=within)
        if GAUGE:
            share = heavy * u.to(dtype)
            mass = tl.sum((a * acc).to(tl.float64), axis=0)
            larger = tl.maximum(share, acc)
            some = larger > 0
            slope = tl.where(some, (share - acc) / tl.where(some, larger, 1.0), 0.0)
            gap = tl.abs(tl.minimum((a * share).to(tl.float64), mass * slope.to(tl.float64)))
            tl.store(gauge + 2 * row, mass)
            tl.store(gauge + 2 * row + 1, tl.max(tl.where(within, gap, 0.0), axis=0))
    else:
        tl.store(out + place, acc, mask=within)


@triton.jit
def pieces_kernel(piece_row, piece_start, piece_stop, piece_slot, indices, values, A, B, den,
                  weight, also_indptr, also_indices, also_values, also_B, plus_indptr,
                  plus_indices, plus_values, plus_B, also_hi, also_lo, plus_hi, plus_lo, out,
                  gauge, partial, r, RATIO: tl.constexpr, STEP: tl.constexpr,
                  WEIGHT: tl.constexpr, ALSO: tl.constexpr, PLUS: tl.constexpr,
                  GAUGE: tl.constexpr, FLOOR: tl.constexpr, TINY: tl.constexpr, WIDE: tl.constexpr,
                  K: tl.constexpr, R: tl.constexpr):  # fmt: skip
    """Sum one piece; finish its row if it is all of it, else keep the sum in its slot."""
    pid = tl.program_id(0)
    row = tl.load(piece_row + pid)
    start, stop = tl.load(piece_start + pid), tl.load(piece_stop + pid)
    slot = tl.load(piece_slot + pid)
    cols = tl.arange(0, R)
    within = cols < r
    dtype = values.dtype.element_ty
    a = tl.zeros((R,), dtype=dtype)
    if RATIO:
        a = tl.load(A + row.to(tl.int64) * r + cols, mask=within, other=0.0)
    acc = tl.zeros((R,), dtype=dtype)
    acc = _add_row(acc, a, start, stop, indices, values, B, r, RATIO, FLOOR, WIDE, K, R)
    if slot >= 0:
        tl.store(partial + slot.to(tl.int64) * r + cols, acc, mask=within)
    else:
        _finish(acc, a, row, den, weight, also_indptr, also_indices, also_values, also_B,
                plus_indptr, plus_indices, plus_values, plus_B, also_hi, also_lo, plus_hi, plus_lo,
                out, gauge, r, STEP, WEIGHT, ALSO, PLUS, GAUGE, FLOOR, TINY, WIDE, K,
                R)  # fmt: skip


@triton.jit
def long_rows_kernel(long_row, first_slot, A, den, weight, also_indptr, also_indices, also_values,
                     also_B, plus_indptr, plus_indices, plus_values, plus_B, also_hi, also_lo,
                     plus_hi, plus_lo, out, gauge, partial, r, RATIO: tl.constexpr,
                     STEP: tl.constexpr, WEIGHT: tl.constexpr, ALSO: tl.constexpr,
                     PLUS: tl.constexpr, GAUGE: tl.constexpr, FLOOR: tl.constexpr,
                     TINY: tl.constexpr, WIDE: tl.constexpr, K: tl.constexpr,
                     R: tl.constexpr):  # fmt: skip
    """Sum the pieces of a long row in their order, in float64, and finish the row."""
    pid = tl.program_id(0)
    row = tl.load(long_row + pid)
    first, last = tl.load(first_slot + pid), tl.load(first_slot + pid + 1)
    cols = tl.arange(0, R)
    within = cols < r
    dtype = partial.dtype.element_ty
    total = tl.zeros((R,), dtype=tl.float64)
    for begin in range(first, last, K):
        slots = begin + tl.arange(0, K)
        some = (slots < last)[:, None] & within[None, :]
        sums = tl.load(partial + slots.to(tl.int64)[:, None] * r + cols[None, :], mask=some,
                       other=0.0)  # fmt: skip
        total += tl.sum(sums.to(tl.float64), axis=0)
    a = tl.zeros((R,), dtype=dtype)
    if RATIO:
        a = tl.load(A + row.to(tl.int64) * r + cols, mask=within, other=0.0)
    _finish(total.to(dtype), a, row, den, weight, also_indptr, also_indices, also_values, also_B,
            plus_indptr, plus_indices, plus_values, plus_B, also_hi, also_lo, plus_hi, plus_lo,
            out, gauge, r, STEP, WEIGHT, ALSO, PLUS, GAUGE, FLOOR, TINY, WIDE, K, R)  # fmt: skip


@triton.jit
def log_terms_kernel(piece_row, piece_start, piece_stop, indices, values, A, B, terms, r,
                     FLOOR: tl.constexpr, LEAST: tl.constexpr, WIDE: tl.constexpr,
                     K: tl.constexpr, R: tl.constexpr):  # fmt: skip
    """Write ``sum x log(x / a.b) - x`` over the nonzeros of each piece, in float64.

    It is infinite where an entry above ``LEAST`` has no fit.
    """
    pid = tl.program_id(0)
    row = tl.load(piece_row + pid)
    start, stop = tl.load(piece_start + pid), tl.load(piece_stop + pid)
    cols = tl.arange(0, R)
    within = cols < r
    a = tl.load(A + row.to(tl.int64) * r + cols, mask=within, other=0.0)
    total = tl.zeros((K,), dtype=tl.float64)
    for first in range(start, stop, K):
        p = first + tl.arange(0, K)
        valid = p < stop
        j = tl.load(indices + p, mask=valid, other=0)
        if WIDE:
            j = j.to(tl.int64)
        x = tl.load(values + p, mask=valid, other=0.0).to(tl.float64)
        some = valid[:, None] & within[None, :]
        b = tl.load(B + j[:, None] * r + cols[None, :], mask=some, other=0.0)
        fitted = tl.sum(b * a[None, :], axis=1)
        seen = valid & (fitted > 0)
        ratio = tl.where(seen, x / tl.where(seen, fitted, 1.0).to(tl.float64), 1.0)
        total += tl.where(seen, x * tl.log(ratio) - x, 0.0)
        missed = valid & (fitted <= 0) & (x > LEAST)
        total += tl.where(missed, float("inf"), 0.0)
    tl.store(terms + pid, tl.sum(total, axis=0))


@triton.jit
def column_sums_kernel(A, sums, n, rows, r, K: tl.constexpr, R: tl.constexpr):
    """Write the sums over some rows of A, in float64, to the program's row of ``sums``."""
    pid = tl.program_id(0)
    cols = tl.arange(0, R)
    within = cols < r
    first = pid * rows
    last = tl.minimum(first + rows, n)
    total = tl.zeros((R,), dtype=tl.float64)
    for begin in range(first, last, K):
        i = begin + tl.arange(0, K)
        some = (i < last)[:, None] & within[None, :]
        a = tl.load(A + i.to(tl.int64)[:, None] * r + cols[None, :], mask=some, other=0.0)
        total += tl.sum(a.to(tl.float64), axis=0)
    tl.store(sums + pid.to(tl.int64) * r + cols, total, mask=within)


@triton.jit
def _two_parts(a, HALF: tl.constexpr):
    """Return a as the sum of two numbers of half the width, good to seventeen bits or more."""
    high = a.to(HALF)
    return high, (a - high.to(tl.float32)).to(HALF)


@triton.jit
def _product(a_high, a_low, b_high, b_low, acc):
    """Add ``a @ b`` to acc, both in two parts; the product of the small ones is not missed."""
    acc = tl.dot(a_low, b_high, acc)
    acc = tl.dot(a_high, b_low, acc)
    return tl.dot(a_high, b_high, acc)


@triton.jit
def dense_ratio_kernel(X, A, B_high, B_low, partial, n, d, x_row, x_column, r, span,
                       FLOOR: tl.constexpr, M: tl.constexpr, N: tl.constexpr,
                       R: tl.constexpr):  # fmt: skip
    """Write ``(X / (A @ B.T)) @ B`` over a share of the columns, for M rows of a dense X.

    Matrix units are fastest with numbers of half the width, so each factor is taken as the sum of
    two. They cut off digits where they add, always downward, so a share should not be long.
    """
    i = tl.program_id(0) * M + tl.arange(0, M)
    share = tl.program_id(1)
    k = tl.arange(0, R)
    a_place = i.to(tl.int64)[:, None] * r + k[None, :]
    inside = (i < n)[:, None] & (k < r)[None, :]
    half: tl.constexpr = B_high.dtype.element_ty
    a_high, a_low = _two_parts(tl.load(A + a_place, mask=inside, other=0.0), half)
    acc = tl.zeros((M, R), dtype=tl.float32)
    first = share * span
    for begin in range(first, tl.minimum(first + span, d), N):
        j = begin + tl.arange(0, N)
        b_place = j.to(tl.int64)[:, None] * r + k[None, :]
        some = (j < d)[:, None] & (k < r)[None, :]
        b_high = tl.load(B_high + b_place, mask=some, other=0.0)
        b_low = tl.load(B_low + b_place, mask=some, other=0.0)
        x = tl.load(X + i.to(tl.int64)[:, None] * x_row + j.to(tl.int64)[None, :] * x_column,
                    mask=(i < n)[:, None] & (j < d)[None, :], other=0.0)  # fmt: skip
        fitted = tl.zeros((M, N), dtype=tl.float32)
        fitted = _product(a_high, a_low, tl.trans(b_high), tl.trans(b_low), fitted)
        seen = fitted > FLOOR
        ratio = tl.where(seen, x / tl.where(seen, fitted, 1.0), 0.0)
        ratio_high, ratio_low = _two_parts(ratio, half)
        acc = _product(ratio_high, ratio_low, b_high, b_low, acc)
    tl.store(partial + share.to(tl.int64) * n * r + a_place, acc, mask=inside)
