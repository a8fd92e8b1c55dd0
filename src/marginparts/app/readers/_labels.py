"""What a label in a file means: cells to labels, and labels to what the estimators take."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginparts.files.atomic import FileProblemError
from marginparts.files.layout import Label, SampleSource

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
    # whole numbers become decimals where a library has had to write missing ones beside them
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


def targets(labels: Sequence[Label], source: SampleSource) -> tuple[NDArray[Any], list[str]]:
    """Turn the labels of a source (for messages) into what the estimators take.

    Returns
    -------
    y : (n,) object array, or (n, c) int array
        Names and None; or, as soon as one row has a tuple, the indicator with rows of -1 for
        unlabeled ones.
    names : list of c str
        The labels, sorted.
    """
    labels = settle_minus_one(labels)
    names = sorted(names_of(labels))
    if not names:
        raise FileProblemError(f"{source.path} has no label: {_how_to_label(source)}.")
    if any(isinstance(label, tuple) for label in labels):
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
    y = np.empty(len(labels), dtype=object)
    y[:] = labels
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


def _how_to_label(source: SampleSource) -> str:
    if source.layout.label is not None:
        return f"fill in the column {source.layout.label!r} for some rows"
    if source.layout.kind == "image":
        return "sort some images into one subfolder a class"
    return "name the column of labels with --label COLUMN, or a file of them with --labels FILE"
