"""Samples expressed in parts that are known: the loop with V frozen, and the geometry of codes.

If ``X ~ H V'`` then ``Z = H (V'V)^(1/2)`` (eq. 5) has ``Z Z' ~ X X'``: a linear SVM on the columns
of Z sees nearly the geometry of those of X, which it does not on H, because the parts in V are not
orthogonal. Extreme data is divided by powers of two, which is exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from sklearn.utils.extmath import row_norms

from marginparts._types import Array, Data
from marginparts.backends import Backend, backend_at_hand, work_of
from marginparts.backends.base import column_sums, inverse_or_zero, safe_ratio
from marginparts.losses.nmf_alpha import NMFAlphaProblem
from marginparts.rows.base import Rows
from marginparts.solve.gaps import Gaps
from marginparts.solve.loop import WARM_UP, minimize

#: Entries of H mapped at a time, so that a map's memory does not grow with its samples.
_CHUNK = 1 << 23

#: Eigenvalues of a Gram matrix that count as zero, beside the largest.
_DEPENDENT = 1e-10

#: Powers of two within which data is taken as it is.
_EXTREME = 30

#: The exponent of the largest power of two.
_LARGEST = 1023


def map_rows(
    X: Data, V: Array, n_iter: int | None, backend: str | Backend = "auto",
    gaps: Gaps | None = None,
) -> Array:  # fmt: skip
    """Solve for H with V frozen: eq. 4 from a flat start, a fixed number of times.

    Each row of H depends on its own row of X alone.

    Parameters
    ----------
    X : (n, d) trusted array or CSR
    V : (d, r)
    n_iter : int or None
        None goes on to the optimum, by coordinate descent where the backend has it.
    backend : str
    gaps : Gaps or None
        Entries that are not known, 0 in X.

    Returns
    -------
    H : (n, r)
    """
    return map_rows_each(X, V, [n_iter], backend, gaps)[0]


def map_rows_each(
    X: Data, V: Array, counts: Sequence[int | None], backend: str | Backend = "auto",
    gaps: Gaps | None = None,
) -> list[Array]:  # fmt: skip
    """`map_rows` for increasing numbers of updates, each going on from the one before."""
    n, r = X.shape[0], V.shape[1]
    kernels = backend_at_hand(backend, work_of(X, r))
    X, scale = tame_rows(X)
    # flat: every part explains the same share; the first step sets each row's mass
    flat = inverse_or_zero(column_sums(V), V.dtype)
    V = kernels.factor(V)
    maps = [np.empty((n, r), flat.dtype) for _ in counts]
    step = max(1, _CHUNK // r)
    for start in range(0, n, step):
        rows = slice(start, min(start + step, n))
        data = kernels.prepare(X[rows])
        problem = NMFAlphaProblem(kernels, data, sweeps=50, settled=3e-4)
        if gaps is not None:
            problem = gaps.of_rows(rows).problem(kernels, data)
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


def gram_root(V: Array) -> Array:
    """Return the symmetric square root of ``V.T @ V``, in float64.

    Parameters
    ----------
    V : (d, r)

    Returns
    -------
    (r, r) array
    """
    V = V.astype(np.float64, copy=False)
    values, vectors = np.linalg.eigh(V.T @ V)
    # rounding can push the eigenvalues of dependent parts below zero
    return np.asarray((vectors * np.sqrt(np.clip(values, 0, None))) @ vectors.T)


def projection(V: Array, weights: Array | None = None) -> Array:
    """Return the matrix (d, r) that maps rows onto the span of the parts: ``Z = X @ projection``.

    With ``W = diag(weights) V`` and the orthonormal basis ``P = W (W'W)^(-1/2)`` of its span it is
    ``diag(weights) P``: weighted rows in that basis. The decision value of a
    hyperplane is kept exactly, for any row, if its weight vector lies in the span.

    Parameters
    ----------
    V : (d, r)
    weights : (d,) array or None

    Returns
    -------
    (d, r) array, in float64
    """
    V = V.astype(np.float64, copy=False)
    scale = np.ones(len(V)) if weights is None else weights.astype(np.float64)
    W = scale[:, None] * V
    return np.asarray(scale[:, None] * (W @ inverse_root(W.T @ W)))


def share_in_span(XS: Data, parts: Array) -> Array:
    """Return the share (p,) of each hyperplane's squared length that lies in the span of parts.

    ``XS`` (2p, d) are the components w+ of all hyperplanes, then w- of all; ``parts`` is (r, d).
    """
    p = XS.shape[0] // 2
    W = XS[:p] - XS[p:]  # sparse for sparse data
    kept = row_norms(np.asarray(W @ projection(parts.T)), squared=True)
    return np.minimum(safe_ratio(kept, row_norms(W, squared=True)), 1.0)


def inverse_root(gram: Array) -> Array:
    """Return the symmetric inverse square root of a Gram matrix, zero where parts are dependent."""
    values, vectors = np.linalg.eigh(gram)
    kept = values > _DEPENDENT * values.max(initial=0)
    return np.asarray((vectors[:, kept] / np.sqrt(values[kept])) @ vectors[:, kept].T)


def mixed_codes(linear: Array, H: Array) -> Array:
    """Return unit rows of a projection (n, r) beside the roots of the parts' shares (n, r).

    The first keep the evidence of single features, the second (Hellinger's) show which parts are
    there at all, and have half the weight.
    """
    shares = safe_ratio(H, H.sum(axis=1, keepdims=True))
    lengths = row_norms(linear)[:, None]
    return np.hstack([safe_ratio(linear, lengths), 0.5 * np.sqrt(shares)])


def extreme_scale(X: Rows) -> float:
    """Return a power of two near the mean entry of X where that is extreme, else 1."""
    mean = float(X.sum(dtype=np.float64)) / max(X.shape[0] * X.shape[1], 1)
    return extreme_power(mean)


def scaled(X: Rows, scale: float) -> Rows:
    """Return X divided by a power of two; what becomes zero on the way is stored no more."""
    X = X * X.dtype.type(1 / scale)
    if isinstance(X, sp.csr_array):
        X.eliminate_zeros()
    return X


def extreme_balance(H: Array, V: Array) -> float:
    """Return a power of two near ``sqrt(mean(H) / mean(V))`` where that is extreme, else 1.

    Only the product of the factors matters, and squares of both must stay within range.
    """
    means = (float(factor.mean(dtype=np.float64)) for factor in (H, V))
    h, v = (math.log2(mean) if 0 < mean < math.inf else 0.0 for mean in means)
    return extreme_power(2.0 ** min((h - v) / 2, _LARGEST))


def extreme_power(size: float) -> float:
    """Return a power of two near a size where that is extreme, else 1."""
    exponent = min(round(math.log2(size)), _LARGEST) if 0 < size < math.inf else 0
    return 2.0**exponent if abs(exponent) > _EXTREME else 1.0


def tame_rows(X: Data) -> tuple[Data, Array | None]:
    """Divide rows of extreme mass by a power of two near it; return the divisors, None for none.

    Whether and by what a row is divided depends on that row alone.
    """
    mass = np.asarray(X.sum(axis=1, dtype=np.float64)).ravel()
    exponent = np.rint(np.log2(np.where(mass > 0, mass, 1)))
    if not len(mass) or np.abs(exponent).max() <= _EXTREME:
        return X, None
    scale = np.exp2(np.where(np.abs(exponent) > _EXTREME, exponent, 0)).astype(X.dtype)
    inverse = (1 / scale).astype(X.dtype)
    if isinstance(X, np.ndarray):
        return X * inverse[:, None], scale
    return sp.csr_array(sp.diags_array(inverse) @ X), scale


def row_lengths(X: Data) -> Array:
    """Return the Euclidean lengths of the rows, in float64, whatever the size of the entries."""
    X = sp.csr_array(X).astype(np.float64)
    largest = float(abs(X).max()) or 1.0
    return np.asarray(largest * row_norms(X / largest))
