"""Tables, whatever their format: a column of texts, or numeric columns that make a matrix."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginparts.app.readers._labels import is_missing, label_of
from marginparts.app.readers._table_files import TableFile
from marginparts.files import columns
from marginparts.files.atomic import FileProblemError
from marginparts.files.layout import Batch, Label, Layout, SampleSource, Wanted

#: The most cells in memory at once: wide tables are read in fewer rows than asked for.
_MOST_CELLS = 5_000_000

#: Columns that hold the names of rows, as R, pandas and pyarrow write them.
_ROW_NAMES = {"", "__index_level_0__"}


@dataclass
class TableSource(SampleSource):
    """A table as a source: of texts, or of the rows of a matrix."""

    table: TableFile
    features: list[str]
    #: Whether none of the features can be labels.
    label_known: bool = True

    def batches(self, size: int = 10_000) -> Iterator[Batch]:
        size = max(1, min(size, _MOST_CELLS // max(1, len(self.table.columns))))
        text, label = self.layout.text, self.layout.label
        for rows in self.table.rows(size):
            cells = dict(zip(self.table.columns, rows.cells, strict=True))
            samples: Any
            if text is None:
                samples = self._matrix(cells, rows.places)
            else:
                samples = [_text_of(cell) for cell in cells[text]]
            labels: list[Label] = [None] * len(rows.places)
            if label is not None:
                labels = [label_of(cell, self.layout.label_sep) for cell in cells[label]]
            yield Batch(samples, labels, cells)

    def _matrix(self, cells: dict[str, list[Any]], places: Sequence[int]) -> NDArray[np.float64]:
        X = np.empty((len(places), len(self.features)))
        for j, name in enumerate(self.features):
            X[:, j] = self._numbers(cells[name], name, places)
        name_of = columns.namer(self.features)
        return columns.check_entries(
            X, self.path, places, name_of, self.table.place, self.layout.gaps, self.if_missing
        )

    def _numbers(self, cells: list[Any], name: str, places: Sequence[int]) -> Any:
        try:
            numbers = np.array(cells, dtype=np.float64)
            if numbers.ndim == 1:
                return numbers
        except (TypeError, ValueError, OverflowError):
            pass
        # something is no number as it stands: find it, or read decimal commas
        gaps, comma = self.layout.gaps, self.table.decimal_comma
        found = [np.nan if gaps and _is_empty(cell) else _number(cell, comma) for cell in cells]
        if None in found:
            i = found.index(None)
            raise FileProblemError(self._no_number(cells[i], name, places[i]))
        return found

    def _no_number(self, cell: Any, name: str, place: int) -> str:
        where = f"{self.path}, {self.table.place} {place}, column {name!r}"
        if _is_empty(cell):
            how = f"write a number{self.if_missing}"
            if not self.label_known:
                how += "; if these are labels, name their column with --label COLUMN"
            return f"{where}: the cell is empty, and entries must be 0 or larger; {how}."
        shown = repr(cell) if len(repr(cell)) <= 40 else repr(cell)[:37] + "..."
        one_of = f"may be one of {columns.listed(self.table.columns)}"
        labels = "" if self.label_known else ", or that of labels with --label COLUMN"
        return (
            f"{where}: {shown} is no number; name the column of texts with --text COLUMN, which "
            f"{one_of}{labels}, or take out of the file what is neither a number nor a label."
        )


def _is_empty(cell: Any) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip())


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
    columns.refuse(path, wanted, "labels", instead="name its column of labels with --label COLUMN")
    columns.refuse(path, wanted, "words", instead="its columns have names")
    text = wanted.text
    if text is None and like is not None and like.kind == "text":
        text = like.text
    kind = "matrix" if text is None else "text"
    columns.check_kind(path, kind, like)
    label = wanted.label_among(table.columns)
    for name in (text, label):
        columns.check_column(str(path), name, table.columns)
    if label is not None and label == text:
        raise FileProblemError(f"The column {text!r} of {path} cannot be both text and label.")
    if kind == "text":
        layout = Layout(kind, text=text, label=label, label_sep=wanted.separator)
        return TableSource(path, layout, table.n_rows, table, [])
    features = _features(table, label, like)
    layout = like or Layout(kind, names=tuple(features), n_columns=len(features))
    layout = replace(layout, label=label, label_sep=wanted.separator, gaps=bool(wanted.gaps))
    known = label is not None or like is not None
    return TableSource(path, layout, table.n_rows, table, features, label_known=known)


def _features(table: TableFile, label: str | None, like: Layout | None) -> list[str]:
    """Return the columns that make the matrix, in the order of the model if there is one."""
    names = [name for name in table.columns if name != label]
    if like is None or like.names is None:
        names = [name for name in names if name not in _ROW_NAMES]
    if not names:
        raise FileProblemError(f"{table.path} has no column of numbers; add some.")
    order = columns.column_order(table.path, names, len(names), like)
    return names if order is None else [names[j] for j in order]
