"""Tables as text with one row a line (CSV, TSV), read with Python's own csv module."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from marginparts.files.atomic import FileProblemError
from marginparts.files.columns import first_repeated
from marginparts.files.streams import opened_text

#: The longest cell in characters: the most that csv takes on every system.
_LONGEST = 2**31 - 1


class Rows(NamedTuple):
    """Some rows of a table.

    Attributes
    ----------
    cells : list of lists
        The cells of each column.
    places : sequence of int
        The line or row of the file in which each row begins, from 1.
    """

    cells: list[list[Any]]
    places: Any


class DelimitedFile:
    """A CSV or TSV file.

    Parameters
    ----------
    path : Path
    encoding : str
    delimiter : str or None
        None finds it in the header: a comma, else a semicolon, else a tab.
    """

    place = "line"

    def __init__(self, path: Path, encoding: str, delimiter: str | None = None) -> None:
        self.path = path
        self.encoding = encoding
        self.n_rows: int | None = None
        self.delimiter = delimiter or self._find_delimiter()
        first = list(islice(self._records(), 2))
        if not first:
            raise FileProblemError(f"{path} is empty; its first line must name the columns.")
        if len(first) == 1:
            raise FileProblemError(f"{path} has a header and no rows; add rows.")
        self.columns = [name.strip() for name in first[0][1]]
        if (twice := first_repeated(self.columns)) is not None:
            raise FileProblemError(f"{path} has two columns named {twice!r}; rename one of them.")

    @property
    def decimal_comma(self) -> bool:
        """Whether 3,5 is a number: where the comma does not separate cells."""
        return self.delimiter == ";"

    def rows(self, size: int) -> Iterator[Rows]:
        """Yield all rows, at most ``size`` at once."""
        records = self._records()
        next(records)  # the header
        while some := list(islice(records, size)):
            for line, cells in some:
                if len(cells) != len(self.columns):
                    raise FileProblemError(
                        f"{self.path}, line {line}: the row has {len(cells)} cells and the header "
                        f"{len(self.columns)}; put cells that hold {self.delimiter!r} or line "
                        "breaks in quotes."
                    )
            yield Rows(
                [list(column) for column in zip(*(cells for _, cells in some), strict=True)],
                [line for line, _ in some],
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
            while True:
                try:
                    cells = next(reader, None)
                except csv.Error as error:
                    raise FileProblemError(
                        f"{self.path}, line {line}: a quoted cell is not closed, or goes on after "
                        "its closing quote; double the quotes inside the cell."
                    ) from error
                if cells is None:
                    return
                if cells:
                    yield line, cells
                line = reader.line_num + 1

    def _lines(self, file: Any) -> Iterator[str]:
        for number, line in enumerate(file, start=1):
            if "\0" in line:
                raise FileProblemError(
                    f"{self.path}, line {number}: there is a NUL byte, so it is no text file; save "
                    "it as CSV again, or say --encoding utf-16 if it is that."
                )
            yield line
