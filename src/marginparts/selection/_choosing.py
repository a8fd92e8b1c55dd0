"""Choosing the rank, lam, C and the map on the labeled samples.

The labeled samples are cut into folds; the labels of one fold at a time are hidden and predicted.
The factorizations of one fold and rank run down along lam, each from where the last one ended, and
one factorization serves every map and every SVM. First the codes are chosen (rank, lam and map)
with the default SVM, then the SVM on them, so that a grid costs little more than a few fits.

It is a race: after each fold from the second on, codes that are clearly worse than the best are
dropped, and no factorization is made for their sake any more.
"""

from __future__ import annotations

import logging
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginparts._types import Array, Callback
from marginparts.backends import Backend
from marginparts.checkpoint import Logbook
from marginparts.directions import Source, find_directions
from marginparts.factorization import factorize_path, map_rows_each, parts_of, start_from
from marginparts.folds import enough_labels, folds_of
from marginparts.geometry import gram_root
from marginparts.labels import Labels
from marginparts.selection._choice import Choice
from marginparts.selection._notes import choice_notes, read_choice
from marginparts.selection._race import Race
from marginparts.selection._settings import Grid, default_for

logger = logging.getLogger("marginparts")

#: A factorization that only ranks candidates need not be finished: the most iterations of the
#: first along lam, and of those that go on from it.
_MAX_ITER, _WARM_ITER, _TOL = 60, 20, 1e-3

#: Nor need it see all unlabeled rows: parts change little beyond this number.
_ENOUGH_ROWS = 20_000


def choose(
    X: Any,
    labels: Labels,
    grid: Grid,
    *,
    source: str | Source = "svm",
    multiclass: str = "ovr",
    features: Any = None,
    pseudo: str | None = None,
    init: Any = "auto",
    solver: str = "auto",
    backend: str | Backend = "auto",
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
    source, multiclass, features, pseudo : see `find_directions`
    init, solver, backend : see `NMFAlpha`
    seed : int
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
    default = default_for(labels)
    if all(len(candidates) == 1 for candidates in grid):
        return Choice(grid.fallback(default), {})
    labels = enough_labels(labels, seed)
    folds = folds_of(labels, seed, n_splits)
    if not folds:
        logger.info("too few labels to choose on; taking %s", grid.fallback(default))
        return Choice(grid.fallback(default), {})
    logbook = Logbook(seed) if logbook is None else logbook
    if (notes := logbook.recall("choice")) is not None:
        return _settled(read_choice(notes), logbook)
    race = Race(grid, folds, callback, default, logbook)
    rows = enough_rows(labels, seed) if isinstance(init, str) else np.arange(X.shape[0])
    X_few, labeled = X[rows], X[np.flatnonzero(labels.labeled)]
    for fold in race.folds_left():
        left, ranks = fold.left.take(rows), race.ranks_left
        if ranks:
            with warnings.catch_warnings():
                # a class that is hidden whole is no news to the user
                warnings.simplefilter("ignore", UserWarning)
                S = find_directions(
                    X_few, left, source=source, multiclass=multiclass, features=features,
                    pseudo=pseudo, seed=seed,
                ).S  # fmt: skip
        for rank in ranks:
            H, V = start_from(init, X_few, rank, seed, left)
            path = factorize_path(
                X_few, H, V, S=S, lams=race.lams(rank), solver=solver, max_iter=_MAX_ITER,
                warm_iter=_WARM_ITER, tol=_TOL, backend=backend, callback=race.watch,
            )  # fmt: skip
            for lam, result in path:
                if race.stopped:
                    return _settled(race.finish(), logbook, race)
                race.enter(fold, rank, lam, codes_by_map(labeled, result.V, grid.map_iter, backend))
            race.end_trial(rank)
            if logbook.offer("race", race.notes):
                return _settled(race.finish(), logbook, race)
        race.drop_the_hopeless()
    return _settled(race.finish(), logbook)


def _settled(choice: Choice, logbook: Logbook, unfinished: Race | None = None) -> Choice:
    """Note the choice; if the race was interrupted, note where that was, and do not go by it."""
    if unfinished is not None and logbook.interrupted:
        logbook.offer("race", unfinished.notes)
        logbook.break_off()
    logbook.settle("choice", choice_notes(choice))
    return choice


def enough_rows(labels: Labels, seed: int, enough: int = _ENOUGH_ROWS) -> NDArray[np.intp]:
    """Return all labeled rows and, where there are very many, a draw of the unlabeled ones."""
    unlabeled = np.flatnonzero(~labels.labeled)
    if len(unlabeled) > enough:
        unlabeled = np.random.default_rng(seed).choice(unlabeled, enough, replace=False)
    return np.sort(np.concatenate([np.flatnonzero(labels.labeled), unlabeled]))


def codes_by_map(
    X: Any, V: Array, map_iters: tuple[int, ...], backend: str | Backend
) -> dict[int, Array]:
    """Return the codes Z of rows for every map into one factorization."""
    V = parts_of(V).T.copy()
    root = gram_root(V).astype(V.dtype)
    counts = sorted(map_iters)
    maps = map_rows_each(X, V, counts, backend)
    return {n: H @ root for n, H in zip(counts, maps, strict=True)}
