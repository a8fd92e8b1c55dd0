"""Blocks in files of our own: raw arrays, read ahead of their use into memory that is used again.

Reading is by `readinto` and not by a memory map, so that what the process holds is what it asked
for: two blocks. The system may keep the files in its cache all the same.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from io import FileIO
from itertools import cycle
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from marginparts._types import Array, Factor
from marginparts.backends import Backend
from marginparts.backends.blocked import FactorBlocks
from marginparts.files.atomic import problems_with

_LINE = 64

#: Memory that a block is read into.
Buffer = NDArray[np.uint8]


#: Where an array lies within its block, its shape and its type.
Piece: TypeAlias = tuple[int, tuple[int, ...], np.dtype[Any]]


class BlockFile:
    """A file of blocks, each a few arrays one after the other."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.offsets = [0]
        self.pieces: list[list[Piece]] = []

    @property
    def largest(self) -> int:
        """Bytes of the largest block."""
        return int(np.diff(self.offsets).max(initial=0))

    @contextmanager
    def writing(self) -> Iterator[Callable[..., None]]:
        """Give a function that appends the arrays of a block."""
        with problems_with(self.path, "written"), self.path.open("wb", buffering=0) as file:

            def append(*arrays: Array) -> None:
                pieces, size = [], 0
                for array in arrays:
                    pieces.append((size, array.shape, array.dtype))
                    _write(file, array)
                    file.write(bytes(-array.nbytes % _LINE))
                    size += -(-array.nbytes // _LINE) * _LINE
                self.pieces.append(pieces)
                self.offsets.append(self.offsets[-1] + size)

            yield append

    def read(self, wanted: Sequence[int], buffers: list[Buffer]) -> Iterator[list[Array]]:
        """Yield the arrays of some blocks through two buffers; one is gone with the next."""
        with problems_with(self.path, "read"), self.path.open("rb", buffering=0) as file:

            def fill(i: int, buffer: Buffer) -> list[Array]:
                file.seek(self.offsets[i])
                _fill(file, buffer.data[: self.offsets[i + 1] - self.offsets[i]])
                pieces = self.pieces[i]
                return [np.ndarray(shape, dtype, buffer, start) for start, shape, dtype in pieces]

            # a thread fills one buffer while the other is in use
            with ThreadPoolExecutor(1, "marginparts-read-ahead") as reader:
                coming: Future[list[Array]] | None = None
                for i, buffer in zip(wanted, cycle(buffers), strict=False):
                    ready, coming = coming, reader.submit(fill, i, buffer)
                    if ready is not None:
                        yield ready.result()
                if coming is not None:
                    yield coming.result()


def new_buffer(size: int) -> Buffer:
    """Return bytes that begin at a cache line."""
    buffer = np.empty(size + _LINE, np.uint8)
    start = -buffer.ctypes.data % _LINE
    return buffer[start : start + size]


class FactorFile(FactorBlocks):
    """The blocks of a factor, kept on disk; ``inner`` makes factors of arrays, and back."""

    def __init__(self, path: Path, bounds: Sequence[int], inner: Backend) -> None:
        self.path, self.bounds, self.inner = path, bounds, inner
        with problems_with(path, "written"):
            self.file = path.open("w+b", buffering=0)
        self.width = 0
        self.dtype: np.dtype[Any] = np.dtype(np.float64)

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def __setitem__(self, i: int, block: Factor) -> None:
        array = np.ascontiguousarray(self.inner.release(cast(Array, block), block.shape[1]))
        self.width, self.dtype = array.shape[1], array.dtype
        with problems_with(self.path, "written"):
            self.file.seek(self._offset(i))
            _write(self.file, array)

    def __getitem__(self, i: int) -> Any:
        array = np.empty((self.bounds[i + 1] - self.bounds[i], self.width), self.dtype)
        with problems_with(self.path, "read"):
            self.file.seek(self._offset(i))
            _fill(self.file, array.data.cast("B") if array.size else memoryview(b""))
        return self.inner.factor(array)

    def _offset(self, i: int) -> int:
        return int(self.bounds[i]) * self.width * self.dtype.itemsize

    def whole(self, inner: Backend, r: int) -> Array:
        """Return all of the factor as a memory map, which outlives its file's name."""
        shape = (int(self.bounds[-1]), self.width)
        return np.memmap(self.path, self.dtype, "c", shape=shape)[:, :r]

    def __del__(self) -> None:
        with suppress(AttributeError, OSError):  # it may never have been opened, or be gone already
            self.file.close()
            self.path.unlink()


def _write(file: FileIO, array: Array) -> None:
    left = np.ascontiguousarray(array).data.cast("B") if array.size else memoryview(b"")
    while len(left):
        left = left[file.write(left) :]


def _fill(file: FileIO, buffer: memoryview) -> None:
    """Read until the buffer is full: the system gives at most two gigabytes at once."""
    while len(buffer):
        count = file.readinto(buffer)
        if not count:
            raise OSError(errno.EIO, "it is cut short")
        buffer = buffer[count:]
