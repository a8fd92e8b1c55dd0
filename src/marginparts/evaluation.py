"""How good the parts are on labels that were hidden, against the obvious alternatives.

Two rivals are scored on the same folds and the same prepared data: a linear SVM on the inputs, and
the same SVM on the parts of plain NMF. Each chooses among its own settings by the rule of
`selection`, and all scores are honest ones: of a fold that had no part in the choice.
"""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import numpy as np

from marginparts._types import Callback
from marginparts.backends import Backend
from marginparts.class_weights import ClassWeight
from marginparts.factorization import factorize, start_from
from marginparts.folds import Fold, enough_labels, folds_of
from marginparts.labels import Labels
from marginparts.selection import (
    C_GRID,
    DEFAULT,
    MAP_GRID,
    NORMALIZE_GRID,
    Choice,
    Setting,
    best_of,
    codes_by_map,
    enough_rows,
    honest_scores,
    standard_error,
)

#: Costs tried for the SVM on the inputs: with many columns and few labels large ones can win.
_RAW_COSTS = (*C_GRID, 50.0)


class Rated(NamedTuple):
    """A way to classify, its mean score on hidden labels, and the standard error of that."""

    name: str
    score: float
    error: float


def compare(
    X: Any,
    labels: Labels,
    choice: Choice,
    *,
    class_weight: ClassWeight = None,
    scoring: str | None = None,
    thresholds: bool = True,
    backend: str | Backend = "auto",
    seed: int = 0,
    n_splits: int | None = None,
    callback: Callback | None = None,
) -> list[Rated]:
    """Score what was chosen against a linear SVM on the inputs and plain NMF of the same rank.

    Parameters
    ----------
    X : (n, d) trusted data
    labels : Labels
    choice : Choice
        Made on the same data with the same seed and folds.
    class_weight, scoring, thresholds, backend, seed, n_splits : see `choose`
        As for the choice.
    callback : callable or None
        Called during the plain factorization; a true answer ends it.

    Returns
    -------
    list of Rated
        Ours first; empty when nothing could be scored.
    """
    if not choice.scores:
        return []
    labels = enough_labels(labels, seed)
    # a race that was cut short has fewer folds
    folds = folds_of(labels, seed, n_splits, class_weight=class_weight, scoring=scoring)
    folds = folds[: len(choice.scores[choice.best])]
    labeled = X[np.flatnonzero(labels.labeled)]
    rank = choice.best.n_components
    rows = enough_rows(labels, seed)
    H, V = start_from("random", X[rows], rank, seed)
    plain = factorize(X[rows], H, V, max_iter=100, tol=1e-3, backend=backend, callback=callback)
    maps = codes_by_map(labeled, plain.V, MAP_GRID, backend)
    on_inputs = {DEFAULT: labeled}
    on_parts = {DEFAULT._replace(map_iter=n): Z for n, Z in maps.items()}
    return [
        Rated(f"NMF-alpha, {rank} parts", choice.honest_score, choice.honest_error),
        _rated("linear SVM on the inputs", folds, on_inputs, _RAW_COSTS, thresholds),
        _rated(f"plain NMF, {rank} parts", folds, on_parts, C_GRID, thresholds),
    ]


def _rated(
    name: str,
    folds: list[Fold],
    inputs: dict[Setting, Any],
    costs: tuple[float, ...],
    thresholds: bool,
) -> Rated:
    """Score a rival: the rule of `selection` chooses input and cost on all folds but one."""
    values = {
        setting._replace(C=C, normalize=n): [fold.values(Z, C, normalize=n) for fold in folds]
        for (setting, Z), C, n in product(inputs.items(), costs, NORMALIZE_GRID)
    }
    scores = {
        setting: [fold.quality(each) for fold, each in zip(folds, said, strict=True)]
        for setting, said in values.items()
    }

    def pick(some: list[int]) -> Setting:
        return best_of({setting: [own[k] for k in some] for setting, own in scores.items()})

    found = honest_scores(folds, pick, lambda s, k: values[s][k], thresholds=thresholds)
    found = found or scores[pick([0])]  # of a single fold nothing honest can be said
    return Rated(name, float(np.mean(found)), standard_error(found))
