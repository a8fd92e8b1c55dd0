"""Matrices in files, a number of rows at a time and as the files have them."""

from __future__ import annotations

import math
import re
import zipfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from marginparts._types import Array, Data
from marginparts.files.arrays import npy_header, read_npz
from marginparts.files.atomic import FileProblemError
from marginparts.files.columns import listed
from marginparts.files.compressed import check_pointers
from marginparts.files.streams import library_reads, opened
from marginparts.rows.disk._limits import shown


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
    try:
        starts = check_pointers(indptr, indptr.size - 1, math.prod(data.shape))
        fits = data.shape == indices.shape == (starts[-1],) and indices.dtype.kind in "iu"
    except ValueError:
        fits = False
    if not fits:
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
    indptr = starts

    def chunks(most: Bounds) -> Iterator[Chunk]:
        with arrays() if arrays else nullcontext((data, indices)) as (values, columns):
            for first, last in row_spans(indptr, most):
                # no name here holds what is read: it would be kept beside what is made of it
                part = slice(int(indptr[first]), int(indptr[last]))
                pointers = indptr[first : last + 1] - indptr[first]
                yield _csr_chunk(path, first, np.asarray(values[part]), columns[part], pointers, d)

    largest = int(np.diff(indptr).max(initial=0))
    return Source((n, d), float_type(data.dtype), int(indptr[-1]), True, largest, chunks)


def _csr_chunk(
    path: Path, first: int, values: Array, columns: Any, pointers: NDArray[Any], d: int
) -> Chunk:
    """Return some rows of a CSR matrix, the first of which is given, with their columns checked."""
    columns, n = np.asarray(columns), len(pointers) - 1
    if len(columns) and not 0 <= columns.min() <= columns.max() < d:
        raise FileProblemError(
            f"{path}, rows {first + 1} to {first + n}: a column index is not in 0 to {d - 1}; "
            "write the file again, with its shape."
        )
    # SciPy takes indices of 32 bits where they suffice
    return Chunk(sp.csr_array((values, columns, pointers), shape=(n, d)), path, first + 1)


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


class Header(NamedTuple):
    """What is known of a file before it is read."""

    path: Path
    shape: tuple[int, int]
    dtype: Any
    nnz: int
    sparse: bool
    size: int


def open_npz_folder(folder: Path) -> Source:
    """Look at the headers of all ``.npz`` files of a folder; their names have a natural order."""
    paths = sorted((p for p in folder.iterdir() if p.suffix.lower() == ".npz"), key=_natural)
    headers = [_header(path) for path in paths]
    for header in headers:
        if header.shape[1] != headers[0].shape[1]:
            raise FileProblemError(
                f"{header.path} has {header.shape[1]} columns and {headers[0].path.name} has "
                f"{headers[0].shape[1]}; all files of a folder must have the same columns."
            )
    n, d = sum(h.shape[0] for h in headers), headers[0].shape[1]
    dtype, nnz = np.result_type(*(h.dtype for h in headers)), sum(h.nnz for h in headers)
    sparse = any(h.sparse for h in headers)
    return Source((n, d), dtype, nnz, sparse, 0, partial(_chunks, headers, sparse))


def _chunks(headers: list[Header], sparse: bool, most: Bounds) -> Iterator[Chunk]:
    """Yield all rows in order."""
    for header in headers:
        if header.size > most.file_bytes:
            raise FileProblemError(
                f"{header.path} holds {shown(header.size)}, and the memory limit leaves "
                f"{shown(most.file_bytes)} for a file that is read whole; raise memory_limit or "
                "save it as several files with fewer rows."
            )
        X = read_npz(header.path)[0]
        X = sp.csr_array(X) if sparse else X
        # a dense matrix has as many entries in each row
        indptr = X.indptr if sparse else np.arange(len(X) + 1) * X.shape[1]
        for first, last in row_spans(indptr, most):
            yield Chunk(X[first:last], header.path, first + 1)
        del X


def _natural(path: Path) -> list[tuple[int, Any]]:
    """Return what sorts block2 before block10."""
    pieces = re.split(r"(\d+)", path.name)
    return [(1, int(piece)) if piece.isdigit() else (0, piece) for piece in pieces]


def _header(path: Path) -> Header:
    with opened(path) as file, library_reads(path, "npz file"), zipfile.ZipFile(file) as archive:
        names = [Path(name).stem for name in archive.namelist()]
        size = sum(member.file_size for member in archive.infolist())
        if "format" in names:
            with archive.open("shape.npy") as member:
                n, d = np.lib.format.read_array(member, allow_pickle=False)
            (nnz,), _, dtype = _member(archive, "data", path)
            sparse = True
        else:
            name = _only(names, path)
            shape, _, dtype = _member(archive, name, path)
            if len(shape) != 2:
                raise FileProblemError(f"{path} has an array of shape {shape}; save a matrix.")
            (n, d), nnz, sparse = shape, int(np.prod(shape)), False
    check_real(path, dtype)
    return Header(path, (int(n), int(d)), float_type(dtype), int(nnz), sparse, size)


def _only(names: list[str], path: Path) -> str:
    """Return the name of the matrix: X, or the only one beside y."""
    others = [name for name in names if name != "y"]
    if "X" in others or len(others) == 1:
        return "X" if "X" in others else others[0]
    raise FileProblemError(f"{path} has the arrays {listed(names)}; name the matrix X.")


def _member(archive: zipfile.ZipFile, name: str, path: Path) -> tuple[Any, bool, Any]:
    with archive.open(f"{name}.npy") as member:
        return npy_header(member, path)
