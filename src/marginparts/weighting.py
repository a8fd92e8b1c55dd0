"""Weighting of counts before they are factorized, and vectors in units of their own."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.preprocessing import normalize
from sklearn.utils import gen_batches
from sklearn.utils.extmath import row_norms

from marginparts._types import Array, Data

#: Rows are taken for counts of many things when they have at most this share of nonzeros.
_SPARSE = 0.1

#: The slope of entries against idf (logarithms) that shows that they were weighted by it: it is
#: 0.7 to 1 in texts weighted by idf, and -0.3 to 0 in others.
_WEIGHTED = 0.4

#: Columns whose entries are this share of the others in their rows, or less, were made small.
_SMALL = 1 / 4

#: So many rows tell what the slope is.
_ENOUGH_ROWS = 20_000

#: Entries of vectors that are looked at at a time.
_AT_ONCE = 1 << 20


def log(X: Any) -> Any:
    """Return log(1 + x) of every entry; sparse stays sparse."""
    return X.log1p() if sp.issparse(X) else np.log1p(X)


def l2_log(X: Any) -> Any:
    """Return rows of log(1 + x) with length one: long samples weigh no more than short ones."""
    return normalize(log(X), "l2")


def hellinger(X: Data) -> sp.csr_array:
    """Return the square roots of X (n, d) in rows of length 1, in float64; empty rows stay so."""
    seen = sp.csr_array(X).astype(np.float64)
    mass = np.asarray(seen.sum(axis=1)).ravel()
    seen.data = np.sqrt(seen.data / np.repeat(mass, np.diff(seen.indptr)))
    return seen


def idf_of(X: Any) -> Array:
    """Return each column's weight (d,): the larger, the fewer samples have it."""
    n, d = X.shape
    documents = np.bincount(sp.csr_array(X).indices, minlength=d)
    return np.asarray(1 + np.log((1 + n) / (1 + documents)), dtype=X.dtype)


def weighted_rows(X: Any, weights: Array) -> Any:
    """Return rows of weighted columns with length one."""
    return normalize(X @ sp.diags_array(weights, dtype=X.dtype), "l2")


def are_counts(X: Any) -> bool:
    """Whether rows have so few nonzeros that they are taken for counts of many things."""
    nonzeros = np.count_nonzero(X) if isinstance(X, np.ndarray) else X.nnz
    return bool(nonzeros <= _SPARSE * X.shape[0] * X.shape[1])


def usual_weights(X: Any) -> Array | None:
    """Return the weights (d,) of columns that suit a linear classifier: idf for rows of counts.

    None where columns should count alike: for dense data (images, spectra), ones. Rows that were
    weighted by idf already get ones too: within such a row, entries grow with the idf of their
    columns, and within rows of counts, however damped or scaled, they do not.

    Examples
    --------
    >>> usual_weights(np.ones((4, 3))) is None
    True
    """
    if not are_counts(X):
        return None
    rows = sp.csr_array(X)
    weights = idf_of(rows)
    some, logs = rows[: min(rows.shape[0], _ENOUGH_ROWS)], np.log(weights)
    if (small := made_small(some)).any():  # these do not tell how others were weighted
        some, logs = sp.csr_array(some[:, ~small]), logs[~small]
    return np.ones_like(weights) if _slope(some, logs) > _WEIGHTED else weights


def made_small(X: sp.csr_array) -> NDArray[np.bool_]:
    """Return the columns (d,) whose entries are, on average, far below the others of their rows.

    So are those to which somebody gave small weights, and hardly any others among counts.
    """
    below = np.bincount(X.indices, _within_rows(X, np.log(X.data.astype(np.float64))), X.shape[1])
    return np.asarray(below < np.log(_SMALL) * np.bincount(X.indices, minlength=X.shape[1]))


def _slope(X: sp.csr_array, logs: Array) -> float:
    """Return by how much the logarithm of an entry grows with that of its column, within rows."""
    x, y = logs[X.indices].astype(np.float64), np.log(X.data.astype(np.float64))
    x, y = _within_rows(X, x), _within_rows(X, y)
    spread = float(x @ x)
    return float(x @ y) / spread if spread > 0 else 0.0


def _within_rows(X: sp.csr_array, values: Array) -> Array:
    """Return values of the entries of X less the mean of those of their row."""
    counts = np.diff(X.indptr)
    rows = np.repeat(np.arange(X.shape[0]), counts)
    return values - (np.bincount(rows, values, X.shape[0]) / np.maximum(counts, 1))[rows]


def has_unit_rows(X: Any) -> bool:
    """Whether all rows but empty ones have length one already."""
    lengths = row_norms(X)
    return bool(np.allclose(lengths[lengths > 0], 1, rtol=1e-4))


def in_own_units(vectors: Array) -> Array:
    """Return vectors (n, k) in float32, each in a unit, a power of 2, in which it fits that type.

    The largest entry of each is near 1 then; vectors in float32 fit as they are.
    """
    if vectors.dtype == np.float32:
        return vectors
    found = np.empty(vectors.shape, dtype=np.float32)
    dtype = np.longdouble if vectors.dtype == np.longdouble else np.float64
    for rows in gen_batches(len(vectors), max(1, _AT_ONCE // max(1, vectors.shape[1]))):
        some = vectors[rows].astype(dtype, copy=False)
        _, exponents = np.frexp(np.abs(some).max(axis=1, initial=0.0, keepdims=True))
        with np.errstate(over="ignore"):  # there is no unit for an infinite entry
            found[rows] = np.ldexp(some, -exponents)
    return found
