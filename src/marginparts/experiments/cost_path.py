"""The last SVM for many costs: exact like `fit_head`, and cheap for hundreds of columns.

Newton's method (see `marginparts.svm.head`) spends its time on Gram matrices of the rows within
the margin. From one step to the next, from one cost to the next, and from one class to another few
rows enter or leave that set, so its matrix is brought up to date by the rows that did. The gradient
is always that of all rows, so nothing is lost but time.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from sklearn.utils.extmath import row_norms

from marginparts._types import Data
from marginparts.labels import Labels
from marginparts.svm.head import Head, fit_head, line_search, scaled_rows

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

#: Up to here Gram matrices are affordable; beyond it, and for sparse rows, `fit_head` is asked.
_FEW_COLUMNS = 1100

#: Steps at most, and the gradient at the end beside the one at zero.
_STEPS, _TOL = 100, 1e-5


class CostPath:
    """Linear SVMs on labeled rows Z (m, r), for one cost after another; see `fit_head`."""

    def __init__(self, Z: Data, labels: Labels, *, normalize: bool) -> None:
        self._given, self._labels, self._normalize = Z, labels, normalize
        self._by_gram = not sp.issparse(Z) and Z.shape[1] <= _FEW_COLUMNS
        if self._by_gram:
            self._size = None
            if not normalize:
                squares = row_norms(Z.astype(np.float64), squared=True)
                self._size = float(np.sqrt(np.mean(squares))) or 1.0
            rows = np.hstack([scaled_rows(Z, self._size), np.ones((Z.shape[0], 1))])
            whole = _gram(rows)  # tasks over the same rows share it
            self._tasks: list[_Task | None] = []
            for task in labels.tasks():
                gram = whole if len(task.signs) == len(rows) else None
                both = len(np.unique(task.signs)) == 2
                self._tasks.append(_Task(rows[task.rows], task.signs, gram) if both else None)

    def at(self, C: float) -> Head:
        """Return the SVM for a cost, from where the last one ended."""
        if not self._by_gram:
            return fit_head(self._given, self._labels, C, normalize=self._normalize)
        absent = -1.0 if self._labels.multilabel else -np.inf
        W = np.zeros((len(self._tasks), self._given.shape[1] + 1))
        W[:, -1] = absent
        for k, (task, question) in enumerate(zip(self._tasks, self._labels.tasks(), strict=True)):
            if task is not None:
                W[k] = task.solve(C)
            elif len(question.signs) and question.signs[0] > 0:  # it always applies
                W[k, -1] = 1.0
        return Head(W[:, :-1], W[:, -1], self._size)


class _Task:
    """One two-class question: its rows (m, q), where it stands, and what it has summed up."""

    def __init__(self, Z: Matrix, signs: Vector, gram: Matrix | None) -> None:
        self.Z, self.y = Z, signs
        self.gram = self.whole = _gram(Z) if gram is None else gram
        self.w = np.zeros(Z.shape[1])
        self.within = np.ones(len(Z), dtype=bool)
        self.size = max(
            float(np.linalg.norm(signs @ Z)),
            # where the sums cancel, rounding is all there is
            1e-6 * float(np.linalg.norm(np.abs(Z).sum(axis=0))),
        )

    def solve(self, C: float) -> Vector:
        """Minimize ``|w|^2 / 2 + C sum max(0, 1 - y Z w)^2`` from the present w."""
        Z, y, w, costs = self.Z, self.y, self.w, np.full(len(self.y), C)
        margins = y * (Z @ w)
        for _ in range(_STEPS):
            slack = np.maximum(1 - margins, 0)
            gradient = w - 2 * C * ((y * slack) @ Z)
            if np.linalg.norm(gradient) <= _TOL * 2 * C * self.size:
                break
            hessian = 2 * C * self._gram_of(slack > 0)
            diagonal = np.diag_indices_from(hessian)
            # equal columns and a huge cost: rounding must not make it indefinite
            hessian[diagonal] += 1 + 1e-15 * np.trace(hessian)
            step = -cho_solve(cho_factor(hessian, overwrite_a=True, check_finite=False), gradient)
            change = y * (Z @ step)
            size = line_search(w, step, margins, change, costs)
            w, margins = w + size * step, margins + size * change
        self.w = w
        return w

    def _gram_of(self, now: NDArray[np.bool_]) -> Matrix:
        """Return the Gram matrix of some rows, by the shortest way from one that is known."""
        gram, Z = self.gram, self.Z
        entered, left = now & ~self.within, self.within & ~now
        moved = int(entered.sum() + left.sum())
        if moved > now.sum():
            gram = _gram(Z[now])
        elif moved > (~now).sum():
            gram = self.whole - _gram(Z[~now])
        elif moved:
            gram = gram + _gram(Z[entered]) - _gram(Z[left])
        self.gram, self.within = gram, now
        return gram


def _gram(rows: Matrix) -> Matrix:
    return rows.T @ rows
