"""The paper's data sets from the network: download, check, and only then put in place.

By hand and not with pooch, which would take the place of `_save` and `_chunks` alone: what is
checked here is mostly the unpacked content, by several kinds of checksums, from several mirrors or
a file that lies in the folder already.
"""

import errno
import gzip
import hashlib
import io
import os
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias
from urllib.parse import urlsplit

import numpy as np
import scipy.sparse as sp

from marginparts.datasets import _catalog, _formats
from marginparts.datasets._catalog import VARIABLE, DataError, DownloadError, Folder
from marginparts.datasets.paper import load_paper_data

#: Called with the name of a file, the bytes so far, and all bytes if their number is known.
OnBytes: TypeAlias = Callable[[str, int, int | None], object]

_CHUNK = 1 << 16
_TIMEOUT = 30.0  # seconds without a byte


@dataclass(frozen=True)
class Download:
    """A file to download, and its mirrors, tried in this order.

    ``accept`` takes the downloaded file and returns the files to keep, which lie beside it or are
    the file itself. It raises what is in ``UNREADABLE`` if it is not what was published.
    """

    file: str
    urls: tuple[str, ...]
    accept: Callable[[Path], list[Path]]


def fetch(name: str, data_dir: Folder = None, progress: OnBytes | None = None) -> Path:
    """Download a data set of the paper, unless it is there.

    Files are checked and then renamed into place, so an interrupted call leaves nothing half
    written. A later one goes on with the files that are not there yet. A published file that was
    put there by hand is taken like a download, so a machine without a network can have it too.

    Parameters
    ----------
    name : {"mnist", "news", "aviation"}
        The two variants of Aviation cannot be downloaded.
    data_dir : path or None
        The folder of all data sets, see :func:`data_folder`.
    progress : callable or None
        Called with the name of a file, the number of bytes so far, and the number of all bytes
        or None.

    Returns
    -------
    Path
        The folder with the files.

    Raises
    ------
    DownloadError
        There is no network, no mirror has the published file, or the disk is full. The message
        is one sentence.

    Notes
    -----
    MNIST and 20 Newsgroups are compared with known checksums of their content. None is known for
    Aviation: its compression has one, and the number of documents is checked.

    Examples
    --------
    >>> from marginparts.datasets import fetch, load_paper_data
    >>> fetch("mnist")  # doctest: +SKIP
    >>> mnist = load_paper_data("mnist")  # doctest: +SKIP
    """
    entry = _catalog.entry_named(name)
    folder = _catalog.data_folder(data_dir) / entry.folder
    if not entry.downloadable:
        files = ", ".join(entry.files)
        raise DownloadError(f"{name} cannot be downloaded: put its files ({files}) into {folder}.")
    with suppress(DataError):
        load_paper_data(name, data_dir)
        return folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for source in SOURCES[name]:
            _get(source, folder, progress)
    except OSError as error:
        if isinstance(error, DataError):
            raise
        why = f"{folder} cannot be written ({error.strerror}):"
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            why = f"The disk of {folder} is full: make room, or"
        raise DownloadError(f"{why} name another folder with {VARIABLE}.") from error
    load_paper_data(name, data_dir)
    return folder


def _get(source: Download, folder: Path, progress: OnBytes | None) -> None:
    """Put what a source gives into the folder, from the first address that has it right."""
    reasons = []
    local = folder / source.file
    for url in (local.resolve().as_uri(), *source.urls) if local.is_file() else source.urls:
        # beside its place, so that to rename is all that is left to do
        with tempfile.TemporaryDirectory(dir=folder, prefix=".fetch-") as scratch:
            path = Path(scratch, source.file)
            try:
                _save(url, path, progress if url in source.urls else None)
                kept = source.accept(path)
            except _formats.UNREADABLE as error:
                if isinstance(error, OSError) and error.errno is not None:
                    raise  # the disk; what a reader raises has no number
                reasons.append(f"{urlsplit(url).netloc or url}: {error}")
                continue
            for file in kept:
                os.replace(file, folder / file.name)
            return
    raise DownloadError(
        f"{source.file} could not be downloaded ({'; '.join(reasons)}): check the network, or put "
        f"the file into {folder} by hand, and try again."
    )


def _save(url: str, path: Path, progress: OnBytes | None) -> None:
    done = 0
    total: int | None = None
    with path.open("wb") as file:
        for chunk, total in _chunks(url):
            file.write(chunk)
            done += len(chunk)
            if progress is not None:
                progress(path.name, done, total)
    if total is not None and done < total:
        raise EOFError(f"the connection ended after {done} of {total} bytes")


