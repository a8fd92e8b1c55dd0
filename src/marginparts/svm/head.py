"""The linear SVM on the codes, one for each class or label: exact, and fast for few columns."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.extmath import row_norms

from marginparts.backends._common import inverse_or_zero, safe_ratio
from marginparts.labels import Labels
from marginparts.svm._newton import squared_hinge_weights
from marginparts.svm.class_weights import ClassWeight, row_weights, task_weights

#: Up to here the Gram matrices of Newton's method are cheap; beyond it LIBLINEAR takes over.
_FEW_COLUMNS = 1000


class Head(NamedTuple):
    """Hyperplanes: coefficients (p, r) and intercepts (p,), p = 1 for two classes."""

    coef: NDArray[np.float64]
    intercept: NDArray[np.float64]
    size: float | None = None

    def values(self, Z: Any) -> NDArray[np.float64]:
        """Return decision values (n, p)."""
        return np.asarray(_rows(Z, self.size) @ self.coef.T + self.intercept)


def _rows(Z: Any, size: float | None) -> Any:
    """Scale rows to length 1 each, or all by one size: C then means the same for any data."""
    rows = Z.astype(np.float64)
    if size is not None:
        return rows * (1 / size)
    lengths = row_norms(rows)
    if sp.issparse(rows):
        return sp.diags_array(inverse_or_zero(lengths, lengths.dtype)) @ rows
    return safe_ratio(rows, lengths[:, None])


def fit_head(
    Z: Any,
    labels: Labels,
    C: float,
    *,
    normalize: bool = True,
    class_weight: ClassWeight = None,
    seed: int = 0,
) -> Head:
    """Train on the rows whose labels are known.

    Parameters
    ----------
    Z : (n, r) array or sparse matrix
    labels : Labels
        Of the same n rows; those without a label are left out. A class without a labeled row is
        never predicted.
    C : float
    normalize : bool
        Give every row length 1, or else only all rows together (root mean square).
    class_weight : None, "balanced" or dict
        How much the samples of each class count.
    seed : int

    Returns
    -------
    Head
    """
    known = np.flatnonzero(labels.labeled)
    Z, labels = Z[known], labels.take(known)
    size = None
    if not normalize:
        size = float(np.sqrt(np.mean(row_norms(Z.astype(np.float64), squared=True)))) or 1.0
    rows = _rows(Z, size)
    fit = _fit_labels if labels.multilabel else _fit_classes
    return fit(rows, labels, C, class_weight, seed)._replace(size=size)


def _fit_classes(Z: Any, labels: Labels, C: float, class_weight: ClassWeight, seed: int) -> Head:
    """One SVM for two classes, one a class for more."""
    present, codes = np.unique(labels.codes, return_inverse=True)
    if len(present) < 2:  # there is nothing to tell apart
        return _constant(labels, present, Z.shape[1])
    positive = [codes == 1] if len(present) == 2 else [codes == k for k in range(len(present))]
    cost = C * row_weights(labels, class_weight)
    svm = _svms(Z, [np.where(mask, 1.0, -1.0) for mask in positive], cost, seed)
    if len(labels.classes) == 2:
        return svm
    coef = np.zeros((len(labels.classes), Z.shape[1]))
    intercept = np.full(len(labels.classes), -np.inf)
    if len(present) == 2:  # one hyperplane speaks for both
        svm = Head(np.concatenate([-svm.coef, svm.coef]), np.repeat(svm.intercept, 2) * (-1, 1))
    coef[present], intercept[present] = svm.coef, svm.intercept
    return Head(coef, intercept)


def _constant(labels: Labels, present: NDArray[np.int64], r: int) -> Head:
    """Return a head that always says the one class that is known."""
    if len(labels.classes) == 2:
        return Head(np.zeros((1, r)), np.where(present == 1, 1.0, -1.0)[:1])
    intercept = np.full(len(labels.classes), -np.inf)
    intercept[present] = 0.0
    return Head(np.zeros((len(labels.classes), r)), intercept)


def _fit_labels(Z: Any, labels: Labels, C: float, class_weight: ClassWeight, seed: int) -> Head:
    """One SVM a label; a label that all or none of the samples have is always or never given."""
    coef = np.zeros((len(labels.classes), Z.shape[1]))
    intercept = np.full(len(labels.classes), -1.0)
    for k, task in enumerate(labels.tasks()):
        if len(np.unique(task.signs)) == 2:
            cost = C * task_weights(task, labels, class_weight)
            svm = _svms(Z[task.rows], [task.signs], cost, seed)
            coef[k], intercept[k] = svm.coef[0], svm.intercept[0]
        elif len(task.signs):
            intercept[k] = task.signs[0]
    return Head(coef, intercept)


def _svms(Z: Any, signs: list[NDArray[np.float64]], cost: NDArray[np.float64], seed: int) -> Head:
    """Train one SVM for each sign of the rows, the intercept penalized like a weight."""
    if not sp.issparse(Z) and Z.shape[1] <= _FEW_COLUMNS:
        Z = np.hstack([Z, np.ones((Z.shape[0], 1))])
        W = np.stack([squared_hinge_weights(Z, y, cost) for y in signs])
        return Head(W[:, :-1], W[:, -1])
    from sklearn.svm import LinearSVC

    if sp.issparse(Z):  # LIBLINEAR knows 32-bit indices only
        shape, dtype = Z.shape, np.int32
        Z = sp.csr_array((Z.data, Z.indices.astype(dtype), Z.indptr.astype(dtype)), shape=shape)
    svms = []
    for y in signs:
        # the primal solver is the steadier one when there are more samples than columns
        dual = Z.shape[0] < Z.shape[1]
        tol = 1e-3 if dual else 1e-2
        C = float(np.max(cost))
        svm = LinearSVC(C=C, dual=dual, tol=tol, max_iter=10_000, random_state=seed)
        svms.append(svm.fit(Z, y, sample_weight=cost / C))
    return Head(
        np.concatenate([svm.coef_ for svm in svms]),
        np.concatenate([np.atleast_1d(svm.intercept_) for svm in svms]),
    )
