"""Vector instructions of coordinate descent, on tiles: rows of a factor turned into columns.

A tile holds one line of the rows that belong to the nonzeros of a row, by columns, so that one
coordinate of all of them is a run of numbers.
"""

from __future__ import annotations

from collections.abc import Iterator

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from marginparts.backends.cpu._emit import (
    I32,
    I64,
    Args,
    Context,
    Emit,
    Intrinsic,
    Numbers,
    Scalar,
    emitted,
)


@intrinsic
def transpose(
    typing: Context, tile: Numbers, stride: Scalar, p: Scalar, B: Numbers, line: Scalar, indices:
    Numbers, lo: Scalar, last: Scalar,
) -> Intrinsic:  # fmt: skip
    """Copy one line of some rows of B to a tile, by columns.

    For one line's width of nonzeros from p on, ``tile[k * stride + p + q]`` becomes
    ``B[indices[min(lo + p + q, last)], line * width + k]``.
    """

    def code(emit: Emit, args: Args) -> None:
        context, builder = emit.context, emit.builder
        tile_value, stride, p, B_value, line, indices_value, lo, last = args
        width = emit.width
        view = context.make_array(indices)(context, builder, indices_value)
        factor = context.make_array(B)(context, builder, B_value)
        column = builder.mul(line, ir.Constant(I64, width))
        vectors = []
        for q in range(width):
            place = builder.add(builder.add(lo, p), ir.Constant(I64, q))
            place = builder.select(builder.icmp_signed("<", place, last), place, last)
            j = builder.load(
                cgutils.get_item_pointer(context, builder, indices, view, [place], wraparound=False)
            )
            if j.type.width < 64:
                j = builder.sext(j, I64)
            start = cgutils.get_item_pointer(
                context, builder, B, factor, [j, column], wraparound=False
            )
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
        start = emit.flat(tile, tile_value)
        for k, vector in enumerate(vectors):
            offset = builder.add(builder.mul(ir.Constant(I64, k), stride), p)
            emit.store(vector, emit.at(start, offset))

    i64 = types.int64
    return types.void(tile, i64, i64, B, i64, indices, i64, i64), emitted(B.dtype, code)


@intrinsic
def move_and_sum(
    typing: Context, x: Numbers, fit: Numbers, tile: Numbers, b: Scalar, moved: Scalar, delta:
    Scalar, m: Scalar,
) -> Intrinsic:  # fmt: skip
    """Finish the last coordinate's move and sum up the next one's.

    Adds ``delta * tile[moved:]`` to ``fit`` and returns the sums of ``x z`` and ``x z^2`` with
    ``z = tile[b:] / fit``, all over the first m entries, m a multiple of the line's width.
    """

    def code(emit: Emit, args: Args) -> list[ir.Value]:
        builder = emit.builder
        x_start, tile_start = emit.flat(x, args[0]), emit.flat(tile, args[2])
        sums = [cgutils.alloca_once(builder, emit.line) for _ in range(2)]
        for held in sums:
            builder.store(emit.constant(0), held)
        for p, new in _moved(emit, fit, args[1], tile, args[2], *args[4:]):
            z = builder.fdiv(emit.load(emit.at(tile_start, builder.add(args[3], p))), new)
            xz = emit.mul(emit.load(emit.at(x_start, p)), z)
            for held, term in zip(sums, (xz, emit.mul(xz, z)), strict=True):
                builder.store(emit.add(builder.load(held), term), held)
        return [emit.total(builder.load(held)) for held in sums]

    i64 = types.int64
    return types.UniTuple(x.dtype, 2)(x, fit, tile, i64, i64, x.dtype, i64), emitted(x.dtype, code)


@intrinsic
def move(
    typing: Context, fit: Numbers, tile: Numbers, moved: Scalar, delta: Scalar, m: Scalar
) -> Intrinsic:
    """Finish the last coordinate's move: add ``delta * tile[moved:]`` to ``fit``."""

    def code(emit: Emit, args: Args) -> None:
        for _ in _moved(emit, fit, args[0], tile, args[1], *args[2:]):
            pass

    return types.void(fit, tile, types.int64, fit.dtype, types.int64), emitted(fit.dtype, code)


def _moved(
    emit: Emit, fit: Numbers, fit_value: ir.Value, tile: Numbers, tile_value: ir.Value, moved:
    ir.Value, delta: ir.Value, m: ir.Value,
) -> Iterator[tuple[ir.Value, ir.Value]]:  # fmt: skip
    """Write the loop of a move, and yield the place and the new fit of a line inside it."""
    builder = emit.builder
    fit_start, tile_start = emit.flat(fit, fit_value), emit.flat(tile, tile_value)
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
