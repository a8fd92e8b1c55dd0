"""Preprocessing by name, so that what a method brings is never mixed with what this brings.

Whatever is learned (only the idf weights are) is learned on the training rows.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.preprocessing import normalize

from marginparts._types import Data
from marginparts.weighting import idf_of, l2_log, log, weighted_rows

Map = Callable[[Data], Data]


def _as_it_is(X_train: Data) -> Map:
    return lambda X: X


def _l1(X_train: Data) -> Map:
    """Rows with sum one."""
    return lambda X: normalize(X, "l1")


def _l2_log(X_train: Data) -> Map:
    """Rows of log(1 + x) with length one."""
    return l2_log


def _tf_idf(X_train: Data) -> Map:
    """Rows of log(1 + x) with length one after weighting each word by its idf."""
    weigh = idf_weighting(X_train)
    return lambda X: weigh(log(X))


def idf_weighting(X_train: Data) -> Map:
    """Return a map that weighs columns by their idf in the training rows, to rows of length one."""
    idf = idf_of(X_train)
    return lambda X: weighted_rows(X, idf)


def _hellinger(X_train: Data) -> Map:
    """Rows of square roots with length one."""
    return lambda X: normalize(np.sqrt(X) if isinstance(X, np.ndarray) else X.sqrt(), "l2")


PREPROCESSING: dict[str, Callable[[Data], Map]] = {
    "counts": _as_it_is,
    "l1": _l1,
    "l2-log": _l2_log,
    "tf-idf": _tf_idf,
    "hellinger": _hellinger,
}


def preprocess(name: str, X_train: Data, *others: Data) -> list[Data]:
    """Return the training rows and other rows, preprocessed alike.

    Parameters
    ----------
    name : {"counts", "l1", "l2-log", "tf-idf", "hellinger"}
        ``"counts"`` leaves the data as it is.
    X_train : (n, d) array or sparse matrix
    *others : (m, d) arrays or sparse matrices

    Returns
    -------
    list
        As many as were given, of the same kind.

    Examples
    --------
    >>> import numpy as np
    >>> preprocess("l1", np.array([[1.0, 3.0]]), np.array([[2.0, 0.0]]))
    [array([[0.25, 0.75]]), array([[1., 0.]])]
    """
    transform = PREPROCESSING[name](X_train)
    return [transform(X) for X in (X_train, *others)]
