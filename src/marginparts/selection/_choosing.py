"""Choosing the rank, lam, C and the map on the labeled samples.

The labeled samples are cut into folds; the labels of one fold at a time are hidden and predicted.
What is scored is the model that a fit makes with the candidate's settings and the labels left: the
parts come from the same `Recipe`, afresh for each rank and lam. One factorization serves every map
and every SVM: first the codes are chosen (rank, lam and map) with the default SVM, then the SVM on
them.

It is a race: after each fold from the second on, codes that are clearly worse than the best are
dropped, and no factorization is made for their sake any more.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginparts._types import Array, Callback, Matrix
from marginparts.backends import Backend
from marginparts.checkpoint import Logbook
from marginparts.directions import DirectionSpec, find_directions
from marginparts.labels import Labels
from marginparts.recipe import Recipe
from marginparts.rows.base import OutOfCore
from marginparts.scores import check_scoring
from marginparts.selection._choice import CandidateGrid, Choice, default_for
from marginparts.selection._race import Race
from marginparts.selection.folds import enough_labels, folds_of
from marginparts.solve.factorize import map_rows, map_rows_each, parts_of
from marginparts.solve.geometry import gram_root
from marginparts.validation import check_count, check_option

logger = logging.getLogger("marginparts")

#: A factorization that ranks candidates need not see all unlabeled rows: parts change little beyond
#: this number.
_ENOUGH_ROWS = 20_000


@dataclass(frozen=True)
class Comparison:
    """How candidates are compared; `NMFAlphaClassifier` says what the fields mean.

    ``n_splits`` is the number of folds: by default five, or three when there are many labels.
    """

    scoring: str | None = None
    thresholds: str | None = "auto"
    rehearse: bool = True
    n_splits: int | None = None

    def __post_init__(self) -> None:
        check_scoring(self.scoring)
        if self.thresholds is not None:
            check_option(self.thresholds, "thresholds", ("auto",))
        if self.n_splits is not None:
            check_count(self.n_splits, "cv", least=2)


def choose(
    X: Matrix | OutOfCore,
    labels: Labels,
    grid: CandidateGrid,
    recipe: Recipe,
    comparison: Comparison,
    seed: int = 0,
    *,
    callback: Callback | None = None,
    logbook: Logbook | None = None,
) -> Choice:
    """Choose the rank, lam, the map and the SVM by cross-validation over the labeled samples.

    Parameters
    ----------
    X : (n, d) trusted data
    labels : Labels
    grid : CandidateGrid
    recipe : Recipe
        How labels and rows become parts; the candidates stand in for what it says of the number of
        mapping updates and of the costs of all SVMs.
    comparison : Comparison
    seed : int
        As for the fit.
    callback : callable or None
        Called with a `Progress` while candidates are tried; a true answer ends the trials, and
        the best so far is taken.
    logbook : Logbook or None
        Keeps the trials that are done, so that they are not done again.

    Returns
    -------
    Choice
        The rank with the best codes wins. At that rank, among candidates that cannot be told from
        the best (one standard error), the one nearest the defaults does: with few labels the best
        score is mostly luck.
    """
    default = default_for(labels)
    if not comparison.rehearse and all(len(candidates) == 1 for candidates in grid):
        return Choice(grid.fallback(default), {})
    labels = enough_labels(labels, seed)
    folds = folds_of(
        labels, seed, comparison.n_splits, class_weight=recipe.head.class_weight,
        scoring=comparison.scoring,
    )  # fmt: skip
    if not folds:
        logger.info("too few labels to choose on; taking %s", grid.fallback(default))
        return Choice(grid.fallback(default), {})
    race = Race(grid, folds, callback, default, thresholds=comparison.thresholds is not None)
    run = partial(_run, race, X, labels, recipe, seed)
    if logbook is not None:
        from marginparts.selection._notes import kept_choice

        return kept_choice(race, run, logbook)
    run()
    return race.finish()


def _run(
    race: Race,
    X: Matrix | OutOfCore,
    labels: Labels,
    recipe: Recipe,
    seed: int,
    ends: Callable[[], bool] = lambda: False,
) -> bool:
    """Run a race, a trial for each fold and rank; say whether it came to its end.

    ``ends`` is asked after each trial.
    """
    whole = not isinstance(recipe.run.init, str)  # a start that was given is one for all rows
    rows = np.arange(X.shape[0]) if whole else enough_rows(labels, seed)
    X_few, labeled = X[rows], X[np.flatnonzero(labels.labeled)]
    for fold in race.folds_left():
        left = fold.left.take(rows)
        margins = _margins(X_few, left, recipe.directions, seed)
        for rank in race.ranks_left:
            for cost in race.costs(rank):
                found = recipe.parts(
                    X_few, left, margins(cost), rank, race.lams(rank, cost), seed,
                    callback=race.watch,
                )  # fmt: skip
                for lam, result in found:
                    if race.stopped:
                        return False
                    codes = codes_by_map(
                        labeled, result.V, race.grid.map_iter, recipe.run.backend, recipe.map.output
                    )
                    race.enter(fold, rank, lam, cost, codes)
            race.end_trial(rank)
            if ends():
                return False
        race.drop_the_hopeless()
    return True


def _margins(
    X: Matrix, labels: Labels, spec: DirectionSpec, seed: int
) -> Callable[[float], sp.csr_array]:
    """Return a function that finds S for a cost of the SVMs behind it, once for each."""

    @cache
    def found(cost: float) -> sp.csr_array:
        with warnings.catch_warnings():
            # a class that is hidden whole is no news to the user
            warnings.simplefilter("ignore", UserWarning)
            return find_directions(X, labels, replace(spec, C=cost), seed).S

    return found


def enough_rows(labels: Labels, seed: int, enough: int | None = None) -> NDArray[np.intp]:
    """Return all labeled rows and, where there are very many, a draw of the unlabeled ones."""
    enough = _ENOUGH_ROWS if enough is None else enough
    unlabeled = np.flatnonzero(~labels.labeled)
    if len(unlabeled) > enough:
        unlabeled = np.random.default_rng(seed).choice(unlabeled, enough, replace=False)
    return np.sort(np.concatenate([np.flatnonzero(labels.labeled), unlabeled]))


def codes_by_map(
    X: Matrix,
    V: Array,
    map_iters: tuple[int | None, ...],
    backend: str | Backend,
    output: str = "gram",
) -> dict[int | None, Array]:
    """Return the codes of rows, Z or H, for every map into one factorization."""
    V = parts_of(V).T.copy()
    root = gram_root(V) if output == "gram" else np.eye(V.shape[1], dtype=V.dtype)
    counts: list[int | None] = [*sorted(n for n in map_iters if n is not None)]
    maps = map_rows_each(X, V, counts, backend) if counts else []
    if None in map_iters:  # from the flat start too, so that it is what `map_rows` gives
        counts, maps = [*counts, None], [*maps, map_rows(X, V, None, backend)]
    return {n: np.asarray(H @ root, dtype=X.dtype) for n, H in zip(counts, maps, strict=True)}
