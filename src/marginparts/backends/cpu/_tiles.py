"""Vector instructions of coordinate descent, on tiles: rows of a factor turned into columns.

A tile holds one line of the rows that belong to the nonzeros of a row, by columns, so that one
coordinate of all of them is a run of numbers.
"""

from __future__ import annotations

from collections.abc import Iterator

from llvmlite import ir
from numba.core import cgutils

from marginparts.backends.cpu._emit import I32, I64, Emit, Stored, Value, pair, vector


@vector()
def transpose(
    emit: Emit, tile: Stored, stride: Value, p: Value, B: Stored, line: Value, indices: Stored,
    lo: Value, last: Value,
) -> None:  # fmt: skip
    """Copy one line of some rows of B to a tile, by columns.

    For one line's width of nonzeros from p on, ``tile[k * stride + p + q]`` becomes
    ``B[indices[min(lo + p + q, last)], line * width + k]``.
    """
    builder, width = emit.builder, emit.width
    column = builder.mul(line, ir.Constant(I64, width))
    vectors = []
    for q in range(width):
        place = builder.add(builder.add(lo, p), ir.Constant(I64, q))
        place = builder.select(builder.icmp_signed("<", place, last), place, last)
        j = builder.load(emit.place(indices, place))
        if j.type.width < 64:
            j = builder.sext(j, I64)
        start = emit.place(B, j, column)
        vectors.append(emit.load(builder.bitcast(start, emit.line.as_pointer())))
    half = width // 2
    lower, upper = (
        ir.Constant(ir.VectorType(I32, width), [x for k in ks for x in (k, width + k)])
        for ks in (range(half), range(half, width))
    )
    # interleaving the first half with the second, log2(width) times, is a transpose
    for _ in range(width.bit_length() - 1):
        vectors = [
            builder.shuffle_vector(vectors[k], vectors[k + half], mask)
            for k in range(half)
            for mask in (lower, upper)
        ]
    start = emit.flat(tile)
    for k, vector_k in enumerate(vectors):
        offset = builder.add(builder.mul(ir.Constant(I64, k), stride), p)
        emit.store(vector_k, emit.at(start, offset))


@vector(pair)
def move_and_sum(
    emit: Emit, x: Stored, fit: Stored, tile: Stored, b: Value, moved: Value, delta: Value, m: Value
) -> list[Value]:
    """Finish the last coordinate's move and sum up the next one's.

    Adds ``delta * tile[moved:]`` to ``fit`` and returns the sums of ``x z`` and ``x z^2`` with
    ``z = tile[b:] / fit``, all over the first m entries, m a multiple of the line's width.
    """
    builder = emit.builder
    x_start, tile_start = emit.flat(x), emit.flat(tile)
    sums = [cgutils.alloca_once(builder, emit.line) for _ in range(2)]
    for held in sums:
        builder.store(emit.constant(0), held)
    for p, new in _moved(emit, fit, tile, moved, delta, m):
        z = builder.fdiv(emit.load(emit.at(tile_start, builder.add(b, p))), new)
        xz = emit.mul(emit.load(emit.at(x_start, p)), z)
        for held, term in zip(sums, (xz, emit.mul(xz, z)), strict=True):
            builder.store(emit.add(builder.load(held), term), held)
    return [emit.total(builder.load(held)) for held in sums]


@vector()
def move(emit: Emit, fit: Stored, tile: Stored, moved: Value, delta: Value, m: Value) -> None:
    """Finish the last coordinate's move: add ``delta * tile[moved:]`` to ``fit``."""
    for _ in _moved(emit, fit, tile, moved, delta, m):
        pass


def _moved(
    emit: Emit, fit: Stored, tile: Stored, moved: Value, delta: Value, m: Value
) -> Iterator[tuple[Value, Value]]:
    """Write the loop of a move, and yield the place and the new fit of a line inside it."""
    builder = emit.builder
    fit_start, tile_start = emit.flat(fit), emit.flat(tile)
    delta = emit.splat(delta)
    # rounding must not take a fit to zero or below
    least = emit.constant(1e-6 if emit.size == 4 else 1e-14)
    zero, step = ir.Constant(I64, 0), ir.Constant(I64, emit.width)
    with cgutils.for_range_slice(builder, zero, m, step) as (p, _):
        place = emit.at(fit_start, p)
        old = emit.load(place)
        change = emit.mul(delta, emit.load(emit.at(tile_start, builder.add(moved, p))))
        new = emit.larger(emit.add(old, change), emit.mul(old, least))
        emit.store(new, place)
        yield p, new
