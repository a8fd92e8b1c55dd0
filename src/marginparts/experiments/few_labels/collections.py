"""The collections of the race: counts or intensities, training and test rows, labels.

Each has 6,000 training rows and 2,000 test rows at most, drawn once with the seed 0, so that a
method is never judged by its patience. Training rows without an entry are left out, and of texts
the words that no training row has.
"""

from __future__ import annotations

import json
import os
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.preprocessing import normalize

from marginparts._types import Data
from marginparts.datasets import data_folder, load_paper_data
from marginparts.datasets._catalog import (
    DamagedDataError,
    MissingDataError,
    entry_named,
    find_files,
)
from marginparts.datasets._formats import UNREADABLE, read_idx
from marginparts.experiments.data import load_data
from marginparts.experiments.preprocessing import preprocess

#: Rows at most, and the seed of the draw.
MOST_TRAINING, MOST_TEST, SEED = 6000, 2000, 0

#: The subfolder of the data folder with one folder a collection.
FOLDER = "fewlabel"
_FILES = ("meta.json", "X_train.npz", "y_train.npy", "X_test.npz", "y_test.npy")

#: The folders that the race expects there, with whether they are texts.
_FOLDERS = {
    "sms_spam": True, "usps": False, "webkb": True, "yahoo_arts": True, "fsdd": False,
    "ohsumed": True,
}  # fmt: skip

#: Those from elsewhere: embedded or of the paper, by the name of the data they are made of.
_OTHERS = {
    "digits": (None, False), "docstrings": (None, True), "mnist-49": ("mnist", False),
    "mnist": ("mnist", False), "aviation-counts": ("aviation-counts", True), "news": ("news", True),
}  # fmt: skip

#: In the order in which they are shown: texts, several labels a sample, images and sound.
COLLECTIONS = (
    "sms_spam", "webkb", "docstrings", "ohsumed", "news", "yahoo_arts", "aviation-counts",
    "digits", "usps", "mnist-49", "mnist", "fsdd",
)  # fmt: skip

#: How rows are prepared: texts in two ways, all else by giving each row length one.
TEXT_ROWS, OTHER_ROWS = ("log", "tf-idf"), ("unit",)

Path_ = str | os.PathLike[str] | None


class Collection(NamedTuple):
    """Rows as they were counted or measured, with classes (n,) or an indicator of labels (n, c)."""

    name: str
    X_train: Data
    y_train: NDArray[np.int64]
    X_test: Data
    y_test: NDArray[np.int64]

    @property
    def n_classes(self) -> int:
        """How many classes or labels there are."""
        if self.y_train.ndim == 2:
            return int(self.y_train.shape[1])
        return int(max(self.y_train.max(), self.y_test.max())) + 1


def found_folders(data_dir: Path_ = None) -> list[str]:
    """Return the names of all collections: those of the race, and what else lies beside them."""
    folder = data_folder(data_dir) / FOLDER
    beside = sorted(path.parent.name for path in folder.glob("*/meta.json"))
    return list(dict.fromkeys((*COLLECTIONS, *beside)))


def missing_collection(name: str, data_dir: Path_ = None) -> str | None:
    """Return why a collection cannot be had, in one sentence, or None."""
    if name in _OTHERS:
        source = _OTHERS[name][0]
        try:
            if source is not None:
                find_files(entry_named(source), data_dir)
        except MissingDataError as error:
            return str(error)
        return None
    folder = data_folder(data_dir) / FOLDER / name
    absent = [file for file in _FILES if not (folder / file).is_file()]
    return f"{name} is left out: {folder} has no {absent[0]}." if absent else None


def are_texts(name: str, data_dir: Path_ = None) -> bool:
    """Whether the entries of a collection are counts of words."""
    if name in _OTHERS:
        return _OTHERS[name][1]
    if name in _FOLDERS:
        return _FOLDERS[name]
    return _meta(data_folder(data_dir) / FOLDER / name).get("kind") in ("text", "multilabel")


