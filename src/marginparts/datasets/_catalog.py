"""The paper's data sets: what they are, which files they have, and where these are."""

import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["binary", "multiway", "multilabel"]
Folder: TypeAlias = str | os.PathLike[str] | None

#: The environment variable that names the folder of all data sets.
VARIABLE = "MARGINPARTS_DATA"


class DataError(Exception):
    """A data set cannot be had; the message is one sentence that says what to do."""


class UnknownDataError(DataError, ValueError):
    """There is no data set of that name."""


class MissingDataError(DataError, FileNotFoundError):
    """A file of a data set is not where it was looked for."""


class DamagedDataError(DataError, ValueError):
    """A file of a data set cannot be read, or is not what it should be."""


class DownloadError(DataError, OSError):
    """A data set could not be downloaded or written."""


@dataclass(frozen=True)
class Entry:
    """What is known of a data set before it is read.

    Numbers of examples are as in the paper's Table 1 for its three data sets. The files lie in a
    subfolder of the data folder; text may also be stored plain, or compressed otherwise.
    """

    name: str
    summary: str
    kind: Kind
    n_train: int
    n_validation: int
    n_test: int
    n_columns: int
    n_classes: int
    folder: str
    files: tuple[str, ...]
    downloadable: bool = True


_ENTRIES = (
    Entry(
        "mnist", "handwritten 4 v 9", "binary",
        5000, 6791, 1991, 784, 2, "mnist",
        (
            "train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz",
            "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz",
        ),
    ),
    Entry(
        "news", "20 Newsgroups, word counts", "multiway",
        9007, 2262, 7505, 53975, 20, "20newsgroups",
        (
            "train_counts.npz", "train_labels.npy", "test_counts.npz", "test_labels.npy",
            "classes.txt", "vocabulary.txt.gz",
        ),
    ),
    Entry(
        "aviation", "safety reports, all words", "multilabel",
        12912, 8607, 7077, 28426, 22, "siam2007",
        ("tmc2007_train.svm.bz2", "tmc2007_test.svm.bz2"),
    ),
    Entry(
        "aviation-500", "variant: 500 words, 0 or 1", "multilabel",
        12912, 8607, 7077, 500, 22, "siam2007",
        (
            "train_binary500.npz", "train_labels.npz", "test_binary500.npz", "test_labels.npz",
            "features500.txt",
        ),
        downloadable=False,
    ),
    Entry(
        "aviation-counts", "variant: counts of a fifth", "multilabel",
        2583, 1722, 1389, 10000, 22, "siam2007",
        (
            "train_subset_counts.npz", "train_subset_rows.npy", "train_labels.npz",
            "test_subset_counts.npz", "test_subset_rows.npy", "test_labels.npz",
            "vocabulary10000.txt.gz",
        ),
        downloadable=False,
    ),
)  # fmt: skip

#: The data sets by name.
PAPER_DATA: dict[str, Entry] = {entry.name: entry for entry in _ENTRIES}


def entry_named(name: str) -> Entry:
    """Return the entry of a data set."""
    if name not in PAPER_DATA:
        known = ", ".join(PAPER_DATA)
        raise UnknownDataError(f"There is no data set {name!r}: choose one of {known}.")
    return PAPER_DATA[name]


def data_folder(data_dir: Folder = None) -> Path:
    """Return the folder that holds the data sets, whether it exists or not.

    Parameters
    ----------
    data_dir : path or None
        The folder itself. If None, the environment variable ``MARGINPARTS_DATA`` names it; if
        that is not set, it is a cache folder of the user.

    Returns
    -------
    Path

    Examples
    --------
    >>> from marginparts.datasets import data_folder
    >>> data_folder("elsewhere").as_posix()
    'elsewhere'
    """
    if chosen := data_dir or os.environ.get(VARIABLE):
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        cache = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    else:
        cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "marginparts"


def find_files(entry: Entry, data_dir: Folder = None) -> dict[str, Path]:
    """Return the path of every file of a data set, or say which one is missing."""
    folder = data_folder(data_dir) / entry.folder
    found = {}
    for file in entry.files:
        plain = file.removesuffix(".gz").removesuffix(".bz2")
        # the file itself, or the same text plain or compressed otherwise
        candidates = (folder / name for name in (file, plain, f"{plain}.gz", f"{plain}.bz2"))
        path = next((path for path in candidates if path.is_file()), None)
        if path is None:
            raise MissingDataError(
                f"{entry.name} needs {file}, which is not in {folder}: {remedy(entry, data_dir)}."
            )
        found[file] = path
    return found


def remedy(entry: Entry, data_dir: Folder = None) -> str:
    """Return what to do when a file is missing or damaged."""
    place = f"set {VARIABLE} to a folder that has it in its subfolder {entry.folder}"
    if not entry.downloadable:
        return f"this data set cannot be downloaded, so {place}"
    option = f" --data-dir {shlex.quote(os.fspath(data_dir))}" if data_dir else ""
    return f"run 'marginparts data fetch {entry.name}{option}', or {place}"
