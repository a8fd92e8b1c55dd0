"""Choosing lam, C and the number of mapping updates on the labeled samples.

The labeled samples are cut into folds; the labels of one fold at a time are hidden and predicted.
The factorizations of one fold run down along lam, each from where the last one ended, and one
factorization serves every map and every SVM. First the codes are chosen (lam and the map) with the
default SVM, then the SVM on them, so that a grid costs little more than a few fits.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from marginparts._types import Array
from marginparts.backends import Backend
from marginparts.directions import Source, find_directions
from marginparts.factorization import factorize_path, map_rows_each, parts_of, start_from
from marginparts.geometry import gram_root
from marginparts.labels import Labels
from marginparts.linear_head import fit_head
from marginparts.scores import quality

logger = logging.getLogger("marginparts")

#: What is tried for each parameter left to choose.
LAM_GRID = (0.3, 1.0, 3.0, 10.0)
MAP_GRID = (5, 15, 40, 100)
NORMALIZE_GRID = (True, False)
C_GRID = (0.1, 0.5, 2.0, 10.0)

#: A factorization that only ranks candidates need not be finished: the most iterations of the
#: first along lam, and of those that go on from it.
_MAX_ITER, _WARM_ITER, _TOL = 60, 20, 1e-3


class Setting(NamedTuple):
    """One candidate: a factorization (lam), a map (map_iter) and an SVM (normalize, C)."""

    lam: float
    map_iter: int
    normalize: bool
    C: float


DEFAULT = Setting(lam=3.0, map_iter=40, normalize=True, C=2.0)


class Choice(NamedTuple):
    """What was chosen, and the scores of all candidates: (folds,) for each."""

    best: Setting
    scores: dict[Setting, list[float]]


def labeled_folds(labels: Labels, n_splits: int, seed: int) -> Iterator[NDArray[np.intp]]:
    """Yield the labeled rows to hide in each fold, every class spread over the folds.

    Folds after which fewer than two classes would be known are left out.
    """
    rng = np.random.default_rng(seed)
    rows = rng.permutation(np.flatnonzero(labels.labeled))
    if not labels.multilabel:
        rows = rows[np.argsort(labels.codes[rows], kind="stable")]
    for fold in range(min(n_splits, len(rows))):
        hidden = rows[fold::n_splits]
        left = labels.hide(hidden)
        if any(len(np.unique(task.signs)) == 2 for task in left.tasks()):
            yield hidden


class Grid(NamedTuple):
    """Candidates for each parameter; a single entry fixes it."""

    lam: tuple[float, ...] = LAM_GRID
    map_iter: tuple[int, ...] = MAP_GRID
    normalize: tuple[bool, ...] = NORMALIZE_GRID
    C: tuple[float, ...] = C_GRID

    @property
    def fallback(self) -> Setting:
        """The defaults, where they are candidates."""
        values: list[Any] = [d if d in g else g[0] for g, d in zip(self, DEFAULT, strict=True)]
        return Setting(*values)


def choose(
    X: Any,
    labels: Labels,
    n_components: int,
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
) -> Choice:
    """Choose lam, the map and the SVM by cross-validation over the labeled samples.

    Parameters
    ----------
    X : (n, d) trusted data
    labels : Labels
    n_components : int
    grid : Grid
    source, multiclass, features, pseudo : see `find_directions`
    init, solver, backend : see `NMFAlpha`
    seed : int

    Returns
    -------
    Choice
        Among candidates that cannot be told from the best (one standard error), the one nearest the
        defaults wins: with few labels the best score is mostly luck.
    """
    if all(len(candidates) == 1 for candidates in grid):
        return Choice(grid.fallback, {})
    n_splits = 5 if labels.labeled.sum() < 200 else 3
    folds = []
    for hidden in labeled_folds(labels, n_splits, seed):
        left = labels.hide(hidden)
        with warnings.catch_warnings():
            # a class that is hidden whole is no news to the user
            warnings.simplefilter("ignore", UserWarning)
            S = find_directions(
                X, left, source=source, multiclass=multiclass, features=features, pseudo=pseudo,
                seed=seed,
            )  # fmt: skip
        H, V = start_from(init, X, n_components, seed, left)
        codes = {}
        path = factorize_path(
            X, H, V, S=S, lams=grid.lam, solver=solver, max_iter=_MAX_ITER, warm_iter=_WARM_ITER,
            tol=_TOL, backend=backend,
        )  # fmt: skip
        for lam, result in path:
            codes.update(_map_labeled(X, result.V, labels, lam, grid.map_iter, backend))
        folds.append(Fold(codes, labels, left, hidden))
    if not folds:
        logger.info("too few labels to choose on; taking %s", grid.fallback)
        return Choice(grid.fallback, {})
    default_svm = grid.fallback[2:]
    scores = _score(folds, [Setting(*c, *default_svm) for c in product(grid.lam, grid.map_iter)])
    best = _best(scores)
    others = (Setting(*best[:2], *svm) for svm in product(grid.normalize, grid.C))
    scores |= _score(folds, [setting for setting in others if setting not in scores])
    at_best = {setting: scores[setting] for setting in scores if setting[:2] == best[:2]}
    return Choice(_best(at_best), scores)


def _map_labeled(
    X: Any, V: Array, labels: Labels, lam: float, map_iters: tuple[int, ...], backend: str | Backend
) -> dict[tuple[float, int], Array]:
    """Return the codes Z of the labeled rows for every map into one factorization."""
    X = X[np.flatnonzero(labels.labeled)]
    V = parts_of(V).T.copy()
    root = gram_root(V).astype(V.dtype)
    counts = sorted(map_iters)
    maps = map_rows_each(X, V, counts, backend)
    return {(lam, n): H @ root for n, H in zip(counts, maps, strict=True)}


class Fold(NamedTuple):
    """One fold: codes of the labeled rows by (lam, map_iter), and which of them are hidden."""

    codes: dict[tuple[float, int], Array]
    labels: Labels
    left: Labels
    hidden: NDArray[np.intp]

    def score(self, setting: Setting) -> float:
        """Train the SVM of a candidate on the labels left, and look at the hidden ones."""
        rows = np.flatnonzero(self.labels.labeled)
        Z = self.codes[setting.lam, setting.map_iter]
        head = fit_head(Z, self.left.take(rows), setting.C, normalize=setting.normalize)
        values = head.values(Z[np.searchsorted(rows, self.hidden)])
        return quality(values, self.labels.take(self.hidden))


def _score(folds: list[Fold], settings: list[Setting]) -> dict[Setting, list[float]]:
    """Return the scores (folds,) of each candidate."""
    return {setting: [fold.score(setting) for fold in folds] for setting in settings}


def _best(scores: dict[Setting, list[float]]) -> Setting:
    """Return the candidate nearest the defaults among those as good as the best."""
    means = {setting: float(np.mean(values)) for setting, values in scores.items()}
    top = max(means, key=lambda setting: means[setting])
    spread = float(np.std(scores[top])) / np.sqrt(max(len(scores[top]), 1))
    good = [setting for setting in means if means[setting] >= means[top] - spread]

    def distance(setting: Setting) -> float:
        steps = [
            abs(np.log((a + 1e-3) / (b + 1e-3))) for a, b in zip(setting, DEFAULT, strict=True)
        ]
        return float(np.sum(np.minimum(steps, 10)))

    return min(good, key=lambda setting: (distance(setting), -means[setting]))
