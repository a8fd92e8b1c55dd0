"""Starting points ``(H, V)``: random, from a singular value decomposition, from labels.

Every start scales like the data and is positive wherever the data may need it: a zero in a factor
stays a zero under multiplicative updates.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import ThreadpoolController

from marginparts._types import Array, Data, Init, Seed
from marginparts.backends.base import least_entry, tiny
from marginparts.labels import Labels, encode_labels
from marginparts.rows.base import Given, OutOfCore, Rows, RowsOnDemand
from marginparts.validation import (
    check_count,
    check_mass,
    check_matrix,
    check_option,
    check_start,
    seed_of,
)

NNDSVD = ("nndsvda", "nndsvdar")

#: The share of noise in a start from labels or a prior: breaks ties, keeps every entry positive.
_NOISE = 0.1

#: Numbers that are compared at a time where a start is checked.
_CHUNK = 1 << 22


@cache
def thread_pools() -> ThreadpoolController:
    """Find the libraries with threads once: it takes longer than what they are needed for."""
    return ThreadpoolController()


def uniform_rows(seed: int, stream: int, shape: tuple[int, int], first: int = 0) -> Array:
    """Uniform numbers in [0.5, 1.5) whose row i depends on the seed, the stream and i alone.

    The numbers are drawn row after row from one stream for H and another for V, so that adding
    samples leaves the rows before them as they were, and a block of rows (from ``first`` on) can be
    drawn apart.
    """
    stream_of_bits = np.random.PCG64([seed, stream]).advance(
        first * shape[1]
    )  # one for each number
    numbers = np.random.Generator(stream_of_bits).random(shape)
    numbers += 0.5
    return numbers


def mean_entry(X: Rows) -> float:
    """Mean of all entries, zeros included."""
    return float(X.sum(dtype=np.float64)) / (X.shape[0] * X.shape[1])


def random_start(X: Rows, n_components: int, seed: int) -> tuple[Array, Array]:
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
    r, scale = n_components, np.sqrt(mean_entry(X) / n_components)
    H = _made_by_rows(X, r, lambda a, b: scale * uniform_rows(seed, 0, (b - a, r), first=a))
    V = scale * uniform_rows(seed, 1, (X.shape[1], r))
    return H, V.astype(X.dtype)


def nndsvd_start(X: Rows, n_components: int, seed: int, variant: str) -> tuple[Array, Array]:
    """Return the nonnegative double SVD (Boutsidis & Gallopoulos 2008) with its zeros filled.

    Zeros become small: a hundredth of the random start's mean with ``"nndsvda"``, a hundredth of
    the random start itself with ``"nndsvdar"``. Components beyond the rank of X start at random.
    """
    if isinstance(X, OutOfCore):
        raise ValueError(f"init={variant!r} needs all rows in memory; use 'random' or 'auto'.")
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


def filled_start(X: Rows, H: Array | RowsOnDemand, V: Array) -> tuple[Any, Array]:
    """Return a start without zeros where the data needs a fit, with a warning where it had them.

    A positive entry of X with a fit of zero has an infinite loss, and no update brings it back. The
    rows of H and of V that such an entry needs are raised to a hundredth of their factor's mean.

    Parameters
    ----------
    X : (n, d) trusted data
    H : (n, r) array, or rows on demand
    V : (d, r)
    """
    if isinstance(H, RowsOnDemand) or float(H.min()) * float(V.min()) > tiny(V.dtype):
        return H, V
    pairs = list(_unexplained(X, H, V))
    rows, columns = (np.concatenate(places) for places in zip(*pairs, strict=True))
    if not len(rows):
        return H, V
    warnings.warn(
        f"The start has no fit for {len(rows)} positive entries of X, which is an infinite loss; "
        "zeros in their rows of H and V were filled.",
        UserWarning,
        stacklevel=2,
    )
    scale = np.sqrt(mean_entry(X) / V.shape[1])
    return _raised(H, rows, scale), _raised(V, columns, scale)


def _unexplained(X: Rows, H: Array, V: Array) -> Iterator[tuple[Array, Array]]:
    """Yield the rows and columns of positive entries without a fit, some samples at a time."""
    floor, least = tiny(V.dtype), least_entry(V.dtype)
    step = max(_CHUNK // max(X.shape[1], V.shape[1]), 1)
    for first in range(0, X.shape[0], step):
        some = np.arange(first, min(first + step, X.shape[0]))
        block = sp.coo_array(X[some])
        counted = block.data > least
        rows, columns = some[block.row[counted]], block.col[counted]
        for part in np.array_split(np.arange(len(rows)), len(rows) * V.shape[1] // _CHUNK + 1):
            i, j = rows[part], columns[part]
            missed = np.einsum("ek,ek->e", H[i], V[j]) <= floor
            yield i[missed], j[missed]


def _raised(factor: Array, rows: Array, scale: float) -> Array:
    """Return a factor with some rows at a hundredth of its mean at least, or of a random one's."""
    factor, rows = factor.copy(), np.unique(rows)
    fill = 0.01 * (float(factor.mean(dtype=np.float64)) or scale)
    factor[rows] = np.maximum(factor[rows], factor.dtype.type(fill))
    return factor


