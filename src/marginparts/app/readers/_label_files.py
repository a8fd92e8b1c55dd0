"""Files beside a matrix: the labels of its rows, the names of its columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from marginparts.app.readers._labels import label_of, settle_minus_one
from marginparts.files.arrays import read_array
from marginparts.files.atomic import FileProblemError
from marginparts.files.layout import Label, Wanted
from marginparts.files.streams import opened_text


def read_words(
    wanted: Wanted, path: Path, n_columns: int, *, more: bool = False
) -> tuple[str, ...] | None:
    """Return the names of a matrix's columns, one a line; there may be ``more`` than columns."""
    if wanted.words is None:
        return None
    words = _lines(wanted.words, wanted.encoding)
    while words and not words[-1]:
        words.pop()
    if "" in words:
        line = words.index("") + 1
        raise FileProblemError(f"{wanted.words}, line {line} is blank; write a name there.")
    if len(words) < n_columns or (len(words) > n_columns and not more):
        raise FileProblemError(
            f"{wanted.words} has {len(words)} names, and {path} has {n_columns} columns; give one "
            "name a line for each."
        )
    return tuple(words)


def read_labels(path: Path, encoding: str, separator: str | None, n_rows: int) -> list[Label]:
    """Return the labels of a matrix's rows.

    They are an array (``.npy``, ``.npz``), or text with one label, or several with the separator
    between them, a line; a blank line is an unlabeled row.
    """
    if path.suffix.lower() in {".npy", ".npz"}:
        return labels_of_array(read_array(path), path, separator)
    lines = _lines(path, encoding)
    # an editor may leave blank lines at the end
    while len(lines) > n_rows and not lines[-1]:
        lines.pop()
    return settle_minus_one([label_of(line, separator) for line in lines])


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
