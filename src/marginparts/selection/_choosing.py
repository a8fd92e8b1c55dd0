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
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginparts._types import Array, Callback
from marginparts.backends import Backend
from marginparts.checkpoint import Logbook
from marginparts.labels import Labels
from marginparts.recipe import Recipe
from marginparts.selection._choice import Choice
from marginparts.selection._notes import choice_notes, read_choice
from marginparts.selection._race import Race
from marginparts.selection._settings import Grid, default_for
from marginparts.selection.folds import enough_labels, folds_of
from marginparts.solve.factorize import parts_of
from marginparts.solve.geometry import gram_root
from marginparts.solve.map import map_rows, map_rows_each

logger = logging.getLogger("marginparts")

#: A factorization that ranks candidates need not see all unlabeled rows: parts change little beyond
#: this number.
_ENOUGH_ROWS = 20_000


def choose(
    X: Any,
    labels: Labels,
    grid: Grid,
    recipe: Recipe | None = None,
    *,
    scoring: str | None = None,
    thresholds: bool = True,
    rehearse: bool = True,
    output: str = "gram",
    seed: int = 0,
    n_splits: int | None = None,
    callback: Callback | None = None,
    logbook: Logbook | None = None,
) -> Choice:
    """Choose the rank, lam, the map and the SVM by cross-validation over the labeled samples.

    Parameters
    ----------
    X : (n, d) trusted data
    labels : Labels
    grid : Grid
    recipe : Recipe or None
        How labels and rows become parts; its ``class_weight`` is that of the SVMs on the codes
        too, and its ``cost`` gives way to the candidates.
    scoring : str or None
        What is to be large, see `quality`.
    thresholds : bool
        Whether thresholds will be chosen where samples have several labels: the honest score is
        one with thresholds then.
    rehearse : bool
        Hide labels and predict them even when nothing is left to choose, for the sake of what is
        learned by that.
    output : {"gram", "coefficients"}
        The codes: Z, or H.
    seed : int
        As for the fit.
    n_splits : int or None
        Folds; by default five, or three when there are many labels.
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
    recipe = Recipe() if recipe is None else recipe
    default = default_for(labels)
    if not rehearse and all(len(candidates) == 1 for candidates in grid):
        return Choice(grid.fallback(default), {})
    labels = enough_labels(labels, seed)
    folds = folds_of(labels, seed, n_splits, class_weight=recipe.class_weight, scoring=scoring)
    if not folds:
        logger.info("too few labels to choose on; taking %s", grid.fallback(default))
        return Choice(grid.fallback(default), {})
    logbook = Logbook(seed) if logbook is None else logbook
    if (notes := logbook.recall("choice")) is not None:
        return _settled(read_choice(notes), logbook)
    race = Race(grid, folds, callback, default, logbook, thresholds=thresholds)
    rows = enough_rows(labels, seed) if isinstance(recipe.init, str) else np.arange(X.shape[0])
    X_few, labeled = X[rows], X[np.flatnonzero(labels.labeled)]
    for fold in race.folds_left():
        left, ranks = fold.left.take(rows), race.ranks_left
        margins = _margins(X_few, left, recipe, seed)
        for rank in ranks:
            for cost in race.costs(rank):
                found = recipe.parts(
                    X_few, left, margins(cost), rank, race.lams(rank, cost), seed,
                    callback=race.watch,
                )  # fmt: skip
                for lam, result in found:
                    if race.stopped:
                        return _settled(race.finish(), logbook, race)
                    codes = codes_by_map(labeled, result.V, grid.map_iter, recipe.backend, output)
                    race.enter(fold, rank, lam, cost, codes)
            race.end_trial(rank)
            if logbook.offer("race", race.notes):
                return _settled(race.finish(), logbook, race)
        race.drop_the_hopeless()
    return _settled(race.finish(), logbook)


def _margins(X: Any, labels: Labels, recipe: Recipe, seed: int) -> Callable[[float], Any]:
    """Return a function that finds S for a cost of the SVMs behind it, once for each."""

    @cache
    def found(cost: float) -> Any:
        with warnings.catch_warnings():
            # a class that is hidden whole is no news to the user
            warnings.simplefilter("ignore", UserWarning)
            return recipe._replace(cost=cost).margin(X, labels, seed).S

    return found


def _settled(choice: Choice, logbook: Logbook, unfinished: Race | None = None) -> Choice:
    """Note the choice; if the race was interrupted, note where that was, and do not go by it."""
    if unfinished is not None and logbook.interrupted:
        logbook.offer("race", unfinished.notes)
        logbook.break_off()
    logbook.settle("choice", choice_notes(choice))
    return choice


def enough_rows(labels: Labels, seed: int, enough: int | None = None) -> NDArray[np.intp]:
    """Return all labeled rows and, where there are very many, a draw of the unlabeled ones."""
    enough = _ENOUGH_ROWS if enough is None else enough
    unlabeled = np.flatnonzero(~labels.labeled)
    if len(unlabeled) > enough:
        unlabeled = np.random.default_rng(seed).choice(unlabeled, enough, replace=False)
    return np.sort(np.concatenate([np.flatnonzero(labels.labeled), unlabeled]))


def codes_by_map(
    X: Any,
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
