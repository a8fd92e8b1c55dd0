"""Teachers where samples have several labels: each label is a question of its own.

A label may have two examples, too few to say anything of that label alone. What is learned from
hidden labels is therefore learned of all labels together: how a teacher's decision value, beside
the label's share of the samples, becomes a probability, and what each teacher counts beside the
others. That is a logistic regression with a handful of coefficients, held near a plain mean.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, logit

from marginparts._types import Array
from marginparts.labels import UNKNOWN, Labels
from marginparts.solve.start import thread_pools
from marginparts.svm.head import fit_head
from marginparts.teaching.lesson import TAUGHT_WEIGHT, Lesson
from marginparts.teaching.transduction import (
    growing_weights,
    logistic_penalty,
    ridge_penalty,
    weighted_ridge,
    with_constant,
)
from marginparts.teaching.views import Views

#: How firmly coefficients are held: of a teacher's own probabilities, of the mean of all teachers.
_OWN_PULL, _MEAN_PULL = 1.0, 10.0

#: How much of a row's labels comes from its neighbors, and how much the labels' shares count where
#: little arrives.
_FROM_NEIGHBORS, _PRIOR = 0.8, 0.02

#: Least squares on its own answers: ridge and temperature.
_RIDGE, _TEMPERATURE = 0.5, 0.1

#: The ridge of logistic regression.
_LOGISTIC_RIDGE = 0.1

#: No taught entry counts less: an SVM needs a cost.
_LEAST_WEIGHT = 1e-3


def label_shares(labels: Labels) -> Array:
    """Return the share of samples (p,) that each label is believed to have, between 0 and 1."""
    known = np.sum(labels.codes != UNKNOWN, axis=0)
    return np.asarray((np.sum(labels.codes == 1, axis=0) + 0.5) / (known + 1))


def with_shares(values: Array, shares: Array) -> Array:
    """Return probabilities of decision values (n, p), moved so that labels have their shares."""
    shift = logit(shares) - values.mean(axis=0)
    for _ in range(30):  # Newton's method, in short steps
        P = expit(values + shift)
        slope = np.mean(P * (1 - P), axis=0) + 1e-4
        shift -= np.clip((P.mean(axis=0) - shares) / slope, -2, 2)
    return np.asarray(expit(values + shift))


def _svm(views: Views, labels: Labels) -> Array:
    return fit_head(views.inputs, labels, 1.0).values(views.inputs)


def _latent(views: Views, labels: Labels) -> Array:
    """Logistic regression for all labels at once, on the entries that are known."""
    A = with_constant(views.latent)
    rows = labels.labeled
    some, codes = A[rows], labels.codes[rows]
    y, weights = codes == 1, codes != UNKNOWN
    shape = (A.shape[1], codes.shape[1])
    penalty = logistic_penalty(shape[0], _LOGISTIC_RIDGE)

    def loss(b: Array) -> tuple[float, Array]:
        B = b.reshape(shape)
        values = some @ B
        fit = np.sum(weights * (np.logaddexp(0, values) - y * values))
        gradient = some.T @ (weights * (expit(values) - y)) + penalty * B
        return float(fit + 0.5 * np.sum(penalty * B * B)), gradient.ravel()

    found = minimize(
        loss, np.zeros(shape).ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 100}
    )
    return np.asarray(A @ found.x.reshape(shape))


def _least_squares(views: Views, labels: Labels) -> Array:
    """Ridge regression on its own answers, whose labels keep their shares."""
    A = with_constant(views.latent)
    labeled, open_rows, shares = labels.labeled, ~labels.complete, label_shares(labels)
    known, codes = labels.codes != UNKNOWN, labels.codes.astype(np.float64)
    penalty = ridge_penalty(A.shape[1], _RIDGE)
    B = weighted_ridge(A, labeled.astype(np.float64), np.where(known, codes, shares), penalty)
    for weights in growing_weights(labeled):
        Q = codes.copy()
        Q[open_rows] = with_shares(A[open_rows] @ B / _TEMPERATURE, shares)
        B = weighted_ridge(A, weights, np.where(known, codes, Q), penalty)
    return np.asarray(A @ B)


def _spreading(views: Views, labels: Labels) -> Array:
    """Let labels flow to neighbors; the log-odds of a label in what arrives."""
    p = len(labels.classes)
    start = np.hstack([labels.codes == 1, labels.codes != UNKNOWN]).astype(np.float64)
    F = views.flowed(start, _FROM_NEIGHBORS)
    given, heard = F[:, :p], F[:, p:]
    prior = _PRIOR * np.median(heard, axis=0) + 1e-9
    odds = (given + prior * label_shares(labels)) / (heard + prior)
    return np.asarray(logit(np.clip(odds, 1e-4, 1 - 1e-4)))


_TEACHERS: dict[str, Callable[[Views, Labels], Array]] = {
    "svm": _svm, "latent": _latent, "least squares": _least_squares, "spreading": _spreading,
}  # fmt: skip


class Answers(NamedTuple):
    """Decision values (n, p, m) of m teachers, and the log-odds (p,) of the labels' shares."""

    values: Array
    prior: Array

    @classmethod
    def of(cls, views: Views, labels: Labels, seeds: Array | None = None) -> Answers:
        """Ask all teachers; where they are asked for, values of each have spread 1.

        What seeds say (n, p) is one more.
        """
        said = [teacher(views, labels) for teacher in _TEACHERS.values()]
        said += [] if seeds is None else [seeds]
        open_rows = ~labels.complete
        scaled = [each / max(float(each[open_rows].std()), 1e-9) for each in said]
        return cls(np.stack(scaled, axis=-1).astype(np.float32), logit(label_shares(labels)))

    def take(self, rows: NDArray[np.intp]) -> Answers:
        """Return the answers for some rows."""
        return self._replace(values=self.values[rows])


