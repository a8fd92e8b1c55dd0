"""Samples expressed in parts that are known: the loop with V frozen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from marginparts._types import Array, Data
from marginparts.backends import Backend, get_backend, work_of
from marginparts.backends.base import column_sums, inverse_or_zero
from marginparts.losses.nmf_alpha import NMFAlphaProblem
from marginparts.solve.geometry import tame_rows
from marginparts.solve.loop import WARM_UP, minimize

#: Entries of H mapped at a time, so that a map's memory does not grow with its samples.
_CHUNK = 1 << 23


def map_rows(X: Data, V: Array, n_iter: int | None, backend: str | Backend = "auto") -> Array:
    """Solve for H with V frozen: eq. 4 from a flat start, a fixed number of times.

    Each row of H depends on its own row of X alone.

    Parameters
    ----------
    X : (n, d) trusted array or CSR
    V : (d, r)
    n_iter : int or None
        None goes on to the optimum, by coordinate descent where the backend has it.
    backend : str

    Returns
    -------
    H : (n, r)
    """
    return map_rows_each(X, V, [n_iter], backend)[0]


def map_rows_each(
    X: Data, V: Array, counts: Sequence[int | None], backend: str | Backend = "auto"
) -> list[Array]:
    """`map_rows` for increasing numbers of updates, each going on from the one before."""
    n, r = X.shape[0], V.shape[1]
    kernels = get_backend(backend, work_of(X, r))
    X, scale = tame_rows(X)
    # flat: every part explains the same share; the first step sets each row's mass
    flat = inverse_or_zero(column_sums(V), V.dtype)
    V = kernels.factor(V)
    maps = [np.empty((n, r), flat.dtype) for _ in counts]
    step = max(1, _CHUNK // r)
    for start in range(0, n, step):
        rows = slice(start, min(start + step, n))
        problem = NMFAlphaProblem(kernels, X=kernels.prepare(X[rows]), sweeps=50, settled=3e-4)
        replayed = kernels.adapted(problem)
        H = kernels.factor(np.repeat(flat[None], rows.stop - rows.start, axis=0), rows_of=problem.X)
        done = 0
        for count, out in zip(counts, maps, strict=True):
            solver, updates = ("mu", count - done) if count else _to_the_optimum(problem)
            run = minimize(
                replayed, {"V": V, "H": H}, solver=solver, max_iter=updates, frozen=("V",),
                watch=False,
            )  # fmt: skip
            H, done = run.state["H"], count or done
            out[rows] = kernels.release(H, r)
    if scale is not None:
        for H in maps:
            H *= scale[:, None]
    return maps


def _to_the_optimum(problem: NMFAlphaProblem) -> tuple[str, int]:
    """Return a solver and a number of iterations that bring every row close to its optimum."""
    return ("cd", WARM_UP + 4) if problem.can_sweep else ("mu", 400)
