"""Parts of data that has either sign: starts, runs and the map of `losses.semi`.

Parts have length 1 here, for sums of entries of either sign say nothing.
"""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import gen_batches
from sklearn.utils.extmath import row_norms
from sklearn.utils.validation import check_array

from marginparts._types import Array, Callback, Data, Init, Result, State
from marginparts.backends import (
    Backend,
    backend_at_hand,
    enough_memory,
    get_backend,
    work_of,
)
from marginparts.backends.base import safe_ratio
from marginparts.backends.semi import SemiKernels, semi_kernels_of
from marginparts.checkpoint import Logbook
from marginparts.losses.semi import SemiProblem, lean_squares
from marginparts.solve.loop import Keeper, RangeError, Run, check_losses, minimize
from marginparts.solve.map import extreme_power
from marginparts.solve.nonnegative import (
    are_nearly_dependent,
    bring_to_optimum,
    inverse_gram,
)
from marginparts.solve.run_spec import RunSpec
from marginparts.solve.start import thread_pools, uniform_rows
from marginparts.validation import check_option

logger = logging.getLogger("marginparts")

#: How the codes can be started.
STARTS = ("auto", "random", "k-means")

#: Sweeps that bring a row near its optimum; entries of H drawn at a time.
_SWEEPS, _CHUNK = 40, 1 << 23

#: How far the sum of all squares stays below the largest number.
_SPARE = 16.0

#: What holds data that memory does not.
_INSTEAD = "vectors in a mapped file (numpy.load with mmap_mode='r')"

#: What every part has in every sample at the start (Ding, Li & Jordan 2010).
_FLAT = 0.2


def check_semi_init(init: Init, shape: tuple[int, int], r: int) -> None:
    """Refuse a start that is none, or does not fit the data."""
    if isinstance(init, str):
        check_option(init, "init", STARTS)
        return
    if not isinstance(init, tuple | list) or len(init) != 2:
        raise ValueError("init must be the name of a start or a pair (H, V).")
    for name, factor, rows in zip("HV", init, shape, strict=True):
        factor = check_array(factor, input_name=f"init {name}")
        if factor.shape != (rows, r):
            raise ValueError(f"{name} of init has shape {factor.shape}; it must be {(rows, r)}.")
        if name == "H" and factor.min() < 0:
            raise ValueError("H of init has negative entries; all must be 0 or larger.")