def _meta(folder: Path) -> dict[str, Any]:
    try:
        return dict(json.loads((folder / "meta.json").read_text("utf-8")))
    except (OSError, ValueError) as error:
        raise DamagedDataError(f"{folder / 'meta.json'} cannot be read ({error}).") from error


@cache
def load_collection(name: str, data_dir: str | None = None) -> Collection:
    """Return a collection, with as many rows as the race takes."""
    X_train, y_train, X_test, y_test = _whole(name, data_dir)
    some, others = _draw(X_train, MOST_TRAINING), _draw(X_test, MOST_TEST)
    X_train, y_train, X_test, y_test = X_train[some], y_train[some], X_test[others], y_test[others]
    filled = np.flatnonzero(np.asarray(X_train.sum(axis=1)).ravel() > 0)
    X_train, y_train = X_train[filled], y_train[filled]
    if are_texts(name, data_dir):
        used = np.flatnonzero(np.asarray(X_train.sum(axis=0)).ravel() > 0)
        X_train, X_test = (sp.csr_array(X)[:, used] for X in (X_train, X_test))
    else:
        X_train, X_test = (X.toarray() if sp.issparse(X) else X for X in (X_train, X_test))
    return Collection(
        name, X_train.astype(np.float32), y_train.astype(np.int64),
        X_test.astype(np.float32), y_test.astype(np.int64),
    )  # fmt: skip


def _draw(X: Any, most: int) -> NDArray[np.intp]:
    """Return the rows that take part, in their own order."""
    n = X.shape[0]
    return np.sort(np.random.default_rng(SEED).permutation(n)[:most])


def _whole(name: str, data_dir: Path_) -> tuple[Any, Any, Any, Any]:
    """Return all training rows and test rows with their labels."""
    if name == "digits":
        return _digits()
    if name == "mnist":
        return _mnist(data_dir)
    if name in _OTHERS:
        source = _OTHERS[name][0]
        data = load_data(name) if source is None else load_paper_data(source, data_dir)
        return data.X_train, data.y_train, data.X_test, data.y_test
    missing = missing_collection(name, data_dir)
    if missing is not None:
        raise MissingDataError(missing)
    folder = data_folder(data_dir) / FOLDER / name
    try:
        X = [sp.csr_array(sp.load_npz(folder / f"X_{part}.npz")) for part in ("train", "test")]
        y = [np.load(folder / f"y_{part}.npy") for part in ("train", "test")]
    except UNREADABLE as error:
        raise DamagedDataError(f"A file in {folder} cannot be read ({error}).") from error
    return X[0], y[0], X[1], y[1]


def _digits() -> tuple[Any, Any, Any, Any]:
    """scikit-learn's ten digits, a quarter of them for the test."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    order = np.random.default_rng(SEED).permutation(len(digits.target))
    n_test = len(order) // 4
    train, test = order[n_test:], order[:n_test]
    return digits.data[train], digits.target[train], digits.data[test], digits.target[test]


def _mnist(data_dir: Path_) -> tuple[Any, Any, Any, Any]:
    """All ten digits; `load_paper_data` has the two of the paper."""
    files = find_files(entry_named("mnist"), data_dir)
    found = []
    for stem in ("train", "t10k"):
        images = read_idx(files[f"{stem}-images-idx3-ubyte.gz"])
        found += [images.reshape(len(images), -1), read_idx(files[f"{stem}-labels-idx1-ubyte.gz"])]
    return tuple(found)  # type: ignore[return-value]


@lru_cache(maxsize=4)
def prepared_rows(name: str, rows: str, data_dir: str | None = None) -> tuple[Data, Data]:
    """Return training and test rows, prepared in a way of `TEXT_ROWS` or `OTHER_ROWS`."""
    data = load_collection(name, data_dir)
    if rows == "unit":
        return normalize(data.X_train), normalize(data.X_test)
    train, test = preprocess({"log": "l2-log"}.get(rows, rows), data.X_train, data.X_test)
    return train, test
