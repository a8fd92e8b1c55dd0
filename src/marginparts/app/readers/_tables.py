"""Tables, whatever their format: a column of texts, or numeric columns that make a matrix."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from marginparts.app.readers._delimited import Rows
from marginparts.app.readers._labels import is_missing, label_of
from marginparts.files.atomic import FileProblemError
from marginparts.files.columns import check_entries, check_kind, column_order, listed, refuse
from marginparts.files.layout import Batch, Label, Layout, Wanted

#: The most cells in memory at once: wide tables are read in fewer rows than asked for.
_MOST_CELLS = 5_000_000

#: Columns that hold the names of rows, as R, pandas and pyarrow write them.
_ROW_NAMES = {"", "__index_level_0__"}


class TableFile(Protocol):
    """A table in some format."""

    path: Path
    columns: list[str]
    n_rows: int | None

    @property
    def place(self) -> str:
        """What the places of rows count: lines or rows."""
        ...

    @property
    def decimal_comma(self) -> bool:
        """Whether 3,5 is a number."""
        ...

    def rows(self, size: int) -> Iterator[Rows]:
        """Yield all rows, at most ``size`` at once."""
        ...


@dataclass
class TableSource:
    """A table as a source: of texts, or of the rows of a matrix."""

    path: Path
    layout: Layout
    n_rows: int | None
    table: TableFile
    features: list[str]

    def batches(self, size: int = 10_000) -> Iterator[Batch]:
        """Yield all samples in order, at most ``size`` at once."""
        size = max(1, min(size, _MOST_CELLS // max(1, len(self.table.columns))))
        for rows in self.table.rows(size):
            cells = dict(zip(self.table.columns, rows.cells, strict=True))
            text = self.layout.text
            samples: Any = (
                self._matrix(cells, rows.places)
                if text is None
                else [_text_of(cell) for cell in cells[text]]
            )
            yield Batch(samples, self._labels(cells, len(rows.places)), cells)

    def _labels(self, cells: dict[str, list[Any]], n: int) -> list[Label]:
        if self.layout.label is None:
            return [None] * n
        return [label_of(cell, self.layout.label_sep) for cell in cells[self.layout.label]]

    def _matrix(self, cells: dict[str, list[Any]], places: Sequence[int]) -> NDArray[np.float64]:
        X = np.empty((len(places), len(self.features)))
        for j, name in enumerate(self.features):
            X[:, j] = self._numbers(cells[name], name, places)
        return check_entries(X, self.path, places, lambda j: repr(self.features[j]), self.place)

    @property
    def place(self) -> str:
        """What the places of rows count."""
        return self.table.place

    def _numbers(self, cells: list[Any], name: str, places: Sequence[int]) -> NDArray[np.float64]:
        try:
            numbers = np.array(cells, dtype=np.float64)
            if numbers.ndim == 1:
                return numbers
        except (TypeError, ValueError, OverflowError):
            pass
        # something is no number as it stands: find it, or read decimal commas
        numbers = np.empty(len(cells))
        for i, cell in enumerate(cells):
            number = _number(cell, self.table.decimal_comma)
            if number is None:
                raise FileProblemError(self._no_number(cell, name, places[i]))
            numbers[i] = number
        return numbers

    def _no_number(self, cell: Any, name: str, place: int) -> str:
        where = f"{self.path}, {self.place} {place}, column {name!r}"
        if cell is None or (isinstance(cell, str) and not cell.strip()):
            return f"{where}: the cell is empty, and entries must be 0 or larger; write a number."
        shown = repr(cell) if len(repr(cell)) <= 40 else repr(cell)[:37] + "..."
        return (
            f"{where}: {shown} is no number; name the column of texts with --text COLUMN, which "
            f"may be one of {listed(self.table.columns)}."
        )


def _number(cell: Any, decimal_comma: bool) -> float | None:
    """Return the number in a cell, or None."""
    try:
        return float(cell)
    except (TypeError, ValueError, OverflowError):
        if decimal_comma and isinstance(cell, str) and cell.count(",") == 1 and "." not in cell:
            return _number(cell.replace(",", "."), False)
        return None


def _text_of(cell: Any) -> str:
    """Return the text in a cell; what is missing is empty, and a list of words is joined."""
    if isinstance(cell, str):
        return cell if cell.strip() else ""
    if is_missing(cell):
        return ""
    return " ".join(map(str, cell)) if isinstance(cell, list | tuple) else str(cell)


def open_table(table: TableFile, wanted: Wanted) -> TableSource:
    """Decide which columns of a table are texts, labels and numbers."""
    path, like = table.path, wanted.like
    refuse(path, wanted, "labels", instead="name its column of labels with --label COLUMN")
    refuse(path, wanted, "words", instead="its columns have names")
    text = wanted.text
    if text is None and like is not None and like.kind == "text":
        text = like.text
    kind = "matrix" if text is None else "text"
    check_kind(path, kind, like)
    label = wanted.label
    if label is None and like is not None and like.label in table.columns:
        label = like.label
    for name in (text, label):
        if name is not None and name not in table.columns:
            raise FileProblemError(
                f"{path} has no column {name!r}; its columns are {listed(table.columns)}."
            )
    if label is not None and label == text:
        raise FileProblemError(f"The column {text!r} of {path} cannot be both text and label.")
    columns = Layout(kind, text=text, label=label, label_sep=wanted.separator)
    if kind == "text":
        return TableSource(path, columns, table.n_rows, table, [])
    features = _features(table, label, like)
    if like is None:
        layout = replace(columns, names=tuple(features), n_columns=len(features))
    else:
        layout = replace(like, label=label, label_sep=wanted.separator)
    return TableSource(path, layout, table.n_rows, table, features)


def _features(table: TableFile, label: str | None, like: Layout | None) -> list[str]:
    """Return the columns that make the matrix, in the order of the model if there is one."""
    names = [name for name in table.columns if name != label and name not in _ROW_NAMES]
    if like is not None and like.names is not None:
        names = [name for name in table.columns if name != label]
    if not names:
        raise FileProblemError(f"{table.path} has no column of numbers; add some.")
    order = column_order(table.path, names, len(names), like)
    return names if order is None else [names[j] for j in order]
