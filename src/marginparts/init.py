"""Starting points ``(H, V)``: random, from a singular value decomposition, from labels.

Every start scales like the data and is positive wherever the data may need it: a zero in a factor
stays a zero under multiplicative updates.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from marginparts._types import Array

NNDSVD = ("nndsvda", "nndsvdar")

#: The share of noise in a start from labels: breaks ties, and keeps every entry positive.
_NOISE = 0.1


def seed_of(random_state: Any) -> int:
    """Return one integer seed from ``None``, an int, a RandomState or a Generator."""
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


def uniform_rows(seed: int, stream: int, shape: tuple[int, int]) -> Array:
    """Uniform numbers in [0.5, 1.5) whose row i depends on the seed, the stream and i alone.

    The numbers are drawn row after row from one stream for H and another for V, so that adding
    samples leaves the rows before them as they were, and a block of rows can be drawn apart.
    """
    return np.random.default_rng([seed, stream]).random(shape) + 0.5


def mean_entry(X: Any) -> float:
    """Mean of all entries, zeros included."""
    return float(X.sum(dtype=np.float64)) / (X.shape[0] * X.shape[1])


def random_start(X: Any, n_components: int, seed: int) -> tuple[Array, Array]:
    """Return uniform factors with the mean of X.

    Parameters
    ----------
    X : (n, d) dense or sparse
    n_components : int
    seed : int

    Returns
    -------
    H : (n, r)
    V : (d, r)
    """
    n, d = X.shape
    scale = np.sqrt(mean_entry(X) / n_components)
    H = scale * uniform_rows(seed, 0, (n, n_components))
    V = scale * uniform_rows(seed, 1, (d, n_components))
    return H.astype(X.dtype), V.astype(X.dtype)


def nndsvd_start(X: Any, n_components: int, seed: int, variant: str) -> tuple[Array, Array]:
    """Return the nonnegative double SVD (Boutsidis & Gallopoulos 2008) with its zeros filled.

    Zeros become small: a hundredth of the random start's mean with ``"nndsvda"``, a hundredth of
    the random start itself with ``"nndsvdar"``. Components beyond the rank of X start at random.
    """
    # its module is slow to import, and only this start needs it
    from sklearn.utils.extmath import randomized_svd

    H, V = random_start(X, n_components, seed)
    left, values, right = randomized_svd(X, min(n_components, *X.shape), random_state=seed)
    for k, (u, value, v) in enumerate(zip(left.T, values, right, strict=True)):
        u, v = max(
            ((np.maximum(s * u, 0), np.maximum(s * v, 0)) for s in (1, -1)),
            key=lambda pair: np.linalg.norm(pair[0]) * np.linalg.norm(pair[1]),
        )
        sizes = np.linalg.norm(u), np.linalg.norm(v)
        if value * sizes[0] * sizes[1] == 0:
            continue
        for factor, part, size in ((H, u, sizes[0]), (V, v, sizes[1])):
            fill = 0.01 * (factor[:, k] if variant == "nndsvdar" else factor[:, k].mean())
            root = np.sqrt(value * sizes[0] * sizes[1]) / size
            factor[:, k] = np.maximum(root * part, fill)
    return H, V


def centroid_start(
    X: Any, groups: list[NDArray[np.intp]], n_components: int, seed: int
) -> tuple[Array, Array]:
    """Return a start with V from the centroids of groups of samples, one group a class.

    Each class gets r // c columns: its mean when that is one, its own samples when it has no more
    of them than columns, k-means centroids in between. The remaining columns are random.

    Parameters
    ----------
    X : (n, d) dense or sparse
    groups : list of index arrays
        The labeled samples of each class.
    n_components : int
    seed : int

    Returns
    -------
    H : (n, r)
    V : (d, r)
    """
    n, d = X.shape
    r = n_components
    V = uniform_rows(seed, 1, (d, r)) / d
    noise = V.copy()
    for k, centroid in enumerate(_centroids(X, groups, r, seed)):
        total = centroid.sum()
        if total > 0:
            V[:, k] = (1 - _NOISE) * centroid / total + _NOISE * noise[:, k]
    mass = np.asarray(X.sum(axis=1, dtype=np.float64)).ravel() / r
    # a flat start for every sample, empty ones included: they become zero after one step
    H = np.where(mass > 0, mass, mass.mean())[:, None] * uniform_rows(seed, 0, (n, r))
    return H.astype(X.dtype), V.astype(X.dtype)


def _centroids(X: Any, groups: list[NDArray[np.intp]], r: int, seed: int) -> list[Array]:
    """At most r centroids, the same number for each class."""
    groups = [rows for rows in groups if len(rows)]
    # fewer columns than classes: the best known classes come first
    groups = sorted(groups, key=len, reverse=True)[:r]
    if not groups:
        return []
    each = max(r // len(groups), 1)
    return [centroid for rows in groups for centroid in _class_centroids(X[rows], each, seed)]


def _class_centroids(X: Any, k: int, seed: int) -> list[Array]:
    """Return at most k centroids of the rows of one class."""
    if k == 1:
        return [np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()]
    if k >= X.shape[0]:
        return [np.asarray(X[[i]].sum(axis=0, dtype=np.float64)).ravel() for i in range(X.shape[0])]
    from sklearn.cluster import KMeans

    means = KMeans(k, n_init=1, max_iter=10, random_state=seed).fit(X)
    return list(means.cluster_centers_.astype(np.float64))
