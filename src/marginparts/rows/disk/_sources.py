"""Matrices in files, a number of rows at a time and as the files have them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from marginparts._types import Data
from marginparts.files.arrays import npy_header
from marginparts.files.atomic import FileProblemError
from marginparts.files.streams import library_reads, opened


class Stored(Protocol):
    """An array in a file, read by slices."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> np.dtype[Any]: ...

    def __getitem__(self, rows: slice) -> Any: ...


class NpyFile:
    """An array in an ``.npy`` file whose rows are read when they are asked for.

    Not by a memory map: pages of it count as the process's own memory for as long as it is open.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with opened(path) as file, library_reads(path, "npy file"):
            self.shape, by_columns, self.dtype = npy_header(file, path)
            self.offset = file.tell()
            size = file.seek(0, 2)
        if by_columns and len(self.shape) > 1:
            raise FileProblemError(
                f"{path} is stored by columns; save np.ascontiguousarray of it, which has rows."
            )
        if size < self.offset + int(np.prod(self.shape)) * self.dtype.itemsize:
            raise FileProblemError(f"{path} is cut short; write or fetch it again.")

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, rows: slice) -> Any:
        first, last, _ = rows.indices(len(self))
        row = int(np.prod(self.shape[1:]))
        with library_reads(self.path, "npy file"):
            found = np.fromfile(
                self.path, self.dtype, max(last - first, 0) * row,
                offset=self.offset + first * row * self.dtype.itemsize,
            )  # fmt: skip
            return found.reshape(-1, *self.shape[1:])


class Chunk(NamedTuple):
    """Some rows as a file has them: CSR or dense, not checked yet."""

    X: Data
    path: Path
    place: int  # in the file, of the first of these rows, from 1


class Bounds(NamedTuple):
    """How much may be read at a time."""

    entries: int  # nonzeros of a chunk (all entries, of a dense one)
    rows: int
    file_bytes: int  # of a file that can only be read whole


@dataclass(frozen=True)
class Source:
    """A matrix in files; ``chunks`` yields all rows in order."""

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    nnz: int
    sparse: bool
    largest_row: int  # its number of entries, 0 where that takes reading all
    chunks: Callable[[Bounds], Iterator[Chunk]]


def float_type(dtype: DTypeLike) -> np.dtype[Any]:
    """Return the type in which a file's entries are counted: float32 stays, the rest is float64."""
    return np.dtype(np.float32 if dtype in (np.float32, np.float16) else np.float64)


def check_real(path: Path, dtype: DTypeLike) -> None:
    """Refuse entries that are no real numbers."""
    if np.dtype(dtype).kind not in "buif":
        raise FileProblemError(f"{path} holds {dtype} entries; save a matrix of real numbers.")


def row_spans(indptr: NDArray[Any], most: Bounds) -> Iterator[tuple[int, int]]:
    """Cut rows so that no piece has too many rows or nonzeros, unless a single row has."""
    first, n = 0, len(indptr) - 1
    while first < n:
        fitting = int(np.searchsorted(indptr, indptr[first] + most.entries, side="right")) - 1
        last = min(max(fitting, first + 1), first + most.rows, n)
        yield first, last
        first = last


def csr_source(
    path: Path, shape: tuple[int, int], indptr: NDArray[Any], data: Stored, indices: Stored,
    arrays: Callable[[], AbstractContextManager[tuple[Any, Any]]] | None = None,
) -> Source:  # fmt: skip
    """Check that three arrays make a CSR matrix, without reading the long ones.

    ``arrays`` opens the long ones anew, where they do not stay open.
    """
    check_real(path, data.dtype)
    indptr = np.asarray(indptr)
    lengths = {data.shape, indices.shape, (int(indptr[-1]) if len(indptr) else -1,)}
    rises = indptr.ndim == 1 and indptr.dtype.kind in "iu" and (np.diff(indptr) >= 0).all()
    if not rises or len(lengths) > 1 or indptr[0] != 0 or indices.dtype.kind not in "iu":
        raise FileProblemError(
            f"{path} is no CSR matrix: indptr must rise from 0 to the number of its data and "
            "indices; write it again."
        )
    if len(indptr) - 1 != shape[0]:
        raise FileProblemError(
            f"{path} has {len(indptr) - 1} rows by its indptr and {shape[0]} by its shape; "
            "write it again."
        )
    n, d = int(shape[0]), int(shape[1])
    indptr = indptr.astype(np.int64, copy=False)

    def chunks(most: Bounds) -> Iterator[Chunk]:
        with arrays() if arrays else nullcontext((data, indices)) as (values, columns):
            for first, last in row_spans(indptr, most):
                lo, hi = int(indptr[first]), int(indptr[last])
                found = np.asarray(columns[lo:hi])
                if len(found) and not 0 <= found.min() <= found.max() < d:
                    raise FileProblemError(
                        f"{path}, rows {first + 1} to {last}: a column index is not in 0 to "
                        f"{d - 1}; write the file again, with its shape."
                    )
                csr = np.asarray(values[lo:hi]), found, indptr[first : last + 1] - lo
                # SciPy takes indices of 32 bits where they suffice
                yield Chunk(sp.csr_array(csr, shape=(last - first, d)), path, first + 1)

    largest = int(np.diff(indptr).max(initial=0))
    return Source((n, d), float_type(data.dtype), int(indptr[-1]), True, largest, chunks)


def dense_source(
    path: Path, X: Stored, reopened: Callable[[], AbstractContextManager[Any]] | None = None
) -> Source:
    """Check that an array is a matrix, without reading it; ``reopened`` is as ``arrays`` above."""
    check_real(path, X.dtype)
    if len(X.shape) != 2:
        raise FileProblemError(f"{path} has an array of shape {tuple(X.shape)}; save a matrix.")
    n, d = int(X.shape[0]), int(X.shape[1])

    def chunks(most: Bounds) -> Iterator[Chunk]:
        step = max(min(most.rows, most.entries // max(d, 1)), 1)
        with reopened() if reopened else nullcontext(X) as rows:
            for first in range(0, n, step):
                yield Chunk(np.asarray(rows[first : first + step]), path, first + 1)

    return Source((n, d), float_type(X.dtype), n * d, False, d, chunks)
