"""Vector instructions that numba has no words for, on rows of a factor.

A row of a factor is a whole number of *lines*: vectors of 64 bytes, as long as a cache line (16
numbers in float32, 8 in float64). How many is part of a function's type, so that the compiler
keeps a whole row in registers: ``lines`` is an empty array of strings of that length, and nothing
else about it matters (a tuple's length would do, but not above a hundred). LLVM splits a line into
what the processor has, so this runs on any of them.
"""

from __future__ import annotations

import platform

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from marginparts.backends.cpu._emit import (
    I32,
    I64,
    LINE_BYTES,
    Args,
    Context,
    Emit,
    Intrinsic,
    Lines,
    Numbers,
    Scalar,
    emitted,
)

_ON_X86 = platform.machine().lower() in ("x86_64", "amd64")


@intrinsic
def flush_denormals(typing: Context) -> Intrinsic:
    """Make this thread round numbers below the normal range to 0; return its mode before.

    Multiplicative updates leave many such numbers behind, and x86 processors compute with them a
    hundred times slower. On others this does nothing.
    """

    def code(emit: Emit, args: Args) -> ir.Value:
        builder = emit.builder
        place = cgutils.alloca_once(builder, I32)
        builder.store(ir.Constant(I32, 0), place)
        if _ON_X86:
            _control_word(builder, "llvm.x86.sse.stmxcsr", place)
            before = builder.load(place)
            builder.store(builder.or_(before, ir.Constant(I32, 0x8040)), place)
            _control_word(builder, "llvm.x86.sse.ldmxcsr", place)
            return before
        return builder.load(place)

    return types.uint32(), emitted(types.float32, code)


@intrinsic
def restore_mode(typing: Context, mode: Scalar) -> Intrinsic:
    """Undo `flush_denormals`."""

    def code(emit: Emit, args: Args) -> None:
        builder = emit.builder
        if _ON_X86:
            place = cgutils.alloca_once(builder, I32)
            builder.store(args[0], place)
            _control_word(builder, "llvm.x86.sse.ldmxcsr", place)

    return types.void(types.uint32), emitted(types.float32, code)


def _control_word(builder: ir.IRBuilder, name: str, place: ir.Value) -> None:
    """Load or store the control word of the vector unit."""
    byte = ir.IntType(8).as_pointer()
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(ir.VoidType(), [byte]), name
    )
    builder.call(function, [builder.bitcast(place, byte)])


@intrinsic
def new_sums(typing: Context, lines: Lines, like: Numbers) -> Intrinsic:
    """Return registers for one row of sums, undefined at first."""

    def code(emit: Emit, args: Args) -> ir.Value:
        place = cgutils.alloca_once(emit.builder, ir.ArrayType(emit.line, lines.dtype.count))
        place.align = LINE_BYTES
        return emit.builder.bitcast(place, emit.number.as_pointer())

    return types.CPointer(like.dtype)(lines, like), emitted(like.dtype, code)


@intrinsic
def clear(typing: Context, lines: Lines, sums: Numbers) -> Intrinsic:
    """Set sums to 0."""

    def code(emit: Emit, args: Args) -> None:
        for held in emit.held(args[1], lines.dtype.count):
            emit.store(emit.constant(0), held)

    return types.void(lines, sums), emitted(sums.dtype, code)


@intrinsic
def add_scaled(
    typing: Context, lines: Lines, sums: Numbers, q: Scalar, B: Numbers, j: Scalar
) -> Intrinsic:
    """Add ``q * B[j]`` to sums."""

    def code(emit: Emit, args: Args) -> None:
        factor = emit.splat(args[2])
        rows = emit.row(B, args[3], args[4], lines.dtype.count)
        for held, b in zip(emit.held(args[1], lines.dtype.count), rows, strict=True):
            emit.store(emit.add(emit.load(held), emit.mul(factor, emit.load(b))), held)

    return types.void(lines, sums, B.dtype, B, types.int64), emitted(B.dtype, code)


@intrinsic
def dot(typing: Context, lines: Lines, A: Numbers, i: Scalar, B: Numbers, j: Scalar) -> Intrinsic:
    """Return ``A[i] . B[j]``."""

    def code(emit: Emit, args: Args) -> ir.Value:
        pairs = zip(
            emit.row(A, args[1], args[2], lines.dtype.count),
            emit.row(B, args[3], args[4], lines.dtype.count),
            strict=True,
        )
        chains: list[ir.Value] = []  # four, so that an addition need not wait for the last one
        for k, (a, b) in enumerate(pairs):
            product = emit.mul(emit.load(a), emit.load(b))
            if k < 4:
                chains.append(product)
            else:
                chains[k % 4] = emit.add(chains[k % 4], product)
        while len(chains) > 1:
            chains = [emit.add(chains[0], chains[1]), *chains[2:]]
        return emit.total(chains[0])

    return A.dtype(lines, A, types.int64, B, types.int64), emitted(A.dtype, code)


@intrinsic
def prefetch(typing: Context, lines: Lines, B: Numbers, j: Scalar) -> Intrinsic:
    """Ask for row j of B to be brought into the cache."""

    def code(emit: Emit, args: Args) -> None:
        builder = emit.builder
        byte = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [byte, I32, I32, I32])
        function = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        to_read, keep, of_data = (ir.Constant(I32, value) for value in (0, 3, 1))
        for line in emit.row(B, args[1], args[2], lines.dtype.count):
            builder.call(function, [builder.bitcast(line, byte), to_read, keep, of_data])

    return types.void(lines, B, types.int64), emitted(B.dtype, code)


