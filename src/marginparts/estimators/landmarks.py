"""Kernels by landmarks: how near a sample is to each of some points, as features of 0 or larger."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import additive_chi2_kernel, euclidean_distances
from sklearn.preprocessing import normalize
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted

from marginparts._types import Array, Data, Samples, Seed, Targets
from marginparts.backends.base import safe_ratio
from marginparts.estimators._inputs import Counted, validated
from marginparts.estimators._repeats import together
from marginparts.solve.start import thread_pools
from marginparts.validation import (
    as_nonnegative,
    check_count,
    check_option,
    check_positive,
    check_squares,
    check_sum,
    seed_of,
    with_short_indices,
)

KERNELS = ("rbf", "chi2", "hellinger")

#: Rows among which landmarks are sought, rows whose distances give the scale, and entries at once.
_ENOUGH, _FEW, _AT_ONCE = 50_000, 1_000, 1 << 22

#: The share of sparse rows that have a column in common from which on it is cheaper as dense.
_COMMON = 0.1

_MOST = float(np.finfo(np.float64).max)


class Landmarks(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Features ``exp(-gamma * distance)`` to landmarks, the centers of k-means.

    Classes that are curved in X are nearly linear in these, and they are 0 or larger: put it in
    front of `NMFAlphaClassifier` in a pipeline. It is the low-rank way to a kernel.

    Parameters
    ----------
    kernel : {"rbf", "chi2", "hellinger"}
        The squared distance of rows; their chi-squared distance ``sum (x - z)^2 / (x + z)``; or the
        squared distance of the roots of their shares. The last two are for data of 0 or larger.
    n_landmarks : int
        The number of landmarks, or that of samples if there are fewer.
    gamma : float or "median"
        How fast a feature falls with the distance. ``"median"`` is ``sharpness`` over the median
        distance between a sample and a landmark.
    sharpness : float
        The larger, the fewer landmarks have a feature well above 0; for ``gamma="median"``.
    random_state : int, RandomState or None
        Seed of k-means.

    Attributes
    ----------
    landmarks_ : (m, d) array
        The centers.
    gamma_ : float
        The number used.
    n_features_in_ : int

    Examples
    --------
    >>> from marginparts import Landmarks, NMFAlphaClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> X = [[0., 0.], [1., 1.], [0., 1.], [1., 0.]]
    >>> Landmarks(n_landmarks=4, random_state=0).fit_transform(X).shape
    (4, 4)
    >>> model = make_pipeline(Landmarks(), NMFAlphaClassifier(32))
    """

    def __init__(
        self,
        kernel: str = "rbf",
        *,
        n_landmarks: int = 500,
        gamma: float | str = "median",
        sharpness: float = 6.0,
        random_state: Seed = None,
    ) -> None:
        self.kernel = kernel
        self.n_landmarks = n_landmarks
        self.gamma = gamma
        self.sharpness = sharpness
        self.random_state = random_state

    def fit(
        self, X: Samples, y: Targets | None = None, sample_weight: ArrayLike | None = None
    ) -> Landmarks:
        """Find the landmarks, and the scale of distances.

        Parameters
        ----------
        X : (n, d) array or sparse matrix
            Samples; of 0 or larger unless the kernel is ``"rbf"``.
        y : None
            Not used; there for pipelines.
        sample_weight : (n,) array-like or None
            How much each row counts in the means of its cluster, and in the median: weight 2 is a
            row given twice, weight 0 one left out.

        Returns
        -------
        Landmarks
            The fitted estimator.
        """
        check_option(self.kernel, "kernel", KERNELS)
        most = check_count(self.n_landmarks, "n_landmarks")
        sharpness = check_positive(self.sharpness, "sharpness")
        if not isinstance(self.gamma, str) or self.gamma != "median":
            check_positive(self.gamma, "gamma")
        seed = seed_of(self.random_state)
        counted = Counted.of(self._rows(X, reset=True), None, sample_weight, None)
        rows: Any = counted.X
        weights = counted.weights
        if counted.may_repeat and (same := together(rows, None, weights)) is not None:
            rows, weights = same.data(rows), same.weights
        some = np.random.default_rng(seed).permutation(rows.shape[0])[:_ENOUGH]
        own = None if weights is None else weights[some]
        self.landmarks_: Array = _centers(rows[some], own, min(most, len(some)), seed)
        if self.kernel == "chi2":  # rounding
            self.landmarks_ = np.maximum(self.landmarks_, 0)
        if self.gamma == "median":
            few = rows[some[:_FEW]]
            distances = np.concatenate([found for _, found in self._distances(few)])
            usual = _median(distances, None if own is None else own[:_FEW])
            if _are_one(few) and _are_one(self.landmarks_):
                usual = 0.0
            # the smallest distances would make it infinite
            self.gamma_ = min(sharpness / usual, _MOST) if usual > 0 else 1.0
        else:
            self.gamma_ = float(self.gamma)
        return self

    def transform(self, X: Samples) -> Array:
        """Return how near samples are to the landmarks (n, m), between 0 and 1."""
        check_is_fitted(self)
        rows = self._rows(X, reset=False)
        near = np.empty((rows.shape[0], len(self.landmarks_)), rows.dtype)
        with np.errstate(over="ignore"):  # infinitely far is a feature of 0
            for some, distances in self._distances(rows):
                near[some] = np.exp(-self.gamma_ * distances)
        return near

    def _rows(self, X: Samples, *, reset: bool) -> Data:
        """Return the rows whose distances count."""
        rows = validated(self, X, reset=reset)
        if not isinstance(rows, np.ndarray):
            rows = with_short_indices(rows)  # scikit-learn's clusters know no others
        name = type(self).__name__
        if self.kernel != "hellinger":
            check_squares(rows, name, rows.dtype)
        if self.kernel == "rbf":
            return rows
        rows = as_nonnegative(rows, name)
        check_sum(rows, name)
        return np.sqrt(_shares(rows)) if self.kernel == "hellinger" else rows

    def _distances(self, rows: Data) -> Iterator[tuple[slice, Array]]:
        """Yield some of the rows, and their distances (k, m) to the landmarks in float64.

        They are squared unless they are chi-squared.
        """
        landmarks = self.landmarks_.astype(np.float64)
        squares = None if self.kernel == "chi2" else _Squares(landmarks, rows)
        for some in gen_batches(rows.shape[0], max(1, _AT_ONCE // max(landmarks.shape))):
            own: Any = rows[some].astype(np.float64)
            if squares is not None:
                yield some, squares(own)
                continue
            own = own if isinstance(own, np.ndarray) else own.toarray()
            yield some, -additive_chi2_kernel(own, landmarks)

    @property
    def _n_features_out(self) -> int:
        return len(self.landmarks_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = self.kernel != "rbf"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class _Squares:
    """Squared distances of rows to landmarks (m, d), which are written over.

    What all have in common would take digits from the differences. So it is taken away first, in
    sparse rows from the columns that many of them have, which are dense in turn.
    """

    def __init__(self, landmarks: Array, rows: Data) -> None:
        self.common = np.ones(rows.shape[1], dtype=bool)
        if not isinstance(rows, np.ndarray):
            stored = np.bincount(rows.indices, minlength=rows.shape[1])
            self.common = stored > _COMMON * rows.shape[0]
        every = bool(self.common.all())
        near = landmarks if every else landmarks[:, self.common]
        self.middle = near.mean(axis=0)
        self.near = near - self.middle
        self.others: Array | None = None
        if not every:
            landmarks[:, self.common] = 0
            self.others = landmarks

    def __call__(self, own: Any) -> Array:
        """Return the distances (k, m) of rows (k, d), which are written over."""
        if self.others is None:
            own = own if isinstance(own, np.ndarray) else own.toarray()
            own -= self.middle
            return np.asarray(euclidean_distances(own, self.near, squared=True))
        if not self.common.any():
            return np.asarray(euclidean_distances(own, self.others, squared=True))
        common = own[:, np.flatnonzero(self.common)].toarray() - self.middle
        own.data[self.common[own.indices]] = 0
        own.eliminate_zeros()
        found = euclidean_distances(own, self.others, squared=True)
        found += euclidean_distances(common, self.near, squared=True)
        return np.asarray(found)


def _centers(rows: Any, weights: Array | None, most: int, seed: int) -> Array:
    """Return the centers of clusters (m, d) of rows, which are written over."""
    from sklearn.cluster import MiniBatchKMeans  # slow to import

    if _are_one(rows):
        one = rows[:1] if isinstance(rows, np.ndarray) else rows[:1].toarray()
        return np.repeat(one, most, axis=0)
    # in units, a power of 2, in which squares keep their digits
    entries = rows if isinstance(rows, np.ndarray) else rows.data
    _, unit = np.frexp(np.abs(entries).max())
    np.ldexp(entries, -unit, out=entries)
    with warnings.catch_warnings(), thread_pools().limit(limits=1, user_api="openmp"):
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows than centers
        means = MiniBatchKMeans(
            most, batch_size=2048, max_iter=20, n_init=1, random_state=seed
        ).fit(rows, sample_weight=weights)
    return np.ldexp(means.cluster_centers_, unit).astype(rows.dtype)


def _are_one(rows: Data) -> bool:
    """Whether rows are all the same up to rounding: their distances would be rounding alone."""
    least, most = rows.min(axis=0), rows.max(axis=0)
    if not isinstance(rows, np.ndarray):
        least, most = least.toarray(), most.toarray()
    sizes = np.maximum(np.abs(least), np.abs(most))
    return bool(np.all(most - least <= 4 * np.finfo(rows.dtype).eps * sizes))


def _shares(rows: Data) -> Data:
    """Return rows (n, d) that sum to 1, or to 0."""
    if not isinstance(rows, np.ndarray):
        return normalize(rows, "l1")
    # scikit-learn leaves dense rows with a small sum as they are
    return safe_ratio(rows, rows.sum(axis=1, dtype=np.float64, keepdims=True))


def _median(distances: Array, weights: Array | None) -> float:
    """Return the median distance (n, m), in which rows count by their weights (n,)."""
    if weights is None:
        return float(np.median(distances))
    order = np.argsort(distances, axis=None)
    reached = np.cumsum(np.repeat(weights, distances.shape[1])[order])
    middle = np.searchsorted(reached, reached[-1] / 2)
    return float(distances.ravel()[order[middle]])
