"""Files for people: what is wrong with one is a sentence, and none is left half written."""

import errno
import glob
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import IO, Any, NoReturn

#: Characters of a sentence: what a file says may be repeated in it, and may be as long as a book.
_LONGEST = 900


class FileProblemError(Exception):
    """What is wrong with a file or with what it holds, as one sentence that says what to do."""

    def __init__(self, said: str) -> None:
        said = said.replace("\n", "\\n").replace("\r", "\\r")
        if len(said) > _LONGEST:  # the file is named at its beginning, what to do at its end
            said = f"{said[: _LONGEST - 300]} ... {said[-290:]}"
        super().__init__(said)


_ODD = "a device or a pipe"


@contextmanager
def problems_with(path: str | os.PathLike[str], doing: str) -> Iterator[None]:
    """Turn what the system says about a file into a sentence: "x.csv cannot be read: ..."."""
    try:
        yield
    except FileNotFoundError as error:
        missing = Path(error.filename or path)
        raise FileProblemError(f"There is no file {missing}.") from error
    except OSError as error:
        why = error.strerror or type(error).__name__
        if error.errno == errno.ENOSPC:
            why = "the disk is full"
        raise FileProblemError(f"{path} cannot be {doing}: {why}.") from error


def check_origin(path: Path) -> None:
    """Refuse a device or a pipe: it cannot be read twice, and may be waited for for ever."""
    with problems_with(path, "read"):
        if path.exists() and not path.is_file() and not path.is_dir():
            raise FileProblemError(f"{path} is no file, but {_ODD}; give a file.")


def check_destination(path: Path) -> None:
    """Refuse a name that cannot be written to; ask before the work, not after it."""
    with problems_with(path, "written"):
        if path.is_dir():
            raise FileProblemError(f"{path} is a folder; give the name of a file.")
        # a new file takes the place of the old one: of the link, or of the device itself
        if path.is_symlink():
            raise FileProblemError(f"{path} is a link; give the name of the file itself.")
        if path.exists() and not path.is_file():
            raise FileProblemError(f"{path} is no file, but {_ODD}; give a file.")
        if not path.parent.is_dir():
            raise FileProblemError(f"There is no folder {path.parent} to write {path.name} to.")
        if not os.access(path.parent, os.W_OK):
            raise FileProblemError(f"The folder {path.parent} may not be written to.")


#: How the name of a file ends that is not yet complete.
_BESIDE = ".part"

#: Seconds after which nobody writes such a file any more.
_STALE = 7 * 86_400


@contextmanager
def written_beside(
    path: str | os.PathLike[str], mode: str = "wb", *, durable: bool = False, **options: Any
) -> Iterator[IO]:
    """Open a new file that takes the place of ``path`` when all is written, and not before.

    It is written beside ``path`` and renamed. Whatever goes wrong, a file that was there stays as
    it was, and nothing else is left. A ``durable`` file is on the disk, and not on its way there,
    before it takes its place: then the one or the other survives a power cut, too.
    """
    path = Path(path)
    check_destination(path)
    remove_leftovers(path, older_than=_STALE)
    with problems_with(path, "written"):
        handle, beside = tempfile.mkstemp(_BESIDE, f".{path.name}.", path.parent)
        try:
            with os.fdopen(handle, mode, **options) as file:
                yield file
                if durable:
                    file.flush()
                    os.fsync(file.fileno())
            os.chmod(beside, _usual_mode(path))
            os.replace(beside, path)
        except BaseException:
            Path(beside).unlink(missing_ok=True)
            raise


def _usual_mode(path: Path) -> int:
    """Return the permissions of the file to be replaced, or those that new files get."""
    if path.exists():
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def remove_leftovers(path: str | os.PathLike[str], older_than: float = 0.0) -> None:
    """Remove what `written_beside` left of a file when it was killed on the way."""
    path = Path(path)
    for beside in path.parent.glob(f".{glob.escape(path.name)}.*{_BESIDE}"):
        with suppress(OSError):  # someone else's, or gone meanwhile
            if not older_than or time.time() - beside.stat().st_mtime > older_than:
                beside.unlink(missing_ok=True)


def leave(number: int, frame: FrameType | None) -> NoReturn:
    """End by a signal as by an exception, so that nothing half written stays."""
    raise SystemExit(128 + number)
