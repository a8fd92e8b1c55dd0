"""Rows that are given several times, as one row with the sum of their weights.

The loss of a row given twice is that of a row with weight 2, and the SVMs behind the directions
treat both alike. But a random start depends on a row's place. So where rows are weighted, or
at least half of them repeat others, those that are the same in data and label become one, in an
order that depends on what is in them and not on where they stand. Then weights and repeats are the
same fit, to the last bit; for classifiers up to five copies of each row, on average. Other data is
left as it is, and so are fits from a start that was given.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from marginparts._types import Array
from marginparts.labels import Labels, encode_labels
from marginparts.rows.alike import in_order, row_numbers

#: Copies of each row, on average, that are not too many to be made.
_COPIES = 5


class Together(NamedTuple):
    """The rows (m,) that stand for all, which of them each of n rows is, and what they count."""

    rows: NDArray[np.intp]
    group: NDArray[np.intp]
    weights: Array
    shares: Array

    def gathered(self, S: sp.csr_array) -> sp.csr_array:
        """Return dual coefficients (m, 2p): the sums of those of the same rows."""
        return sp.csr_array(self._members(np.ones(len(self.group))) @ S)

    def spread(self, S: sp.csr_array | None) -> sp.csr_array | None:
        """Return dual coefficients (n, 2p) whose sums are these; heavier rows have more of them."""
        if S is None:
            return None
        return sp.csr_array(self._members(self.shares).T @ S).astype(S.dtype)

    def _members(self, values: Array) -> sp.csr_array:
        n = len(self.group)
        return sp.csr_array((values, (self.group, np.arange(n))), shape=(len(self.rows), n))

    def data(self, X: Any) -> Any:
        """Return the rows (m, d) of data (n, d)."""
        return X[self.rows]

    def labels(self, y: Any) -> Any:
        """Return the labels (m,) of a y (n,), as it was given."""
        return None if y is None else _safe_indexing(y, self.rows)


def together(X: Any, y: Any, weights: Array | None) -> Together | None:
    """Put rows together that are the same; None where neither weights nor repeats ask for it.

    Parameters
    ----------
    X : (n, d) trusted data
    y : labels (n,) or (n, c), or None
    weights : (n,) array, larger than 0, or None
    """
    n = X.shape[0]
    keys = [row_numbers(X, stream) for stream in (0, 1)]
    if weights is None and 2 * len(np.unique(keys[0])) > n:
        return None
    if y is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # whoever reads them in earnest says so
            codes = encode_labels(y, n).codes.reshape(n, -1)
        own = [row_numbers(codes.astype(np.float64), stream) for stream in (2, 3)]
        keys = [key + other for key, other in zip(keys, own, strict=True)]
    order, firsts = in_order(keys)
    group = np.empty(n, dtype=np.intp)
    group[order] = np.cumsum(firsts) - 1
    counts = np.ones(n) if weights is None else weights
    sums = np.bincount(group, counts).astype(np.float64)
    return Together(order[firsts], group, sums, counts / sums[group])


class Copies(NamedTuple):
    """Rows, each as often as it counts (m,), and the group of the same ones each is in (m,)."""

    rows: NDArray[np.intp]
    groups: NDArray[np.intp]

    def data(self, X: Any) -> Any:
        """Return all copies (m, d) of rows (n, d)."""
        return X[self.rows]

    def labels(self, labels: Labels) -> Labels:
        """Return the labels of all copies: each counts 1."""
        return replace(labels.take(self.rows), weights=None, groups=self.groups)

    def gathered(self, S: sp.csr_array, n: int) -> sp.csr_array:
        """Return dual coefficients (n, 2p): the sums of those of the copies (m, 2p)."""
        m = len(self.rows)
        copied = sp.csr_array((np.ones(m), (self.rows, np.arange(m))), shape=(n, m))
        return sp.csr_array(copied @ S).astype(S.dtype)


def copies(X: Any, labels: Labels) -> Copies | None:
    """Give rows as often as they count, where they are mostly repeats, and None otherwise.

    Classifiers whose teachers see each row once are to see repeats, whether they are rows or
    weights. Weights must be whole numbers, and each row come twice to five times on average: where
    they come more often, as answers to a few questions do, new samples will repeat them, too, and
    there is no need to hide copies together.
    """
    n, weights = X.shape[0], labels.weights
    counts = np.ones(n, dtype=np.intp)
    if weights is not None:
        counts = np.rint(weights).astype(np.intp)
        if not np.array_equal(counts, weights):
            return None
    keys = [row_numbers(X, stream) for stream in (0, 1)]
    _, group = np.unique(keys[0], return_inverse=True)
    if not 2 * (distinct := int(group.max()) + 1) <= counts.sum() <= _COPIES * distinct:
        return None
    codes = labels.codes.reshape(n, -1)
    told = codes if labels.folds is None else np.column_stack([codes, labels.folds])
    own = [row_numbers(told.astype(np.float64), stream) for stream in (2, 3)]
    order = np.lexsort([key + other for key, other in zip(keys, own, strict=True)])
    rows = np.repeat(order, counts[order])
    return Copies(rows, group.ravel()[rows])
