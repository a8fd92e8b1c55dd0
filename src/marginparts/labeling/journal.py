"""The journal: every event is a line of JSON, on the disk before anybody is told that it is there.

Lines are only ever added. A line that a kill cut short was never confirmed to anybody; it is closed
by the next writer and passed over by readers. Several processes may write to one journal.
"""

from __future__ import annotations

import errno
import getpass
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import RLock
from typing import IO, Any

from marginparts.files.atomic import check_destination, problems_with
from marginparts.files.json_text import read_json

#: What stands in a line: ``id``, ``kind``, ``when`` and what belongs to the kind.
Event = dict[str, Any]

#: What an event may hold, by kind of value; of these, all have an id and a kind.
_TEXTS = ("id", "kind", "when", "sample", "into", "label", "of", "text", "note", "who", "tab")
_LISTS = ("labels", "samples")
_NUMBERS = ("labeled", "accuracy", "error", "row")


def _is_event(found: Any) -> bool:
    """Whether a line of a stranger can be taken for an event: everything in it is of its kind."""
    if not isinstance(found, dict) or not {"id", "kind"} <= found.keys():
        return False
    lists = (found[name] for name in _LISTS if name in found)
    numbers = (found[name] for name in _NUMBERS if found.get(name) is not None)
    return (
        all(_is_text(found[name]) for name in _TEXTS if name in found)
        and all(isinstance(each, list) and all(map(_is_text, each)) for each in lists)
        and all(isinstance(each, int | float) and abs(each) < 2**53 for each in numbers)
    )


def _is_text(value: Any) -> bool:
    # half a character, as JSON may have it, can be written nowhere
    return isinstance(value, str) and not any("\ud800" <= c <= "\udfff" for c in value)


def now() -> str:
    """Return the time as people and programs read it, in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


class Journal:
    """An append-only list of events; without a path it is kept in memory only.

    Examples
    --------
    >>> journal = Journal(None)
    >>> _ = journal.append({"kind": "label", "sample": "a", "labels": ["cat"]})
    >>> [event["kind"] for event in journal.events]
    ['label']
    """

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        self.path = None if path is None else Path(path)
        self.events: list[Event] = []
        #: Lines that could not be read.
        self.damaged = 0
        self._ids: set[str] = set()
        self._offset = 0
        self._alone = RLock()
        if self.path is not None:
            check_destination(self.path)
            self.read()

    def read(self) -> list[Event]:
        """Return what has been added, by whomever, since it was last read."""
        if self.path is None:
            return []
        with self._alone, problems_with(self.path, "read"):
            if not self.path.exists():
                return []
            with self.path.open("rb") as file:
                file.seek(self._offset)
                text = file.read()
            whole = text[: text.rfind(b"\n") + 1]  # the rest may still be on its way
            self._offset += len(whole)
            return [event for line in whole.splitlines() if (event := self._taken(line))]

    def append(self, event: Event) -> list[Event]:
        """Write an event and wait until it is on the disk; return what is new, it and others'.

        One whose ``id`` is there already is not written again: what was sent twice counts once.
        """
        event = {"id": secrets.token_hex(8), "when": now(), **event}
        line = json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode()
        if self.path is None:
            with self._alone:
                return [taken for taken in [self._taken(line)] if taken]
        with self._alone, problems_with(self.path, "written"), self._locked() as file:
            news = self.read()
            if event["id"] in self._ids:
                return news
            torn = file.seek(0, os.SEEK_END) > self._offset
            line = b"\n" * torn + line + b"\n"
            if file.write(line) < len(line):  # a full disk takes what it can
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(file.fileno())
            return news + self.read()

    @contextmanager
    def _locked(self) -> Iterator[IO[bytes]]:
        """Open the file so that no other process writes to it meanwhile."""
        assert self.path is not None
        new = not self.path.exists()
        with self.path.open("ab", buffering=0) as file:
            with suppress(ImportError):  # Windows has no such locks; there one process writes
                import fcntl

                fcntl.flock(file, fcntl.LOCK_EX)
            yield file
        if new and os.name == "posix":  # its name is to survive a power cut, too
            folder = os.open(self.path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def _taken(self, line: bytes) -> Event | None:
        """Keep the event in a line, unless it is there already or nothing can be made of it."""
        if not line.strip():
            return None
        try:
            event = read_json(line)
        except ValueError:
            event = None
        if not _is_event(event):
            self.damaged += 1
            return None
        if event["id"] in self._ids:
            return None
        self._ids.add(event["id"])
        self.events.append(event)
        return dict(event)


def user_name() -> str:
    """Return who is said to answer, unless another name is given."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # a container without names
        return "someone"
