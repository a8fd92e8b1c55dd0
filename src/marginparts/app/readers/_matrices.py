"""Matrices in one file (npz, npy, mtx), with labels and names of columns in files beside it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginparts.app.readers._label_files import (
    check_length,
    labels_of_array,
    read_labels,
    read_words,
)
from marginparts.app.readers._matrix_market import read_mtx
from marginparts.files.arrays import read_npy, read_npz
from marginparts.files.atomic import FileProblemError
from marginparts.files.columns import (
    as_floats,
    check_entries,
    check_kind,
    column_order,
    namer,
    refuse,
)
from marginparts.files.layout import Batch, Label, Layout, Wanted


@dataclass
class MatrixSource:
    """A matrix as a source; ``order`` are the columns to take, or None for all."""

    path: Path
    layout: Layout
    n_rows: int | None
    X: Any
    labels: list[Label]
    order: NDArray[np.intp] | None

    def batches(self, size: int = 10_000) -> Iterator[Batch]:
        """Yield all samples in order, at most ``size`` at once."""
        for first in range(0, len(self.labels), size):
            labels = self.labels[first : first + size]
            places = range(first + 1, first + 1 + len(labels))
            X = self.X[first : first + size]
            X = as_floats(X if self.order is None else X[:, self.order], self.path)
            check_entries(X, self.path, places, namer(self.layout.names))
            yield Batch(X, labels, {"row": list(places)})


def open_matrix(path: Path, file_format: str, wanted: Wanted) -> MatrixSource:
    """Open a matrix and what lies beside it."""
    like = wanted.like
    check_kind(path, "matrix", like)
    refuse(path, wanted, "text", instead="it is a matrix, without a column of texts")
    refuse(path, wanted, "label", instead="give a file with one label a line with --labels FILE")
    X, y = _read(path, file_format)
    n_rows, n_columns = X.shape
    words = read_words(wanted.words, wanted.encoding) if wanted.words else None
    if words is not None and len(words) != n_columns:
        raise FileProblemError(
            f"{wanted.words} has {len(words)} names, and {path} has {n_columns} columns; give one "
            "name a line for each."
        )
    order = column_order(path, words, n_columns, like)
    labels: list[Label] = [None] * n_rows
    if wanted.labels is not None:
        labels = read_labels(wanted.labels, wanted.encoding, wanted.separator, n_rows)
        check_length(labels, wanted.labels, path, X.shape)
    elif y is not None:
        labels = labels_of_array(y, path, wanted.separator)
        check_length(labels, Path(f"y in {path}"), path, X.shape)
    layout = replace(
        like or Layout("matrix", names=words, n_columns=int(n_columns)),
        label=None,
        label_sep=wanted.separator,
    )
    return MatrixSource(path, layout, int(n_rows), X, labels, order)


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
    return (X if isinstance(X, np.ndarray) else as_floats(X, path)), y
