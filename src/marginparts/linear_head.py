"""The linear SVM on the codes: LIBLINEAR through scikit-learn, one for each class or label."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from marginparts._types import Array
from marginparts.backends._common import safe_ratio
from marginparts.labels import Labels


class Head(NamedTuple):
    """Hyperplanes: coefficients (p, r) and intercepts (p,), p = 1 for two classes."""

    coef: NDArray[np.float64]
    intercept: NDArray[np.float64]
    size: float | None = None

    def values(self, Z: Array) -> NDArray[np.float64]:
        """Return decision values (n, p)."""
        return np.asarray(_rows(Z, self.size) @ self.coef.T + self.intercept)


def _rows(Z: Array, size: float | None) -> NDArray[np.float64]:
    """Scale rows to length 1 each, or all by one size: C then means the same for any data."""
    rows = np.asarray(Z, dtype=np.float64)
    if size is not None:
        return rows / size
    return np.asarray(safe_ratio(rows, np.linalg.norm(rows, axis=1, keepdims=True)))


def fit_head(Z: Array, labels: Labels, C: float, *, normalize: bool = True, seed: int = 0) -> Head:
    """Train on the rows whose labels are known.

    Parameters
    ----------
    Z : (n, r)
    labels : Labels
        Of the same n rows. A class without a labeled row is never predicted.
    C : float
    normalize : bool
        Give every row length 1, or else only all rows together (root mean square).
    seed : int

    Returns
    -------
    Head
    """
    size = None
    if not normalize:
        size = float(np.sqrt(np.mean(np.sum(np.square(Z, dtype=np.float64), axis=1)))) or 1.0
    rows = _rows(Z, size)
    fit = _fit_labels if labels.multilabel else _fit_classes
    return fit(rows, labels, C, seed)._replace(size=size)


def _fit_classes(Z: NDArray[np.float64], labels: Labels, C: float, seed: int) -> Head:
    """One SVM for two classes, one a class for more."""
    rows = np.flatnonzero(labels.labeled)
    present, codes = np.unique(labels.codes[rows], return_inverse=True)
    svm = _svm(Z[rows], codes, C, seed)
    if len(labels.classes) == 2:
        return svm
    coef = np.zeros((len(labels.classes), Z.shape[1]))
    intercept = np.full(len(labels.classes), -np.inf)
    if len(present) == 2:  # one hyperplane speaks for both
        svm = Head(np.concatenate([-svm.coef, svm.coef]), np.repeat(svm.intercept, 2) * (-1, 1))
    coef[present], intercept[present] = svm.coef, svm.intercept
    return Head(coef, intercept)


def _fit_labels(Z: NDArray[np.float64], labels: Labels, C: float, seed: int) -> Head:
    """One SVM a label; a label that all or none of the samples have is always or never given."""
    coef = np.zeros((len(labels.classes), Z.shape[1]))
    intercept = np.full(len(labels.classes), -1.0)
    for k, task in enumerate(labels.tasks()):
        if len(np.unique(task.signs)) == 2:
            svm = _svm(Z[task.rows], task.signs, C, seed)
            coef[k], intercept[k] = svm.coef[0], svm.intercept[0]
        elif len(task.signs):
            intercept[k] = task.signs[0]
    return Head(coef, intercept)


def _svm(Z: NDArray[np.float64], y: NDArray[Any], C: float, seed: int) -> Head:
    from sklearn.svm import LinearSVC

    # the primal solver is the steadier one when there are more samples than columns
    dual = Z.shape[0] < Z.shape[1]
    svm = LinearSVC(C=C, dual=dual, tol=1e-3 if dual else 1e-2, max_iter=10_000, random_state=seed)
    svm.fit(Z, y)
    return Head(svm.coef_, np.atleast_1d(svm.intercept_))
