"""Tables in Parquet, with pyarrow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from marginparts.app.readers._delimited import Rows
from marginparts.files.atomic import FileProblemError
from marginparts.files.columns import first_repeated
from marginparts.files.streams import library_reads, optional_library


class ParquetFile:
    """A Parquet file, of which only some rows are in memory."""

    place = "row"
    decimal_comma = False

    def __init__(self, path: Path) -> None:
        self.path = path
        self._parquet = optional_library("pyarrow.parquet", "tables", path)
        with library_reads(path, "Parquet file"), self._open() as file:
            self.columns: list[str] = list(file.schema_arrow.names)
            self.n_rows: int | None = file.metadata.num_rows
        if not self.n_rows:
            raise FileProblemError(f"{path} has no rows; add rows.")
        if (twice := first_repeated(self.columns)) is not None:
            raise FileProblemError(f"{path} has two columns named {twice!r}; rename one of them.")

    def rows(self, size: int) -> Iterator[Rows]:
        """Yield all rows, at most ``size`` at once."""
        first = 1
        with library_reads(self.path, "Parquet file"):
            file = self._open()
        with file:
            some = file.iter_batches(batch_size=size)
            while True:
                with library_reads(self.path, "Parquet file"):
                    table = next(some, None)
                    cells = [] if table is None else [column.to_pylist() for column in table]
                if table is None:
                    return
                if table.num_rows:
                    yield Rows(cells, range(first, first + table.num_rows))
                first += table.num_rows

    def _open(self) -> Any:
        return self._parquet.ParquetFile(self.path)
