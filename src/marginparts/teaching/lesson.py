"""What the teachers say together: each is weighed by what it says of hidden labels.

A teacher's decision values become probabilities whose mean confidence is its accuracy on hidden
labels: one that is often wrong says little. The logarithms are averaged with weights that fall off
with the distance from the best teacher in standard errors; with few labels that is wide, and the
teachers count almost alike.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from threading import Lock
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import softmax

from marginparts._types import Array
from marginparts.labels import UNKNOWN, Labels
from marginparts.solve.start import thread_pools
from marginparts.svm.head import fit_head
from marginparts.teaching.naive_bayes import naive_bayes_values
from marginparts.teaching.transduction import Codes, least_squares_values, logistic_values
from marginparts.teaching.views import Views

#: What a row counts whose label a teacher gave and is sure of, beside 1 for a known label.
TAUGHT_WEIGHT = 0.3

#: How fast a teacher's weight falls with its distance from the best, in standard errors.
_DECAY = 2.0

#: What is added to the accuracy of a teacher of sparse rows: what it was worth on the development
#: collections beyond what few hidden labels can tell.
_HEAD_START = {"least squares": 0.02}

#: The least and the largest mean confidence of a teacher.
_CONFIDENCE = (0.3, 0.97)

#: LIBLINEAR draws from one stream of random numbers for all threads.
_ONE_AT_A_TIME = Lock()

#: How often labels flow along the graph, and how much of a row's comes from its neighbors.
_FLOWS, _FROM_NEIGHBORS = 50, 0.9


class Lesson(NamedTuple):
    """Labels for all rows, and what each row counts.

    Attributes
    ----------
    labels : Labels
        Known ones as they are, the others as the teachers say.
    weights : (n,) array
        1 for known labels, else `TAUGHT_WEIGHT` times the square of the teachers' confidence.
    teachers : dict
        The share of each in what they say.
    accuracies : dict
        What each was worth on hidden labels.
    """

    labels: Labels
    weights: Array
    teachers: dict[str, float]
    accuracies: dict[str, float]


#: ``teacher(views, codes, c)``: decision values (n, c) of all rows, where each class has a label.
Teacher = Callable[[Views, Codes, int], Array]


def _svm(views: Views, codes: Codes, c: int) -> Array:
    with _ONE_AT_A_TIME:
        head = fit_head(views.inputs, Labels(np.arange(c), codes), 1.0)
    values = head.values(views.inputs)
    return np.hstack([-values, values]) if values.shape[1] == 1 else values


def _latent(views: Views, codes: Codes, c: int) -> Array:
    return logistic_values(views.latent, codes, c, rounds=0)


def _least_squares(views: Views, codes: Codes, c: int) -> Array:
    return least_squares_values(views.latent, codes, c)


def _logistic(views: Views, codes: Codes, c: int) -> Array:
    return logistic_values(views.latent, codes, c)


def _spectral(views: Views, codes: Codes, c: int) -> Array:
    return logistic_values(views.spectral, codes, c, rounds=0)


def _spreading(views: Views, codes: Codes, c: int) -> Array:
    """Let labels flow to neighbors (Zhou et al. 2004); the logarithm of what arrives."""
    start = (codes[:, None] == np.arange(c)).astype(np.float64)
    F = start
    for _ in range(_FLOWS):
        F = _FROM_NEIGHBORS * (views.graph @ F) + (1 - _FROM_NEIGHBORS) * start
    shares = F / np.maximum(F.sum(axis=1, keepdims=True), 1e-12)
    return np.asarray(np.log(shares + 1e-3))


def _naive_bayes(views: Views, codes: Codes, c: int) -> Array:
    labels, rows = Labels(np.arange(c), codes), views.counts
    (values,) = naive_bayes_values(rows, labels, [rows], weight=0.1, alpha=0.1)
    return np.hstack([-values, values]) if values.shape[1] == 1 else values


_TEACHERS: dict[str, Teacher] = {
    "svm": _svm, "latent": _latent, "least squares": _least_squares, "logistic": _logistic,
    "spreading": _spreading, "spectral": _spectral, "naive Bayes": _naive_bayes,
}  # fmt: skip


def teachers_for(views: Views) -> list[str]:
    """Return the names of the teachers that suit the rows.

    Naive Bayes takes texts alone; classes that are curved, as the spectral one expects, are found
    among images and sounds.
    """
    other = "spectral" if views.sparse else "naive Bayes"
    return [name for name in _TEACHERS if name != other]


def all_values(views: Views, labels: Labels) -> dict[str, Array]:
    """Return what every teacher says of all rows: decision values (n, c) each.

    The largest is 0. A class without a labeled row is never predicted.
    """
    known = labels.codes != UNKNOWN
    present = np.unique(labels.codes[known])
    codes = np.full(len(labels.codes), UNKNOWN)
    codes[known] = np.searchsorted(present, labels.codes[known])
    said = {}
    for name in teachers_for(views):
        own = _TEACHERS[name](views, codes, len(present))
        values = np.full((len(codes), len(labels.classes)), -np.inf, dtype=np.float32)
        values[:, present] = own - own.max(axis=1, keepdims=True)
        said[name] = values
    return said


def lessons_of(
    views: Views, labels: Labels, hidden: list[NDArray[np.intp]]
) -> tuple[Lesson, list[Lesson]]:
    """Return what the teachers say with all labels, and without those of each fold.

    Parameters
    ----------
    views : Views
        Of n rows.
    labels : Labels
        One label a row, partly known.
    hidden : list of int arrays
        The rows of each fold, whose labels are hidden and predicted.

    Returns
    -------
    lesson : Lesson
    without : list of Lesson
        One a fold. In these the teachers are weighed by the other folds.
    """
    if labels.complete.all():  # nobody needs to be taught
        ones = np.ones(len(labels.codes))
        return Lesson(labels, ones, {}, {}), [
            Lesson(labels.hide(rows), ones, {}, {}) for rows in hidden
        ]
    known = [labels, *(labels.hide(rows) for rows in hidden)]
    # their small products are slower on several threads each than side by side
    with thread_pools().limit(limits=1, user_api="blas"):
        whole, *said = Parallel(n_jobs=-1, backend="threading")(
            delayed(all_values)(views, each) for each in known
        )
    hits = {
        name: [
            values[name][rows].argmax(axis=1) == labels.codes[rows]
            for values, rows in zip(said, hidden, strict=True)
        ]
        for name in whole
    }
    without = []
    for k, (values, rows) in enumerate(zip(said, hidden, strict=True)):
        others = {name: [*own[:k], *own[k + 1 :]] for name, own in hits.items()}
        without.append(_combined(values, labels.hide(rows), others, sparse=views.sparse))
    return _combined(whole, labels, hits, sparse=views.sparse), without


def _combined(
    said: dict[str, Array], labels: Labels, hits: dict[str, list[Array]], *, sparse: bool
) -> Lesson:
    """Weigh the teachers by their hits on hidden labels, and let them fill in unknown labels."""
    right = {name: np.concatenate([np.empty(0, bool), *own]) for name, own in hits.items()}
    # one right and one wrong answer more: few labels are no proof
    accuracies = {name: (own.sum() + 1) / (len(own) + 2) for name, own in right.items()}
    start = _HEAD_START if sparse else {}
    merits = np.array([accuracies[name] + start.get(name, 0.0) for name in said])
    best = min(merits.max(), _CONFIDENCE[1])
    count = len(next(iter(right.values()))) + 4
    error = np.sqrt(max(best * (1 - best), 0.02) / count)
    shares = softmax(_DECAY * (merits - merits.max()) / error)
    logs = sum(
        share * np.log(confident(said[name], accuracies[name]) + 1e-4)
        for name, share in zip(said, shares, strict=True)
    )
    Q = softmax(logs, axis=1)
    unknown = labels.codes == UNKNOWN
    codes = np.where(unknown, Q.argmax(axis=1), labels.codes)
    weights = np.where(unknown, TAUGHT_WEIGHT * Q.max(axis=1) ** 2, 1.0)
    teachers = {name: float(share) for name, share in zip(said, shares, strict=True)}
    taught = replace(labels, codes=codes.astype(np.int64))
    return Lesson(taught, weights, teachers, {name: float(a) for name, a in accuracies.items()})


def confident(values: Array, accuracy: float) -> Array:
    """Return probabilities whose largest ones are the accuracy on average."""
    values = values.astype(np.float64)
    target = np.clip(accuracy, *_CONFIDENCE)

    def excess(log_temperature: float) -> float:
        # the largest value is 0, so the largest probability is one over the sum
        sums = np.exp(values * np.exp(-log_temperature)).sum(axis=1)
        return float(np.mean(1 / sums) - target)

    low, high = -12.0, 12.0
    if excess(low) <= 0:
        best = low
    elif excess(high) >= 0:
        best = high
    else:
        best = brentq(excess, low, high, xtol=1e-9)
    return np.asarray(softmax(values * np.exp(-best), axis=1))
