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
    transpose(tile, stride, p, B, line, indices, lo, last)    one line of the rows of B, by columns
    move_and_sum(x, fit, tile, b, moved, delta, m)            one coordinate of a sweep
    move(fit, tile, moved, delta, m)                          the end of a sweep
"""

from __future__ import annotations

import platform
from collections.abc import Iterator
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LINE_BYTES = 64

# Products and sums are written in the order in which they are to be done: left to choose, the
# compiler may choose differently from one process to the next. Only fused multiply-adds are free.
_FLAGS = ("contract",)
_ON_X86 = platform.machine().lower() in ("x86_64", "amd64")
_I32, _I64 = ir.IntType(32), ir.IntType(64)


class _Emit:
    """Writes LLVM code for lines of one number type; every method appends to one function."""

    def __init__(self, context: Any, builder: Any, dtype: Any) -> None:
        self.context, self.builder = context, builder
        self.size = dtype.bitwidth // 8
        self.width = LINE_BYTES // self.size
        self.number = context.get_data_type(dtype)
        self.line = ir.VectorType(self.number, self.width)
        self.suffix = f"v{self.width}f{dtype.bitwidth}"

    def constant(self, value: float) -> Any:
        return ir.Constant(self.line, [value] * self.width)

    def splat(self, scalar: Any) -> Any:
        undefined = ir.Constant(self.line, ir.Undefined)
        one = self.builder.insert_element(undefined, scalar, ir.Constant(_I32, 0))
        first = ir.Constant(ir.VectorType(_I32, self.width), [0] * self.width)
        return self.builder.shuffle_vector(one, undefined, first)

    def row(self, kind: Any, array: Any, i: Any, n: int) -> list[Any]:
        """Pointers to the n lines of row i of a two-dimensional array."""
        view = self.context.make_array(kind)(self.context, self.builder, array)
        zero = ir.Constant(_I64, 0)
        start = cgutils.get_item_pointer(
            self.context, self.builder, kind, view, [i, zero], wraparound=False
        )
        return self.held(start, n)

    def held(self, start: Any, n: int) -> list[Any]:
        """Pointers to n lines from a pointer to the first number."""
        start = self.builder.bitcast(start, self.line.as_pointer())
        return [self.builder.gep(start, [ir.Constant(_I64, k)]) for k in range(n)]

    def at(self, start: Any, offset: Any) -> Any:
        """Pointer to the line that begins at a number of a flat array."""
        return self.builder.bitcast(self.builder.gep(start, [offset]), self.line.as_pointer())

    def flat(self, kind: Any, array: Any) -> Any:
        return self.context.make_array(kind)(self.context, self.builder, array).data

    def load(self, pointer: Any) -> Any:
        value = self.builder.load(pointer)
        value.align = self.size
        return value

    def store(self, value: Any, pointer: Any) -> None:
        self.builder.store(value, pointer).align = self.size

    def add(self, a: Any, b: Any) -> Any:
        return self.builder.fadd(a, b, flags=_FLAGS)

    def mul(self, a: Any, b: Any) -> Any:
        return self.builder.fmul(a, b, flags=_FLAGS)

    def larger(self, a: Any, b: Any) -> Any:
        return self.builder.select(self.builder.fcmp_ordered(">", a, b), a, b)

    def smaller(self, a: Any, b: Any) -> Any:
        return self.builder.select(self.builder.fcmp_ordered("<", a, b), a, b)

    def total(self, line: Any) -> Any:
        """Sum of the numbers of one line."""
        kind = ir.FunctionType(self.number, [self.number, self.line])
        name = f"llvm.vector.reduce.fadd.{self.suffix}"
        function = cgutils.get_or_insert_function(self.builder.module, kind, name)
        # a tree of additions, always the same one
        return self.builder.call(
            function, [ir.Constant(self.number, 0), line], fastmath=("reassoc",)
        )

    def largest(self, line: Any) -> Any:
        """Largest number of one line."""
        kind = ir.FunctionType(self.number, [self.line])
        name = f"llvm.vector.reduce.fmax.{self.suffix}"
        function = cgutils.get_or_insert_function(self.builder.module, kind, name)
        return self.builder.call(function, [line], fastmath=("nnan",))

    def nothing(self) -> Any:
        return self.context.get_dummy_value()


@intrinsic
def flush_denormals(typing: Any) -> Any:
    """Make this thread round numbers below the normal range to 0; return its mode before.

    Multiplicative updates leave many such numbers behind, and x86 processors compute with them a
    hundred times slower. On others this does nothing.
    """

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        room = cgutils.alloca_once(builder, _I32)
        builder.store(ir.Constant(_I32, 0), room)
        if _ON_X86:
            _control_word(builder, "llvm.x86.sse.stmxcsr", room)
            before = builder.load(room)
            builder.store(builder.or_(before, ir.Constant(_I32, 0x8040)), room)
            _control_word(builder, "llvm.x86.sse.ldmxcsr", room)
            return before
        return builder.load(room)

    return types.uint32(), code


@intrinsic
def restore_mode(typing: Any, mode: Any) -> Any:
    """Undo `flush_denormals`."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if _ON_X86:
            room = cgutils.alloca_once(builder, _I32)
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
        emit = _Emit(context, builder, like.dtype)
        room = cgutils.alloca_once(builder, ir.ArrayType(emit.line, lines.dtype.count))
        room.align = LINE_BYTES
        return builder.bitcast(room, emit.number.as_pointer())

    return types.CPointer(like.dtype)(lines, like), code


