"""The method as two functions: `nmf_alpha` finds parts, `map_rows` expresses samples in them."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from marginparts._types import Array, Callback, Result, State
from marginparts.backends import Backend, get_backend
from marginparts.backends._common import column_sums, inverse_or_zero, safe_ratio
from marginparts.init import NNDSVD, label_start, nndsvd_start, random_start, seed_of
from marginparts.labels import Labels
from marginparts.models.nmf_alpha import NMFAlphaProblem
from marginparts.scaling import extreme_scale, tame_rows
from marginparts.solver import SOLVERS, Run, minimize
from marginparts.validation import (
    check_count,
    check_directions,
    check_mass,
    check_matrix,
    check_nonnegative,
    check_option,
    check_rank,
    check_start,
)

#: Entries of H mapped at a time, so that a map's memory does not grow with its samples.
_CHUNK = 1 << 23


def nmf_alpha(
    X: Any,
    n_components: int,
    *,
    S: Any = None,
    lam: float = 1.0,
    init: Any = "random",
    solver: str = "auto",
    max_iter: int = 200,
    tol: float = 1e-4,
    backend: str | Backend = "auto",
    random_state: Any = None,
    callback: Callback | None = None,
) -> Result:
    """Factorize ``X ~ H @ V.T`` so that the margin components ``S.T @ X`` survive (eq. 14).

    Parameters
    ----------
    X : (n, d) array or sparse matrix
        Nonnegative data, one row a sample. float32 stays float32; all else becomes float64.
    n_components : int
        The number r of parts.
    S : (n, 2p) array or sparse matrix, or None
        Nonnegative dual coefficients, taken literally; see `margin_directions`. None is plain NMF.
    lam : float
        Weight of the margin components, taken literally.
    init : {"random", "nndsvda", "nndsvdar"} or (H, V)
        The start; random ones depend on the seed and the row's index only.
    solver : {"auto", "mu", "mue"}
        ``"mu"`` is eq. 15, then eq. 16, and nothing else; ``"mue"`` extrapolates, with a safeguard.
    max_iter : int
        Iterations at most.
    tol : float
        Stop when the loss falls by less than this share over ten iterations; 0 runs all of them.
    backend : {"auto", "numba", "reference"} or Backend
        Where the kernels run.
    random_state : int, RandomState, Generator or None
        Seed of a random start.
    callback : callable or None
        Called with a `Progress`; a true answer ends the run.

    Returns
    -------
    Result
        With ``V``, ``H``, ``losses``, ``n_iter`` and ``stop``.

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
    X = check_matrix(X, "nmf_alpha")
    check_mass(X, "nmf_alpha")
    r = check_rank(n_components, X.shape)
    lam = check_nonnegative(lam, "lam")
    check_option(solver, "solver", SOLVERS)
    max_iter, tol = check_count(max_iter, "max_iter"), check_nonnegative(tol, "tol")
    if S is not None:
        S = check_directions(S, X.shape[0], X.dtype)
    H, V = start_from(init, X, r, random_state)
    return factorize(
        X, H, V, S=S, lam=lam, solver=solver, max_iter=max_iter, tol=tol, backend=backend,
        callback=callback,
    )  # fmt: skip


def check_init(init: Any, X: Any, r: int) -> None:
    """Refuse a start that is not known or does not fit the data."""
    if isinstance(init, str):
        check_option(init, "init", ("auto", "random", *NNDSVD))
    else:
        check_start(init, X.shape, r, X.dtype)


def start_from(
    init: Any, X: Any, r: int, random_state: Any, labels: Labels | None = None
) -> tuple[Array, Array]:
    """Return a start ``(H, V)`` by name, or check the one given.

    ``"auto"`` is `label_start` where there are labels and `random_start` where there are none.
    """
    if not isinstance(init, str):
        return check_start(init, X.shape, r, X.dtype)
    check_init(init, X, r)
    seed = seed_of(random_state)
    if init in NNDSVD:
        return nndsvd_start(X, r, seed, init)
    if init == "auto" and labels is not None and labels.labeled.any():
        return label_start(X, labels, r, seed)
    return random_start(X, r, seed)


def factorize(
    X: Any,
    H: Array,
    V: Array,
    *,
    S: Any = None,
    lam: float = 0.0,
    solver: str = "auto",
    max_iter: int = 200,
    tol: float = 1e-4,
    backend: str | Backend = "auto",
    callback: Callback | None = None,
) -> Result:
    """`nmf_alpha` on trusted data from a given start."""
    kernels = get_backend(backend)
    scale = extreme_scale(X)
    if scale != 1:
        X, V = X * X.dtype.type(1 / scale), V * X.dtype.type(1 / scale)
    supervised = S is not None and lam > 0 and S.shape[1] > 0
    problem = NMFAlphaProblem(kernels, X=kernels.prepare(X), lam=lam)
    if supervised:
        problem.S = S
        problem.XS = kernels.prepare(margin_components(S, X), like=problem.X)
    run = minimize(
        problem, {"V": V, "H": H}, solver=solver, max_iter=max_iter, tol=tol, callback=callback
    )
    return _as_result(run, scale)


def margin_components(S: Any, X: Any) -> Any:
    """Return ``XS = S.T @ X`` (2p, d): the components w+ and w- (eq. 10); sparse when X is."""
    XS = S.T @ X
    if not sp.issparse(XS):
        return np.ascontiguousarray(XS)
    XS = sp.csr_array(XS)
    XS.sort_indices()
    return XS


def parts_of(V: Array) -> Array:
    """Return the parts (r, d), each with sum one; dead ones stay zero."""
    return safe_ratio(V.T, column_sums(V)[:, None].astype(V.dtype))


def map_rows(X: Any, V: Array, n_iter: int, backend: str | Backend = "auto") -> Array:
    """Solve for H with V frozen: eq. 4 from a flat start, a fixed number of times.

    Each row of H depends on its own row of X alone.

    Parameters
    ----------
    X : (n, d) trusted array or CSR
    V : (d, r)
    n_iter : int
    backend : str

    Returns
    -------
    H : (n, r)
    """
    kernels = get_backend(backend)
    n, r = X.shape[0], V.shape[1]
    X, scale = tame_rows(X)
    # flat: every part explains the same share; the first step sets each row's mass
    flat = inverse_or_zero(column_sums(V), V.dtype)
    H = np.empty((n, r), V.dtype)
    step = max(1, _CHUNK // r)
    for start in range(0, n, step):
        rows = slice(start, min(start + step, n))
        problem = NMFAlphaProblem(kernels, X=kernels.prepare(X[rows]))
        state: State = {"V": V, "H": np.tile(flat, (rows.stop - rows.start, 1))}
        run = minimize(problem, state, solver="mu", max_iter=n_iter, frozen=("V",), watch=False)
        H[rows] = run.state["H"]
    if scale is not None:
        H *= scale[:, None]
    return H


def _as_result(run: Run, scale: float) -> Result:
    """Undo the scaling: the divergence grows with the data."""
    V, H = run.state["V"], run.state["H"]
    history = [check._replace(loss=check.loss * scale) for check in run.history]
    losses = [check.loss for check in history]
    return Result(V * V.dtype.type(scale), H, losses, run.n_iter, run.stop, history)