def class_start(
    X: Given, y: ArrayLike, n_components: int, random_state: Seed = None
) -> tuple[Array, Array]:
    """Return a start ``(H, V)`` with V from the centroids of each class's labeled samples.

    Each class gets r // c columns: its mean when that is one, its own samples when it has no more
    of them than columns, k-means centroids in between; all blended with a tenth of noise. The
    remaining columns are random. A random start mixes classes in one column and seldom recovers.

    Parameters
    ----------
    X : (n, d) array or sparse matrix
        Nonnegative data, one row a sample.
    y : (n,) or (n, c) array-like
        Labels; -1, None and NaN mark unlabeled rows.
    n_components : int
        The number r of parts.
    random_state : int, RandomState, Generator or None
        Seed of the noise and of k-means.

    Returns
    -------
    H : (n, r) array
        Codes, each with the mass of its sample.
    V : (d, r) array
        Parts as columns.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[2., 0.], [0., 1.], [1., 1.]])
    >>> H, V = class_start(X, [0, 1, -1], 2, random_state=0)
    >>> V.argmax(axis=0)
    array([0, 1])
    """
    data = check_matrix(X, "class_start")
    check_mass(data, "class_start")
    labels = encode_labels(y, data.shape[0])
    return label_start(
        data, labels, check_count(n_components, "n_components"), seed_of(random_state)
    )


def label_start(X: Rows, labels: Labels, r: int, seed: int) -> tuple[Array, Array]:
    """`class_start` on trusted data."""
    d = X.shape[1]
    V = uniform_rows(seed, 1, (d, r)) / d
    groups = [labels.members(k) for k in range(len(labels.classes))]
    for k, centroid in enumerate(_centroids(X, groups, r, seed, labels.weights)):
        total = centroid.sum()
        if total > 0:
            noise = _NOISE * V[:, k]
            V[:, k] = (1 - _NOISE) * centroid / total + noise
            # k-means leaves roundings of either sign where a mean is zero
            V[:, k] = np.where(V[:, k] > 0, V[:, k], noise)
    mass = np.asarray(X.sum(axis=1, dtype=np.float64)).ravel() / r
    # flat for every sample, empty ones included: those become zero after one step
    mass = np.where(mass > 0, mass, mass.mean())[:, None]
    H = _made_by_rows(X, r, lambda a, b: mass[a:b] * uniform_rows(seed, 0, (b - a, r), first=a))
    return H, V.astype(X.dtype)


def _centroids(
    X: Rows, groups: list[NDArray[np.intp]], r: int, seed: int, weights: Array | None
) -> list[Array]:
    """At most r centroids, the same number for each class."""
    groups = [rows for rows in groups if len(rows)]
    counts = np.ones(X.shape[0]) if weights is None else weights
    # the best known classes first, should there be fewer columns; never by the classes' names
    groups = sorted(groups, key=lambda rows: (-counts[rows].sum(), rows[0]))[:r]
    if not groups:
        return []
    each, found = max(r // len(groups), 1), []
    for rows in groups:
        counted = None if weights is None else weights[rows]
        found.extend(_class_centroids(X[rows], each, seed, counted))
    return found


def _class_centroids(X: Data, k: int, seed: int, weights: Array | None) -> list[Array]:
    """Return at most k centroids of the rows of one class."""
    if k == 1 and weights is not None:
        return [np.asarray(weights @ X).ravel() / weights.sum()]
    if k == 1:
        return [np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()]
    if k < X.shape[0]:  # an empty row says nothing about its class, and would be a centroid
        full = np.flatnonzero(np.asarray(X.sum(axis=1, dtype=np.float64)).ravel() > 0)
        X, weights = X[full], None if weights is None else weights[full]
    if k >= X.shape[0]:
        return [np.asarray(X[[i]].sum(axis=0, dtype=np.float64)).ravel() for i in range(X.shape[0])]
    from sklearn.cluster import KMeans

    # in float64 and near one, so that squares of extreme values stay within range
    X = X.astype(np.float64) / float(X.max() or 1)
    means = KMeans(k, n_init=1, max_iter=10, random_state=seed)
    # on one thread, since its sums depend on their number; duplicate samples need no warning
    with thread_pools().limit(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return list(means.fit(X, sample_weight=weights).cluster_centers_)


def prior_start(parts: Array, X: Data, seed: int) -> Array:
    """Return where parts with a prior begin, (d, m): with a tenth of the data's mean, and noise."""
    shares = parts / np.maximum(parts.sum(axis=1, keepdims=True), tiny(X.dtype))
    mean = np.asarray(X.sum(axis=0, dtype=np.float64)).ravel()
    noise = uniform_rows(seed, 2, (X.shape[1], len(parts)))
    V = (1 - _NOISE) * shares.T + _NOISE * noise * (mean / mean.sum())[:, None]
    return V.astype(X.dtype)


def _made_by_rows(X: Rows, r: int, make: Callable[[int, int], Array]) -> Any:
    """Return a factor (n, r) for data: whole, or rows on demand where the data is on disk."""
    n = X.shape[0]
    if isinstance(X, OutOfCore):
        return RowsOnDemand((n, r), X.dtype, make)
    return make(0, n).astype(X.dtype)


def check_init(init: Init, X: Rows, r: int) -> None:
    """Refuse a start that is not known or does not fit the data."""
    if isinstance(init, str):
        check_option(init, "init", ("auto", "random", *NNDSVD))
    else:
        check_start(init, X.shape, r, X.dtype)


def start_from(
    init: Init, X: Rows, r: int, random_state: Seed, labels: Labels | None = None
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
