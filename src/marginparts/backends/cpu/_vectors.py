"""Vector instructions that numba cannot express, on rows of a factor.

A row of a factor is a whole number of *lines*: vectors of 64 bytes, as long as a cache line (16
numbers in float32, 8 in float64). How many is part of a function's type, so that the compiler
keeps a whole row in registers: ``lines`` is an empty array of strings of that length, and nothing
else about it matters (a tuple's length would do, but not above a hundred). LLVM splits a line into
what the processor has, so this runs on any of them.
"""

from __future__ import annotations

import platform
from functools import reduce

from llvmlite import ir
from numba import types
from numba.core import cgutils

from marginparts.backends.cpu._emit import I32, I64, LINE_BYTES, Emit, Stored, Value, pair, vector

_ON_X86 = platform.machine().lower() in ("x86_64", "amd64")


@vector(lambda dtype: types.uint32)
def flush_denormals(emit: Emit) -> Value:
    """Make this thread round numbers below the normal range to 0; return its mode before.

    Multiplicative updates leave many such numbers behind, and x86 processors compute with them a
    hundred times slower. On others this does nothing.
    """
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


@vector()
def restore_mode(emit: Emit, mode: Value) -> None:
    """Undo `flush_denormals`."""
    if _ON_X86:
        place = cgutils.alloca_once(emit.builder, I32)
        emit.builder.store(mode, place)
        _control_word(emit.builder, "llvm.x86.sse.ldmxcsr", place)


def _control_word(builder: ir.IRBuilder, name: str, place: Value) -> None:
    """Load or store the control word of the vector unit."""
    byte = ir.IntType(8).as_pointer()
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(ir.VoidType(), [byte]), name
    )
    builder.call(function, [builder.bitcast(place, byte)])


@vector(types.CPointer)
def new_sums(emit: Emit, lines: int, like: Stored) -> Value:
    """Return registers for one row of sums, undefined at first."""
    place = cgutils.alloca_once(emit.builder, ir.ArrayType(emit.line, lines))
    place.align = LINE_BYTES
    return emit.builder.bitcast(place, emit.number.as_pointer())


@vector()
def clear(emit: Emit, lines: int, sums: Value) -> None:
    """Set sums to 0."""
    for held in emit.held(sums, lines):
        emit.store(emit.constant(0), held)


@vector()
def add_scaled(emit: Emit, lines: int, sums: Value, q: Value, B: Stored, j: Value) -> None:
    """Add ``q * B[j]`` to sums."""
    factor = emit.splat(q)
    for held, b in zip(emit.held(sums, lines), emit.row(B, j, lines), strict=True):
        emit.store(emit.add(emit.load(held), emit.mul(factor, emit.load(b))), held)


@vector(lambda dtype: dtype)
def dot(emit: Emit, lines: int, A: Stored, i: Value, B: Stored, j: Value) -> Value:
    """Return ``A[i] . B[j]``."""
    pairs = zip(emit.row(A, i, lines), emit.row(B, j, lines), strict=True)
    chains: list[Value] = []  # four, so that an addition need not wait for the last one
    for k, (a, b) in enumerate(pairs):
        product = emit.mul(emit.load(a), emit.load(b))
        if k < 4:
            chains.append(product)
        else:
            chains[k % 4] = emit.add(chains[k % 4], product)
    return emit.total(reduce(emit.add, chains))


@vector()
def prefetch(emit: Emit, lines: int, B: Stored, j: Value) -> None:
    """Ask for row j of B to be brought into the cache."""
    builder = emit.builder
    byte = ir.IntType(8).as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [byte, I32, I32, I32])
    function = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
    to_read, keep, of_data = (ir.Constant(I32, value) for value in (0, 3, 1))
    for line in emit.row(B, j, lines):
        builder.call(function, [builder.bitcast(line, byte), to_read, keep, of_data])


@vector()
def spill(emit: Emit, lines: int, sums: Value, total: Stored) -> None:
    """Add sums to a total (1, r) in float64, and set them to 0."""
    for held, wide in _wide_lines(emit, lines, sums, total):
        emit.store(emit.add(_widen(emit, emit.load(held)), emit.load(wide)), wide)
        emit.store(emit.constant(0), held)


@vector()
def unspill(emit: Emit, lines: int, sums: Value, total: Stored) -> None:
    """Add a total (1, r) in float64 to sums."""
    for held, wide in _wide_lines(emit, lines, sums, total):
        both = emit.add(_widen(emit, emit.load(held)), emit.load(wide))
        emit.store(both if emit.size == 8 else emit.builder.fptrunc(both, emit.line), held)


