"""Weighting of counts before they are factorized."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize
from sklearn.utils.extmath import row_norms

from marginparts._types import Array


def log(X: Any) -> Any:
    """Return log(1 + x) of every entry; sparse stays sparse."""
    return X.log1p() if sp.issparse(X) else np.log1p(X)


def l2_log(X: Any) -> Any:
    """Return rows of log(1 + x) with length one: long samples weigh no more than short ones."""
    return normalize(log(X), "l2")


def idf_of(X: Any) -> Array:
    """Return each column's weight (d,): the larger, the fewer samples have it."""
    n, d = X.shape
    documents = np.bincount(sp.csr_array(X).indices, minlength=d)
    return np.asarray(1 + np.log((1 + n) / (1 + documents)), dtype=X.dtype)


def weighted_rows(X: Any, weights: Array) -> Any:
    """Return rows of weighted columns with length one."""
    return normalize(X @ sp.diags_array(weights, dtype=X.dtype), "l2")


def has_unit_rows(X: Any) -> bool:
    """Whether all rows but empty ones have length one, so that scaling them again is in vain."""
    lengths = row_norms(X)
    return bool(np.allclose(lengths[lengths > 0], 1, rtol=1e-4))
