"""Writing LLVM code for vectors as long as a cache line, for what numba has no words for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.base import BaseContext
from numba.core.typing import Signature
from numba.core.typing.context import BaseContext as TypingContext

LINE_BYTES = 64

I32, I64 = ir.IntType(32), ir.IntType(64)


class Numbers(types.Type):
    """The type of an array of floating-point numbers, or of a pointer to some; for annotations."""

    dtype: types.Float


class Lines(types.Type):
    """The type that has the number of lines in a row: an array of strings of that length."""

    dtype: types.CharSeq


#: What the functions of `numba.extending.intrinsic` are made of: a function of the types of its
#: arguments returns a signature, and code that is given their values.
Context: TypeAlias = TypingContext
Scalar: TypeAlias = types.Type
Value: TypeAlias = ir.Value
Args: TypeAlias = Sequence[ir.Value]
Code: TypeAlias = Callable[[BaseContext, ir.IRBuilder, Signature, Args], Value]
Intrinsic: TypeAlias = tuple[Signature, Code]

# Products and sums are written in the order in which they are to be done: left to choose, the
# compiler may choose differently from one process to the next. Only fused multiply-adds are free.
_FLAGS = ("contract",)


def emitted(dtype: types.Float, write: Callable[[Emit, Args], Value | list[Value] | None]) -> Code:
    """Return the code of an intrinsic from a function that writes it: a value, several or none."""

    def code(
        context: BaseContext, builder: ir.IRBuilder, signature: Signature, args: Args
    ) -> Value:
        emit = Emit(context, builder, dtype)
        found = write(emit, args)
        if isinstance(found, list):
            return context.make_tuple(builder, signature.return_type, found)
        return context.get_dummy_value() if found is None else found

    return code


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

    def row(self, kind: Numbers, array: Value, i: Value, n: int) -> list[Value]:
        """Pointers to the n lines of row i of a two-dimensional array."""
        view = self.context.make_array(kind)(self.context, self.builder, array)
        zero = ir.Constant(I64, 0)
        start = cgutils.get_item_pointer(
            self.context, self.builder, kind, view, [i, zero], wraparound=False
        )
        return self.held(start, n)

    def held(self, start: Value, n: int) -> list[Value]:
        """Pointers to n lines from a pointer to the first number."""
        start = self.builder.bitcast(start, self.line.as_pointer())
        return [self.builder.gep(start, [ir.Constant(I64, k)]) for k in range(n)]

    def at(self, start: Value, offset: Value) -> Value:
        """Pointer to the line that begins at a number of a flat array."""
        return self.builder.bitcast(self.builder.gep(start, [offset]), self.line.as_pointer())

    def flat(self, kind: Numbers, array: Value) -> Value:
        return self.context.make_array(kind)(self.context, self.builder, array).data

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
