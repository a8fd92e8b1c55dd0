"""Tables as text with one JSON object a line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from marginparts.app.readers._delimited import Rows
from marginparts.files.atomic import FileProblemError
from marginparts.files.streams import opened_text


class JSONLinesFile:
    """A file with one JSON object a line.

    Objects need not have the same keys, so that all of it is read once to know the columns.
    """

    place = "line"
    decimal_comma = False

    def __init__(self, path: Path, encoding: str) -> None:
        self.path = path
        self.encoding = encoding
        columns: dict[str, None] = {}
        n_rows = 0
        for _, row in self._records():
            columns.update(dict.fromkeys(row))
            n_rows += 1
        if not n_rows:
            raise FileProblemError(f"{path} has no rows; write one JSON object a line.")
        self.columns = list(columns)
        self.n_rows: int | None = n_rows

    def rows(self, size: int) -> Iterator[Rows]:
        """Yield all rows, at most ``size`` at once; what an object lacks is None."""
        records = self._records()
        while some := list(islice(records, size)):
            yield Rows(
                [[row.get(name) for _, row in some] for name in self.columns],
                [line for line, _ in some],
            )

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
        if "\\ud" in line.lower():
            return {_whole(key): _whole(cell) for key, cell in row.items()}
        return row


def _whole(cell: Any) -> Any:
    """Replace halves of characters, as texts that were cut in two have, which nothing can write."""
    if isinstance(cell, list):
        return [_whole(each) for each in cell]
    if isinstance(cell, dict):
        return {_whole(name): _whole(each) for name, each in cell.items()}
    if not isinstance(cell, str):
        return cell
    return cell.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
