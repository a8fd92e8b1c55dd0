"""HDF5 files of strangers are read in another process first.

The HDF5 library crashes, hangs or takes any amount of memory on some damaged files, and what runs
in this process cannot be kept from that. So a child process reads a file before this one does:
``python -m marginparts.files.hdf5`` answers a path a line, within limits of memory and of time.
"""

from __future__ import annotations

import atexit
import math
import os
import select
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from marginparts.files.atomic import FileProblemError

#: Seconds that a child may take for a file, those in which it computes, and the bytes of it that
#: are worth one more of either.
_SECONDS, _BUSY_SECONDS, _BYTES_A_SECOND = 20.0, 3.0, 20e6

#: Bytes of memory that a child may take.
_MEMORY = 4 << 30

#: Bytes of a dataset for each byte of its file, and bytes that any file may have: no compression
#: does better, and a dataset that nobody wrote has any size.
_RATIO, _SMALL = 1100, 1 << 24

#: Bytes that are read at a time, and those of a dataset of which only both ends are read.
_BLOCK, _LARGE = 1 << 22, 1 << 28


class _Reader:
    """A child process that reads files, and that is started again when one was its end."""

    def __init__(self) -> None:
        self.child: subprocess.Popen[str] | None = None
        self.seen: tuple[Any, ...] | None = None  # the last file that was in order

    def check(self, path: Path, what: str) -> None:
        """Refuse a file that cannot be read to its end; ``what`` says what it should be."""
        try:
            state = path.stat()
        except OSError:
            return  # whoever opens it says so
        this = str(path.resolve()), state.st_size, state.st_mtime_ns, state.st_ino
        if self.seen == this:
            return
        if self._is_ready():
            said = self._asked(this[0], _SECONDS + state.st_size / _BYTES_A_SECOND)
            if said != _GOOD:
                said = f"is cut short or is no {what}" if said == _BROKEN else said
                raise FileProblemError(f"{path} {said or _FATAL}; write or fetch it again.")
        self.seen = this

    def _is_ready(self) -> bool:
        """Say whether there is a child; an interpreter within another program may have none."""
        if self.child is not None and self.child.poll() is None:
            return True
        command = [sys.executable, "-P", "-m", "marginparts.files.hdf5"]
        with suppress(OSError):
            self.child = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                text=True, env={**os.environ, "HDF5_USE_FILE_LOCKING": "FALSE"},
            )  # fmt: skip
            return self._answer(_SECONDS) == "ready"
        return False

    def _asked(self, path: str, seconds: float) -> str:
        """Return what the child says of a file, or nothing if that was the end of it."""
        assert self.child is not None
        with suppress(OSError):  # it may be gone
            _say(self.child.stdin, os.fsencode(path).hex())
            return self._answer(seconds)
        return ""

    def _answer(self, seconds: float) -> str:
        assert self.child is not None
        assert self.child.stdout is not None
        ready, _, _ = select.select([self.child.stdout], [], [], seconds)
        answer = self.child.stdout.readline().strip() if ready else ""
        if not answer:
            self.end()
        return answer

    def end(self) -> None:
        """End the child."""
        if self.child is not None:
            self.child.kill()
            self.child.communicate()
            self.child = None


#: What a child says of a file, and what is said of one that was its end.
_GOOD, _BROKEN, _FATAL = "good", "broken", "is damaged: the HDF5 library fails on it"

_reader = _Reader()
atexit.register(_reader.end)


def check_hdf5(path: Path, what: str = "HDF5 file") -> None:
    """Refuse an HDF5 file that is damaged, or whose contents are not in it."""
    if sys.platform != "win32":  # where pipes cannot be waited for
        _reader.check(path, what)


def _say(to: IO[str] | None, line: str) -> None:
    assert to is not None
    to.write(line + "\n")
    to.flush()


def _serve() -> None:
    """Answer the paths on the standard input."""
    import resource

    import h5py  # noqa: F401 - takes longest

    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    _say(sys.stdout, "ready")
    for line in sys.stdin:
        try:
            path = Path(os.fsdecode(bytes.fromhex(line.strip())))
            until = time.process_time() + _BUSY_SECONDS + path.stat().st_size / _BYTES_A_SECOND
            resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(until), resource.RLIM_INFINITY))
            verdict = _verdict(path)
        except Exception:  # a broken file makes the library raise anything
            verdict = _BROKEN
        _say(sys.stdout, verdict)


def _verdict(path: Path) -> str:
    """Read all of a file, and say what is wrong with it."""
    import h5py

    wrong: list[str] = []
    limit = max(_SMALL, _RATIO * path.stat().st_size)

    def read(name: str, node: Any) -> None:
        if wrong:
            return
        dict(node.attrs)
        if not isinstance(node, h5py.Dataset):
            return
        if node.external or node.is_virtual:
            wrong.append("has data that is in another file")
        elif node.nbytes > limit:
            wrong.append("declares more data than it can have")
        elif not node.shape:
            node[()]
        else:
            rows = max(_BLOCK * node.shape[0] // max(node.nbytes, 1), 1)
            starts = range(0, node.shape[0], rows)
            for start in starts if node.nbytes < _LARGE else (starts[0], starts[-1]):
                node[start : start + rows]

    try:
        file = h5py.File(path, "r")
    except BlockingIOError:  # another process writes to it, which is its own affair
        return _GOOD
    with file:
        read("/", file)
        file.visititems(read)
    return wrong[0] if wrong else _GOOD


if __name__ == "__main__":
    _serve()
