"""The only iteration loop of the package.

One iteration updates each factor of a problem once, in the problem's order. Three ways to do it:

``mu``
    The multiplicative updates as the paper writes them. Each is the minimum of an upper bound that
    touches the loss at the current point (the paper's appendix), so the loss never rises.
``mue``
    The same updates, each applied at a point extrapolated along the factor's last increase (Hien,
    Leplat & Gillis 2024): the same cost for an iteration, and far fewer iterations.
``cd``
    A few iterations of that kind, then sweeps of coordinate descent: each entry in turn takes a
    step between the multiplicative one and its optimum, again from an extrapolated point. An
    iteration costs a few times as much, gets much further, and ends in better minima, with zeros
    in the factors. It needs a problem with a `sweep`; without one, ``mue`` is used.

From an extrapolated point a rise is rare but possible, so every evaluation of the loss is a
safeguard: after a rise the run goes back to the last good point and takes plain steps until the
next evaluation.

Where a part of a factor was lost and had to be computed again (a worker of a cluster died), the
loss may be higher than before. Then the run goes on from what there is, as from a new start.

Freezing a factor (`transform` freezes V) leaves its update out; nothing else changes.

What a run knows besides its problem is its `Position`. A *keeper* is shown the position after every
iteration and may bring it back later: a run that goes on from there does what it would have done.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Collection, Iterable
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import numpy as np

from marginparts._types import (
    Array,
    Callback,
    Check,
    Factor,
    Problem,
    Progress,
    State,
    Step,
    Stop,
)

logger = logging.getLogger("marginparts")

SOLVERS = ("auto", "mu", "mue", "cd")

#: Iterations over which the decrease is compared with the tolerance.
WINDOW = 10

#: Multiplicative iterations before the first sweep: from a random start they are the cheaper ones.
#: With many more of them the sweeps end in worse minima.
WARM_UP = 3

#: Below this number of factor entries an evaluation of the loss costs next to nothing.
_SMALL = 200_000

#: Rows of a tensor whose nonzeros are counted at a time.
_COUNTED = 1 << 16


class RangeError(FloatingPointError, ValueError):
    """Numbers became too large or too small to go on with."""


@dataclass
class Run:
    """A finished run: the last state, and how it came about."""

    state: State
    history: list[Check]
    n_iter: int
    stop: Stop
    solver: str


@dataclass
class Momentum:
    """Nesterov's extrapolation of each factor.

    A factor is moved on by at most ``cap`` of its last change, and no entry of it falls below the
    share ``least`` of its value: with ``least=1`` only increases are followed.
    """

    least: float
    cap: float
    before: State = field(default_factory=dict)
    t: float = 1.0
    b: float = 0.0

    def advance(self) -> None:
        """Begin an iteration: the next weight of Nesterov's sequence."""
        t_next = (1 + np.sqrt(1 + 4 * self.t**2)) / 2
        self.b, self.t = min((self.t - 1) / t_next, self.cap), t_next

    def restart(self) -> None:
        """Begin the sequence anew: the next iteration is a plain one."""
        self.t, self.b = 1.0, 0.0


@dataclass
class Position:
    """Where a run is: all that it needs to go on.

    ``good`` is a copy of the last state that was found good, for runs that may have to go back; it
    is empty for others. Where the loss was just evaluated (``checked``) it equals the state.
    ``begun`` is the iteration from which losses are compared, and ``recovered`` how often something
    had been lost and computed again by then.
    """

    state: State
    history: list[Check]
    momentum: Momentum | None
    good: State
    iteration: int = 0
    plain_until: int = 0
    seconds: float = 0.0
    checked: bool = True
    stop: Stop | None = None
    recovered: int = 0
    begun: int = 0

    def keep(self) -> None:
        """Remember the state as good."""
        for block, kept in self.good.items():
            kept[...] = self.state[block]

    def go_back(self) -> None:
        """Return to the last good state."""
        for block, kept in self.good.items():
            self.state[block][...] = kept


class Keeper(Protocol):
    """Keeps positions of a run, so that it can go on another time."""

    def resume(self) -> Position | None:
        """Return the position to go on from, None for the start."""
        ...

    def offer(self, position: Position) -> bool:
        """Be shown the position after an iteration; a true answer interrupts the run."""
        ...


def momentum_of(solver: str) -> Momentum | None:
    """Return the extrapolation that belongs to a solver."""
    return {"mue": Momentum(1.0, 1.0), "cd": Momentum(0.1, 0.8)}.get(solver)


