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

From an extrapolated point a rise is rare but possible, so every look at the loss is a safeguard:
after a rise the run goes back to the last good point and takes plain steps until the next look.

Freezing a factor (`transform` freezes V) leaves its update out; nothing else changes.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Collection
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from marginparts._types import Array, Callback, Check, Problem, Progress, State, Step, Stop

logger = logging.getLogger("marginparts")

SOLVERS = ("auto", "mu", "mue", "cd")

#: Iterations over which the decrease is compared with the tolerance.
WINDOW = 10

#: Multiplicative iterations before the first sweep: from a random start they are the cheaper ones.
#: With many more of them the sweeps end in worse minima.
WARM_UP = 3

#: Below this number of factor entries a look at the loss costs next to nothing.
_SMALL = 200_000


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
        Called with a `Progress` at each look at the loss; a true answer ends the run.
    frozen : collection of str
        Factors that keep their value.
    watch : bool
        Without it a run takes plain steps, never looks at the loss and does all its iterations.

    Returns
    -------
    Run
        With losses that never rise.
    """
    asked, solver = solver, chosen(solver, problem)
    logger.info("solver %s%s", solver, "" if asked == solver else f" (for {asked!r})")
    blocks = [block for block in problem.blocks if block not in frozen]
    if not watch:
        for iteration in range(1, max_iter + 1):
            state, _ = _iterate(problem, state, blocks, _step(problem, solver, iteration))
        return Run(state, [], max_iter, Stop.MAX_ITER, solver)

    momentum = momentum_of(solver)
    every = _looks_every(state, solver)
    began = time.perf_counter()
    history = [Check(0, problem.loss(state), 0.0, math.nan, _nonzeros(state))]
    good, plain_until = _Good(state, blocks, needed=momentum is not None), 0
    for iteration in range(1, max_iter + 1):
        look = iteration % every == 0 or iteration == max_iter
        ahead = momentum if iteration > plain_until else None
        step = _step(problem, solver, iteration)
        state, residual = _iterate(problem, state, blocks, step, ahead, gauge=look)
        if not look:
            continue
        loss = problem.loss(state)
        seconds = time.perf_counter() - began
        rose = momentum is not None and loss > history[-1].loss
        if momentum is not None and rose:
            logger.debug("iteration %d: the loss rose; back to plain steps", iteration)
            momentum.restart()
            state, plain_until = good.restore(state), iteration + every
        else:
            good.keep(state)
            history.append(Check(iteration, loss, seconds, residual, _nonzeros(state)))
        # a step ahead that failed is no reason to stop before a plain one was tried
        stop = None if rose and ahead is not None else _reason_to_stop(history, iteration, tol)
        progress = Progress(iteration, max_iter, history[-1].loss, seconds, residual)
        if callback is not None and callback(progress):
            stop = Stop.CALLBACK
        if stop is not None:
            return Run(state, history, iteration, stop, solver)
    return Run(state, history, max_iter, Stop.MAX_ITER, solver)


def _step(problem: Any, solver: str, iteration: int) -> Any:
    """Return the function that updates a factor in one iteration."""
    return problem.sweep if solver == "cd" and iteration > WARM_UP else problem.update


def _iterate(
    problem: Problem,
    state: State,
    blocks: list[str],
    step: Any,
    momentum: Momentum | None = None,
    gauge: bool = False,
) -> tuple[State, float]:
    """Update each factor once; return the new state and the largest violation met.

    Two arrays serve a factor with momentum: the point ahead is written over the value before, and
    the new value over that.
    """
    residual = 0.0
    if momentum is not None:
        momentum.advance()
    for block in blocks:
        out: Array | None
        now = state[block]
        point, out = state, now  # in place, without momentum
        if momentum is not None:
            before = momentum.before.get(block)
            momentum.before[block] = now
            out = None
            if before is not None:
                out = problem.ahead(now, before, momentum.b, momentum.least)
                point = {**state, block: out}
        result: Step = step(point, block, out=out, gauge=gauge)
        state = {**state, block: result.factor}
        residual = max(residual, result.violation or 0.0)
    return state, residual


class _Good:
    """A copy of the last state that was found good, for runs that may have to go back."""

    def __init__(self, state: State, blocks: list[str], needed: bool) -> None:
        self.copy = {block: deepcopy(state[block]) for block in blocks} if needed else {}

    def keep(self, state: State) -> None:
        for block, kept in self.copy.items():
            kept[...] = state[block]

    def restore(self, state: State) -> State:
        for block, kept in self.copy.items():
            state[block][...] = kept
        return state


def _looks_every(state: State, solver: str) -> int:
    """Iterations between looks: a logarithm is dear, and a sweep is worth several updates."""
    if sum(math.prod(factor.shape) for factor in state.values()) < _SMALL:
        return 1
    return WINDOW // 2 if solver == "cd" else WINDOW


def _nonzeros(state: State) -> dict[str, int]:
    return {block: _count(factor) for block, factor in state.items()}


def _count(factor: Any) -> int:
    """Count the nonzeros of an array, of a tensor on a GPU, or of a factor in blocks."""
    if isinstance(factor, np.ndarray):
        return int(np.count_nonzero(factor))  # without a temporary
    return int(factor.count_nonzero())


def _reason_to_stop(history: list[Check], iteration: int, tol: float) -> Stop | None:
    """Compare the last good look at the loss with the one a window ago."""
    now = history[-1]
    if tol <= 0:
        return None
    if now.loss <= 0:
        return Stop.EXACT
    if now.residual <= tol:
        return Stop.STATIONARY
    before = next((c for c in reversed(history) if c.iteration <= iteration - WINDOW), None)
    if before is not None and before.loss - now.loss <= tol * before.loss:
        return Stop.CONVERGED
    return None
