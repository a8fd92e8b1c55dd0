"""Records of trials as JSON lines: appended as they come, whole units or nothing.

A *unit* is the work that is done in one go, such as one path over lam. Its records carry its key,
their place and their number, so that a unit cut short by a kill is recognized and done again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from marginparts.files.invariants import Scope, Value
from marginparts.files.json_text import read_json

Record = dict[str, Any]

#: What the store adds to a record: its unit, its place in it, and how many there are.
_OWN = ("unit", "part", "of")
_OWN_FIELDS = (Value("unit", "str"), Value("part", "int", 0), Value("of", "int", 1))


class StoreError(RuntimeError):
    """Records cannot be written; the message says why."""


class Store:
    """A file of records, made when the first unit is written.

    Examples
    --------
    >>> import tempfile
    >>> store = Store(Path(tempfile.mkdtemp()) / "trials.jsonl")
    >>> store.append("nmf r=16", [{"C": 1.0, "validation": 0.5}, {"C": 10.0, "validation": 0.6}])
    >>> store.units()
    {'nmf r=16'}
    >>> [record["C"] for record in store]
    [1.0, 10.0]
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Keep other processes from writing to the same file."""
        lock = self.path.with_suffix(".lock")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            file = lock.open("w")
        except OSError as error:
            raise StoreError(f"{lock.parent} cannot be written to: {error.strerror}.") from error
        with file:
            try:
                # Windows has no such locks, and runs unprotected
                with suppress(ImportError):
                    import fcntl

                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                said = f"Another run is writing to {self.path}; wait for it to end."
                raise StoreError(said) from error
            try:
                yield
            finally:
                lock.unlink(missing_ok=True)

    def append(self, unit: str, records: Iterable[Record]) -> None:
        """Write all records of a unit in one go, and wait until they are on the disk."""
        found = list(records)
        if not found:
            raise ValueError(f"Unit {unit!r} has no records; a unit has at least one.")
        lines = [
            {"unit": unit, "part": part, "of": len(found), **record}
            for part, record in enumerate(found)
        ]
        text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._end_the_last_line()
        with self.path.open("ab") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())

    def _end_the_last_line(self) -> None:
        """Keep a line that a kill cut short from swallowing the next one."""
        if self.path.exists() and self.path.stat().st_size:
            with self.path.open("rb+") as file:
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":
                    file.write(b"\n")

    def units(self) -> set[str]:
        """Return the keys of the units that are complete."""
        return set(self._complete())

    def of(self, units: set[str]) -> Iterator[Record]:
        """Go over the records of some units, as far as they are complete."""
        for unit, records in self._complete().items():
            if unit in units:
                for record in records:
                    yield {key: value for key, value in record.items() if key not in _OWN}

    def __iter__(self) -> Iterator[Record]:
        """Go over the records of complete units, without the store's own fields."""
        return self.of(self.units())

    def _complete(self) -> dict[str, list[Record]]:
        """Return the records of each complete unit; of one written twice, the last."""
        begun: dict[str, list[Record]] = {}
        done: dict[str, list[Record]] = {}
        for record in self._lines():
            unit, part = record["unit"], record["part"]
            if part == 0:
                begun[unit] = []
            if part != len(begun.get(unit, [])):  # a line before it is lost
                begun.pop(unit, None)
                continue
            begun[unit].append(record)
            if len(begun[unit]) == record["of"]:
                done[unit] = begun.pop(unit)
        return done

    def _lines(self) -> Iterator[Record]:
        """Go over the lines that can be read: a kill may have cut one short."""
        if not self.path.exists():
            return
        for line in self.path.read_bytes().splitlines():
            try:
                record = read_json(line)
                Scope().check(_OWN_FIELDS, record)
            except (ValueError, AttributeError):
                continue
            yield record
