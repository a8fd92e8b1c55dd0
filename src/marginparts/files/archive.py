"""A zip archive of one text and many arrays, with checksums: models and checkpoints are such files.

It is written with the standard library and in numpy's own format, so that both can read it without
us. When it is read, a size is checked before memory is taken for it. The *kind* of an archive names
its text (``model.json``), and the file in messages.
"""

import errno
import hashlib
import math
import os
import sys
import zipfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from marginparts.files.atomic import FileProblemError

SUMS = "SHA256SUMS"
FOLDER = "arrays/"

#: Parts are mostly zeros: the fastest deflate leaves a fifth of them, at 200 MB a second.
_LEVEL = 1

#: A member larger than this, in bytes, and than this many times its place in the file, is a bomb.
#: Zeros shrink about 230 times at our level, and the format allows 1,032.
_LARGE, _SWELLING = 2**24, 300

#: A member that may need the zip format's extension for sizes past 2 GiB.
_LONG = 2**30

_CHUNK = 2**20

#: numpy's scalars under names that do not depend on its version.
SCALARS: dict[str, Any] = {
    "bool": np.bool_, "str": np.str_,
    "int8": np.int8, "int16": np.int16, "int32": np.int32, "int64": np.int64,
    "uint8": np.uint8, "uint16": np.uint16, "uint32": np.uint32, "uint64": np.uint64,
    "float16": np.float16, "float32": np.float32, "float64": np.float64,
}  # fmt: skip


def is_kept(dtype: np.dtype[Any]) -> bool:
    """Whether arrays of a type can be kept: numbers, bool and text."""
    return dtype.itemsize > 0 and scalar_name(dtype) is not None


def is_text(array: NDArray[Any]) -> bool:
    """Whether all letters of an array of texts are letters; Python cannot take others at all."""
    if array.dtype.kind != "U" or not array.size or not array.dtype.itemsize:
        return True
    native = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))
    return bool(native.reshape(-1).view(np.uint32).max() <= sys.maxunicode)


def scalar_name(dtype: np.dtype[Any]) -> str | None:
    """Return our name of a scalar type, None if it is not kept."""
    name = "str" if dtype.kind == "U" else dtype.name
    return name if name in SCALARS else None


