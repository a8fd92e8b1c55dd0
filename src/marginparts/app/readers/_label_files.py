"""Files beside a matrix: the labels of its rows, the names of its columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from marginparts.app.readers._labels import label_of, settle_minus_one
from marginparts.files.arrays import read_array
from marginparts.files.atomic import FileProblemError
from marginparts.files.layout import Label
from marginparts.files.streams import opened_text


def read_words(path: Path, encoding: str) -> tuple[str, ...]:
    """Return the names of columns, one a line."""
    words = _lines(path, encoding)
    while words and not words[-1]:
        words.pop()
    if "" in words:
        raise FileProblemError(f"{path}, line {words.index('') + 1} is blank; write a name there.")
    return tuple(words)


def read_labels(path: Path, encoding: str, separator: str | None, n_rows: int) -> list[Label]:
    """Return the labels of a matrix's rows.

    Parameters
    ----------
    path : Path
        ``.npy`` or ``.npz``: labels, or an indicator. Else text with one label a line, where a
        blank line is an unlabeled row.
    encoding : str
    separator : str or None
        What separates several labels in a line.
    n_rows : int
    """
    if path.suffix.lower() in {".npy", ".npz"}:
        return labels_of_array(read_array(path), path, separator)
    lines = _lines(path, encoding)
    # an editor may leave blank lines at the end
    while len(lines) > n_rows and not lines[-1]:
        lines.pop()
    return settle_minus_one([label_of(line, separator) for line in lines])


def check_length(
    labels: list[Label], labels_path: Path, path: Path, shape: tuple[int, ...]
) -> None:
    """Raise unless there is one label a row."""
    n_rows, n_columns = shape
    if len(labels) != n_rows:
        turned = (
            f"transpose {path}, which has a column for each"
            if len(labels) == n_columns
            else "give one a row"
        )
        raise FileProblemError(
            f"{labels_path} has {len(labels)} labels, and {path} has {n_rows} rows; {turned}."
        )


def labels_of_array(y: Any, path: Path, separator: str | None = None) -> list[Label]:
    """Return the labels in an array: names or numbers (n,), or an indicator (n, c) of 0 and 1.

    Several labels a row are named by their columns, from 0. A row of -1 or NaN is unlabeled.
    """
    if not sp.issparse(y):
        if y.ndim == 2 and y.shape[1] == 1:
            y = y[:, 0]
        if y.ndim == 1 and y.dtype.kind in "biufUS":
            return settle_minus_one([label_of(cell, separator) for cell in y])
    if y.ndim != 2 or y.dtype.kind not in "biuf":
        raise FileProblemError(
            f"The labels in {path} are {y.dtype} of the shape {y.shape}; save one label a row, or "
            "an indicator of 0 and 1."
        )
    Y = sp.csr_array(y if sp.issparse(y) else np.nan_to_num(y, nan=-1))
    Y.sum_duplicates()
    Y.eliminate_zeros()
    return [_labels_of_row(Y, i, path) for i in range(Y.shape[0])]


def _labels_of_row(Y: Any, i: int, path: Path) -> Label:
    row = slice(Y.indptr[i], Y.indptr[i + 1])
    columns, values = Y.indices[row], Y.data[row]
    if (values == 1).all():
        return tuple(str(column) for column in columns)
    if len(columns) == Y.shape[1] and (values == -1).all():
        return None
    raise FileProblemError(
        f"{path}, row {i + 1}: an indicator of labels must be 0 or 1, or -1 in all of a row that "
        "is unlabeled."
    )


def _lines(path: Path, encoding: str) -> list[str]:
    with opened_text(path, encoding) as file:
        lines = [line.strip() for line in file]
    if not any(lines):
        raise FileProblemError(f"{path} is empty; write one name a line.")
    return lines
