"""Rounds of `joint`: parts and directions in turn, as many as hidden labels are in favor of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from marginparts._types import Array, Data, Result
from marginparts.directions import Directions, find_directions
from marginparts.labels import Labels
from marginparts.recipe import Recipe
from marginparts.rows.base import Elsewhere
from marginparts.selection.folds import Fold, labeled_folds
from marginparts.solve.run_spec import RunSpec
from marginparts.svm.joint import Joint

#: Rounds at most, rounds without a gain after which no more are tried, and iterations of V and H in
#: each of them.
ROUNDS, _PATIENCE, ITERATIONS = 5, 2, 30

#: The labels of one of so many folds are hidden.
_FOLDS = 3

#: How a run may be made that joint directions know of.
_TAKEN = ("init", "solver", "max_iter", "tol", "backend")


class Round(NamedTuple):
    """Directions and parts after a round, and the objective: after S moved, and after V and H."""

    found: Directions
    result: Result
    objective: tuple[float, ...]


def check_joint(X: Any, run: RunSpec, weights: Array | None, checkpoint: Any) -> None:
    """Refuse what joint directions do not know of."""
    plain = RunSpec(**{name: getattr(run, name) for name in _TAKEN})
    # without a prior its strength is without effect
    own = [each.name for each in fields(run) if each.name not in (*_TAKEN, "strength")]
    set_too = [name for name in own if getattr(run, name) is not getattr(plain, name)]
    set_too = [name for name in set_too if np.any(getattr(run, name) != getattr(plain, name))]
    beside = {"sample_weight": weights, "checkpoint": checkpoint}
    set_too += [name for name, value in beside.items() if value is not None]
    if set_too:
        raise ValueError(f"directions='joint' does not go with {set_too[0]}; drop one of them.")
    if isinstance(X, Elsewhere):
        raise ValueError("directions='joint' needs X in memory, not on disk or on a cluster.")


def rounds_of(
    X: Data, labels: Labels, recipe: Recipe, rank: int, lam: float, seed: int
) -> Iterator[Round]:
    """Yield the fit with fixed directions, and then the fit after each round."""
    found = find_directions(X, labels, recipe.directions, seed, keep=True)
    ((_, result),) = recipe.parts(X, labels, found.S, rank, (lam,), seed)
    if found.asked is None or not found.asked.tasks or lam == 0:
        yield Round(found, result, ())
        return
    joint = Joint.of(X, found.asked, lam, result.H, result.V)
    alphas: list[Array] = [alpha.astype(np.float64) for alpha in found.asked.alphas]
    value, iterations = result.losses[-1] + joint.duals(alphas), result.n_iter
    yield Round(found, result, (value,))
    while True:
        alphas, fall = joint.moved(alphas, result.H, result.V)
        if fall <= 0:
            return
        found = found._replace(S=found.asked.directions(alphas).astype(X.dtype))
        run = replace(
            recipe.run, init=(result.H, result.V), max_iter=min(ITERATIONS, recipe.run.max_iter)
        )
        again = replace(recipe, run=run)
        ((_, result),) = again.parts(X, labels, found.S, rank, (lam,), seed)
        iterations += result.n_iter
        duals = joint.duals(alphas)
        yield Round(
            found, replace(result, n_iter=iterations),
            (result.losses[0] + duals, result.losses[-1] + duals),
        )  # fmt: skip


def joint_fit(
    X: Data, labels: Labels, recipe: Recipe, rank: int, lam: float, seed: int
) -> tuple[Directions, Result, list[float], list[float]]:
    """Return directions, parts, the objective's course and the scores by which rounds were chosen.

    The rounds are as many as one fold of the labels, hidden from all of it, is in favor of.
    """
    scores = _evidence(X, labels, recipe, rank, lam, seed)
    wanted = int(np.argmax(scores)) if scores else 0
    objective: list[float] = []
    for last in islice(rounds_of(X, labels, recipe, rank, lam, seed), wanted + 1):
        objective += last.objective
    return last.found, last.result, objective, scores


def _evidence(
    X: Data, labels: Labels, recipe: Recipe, rank: int, lam: float, seed: int
) -> list[float]:
    """Return how well hidden labels are predicted after 0, 1, ... rounds, if they can be."""
    hidden = next(iter(labeled_folds(labels, _FOLDS, seed)), None)
    if hidden is None:
        return []
    fold = Fold(labels, labels.hide(hidden), hidden)
    known, scores = np.flatnonzero(labels.labeled), []
    n = recipe.map.map_iter
    for each in islice(rounds_of(X, fold.left, recipe, rank, lam, seed), ROUNDS + 1):
        Z = recipe.codes(X[known], each.result, (n,), None)[n]
        scores.append(fold.score(Z, recipe.head.C))
        if len(scores) - 1 - int(np.argmax(scores)) >= _PATIENCE:
            break
    return scores
