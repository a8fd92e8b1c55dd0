"""Kernels by landmarks: how near a sample is to each of some points, as features of 0 or larger."""

from __future__ import annotations

import warnings
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
)

KERNELS = ("rbf", "chi2", "hellinger")

#: Rows among which landmarks are sought, rows whose distances give the scale, and entries at once.
_ENOUGH, _FEW, _AT_ONCE = 50_000, 1_000, 1 << 22

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
        from sklearn.cluster import MiniBatchKMeans  # slow to import

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
        with warnings.catch_warnings(), thread_pools().limit(limits=1, user_api="openmp"):
            warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows than centers
            means = MiniBatchKMeans(
                min(most, len(some)), batch_size=2048, max_iter=20, n_init=1, random_state=seed
            ).fit(rows[some], sample_weight=None if weights is None else weights[some])
        self.landmarks_: Array = means.cluster_centers_.astype(rows.dtype)
        if self.kernel == "chi2":  # rounding
            self.landmarks_ = np.maximum(self.landmarks_, 0)
        if self.gamma == "median":
            few = some[:_FEW]
            usual = _median(self._distances(rows[few]), None if weights is None else weights[few])
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
        for some in gen_batches(len(near), max(1, _AT_ONCE // near.shape[1])):
            near[some] = np.exp(-self.gamma_ * self._distances(rows[some]))
        return near

    def _rows(self, X: Samples, *, reset: bool) -> Data:
        """Return the rows whose distances count."""
        rows = validated(self, X, reset=reset)
        name = type(self).__name__
        if self.kernel != "hellinger":
            check_squares(rows, name, rows.dtype)
        if self.kernel == "rbf":
            return rows
        rows = as_nonnegative(rows, name)
        check_sum(rows, name)
        return np.sqrt(_shares(rows)) if self.kernel == "hellinger" else rows

    def _distances(self, rows: Data) -> Array:
        """Return the distances (n, m) to the landmarks, squared unless they are chi-squared."""
        if self.kernel == "chi2":
            dense = rows if isinstance(rows, np.ndarray) else rows.toarray()
            # its loop wants arrays that could be written to
            pair = (np.require(each, requirements="W") for each in (dense, self.landmarks_))
            return np.asarray(-additive_chi2_kernel(*pair))
        return euclidean_distances(rows, self.landmarks_, squared=True)

    @property
    def _n_features_out(self) -> int:
        return len(self.landmarks_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = self.kernel != "rbf"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


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