@intrinsic
def spill(typing: Context, lines: Lines, sums: Numbers, total: Numbers) -> Intrinsic:
    """Add sums to a total (1, r) in float64, and set them to 0."""

    def code(emit: Emit, args: Args) -> None:
        for held, wide in _wide_lines(emit, lines, total, args):
            emit.store(emit.add(_widen(emit, emit.load(held)), emit.load(wide)), wide)
            emit.store(emit.constant(0), held)

    return types.void(lines, sums, total), emitted(sums.dtype, code)


@intrinsic
def unspill(typing: Context, lines: Lines, sums: Numbers, total: Numbers) -> Intrinsic:
    """Add a total (1, r) in float64 to sums."""

    def code(emit: Emit, args: Args) -> None:
        for held, wide in _wide_lines(emit, lines, total, args):
            both = emit.add(_widen(emit, emit.load(held)), emit.load(wide))
            emit.store(both if emit.size == 8 else emit.builder.fptrunc(both, emit.line), held)

    return types.void(lines, sums, total), emitted(sums.dtype, code)


def _wide_lines(
    emit: Emit, lines: Lines, total: Numbers, args: Args
) -> list[tuple[ir.Value, ir.Value]]:
    """Pairs of pointers: a line of sums, and as many numbers in float64."""
    start = emit.builder.bitcast(
        emit.flat(total, args[2]), ir.VectorType(ir.DoubleType(), emit.width).as_pointer()
    )
    wide = [emit.builder.gep(start, [ir.Constant(I64, k)]) for k in range(lines.dtype.count)]
    return list(zip(emit.held(args[1], lines.dtype.count), wide, strict=True))


def _widen(emit: Emit, line: ir.Value) -> ir.Value:
    if emit.size == 8:
        return line
    return emit.builder.fpext(line, ir.VectorType(ir.DoubleType(), emit.width))


@intrinsic
def read(typing: Context, lines: Lines, sums: Numbers, A: Numbers, i: Scalar) -> Intrinsic:
    """Set sums to ``A[i]``."""

    def code(emit: Emit, args: Args) -> None:
        rows = emit.row(A, args[2], args[3], lines.dtype.count)
        for held, line in zip(emit.held(args[1], lines.dtype.count), rows, strict=True):
            emit.store(emit.load(line), held)

    return types.void(lines, sums, A, types.int64), emitted(sums.dtype, code)


@intrinsic
def write(typing: Context, lines: Lines, sums: Numbers, out: Numbers, i: Scalar) -> Intrinsic:
    """Set ``out[i]`` to sums."""

    def code(emit: Emit, args: Args) -> None:
        rows = emit.row(out, args[2], args[3], lines.dtype.count)
        for held, line in zip(emit.held(args[1], lines.dtype.count), rows, strict=True):
            emit.store(emit.load(held), line)

    return types.void(lines, sums, out, types.int64), emitted(sums.dtype, code)


@intrinsic
def write_step(
    typing: Context, lines: Lines, sums: Numbers, A: Numbers, i: Scalar, q: Numbers, scale: Scalar,
    out: Numbers,
) -> Intrinsic:  # fmt: skip
    """Set ``out[i]`` to ``A[i] * sums * q[0] * scale``; q is (1, r)."""

    def code(emit: Emit, args: Args) -> None:
        n, zero = lines.dtype.count, ir.Constant(I64, 0)
        scale = emit.splat(args[5])
        for held, a, q_line, line in zip(
            emit.held(args[1], n),
            emit.row(A, args[2], args[3], n),
            emit.row(q, args[4], zero, n),
            emit.row(out, args[6], args[3], n),
            strict=True,
        ):
            step = emit.mul(emit.mul(emit.load(a), emit.load(held)), emit.load(q_line))
            emit.store(emit.mul(step, scale), line)

    return types.void(lines, sums, A, types.int64, q, A.dtype, out), emitted(A.dtype, code)


@intrinsic
def violation(
    typing: Context, lines: Lines, sums: Numbers, A: Numbers, i: Scalar, den: Numbers, w: Scalar
) -> Intrinsic:
    """Return the mass of row i, ``A[i] . sums``, and its largest violation of optimality.

    ``sums`` are the row's numerators G and ``w * den[0]`` its denominators u. An entry is optimal
    if its share a u of the mass M or its relative slope M (u - G) / max(u, G) is 0 and neither is
    negative; the violation is the smaller of the two in size.
    """

    def code(emit: Emit, args: Args) -> list[ir.Value]:
        builder = emit.builder
        n, zero = lines.dtype.count, ir.Constant(I64, 0)
        G = [emit.load(held) for held in emit.held(args[1], n)]
        a = [emit.load(line) for line in emit.row(A, args[2], args[3], n)]
        w = emit.splat(args[5])
        u = [emit.mul(w, emit.load(line)) for line in emit.row(den, args[4], zero, n)]
        products = [emit.mul(x, g) for x, g in zip(a, G, strict=True)]
        mass = products[0]
        for product in products[1:]:
            mass = emit.add(mass, product)
        mass = emit.total(mass)
        wide_mass = emit.splat(mass)
        tiny = emit.constant(1e-37)
        worst = emit.constant(0)
        for a_k, g_k, u_k in zip(a, G, u, strict=True):
            slope = builder.fdiv(builder.fsub(u_k, g_k), emit.larger(emit.larger(u_k, g_k), tiny))
            gap = emit.smaller(emit.mul(a_k, u_k), emit.mul(wide_mass, slope))
            size = emit.larger(gap, builder.fsub(emit.constant(0), gap))
            worst = emit.larger(size, worst)
        return [mass, emit.largest(worst)]

    pair = types.UniTuple(A.dtype, 2)
    return pair(lines, sums, A, types.int64, den, A.dtype), emitted(A.dtype, code)
