"""The linear transductive SVM (Joachims 1999b), with the multiple switches of Sindhwani & Keerthi.

The unlabeled samples take part with labels that are themselves sought. The share of positives
among them is fixed, as a rule to the share among the labeled; the largest decision values get the
label +1 at first. Their cost then grows from next to nothing to that of the labeled samples, and at
each stage the most contradictory pairs of labels are switched while that lowers the loss.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from marginparts._types import Data
from marginparts.labels import BinaryTask, Labels
from marginparts.svm.class_weights import ClassWeight, task_weights
from marginparts.svm.duals import DualProblem, solve_duals

#: The unlabeled samples' cost starts at this share of its final value, and grows by this factor.
_FIRST, _GROWTH = 1e-5, 1.5

#: Pairs switched at once, and rounds of switching at one cost, at most.
_PAIRS, _ROUNDS = 1000, 30

#: Passes over the samples by all SVMs of a fit; past them each has the second number, and no label
#: is switched. Rows of length 1 need some hundreds in all, long rows without end.
_EPOCHS, _HURRIED = 60_000, 50


@dataclass
class _Transduction:
    """One two-class task in progress: labeled rows first, then the unlabeled ones."""

    task: BinaryTask
    unlabeled: NDArray[np.intp]
    cost: NDArray[np.float64]
    alpha: NDArray[np.float64]
    guesses: NDArray[np.float64]
    share: float
    counts: NDArray[np.float64] | None  # what labeled rows count, then unlabeled ones; None for 1

    @classmethod
    def begin(
        cls, task: BinaryTask, labels: Labels, cost: NDArray[np.float64], share: float | None
    ) -> _Transduction:
        rows = np.arange(len(labels.codes))
        unlabeled = np.setdiff1d(rows, task.rows, assume_unique=True)
        counts = None
        if labels.weights is not None:
            counts = labels.weights[np.concatenate([task.rows, unlabeled])]
        if share is None:
            own = None if counts is None else counts[: len(task.rows)]
            share = float(np.average(task.signs > 0, weights=own))
        alpha = np.zeros(len(task.rows) + len(unlabeled))
        return cls(task, unlabeled, cost, alpha, np.empty(0), share, counts)

    def guess(self, values: NDArray[np.float64]) -> None:
        """Label the largest values +1, as many as the labeled samples suggest."""
        u, order = len(values), np.argsort(-values, kind="stable")
        positives = round(self.share * u)
        if self.counts is not None and u:
            reached = np.cumsum(self.counts[len(self.task.rows) :][order])
            positives = int(np.argmin(np.abs(np.append(0, reached) - self.share * reached[-1])))
        self.guesses = np.full(u, -1.0)
        self.guesses[order[: np.clip(positives, min(1, u), max(u - 1, 0))]] = 1.0

    def problem(self, level: float) -> DualProblem:
        """The SVM in which unlabeled samples have ``level`` times their final cost."""
        m = len(self.task.rows)
        if level == 0:
            return DualProblem(self.task.rows, self.task.signs, self.cost, self.alpha[:m])
        # Between the two customs: a sample costs as much as a labeled one (Joachims), or all
        # unlabeled samples together as much as all labeled ones (Sindhwani & Keerthi).
        u = len(self.unlabeled)
        counts = np.ones(m + u) if self.counts is None else self.counts
        sums = float(counts[:m].sum()), float(counts[m:].sum())
        # Both signs cost the same, whatever the classes' weights: so a switch lowers the loss.
        cost = level * (np.sum(self.cost) / sums[0]) * min(1.0, np.sqrt(sums[0] / (sums[1] or 1)))
        return DualProblem(
            np.concatenate([self.task.rows, self.unlabeled]),
            np.concatenate([self.task.signs, self.guesses]),
            np.concatenate([self.cost, counts[m:] * cost]),
            self.alpha,
        )

    def keep(self, alpha: NDArray[np.float64]) -> None:
        """Remember the duals as the next start."""
        self.alpha[: len(alpha)] = alpha

    def switch(self, values: NDArray[np.float64]) -> bool:
        """Exchange guesses of pairs in which the positive has the smaller value; say if any.

        Where samples count differently, those pairs whose exchange lowers the loss.
        """
        if self.counts is not None:
            squares = (np.maximum(1 + side * values, 0) ** 2 for side in (1, -1))
            values = self.counts[len(self.task.rows) :] * np.subtract(*squares)
        plus, minus = np.flatnonzero(self.guesses > 0), np.flatnonzero(self.guesses < 0)
        plus = plus[np.argsort(values[plus], kind="stable")]
        minus = minus[np.argsort(-values[minus], kind="stable")]
        pairs = min(len(plus), len(minus), _PAIRS)
        wrong = np.flatnonzero(values[plus[:pairs]] < values[minus[:pairs]] - 1e-9)
        if not len(wrong):
            return False
        self.guesses[plus[wrong]], self.guesses[minus[wrong]] = -1.0, 1.0
        m = len(self.task.rows)
        self.alpha[m + np.concatenate([plus[wrong], minus[wrong]])] = 0.0
        return True


def transductive_weights(
    X: Data,
    labels: Labels,
    C: float,
    *,
    shares: Sequence[float] | None = None,
    class_weight: ClassWeight = None,
    tol: float = 1e-2,
    seed: int = 0,
) -> NDArray[np.float64]:
    """Train a transductive SVM for each class (one for two classes) over all rows of X.

    Parameters
    ----------
    X : (n, d) array or sparse matrix
        Labeled and unlabeled samples; append a constant feature for a bias.
    labels : Labels
    C : float
    shares : sequence of float or None
        The share of positives among the unlabeled samples, for each task; None for the share
        among the labeled ones.
    class_weight : None, "balanced" or dict
        How much the labeled samples of each class cost.
    tol : float
    seed : int

    Returns
    -------
    (p, d) array
        Weight vectors, in the order of ``labels.tasks("ovr")``; zeros for a task with one sign.
    """
    X = sp.csr_array(X).astype(np.float64)
    tasks = labels.tasks("ovr")
    weights = np.zeros((len(tasks), X.shape[1]))
    work = {
        t: _Transduction.begin(
            task,
            labels,
            C * task_weights(task, labels, class_weight),
            None if shares is None else shares[t],
        )
        for t, task in enumerate(tasks)
        if len(np.unique(task.signs)) == 2
    }
    left = _solve(X, work, 0.0, weights, tol, seed, _EPOCHS)
    for t, item in work.items():
        item.guess(X[item.unlabeled] @ weights[t])
    level = _FIRST
    while work and any(len(item.unlabeled) for item in work.values()):
        left = _solve(X, work, level, weights, tol, seed, left)
        open_tasks = work
        for _ in range(_ROUNDS if left > 0 else 0):
            open_tasks = {
                t: item
                for t, item in open_tasks.items()
                if item.switch(X[item.unlabeled] @ weights[t])
            }
            if not open_tasks or left <= 0:
                break
            left = _solve(X, open_tasks, level, weights, tol, seed, left)
        if level >= 1:
            break
        level = min(level * _GROWTH, 1.0)
    if left <= 0:
        warnings.warn(
            "The transductive SVM did not converge; divide the rows of X by their mean length, or "
            "take a smaller C.",
            ConvergenceWarning,
            stacklevel=3,
        )
    return weights


def _solve(
    X: Data,
    work: dict[int, _Transduction],
    level: float,
    weights: NDArray[np.float64],
    tol: float,
    seed: int,
    left: int,
) -> int:
    """Train the SVMs of some tasks from where they stand; return the passes that are left."""
    problems = [item.problem(level) for item in work.values()]
    most = 10_000 if left > 0 else _HURRIED
    solutions = solve_duals(X, problems, tol=tol, max_epochs=most, seed=seed) if problems else []
    for (t, item), solution in zip(work.items(), solutions, strict=True):
        item.keep(solution.alpha)
        weights[t] = solution.w
    return left - max((solution.epochs for solution in solutions), default=0)
