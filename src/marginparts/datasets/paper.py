"""The paper's data sets, read from a local folder."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from marginparts.datasets import _catalog, _formats
from marginparts.datasets._catalog import DamagedDataError, Entry, Folder, Kind

T = TypeVar("T")

#: Samples and their labels.
_Part: TypeAlias = tuple[Any, NDArray[np.int64]]


@dataclass(frozen=True, eq=False, repr=False)
class PaperData:
    """A data set of the paper.

    Training and validation examples are one pool: the paper splits it at random, five times.

    Attributes
    ----------
    name : str
    kind : {"binary", "multiway", "multilabel"}
    X_train : (n_train + n_validation, d) array or CSR array, float32
        The pool, nonnegative.
    y_train : (n_train + n_validation,) or (n_train + n_validation, c) int array
        Classes 0 to c - 1, or the indicator of the labels where there may be several.
    X_test : (m, d) array or CSR array, float32
    y_test : (m,) or (m, c) int array
    feature_names : (d,) array of str, or None
        The words, where they are known.
    class_names : (c,) array of str
    n_train, n_validation : int
        How many examples of the pool are for training and how many for validation.

    Examples
    --------
    >>> from marginparts.datasets import load_paper_data
    >>> news = load_paper_data("news")  # doctest: +SKIP
    >>> news.kind, news.X_train.shape  # doctest: +SKIP
    ('multiway', (11269, 53975))
    """

    name: str
    kind: Kind
    X_train: Any
    y_train: NDArray[np.int64]
    X_test: Any
    y_test: NDArray[np.int64]
    feature_names: NDArray[np.str_] | None
    class_names: NDArray[np.str_]
    n_train: int
    n_validation: int

    def __repr__(self) -> str:
        return (
            f"PaperData({self.name!r}, {self.kind}: {self.n_train} + {self.n_validation} + "
            f"{len(self.y_test)} examples, {self.X_train.shape[1]} columns, "
            f"{len(self.class_names)} classes)"
        )


class _Files:
    """The files of a data set. A complaint about one says which, and what to do."""

    def __init__(self, entry: Entry, data_dir: Folder) -> None:
        self.entry = entry
        self.data_dir = data_dir
        self.paths = _catalog.find_files(entry, data_dir)

    def read(self, file: str, reader: Callable[[Path], T]) -> T:
        path = self.paths[file]
        try:
            return reader(path)
        except _formats.UNREADABLE as error:
            reason = str(error) or type(error).__name__
            raise self.damaged(f"{path} cannot be read ({reason})") from error

    def damaged(self, complaint: str) -> DamagedDataError:
        return DamagedDataError(f"{complaint}: {_catalog.remedy(self.entry, self.data_dir)}.")

    def data(
        self, train: _Part, test: _Part, classes: NDArray[np.str_],
        words: NDArray[np.str_] | None = None,
    ) -> PaperData:  # fmt: skip
        """Refuse another data set under the same names, and files that do not belong together."""
        entry = self.entry
        wanted = (entry.n_train + entry.n_validation, entry.n_test)
        (n, *columns), (m, *columns_too) = train[0].shape, test[0].shape
        labels = (len(train[1]), len(test[1]))
        if not (n, m) == labels == wanted:
            raise self.damaged(
                f"{entry.name} in {_catalog.data_folder(self.data_dir) / entry.folder} has {n} + "
                f"{m} examples with {labels[0]} + {labels[1]} labels, and not {wanted[0]} + "
                f"{wanted[1]}"
            )
        if columns != columns_too or (words is not None and [len(words)] != columns):
            raise self.damaged(f"the files of {entry.name} do not agree on the number of columns")
        sizes = (entry.n_train, entry.n_validation)
        return PaperData(entry.name, entry.kind, *train, *test, words, classes, *sizes)


def load_paper_data(name: str, data_dir: Folder = None) -> PaperData:
    """Load a data set of the paper from a local folder.

    Parameters
    ----------
    name : {"mnist", "news", "aviation", "aviation-500", "aviation-counts"}
        See the notes.
    data_dir : path or None
        The folder of all data sets, see :func:`data_folder`. :func:`fetch` fills it.

    Returns
    -------
    PaperData

    Raises
    ------
    MissingDataError
        A file is not there. The message says which, where it was looked for, and how to get it.
    DamagedDataError
        A file cannot be read, or the data has another size than in the catalog.

    Notes
    -----
    ``"mnist"``
        Handwritten fours (class 0) and nines (class 1), gray levels in [0, 1], dense.
    ``"news"``
        20 Newsgroups by date in the form of J. Rennie's ``matlab`` archive: word counts.
        Words that are in no training document are left out, which gives the paper's 53975.
    ``"aviation"``
        Safety reports of the SIAM 2007 text mining competition with 22 labels, the bag of words
        of the LIBSVM collection with the values found there. Words that are in no training
        document are left out here too. Which word a column is, the collection does not say.
    ``"aviation-500"``
        A variant, not the paper's: the same reports, with a 1 for each of 500 selected words
        that occurs. Eleven training rows are empty.
    ``"aviation-counts"``
        A variant, not the paper's: counts of 10000 words for a fifth of the reports, divided in
        the paper's proportion.

    Examples
    --------
    >>> from marginparts.datasets import PAPER_DATA
    >>> [name for name, entry in PAPER_DATA.items() if entry.kind == "multilabel"]
    ['aviation', 'aviation-500', 'aviation-counts']
    """
    entry = _catalog.entry_named(name)
    return _LOADERS[name](_Files(entry, data_dir))


def _mnist(files: _Files) -> PaperData:
    def part(stem: str) -> _Part:
        images = files.read(f"{stem}-images-idx3-ubyte.gz", _formats.read_idx)
        digits = files.read(f"{stem}-labels-idx1-ubyte.gz", _formats.read_idx)
        if len(images) != len(digits):
            raise files.damaged(f"mnist has {len(images)} {stem} images and {len(digits)} labels")
        chosen = np.isin(digits, (4, 9))
        X = images[chosen].reshape(int(chosen.sum()), -1).astype(np.float32)
        X /= 255
        return X, (digits[chosen] == 9).astype(np.int64)

    return files.data(part("train"), part("t10k"), np.array(["4", "9"]))


def _news(files: _Files) -> PaperData:
    classes = files.read("classes.txt", _formats.read_class_map)
    words = files.read("vocabulary.txt.gz", _formats.read_words)

    def part(stem: str) -> _Part:
        X = files.read(f"{stem}_counts.npz", _formats.read_npz)
        y = files.read(f"{stem}_labels.npy", _formats.read_npy) - 1
        if X.shape[1] != len(words):
            raise files.damaged(f"news has counts of {X.shape[1]} words and names of {len(words)}")
        if y.size and (y.min() < 0 or y.max() >= len(classes)):
            raise files.damaged(f"news has {stem} labels other than 1 to {len(classes)}")
        return X, y

    (X_train, y_train), (X_test, y_test) = part("train"), part("test")
    used = _used_columns(X_train)
    return files.data((X_train[:, used], y_train), (X_test[:, used], y_test), classes, words[used])


def _aviation(files: _Files) -> PaperData:
    reader = partial(_formats.read_multilabel_svmlight, n_labels=files.entry.n_classes)
    X_train, y_train = files.read("tmc2007_train.svm.bz2", reader)
    X_test, y_test = files.read("tmc2007_test.svm.bz2", reader)
    X_test.resize((X_test.shape[0], X_train.shape[1]))
    used = _used_columns(X_train)
    train, test = (X_train[:, used], y_train), (X_test[:, used], y_test)
    return files.data(train, test, _label_numbers(files))


def _aviation_500(files: _Files) -> PaperData:
    def part(stem: str) -> _Part:
        X = files.read(f"{stem}_binary500.npz", _formats.read_npz)
        return X, _indicator(files, f"{stem}_labels.npz")

    words = files.read("features500.txt", _formats.read_words)
    return files.data(part("train"), part("test"), _label_numbers(files), words)


def _aviation_counts(files: _Files) -> PaperData:
    def part(stem: str) -> _Part:
        rows = files.read(f"{stem}_subset_rows.npy", _formats.read_npy)
        X = files.read(f"{stem}_subset_counts.npz", _formats.read_npz)
        Y = _indicator(files, f"{stem}_labels.npz")
        if rows.max(initial=0) >= len(Y):
            raise files.damaged(f"{files.entry.name} has {stem} rows past the last label")
        return X, Y[rows]

    words = files.read("vocabulary10000.txt.gz", _formats.read_words)
    return files.data(part("train"), part("test"), _label_numbers(files), words)


def _used_columns(X: Any) -> NDArray[np.intp]:
    return np.flatnonzero(np.bincount(X.indices, minlength=X.shape[1]))


def _indicator(files: _Files, file: str) -> NDArray[np.int64]:
    Y = files.read(file, _formats.read_npz).toarray().astype(np.int64)
    if Y.shape[1] != files.entry.n_classes:
        raise files.damaged(f"{file} has {Y.shape[1]} labels and not {files.entry.n_classes}")
    return Y


def _label_numbers(files: _Files) -> NDArray[np.str_]:
    """Return names for labels that have none."""
    return np.array([str(label) for label in range(1, files.entry.n_classes + 1)])


_LOADERS: dict[str, Callable[[_Files], PaperData]] = {
    "mnist": _mnist,
    "news": _news,
    "aviation": _aviation,
    "aviation-500": _aviation_500,
    "aviation-counts": _aviation_counts,
}
