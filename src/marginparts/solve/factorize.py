"""The method as a function: `nmf_alpha` finds the parts of some data (`map` has the other half)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from marginparts._types import DEFAULT_LAM, Array, Callback, Data, Init, Result, Seed
from marginparts.backends import Backend, enough_memory, get_backend, work_of
from marginparts.backends.base import column_sums, safe_ratio
from marginparts.checkpoint import Checkpoint, Logbook, logbook_of
from marginparts.losses.nmf_alpha import STRAIGHT, NMFAlphaProblem, Pull, Steering
from marginparts.rows.base import Elsewhere, Given, OutOfCore, Rows, at_hand
from marginparts.rows.dask import as_dask_rows
from marginparts.solve.loop import Keeper, Run, check_losses, minimize
from marginparts.solve.map import extreme_balance, extreme_scale, scaled
from marginparts.solve.run_spec import RunSpec
from marginparts.solve.start import filled_start, start_from
from marginparts.validation import (
    check_count,
    check_directions,
    check_mass,
    check_matrix,
    check_nonnegative,
    check_rank,
    seed_of,
)


def nmf_alpha(
    X: Given,
    n_components: int,
    *,
    S: Given | None = None,
    lam: float = DEFAULT_LAM,
    init: Init = "random",
    solver: str = "auto",
    max_iter: int = 200,
    tol: float = 1e-4,
    backend: str | Backend = "auto",
    random_state: Seed = None,
    callback: Callback | None = None,
    checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
) -> Result:
    """Factorize ``X ~ H @ V.T`` so that the margin components ``S.T @ X`` survive (eq. 14).

    Parameters
    ----------
    X : (n, d) array or sparse matrix, RowBlocks or Dask array
        Nonnegative data, one row a sample. float32 stays float32; all else becomes float64. Rows on
        disk (`open_rows`) are read a block at a time, and H is a memory map where it does not fit
        the limit; those of a Dask array stay on its workers, and H is a Dask array. ``"cd"`` is
        ``"mue"`` for both.
    n_components : int
        The number r of parts.
    S : (n, 2p) array or sparse matrix, or None
        Nonnegative dual coefficients, taken literally; see `margin_directions`. None is plain NMF.
    lam : float
        Weight of the margin components, taken literally.
    init : {"random", "nndsvda", "nndsvdar"} or (H, V)
        The start; random ones depend on the seed and the row's index only. Zeros of a given one
        that leave a positive entry of X without any fit are filled, with a warning.
    solver : {"auto", "mu", "mue", "cd"}
        ``"mu"`` is eq. 15, then eq. 16, and nothing else; ``"mue"`` extrapolates, with a safeguard;
        ``"cd"`` is coordinate descent, on sparse data. ``"auto"`` is ``"cd"`` for plain NMF, which
        gets lowest in the same time, and ``"mue"`` with S, the safer choice for a classifier.
    max_iter : int
        Iterations at most.
    tol : float
        Stop when the loss falls by at most this share over ten iterations, or the residual is no
        larger; 0 runs all of them.
    backend : {"auto", "numba", "torch", "reference"} or Backend
        Where the kernels run.
    random_state : int, RandomState, Generator or None
        Seed of a random start.
    callback : callable or None
        Called with a `Progress`; a true answer ends the run.
    checkpoint : path, Checkpoint or None
        Keep the position there, so that the same call goes on after a kill (`Checkpoint`).

    Returns
    -------
    Result
        With ``V``, ``H``, ``losses``, ``n_iter``, ``stop``, ``solver`` and ``history``.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1., 0., 2.], [2., 0., 4.], [0., 3., 0.]])
    >>> result = nmf_alpha(X, 2, random_state=0, max_iter=500)
    >>> np.round(result.H @ result.V.T, 1) + 0.0
    array([[1., 0., 2.],
           [2., 0., 4.],
           [0., 3., 0.]])
    """
    lam = check_nonnegative(lam, "lam")
    X = as_dask_rows(X)
    if not isinstance(X, Elsewhere):
        X = _checked(X, "nmf_alpha")
    r = check_rank(n_components, X.shape)
    RunSpec(init, solver, max_iter, tol, backend)
    directions = None if S is None else check_directions(S, X.shape[0], X.dtype)
    with (
        at_hand(X, r, solver) as rows,
        logbook_of(
            checkpoint, "nmf_alpha", seed_of(random_state), any_seed=random_state is None,
            X=rows, S=directions, n_components=r, lam=lam, init=init, solver=solver,
            max_iter=max_iter, tol=tol,
        ) as (seed, logbook),
    ):  # fmt: skip
        H, V = start_from(init, rows, r, seed)
        return factorize(
            rows, H, V, S=directions, lam=lam, solver=solver, max_iter=max_iter, tol=tol,
            backend=backend, callback=callback, logbook=logbook,
        )  # fmt: skip


def nmf_alpha_path(
    X: Given,
    n_components: int,
    *,
    S: Given,
    lams: Iterable[float],
    init: Init = "random",
    solver: str = "auto",
    max_iter: int = 200,
    warm_iter: int = 40,
    tol: float = 1e-4,
    backend: str | Backend = "auto",
    random_state: Seed = None,
    callback: Callback | None = None,
) -> list[Result]:
    """Factorize for several weights of the margin components, each from where the last one ended.

    The path goes from the largest weight to the smallest: to let go of the margin is easy, to come
    back to it is not. What does not depend on lam is made once: the margin components and the
    transposes. So a path costs little more than one fit.

    Parameters
    ----------
    X, n_components, S, init, solver, max_iter, tol, backend, random_state, callback
        As for `nmf_alpha`.
    lams : iterable of float
        Weights, in any order.
    warm_iter : int
        Iterations at most for each weight but the largest, which has ``max_iter``.

    Returns
    -------
    list of Result
        One for each weight, in the order given.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1., 0., 2.], [2., 0., 4.], [0., 3., 0.]])
    >>> S = np.array([[1., 0.], [0., 0.], [0., 1.]])
    >>> path = nmf_alpha_path(X, 2, S=S, lams=(0.1, 1, 10), random_state=0)
    >>> [result.V.shape for result in path]
    [(3, 2), (3, 2), (3, 2)]
    """
    lams = [check_nonnegative(lam, "lams") for lam in lams]
    data = _checked(X, "nmf_alpha_path")
    r = check_rank(n_components, data.shape)
    RunSpec(init, solver, max_iter, tol, backend)
    check_count(warm_iter, "warm_iter")
    directions = check_directions(S, data.shape[0], data.dtype)
    H, V = start_from(init, data, r, random_state)
    path = factorize_path(
        data, (H, V), S=directions, lams=lams, solver=solver, max_iter=max_iter,
        warm_iter=warm_iter, tol=tol, backend=backend, callback=callback,
    )  # fmt: skip
    found = dict(path)
    return [found[lam] for lam in lams]


def _checked(X: Given, who: str) -> Data:
    """Return trusted data that is not all zero."""
    data = check_matrix(X, who)
    check_mass(data, who)
    return data


def factorize(X: Rows, H: Array, V: Array, *, lam: float = 0.0, **options: Any) -> Result:
    """`nmf_alpha` on trusted data from a given start."""
    ((_, result),) = factorize_path(X, (H, V), lams=(lam,), **options)
    return result


def factorize_path(
    X: Rows,
    start: tuple[Array, Array],
    *,
    S: Data | None = None,
    lams: Iterable[float],
    solver: str = "auto",
    max_iter: int = 200,
    warm_iter: int | None = 40,
    tol: float = 1e-4,
    backend: str | Backend = "auto",
    callback: Callback | None = None,
    logbook: Logbook | None = None,
    steering: Steering = STRAIGHT,
) -> Iterator[tuple[float, Result]]:
    """`nmf_alpha_path` on trusted data from a start ``(H, V)``: each weight with its result.

    With ``warm_iter=None`` every weight starts afresh, and has ``max_iter`` iterations. A logbook
    is for one weight: it keeps the position of a single run.
    """
    with enough_memory(backend):
        problem, H, V, XS, scale, balance = _posed(X, start, S, backend, steering)
        kernels, r, left = problem.backend, V.shape[1], sorted(set(lams))
        del start
        while left:
            problem.lam = lam = left.pop()
            state = {"V": kernels.factor(V), "H": kernels.factor(H, rows_of=problem.X)}
            if warm_iter is not None or not left:
                del H, V  # H is large, and a run has a copy
            run = minimize(
                kernels.adapted(problem), state,
                solver=solver, max_iter=max_iter, tol=tol, callback=callback,
                keeper=None if logbook is None else _keeper(logbook, problem, r),
            )  # fmt: skip
            del state  # not all of it is what the run ended with
            found_V, found_H = (kernels.release(run.state[block], r) for block in ("V", "H"))
            if warm_iter is not None:
                V, H, max_iter = found_V, found_H, warm_iter
            yield lam, _as_result(run, found_V, found_H, scale, balance, XS)


class _Posed(NamedTuple):
    """A problem with its start; X was divided by ``scale``, and H by ``balance`` for V to have."""

    problem: NMFAlphaProblem
    H: Array
    V: Array
    XS: Data | None
    scale: float
    balance: float


def _posed(
    X: Rows, start: tuple[Array, Array], S: Data | None, backend: str | Backend, steering: Steering
) -> _Posed:
    """Make data ready, and a start that can explain them, in units that arithmetic can bear."""
    scale, (H, V) = extreme_scale(X), start
    if scale != 1:
        X, V = scaled(X, scale), V * X.dtype.type(1 / scale)
    kernels = kernels_for(X, V.shape[1], backend)
    gaps = steering.gaps
    known = X if gaps is None else gaps.known(X)
    data = kernels.prepare(known)
    problem = NMFAlphaProblem(kernels, data) if gaps is None else gaps.problem(kernels, data)
    XS = None
    if S is not None and S.shape[1] > 0:
        XS = margin_components(S, X)
        problem.S = kernels.coefficients(S, rows_of=problem.X)
        problem.XS = kernels.prepare(XS, like=problem.X)
    balance = extreme_balance(H, V)
    if balance != 1:
        H, V = H * H.dtype.type(1 / balance), V * V.dtype.type(balance)
    fixed = V[:, : steering.fixed]
    H, V = filled_start(known, H, V)
    if not steering.is_straight:
        V = np.hstack([fixed, V[:, steering.fixed :]])
        _steer(problem, steering.scaled(balance, scale / balance, scale), X, V)
    return _Posed(problem, H, V, XS, scale, balance)


def _steer(problem: NMFAlphaProblem, steering: Steering, X: Rows, V: Array) -> None:
    """Tell a problem what is asked of its factors, of which V is the start, if it can carry it."""
    if isinstance(X, OutOfCore):
        raise ValueError(
            "Penalties, exclusivity, a prior, fixed and allowed need X in memory, and not rows on "
            "disk or on a cluster."
        )
    kernels = problem.backend
    if steering.needs_shrinking(problem.S is not None) and not kernels.can_shrink:
        raise ValueError(
            f"backend={kernels.name!r} cannot carry squared penalties, exclusivity, nor alpha_W "
            "with labels; use l1_ratio=1 without labels, or backend='numba'."
        )
    problem.steering = steering
    problem.kept = deepcopy(kernels.factor(V)[:, : steering.fixed])
    if steering.prior is not None:
        problem.pull = Pull.of(steering.prior, kernels, V.dtype)


def kernels_for(X: Rows, r: int, backend: str | Backend) -> Backend:
    """Return the backend for some data; what is not in memory brings its own around it."""
    if isinstance(X, OutOfCore):
        return X.kernels(backend, r)
    return get_backend(backend, work_of(X, r)).suited_to(X, r)


def _keeper(logbook: Logbook, problem: NMFAlphaProblem, r: int) -> Keeper:
    """Return what keeps the position of a run, with factors as arrays of their own columns.

    The backend is part of it: another one rounds differently.
    """
    kernels = problem.backend

    def factor(array: Array, block: str) -> Any:
        return kernels.factor(array, rows_of=problem.X if block == "H" else None)

    run = {"backend": kernels.name, "n_components": r, "lam": problem.lam}
    shapes = {"V": (problem.X.shape[1], r), "H": (problem.X.shape[0], r)}
    return logbook.keeper(run, shapes, lambda A: np.asarray(kernels.release(A, r)), factor)


def margin_components(S: Data, X: Rows) -> Data:
    """Return ``XS = S.T @ X`` (2p, d): the components w+ and w- (eq. 10); sparse when X is."""
    XS = X.transposed_product(S) if isinstance(X, OutOfCore) else S.T @ X
    if not sp.issparse(XS):
        return np.ascontiguousarray(XS)
    XS = sp.csr_array(XS)
    XS.sort_indices()
    return XS


def parts_of(V: Array, fixed: Array | None = None) -> Array:
    """Return the parts (r, d), each with sum one; dead ones stay zero, fixed ones as given."""
    parts = safe_ratio(V.T, column_sums(V)[:, None].astype(V.dtype))
    if fixed is not None:
        parts[: len(fixed)] = fixed
    return parts


def _as_result(
    run: Run, V: Array, H: Array, scale: float, balance: float, XS: Data | None = None
) -> Result:
    """Undo the scaling: the divergence grows with the data; below zero it is all rounding."""
    history = [check._replace(loss=max(check.loss, 0.0) * scale) for check in run.history]
    losses = [check.loss for check in history]
    check_losses(losses)
    if scale != 1 or balance != 1:
        V, H = V * V.dtype.type(scale / balance), H * H.dtype.type(balance)
    if scale != 1 and XS is not None:
        XS = XS * XS.dtype.type(scale)
    return Result(V, H, losses, run.n_iter, run.stop, run.solver, history, XS)