class Opinion(NamedTuple):
    """What the teachers say together: log-odds ``values @ slopes + by_prior * prior + constant``.

    ``shares`` (m,) say how much each counts.
    """

    slopes: Array
    by_prior: float
    constant: float
    shares: Array

    @classmethod
    def learned(
        cls, heard: list[Answers], truths: list[NDArray[np.int64]], m: int = len(_TEACHERS)
    ) -> Opinion:
        """Learn from answers of m teachers for rows whose labels (n, p) were hidden.

        Without any, take a mean.
        """
        known = [truth != UNKNOWN for truth in truths]
        columns = [np.empty((0, m + 2))]
        for answers, where in zip(heard, known, strict=True):
            prior = np.broadcast_to(answers.prior, where.shape)[where]
            columns.append(np.column_stack([answers.values[where], prior, np.ones(len(prior))]))
        F = np.concatenate(columns)
        y = np.concatenate(
            [np.empty(0), *(truth[where] for truth, where in zip(truths, known, strict=True))]
        )
        # each by itself: its slope, what the label's share adds, a constant
        own = np.array([
            _log_odds_fit(F[:, [k, m, m + 1]], y, np.array([1.0, 0.3, 0.0]), np.full(3, _OWN_PULL))
            for k in range(m)
        ])  # fmt: skip
        said = np.column_stack([*(F[:, [k, m, m + 1]] @ own[k] for k in range(m)), F[:, m:]])
        pull = np.append(np.full(m, _MEAN_PULL), [1.0, 1.0])
        shares = _log_odds_fit(said, y, np.append(np.full(m, 1 / m), [0.0, 0.0]), pull)
        slopes, by_prior, constant = own.T * shares[:m]
        counts = shares[:m] / max(float(shares[:m].sum()), 1e-9)
        return cls(
            slopes, float(by_prior.sum() + shares[m]), float(constant.sum() + shares[-1]), counts
        )

    def probabilities(self, answers: Answers) -> Array:
        """Return the probability (n, p) of each label."""
        odds = answers.values @ self.slopes + self.by_prior * answers.prior + self.constant
        return np.asarray(expit(odds), dtype=np.float64)


def _log_odds_fit(F: Array, y: Array, begin: Array, pull: Array) -> Array:
    """Logistic regression with coefficients held near some; but the last two, none is negative."""

    def loss(c: Array) -> tuple[float, Array]:
        values, away = F @ c, c - begin
        fit = float(np.sum(np.logaddexp(0, values) - y * values) + 0.5 * np.sum(pull * away**2))
        return fit, F.T @ (expit(values) - y) + pull * away

    bounds = [(0.0, None)] * (len(begin) - 2) + [(None, None)] * 2
    return np.asarray(minimize(loss, begin, jac=True, method="L-BFGS-B", bounds=bounds).x)


def best_cut(P: Array) -> float:
    """Return from which probability on to give labels, for the largest micro F to be expected.

    Examples
    --------
    >>> float(best_cut(np.array([0.9, 0.5, 0.1])))
    0.5
    """
    p = np.sort(P.ravel())[::-1]
    expected = np.cumsum(p) / (np.arange(1, len(p) + 1) + p.sum())
    return float(p[expected.argmax()]) if len(p) else 0.5


def lessons_of_several(
    views: Views,
    labels: Labels,
    hidden: list[NDArray[np.intp]],
    seeds: Array | None = None,
) -> tuple[Lesson, list[Lesson]]:
    """`lessons_of` where samples have several labels; the weights are (n, p), one an entry.

    ``seeds`` (n, p) are values of seeds, which hidden labels weigh like those of a teacher.
    """
    known = [labels, *(labels.hide(rows) for rows in hidden)]
    if labels.complete.all():  # nobody needs to be taught
        lesson, *rest = (Lesson(each, np.ones(each.codes.shape), {}, {}) for each in known)
        return lesson, rest
    with thread_pools().limit(limits=1, user_api="blas"):
        whole, *said = (Answers.of(views, each, seeds) for each in known)
    heard = [answers.take(rows) for answers, rows in zip(said, hidden, strict=True)]
    truths = [labels.codes[rows] for rows in hidden]
    without = [
        _lesson(said[k], known[k + 1], heard[:k] + heard[k + 1 :], truths[:k] + truths[k + 1 :])
        for k in range(len(hidden))
    ]
    return _lesson(whole, labels, heard, truths), without


def _lesson(
    said: Answers, labels: Labels, heard: list[Answers], truths: list[NDArray[np.int64]]
) -> Lesson:
    """Fill in unknown entries; they count the more, the farther they are from being in doubt."""
    opinion = Opinion.learned(heard, truths, said.values.shape[-1])
    P, unknown = opinion.probabilities(said), labels.codes == UNKNOWN
    cut = best_cut(P[unknown])
    # what all samples have is always given, or never
    some, others = (np.any(labels.codes == side, axis=0) for side in (1, 0))
    given = some & ((cut <= P) | ~others)
    sure = np.where(given, (P - cut) / max(1 - cut, 1e-9), (cut - P) / max(cut, 1e-9))
    weights = np.where(unknown, TAUGHT_WEIGHT * np.clip(sure, _LEAST_WEIGHT, 1), 1.0)
    codes = np.where(unknown, given, labels.codes).astype(np.int64)
    shares = map(float, opinion.shares)
    teachers = dict(zip((*_TEACHERS, "seeds"), shares, strict=False))  # seeds, if there are any
    return Lesson(replace(labels, codes=codes), weights, teachers, {})
