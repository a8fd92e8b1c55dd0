"""The formats of tables: text (CSV, TSV), one JSON object a line, and Parquet with pyarrow."""

import csv
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from marginparts.files.atomic import FileProblemError
from marginparts.files.columns import check_column, check_distinct
from marginparts.files.streams import library_reads, opened_text, optional_library

#: The longest cell in characters: the most that csv takes on every system.
_LONGEST = 2**31 - 1


class Rows(NamedTuple):
    """Some rows: the cells of each column, and the line or row in which each begins, from 1."""

    cells: list[list[Any]]
    places: Any


class TableFile(ABC):
    """A table, of which only some rows are in memory."""

    #: What the places of rows count: lines or rows.
    place = "line"
    #: Whether 3,5 is a number.
    decimal_comma = False
    columns: list[str]
    n_rows: int | None = None

    def __init__(self, path: Path, encoding: str = "utf-8") -> None:
        self.path, self.encoding = path, encoding

    @abstractmethod
    def rows(self, size: int) -> Iterator[Rows]:
        """Yield all rows, at most ``size`` at once."""


class DelimitedFile(TableFile):
    """A CSV or TSV file; without a delimiter it is a comma, semicolon or tab of the header."""

    def __init__(self, path: Path, encoding: str, delimiter: str | None = None) -> None:
        super().__init__(path, encoding)
        self.delimiter = delimiter or self._find_delimiter()
        self.decimal_comma = self.delimiter == ";"
        first = list(islice(self._records(), 2))
        if not first:
            raise FileProblemError(f"{path} is empty; its first line must name the columns.")
        if len(first) == 1:
            raise FileProblemError(f"{path} has a header and no rows; add rows.")
        self.columns = [name.strip() for name in first[0][1]]
        if len(self.columns) == 1 and "|" in self.columns[0]:
            raise FileProblemError(
                f"{path} has '|' between its columns; write commas, semicolons or tabs there, or "
                "one JSON object a line in a file whose name ends in .jsonl."
            )
        check_distinct(path, self.columns)

    def rows(self, size: int) -> Iterator[Rows]:
        records = self._records()
        next(records)  # the header
        while some := list(islice(records, size)):
            for line, cells in some:
                if len(cells) != len(self.columns):
                    raise FileProblemError(self._uneven(line, len(cells)))
            lines, rows = zip(*some, strict=True)
            yield Rows([list(column) for column in zip(*rows, strict=True)], lines)

    def _uneven(self, line: int, n: int) -> str:
        mark = repr(self.delimiter)
        how = f"put cells that hold {mark} or line breaks in quotes"
        if n < len(self.columns):
            how += f", and {mark} behind a cell also where the next is empty"
        return (
            f"{self.path}, line {line}: the row has {n} cell{'' if n == 1 else 's'} and the header "
            f"{len(self.columns)}; {how}."
        )

    def _find_delimiter(self) -> str:
        with opened_text(self.path, self.encoding) as file:
            header = next((line for line in file if line.strip()), "")
        unquoted = re.sub(r'"[^"]*"', "", header)
        return next((mark for mark in ",;\t" if mark in unquoted), ",")

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the line in which a record begins, and its cells; blank lines are no records."""
        csv.field_size_limit(max(csv.field_size_limit(), _LONGEST))
        with opened_text(self.path, self.encoding) as file:
            # strict, because a quote that is never closed would swallow the rest of the file
            reader = csv.reader(self._lines(file), delimiter=self.delimiter, strict=True)
            line = 1
            try:
                for cells in reader:
                    if cells:
                        yield line, cells
                    line = reader.line_num + 1
            except csv.Error as error:
                raise FileProblemError(
                    f"{self.path}, line {line}: a quoted cell is not closed, or goes on after its "
                    "closing quote; double the quotes inside the cell."
                ) from error

    def _lines(self, file: Any) -> Iterator[str]:
        for number, line in enumerate(file, start=1):
            if "\0" in line:
                raise FileProblemError(
                    f"{self.path}, line {number}: there is a NUL byte, so it is no text file; save "
                    "it as CSV again, or say --encoding utf-16 if it is that."
                )
            yield line


class JSONLinesFile(TableFile):
    """A file with one JSON object a line.

    Objects need not have the same keys, so that all of it is read once to know the columns.
    """

    def __init__(self, path: Path, encoding: str) -> None:
        super().__init__(path, encoding)
        columns: dict[str, None] = {}
        self.n_rows = 0
        for _, row in self._records():
            columns.update(dict.fromkeys(row))
            self.n_rows += 1
        if not self.n_rows:
            raise FileProblemError(f"{path} has no rows; write one JSON object a line.")
        self.columns = list(columns)

    def rows(self, size: int) -> Iterator[Rows]:
        records = self._records()
        while some := list(islice(records, size)):
            lines, rows = zip(*some, strict=True)
            yield Rows([[row.get(name) for row in rows] for name in self.columns], lines)

    def _records(self) -> Iterator[tuple[int, dict[str, Any]]]:
        with opened_text(self.path, self.encoding) as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield number, self._object(line, number)

    def _object(self, line: str, number: int) -> dict[str, Any]:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise FileProblemError(
                f"{self.path}, line {number} is not JSON; write one JSON object a line."
            ) from error
        if not isinstance(row, dict):
            raise FileProblemError(
                f"{self.path}, line {number} is JSON but no object; write one object "
                '{"column": value, ...} a line.'
            )
        return _whole(row) if "\\ud" in line.lower() else row


def _whole(cell: Any) -> Any:
    """Replace lone surrogates, which cut texts can have and no file can hold."""
    if isinstance(cell, list):
        return [_whole(each) for each in cell]
    if isinstance(cell, dict):
        return {_whole(name): _whole(each) for name, each in cell.items()}
    if not isinstance(cell, str):
        return cell
    return cell.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class ParquetFile(TableFile):
    """A Parquet file."""

    place = "row"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._parquet = optional_library("pyarrow.parquet", "tables", path)
        with self._reading(), self._parquet.ParquetFile(path) as file:
            self.columns = list(file.schema_arrow.names)
            self.n_rows = file.metadata.num_rows
        if not self.n_rows:
            raise FileProblemError(f"{path} has no rows; add rows.")
        check_distinct(path, self.columns)

    def rows(self, size: int) -> Iterator[Rows]:
        first = 1
        with self._reading():
            file = self._parquet.ParquetFile(self.path)
        with file:
            some = file.iter_batches(batch_size=size)
            while True:
                with self._reading():
                    table = next(some, None)
                    cells = [] if table is None else [column.to_pylist() for column in table]
                if table is None:
                    return
                if table.num_rows:
                    yield Rows(cells, range(first, first + table.num_rows))
                first += table.num_rows

    def _reading(self) -> AbstractContextManager[None]:
        return library_reads(self.path, "Parquet file")


def cells_by_name(
    path: Path, encoding: str, needed: tuple[str, ...]
) -> Iterator[tuple[list[int], dict[str, list[Any]]]]:
    """Yield places and cells, by column, of a .csv or .tsv table that has the columns needed."""
    table = DelimitedFile(path, encoding, "\t" if path.suffix.lower() == ".tsv" else None)
    for name in needed:
        check_column(str(path), name, table.columns)
    for rows in table.rows(10_000):
        yield rows.places, dict(zip(table.columns, rows.cells, strict=True))
