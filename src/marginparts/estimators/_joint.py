"""Rounds of `joint`: parts and directions in turn, as many as hidden labels are in favor of."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import fields, replace
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from marginparts._types import Array, Callback, Data, Progress, Result, Stop
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


class _Stage:
    """Tells a callback of the runs of a stage as if they were one.

    ``done`` is what came before the run under way: rounds while their number is chosen, else
    iterations.
    """

    def __init__(self, callback: Callback | None, name: str, total: int) -> None:
        self.callback, self.name, self.total = callback, name, total
        self.done, self.stopped, self.began = 0, False, time.perf_counter()

    def __call__(self, progress: Progress) -> bool:
        """Tell how the run under way goes; end the stage when the callback asks for it."""
        own = progress.iteration if self.name == "parts" else 0
        told = progress._replace(
            iteration=self.done + own, max_iter=self.total, stage=self.name,
            seconds=time.perf_counter() - self.began,
        )  # fmt: skip
        self.stopped = self.callback is not None and bool(self.callback(told))
        return self.stopped


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
    X: Data, labels: Labels, recipe: Recipe, rank: int, lam: float, seed: int,
    callback: Callback | None = None,
) -> Iterator[Round]:  # fmt: skip
    """Yield the fit with fixed directions, and then the fit after each round.

    A run that the callback ends is the last one.
    """
    found = find_directions(X, labels, recipe.directions, seed, keep=True)
    ((_, result),) = recipe.parts(X, labels, found.S, rank, (lam,), seed, callback=callback)
    if found.asked is None or not found.asked.tasks or lam == 0:
        yield Round(found, result, ())
        return
    joint = Joint.of(X, found.asked, lam, result.H, result.V)
    alphas: list[Array] = [alpha.astype(np.float64) for alpha in found.asked.alphas]
    value, iterations = result.losses[-1] + joint.duals(alphas), result.n_iter
    yield Round(found, result, (value,))
    while result.stop is not Stop.CALLBACK:
        alphas, fall = joint.moved(alphas, result.H, result.V)
        if fall <= 0:
            return
        found = found._replace(S=found.asked.directions(alphas).astype(X.dtype))
        run = replace(
            recipe.run, init=(result.H, result.V), max_iter=min(ITERATIONS, recipe.run.max_iter)
        )
        again = replace(recipe, run=run)
        ((_, result),) = again.parts(X, labels, found.S, rank, (lam,), seed, callback=callback)
        iterations += result.n_iter
        duals = joint.duals(alphas)
        yield Round(
            found, replace(result, n_iter=iterations),
            (result.losses[0] + duals, result.losses[-1] + duals),
        )  # fmt: skip


def joint_fit(
    X: Data, labels: Labels, recipe: Recipe, rank: int, lam: float, seed: int,
    callback: Callback | None = None,
) -> tuple[Directions, Result, list[float], list[float]]:  # fmt: skip
    """Return directions, parts, the objective's course and the scores by which rounds were chosen.

    The rounds are as many as one fold of the labels, hidden from all of it, is in favor of. A
    callback is told of this choice, and then of the parts, and can end either.
    """
    scores = _evidence(X, labels, recipe, rank, lam, seed, callback)
    wanted = int(np.argmax(scores)) if scores else 0
    most = recipe.run.max_iter
    stage = _Stage(callback, "parts", most + wanted * min(ITERATIONS, most))
    objective: list[float] = []
    for last in islice(rounds_of(X, labels, recipe, rank, lam, seed, stage), wanted + 1):
        objective += last.objective
        stage.done = last.result.n_iter
    return last.found, last.result, objective, scores


def _evidence(
    X: Data, labels: Labels, recipe: Recipe, rank: int, lam: float, seed: int,
    callback: Callback | None = None,
) -> list[float]:  # fmt: skip
    """Return how well hidden labels are predicted after 0, 1, ... rounds, if they can be.

    A round that the callback ends is not among them.
    """
    hidden = next(iter(labeled_folds(labels, _FOLDS, seed)), None)
    if hidden is None:
        return []
    fold = Fold(labels, labels.hide(hidden), hidden)
    known, scores = np.flatnonzero(labels.labeled), []
    n, stage = recipe.map.map_iter, _Stage(callback, "choosing", ROUNDS + 1)
    for each in islice(rounds_of(X, fold.left, recipe, rank, lam, seed, stage), ROUNDS + 1):
        if stage.stopped:
            break
        Z = recipe.codes(X[known], each.result, (n,), None)[n]
        scores.append(fold.score(Z, recipe.head.C))
        stage.done = len(scores)
        if len(scores) - 1 - int(np.argmax(scores)) >= _PATIENCE:
            break
    return scores
