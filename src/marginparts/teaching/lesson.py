"""The lesson: labels for all rows, known ones and those that teachers give, and what each counts.

The teachers are asked with all labels, and without those of each fold, by which they are weighed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from marginparts._types import Array
from marginparts.labels import UNKNOWN, Labels
from marginparts.solve.start import thread_pools
from marginparts.teaching.seeded import Hints, seeded_values
from marginparts.teaching.values import all_values
from marginparts.teaching.views import Views
from marginparts.teaching.weighing import agreed

#: What a row counts whose label a teacher gave and is sure of, beside 1 for a known label.
TAUGHT_WEIGHT = 0.3

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
    verdict = agreed(said, hits, sparse=views.sparse)
    if again:
        said = all_values(views, replace(labels, codes=_with_surest(verdict.Q, labels.codes)))
        verdict = agreed(said, hits, sparse=views.sparse)
    Q, unknown = verdict.Q, labels.codes == UNKNOWN
    codes = np.where(unknown, Q.argmax(axis=1), labels.codes)
    weights = np.where(unknown, TAUGHT_WEIGHT * Q.max(axis=1) ** 2, 1.0)
    taught = replace(labels, codes=codes.astype(np.int64))
    return Lesson(taught, weights, verdict.shares, verdict.accuracies)


def _with_surest(Q: Array, codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the known codes (n,) with the surest answers Q (n, c) of each class."""
    found, answers, sure = codes.copy(), Q.argmax(axis=1), Q.max(axis=1)
    for k in range(Q.shape[1]):
        own = np.flatnonzero((codes == UNKNOWN) & (answers == k))
        surest = own[np.argsort(-sure[own], kind="stable")]
        found[surest[: int(np.ceil(_SURE * len(own)))]] = k
    return found
