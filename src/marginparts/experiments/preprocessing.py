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


def idf_weighting(X_train: Data) -> Map:
    """Return a map that weighs columns by their idf in the training rows, to rows of length one."""
    idf = idf_of(X_train)
    return lambda X: weighted_rows(X, idf)


def _tf_idf(X_train: Data) -> Map:
    weigh = idf_weighting(X_train)
    return lambda X: weigh(log(X))


def _hellinger(X: Data) -> Data:
    return normalize(np.sqrt(X) if isinstance(X, np.ndarray) else X.sqrt(), "l2")


#: From training rows to a map: the data as it is; rows with sum one; rows of log(1 + x) with
#: length one, and the same after weighting each word by its idf; rows of roots with length one.
PREPROCESSING: dict[str, Callable[[Data], Map]] = {
    "counts": lambda X_train: lambda X: X,
    "l1": lambda X_train: lambda X: normalize(X, "l1"),
    "l2-log": lambda X_train: l2_log,
    "tf-idf": _tf_idf,
    "hellinger": lambda X_train: _hellinger,
}


def preprocess(name: str, X_train: Data, *others: Data) -> list[Data]:
    """Return the training rows and other rows, preprocessed alike.

    Examples
    --------
    >>> import numpy as np
    >>> preprocess("l1", np.array([[1.0, 3.0]]), np.array([[2.0, 0.0]]))
    [array([[0.25, 0.75]]), array([[1., 0.]])]
    """
    transform = PREPROCESSING[name](X_train)
    return [transform(X) for X in (X_train, *others)]
