"""The linear SVM on the codes, one for each class or label: exact, and fast for few columns.

The squared hinge is quadratic wherever the set of samples within the margin stays the same, so a
Newton step lands on the optimum of the present set, and a handful of steps reaches the optimum
itself (Keerthi & DeCoste 2005). With r columns a step costs one r x r Gram matrix of the samples
within the margin: several times faster than a general solver, and exact.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from sklearn.utils.extmath import row_norms

from marginparts._types import Array, Data
from marginparts.backends._common import inverse_or_zero, safe_ratio
from marginparts.labels import Labels
from marginparts.svm.class_weights import ClassWeight, row_weights, task_weights

Vector = NDArray[np.float64]

#: Up to here the Gram matrices of Newton's method are cheap; beyond it LIBLINEAR takes over.
_FEW_COLUMNS = 1000

#: Steps and steps of a line search, at most; about five of each are usual.
_STEPS, _LINE_STEPS = 100, 30

#: The gradient at the end, beside the one at zero.
_TOL = 1e-6


class Head(NamedTuple):
    """Hyperplanes: coefficients (p, r) and intercepts (p,), p = 1 for two classes."""

    coef: Vector
    intercept: Vector
    size: float | None = None

    def values(self, Z: Data) -> Vector:
        """Return decision values (n, p)."""
        return np.asarray(scaled_rows(Z, self.size) @ self.coef.T + self.intercept)


def scaled_rows(Z: Data, size: float | None) -> Data:
    """Scale rows to length 1 each, or all by one size: C then means the same for any data."""
    rows = Z.astype(np.float64)
    if size is not None:
        return rows * (1 / size)
    lengths = row_norms(rows)
    if sp.issparse(rows):
        return sp.diags_array(inverse_or_zero(lengths, lengths.dtype)) @ rows
    return safe_ratio(rows, lengths[:, None])


def fit_head(
    Z: Data,
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
    rows = scaled_rows(Z, size)
    fit = _fit_labels if labels.multilabel else _fit_classes
    return fit(rows, labels, C, class_weight, seed)._replace(size=size)


def _fit_classes(Z: Data, labels: Labels, C: float, class_weight: ClassWeight, seed: int) -> Head:
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


def _fit_labels(Z: Data, labels: Labels, C: float, class_weight: ClassWeight, seed: int) -> Head:
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


def _svms(Z: Data, signs: list[Vector], cost: Vector, seed: int) -> Head:
    """Train one SVM for each sign of the rows, the intercept penalized like a weight."""
    if not sp.issparse(Z) and Z.shape[1] <= _FEW_COLUMNS:
        Z = np.hstack([Z, np.ones((Z.shape[0], 1))])
        W = np.stack([squared_hinge_weights(Z, y, cost) for y in signs])
        return Head(W[:, :-1], W[:, -1])
    from sklearn.svm import LinearSVC

    if sp.issparse(Z):  # LIBLINEAR knows 32-bit indices only
        csr, dtype = sp.csr_array(Z), np.int32
        arrays = (csr.data, csr.indices.astype(dtype), csr.indptr.astype(dtype))
        Z = sp.csr_array(arrays, shape=csr.shape)
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


def squared_hinge_weights(Z: Array, y: Vector, C: float | Vector) -> Vector:
    """Minimize ``|w|^2 / 2 + sum C max(0, 1 - y Z w)^2``.

    Parameters
    ----------
    Z : (n, q)
    y : (n,)
        Signs, -1 and 1.
    C : float or (n,)
        The cost of each sample.

    Returns
    -------
    w : (q,)
    """
    w, margins = np.zeros(Z.shape[1]), np.zeros(len(y))
    C = np.broadcast_to(np.asarray(C, dtype=np.float64), y.shape)
    # where the sums cancel, rounding is all there is
    sums = np.linalg.norm((C * y) @ Z), 1e-6 * np.linalg.norm(C @ np.abs(Z))
    enough = _TOL * 2 * float(max(sums))
    for _ in range(_STEPS):
        within = np.flatnonzero(margins < 1)
        inside = Z[within]
        cost = 2 * C[within]
        gradient = w - (cost * y[within] * (1 - margins[within])) @ inside
        if np.linalg.norm(gradient) <= enough:
            break
        hessian = inside.T @ (cost[:, None] * inside)
        hessian[np.diag_indices_from(hessian)] += 1
        # equal columns and a huge cost: rounding must not make it indefinite
        hessian[np.diag_indices_from(hessian)] += np.finfo(float).eps * np.trace(hessian)
        step = -cho_solve(cho_factor(hessian, overwrite_a=True, check_finite=False), gradient)
        change = y * (Z @ step)
        size = line_search(w, step, margins, change, C)
        w, margins = w + size * step, margins + size * change
    return w


def line_search(w: Vector, step: Vector, margins: Vector, change: Vector, C: Vector) -> float:
    """Return the best multiple of a step: the zero of a slope that rises in straight pieces."""
    low, high, size = 0.0, np.inf, 1.0
    ahead, curve = float(w @ step), float(step @ step)
    for _ in range(_LINE_STEPS):
        slack = 1 - margins - size * change
        within = slack > 0
        moved = change[within]
        dear = 2 * C[within] * moved
        slope = ahead + size * curve - float(dear @ slack[within])
        bend = curve + float(dear @ moved)
        if slope > 0:
            high = size
        else:
            low = size
        new = size - slope / bend
        if not low < new < high:
            new = (low + high) / 2 if np.isfinite(high) else 2 * size
        if abs(new - size) <= 1e-9 * size:
            return new
        size = new
    return size
