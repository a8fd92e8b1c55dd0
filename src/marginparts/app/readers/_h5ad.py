"""Annotated matrices of cells and genes (h5ad), with anndata."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginparts.app.readers._labels import label_of
from marginparts.files.atomic import FileProblemError
from marginparts.files.columns import (
    as_floats,
    check_entries,
    check_kind,
    column_order,
    listed,
    namer,
    refuse,
)
from marginparts.files.layout import Batch, Label, Layout, Wanted
from marginparts.files.streams import library_reads, optional_library

_WHAT = "h5ad file"


@dataclass
class H5adSource:
    """An h5ad file, of which only some rows are in memory (all, if it is stored by columns)."""

    path: Path
    layout: Layout
    n_rows: int | None
    labels: list[Label]
    cells: list[str]
    order: NDArray[np.intp] | None

    def batches(self, size: int = 10_000) -> Iterator[Batch]:
        """Yield all samples in order, at most ``size`` at once."""
        with _opened(self.path) as data:
            with library_reads(self.path, _WHAT):
                X = data.X
                if getattr(X, "format", "csr") != "csr":
                    X = X.to_memory().tocsr()
            for first in range(0, len(self.labels), size):
                rows = slice(first, first + size)
                with library_reads(self.path, _WHAT):
                    some = X[rows]
                    if sp.issparse(some):
                        some.check_format(full_check=True)
                places = range(first + 1, first + 1 + some.shape[0])
                some = as_floats(some if self.order is None else some[:, self.order], self.path)
                check_entries(some, self.path, places, namer(self.layout.names))
                yield Batch(some, self.labels[rows], {"cell": self.cells[rows]})


def open_h5ad(path: Path, wanted: Wanted) -> H5adSource:
    """Open an h5ad file: labels are a column of ``obs``, names are ``var_names``."""
    like = wanted.like
    check_kind(path, "matrix", like)
    refuse(path, wanted, "text", instead="it is a matrix, without a column of texts")
    refuse(path, wanted, "labels", instead="name a column of its obs with --label COLUMN")
    refuse(path, wanted, "words", instead="its columns have names")
    with _opened(path) as data, library_reads(path, _WHAT):
        has_matrix = data.X is not None
        n_rows, n_columns = map(int, data.shape)
        obs = data.obs
        names = tuple(map(str, data.var_names))
        cells = list(map(str, data.obs_names))
    if not has_matrix or not n_rows or not n_columns:
        raise FileProblemError(f"{path} has no entries in its matrix X; put the counts there.")
    label = wanted.label
    if label is None and like is not None and like.label in obs.columns:
        label = like.label
    if label is not None and label not in obs.columns:
        columns = f"its columns are {listed(map(str, obs.columns))}" if len(obs.columns) else ""
        raise FileProblemError(
            f"The obs of {path} has no column {label!r}; {columns or 'it has no columns'}."
        )
    order = column_order(path, names, n_columns, like)
    labels: list[Label] = [None] * n_rows
    if label is not None:
        labels = [label_of(cell, wanted.separator) for cell in obs[label].astype(object)]
    layout = replace(
        like or Layout("matrix", names=names, n_columns=n_columns),
        label=label,
        label_sep=wanted.separator,
    )
    return H5adSource(path, layout, n_rows, labels, cells, order)


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open an h5ad file without reading its matrix."""
    anndata = optional_library("anndata", "h5ad", path)
    with library_reads(path, _WHAT):
        data = anndata.read_h5ad(path, backed="r")
    try:
        yield data
    finally:
        data.file.close()