def semi_start(init: Init, X: Data, r: int, seed: int) -> tuple[Array, Array]:
    """Return codes H (n, r) and a basis V (d, r), which the first update makes from H."""
    n, d = X.shape
    if not isinstance(init, str):
        return np.array(init[0], dtype=X.dtype), np.array(init[1], dtype=X.dtype)
    V = np.zeros((d, r), X.dtype)
    H = np.empty((n, r), X.dtype)
    for rows in gen_batches(n, max(1, _CHUNK // r)):  # numbers are drawn in float64
        H[rows] = uniform_rows(seed, 0, H[rows].shape, rows.start)
    if init == "random":
        return H, V
    from sklearn.cluster import MiniBatchKMeans  # slow to import

    H *= X.dtype.type(_FLAT)
    with warnings.catch_warnings(), thread_pools().limit(limits=1, user_api="openmp"):
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows than parts
        means = MiniBatchKMeans(
            min(r, n), batch_size=2048, max_iter=20, n_init=1, random_state=seed
        ).fit(X)
    H[np.arange(n), means.labels_] += 1
    return H, V


def semi_path(
    X: Data,
    S: sp.csr_array | None,
    rank: int,
    lams: Iterable[float],
    seed: int,
    run: RunSpec,
    *,
    scale: bool = True,
    weights: Array | None = None,
    callback: Callback | None = None,
    logbook: Logbook | None = None,
) -> Iterator[tuple[float, Result]]:
    """Factorize data (n, d) of either sign with directions S (n, 2p), for each of some weights.

    With ``scale`` all margin components have the same length, and together the squares of the data:
    lam is the ratio of the two. ``weights`` (n,) say how much each row counts.
    """
    unit = extreme_power(np.sqrt(lean_squares(X) / (X.shape[0] * X.shape[1])))
    if unit != 1:
        X = X * X.dtype.type(1 / unit)
    H, V = semi_start(run.init, X, rank, seed)
    roots = None if weights is None else _roots(weights, lean_squares(X), X.dtype)
    rows, H = (A if roots is None else rows_times(A, roots) for A in (X, H))
    XS = None if S is None or not S.shape[1] else S.T @ X  # eq. 10
    total = lean_squares(rows)
    if XS is not None and scale:
        XS = _of_one_length(XS, total)
    V = V / V.dtype.type(unit)
    with enough_memory(run.backend, _INSTEAD):
        path = _path(rows, XS, (H, V), total, lams, run, callback, logbook)
        del H  # it is large
        try:
            for lam, found in path:
                yield lam, _as_result(found, XS, unit, roots)
        except np.linalg.LinAlgError:  # of codes that left the range
            check_losses([math.nan])


def _roots(weights: Array, x_squared: float, dtype: np.dtype[Any]) -> Array:
    """Return the roots of weights, or refuse those that take the data out of its range.

    Roots that would be lost beside the largest are raised: such rows count for nothing, but their
    codes are divided by them.
    """
    heaviest, info = float(weights.max()), np.finfo(dtype)
    least = float(info.tiny) / math.sqrt(info.eps)
    if not least <= x_squared * heaviest <= float(info.max) / _SPARE:
        raise RangeError(
            f"The data times sample_weight leaves the range of {dtype}; divide the weights by the "
            "largest of them."
        )
    roots = np.sqrt(weights)
    return np.maximum(roots, math.sqrt(info.tiny) * roots.max())


def _check_lam(lam: float, xs_squared: float, dtype: np.dtype[Any]) -> None:
    """Refuse a weight that takes margin components out of their range."""
    if not float(lam) * max(xs_squared, 1.0) <= float(np.finfo(dtype).max) / _SPARE:
        raise RangeError(
            f"The margin components times lam={lam:g} leave the range of {dtype}; take a smaller "
            "lam."
        )


def _path(
    X: Data,
    XS: Data | None,
    start: tuple[Array, Array],
    x_squared: float,
    lams: Iterable[float],
    run: RunSpec,
    callback: Callback | None,
    logbook: Logbook | None,
) -> Iterator[tuple[float, Run]]:
    """Factorize data and margin components, weighted; H of a run is an array of the data's rows."""
    (H, V), left, n = start, sorted(set(lams)), X.shape[0]
    del start  # H is large
    kernels = semi_kernels(X, V.shape[1], run.backend)
    data = kernels.prepare(X)
    V = SemiProblem(data, kernels=kernels).update({"V": V, "H": kernels.factor(H)}, "V").factor
    while left:
        lam = left.pop()
        problem = SemiProblem(data, x_squared, kernels=kernels)
        codes = H.copy() if left else H
        if XS is not None and lam > 0:
            _check_lam(lam, lean_squares(XS), X.dtype)
            more = rows_times(XS, np.full(XS.shape[0], np.sqrt(lam)))
            problem.more = kernels.prepare(more)
            problem.x_squared += lean_squares(more)
            codes = np.vstack([H, semi_codes(more, V, _SWEEPS, from_zero=True)])
        if not left:
            del H
        state = {"V": V.copy(), "H": kernels.factor(codes)}
        del codes
        found = minimize(
            problem, state, solver=run.solver, max_iter=run.max_iter, tol=run.tol,
            callback=callback,
            keeper=None if logbook is None else _keeper(logbook, kernels, state, lam),
        )  # fmt: skip
        del problem, state  # X V and the start, which are as large as H
        found.state["H"] = kernels.release(found.state["H"][:n])
        yield lam, found


def semi_kernels(X: Data, r: int, backend: str | Backend) -> SemiKernels:
    """Return the kernels for a run on some data."""
    return _with_room(semi_kernels_of(get_backend(backend, work_of(X, r))), X, r, backend)


def _with_room(kernels: SemiKernels, X: Data, r: int, backend: str | Backend) -> SemiKernels:
    """Return the kernels, but those of the CPU where ``"auto"`` took a card without the room."""
    if isinstance(backend, str) and backend == "auto" and not kernels.holds(X, r):
        logger.info("the data does not fit the GPU, and stays on the CPU")
        return semi_kernels_of(get_backend("numba"))
    return kernels


def _of_one_length(XS: Data, total: float) -> Data:
    """Return margin components whose squares are the same, and sum to a number."""
    lengths = row_norms(XS).astype(np.float64)
    goal = np.full(len(lengths), np.sqrt(total / max(np.sum(lengths > 0), 1)))
    return rows_times(XS, safe_ratio(goal, lengths))


def _keeper(logbook: Logbook, kernels: SemiKernels, state: State, lam: float) -> Keeper:
    """Return what keeps the position of a run, with factors as arrays.

    The backend is part of it: another one rounds differently.
    """
    return logbook.keeper(
        {"backend": kernels.name, "lam": lam},
        {block: tuple(factor.shape) for block, factor in state.items()},
        kernels.release,
        lambda array, block: kernels.factor(array) if block == "H" else array,
        signed=("V",),
    )


def rows_times(X: Data, numbers: Array) -> Data:
    """Return rows multiplied by a number each."""
    numbers = numbers.astype(X.dtype)
    if isinstance(X, np.ndarray):
        return X * numbers[:, None]
    return sp.csr_array(sp.diags_array(numbers) @ X)


def _as_result(run: Run, XS: Data | None, unit: float, roots: Array | None) -> Result:
    """Undo what was done to the data: squares grow with the square of its unit."""
    V, H = run.state["V"] * run.state["V"].dtype.type(unit), run.state["H"]
    if roots is not None:
        H = rows_times(H, 1 / roots)
    history = [check._replace(loss=check.loss * unit**2) for check in run.history]
    losses = [check.loss for check in history]
    XS = None if XS is None else XS * XS.dtype.type(unit)
    return Result(V, H, losses, run.n_iter, run.stop, run.solver, history, XS)


def semi_parts(V: Array) -> Array:
    """Return the parts (r, d), each of length one; dead ones stay zero."""
    return np.ascontiguousarray(safe_ratio(V.T, row_norms(V.T)[:, None].astype(V.dtype)))


def semi_codes(
    X: Data, V: Array, n_iter: int | None, backend: str | Backend = "numba", *,
    from_zero: bool = False,
) -> Array:  # fmt: skip
    """Return H (n, r) with V frozen, each row by itself: sweeps, or None: the optimum.

    Sweeps begin at the codes of least squares, without those below zero. Where parts are nearly
    dependent they creep, and what they find is brought to the optimum. ``from_zero`` is for what
    wants a number of sweeps from zero, and no more.
    """
    plain = from_zero and n_iter is not None
    kernels = semi_kernels_of(backend_at_hand(backend, work_of(X, r := V.shape[1])))
    with enough_memory(backend, _INSTEAD):
        kernels = _with_room(kernels, X[: kernels.rows_at_once(X, r)], r, backend)
        H = kernels.codes(X, V, n_iter or _SWEEPS, None if plain else inverse_gram(V))
        if n_iter is None or (not plain and are_nearly_dependent(V)):
            bring_to_optimum(X, V, H)
    return H