class _Summed:
    """A file to write to, or to read from, that also takes the checksum and counts what is read."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.sum, self.n_read = hashlib.sha256(), 0

    def read(self, size: int = -1, /) -> bytes:
        data = self._file.read(size)
        self.sum.update(data)
        self.n_read += len(data)
        return data

    def write(self, data: bytes) -> int:
        self.sum.update(data)
        return self._file.write(data)


def write_archive(
    file: IO[bytes],
    text: bytes,
    arrays: dict[str, NDArray[Any]],
    *,
    kind: str = "model",
    compress: bool = True,
) -> None:
    """Write a text and arrays by name, without objects; the same bytes for the same content.

    A file that is not compressed is larger, and written several times as fast.
    """
    if not compress:
        _write(file, kind, text, arrays, zipfile.ZIP_STORED)
    elif _looks_like_a_bomb(_write(file, kind, text, arrays, zipfile.ZIP_DEFLATED)):
        # what looks like a bomb would not be opened again
        file.seek(0)
        file.truncate()
        _write(file, kind, text, arrays, zipfile.ZIP_STORED)


def _write(
    file: IO[bytes], kind: str, text: bytes, arrays: dict[str, NDArray[Any]], how: int
) -> list[zipfile.ZipInfo]:
    """Write all members, and return what the archive says about them."""
    sums = {}
    with zipfile.ZipFile(file, "w", compression=how, compresslevel=_LEVEL) as archive:
        with _member(archive, f"{kind}.json", len(text)) as member:
            member.write(text)
        sums[f"{kind}.json"] = member.sum.hexdigest()
        for name, array in sorted(arrays.items()):
            place = f"{FOLDER}{name}.npy"
            with _member(archive, place, array.nbytes) as member:
                np.lib.format.write_array(member, array, version=(1, 0), allow_pickle=False)
            sums[place] = member.sum.hexdigest()
        lines = "".join(f"{value}  {name}\n" for name, value in sorted(sums.items()))
        with _member(archive, SUMS, len(lines)) as member:
            member.write(lines.encode())
        return archive.infolist()


@contextmanager
def _member(archive: zipfile.ZipFile, name: str, size: int) -> Iterator[_Summed]:
    """Open a member for writing that says nothing of the time or the machine."""
    with archive.open(name, "w", force_zip64=size > _LONG) as member:
        yield _Summed(member)
    info = archive.getinfo(name)
    info.create_system = 3
    info.external_attr = 0o644 << 16


def _looks_like_a_bomb(infos: list[zipfile.ZipInfo]) -> bool:
    """Whether a member, or all of them together, would swell too much."""
    sizes = [(info.file_size, info.compress_size) for info in infos]
    return any(_swells(*each) for each in [*sizes, tuple(map(sum, zip(*sizes, strict=True)))])


def _swells(size: int, packed: int) -> bool:
    return size > max(_LARGE, _SWELLING * packed)


@contextmanager
def damage(path: str | os.PathLike[str], why: str, kind: str = "model") -> Iterator[None]:
    """Turn whatever goes wrong with the content of a file into one sentence.

    Damaged archives make the standard library raise a dozen kinds of exceptions, and it does not
    say which.
    """
    try:
        yield
    except FileProblemError:
        raise
    except MemoryError as error:
        raise FileProblemError(f"{path} does not fit into memory.") from error
    except Exception as error:
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise  # the disk's fault; a place that cannot be is the archive's
        raise FileProblemError(f"{path} is damaged or not a {kind}: {why}.") from error


class Archive:
    """An archive to read; whatever is wrong with it is a `FileProblemError` that names its path."""

    def __init__(self, path: str | os.PathLike[str], file: IO[bytes], kind: str = "model") -> None:
        self._path, self._kind, self._text = path, kind, f"{kind}.json"
        with self._damage("it is not a whole zip archive"):
            self._zip = zipfile.ZipFile(file)
            self._members = self._checked(self._zip.infolist(), file.seek(0, os.SEEK_END))
        with self._damage(f"{SUMS} cannot be understood"):
            lines = self._read(self._members[SUMS])[0].decode("ascii").splitlines()
            pairs = (line.split("  ", 1) for line in lines)
            self._sums = {name: value for value, name in pairs}

    def _bad(self, why: str) -> FileProblemError:
        return FileProblemError(f"{self._path} is damaged or not a {self._kind}: {why}.")

    def _damage(self, why: str) -> AbstractContextManager[None]:
        return damage(self._path, why, self._kind)

    def _checked(self, infos: list[zipfile.ZipInfo], size: int) -> dict[str, zipfile.ZipInfo]:
        """Return the members by name once their sizes can be believed."""
        members = {info.filename: info for info in infos}
        if missing := {self._text, SUMS} - set(members):
            raise self._bad(f"it has no {min(missing)}")
        if len(members) < len(infos) or sum(info.compress_size for info in infos) > size:
            raise self._bad("members of the archive overlap")
        for info in infos:
            if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise self._bad(f"{info.filename} is packed in an unknown way")
            if _swells(info.file_size, info.compress_size):
                raise self._bad(f"{info.filename} would swell to {info.file_size:,} bytes")
        whole = sum(info.file_size for info in infos)
        if _swells(whole, sum(info.compress_size for info in infos)):
            raise self._bad(f"it would swell to {whole:,} bytes")
        return members

    def text(self) -> bytes:
        """Return the text."""
        with self._damage(f"{self._text} cannot be unpacked"):
            data, found = self._read(self._members[self._text])
            self._compare(self._text, found)
            return data

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all arrays by name, when nothing is missing and nothing too much."""
        listed, there = set(self._sums), set(self._members) - {SUMS}
        if listed != there:
            name = min(listed ^ there)
            raise self._bad(f"{name} is {'missing' if name in listed else 'too much'}")
        arrays = {}
        for place in sorted(there - {self._text}):
            if not (place.startswith(FOLDER) and place.endswith(".npy")):
                raise self._bad(f"{place} is too much")
            with self._damage(f"{place} cannot be unpacked"):
                arrays[place[len(FOLDER) : -len(".npy")]] = self._array(place)
        return arrays

    def _compare(self, name: str, found: str) -> None:
        if self._sums.get(name) != found:
            raise FileProblemError(
                f"{self._path} was altered or damaged: the checksum of {name} does not agree."
            )

    def _read(self, info: zipfile.ZipInfo) -> tuple[bytes, str]:
        """Return the bytes of a member and their checksum."""
        with self._zip.open(info) as member:
            data = member.read(info.file_size)
        return data, hashlib.sha256(data).hexdigest()

    def _array(self, place: str) -> NDArray[Any]:
        """Return an array, with no more memory than the archive's directory says it needs."""
        info = self._members[place]
        with self._zip.open(info) as file:
            member = _Summed(file)
            with self._damage(f"{place} is no array of numbers or text"):
                np.lib.format.read_magic(member)
                shape, by_columns, dtype = np.lib.format.read_array_header_1_0(member)
            if not is_kept(dtype) or min(shape, default=0) < 0:
                raise self._bad(f"{place} is no array of numbers or text")
            if math.prod(shape) * dtype.itemsize != info.file_size - member.n_read:
                raise self._bad(f"{place} does not have the size that it says")
            array = np.empty(math.prod(shape), dtype)
            memory, done = array.view(np.uint8).data, 0
            while done < len(memory):
                piece = member.read(min(_CHUNK, len(memory) - done))
                if not piece:
                    raise EOFError
                memory[done : done + len(piece)] = piece
                done += len(piece)
        self._compare(place, member.sum.hexdigest())
        # of a machine with another order of bytes; compiled loops know that of this one only
        array = array.astype(dtype.newbyteorder("="), copy=False)
        if not is_text(array):
            raise self._bad(f"{place} has a letter that is none")
        return array.reshape(shape, order="F" if by_columns else "C")