def chosen(solver: str, problem: Problem) -> str:
    """Return the solver that a run will use: ``"cd"`` needs sweeps, ``"auto"`` is the model's."""
    if solver == "auto":
        solver = problem.default_solver
    return "mue" if solver == "cd" and not problem.can_sweep else solver


def minimize(
    problem: Problem,
    state: State,
    *,
    solver: str = "auto",
    max_iter: int = 200,
    tol: float = 1e-4,
    callback: Callback | None = None,
    frozen: Collection[str] = (),
    watch: bool = True,
    keeper: Keeper | None = None,
) -> Run:
    """Update the factors of a problem until the loss stops falling.

    Parameters
    ----------
    problem : Problem
        A loss with an update for each factor.
    state : dict of arrays
        The start. A problem that writes its updates in place writes them here.
    solver : {"auto", "mu", "mue", "cd"}
        See the head of this module; ``"auto"`` is what suits the problem.
    max_iter : int
        Iterations at most.
    tol : float
        The run ends when the loss fell by at most ``tol`` (relative) over `WINDOW` iterations, or
        when the residual is at most ``tol``; 0 runs all iterations.
    callback : callable or None
        Called with a `Progress` at each loss evaluation; a true answer ends the run.
    frozen : collection of str
        Factors that keep their value.
    watch : bool
        Without it a run takes plain steps, never evaluates the loss and does all its iterations.
    keeper : Keeper or None
        Shown the position after each iteration of a run that is watched.

    Returns
    -------
    Run
        With losses that never rise, unless something was lost and computed again.
    """
    asked, solver = solver, chosen(solver, problem)
    logger.info("solver %s%s", solver, "" if asked == solver else f" (for {asked!r})")
    blocks = [block for block in problem.blocks if block not in frozen]
    if not watch:
        for iteration in range(1, max_iter + 1):
            step = _step(problem, solver, iteration)
            for block in blocks:
                state = {**state, block: step(state, block, out=state[block]).factor}
        return Run(state, [], max_iter, Stop.MAX_ITER, solver)

    at = None if keeper is None else keeper.resume()
    at = at or _beginning(state, problem.loss(state), blocks, solver)
    every = _check_every(at.state, solver)
    at.recovered = problem.recovered
    began = time.perf_counter() - at.seconds
    while at.stop is None and at.iteration < max_iter:
        at.iteration += 1
        at.checked = at.iteration % every == 0 or at.iteration == max_iter
        momentum = at.momentum if at.iteration > at.plain_until else None
        step = _step(problem, solver, at.iteration, bold=momentum is not None)
        at.state, residual = _iterate(problem, at.state, blocks, step, momentum, gauge=at.checked)
        loss = problem.loss(at.state) if at.checked else math.nan
        at.seconds = time.perf_counter() - began
        if at.checked:
            rose = _judge(problem, at, loss, residual, every)
            at.stop = Stop.MAX_ITER if at.iteration == max_iter else None
            # a step ahead that failed is no reason to stop before a plain one was tried
            if not rose or momentum is None:
                at.stop = _reason_to_stop(at, tol) or at.stop
            progress = Progress(at.iteration, max_iter, at.history[-1].loss, at.seconds, residual)
            logger.info("iteration %d of %d: loss %.8g, %.1f s, residual %.2g", *progress[:5])
            if callback is not None and callback(progress):
                at.stop = Stop.CALLBACK
        if keeper is not None and keeper.offer(at) and at.stop is None:
            if not at.checked:
                _judge(problem, at, problem.loss(at.state), math.nan, every)
            at.stop = Stop.INTERRUPTED
    return Run(at.state, at.history, at.iteration, at.stop or Stop.MAX_ITER, solver)


def check_losses(losses: Iterable[float]) -> None:
    """Refuse the outcome of a run whose losses are no numbers in the units of its user."""
    if not all(map(math.isfinite, losses)):
        raise RangeError(
            "The loss leaves the range of numbers; divide X by its largest entry, or take smaller "
            "weights such as lam."
        )


def _beginning(state: State, loss: float, blocks: list[str], solver: str) -> Position:
    """Return the position before the first iteration."""
    momentum = momentum_of(solver)
    good = {} if momentum is None else {block: deepcopy(state[block]) for block in blocks}
    first = Check(0, loss, 0.0, math.nan, _nonzeros(state))
    return Position(state, [first], momentum, good)


