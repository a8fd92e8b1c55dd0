"""Writing LLVM code for vectors as long as a cache line, for what numba has no words for."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils

LINE_BYTES = 64

I32, I64 = ir.IntType(32), ir.IntType(64)

# Products and sums are written in the order in which they are to be done: left to choose, the
# compiler may choose differently from one process to the next. Only fused multiply-adds are free.
_FLAGS = ("contract",)


class Emit:
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
        one = self.builder.insert_element(undefined, scalar, ir.Constant(I32, 0))
        first = ir.Constant(ir.VectorType(I32, self.width), [0] * self.width)
        return self.builder.shuffle_vector(one, undefined, first)

    def row(self, kind: Any, array: Any, i: Any, n: int) -> list[Any]:
        """Pointers to the n lines of row i of a two-dimensional array."""
        view = self.context.make_array(kind)(self.context, self.builder, array)
        zero = ir.Constant(I64, 0)
        start = cgutils.get_item_pointer(
            self.context, self.builder, kind, view, [i, zero], wraparound=False
        )
        return self.held(start, n)

    def held(self, start: Any, n: int) -> list[Any]:
        """Pointers to n lines from a pointer to the first number."""
        start = self.builder.bitcast(start, self.line.as_pointer())
        return [self.builder.gep(start, [ir.Constant(I64, k)]) for k in range(n)]

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
