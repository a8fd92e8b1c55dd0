"""The data of the benchmarks: 20 Newsgroups where it is at hand, else a matrix drawn to match it.

The environment variable MARGINPARTS_DATA names the folder; the experiments use the same one.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

N_TRAIN, N_TEST, N_WORDS, N_CLASSES = 11_269, 7_505, 53_975, 20

#: Documents drawn at a time: a few million words, whatever the size of the matrix.
_DOCUMENTS = 20_000


class Corpus(NamedTuple):
    """Documents by words, with a class for each document."""

    data: str
    X: sp.csr_array
    y: np.ndarray
    X_test: sp.csr_array
    y_test: np.ndarray

    @property
    def described(self) -> dict[str, Any]:
        """The columns that say what was factorized."""
        return described(self.data, self.X)


def described(data: str, X: Any) -> dict[str, Any]:
    """Return the columns that say what was factorized."""
    return {"data": data, "rows": X.shape[0], "columns": X.shape[1], "nonzeros": X.nnz}


#: The names of those columns.
DESCRIBED = ("data", "rows", "columns", "nonzeros")


def news_counts(quick: bool = False) -> Corpus:
    """Return word counts in float32, without the words that no training document has."""
    folder = _news_folder()
    if folder is None:
        X, X_test, y, y_test = _synthetic_news()
        data = "synthetic counts"
    else:
        X, X_test = (_counts(folder / f"{part}_counts.npz") for part in ("train", "test"))
        y, y_test = (np.load(folder / f"{part}_labels.npy") for part in ("train", "test"))
        data = "20 Newsgroups counts"
    return _trimmed(data, X, y.astype(int), X_test, y_test.astype(int), quick)


def news_l2_log(quick: bool = False) -> Corpus:
    """Return rows of length 1 of ``log(1 + count)``, the data for classifiers."""
    # it loads scikit-learn, which must come after `common`
    from marginparts.experiments.preprocessing import preprocess

    corpus = news_counts(quick)
    X, X_test = preprocess("l2-log", corpus.X, corpus.X_test)
    return corpus._replace(data=corpus.data.replace("counts", "l2-log"), X=X, X_test=X_test)


def partly_labeled(y: np.ndarray, share: float) -> np.ndarray:
    """Return labels that are known for a random share of the samples, and -1 for the rest."""
    known = np.random.default_rng(0).permutation(len(y))[: round(share * len(y))]
    labels = np.full(len(y), -1)
    labels[known] = y[known]
    return labels


def power_law_counts(n: int, d: int, seed: int = 0, log_length: float = 4.9) -> sp.csr_array:
    """Return word counts of random documents, like text in all that matters for speed.

    The k-th most frequent word has a probability in proportion to ``k ** -1.05``; lengths of
    documents are lognormal. Documents are drawn in chunks, so that little more than the result is
    held in memory.

    Parameters
    ----------
    n, d : int
        Documents and words.
    seed : int
    log_length : float
        Mean of the logarithm of a document's length; 4.9 is that of 20 Newsgroups.
    """
    rng = np.random.default_rng(seed)
    heights = np.cumsum(np.arange(1, d + 1) ** -1.05)
    # frequent words all over the vocabulary, as in an alphabetical one
    place = rng.permutation(d)
    indices, data, nonzeros = [], [], [np.zeros(1, np.int64)]
    for first in range(0, n, _DOCUMENTS):
        size = min(_DOCUMENTS, n - first)
        lengths = (rng.lognormal(log_length, 0.8, size) + 5).astype(np.int64)
        drawn = np.searchsorted(heights, rng.random(lengths.sum()) * heights[-1])
        keys = np.repeat(np.arange(size) * d, lengths) + place[drawn]
        keys.sort()
        firsts = np.flatnonzero(np.diff(keys, prepend=-1))
        document, word = np.divmod(keys[firsts], d)
        indices.append(word.astype(np.int32))
        data.append(np.diff(firsts, append=len(keys)).astype(np.float32))
        nonzeros.append(np.bincount(document, minlength=size))
    indptr = np.cumsum(np.concatenate(nonzeros)).astype(np.int32)
    return sp.csr_array((np.concatenate(data), np.concatenate(indices), indptr), shape=(n, d))


def _news_folder() -> Path | None:
    """Return the folder of the data, or say once that it is missing."""
    folder = Path(os.environ.get("MARGINPARTS_DATA", "")) / "20newsgroups"
    if (folder / "train_counts.npz").exists():
        return folder
    print("MARGINPARTS_DATA has no 20newsgroups: a synthetic matrix of its shape is used instead.")
    return None


def _counts(path: Path) -> sp.csr_array:
    return sp.csr_array(sp.load_npz(path)).astype(np.float32)


def _synthetic_news() -> tuple[sp.csr_array, sp.csr_array, np.ndarray, np.ndarray]:
    X = power_law_counts(N_TRAIN + N_TEST, N_WORDS)
    y = np.random.default_rng(1).integers(N_CLASSES, size=N_TRAIN + N_TEST)
    return X[:N_TRAIN], X[N_TRAIN:], y[:N_TRAIN], y[N_TRAIN:]


def _trimmed(data: str, X: Any, y: Any, X_test: Any, y_test: Any, quick: bool) -> Corpus:
    """Drop words without a training document; keep few documents for a quick run."""
    if quick:
        few = np.random.default_rng(0).permutation(X.shape[0])[:800]
        X, y, X_test, y_test = X[few], y[few], X_test[:400], y_test[:400]
    used = np.flatnonzero(np.bincount(X.indices, minlength=X.shape[1]))
    X, X_test = (_canonical(A[:, used]) for A in (X, X_test))
    return Corpus(data, X, y, X_test, y_test)


def _canonical(X: Any) -> sp.csr_array:
    """Return X with sorted indices of 32 bits, as every method wants it."""
    X = sp.csr_array(X)
    X.sum_duplicates()
    X.eliminate_zeros()
    indices, indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return sp.csr_array((X.data, indices, indptr), shape=X.shape)
