"""Writing LLVM code for vectors as long as a cache line, for what numba cannot express.

A function that is decorated with `vector` writes the code of one instruction:

    @vector()
    def clear(emit, lines, sums):  # in a compiled loop: clear(lines, sums)
        for held in emit.held(sums, lines):
            emit.store(emit.constant(0), held)

In the loop ``lines`` is an array whose type says how many lines a row has; here it is that number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, NamedTuple, TypeAlias

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.base import BaseContext
from numba.core.typing import Signature
from numba.core.typing.context import BaseContext as TypingContext
from numba.extending import intrinsic

LINE_BYTES = 64

I32, I64 = ir.IntType(32), ir.IntType(64)

Value: TypeAlias = ir.Value


class Stored(NamedTuple):
    """An array that is passed to an instruction: its type, and its value."""

    kind: types.Array
    value: Value


# Products and sums are written in the order in which they are to be done: left to choose, the
# compiler may choose differently from one process to the next. Only fused multiply-adds are free.
_FLAGS = ("contract",)


def nothing(dtype: types.Float) -> types.Type:
    """Return the type of what an instruction returns that returns nothing."""
    return types.void


def pair(dtype: types.Float) -> types.Type:
    """Return the type of two numbers."""
    return types.UniTuple(dtype, 2)


def vector(
    returns: Callable[[types.Float], types.Type] = nothing,
) -> Callable[[Callable[..., Any]], Any]:
    """Make an instruction for compiled loops of a function that writes its code.

    ``returns`` is the type of its result for a type of numbers: that of its first array of them.
    """

    def decorate(write: Callable[..., Any]) -> Any:
        @wraps(write)  # numba asks for the names of the arguments
        def typed(typing: TypingContext, *kinds: types.Type) -> tuple[Signature, Any]:
            numbers = (getattr(kind, "dtype", None) for kind in kinds)
            dtype = next((n for n in numbers if isinstance(n, types.Float)), types.float32)

            def code(
                context: BaseContext, builder: ir.IRBuilder, signature: Signature,
                args: Sequence[Value],
            ) -> Value:  # fmt: skip
                found = write(Emit(context, builder, dtype), *map(_written, kinds, args))
                if isinstance(found, list):
                    return context.make_tuple(builder, signature.return_type, found)
                return context.get_dummy_value() if found is None else found

            return returns(dtype)(*(_passed(kind, dtype) for kind in kinds)), code

        return intrinsic(typed)

    return decorate


def _passed(kind: types.Type, dtype: types.Float) -> types.Type:
    """Return the type as which an argument is passed: one for places, one for numbers."""
    if kind in types.signed_domain:
        return types.int64
    return dtype if isinstance(kind, types.Float) else kind


def _written(kind: types.Type, value: Value) -> int | Stored | Value:
    """Return an argument as the code is written with it."""
    if not isinstance(kind, types.Array):
        return value
    return kind.dtype.count if isinstance(kind.dtype, types.CharSeq) else Stored(kind, value)


class Emit:
    """Writes LLVM code for lines of one number type; every method appends to one function."""

    def __init__(self, context: BaseContext, builder: ir.IRBuilder, dtype: types.Float) -> None:
        self.context, self.builder = context, builder
        self.size = dtype.bitwidth // 8
        self.width = LINE_BYTES // self.size
        self.number = context.get_data_type(dtype)
        self.line = ir.VectorType(self.number, self.width)
        self.suffix = f"v{self.width}f{dtype.bitwidth}"

    def constant(self, value: float) -> Value:
        return ir.Constant(self.line, [value] * self.width)

    def splat(self, scalar: Value) -> Value:
        undefined = ir.Constant(self.line, ir.Undefined)
        one = self.builder.insert_element(undefined, scalar, ir.Constant(I32, 0))
        first = ir.Constant(ir.VectorType(I32, self.width), [0] * self.width)
        return self.builder.shuffle_vector(one, undefined, first)

    def place(self, array: Stored, *where: Value) -> Value:
        """Pointer to an entry of an array."""
        view = self.context.make_array(array.kind)(self.context, self.builder, array.value)
        return cgutils.get_item_pointer(
            self.context, self.builder, array.kind, view, list(where), wraparound=False
        )

    def row(self, array: Stored, i: Value, n: int) -> list[Value]:
        """Pointers to the n lines of row i of a two-dimensional array."""
        return self.held(self.place(array, i, ir.Constant(I64, 0)), n)

    def held(self, start: Value, n: int) -> list[Value]:
        """Pointers to n lines from a pointer to the first number."""
        start = self.builder.bitcast(start, self.line.as_pointer())
        return [self.builder.gep(start, [ir.Constant(I64, k)]) for k in range(n)]

    def at(self, start: Value, offset: Value) -> Value:
        """Pointer to the line that begins at a number of a flat array."""
        return self.builder.bitcast(self.builder.gep(start, [offset]), self.line.as_pointer())

    def flat(self, array: Stored) -> Value:
        return self.context.make_array(array.kind)(self.context, self.builder, array.value).data

    def load(self, pointer: Value) -> Value:
        value = self.builder.load(pointer)
        value.align = self.size
        return value

    def store(self, value: Value, pointer: Value) -> None:
        self.builder.store(value, pointer).align = self.size

    def add(self, a: Value, b: Value) -> Value:
        return self.builder.fadd(a, b, flags=_FLAGS)

    def mul(self, a: Value, b: Value) -> Value:
        return self.builder.fmul(a, b, flags=_FLAGS)

    def larger(self, a: Value, b: Value) -> Value:
        return self.builder.select(self.builder.fcmp_ordered(">", a, b), a, b)

    def smaller(self, a: Value, b: Value) -> Value:
        return self.builder.select(self.builder.fcmp_ordered("<", a, b), a, b)

    def sqrt(self, line: Value) -> Value:
        kind = ir.FunctionType(self.line, [self.line])
        name = f"llvm.sqrt.{self.suffix}"
        function = cgutils.get_or_insert_function(self.builder.module, kind, name)
        return self.builder.call(function, [line])

    def total(self, line: Value) -> Value:
        """Sum of the numbers of one line."""
        kind = ir.FunctionType(self.number, [self.number, self.line])
        name = f"llvm.vector.reduce.fadd.{self.suffix}"
        function = cgutils.get_or_insert_function(self.builder.module, kind, name)
        # a tree of additions, always the same one
        return self.builder.call(
            function, [ir.Constant(self.number, 0), line], fastmath=("reassoc",)
        )

    def largest(self, line: Value) -> Value:
        """Largest number of one line."""
        kind = ir.FunctionType(self.number, [self.line])
        name = f"llvm.vector.reduce.fmax.{self.suffix}"
        function = cgutils.get_or_insert_function(self.builder.module, kind, name)
        return self.builder.call(function, [line], fastmath=("nnan",))