def _chunks(url: str) -> Iterator[tuple[bytes, int | None]]:
    """Yield the content of an address, in pieces, with the length of the whole."""
    # only here, because they take longer to import than all the rest
    from http.client import HTTPException
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen

    request = Request(url, headers={"User-Agent": "marginparts"})
    try:
        with urlopen(request, timeout=_TIMEOUT) as response:
            length = response.headers.get("Content-Length")
            total = int(length) if length else None
            yield b"", total
            while chunk := response.read(_CHUNK):
                yield chunk, total
    except HTTPError as error:
        error.close()
        raise EOFError(f"HTTP {error.code} {error.reason}") from error
    except (OSError, HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise EOFError(getattr(reason, "strerror", None) or str(reason)) from error


def _accept_digest(algorithm: str, expected: str, path: Path) -> list[Path]:
    """Keep a file whose content, unpacked, has the checksum."""
    _compare(path.name, algorithm, expected, _formats.read_bytes(path))
    return [path]


def _pack(algorithm: str, expected: str, path: Path) -> list[Path]:
    """Compress a file with the checksum, and keep that."""
    _accept_digest(algorithm, expected, path)
    packed = path.with_name(f"{path.name}.gz")
    packed.write_bytes(gzip.compress(_formats.read_bytes(path), mtime=0))
    return [packed]


def _accept_lines(expected: int, path: Path) -> list[Path]:
    """Keep a file with the number of lines."""
    lines = sum(1 for line in _formats.read_bytes(path).splitlines() if line.strip())
    if lines != expected:
        raise ValueError(f"{path.name} has {lines} lines and not {expected}")
    return [path]


def _unpack_news(
    blobs: dict[str, str], path: Path, sums: dict[str, str] | None = None
) -> list[Path]:
    """Turn J. Rennie's archive into matrices of counts and arrays of labels.

    Some files are compared by their ids in git, others by a checksum of their words.
    """
    content = _read_archive(path, (*blobs, "train.label", "test.label", "train.map"))
    for file, blob in blobs.items():
        _compare(file, "git", blob, content[file])
    for file, expected in (sums or {}).items():
        _compare(file, "sha256", expected, b" ".join(content[file].split()))
    kept = [path.with_name("classes.txt")]
    kept[0].write_bytes(content["train.map"])
    triples = {part: _formats.read_triples(content[f"{part}.data"]) for part in ("train", "test")}
    n_words = 1 + max(int(words.max()) for _, words, _ in triples.values())
    for part, (documents, words, counts) in triples.items():
        labels = np.loadtxt(io.BytesIO(content[f"{part}.label"]), dtype=np.uint8, ndmin=1)
        X = sp.csr_array((counts, (documents, words)), shape=(len(labels), n_words))
        kept += [path.with_name(f"{part}_counts.npz"), path.with_name(f"{part}_labels.npy")]
        sp.save_npz(kept[-2], X.astype(np.uint16))
        np.save(kept[-1], labels)
    return kept


def _read_archive(path: Path, files: tuple[str, ...]) -> dict[str, bytes]:
    """Return the content of files in a compressed archive, in whatever folder they are."""
    found = {}
    try:
        with tarfile.open(path, "r:gz") as archive:
            for member in archive:
                file = member.name.rpartition("/")[2]
                if file in files and (content := archive.extractfile(member)) is not None:
                    found[file] = content.read()
    except tarfile.TarError as error:
        raise ValueError(str(error)) from error
    for file in files:
        if file not in found:
            raise ValueError(f"{path.name} has no {file}")
    return found


def _compare(file: str, algorithm: str, expected: str, content: bytes) -> None:
    if algorithm == "git":  # the id of a file in a git repository
        algorithm, content = "sha1", b"blob %d\0%b" % (len(content), content)
    # against damage, not against an attacker
    found = hashlib.new(algorithm, content, usedforsecurity=False).hexdigest()
    if found != expected:
        raise ValueError(f"the checksum of {file} is {found} and not {expected}")


def _source(file: str, accept: Callable[[Path], list[Path]], *homes: str) -> Download:
    return Download(file, tuple(home + file for home in homes), accept)


_MNIST = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
#: The last is not encrypted; all that is kept of it has a checksum.
_NEWS = (
    "https://qwone.com/~jason/20Newsgroups/",
    "https://people.csail.mit.edu/jrennie/20Newsgroups/",
    "http://qwone.com/~jason/20Newsgroups/",
)
_AVIATION = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multilabel/"

_MNIST_SUMS = {
    "train-images-idx3-ubyte.gz": "6bbc9ace898e44ae57da46a324031adb",
    "train-labels-idx1-ubyte.gz": "a25bea736e30d166cdddb491f175f624",
    "t10k-images-idx3-ubyte.gz": "2646ac647ad5339dbf082846283269ea",
    "t10k-labels-idx1-ubyte.gz": "27ae3e4e09519cfbb04c329615203637",
}
_NEWS_BLOBS = {
    "train.data": "385f570000b2e20b66c2b6051fb2691e46b1dec9",
    "test.data": "124635f66a4cc66046e3ea3c9fff4103c2b14d68",
}
_NEWS_SUMS = {
    "train.label": "8939dad1f1b384574d19689e028a6d7f3354e6034656d46afec5e7118aa34552",
    "test.label": "dde7ccb617cd011666088fdd05e174e7dcffc61fc2cee3bd81fa60fd2448dd62",
    "train.map": "ddd8646987d67e147a55bbd1c5c5f420fcc5d39b9e23b883b6b9bd83736ae55f",
}
_WORDS_SUM = "3c0f0d64a814ba8836334a0f23925cef751fb3636baea55772f1f8ede4b791bc"

#: What to download for each data set.
SOURCES: dict[str, tuple[Download, ...]] = {
    "mnist": tuple(
        _source(file, partial(_accept_digest, "md5", md5), *_MNIST)
        for file, md5 in _MNIST_SUMS.items()
    ),
    "news": (
        _source(
            "20news-bydate-matlab.tgz",
            partial(_unpack_news, _NEWS_BLOBS, sums=_NEWS_SUMS),
            *_NEWS,
        ),
        _source("vocabulary.txt", partial(_pack, "sha256", _WORDS_SUM), *_NEWS),
    ),
    "aviation": tuple(
        _source(f"tmc2007_{part}.svm.bz2", partial(_accept_lines, lines), _AVIATION)
        for part, lines in (("train", 21519), ("test", 7077))
    ),
}