@intrinsic
def clear(typing: Any, lines: Any, sums: Any) -> Any:
    """Set sums to 0."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        emit = _Emit(context, builder, sums.dtype)
        for held in emit.held(args[1], lines.dtype.count):
            emit.store(emit.constant(0), held)
        return emit.nothing()

    return types.void(lines, sums), code


@intrinsic
def add_scaled(typing: Any, lines: Any, sums: Any, q: Any, B: Any, j: Any) -> Any:
    """Add ``q * B[j]`` to sums."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        emit = _Emit(context, builder, B.dtype)
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
        emit = _Emit(context, builder, A.dtype)
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
        emit = _Emit(context, builder, B.dtype)
        byte = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [byte, _I32, _I32, _I32])
        function = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        to_read, keep, of_data = (ir.Constant(_I32, value) for value in (0, 3, 1))
        for line in emit.row(B, args[1], args[2], lines.dtype.count):
            builder.call(function, [builder.bitcast(line, byte), to_read, keep, of_data])
        return emit.nothing()

    return types.void(lines, B, types.int64), code


@intrinsic
def spill(typing: Any, lines: Any, sums: Any, total: Any) -> Any:
    """Add sums to a total (1, r) in float64, and set them to 0."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        emit = _Emit(context, builder, sums.dtype)
        for held, wide in _wide_lines(emit, lines, total, args):
            emit.store(emit.add(_widen(emit, emit.load(held)), emit.load(wide)), wide)
            emit.store(emit.constant(0), held)
        return emit.nothing()

    return types.void(lines, sums, total), code


@intrinsic
def unspill(typing: Any, lines: Any, sums: Any, total: Any) -> Any:
    """Add a total (1, r) in float64 to sums."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        emit = _Emit(context, builder, sums.dtype)
        for held, wide in _wide_lines(emit, lines, total, args):
            both = emit.add(_widen(emit, emit.load(held)), emit.load(wide))
            emit.store(both if emit.size == 8 else builder.fptrunc(both, emit.line), held)
        return emit.nothing()

    return types.void(lines, sums, total), code


def _wide_lines(emit: _Emit, lines: Any, total: Any, args: Any) -> list[tuple[Any, Any]]:
    """Pairs of pointers: a line of sums, and as many numbers in float64."""
    start = emit.builder.bitcast(
        emit.flat(total, args[2]), ir.VectorType(ir.DoubleType(), emit.width).as_pointer()
    )
    wide = [emit.builder.gep(start, [ir.Constant(_I64, k)]) for k in range(lines.dtype.count)]
    return list(zip(emit.held(args[1], lines.dtype.count), wide, strict=True))


def _widen(emit: _Emit, line: Any) -> Any:
    if emit.size == 8:
        return line
    return emit.builder.fpext(line, ir.VectorType(ir.DoubleType(), emit.width))


@intrinsic
def read(typing: Any, lines: Any, sums: Any, A: Any, i: Any) -> Any:
    """Set sums to ``A[i]``."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        emit = _Emit(context, builder, sums.dtype)
        rows = emit.row(A, args[2], args[3], lines.dtype.count)
        for held, line in zip(emit.held(args[1], lines.dtype.count), rows, strict=True):
            emit.store(emit.load(line), held)
        return emit.nothing()

    return types.void(lines, sums, A, types.int64), code


@intrinsic
def write(typing: Any, lines: Any, sums: Any, out: Any, i: Any) -> Any:
    """Set ``out[i]`` to sums."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        emit = _Emit(context, builder, sums.dtype)
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
        emit = _Emit(context, builder, A.dtype)
        n, zero = lines.dtype.count, ir.Constant(_I64, 0)
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
        emit = _Emit(context, builder, A.dtype)
        n, zero = lines.dtype.count, ir.Constant(_I64, 0)
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


