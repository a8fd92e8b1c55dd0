"""The only iteration loop of the package.

One iteration updates each factor of a problem once, in the problem's order. Two ways to do it:

``mu``
    The multiplicative updates as the paper writes them. Each is the minimum of an upper bound that
    touches the loss at the current point (the paper's appendix), so the loss never rises.
``mue``
    The same updates, each applied at a point extrapolated along the factor's last increase (Hien,
    Leplat & Gillis 2024): the same cost for an iteration, and far fewer iterations. A rise is
    rare but possible, so every look at the loss is a safeguard: after a rise the run goes back to
    the last good point and takes plain steps until the next look.

Freezing a factor (`transform` freezes V) leaves its update out; nothing else changes.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np

from marginparts._types import Array, Callback, Check, Problem, Progress, State, Stop

logger = logging.getLogger("marginparts")

SOLVERS = ("auto", "mu", "mue")

#: Iterations over which the decrease is compared with the tolerance.
WINDOW = 10

#: Below this number of factor entries a look at the loss costs next to nothing.
_SMALL = 200_000


@dataclass
class Run:
    """A finished run: the last state, and how it came about."""

    state: State
    history: list[Check]
    n_iter: int
    stop: Stop


@dataclass
class Momentum:
    """Nesterov's extrapolation of each block, along increases only: nothing turns negative."""

    previous: State = field(default_factory=dict)
    t: float = 1.0
    b: float = 0.0

    def advance(self) -> None:
        """Begin an iteration: the next weight of Nesterov's sequence."""
        t_next = (1 + np.sqrt(1 + 4 * self.t**2)) / 2
        self.b, self.t = (self.t - 1) / t_next, t_next

    def ahead(self, state: State, block: str) -> State:
        """Return the state with one factor moved ahead along its last increase."""
        now = state[block]
        before = self.previous.get(block)
        self.previous[block] = now
        if before is None or self.b == 0:
            return state
        step = np.maximum(now - before, 0)
        step *= now.dtype.type(self.b)
        step += now
        return {**state, block: step}

    def restart(self) -> None:
        """Forget the past."""
        self.previous, self.t, self.b = {}, 1.0, 0.0


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
        The start. Its arrays are not written to.
    solver : {"auto", "mu", "mue"}
        See the head of this module; ``"auto"`` is ``"mue"``.
    max_iter : int
        Iterations at most.
    tol : float
        The run ends when the loss fell by less than ``tol`` (relative) over `WINDOW` iterations;
        0 runs all iterations.
    callback : callable or None
        Called with a `Progress` at each look at the loss; a true answer ends the run.
    frozen : collection of str
        Factors that keep their value.
    watch : bool
        Without it a plain run (``"mu"``) never looks at the loss and does all its iterations.

    Returns
    -------
    Run
        With losses that never rise.
    """
    blocks = [block for block in problem.blocks if block not in frozen]
    momentum = Momentum() if solver in ("auto", "mue") else None
    every = 1 if sum(factor.size for factor in state.values()) < _SMALL else WINDOW
    if not watch:
        for _ in range(max_iter):
            state = _iterate(problem, state, blocks, None)
        return Run(state, [], max_iter, Stop.MAX_ITER)
    began = time.perf_counter()
    history = [Check(0, problem.loss(state), 0.0)]
    good, plain_until = state, 0

    for iteration in range(1, max_iter + 1):
        extrapolate = momentum is not None and iteration > plain_until
        state = _iterate(problem, state, blocks, momentum if extrapolate else None)
        if iteration % every and iteration < max_iter:
            continue
        loss = problem.loss(state)
        if momentum is not None and extrapolate and loss > history[-1].loss:
            logger.debug("iteration %d: the loss rose; back to plain updates", iteration)
            momentum.restart()
            state, plain_until = good, iteration + every
            continue
        good = state
        history.append(Check(iteration, loss, time.perf_counter() - began))
        stop = _reason_to_stop(history, tol)
        if callback is not None and callback(Progress(iteration, max_iter, *history[-1][1:])):
            stop = Stop.CALLBACK
        if stop is not None:
            return Run(state, history, iteration, stop)
    return Run(state, history, max_iter, Stop.MAX_ITER)


def _iterate(problem: Problem, state: State, blocks: list[str], momentum: Momentum | None) -> State:
    """Update each factor once."""
    if momentum is not None:
        momentum.advance()
    for block in blocks:
        point = state if momentum is None else momentum.ahead(state, block)
        new: Array = problem.update(point, block)
        state = {**state, block: new}
    return state


def _reason_to_stop(history: list[Check], tol: float) -> Stop | None:
    """Compare the last look at the loss with the one a window before it."""
    now = history[-1]
    if tol <= 0:
        return None
    if now.loss <= 0:
        return Stop.EXACT
    before = next((c for c in reversed(history) if c.iteration <= now.iteration - WINDOW), None)
    if before is not None and before.loss - now.loss <= tol * before.loss:
        return Stop.CONVERGED
    return None
