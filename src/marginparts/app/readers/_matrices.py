"""Matrices: npz, npy and mtx with files beside them, and h5ad, which is annotated itself."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginparts.app.readers._labels import label_of, labels_of_array, read_labels, read_words
from marginparts.app.readers._matrix_market import read_mtx
from marginparts.files import columns
from marginparts.files.arrays import read_npy, read_npz
from marginparts.files.atomic import FileProblemError
from marginparts.files.compressed import check_compressed, check_pointers
from marginparts.files.hdf5 import check_hdf5
from marginparts.files.layout import Batch, Label, Layout, SampleSource, Wanted
from marginparts.files.streams import library_reads, optional_library

_H5AD = "h5ad file"


@dataclass
class MatrixSource(SampleSource):
    """A matrix as a source.

    ``opened`` opens the matrix, ``order`` are its columns to take, or None for all, ``labels`` and
    ``identity`` are those of its rows.
    """

    opened: Callable[[], AbstractContextManager[Any]]
    order: NDArray[np.intp] | None
    labels: list[Label]
    identity: Mapping[str, Sequence[Any]]

    def batches(self, size: int = 10_000) -> Iterator[Batch]:
        name_of, what = columns.namer(self.layout.names), f"{self.path.suffix[1:].lower()} file"
        with self.opened() as X:
            for first in range(0, len(self.labels), size):
                rows = slice(first, first + size)
                with library_reads(self.path, what):
                    some = X[rows]
                    if sp.issparse(some):
                        check_compressed(some.data, some.indices, some.indptr, some.shape)
                if self.order is not None:
                    some = some[:, self.order]
                some = columns.as_floats(some, self.path)
                places = range(first + 1, first + 1 + some.shape[0])
                gaps, how = self.layout.gaps, self.if_missing
                columns.check_entries(some, self.path, places, name_of, gaps=gaps, if_missing=how)
                identity = {name: list(cells[rows]) for name, cells in self.identity.items()}
                yield Batch(some, self.labels[rows], identity)


def open_matrix(path: Path, file_format: str, wanted: Wanted) -> MatrixSource:
    """Open a matrix and what lies beside it."""
    columns.check_kind(path, "matrix", wanted.like)
    columns.refuse(path, wanted, "text", instead="it is a matrix, without a column of texts")
    how = "give a file with one label a line with --labels FILE"
    columns.refuse(path, wanted, "label", instead=how)
    X, y = _read(path, file_format)
    n_rows, n_columns = map(int, X.shape)
    names = read_words(wanted, path, n_columns)
    order = columns.column_order(path, names, n_columns, wanted.like)
    labels: list[Label] = [None] * n_rows
    if wanted.labels is not None:
        labels = read_labels(wanted.labels, wanted.encoding, wanted.separator, n_rows)
    elif y is not None:
        labels = labels_of_array(y, path, wanted.separator)
    if len(labels) != n_rows:
        turned = f"transpose {path}, which has a column for each"
        raise FileProblemError(
            f"{wanted.labels or f'y in {path}'} has {len(labels)} labels, and {path} has {n_rows} "
            f"rows; {turned if len(labels) == n_columns else 'give one a row'}."
        )
    identity = {"row": range(1, n_rows + 1)}
    layout = _layout(wanted, names, n_columns, None)
    return MatrixSource(path, layout, n_rows, partial(nullcontext, X), order, labels, identity)


def _layout(
    wanted: Wanted, names: tuple[str, ...] | None, n_columns: int, label: str | None
) -> Layout:
    layout = wanted.like or Layout("matrix", names=names, n_columns=n_columns)
    return replace(layout, label=label, label_sep=wanted.separator, gaps=bool(wanted.gaps))


def _read(path: Path, file_format: str) -> tuple[Any, Any]:
    """Return a matrix with rows that can be sliced, and the labels in its file or None."""
    y = None
    if file_format == "npz":
        X, y = read_npz(path)
    else:
        X = read_npy(path) if file_format == "npy" else read_mtx(path)
    if X.ndim != 2:
        raise FileProblemError(
            f"{path} has an array of the shape {X.shape}; save one with a row a sample."
        )
    if 0 in X.shape:
        raise FileProblemError(f"{path} has no rows or no columns; its shape is {X.shape}.")
    # what is not CSR cannot be sliced by rows; an array on the disk is converted by batches
    return (X if isinstance(X, np.ndarray) else columns.as_floats(X, path)), y


def open_h5ad(path: Path, wanted: Wanted) -> MatrixSource:
    """Open an h5ad file: labels are a column of ``obs``, names are ``var_names``."""
    columns.check_kind(path, "matrix", wanted.like)
    columns.refuse(path, wanted, "text", instead="it is a matrix, without a column of texts")
    how = "name a column of its obs with --label COLUMN"
    columns.refuse(path, wanted, "labels", instead=how)
    columns.refuse(path, wanted, "words", instead="its columns have names")
    with _annotated(path) as data, library_reads(path, _H5AD):
        has_matrix, obs = data.X is not None, data.obs
        n_rows, n_columns = map(int, data.shape)
        names = tuple(map(str, data.var_names))
        cells = list(map(str, data.obs_names))
    if not has_matrix or not n_rows or not n_columns:
        raise FileProblemError(f"{path} has no entries in its matrix X; put the counts there.")
    label = wanted.label_among(obs.columns)
    columns.check_column(f"The obs of {path}", label, map(str, obs.columns))
    order = columns.column_order(path, names, n_columns, wanted.like)
    labels: list[Label] = [None] * n_rows
    if label is not None:
        labels = [label_of(cell, wanted.separator) for cell in obs[label].astype(object)]
    layout = _layout(wanted, names, n_columns, label)
    opened, identity = partial(_opened_h5ad, path), {"cell": cells}
    return MatrixSource(path, layout, n_rows, opened, order, labels, identity)


@contextmanager
def _opened_h5ad(path: Path) -> Iterator[Any]:
    """Open the matrix of an h5ad file: only some rows in memory, or all if stored by columns."""
    with _annotated(path) as data:
        with library_reads(path, _H5AD):
            X = data.X
            if hasattr(X, "format"):
                by_columns, group = X.format == "csc", X.group
                n_stored = min(len(group["data"]), len(group["indices"]))
                check_pointers(group["indptr"][:], X.shape[by_columns], n_stored)
                if by_columns:
                    X = X.to_memory()
                    check_compressed(X.data, X.indices, X.indptr, X.shape, by_columns=True)
                    X = X.tocsr()
        yield X


@contextmanager
def _annotated(path: Path) -> Iterator[Any]:
    """Open an h5ad file without reading its matrix."""
    anndata = optional_library("anndata", "h5ad", path)
    check_hdf5(path, _H5AD)
    with library_reads(path, _H5AD):
        data = anndata.read_h5ad(path, backed="r")
    try:
        yield data
    finally:
        data.file.close()