def _judge(problem: Problem, at: Position, loss: float, residual: float, every: int) -> bool:
    """Keep the state, or go back to the last good one if the loss rose; say whether it did."""
    if at.recovered != problem.recovered:
        # the last good state is not what it was: there is nothing better to go back to
        at.recovered, at.begun = problem.recovered, at.iteration
        if at.momentum is not None:
            at.momentum.restart()
    elif at.momentum is None and math.isnan(loss):
        raise RangeError(
            f"The factors left the range of numbers in iteration {at.iteration}; give the data in "
            "float64 or in other units, or take a solver with a safeguard ('mue', 'cd')."
        )
    elif at.momentum is not None and (loss > at.history[-1].loss or math.isnan(loss)):
        logger.debug("iteration %d: the loss rose; back to plain steps", at.iteration)
        at.momentum.restart()
        at.go_back()
        at.plain_until = at.iteration + every
        if not math.isfinite(loss):
            at.momentum.before.clear()  # a NaN would spread
        return True
    at.keep()
    at.history.append(Check(at.iteration, loss, at.seconds, residual, _nonzeros(at.state)))
    return False


def _step(problem: Problem, solver: str, iteration: int, bold: bool = False) -> Callable[..., Step]:
    """Return the function that updates a factor in one iteration.

    ``bold`` ones may raise the loss, as points ahead may, and are taken under the same safeguard.
    """
    if solver != "cd" or iteration <= WARM_UP:
        return problem.update
    return partial(problem.sweep, bold=True) if bold else problem.sweep


def _iterate(
    problem: Problem,
    state: State,
    blocks: list[str],
    step: Callable[..., Step],
    momentum: Momentum | None = None,
    gauge: bool = False,
) -> tuple[State, float]:
    """Update each factor once; return the new state and the largest violation met.

    Two arrays serve a factor with momentum: the point ahead is written over the value before, and
    the new value over that.
    """
    points = {} if momentum is None else _points_ahead(problem, state, blocks, momentum)
    residual = 0.0
    for block in blocks:
        out = points.get(block) if momentum is not None else state[block]  # else in place
        point = {**state, block: points[block]} if block in points else state
        result = step(point, block, out=out, gauge=gauge)
        state = {**state, block: result.factor}
        residual = max(residual, result.violation or 0.0)
    return state, residual


def _points_ahead(
    problem: Problem, state: State, blocks: list[str], momentum: Momentum
) -> dict[str, Array]:
    """Begin an iteration: return the point ahead of each factor that has a value before.

    No point depends on another factor's update. All of them at once, because a backend that has to
    ask others for what it needs can then ask once.
    """
    momentum.advance()
    points = {}
    for block in blocks:
        now, before = state[block], momentum.before.get(block)
        momentum.before[block] = now
        if before is not None:
            points[block] = problem.ahead(block, now, before, momentum.b, momentum.least)
    return points


def _check_every(state: State, solver: str) -> int:
    """Iterations between loss evaluations: logarithms are slow, a sweep is worth many updates."""
    if sum(math.prod(factor.shape) for factor in state.values()) < _SMALL:
        return 1
    return WINDOW // 2 if solver == "cd" else WINDOW


def _nonzeros(state: State) -> dict[str, int]:
    return {block: _count(factor) for block, factor in state.items()}


def _count(factor: Factor) -> int:
    """Count the nonzeros of an array, of a tensor on a GPU, or of a factor in blocks.

    Of a tensor some rows at a time: to count, a card writes eight bytes for every entry.
    """
    if isinstance(factor, np.ndarray):
        return int(np.count_nonzero(factor))  # without a temporary
    some: Any = factor
    parts = some.split(_COUNTED) if hasattr(some, "split") else [some]
    return sum(int(part.count_nonzero()) for part in parts)


def _reason_to_stop(at: Position, tol: float) -> Stop | None:
    """Compare the last good loss with the one a window ago."""
    now = at.history[-1]
    if tol <= 0:
        return None
    if now.loss <= 0:
        return Stop.EXACT
    if now.residual <= tol:
        return Stop.STATIONARY
    window = range(at.begun, at.iteration - WINDOW + 1)
    before = next((c for c in reversed(at.history) if c.iteration in window), None)
    if before is not None and before.loss - now.loss <= tol * before.loss:
        return Stop.CONVERGED
    return None