@intrinsic
def transpose(
    typing: Any, tile: Any, stride: Any, p: Any, B: Any, line: Any, indices: Any, lo: Any, last: Any
) -> Any:
    """Copy one line of some rows of B to a tile, by columns.

    For one line's width of nonzeros from p on, ``tile[k * stride + p + q]`` becomes
    ``B[indices[min(lo + p + q, last)], line * width + k]``.
    """

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        emit = _Emit(context, builder, B.dtype)
        tile_value, stride, p, B_value, line, indices_value, lo, last = args
        width = emit.width
        view = context.make_array(indices)(context, builder, indices_value)
        factor = context.make_array(B)(context, builder, B_value)
        column = builder.mul(line, ir.Constant(_I64, width))
        vectors = []
        for q in range(width):
            place = builder.add(builder.add(lo, p), ir.Constant(_I64, q))
            place = builder.select(builder.icmp_signed("<", place, last), place, last)
            j = builder.load(
                cgutils.get_item_pointer(context, builder, indices, view, [place], wraparound=False)
            )
            if j.type.width < 64:
                j = builder.sext(j, _I64)
            start = cgutils.get_item_pointer(
                context, builder, B, factor, [j, column], wraparound=False
            )
            vectors.append(emit.load(builder.bitcast(start, emit.line.as_pointer())))
        half = width // 2
        lower, upper = (
            ir.Constant(ir.VectorType(_I32, width), [x for k in ks for x in (k, width + k)])
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
            offset = builder.add(builder.mul(ir.Constant(_I64, k), stride), p)
            emit.store(vector, emit.at(start, offset))
        return emit.nothing()

    i64 = types.int64
    return types.void(tile, i64, i64, B, i64, indices, i64, i64), code


@intrinsic
def move_and_sum(
    typing: Any, x: Any, fit: Any, tile: Any, b: Any, moved: Any, delta: Any, m: Any
) -> Any:
    """Finish the last coordinate's move and sum up the next one's.

    Adds ``delta * tile[moved:]`` to ``fit`` and returns the sums of ``x z`` and ``x z^2`` with
    ``z = tile[b:] / fit``, all over the first m entries, m a multiple of the line's width.
    """

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        emit = _Emit(context, builder, x.dtype)
        x_start, tile_start = emit.flat(x, args[0]), emit.flat(tile, args[2])
        sums = [cgutils.alloca_once(builder, emit.line) for _ in range(2)]
        for held in sums:
            builder.store(emit.constant(0), held)
        for p, new in _moved(emit, fit, args[1], tile, args[2], *args[4:]):
            z = builder.fdiv(emit.load(emit.at(tile_start, builder.add(args[3], p))), new)
            xz = emit.mul(emit.load(emit.at(x_start, p)), z)
            for held, term in zip(sums, (xz, emit.mul(xz, z)), strict=True):
                builder.store(emit.add(builder.load(held), term), held)
        totals = [emit.total(builder.load(held)) for held in sums]
        return context.make_tuple(builder, signature.return_type, totals)

    i64 = types.int64
    return types.UniTuple(x.dtype, 2)(x, fit, tile, i64, i64, x.dtype, i64), code


@intrinsic
def move(typing: Any, fit: Any, tile: Any, moved: Any, delta: Any, m: Any) -> Any:
    """Finish the last coordinate's move: add ``delta * tile[moved:]`` to ``fit``."""

    def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        emit = _Emit(context, builder, fit.dtype)
        for _ in _moved(emit, fit, args[0], tile, args[1], *args[2:]):
            pass
        return emit.nothing()

    return types.void(fit, tile, types.int64, fit.dtype, types.int64), code


def _moved(
    emit: _Emit,
    fit: Any,
    fit_value: Any,
    tile: Any,
    tile_value: Any,
    moved: Any,
    delta: Any,
    m: Any,
) -> Iterator[tuple[Any, Any]]:
    """Write the loop of a move, and yield the place and the new fit of a line inside it."""
    builder = emit.builder
    fit_start, tile_start = emit.flat(fit, fit_value), emit.flat(tile, tile_value)
    delta = emit.splat(delta)
    # rounding must not take a fit to zero or below
    least = emit.constant(1e-6 if emit.size == 4 else 1e-14)
    zero, step = ir.Constant(_I64, 0), ir.Constant(_I64, emit.width)
    with cgutils.for_range_slice(builder, zero, m, step) as (p, _):
        place = emit.at(fit_start, p)
        old = emit.load(place)
        change = emit.mul(delta, emit.load(emit.at(tile_start, builder.add(moved, p))))
        new = emit.larger(emit.add(old, change), emit.mul(old, least))
        emit.store(new, place)
        yield p, new
