"""Vector instructions that numba has no words for, on rows of a factor.

A row of a factor is a whole number of *lines*: vectors of 64 bytes, as long as a cache line (16
numbers in float32, 8 in float64). How many is part of a function's type, so that the compiler
keeps a whole row in registers: ``lines`` is an empty array of strings of that length, and nothing
else about it matters (a tuple's length would do, but not above a hundred). LLVM splits a line into
what the processor has, so this runs on any of them.

    mode = flush_denormals()               numbers next to nothing become 0, until
    restore_mode(mode)
    sums = new_sums(lines, A)              r numbers in registers
    clear(lines, sums)                     sums = 0
    add_scaled(lines, sums, q, B, j)       sums += q * B[j]
    dot(lines, A, i, B, j)                 A[i] . B[j]
    prefetch(lines, B, j)                  B[j] will be read soon
    spill(lines, sums, total)              total += sums in float64, sums = 0
    unspill(lines, sums, total)            sums += total
    read(lines, sums, A, i)                sums = A[i]
    write(lines, sums, out, i)             out[i] = sums
    write_step(lines, sums, A, i, q, scale, out)     out[i] = A[i] * sums * q[0] * scale
    violation(lines, sums, A, i, den, w)   how far row i is from optimal, see `docs/math.md`
"""

from __future__ import annotations

import platform
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from marginparts.backends.cpu._emit import I32, I64, LINE_BYTES, Emit

_ON_X86 = platform.machine().lower() in ("x86_64", "amd64")


@intrinsic
def flush_denormals(typing: Any) -> Any:
    """Make this thread round numbers below the normal range to 0; return its mode before.

    Multiplicative updates leave many such numbers behind, and x86 processors compute with them a
    hundred times slower. On others this does nothing.
    """

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        room = cgutils.alloca_once(builder, I32)
        builder.store(ir.Constant(I32, 0), room)
        if _ON_X86:
            _control_word(builder, "llvm.x86.sse.stmxcsr", room)
            before = builder.load(room)
            builder.store(builder.or_(before, ir.Constant(I32, 0x8040)), room)
            _control_word(builder, "llvm.x86.sse.ldmxcsr", room)
            return before
        return builder.load(room)

    return types.uint32(), code


@intrinsic
def restore_mode(typing: Any, mode: Any) -> Any:
    """Undo `flush_denormals`."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if _ON_X86:
            room = cgutils.alloca_once(builder, I32)
            builder.store(args[0], room)
            _control_word(builder, "llvm.x86.sse.ldmxcsr", room)
        return context.get_dummy_value()

    return types.void(types.uint32), code


def _control_word(builder: Any, name: str, room: Any) -> None:
    """Load or store the control word of the vector unit."""
    byte = ir.IntType(8).as_pointer()
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(ir.VoidType(), [byte]), name
    )
    builder.call(function, [builder.bitcast(room, byte)])


@intrinsic
def new_sums(typing: Any, lines: Any, like: Any) -> Any:
    """Return room for one row of sums, undefined at first."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        emit = Emit(context, builder, like.dtype)
        room = cgutils.alloca_once(builder, ir.ArrayType(emit.line, lines.dtype.count))
        room.align = LINE_BYTES
        return builder.bitcast(room, emit.number.as_pointer())

    return types.CPointer(like.dtype)(lines, like), code


@intrinsic
def clear(typing: Any, lines: Any, sums: Any) -> Any:
    """Set sums to 0."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        emit = Emit(context, builder, sums.dtype)
        for held in emit.held(args[1], lines.dtype.count):
            emit.store(emit.constant(0), held)
        return emit.nothing()

    return types.void(lines, sums), code


@intrinsic
def add_scaled(typing: Any, lines: Any, sums: Any, q: Any, B: Any, j: Any) -> Any:
    """Add ``q * B[j]`` to sums."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        emit = Emit(context, builder, B.dtype)
        factor = emit.splat(args[2])
        rows = emit.row(B, args[3], args[4], lines.dtype.count)
        for held, b in zip(emit.held(args[1], lines.dtype.count), rows, strict=True):
            emit.store(emit.add(emit.load(held), emit.mul(factor, emit.load(b))), held)
        return emit.nothing()

    return types.void(lines, sums, B.dtype, B, types.int64), code


