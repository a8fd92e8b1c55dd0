"""A folder of ``.npz`` files, each with some rows of one matrix."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from marginparts.files.arrays import npy_header, read_npz
from marginparts.files.atomic import FileProblemError
from marginparts.files.columns import listed
from marginparts.files.streams import library_reads, opened
from marginparts.rows.disk._limits import shown
from marginparts.rows.disk._sources import Bounds, Chunk, Source, check_real, float_type, row_spans


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
