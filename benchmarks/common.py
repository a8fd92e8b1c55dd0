"""What the benchmarks share: the common start, the loss and the clock.

A benchmark imports this module before any library that starts threads.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

# Two OpenMP runtimes meet in one process: scikit-learn and torch bring their own, numba and the C
# loop use the system's. By default the threads of one spin for a while after their work and take
# the cores from the other; passive ones sleep. It is read when a runtime is loaded, hence here.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import numpy as np

from marginparts import nmf_alpha

#: Nonzeros whose fit is computed at a time.
_CHUNK = 1 << 18


def parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser with the option that every benchmark has."""
    found = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    found.add_argument("--quick", action="store_true", help="a tiny run that only shows it works")
    return found


def start(X: Any, r: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the start ``(H, V)`` that every method gets: uniform, with the mean of X."""
    rng = np.random.default_rng(0)
    n, d = X.shape
    scale = np.sqrt(X.sum(dtype=np.float64) / (n * d) / r)
    H = scale * (rng.random((n, r)) + 0.5)
    V = scale * (rng.random((d, r)) + 0.5)
    return H.astype(np.float32), V.astype(np.float32)


def loss(X: Any, H: np.ndarray, V: np.ndarray) -> float:
    """Return the I-divergence ``sum x log(x / h.v) - x + h.v`` in plain NumPy and float64.

    It is no method's own code, so that none is judged by itself.
    """
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    total = float(H.sum(axis=0, dtype=np.float64) @ V.sum(axis=0, dtype=np.float64))
    for first in range(0, X.nnz, _CHUNK):
        part = slice(first, first + _CHUNK)
        x = X.data[part].astype(np.float64)
        fitted = np.einsum(
            "ik,ik->i", H[rows[part]].astype(np.float64), V[X.indices[part]].astype(np.float64)
        )
        with np.errstate(divide="ignore"):  # a nonzero that nothing explains: an infinite loss
            total += float(np.sum(x * np.log(x / fitted) - x))
    return total


class Check(NamedTuple):
    """The loss after some iterations of a run, and the seconds that they took."""

    iteration: int
    seconds: float
    loss: float


Curve = list[Check]


def seconds_to(target: float, curve: Curve) -> float | None:
    """Return when a run came down to a loss, on the line between two evaluations of it."""
    before = None
    for now in curve:
        if now.loss <= target:
            if before is None:
                return now.seconds
            share = (before.loss - target) / (before.loss - now.loss)
            return before.seconds + share * (now.seconds - before.seconds)
        before = now
    return None


class Times(NamedTuple):
    """Seconds of something that was done several times."""

    best_seconds: float
    median_seconds: float
    rounds: int


def times_of(seconds: list[float]) -> Times:
    """Sum up repeated measurements."""
    return Times(min(seconds), statistics.median(seconds), len(seconds))


def race(
    entrants: dict[Any, Callable[[], object]], rounds: int, settle: bool = False,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[Any, Times]:  # fmt: skip
    """Time each function once a round, so that a slow moment of the machine hits all of them.

    With ``settle`` each is called once more before the clock starts, for the caches: within a fit
    an update comes after another one, not after somebody else's.
    """
    found = raced(entrants, rounds, settle, clock)
    return {name: times_of(seconds) for name, seconds in found.items()}


def raced(
    entrants: dict[Any, Callable[[], object]], rounds: int, settle: bool = False,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[Any, list[float]]:  # fmt: skip
    """`race`, with the seconds of every round."""
    seconds: dict[Any, list[float]] = {name: [] for name in entrants}
    for _ in range(rounds):
        for name, run in entrants.items():
            if settle:
                run()
            began = clock()
            run()
            seconds[name].append(clock() - began)
    return seconds


def ratio_of(seconds: list[float], beside: list[float]) -> float:
    """Return the median, over rounds, of the ratio to another's seconds in the same round.

    Other work on a machine makes a round slow for everybody, and a lucky one quick for one alone.
    """
    return statistics.median(a / b for a, b in zip(seconds, beside, strict=True))


def both_updates(problem: Any, V: np.ndarray, H: np.ndarray) -> Callable[[], None]:
    """Return what updates V and then H of a problem, from the same factors every time."""
    kernels = problem.backend
    state, out = ({"V": kernels.factor(V), "H": kernels.factor(H)} for _ in range(2))

    def update() -> None:
        new = problem.update(state, "V", out=out["V"]).factor
        problem.update({"V": new, "H": state["H"]}, "H", out=out["H"])

    update()  # compiles
    return update


def one_iteration(problem: Any, V: np.ndarray, H: np.ndarray) -> Callable[[], None]:
    """Return what does an iteration with extrapolation, from the same factors every time."""
    kernels = problem.backend
    state, points, out = ({"V": kernels.factor(V), "H": kernels.factor(H)} for _ in range(3))

    def iterate() -> None:
        for block, now in state.items():  # by nothing, which costs as much as by something
            points[block] = problem.ahead(block, now, points[block], 0.0, 1.0)
        new = problem.update({"V": points["V"], "H": state["H"]}, "V", out=out["V"]).factor
        problem.update({"V": new, "H": points["H"]}, "H", out=out["H"])

    iterate()  # compiles
    return iterate


def per_iteration(long: Times, short: Times, iterations: int) -> Times:
    """Return the time of one iteration from two runs that differ by a number of them.

    What a fit does once, like a transpose, is in both and falls out.
    """
    best = (long.best_seconds - short.best_seconds) / iterations
    median = (long.median_seconds - short.median_seconds) / iterations
    return Times(best, median, long.rounds)


def warm_up(X: Any, H: np.ndarray, V: np.ndarray, S: Any = None, solver: str = "auto") -> None:
    """Compile the kernels that a fit will use, on a few of its rows."""
    few = slice(0, 200)
    nmf_alpha(
        X[few], V.shape[1], S=None if S is None else S[few], init=(H[few], V), solver=solver,
        max_iter=6, tol=0,
    )  # fmt: skip
