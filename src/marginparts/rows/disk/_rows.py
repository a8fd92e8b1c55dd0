"""Rows in people's files, as data for a fit."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from marginparts._types import Array, Data
from marginparts.files.atomic import FileProblemError, problems_with, written_beside
from marginparts.files.columns import check_entries
from marginparts.rows.base import Elsewhere
from marginparts.rows.disk._containers import open_container
from marginparts.rows.disk._limits import Plan, Problem, bytes_of, planned, shown
from marginparts.rows.disk._sources import (
    Bounds,
    Chunk,
    NpyFile,
    Source,
    csr_source,
    dense_source,
    open_npz_folder,
)
from marginparts.rows.disk._stored import StoredRows
from marginparts.validation import as_nonnegative, check_count

#: What is read at a time where nothing is kept of it.
_A_FEW = Bounds(1 << 20, 1 << 14, 1 << 26)

#: Bytes of a block that is read once: larger ones are not quicker.
_A_PASS = 32 << 20

_CSR = ("data.npy", "indices.npy", "indptr.npy")


class RowBlocks(Elsewhere):
    """A matrix on disk, to be given to a fit in the place of X. Made by `open_rows`.

    Attributes
    ----------
    path : Path
    shape : (n, d)
    dtype : float32 or float64
        What its entries become: float32 stays, all else is float64.
    nnz : int
        Stored entries.
    memory_limit : int
        Bytes that the process may take.
    """

    def __init__(
        self, path: Path, source: Source, memory_limit: int, scratch: str | os.PathLike[str] | None
    ) -> None:
        self.path, self.source = path, source
        self.memory_limit, self.scratch = memory_limit, scratch
        self.shape, self.dtype, self.nnz = source.shape, source.dtype, source.nnz
        self._entry = self.dtype.itemsize + (4 if source.sparse else 0)  # bytes in a block file

    def __repr__(self) -> str:
        n, d = self.shape
        return f"RowBlocks({n:,} x {d:,} in {self.path}, limit {shown(self.memory_limit)})"

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Any:
        raise ValueError(
            f"{self!r} is on disk and cannot be taken as one array; nmf_alpha, NMFAlpha and "
            "NMFAlphaClassifier take it as it is."
        )

    def gathered(self) -> Any:
        """Refuse: they are on disk because they do not fit."""
        return self.__array__()

    def plan(self, n_components: int, solver: str = "auto") -> Plan:
        """Return how a fit would share out the memory."""
        itemsize, copies = self.dtype.itemsize, 1 if solver == "mu" else 3
        problem = Problem(self.shape, self.nnz, itemsize, n_components, copies)
        return planned(self.memory_limit, problem, self.source.largest_row * self._entry)

    def blocks(self, plan: Plan) -> Iterator[Any]:
        """Yield all rows in order, checked: canonical CSR or C-ordered arrays."""
        entries = max(plan.block_bytes // self._entry, 1)
        most = Bounds(entries, plan.block_rows, plan.file_bytes)
        for X, path, place in self.source.chunks(most):
            if sp.issparse(X):
                X = sp.csr_array(X, dtype=self.dtype)
            else:
                X = np.ascontiguousarray(X, dtype=self.dtype)
            size = X.nbytes if isinstance(X, np.ndarray) else X.nnz * self._entry
            if X.shape[0] == 1 and size > plan.block_bytes:
                raise FileProblemError(
                    f"{path}, row {place} takes {shown(size)}, and memory_limit leaves "
                    f"{shown(plan.block_bytes)} for a row; raise it."
                )
            check_entries(X, path, range(place, place + X.shape[0]))
            X = [as_nonnegative(X, "a fit")]
            yield X.pop()  # not kept here while it is used, and the next is read

    def as_stored(self) -> Iterator[Any]:
        """Yield all rows in order as they are in the files, some megabytes at a time, checked."""
        for X, path, place in self.source.chunks(_A_FEW):
            yield check_entries(X, path, range(place, place + X.shape[0]))

    def prepared(self, function: Callable[[Data, slice], Data], n_columns: int) -> RowBlocks:
        """Return these rows in float32 as a function makes them, when they are read.

        It is given some rows as they are stored, checked, and which of all rows they are. Their
        number stays; they may have fewer columns, and no more nonzeros.
        """

        def chunks(most: Bounds) -> Iterator[Chunk]:
            first = 0
            for X, path, place in self.source.chunks(most):
                check_entries(X, path, range(place, place + X.shape[0]))
                rows = slice(first, first + X.shape[0])
                first = rows.stop
                made = [Chunk(function(X, rows), path, place)]
                del X  # what was read, and what is made of it, are not kept while it is used
                yield made.pop()

        source = replace(
            self.source, shape=(self.shape[0], n_columns), dtype=np.dtype(np.float32), chunks=chunks
        )
        if not source.sparse:
            source = replace(source, nnz=self.shape[0] * n_columns, largest_row=n_columns)
        return RowBlocks(self.path, source, self.memory_limit, self.scratch)

    @contextmanager
    def at_hand(self, n_components: int, solver: str = "auto") -> Iterator[StoredRows]:
        """Check all rows and keep them in a scratch folder, which is removed at the end."""
        plan = self.plan(n_components, solver)
        with problems_with(self.scratch or tempfile.gettempdir(), "written"):
            folder = tempfile.TemporaryDirectory(
                prefix="marginparts-", dir=self.scratch, ignore_cleanup_errors=True
            )
        with folder as name:
            data = StoredRows(Path(name), self.shape[1], self.dtype, self.source.sparse, plan)
            data.write(self.blocks(plan))
            yield data


def open_rows(
    path: str | os.PathLike[str],
    *,
    memory_limit: int | str = "2GB",
    group: str | None = None,
    n_features: int | None = None,
    scratch: str | os.PathLike[str] | None = None,
) -> RowBlocks:
    """Open a matrix on disk that is too large for memory; its rows are the samples.

    Parameters
    ----------
    path : path
        A folder of ``.npz`` files with some rows each (sparse as of `scipy.sparse.save_npz`, or
        dense), in the natural order of their names; a folder with ``data.npy``, ``indices.npy`` and
        ``indptr.npy`` of a CSR matrix and maybe ``shape.npy``; a dense ``.npy`` file; an HDF5 file
        (``.h5``, ``.hdf5``, ``.h5ad``) or a Zarr store with a CSR group or a dense array.
    memory_limit : str or int
        What the process may take in all, libraries included: ``"2GB"``, ``"800MB"``, ``"1.5GiB"``
        or bytes. Data of your own that is in memory comes on top.
    group : str or None
        Where in an HDF5 file or a Zarr store the matrix is. None is the root if it is one, else
        ``"X"``, as in AnnData.
    n_features : int or None
        The number of columns of a CSR matrix whose file does not say it.
    scratch : path or None
        The folder in which a fit keeps its own copies, about twice the size of the data, and
        removes them. None is the system's for temporary files.

    Returns
    -------
    RowBlocks
        For `nmf_alpha`, `NMFAlpha` and `NMFAlphaClassifier` in the place of X.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from marginparts import nmf_alpha, open_rows
    >>> with tempfile.NamedTemporaryFile(suffix=".npy") as file:
    ...     np.save(file, np.random.default_rng(0).random((60, 20)))
    ...     _ = file.seek(0)
    ...     result = nmf_alpha(open_rows(file.name, memory_limit="1GB"), 3, random_state=0)
    >>> result.V.shape, result.H.shape
    ((20, 3), (60, 3))
    """
    limit = bytes_of(memory_limit)
    if n_features is not None:
        check_count(n_features, "n_features")
    path = Path(path)
    source = _source(path, group, n_features)
    if not all(source.shape):
        raise FileProblemError(f"{path} has shape {source.shape}; it needs rows and columns.")
    return RowBlocks(path, source, limit, scratch)


def _source(path: Path, group: str | None, n_features: int | None) -> Source:
    """Find out what is at a path."""
    if not path.exists():
        raise FileProblemError(f"There is no file {path}.")
    if path.is_file():
        if path.suffix.lower() == ".npy":
            return dense_source(path, NpyFile(path))
        if path.suffix.lower() in {".h5", ".hdf5", ".h5ad"}:
            return open_container(path, group, n_features, "HDF5 file")
    elif any((path / name).exists() for name in ("zarr.json", ".zgroup")):
        return open_container(path, group, n_features, "Zarr store")
    elif any((path / name).exists() for name in _CSR):
        return _csr_folder(path, n_features)
    elif any(file.suffix.lower() == ".npz" for file in path.iterdir()):
        return open_npz_folder(path)
    raise FileProblemError(
        f"{path} is no matrix that can be read by rows: give a folder of .npz files, a folder with "
        f"{', '.join(_CSR)}, an .npy, .h5 or .h5ad file, or a Zarr store."
    )


def _csr_folder(path: Path, n_features: int | None) -> Source:
    data, indices, indptr = (NpyFile(path / name) for name in _CSR)
    n = len(indptr) - 1
    if n_features is None:
        if not (path / "shape.npy").exists():
            raise FileProblemError(
                f"{path} does not say how many columns it has; say n_features= or save its shape "
                "as shape.npy."
            )
        n, n_features = map(int, NpyFile(path / "shape.npy")[:2])
    return csr_source(path, (n, n_features), indptr[:], data, indices)


def mapped_by_blocks(
    X: RowBlocks | Data,
    function: Callable[[Data], Array],
    r: int,
    out: str | os.PathLike[str] | None = None,
) -> Array:
    """Apply a function from trusted rows (m, d) to rows (m, k) to all rows.

    It makes ``r`` columns on the way, which count for the memory limit. With an ``.npy`` file for
    ``out`` the result is never in memory as a whole, and a memory map of that file is returned.
    """
    found = map(function, _pieces(X, r) if isinstance(X, RowBlocks) else (X,))
    if out is None:
        return _gathered(found, X.shape[0])
    _write(found, X.shape[0], Path(out))
    return np.load(out, mmap_mode="r")


def _pieces(X: RowBlocks, r: int) -> Iterator[Data]:
    """Yield all rows in blocks that are no larger than serves one pass over them."""
    plan = X.plan(r, solver="mu")
    return X.blocks(plan._replace(block_bytes=min(plan.block_bytes, _A_PASS)))


def _gathered(found: Iterator[Array], n: int) -> Array:
    first = next(found)
    gathered = np.empty((n, first.shape[1]), first.dtype)
    place = 0
    for rows in chain([first], found):
        gathered[place : place + len(rows)] = rows
        place += len(rows)
    return gathered


def _write(found: Iterator[Array], n: int, path: Path) -> None:
    with written_beside(path) as file:
        for i, rows in enumerate(found):
            if i == 0:
                header = {
                    "descr": np.lib.format.dtype_to_descr(rows.dtype), "fortran_order": False,
                    "shape": (n, rows.shape[1]),
                }  # fmt: skip
                np.lib.format.write_array_header_1_0(file, header)
            file.write(np.ascontiguousarray(rows).data)
