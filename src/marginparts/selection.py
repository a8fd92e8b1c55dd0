"""Choosing lam, C and the number of mapping updates on the labeled samples.

The labeled samples are cut into folds; the labels of one fold at a time are hidden and predicted.
One factorization serves every C and every map, and the factorizations of one fold run along lam,
each from where the last one ended, so that a grid costs little more than a few fits.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, f1_score

from marginparts._types import Array
from marginparts.directions import Source, find_directions
from marginparts.factorization import factorize, map_rows, parts_of
from marginparts.geometry import gram_root
from marginparts.init import label_start
from marginparts.labels import Labels
from marginparts.linear_head import fit_head

logger = logging.getLogger("marginparts")

#: What is tried for each parameter left to choose.
LAM_GRID = (0.3, 1.0, 3.0, 10.0)
MAP_GRID = (5, 15, 40)
NORMALIZE_GRID = (True, False)
C_GRID = (0.1, 1.0, 10.0)

#: A factorization that only ranks candidates need not be finished.
_MAX_ITER, _TOL = 60, 1e-3


class Setting(NamedTuple):
    """One candidate: a factorization (lam), a map (map_iter) and an SVM (normalize, C)."""

    lam: float
    map_iter: int
    normalize: bool
    C: float


DEFAULT = Setting(lam=1.0, map_iter=15, normalize=True, C=1.0)


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
    backend: str = "auto",
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
    backend : str
    seed : int

    Returns
    -------
    Choice
        Among candidates that cannot be told from the best (half a standard error), the one
        nearest the defaults wins: with few labels the best score is mostly luck.
    """
    scores: dict[Setting, list[float]] = {Setting(*s): [] for s in product(*grid)}
    if len(scores) == 1:
        return Choice(grid.fallback, scores)
    n_splits = 5 if labels.labeled.sum() < 200 else 3
    for hidden in labeled_folds(labels, n_splits, seed):
        left = labels.hide(hidden)
        with warnings.catch_warnings():
            # a class that is hidden whole is no news to the user
            warnings.simplefilter("ignore", UserWarning)
            S = find_directions(
                X, left, source=source, multiclass=multiclass, features=features, pseudo=pseudo,
                seed=seed,
            )  # fmt: skip
        H, V = label_start(X, left, n_components, seed)
        for lam in sorted(grid.lam):
            result = factorize(X, H, V, S=S, lam=lam, max_iter=_MAX_ITER, tol=_TOL, backend=backend)
            H, V = result.H, result.V
            for setting, score in _score(X, V, left, labels, hidden, lam, grid, backend):
                scores[setting].append(score)
    if not any(scores.values()):
        logger.info("too few labels to choose on; taking %s", grid.fallback)
        return Choice(grid.fallback, scores)
    return Choice(_best(scores), scores)


def _score(
    X: Any,
    V: Array,
    left: Labels,
    labels: Labels,
    hidden: NDArray[np.intp],
    lam: float,
    grid: Grid,
    backend: str,
) -> Iterator[tuple[Setting, float]]:
    """Yield the score of every map and every SVM on one factorization."""
    rows = np.flatnonzero(labels.labeled)
    at = np.searchsorted(rows, hidden)
    X, train, test = X[rows], left.take(rows), labels.take(hidden)
    V = parts_of(V).T.copy()
    root = gram_root(V)
    for map_iter in grid.map_iter:
        Z = map_rows(X, V, map_iter, backend) @ root
        for normalize, C in product(grid.normalize, grid.C):
            values = fit_head(Z, train, C, normalize=normalize).values(Z[at])
            yield Setting(lam, map_iter, normalize, C), _quality(values, test)


def _quality(values: Array, truth: Labels) -> float:
    """Accuracy, or the mean of the micro and macro F over known entries for multilabel data."""
    if truth.multilabel:
        rows = truth.complete
        if not rows.any():
            return 0.0
        guess, codes = values[rows] > 0, truth.codes[rows]
        return float(
            np.mean(
                [f1_score(codes, guess, average=a, zero_division=0) for a in ("micro", "macro")]
            )
        )
    if values.shape[1] == 1:
        return float(accuracy_score(truth.codes, (values[:, 0] > 0).astype(int)))
    return float(accuracy_score(truth.codes, values.argmax(axis=1)))


def _best(scores: dict[Setting, list[float]]) -> Setting:
    """Return the candidate nearest the defaults among those as good as the best."""
    means = {setting: float(np.mean(values)) for setting, values in scores.items()}
    top = max(means, key=lambda setting: means[setting])
    spread = float(np.std(scores[top])) / np.sqrt(max(len(scores[top]), 1))
    good = [setting for setting in means if means[setting] >= means[top] - 0.5 * spread]

    def distance(setting: Setting) -> float:
        steps = [
            abs(np.log((a + 1e-3) / (b + 1e-3))) for a, b in zip(setting, DEFAULT, strict=True)
        ]
        return float(np.sum(np.minimum(steps, 10)))

    return min(good, key=lambda setting: (distance(setting), -means[setting]))
