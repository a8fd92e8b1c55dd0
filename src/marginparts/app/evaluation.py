"""How good the parts are on labels that were hidden, against the obvious alternatives.

Rivals are scored on the same folds and the same prepared data: a linear SVM on the inputs, the same
SVM on the parts of plain NMF, and what else a person would try (`marginparts.rivals`). Each chooses
among its own settings, and all scores are honest ones: of a fold that had no part in the choice.
"""

import warnings
from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from marginparts import selection
from marginparts._types import Array, Callback, Data
from marginparts.backends import Backend
from marginparts.labels import Labels
from marginparts.recipe import Recipe, RunSpec
from marginparts.rivals.contest import NAIVE_BAYES, RIVALS, best_setting, hidden_values, scores_of
from marginparts.selection import C_GRID, DEFAULT, Choice, Setting
from marginparts.selection.folds import Fold
from marginparts.solve.factorize import factorize
from marginparts.solve.start import start_from
from marginparts.svm.class_weights import ClassWeight

#: Costs tried for the SVM on the inputs: with many columns and few labels large ones can win.
_RAW_COSTS = tuple(dict.fromkeys((*C_GRID, 50.0)))

#: The other rivals see this many unlabeled rows at most, and take part up to so many labels: their
#: time grows faster than that of a factorization.
_FEW_ROWS, _FEW_LABELS = 5_000, 2_000


class Rated(NamedTuple):
    """A way to classify, its mean score on hidden labels, and the standard error of that."""

    name: str
    score: float
    error: float


def compare(
    X: Data,
    labels: Labels,
    choice: Choice,
    *,
    class_weight: ClassWeight = None,
    scoring: str | None = None,
    backend: str | Backend = "auto",
    seed: int = 0,
    callback: Callback | None = None,
    on_rival: Callable[[str], None] = lambda name: None,
    embedded: int = 0,
) -> list[Rated]:
    """Score what was chosen against a linear SVM on the inputs, plain NMF and other rivals.

    The choice was made on the same trusted data, and the options are those of `choose`. The
    callback is called during the plain factorization; a true answer ends it. ``on_rival`` is told
    the name of each other rival when its turn comes. The last ``embedded`` columns are vectors, of
    either sign.

    Returns
    -------
    list of Rated
        Ours first, then the linear SVM and plain NMF of the same rank, then the others; empty when
        nothing could be scored.
    """
    if not choice.folds:
        return []
    folds = [
        Fold.of(labels, rows, class_weight=class_weight, scoring=scoring) for rows in choice.folds
    ]
    labels = folds[0].labels  # those that took part, the same in each
    labeled = X[np.flatnonzero(labels.labeled)]
    rank = choice.best.n_components
    rows = selection.enough_rows(labels, seed)
    how = Recipe(run=RunSpec(max_iter=100, tol=1e-3, backend=backend), embedded=embedded)
    if embedded:
        ((_, plain),) = how.parts(X[rows], None, None, rank, (0.0,), seed, callback=callback)
    else:
        H, V = start_from("random", X[rows], rank, seed)
        plain = factorize(X[rows], H, V, max_iter=100, tol=1e-3, backend=backend, callback=callback)
    on_rival("SVMs")
    maps = how.codes(labeled, plain, selection.MAP_GRID)
    on_inputs = {DEFAULT: labeled}
    on_parts = {DEFAULT._replace(map_iter=n): Z for n, Z in maps.items()}
    return [
        Rated(f"NMF-alpha, {rank} parts", choice.honest_score, choice.honest_error),
        _rated("linear SVM on the inputs", folds, on_inputs, _RAW_COSTS),
        _rated(f"plain NMF, {rank} parts", folds, on_parts, C_GRID),
        *_others(X, labels, folds, seed, on_rival, embedded),
    ]


def _others(
    X: Data, labels: Labels, folds: list[Fold], seed: int, on_rival: Callable[[str], None],
    embedded: int,
) -> list[Rated]:  # fmt: skip
    """Score the other rivals that suit the data, on all labeled rows and some unlabeled ones.

    Naive Bayes counts, and so has no use for vectors.
    """
    if labels.labeled.sum() > _FEW_LABELS:
        return []
    rows = selection.enough_rows(labels, seed, _FEW_ROWS)
    few, known = X[rows], labels.take(rows)
    moved = []
    for fold in folds:
        hidden = np.searchsorted(rows, fold.hidden)
        moved.append(fold._replace(labels=known, left=fold.left.take(rows), hidden=hidden))
    rated = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a setting that is hard to train shows in its score
        for rival in RIVALS:
            own = few[:, : few.shape[1] - embedded] if rival.name == NAIVE_BAYES else few
            if rival.suits(own, known):
                on_rival(rival.name)
                values = hidden_values(rival, own, known, moved, seed)
                rated.append(_honest(rival.name, moved, values, best_setting))
    return rated


def _rated(
    name: str, folds: list[Fold], inputs: dict[Setting, Data], costs: tuple[float, ...]
) -> Rated:
    """Score an SVM: the rule of `selection` chooses input and cost."""
    values = {
        setting._replace(C=C, normalize=n): [fold.values(Z, C, normalize=n) for fold in folds]
        for (setting, Z), C, n in product(inputs.items(), costs, selection.NORMALIZE_GRID)
    }
    return _honest(name, folds, values, selection.best_of)


def _honest(
    name: str,
    folds: list[Fold],
    values: dict[Any, list[Array]],
    choose: Callable[[dict[Any, list[float]]], Any],
) -> Rated:
    """Score a rival by its decision values in each fold: the setting is chosen on the others."""
    scores = scores_of(folds, values)

    def pick(some: list[int]) -> Any:
        return choose({setting: [own[k] for k in some] for setting, own in scores.items()})

    found = selection.honest_scores(folds, pick, lambda s, k: values[s][k])
    found = found or scores[pick([0])]  # of a single fold nothing honest can be said
    return Rated(name, float(np.mean(found)), selection.standard_error(found))