def _wide_lines(emit: Emit, lines: int, sums: Value, total: Stored) -> list[tuple[Value, Value]]:
    """Pairs of pointers: a line of sums, and as many numbers in float64."""
    wide_line = ir.VectorType(ir.DoubleType(), emit.width)
    start = emit.builder.bitcast(emit.flat(total), wide_line.as_pointer())
    wide = [emit.builder.gep(start, [ir.Constant(I64, k)]) for k in range(lines)]
    return list(zip(emit.held(sums, lines), wide, strict=True))


def _widen(emit: Emit, line: Value) -> Value:
    if emit.size == 8:
        return line
    return emit.builder.fpext(line, ir.VectorType(ir.DoubleType(), emit.width))


@vector()
def read(emit: Emit, lines: int, sums: Value, A: Stored, i: Value) -> None:
    """Set sums to ``A[i]``."""
    for held, line in zip(emit.held(sums, lines), emit.row(A, i, lines), strict=True):
        emit.store(emit.load(line), held)


@vector()
def write(emit: Emit, lines: int, sums: Value, out: Stored, i: Value) -> None:
    """Set ``out[i]`` to sums."""
    for held, line in zip(emit.held(sums, lines), emit.row(out, i, lines), strict=True):
        emit.store(emit.load(held), line)


@vector()
def write_step(
    emit: Emit, lines: int, sums: Value, A: Stored, i: Value, q: Stored, scale: Value, out: Stored
) -> None:
    """Set ``out[i]`` to ``A[i] * sums * q[0] * scale``; q is (1, r)."""
    scale, zero = emit.splat(scale), ir.Constant(I64, 0)
    for held, a, q_line, line in zip(
        emit.held(sums, lines),
        emit.row(A, i, lines),
        emit.row(q, zero, lines),
        emit.row(out, i, lines),
        strict=True,
    ):
        step = emit.mul(emit.mul(emit.load(a), emit.load(held)), emit.load(q_line))
        emit.store(emit.mul(step, scale), line)


@vector()
def write_apart(
    emit: Emit, lines: int, sums: Value, A: Stored, i: Value, half: Stored, w: Value, square: Value,
    out: Stored,
) -> None:  # fmt: skip
    """Set each entry of ``out[i]`` to ``v g / (half + sqrt(half**2 + q g))``, v that of ``A[i]``.

    ``g`` are the sums, ``half`` is (1, r) and ``q`` is ``square v + w (sum of A[i] - v)``.
    """
    builder, zero = emit.builder, ir.Constant(I64, 0)
    v = [emit.load(line) for line in emit.row(A, i, lines)]
    total = emit.splat(emit.total(reduce(emit.add, v)))
    w, square = emit.splat(w), emit.splat(square)
    held = zip(
        v,
        emit.held(sums, lines),
        emit.row(half, zero, lines),
        emit.row(out, i, lines),
        strict=True,
    )
    for v_k, sums_k, half_k, line in held:
        g, b = emit.load(sums_k), emit.load(half_k)
        q = emit.add(emit.mul(square, v_k), emit.mul(w, builder.fsub(total, v_k)))
        below = emit.add(b, emit.sqrt(emit.add(emit.mul(b, b), emit.mul(q, g))))
        emit.store(builder.fdiv(emit.mul(v_k, g), emit.larger(below, emit.constant(1e-37))), line)


@vector(pair)
def violation(
    emit: Emit, lines: int, sums: Value, A: Stored, i: Value, den: Stored, w: Value
) -> list[Value]:
    """Return the mass of row i, ``A[i] . sums``, and its largest violation of optimality.

    ``sums`` are the row's numerators G and ``w * den[0]`` its denominators u. An entry is optimal
    if its share a u of the mass M or its relative slope M (u - G) / max(u, G) is 0 and neither is
    negative; the violation is the smaller of the two in size.
    """
    builder = emit.builder
    G = [emit.load(held) for held in emit.held(sums, lines)]
    a = [emit.load(line) for line in emit.row(A, i, lines)]
    w = emit.splat(w)
    u = [emit.mul(w, emit.load(line)) for line in emit.row(den, ir.Constant(I64, 0), lines)]
    mass = emit.total(reduce(emit.add, [emit.mul(x, g) for x, g in zip(a, G, strict=True)]))
    wide_mass, tiny, worst = emit.splat(mass), emit.constant(1e-37), emit.constant(0)
    for a_k, g_k, u_k in zip(a, G, u, strict=True):
        slope = builder.fdiv(builder.fsub(u_k, g_k), emit.larger(emit.larger(u_k, g_k), tiny))
        gap = emit.smaller(emit.mul(a_k, u_k), emit.mul(wide_mass, slope))
        size = emit.larger(gap, builder.fsub(emit.constant(0), gap))
        worst = emit.larger(size, worst)
    return [mass, emit.largest(worst)]
