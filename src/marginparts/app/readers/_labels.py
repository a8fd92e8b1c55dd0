"""What a label in a file means, labels for the estimators, and files beside a matrix."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginparts.files.archive import is_text
from marginparts.files.arrays import read_array
from marginparts.files.atomic import FileProblemError
from marginparts.files.layout import Label, SampleSource, Wanted
from marginparts.files.streams import opened_text

_DECIMAL = re.compile(r"[+-]?\d+\.\d*(?:[eE][+-]?\d+)?")
_INTEGER = re.compile(r"-?\d+")

#: What programs write for a cell without a value.
_NOTHING = {"", "nan", "null"}


def is_missing(cell: Any) -> bool:
    """Whether a cell is null or NaN (None, NaN, pandas' NA and NaT)."""
    if cell is None or type(cell).__name__ in {"NAType", "NaTType"}:
        return True
    return isinstance(cell, float | np.floating) and bool(cell != cell)


def label_of(cell: Any, separator: str | None = None) -> Label:
    """Return the label in a cell of a table: empty, null and NaN mean unlabeled.

    A list, and a text with a separator, hold several labels.

    Examples
    --------
    >>> label_of(" spam "), label_of(3.0), label_of("")
    ('spam', '3', None)
    >>> label_of("b; a;", ";"), label_of([])
    (('b', 'a'), ())
    """
    if isinstance(cell, list | tuple | np.ndarray):
        several = (_name(part) for part in cell)
    else:
        name = _name(cell)
        if name is None or separator is None:
            return name
        several = (_name(part) for part in name.split(separator))
    return tuple(dict.fromkeys(name for name in several if name is not None))


def _name(cell: Any) -> str | None:
    """Return a label's name, or None."""
    if is_missing(cell):
        return None
    if isinstance(cell, float | np.floating):
        return str(int(cell)) if float(cell).is_integer() else str(float(cell))
    name = cell.decode("utf-8", "replace") if isinstance(cell, bytes) else str(cell)
    name = name.strip()
    if name.lower() in _NOTHING:
        return None
    # libraries write whole numbers as decimals where missing values stand beside them
    if _DECIMAL.fullmatch(name) and (number := float(name)).is_integer():
        return str(int(number))
    return name


def minus_one_is_unlabeled(names: Iterable[str]) -> bool:
    """Whether ``-1`` marks unlabeled rows: among numbers, unless they are exactly {-1, 1}.

    This is the package's rule for numbers; see `marginparts.labels`.
    """
    names = set(names)
    return "-1" in names and names != {"-1", "1"} and all(map(_INTEGER.fullmatch, names))


def names_of(labels: Iterable[Label]) -> set[str]:
    """Return all names that occur."""
    return {name for label in labels if label is not None for name in several(label)}


def several(label: str | tuple[str, ...]) -> tuple[str, ...]:
    """Return one label or several as several."""
    return (label,) if isinstance(label, str) else label


def settle_minus_one(labels: Sequence[Label]) -> list[Label]:
    """Return the labels with None for ``-1`` where it marks unlabeled rows."""
    if not minus_one_is_unlabeled(names_of(labels)):
        return list(labels)
    return [None if label in ("-1", ("-1",)) else label for label in labels]


def targets(
    labels: Sequence[Label], source: SampleSource, seeded: Iterable[str] = ()
) -> tuple[NDArray[Any], list[str]]:
    """Turn the labels of a source (for messages) into what the estimators take.

    Classes that have seeds need no label, unless rows have several.

    Returns
    -------
    y : (n,) object array, or (n, c) int array
        Names and None; or, as soon as one row has a tuple, the indicator with rows of -1 for
        unlabeled ones.
    names : list of c str
        The labels, sorted.
    """
    labels = settle_minus_one(labels)
    names = sorted(names_of(labels) | set(seeded))
    several_each = any(isinstance(label, tuple) for label in labels)
    if several_each and (other := set(seeded) - names_of(labels)):
        raise FileProblemError(
            f"No row has the label {min(other)!r}, which has seeds; where rows have several, some "
            "must have each."
        )
    y = np.empty(len(labels), dtype=object)
    y[:] = labels
    if seeded and not several_each:
        return y, names
    if not names:
        column = source.layout.label
        how = "name the column of labels with --label COLUMN, or a file of them with --labels FILE"
        if source.layout.kind == "image":
            how = "sort some images into one subfolder a class"
        if column is not None:
            how = f"fill in the column {column!r} for some rows, or see 'marginparts label'"
        raise FileProblemError(f"{source.path} has no label: {how}.")
    if several_each:
        return _indicator(labels, names), names
    if len(names) == 1:
        raise FileProblemError(
            f"All labeled rows of {source.path} have the label {names[0]!r}; label some rows of "
            "another class."
        )
    known = [label for label in labels if label is not None]
    if len(names) == len(known) > 2:
        raise FileProblemError(
            f"Every labeled row of {source.path} has a label of its own, so there is nothing to "
            "learn; name a column whose labels occur more than once."
        )
    return y, names


def _indicator(labels: Sequence[Label], names: list[str]) -> NDArray[np.int64]:
    number = {name: j for j, name in enumerate(names)}
    Y = np.zeros((len(labels), len(names)), dtype=np.int64)
    for row, label in zip(Y, labels, strict=True):
        if label is None:
            row[:] = -1
        else:
            row[[number[name] for name in several(label)]] = 1
    return Y


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
        if not is_text(y):
            raise FileProblemError(
                f"The labels in {path} have a letter that is none; save them anew."
            )
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
