"""Folds of the labeled samples: the labels of one fold at a time are hidden and predicted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from marginparts._types import Array, Data
from marginparts.labels import Labels
from marginparts.scores import quality
from marginparts.svm.class_weights import ClassWeight
from marginparts.svm.head import fit_head

#: With more labels than this, three folds are enough; with more rows times classes they must be.
_MANY_LABELS, _LARGE = 200, 60_000

#: More labels than this are not needed to compare candidates.
_ENOUGH_LABELS = 5_000

#: A factorization that ranks candidates need not see all unlabeled rows: parts change little beyond
#: this number.
_ENOUGH_ROWS = 20_000


def labeled_folds(labels: Labels, n_splits: int, seed: int) -> Iterator[NDArray[np.intp]]:
    """Yield the labeled rows to hide in each fold, every class spread over the folds.

    The only sample of a class is never hidden: it could not be predicted. (Samples with several
    labels are not sorted by class, and each may be hidden.) Folds that would leave fewer than two
    classes known are left out. Rows of one group are hidden together, and folds that are given are
    taken as they are.
    """
    for hidden in (
        _given_folds(labels) if labels.folds is not None else _dealt(labels, n_splits, seed)
    ):
        left = labels.hide(hidden)
        if any(len(np.unique(task.signs)) == 2 for task in left.tasks()):
            yield hidden


def _given_folds(labels: Labels) -> Iterator[NDArray[np.intp]]:
    """Yield the labeled rows of each fold that was given; rows below 0 are in none."""
    assert labels.folds is not None
    folds = np.where(labels.labeled, labels.folds, -1)
    for fold in np.unique(folds[folds >= 0]):
        yield np.flatnonzero(folds == fold)


def _dealt(labels: Labels, n_splits: int, seed: int) -> Iterator[NDArray[np.intp]]:
    """Yield the labeled rows of each of ``n_splits`` folds."""
    rng = np.random.default_rng(seed)
    rows = np.flatnonzero(labels.labeled)
    groups = labels.groups
    if groups is not None:  # one row of each
        rows = rows[np.unique(groups[rows], return_index=True)[1]]
    rows = rng.permutation(rows)
    if not labels.multilabel:
        rows = rows[np.argsort(labels.codes[rows], kind="stable")]
        rows = rows[np.bincount(labels.codes[rows])[labels.codes[rows]] > 1]
    for fold in range(min(n_splits, len(rows))):
        hidden = rows[fold::n_splits]
        if groups is not None:
            hidden = np.flatnonzero(np.isin(groups, groups[hidden]) & labels.labeled)
        yield hidden


def enough_labels(labels: Labels, seed: int) -> Labels:
    """Return the labels on which candidates are compared: where there are very many, a draw.

    The codes of every candidate are kept for every labeled row, and beyond some thousands of them
    the best candidate is known well enough.
    """
    rows = np.flatnonzero(labels.labeled)
    if len(rows) <= _ENOUGH_LABELS:
        return labels
    return labels.hide(np.random.default_rng(seed).permutation(rows)[_ENOUGH_LABELS:])


def enough_rows(labels: Labels, seed: int, enough: int | None = None) -> NDArray[np.intp]:
    """Return all labeled rows and, where there are very many, a draw of the unlabeled ones."""
    enough = _ENOUGH_ROWS if enough is None else enough
    unlabeled = np.flatnonzero(~labels.labeled)
    if len(unlabeled) > enough:
        unlabeled = np.random.default_rng(seed).choice(unlabeled, enough, replace=False)
    return np.sort(np.concatenate([np.flatnonzero(labels.labeled), unlabeled]))


#: Rows whose labels are known, and rows whose labels are hidden.
FoldRows: TypeAlias = tuple[NDArray[np.intp], NDArray[np.intp]]


def renumbered(folds: list[FoldRows], rows: NDArray[np.intp]) -> list[FoldRows]:
    """Return folds of some rows with the numbers that these have elsewhere."""
    return [(rows[known], rows[hidden]) for known, hidden in folds]


class Fold(NamedTuple):
    """All labels, those left when some are hidden, and the hidden rows.

    ``class_weight`` is for the SVMs, and ``scoring`` for their predictions of the hidden rows.
    """

    labels: Labels
    left: Labels
    hidden: NDArray[np.intp]
    class_weight: ClassWeight = None
    scoring: str | None = None

    @classmethod
    def of(cls, labels: Labels, rows: FoldRows, **how: Any) -> Fold:
        """Return a fold with the labels of its rows, known and hidden, and of no others."""
        known, hidden = rows
        others = np.ones(len(labels.codes), dtype=bool)
        others[known] = others[hidden] = False
        labels = labels.hide(others)
        return cls(labels, labels.hide(hidden), hidden, **how)

    @property
    def rows(self) -> FoldRows:
        """The rows whose labels are left, and the hidden ones."""
        return np.flatnonzero(self.left.labeled), self.hidden

    @property
    def truth(self) -> Labels:
        """The labels of the hidden rows."""
        return self.labels.take(self.hidden)

    def values(self, Z: Data, C: float, *, normalize: bool = True) -> Array:
        """Train an SVM on the labels left; return its decision values (hidden, p).

        Z (m, r) are the codes of the labeled rows, hidden ones included.
        """
        rows = np.flatnonzero(self.labels.labeled)
        head = fit_head(
            Z, self.left.take(rows), C, normalize=normalize, class_weight=self.class_weight
        )
        return head.values(Z[np.searchsorted(rows, self.hidden)])

    def score(self, Z: Data, C: float, *, normalize: bool = True) -> float:
        """Return how well the hidden labels are predicted."""
        return self.quality(self.values(Z, C, normalize=normalize))

    def quality(self, values: Array) -> float:
        """Return how good decision values (hidden, p) are."""
        return quality(values, self.truth, self.scoring)


def folds_of(
    labels: Labels,
    seed: int,
    n_splits: int | None = None,
    *,
    class_weight: ClassWeight = None,
    scoring: str | None = None,
) -> list[Fold]:
    """Return the folds on which candidates are compared; none when the labels are too few.

    By default five, or three when there are many labels, or many rows and classes.
    """
    if n_splits is None:
        work = len(labels.codes) * len(labels.classes)
        n_splits = 5 if labels.labeled.sum() < _MANY_LABELS and work < _LARGE else 3
    return [
        Fold(labels, labels.hide(hidden), hidden, class_weight, scoring)
        for hidden in labeled_folds(labels, n_splits, seed)
    ]
