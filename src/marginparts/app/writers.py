"""Tables out, row after row: a file may be larger than memory, and is never left half written."""

from __future__ import annotations

import contextlib
import csv
import json
import math
import re
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from marginparts._types import Array
from marginparts.files.atomic import FileProblemError, written_beside

#: The formats that can be written, by the endings of files' names.
TABLES = (".csv", ".tsv", ".jsonl", ".parquet")
ARRAYS = (".npz",)


#: What a cell begins with that spreadsheets run, and numbers that may begin so.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def check_ending(path: Path, endings: Sequence[str]) -> None:
    """Refuse a file name whose ending is not known."""
    if path.suffix.lower() not in endings:
        raise FileProblemError(
            f"{path} cannot be written: its name must end in one of {' '.join(endings)}."
        )


@contextmanager
def open_table_writer(
    path: Path | None, separator: str = ";", *, as_json: bool = False, raw: bool = False
) -> Iterator[_Delimited | _JSONLines | _Parquet]:
    """Open a table to write to; its format is known by the ending of its name.

    Without a path it is the standard output: CSV, or JSON lines. The separator is put between the
    values of a cell that has several, where the format has no lists. What is yielded takes columns
    of equal length, the same ones each time. In CSV and TSV cells that a spreadsheet would run are
    put in quotes of its kind, unless they are to be ``raw``.
    """
    if path is None:
        yield _JSONLines(sys.stdout) if as_json else _Delimited(sys.stdout, ",", separator, raw)
        return
    check_ending(path, TABLES)
    ending = path.suffix.lower()
    if ending == ".parquet":
        with written_beside(path) as file, contextlib.closing(_Parquet(file)) as parquet:
            yield parquet
        return
    with written_beside(path, "w", encoding="utf-8", newline="", errors="backslashreplace") as file:
        if ending == ".jsonl":
            yield _JSONLines(file)
        else:
            yield _Delimited(file, "\t" if ending == ".tsv" else ",", separator, raw)


class _Delimited:
    """CSV and TSV."""

    def __init__(self, file: IO[str], delimiter: str, separator: str, raw: bool) -> None:
        self.writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        self.separator, self.raw = separator, raw
        self.begun = False

    def write(self, columns: Mapping[str, Sequence[Any]]) -> None:
        if not self.begun:
            self.writer.writerow(map(self._safe, columns))
            self.begun = True
        cells = [[self._safe(self._cell(value)) for value in column] for column in columns.values()]
        self.writer.writerows(zip(*cells, strict=True))

    def _safe(self, cell: Any) -> Any:
        """Return a cell that no spreadsheet takes for a formula; numbers are none."""
        if self.raw or not isinstance(cell, str) or not cell.startswith(_FORMULA):
            return cell
        return cell if _NUMBER.fullmatch(cell) else f"'{cell}"

    def _cell(self, value: Any) -> Any:
        if isinstance(value, tuple | list):
            return self.separator.join(str(self._cell(each)) for each in value)
        if isinstance(value, float | np.floating):
            return "" if np.isnan(value) else repr(float(value))
        return value


class _JSONLines:
    def __init__(self, file: IO[str]) -> None:
        self.file = file

    def write(self, columns: Mapping[str, Sequence[Any]]) -> None:
        for cells in zip(*columns.values(), strict=True):
            row = {name: plain(cell) for name, cell in zip(columns, cells, strict=True)}
            line = json.dumps(row, ensure_ascii=False, default=str, allow_nan=False)
            self.file.write(line + "\n")


def plain(value: Any) -> Any:
    """Return a value that JSON knows, with null for what is no number."""
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, tuple | list | np.ndarray):
        return [plain(each) for each in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


class _Parquet:
    """Parquet; the first rows decide the types of the columns, and what is not clear is text."""

    def __init__(self, file: IO[bytes]) -> None:
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError as error:
            raise FileProblemError(
                "Parquet files need pyarrow: pip install 'marginparts[tables]'."
            ) from error
        self.arrow, self.file = pyarrow, file
        self.writer: Any = None

    def write(self, columns: Mapping[str, Sequence[Any]]) -> None:
        if self.writer is None:
            schema = self.arrow.schema([(n, self._type(n, c)) for n, c in columns.items()])
            self.writer = self.arrow.parquet.ParquetWriter(self.file, schema)
        schema = self.writer.schema
        arrays = [self._array(columns[field.name], field.type) for field in schema]
        self.writer.write_table(self.arrow.Table.from_arrays(arrays, schema=schema))

    def _type(self, name: str, column: Sequence[Any]) -> Any:
        """Return the type of a column; lists of labels may be empty to begin with."""
        text = self.arrow.string()
        if any(isinstance(cell, tuple) for cell in column):
            inner = text if name.startswith("predicted") else self.arrow.float64()
            return self.arrow.list_(inner)
        try:
            found = self.arrow.array(column).type
        except (self.arrow.ArrowInvalid, self.arrow.ArrowTypeError):
            return text
        return text if self.arrow.types.is_null(found) else found

    def _array(self, column: Sequence[Any], wanted: Any) -> Any:
        cells = [list(cell) if isinstance(cell, tuple) else cell for cell in column]
        try:
            return self.arrow.array(cells, wanted)
        except (self.arrow.ArrowInvalid, self.arrow.ArrowTypeError) as error:
            if self.arrow.types.is_string(wanted):
                return self.arrow.array([None if c is None else str(c) for c in cells], wanted)
            raise FileProblemError(
                f"A column holds first {wanted} and then something else, which Parquet cannot "
                "keep; write a .csv or .jsonl file."
            ) from error

    def close(self) -> None:
        """Write the end of the file."""
        if self.writer is not None:
            self.writer.close()


@contextmanager
def open_array_writer(path: Path, name: str, n_columns: int) -> Iterator[Callable[[Array], object]]:
    """Open an ``.npz`` file for one array whose number of rows is not known yet.

    What is yielded takes rows (m, n_columns). They are kept in a file beside it until their number
    is known: memory stays small.
    """
    check_ending(path, ARRAYS)
    with written_beside(path) as file, tempfile.TemporaryFile(dir=path.parent) as raw:
        yield lambda rows: raw.write(np.ascontiguousarray(rows, dtype=np.float32).tobytes())
        n_rows = raw.tell() // (4 * n_columns)
        raw.seek(0)
        with (
            zipfile.ZipFile(file, "w", allowZip64=True) as archive,
            archive.open(f"{name}.npy", "w", force_zip64=True) as member,
        ):
            header = {"descr": "<f4", "fortran_order": False, "shape": (n_rows, n_columns)}
            np.lib.format.write_array_header_2_0(member, header)
            shutil.copyfileobj(raw, member, 1 << 22)