@intrinsic
def dot(typing: Any, lines: Any, A: Any, i: Any, B: Any, j: Any) -> Any:
    """Return ``A[i] . B[j]``."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        emit = Emit(context, builder, A.dtype)
        pairs = zip(
            emit.row(A, args[1], args[2], lines.dtype.count),
            emit.row(B, args[3], args[4], lines.dtype.count),
            strict=True,
        )
        chains: list[Any] = []  # four, so that an addition need not wait for the last one
        for k, (a, b) in enumerate(pairs):
            product = emit.mul(emit.load(a), emit.load(b))
            if k < 4:
                chains.append(product)
            else:
                chains[k % 4] = emit.add(chains[k % 4], product)
        while len(chains) > 1:
            chains = [emit.add(chains[0], chains[1]), *chains[2:]]
        return emit.total(chains[0])

    return A.dtype(lines, A, types.int64, B, types.int64), code


@intrinsic
def prefetch(typing: Any, lines: Any, B: Any, j: Any) -> Any:
    """Ask for row j of B to be brought into the cache."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        emit = Emit(context, builder, B.dtype)
        byte = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [byte, I32, I32, I32])
        function = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        to_read, keep, of_data = (ir.Constant(I32, value) for value in (0, 3, 1))
        for line in emit.row(B, args[1], args[2], lines.dtype.count):
            builder.call(function, [builder.bitcast(line, byte), to_read, keep, of_data])
        return emit.nothing()

    return types.void(lines, B, types.int64), code


@intrinsic
def spill(typing: Any, lines: Any, sums: Any, total: Any) -> Any:
    """Add sums to a total (1, r) in float64, and set them to 0."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        emit = Emit(context, builder, sums.dtype)
        for held, wide in _wide_lines(emit, lines, total, args):
            emit.store(emit.add(_widen(emit, emit.load(held)), emit.load(wide)), wide)
            emit.store(emit.constant(0), held)
        return emit.nothing()

    return types.void(lines, sums, total), code


@intrinsic
def unspill(typing: Any, lines: Any, sums: Any, total: Any) -> Any:
    """Add a total (1, r) in float64 to sums."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        emit = Emit(context, builder, sums.dtype)
        for held, wide in _wide_lines(emit, lines, total, args):
            both = emit.add(_widen(emit, emit.load(held)), emit.load(wide))
            emit.store(both if emit.size == 8 else builder.fptrunc(both, emit.line), held)
        return emit.nothing()

    return types.void(lines, sums, total), code


def _wide_lines(emit: Emit, lines: Any, total: Any, args: Any) -> list[tuple[Any, Any]]:
    """Pairs of pointers: a line of sums, and as many numbers in float64."""
    start = emit.builder.bitcast(
        emit.flat(total, args[2]), ir.VectorType(ir.DoubleType(), emit.width).as_pointer()
    )
    wide = [emit.builder.gep(start, [ir.Constant(I64, k)]) for k in range(lines.dtype.count)]
    return list(zip(emit.held(args[1], lines.dtype.count), wide, strict=True))


def _widen(emit: Emit, line: Any) -> Any:
    if emit.size == 8:
        return line
    return emit.builder.fpext(line, ir.VectorType(ir.DoubleType(), emit.width))


@intrinsic
def read(typing: Any, lines: Any, sums: Any, A: Any, i: Any) -> Any:
    """Set sums to ``A[i]``."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        emit = Emit(context, builder, sums.dtype)
        rows = emit.row(A, args[2], args[3], lines.dtype.count)
        for held, line in zip(emit.held(args[1], lines.dtype.count), rows, strict=True):
            emit.store(emit.load(line), held)
        return emit.nothing()

    return types.void(lines, sums, A, types.int64), code


@intrinsic
def write(typing: Any, lines: Any, sums: Any, out: Any, i: Any) -> Any:
    """Set ``out[i]`` to sums."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        emit = Emit(context, builder, sums.dtype)
        rows = emit.row(out, args[2], args[3], lines.dtype.count)
        for held, line in zip(emit.held(args[1], lines.dtype.count), rows, strict=True):
            emit.store(emit.load(held), line)
        return emit.nothing()

    return types.void(lines, sums, out, types.int64), code


@intrinsic
def write_step(
    typing: Any, lines: Any, sums: Any, A: Any, i: Any, q: Any, scale: Any, out: Any
) -> Any:
    """Set ``out[i]`` to ``A[i] * sums * q[0] * scale``; q is (1, r)."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        emit = Emit(context, builder, A.dtype)
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
        return emit.nothing()

    return types.void(lines, sums, A, types.int64, q, A.dtype, out), code


@intrinsic
def violation(typing: Any, lines: Any, sums: Any, A: Any, i: Any, den: Any, w: Any) -> Any:
    """Return the mass of row i, ``A[i] . sums``, and its largest violation of optimality.

    ``sums`` are the row's numerators G and ``w * den[0]`` its denominators u. An entry is optimal
    if its share a u of the mass M or its relative slope M (u - G) / max(u, G) is 0 and neither is
    negative; the violation is the smaller of the two in size.
    """

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        emit = Emit(context, builder, A.dtype)
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
        return context.make_tuple(builder, signature.return_type, [mass, emit.largest(worst)])

    pair = types.UniTuple(A.dtype, 2)
    return pair(lines, sums, A, types.int64, den, A.dtype), code
