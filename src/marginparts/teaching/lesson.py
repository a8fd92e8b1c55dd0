"""What the teachers say together: each is weighed by what it says of hidden labels.

A teacher's decision values become probabilities whose mean confidence is its accuracy on hidden
labels: one that is often wrong says little. The logarithms are averaged with weights that fall off
with the distance from the best teacher in standard errors, which are large where labels are few.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import softmax

from marginparts._types import Array
from marginparts.labels import UNKNOWN, Labels
from marginparts.solve.start import thread_pools
from marginparts.teaching.seeded import Hints, seeded_values
from marginparts.teaching.values import BOTH, all_values, panels_of
from marginparts.teaching.views import Views

#: What a row counts whose label a teacher gave and is sure of, beside 1 for a known label.
TAUGHT_WEIGHT = 0.3

#: How fast a teacher's weight falls with its distance from the best, in standard errors.
_DECAY = 2.0

#: What is added to the accuracy of one teacher of sparse rows and one of dense ones: what these
#: were worth on the development collections beyond what few hidden labels can tell.
_HEAD_START, _FAVORITE = 0.02, {True: "least squares", False: "spectral"}

#: The least and the largest mean confidence of a teacher.
_CONFIDENCE = (0.3, 0.97)

#: With fewer labels a class than this, teachers of dense rows learn a second time, from the answers
#: of which they were surest: this share of the unlabeled rows of each class.
_FEW, _SURE = 8, 0.5


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


def lessons_of(
    views: Views, labels: Labels, hidden: list[NDArray[np.intp]], hints: Hints | None = None
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
    hints : Hints or None
        What seeds say (`hints_of`). Some teachers then learn from these as well, beside those who
        do not, and hidden labels tell how much that is worth.

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
    # a teacher that knows some classes only would score too high on their labels
    alone = hints is None or np.isin(np.arange(len(labels.classes)), labels.codes).all()
    # their small products are slower on several threads each than side by side
    with thread_pools().limit(limits=1, user_api="blas"):
        side_by_side = Parallel(n_jobs=-1, backend="threading")
        whole, *said = side_by_side(
            delayed(_answers)(views, each, hints, alone=alone) for each in known
        )
        hits = {
            name: [
                values[name][rows].argmax(axis=1) == labels.codes[rows]
                for values, rows in zip(said, hidden, strict=True)
            ]
            for name in whole
        }
        others = (
            {name: [*own[:k], *own[k + 1 :]] for name, own in hits.items()}
            for k in range(len(hidden))
        )
        again = hints is None and not views.sparse and _few(labels)
        lesson, *without = side_by_side(
            delayed(_combined)(views, *each, again=again)
            for each in zip([whole, *said], known, [hits, *others], strict=True)
        )
    if hints is not None:  # every class has a row that is not empty
        codes, full = lesson.labels.codes, np.diff(views.inputs.indptr) > 0
        lost = (labels.codes == UNKNOWN) & ~np.isin(hints.kept, [UNKNOWN, *codes[full]])
        lesson = lesson._replace(labels=Labels(labels.classes, np.where(lost, hints.kept, codes)))
    return lesson, without


def _answers(views: Views, labels: Labels, hints: Hints | None, *, alone: bool) -> dict[str, Array]:
    """Return what the teachers say of all rows: those with labels alone, those with hints too."""
    said = all_values(views, labels) if alone else {}
    return said if hints is None else {**said, **seeded_values(views, labels, hints)}


def _few(labels: Labels) -> bool:
    """Whether there are so few labels that teachers have much to learn from each other."""
    return bool(labels.labeled.sum() < _FEW * len(labels.classes))


def _combined(
    views: Views, said: dict[str, Array], labels: Labels, hits: dict[str, list[Array]], *,
    again: bool,
) -> Lesson:  # fmt: skip
    """Weigh the teachers by their hits on hidden labels, and let them fill in unknown labels.

    When they are asked ``again``, they have learned from what they were surest of together.
    """
    Q, teachers, accuracies = _agreed(said, hits, sparse=views.sparse)
    if again:
        said = all_values(views, replace(labels, codes=_with_surest(Q, labels.codes)))
        Q, teachers, accuracies = _agreed(said, hits, sparse=views.sparse)
    unknown = labels.codes == UNKNOWN
    codes = np.where(unknown, Q.argmax(axis=1), labels.codes)
    weights = np.where(unknown, TAUGHT_WEIGHT * Q.max(axis=1) ** 2, 1.0)
    taught = replace(labels, codes=codes.astype(np.int64))
    return Lesson(taught, weights, teachers, accuracies)


def _with_surest(Q: Array, codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the known codes (n,) with the surest answers Q (n, c) of each class."""
    found, answers, sure = codes.copy(), Q.argmax(axis=1), Q.max(axis=1)
    for k in range(Q.shape[1]):
        own = np.flatnonzero((codes == UNKNOWN) & (answers == k))
        surest = own[np.argsort(-sure[own], kind="stable")]
        found[surest[: int(np.ceil(_SURE * len(own)))]] = k
    return found


def _agreed(
    said: dict[str, Array], hits: dict[str, list[Array]], *, sparse: bool
) -> tuple[Array, dict[str, float], dict[str, float]]:
    """Return what `weighed` does; where something stands beside words, of two panels.

    One sees words alone, the other both, and each has half a say: what they know is not the same,
    and hidden labels can tell apart the members of a panel better than the panels.
    """
    found = [
        weighed({name: said[name] for name in panel}, hits, sparse=sparse)
        for panel in panels_of(said)
    ]
    if len(found) == 1:
        return found[0]
    Q = softmax(np.mean([np.log(each + 1e-4) for each, _, _ in found], axis=0), axis=1)
    teachers = {
        name: sum(shares.get(name, 0.0) for _, shares, _ in found) / len(found) for name in said
    }
    return Q, teachers, {name: merit for _, _, merits in found for name, merit in merits.items()}


def weighed(
    said: dict[str, Array], hits: dict[str, list[Array]], *, sparse: bool
) -> tuple[Array, dict[str, float], dict[str, float]]:
    """Return what teachers say together, the share of each, and their accuracies on hidden labels.

    ``said`` has values (n, c) of each, and ``hits`` where each was right, fold by fold; the first
    that is returned are probabilities (n, c).
    """
    right = {name: np.concatenate([np.empty(0, bool), *hits[name]]) for name in said}
    # one right and one wrong answer more: few labels are no proof
    accuracies = {name: (own.sum() + 1) / (len(own) + 2) for name, own in right.items()}
    ahead = {name for name in said if name.removesuffix(BOTH) == _FAVORITE[sparse]}
    merits = np.array([accuracies[name] + _HEAD_START * (name in ahead) for name in said])
    best = min(merits.max(), _CONFIDENCE[1])
    count = len(next(iter(right.values()))) + 4
    error = np.sqrt(max(best * (1 - best), 0.02) / count)
    shares = softmax(_DECAY * (merits - merits.max()) / error)
    logs = sum(
        share * np.log(confident(said[name], accuracies[name]) + 1e-4)
        for name, share in zip(said, shares, strict=True)
    )
    teachers = {name: float(share) for name, share in zip(said, shares, strict=True)}
    merit = {name: float(accuracy) for name, accuracy in accuracies.items()}
    return np.asarray(softmax(logs, axis=1)), teachers, merit


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
