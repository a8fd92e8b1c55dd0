"""Parts on which fits from several starts agree."""

from __future__ import annotations

import warnings
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import (
    ClassNamePrefixFeaturesOutMixin,
    MetaEstimatorMixin,
    TransformerMixin,
    clone,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from marginparts._types import Array, Data, Samples, Seed, Targets
from marginparts.checkpoint import Logbook
from marginparts.directions import Directions
from marginparts.estimators._inputs import Counted, check_training_data
from marginparts.estimators._notebook import ShowsParts
from marginparts.estimators._repeats import together
from marginparts.estimators.nmf_alpha import NMFAlpha
from marginparts.labels import Labels
from marginparts.matching import match_parts, matched_runs, mean_parts, median_parts
from marginparts.recipe import Recipe
from marginparts.rows.base import Elsewhere
from marginparts.validation import check_count, check_nonnegative, is_dask, seed_of

#: The share of the mean part in every part that a fit goes on from: no word is left without any.
_BACKGROUND = 0.01


#: Iterations of a short run at most.
RUN_ITER = 30

#: How near the last fit stays to what the runs agree on.
STRENGTH = 0.3


class NMFAlphaConsensus(
    ClassNamePrefixFeaturesOutMixin, MetaEstimatorMixin, TransformerMixin, ShowsParts
):
    """`NMFAlpha` from what several starts agree on, with a number for how stable each part is.

    A few short runs from different starts; their parts matched, one of each run to a group; the
    mean of each group; and one last fit that starts there and stays near it. It depends less on the
    seed than a single fit, and costs about four of them.

    Parameters
    ----------
    estimator : NMFAlpha or None
        What is fitted, with all its options but ``random_state``; None is ``NMFAlpha()``. Its
        ``init`` must be ``"auto"`` or ``"random"``: other starts do not differ. Its directions
        cannot be ``"joint"``, which would be others in each run. A ``callback`` sees all runs, a
        ``checkpoint`` keeps the last fit.
    n_runs : int
        Short runs, 2 at least.
    run_iter : int
        Iterations of each at most.
    strength : float
        How near the last fit stays to the means, as the strength of a prior in `NMFAlpha`. With 0
        it starts from the median of each group, without outliers, and goes where it likes: a lower
        loss, but where two minima are about as low, it depends on the seed in which it ends. An
        estimator with a prior of its own, or with gaps, has 0.
    random_state : int, RandomState or None
        Seed of everything random; None gives another result each time.

    Attributes
    ----------
    components_ : (r, d) array
        The parts of the last fit.
    stability_ : (r,) array
        The mean of ``agreement_`` over runs, 0 to 1. A part well below 0.9 is one that another
        seed may not find.
    total_stability_ : float
        The mean over parts: a guide to the number of parts, as in cNMF.
    agreement_ : (n_runs, r) array
        The cosine of each part and its match in each short run.
    estimator_ : NMFAlpha
        The last fit.
    n_components_, reconstruction_err_, n_iter_
        Those of the last fit.
    n_features_in_ : int

    Examples
    --------
    >>> from marginparts import NMFAlpha, NMFAlphaConsensus
    >>> from marginparts.datasets import load_digits_49
    >>> consensus = NMFAlphaConsensus(NMFAlpha(4), random_state=0).fit(load_digits_49().data)
    >>> consensus.components_.shape, consensus.stability_.shape
    ((4, 64), (4,))
    """

    def __init__(
        self,
        estimator: NMFAlpha | None = None,
        *,
        n_runs: int = 10,
        run_iter: int = RUN_ITER,
        strength: float = STRENGTH,
        random_state: Seed = None,
    ) -> None:
        self.estimator = estimator
        self.n_runs = n_runs
        self.run_iter = run_iter
        self.strength = strength
        self.random_state = random_state

    def fit(
        self, X: Samples, y: Targets | None = None, sample_weight: ArrayLike | None = None
    ) -> NMFAlphaConsensus:
        """Find the parts.

        Parameters
        ----------
        X : (n, d) array or sparse matrix
            Nonnegative data, in memory.
        y : (n,) or (n, c) array-like, or None
            Labels, as for `NMFAlpha`; the directions are found once for all runs.
        sample_weight : (n,) array-like or None
            As for `NMFAlpha`.

        Returns
        -------
        NMFAlphaConsensus
            The fitted estimator.
        """
        if check_count(self.n_runs, "n_runs") < 2:
            raise ValueError("n_runs must be 2 or larger: one run agrees with itself.")
        check_count(self.run_iter, "run_iter")
        strength = check_nonnegative(self.strength, "strength")
        if is_dask(X) or isinstance(X, Elsewhere):
            raise ValueError("NMFAlphaConsensus needs X in memory.")
        model = NMFAlpha() if self.estimator is None else clone(self.estimator)
        if not isinstance(model, NMFAlpha):
            raise ValueError(f"estimator must be an NMFAlpha, and it is a {type(model).__name__}.")
        if not isinstance(model.init, str) or model.init not in ("auto", "random"):
            raise ValueError("The init of the estimator must be 'auto' or 'random'.")
        if model.directions == "joint":
            raise ValueError(
                "NMFAlphaConsensus finds the directions once for all runs, and those of 'joint' "
                "move with the parts of each; set other directions."
            )
        X, y, sample_weight = _distinct(copy(model), X, y, sample_weight)
        seeds = np.random.default_rng(seed_of(self.random_state)).integers(2**31, size=self.n_runs)
        short = {"max_iter": min(self.run_iter, model.max_iter), "checkpoint": None}
        fits: list[NMFAlpha] = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # they are short on purpose
            for seed in map(int, seeds):
                run = clone(model).set_params(random_state=seed, **short)
                fits.append(run._fit(X, y, sample_weight, _directions(fits)))
        runs = np.stack([run.components_ for run in fits])
        if model.prior is not None or model.missing is not None:
            strength = 0.0
        agreed = _agreed(runs, fits[0], mean=strength > 0)
        last = clone(model).set_params(
            random_state=int(seeds[0]), init=start_at(fits[0], X, agreed)
        )
        if strength:
            last.set_params(prior=agreed[fits[0].n_fixed_ :], strength=strength)
        last._fit(X, y, sample_weight, _directions(fits))
        last.set_params(init=model.init, prior=model.prior, strength=model.strength)
        self._keep(last, runs)
        return self

    def _keep(self, last: NMFAlpha, runs: Array) -> None:
        self.estimator_, self.components_ = last, last.components_
        self.agreement_ = np.stack([match_parts(last.components_, run).cosine for run in runs])
        self.stability_ = self.agreement_.mean(axis=0)
        self.total_stability_ = float(self.stability_.mean())
        self.n_features_in_, self._n_features_out = last.n_features_in_, last._n_features_out
        if hasattr(last, "feature_names_in_"):
            self.feature_names_in_ = last.feature_names_in_
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    @property
    def n_components_(self) -> int:
        """The number of parts."""
        return self.estimator_.n_components_

    @property
    def reconstruction_err_(self) -> float:
        """The error of the last fit."""
        return self.estimator_.reconstruction_err_

    @property
    def n_iter_(self) -> int:
        """The iterations of the last fit."""
        return self.estimator_.n_iter_

    def transform(self, X: Samples) -> Array:
        """Express samples in the parts, as `NMFAlpha.transform` does."""
        check_is_fitted(self)
        return self.estimator_.transform(X)

    def inverse_transform(self, X: Samples) -> Array:
        """Rebuild samples from their codes, as `NMFAlpha.inverse_transform` does."""
        check_is_fitted(self)
        return self.estimator_.inverse_transform(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = (NMFAlpha() if self.estimator is None else self.estimator).__sklearn_tags__()
        tags.input_tags, tags.transformer_tags = inner.input_tags, inner.transformer_tags
        return tags


def fit_agreed(
    parts: NMFAlpha, n_runs: int, X: Data, labels: Labels | None, recipe: Recipe, seed: int,
    logbook: Logbook | None = None, found: Directions | None = None, weights: Array | None = None,
) -> NMFAlpha:  # fmt: skip
    """Fit parts to trusted data from what short runs agree on, and say how stable each is.

    What is not ``n_runs`` is as for `NMFAlpha._fit_trusted`.
    """
    seeds = np.random.default_rng(seed).integers(2**31, size=n_runs)
    brief = replace(recipe.run, max_iter=min(RUN_ITER, recipe.run.max_iter))
    fits: list[NMFAlpha] = []
    for each in map(int, seeds):
        fits.append(
            copy(parts)._fit_trusted(
                X, labels, replace(recipe, run=brief), each, None, found, weights
            )
        )
        found = found or _directions(fits)
    runs = np.stack([run.components_ for run in fits])
    begun = replace(recipe.run, init=start_at(fits[0], X, _agreed(runs, fits[0])))
    parts._fit_trusted(X, labels, replace(recipe, run=begun), seed, logbook, found, weights)
    cosines = [match_parts(parts.components_, run).cosine for run in runs]
    parts.stability_ = np.mean(cosines, axis=0)
    return parts


def _distinct(
    model: NMFAlpha, X: Samples, y: Targets | None, sample_weight: ArrayLike | None
) -> tuple[Samples, Targets | None, ArrayLike | None]:
    """Return rows that are the same as one, where `NMFAlpha` does so.

    The last fit has a start that is given, and would see all of them.
    """
    data = check_training_data(model, X)
    counted = Counted.of(data, y, sample_weight, type(model).__name__)
    same = together(*counted[:3]) if counted.may_repeat else None
    if same is None:
        return X, y, sample_weight
    rows = same.rows if counted.rows is None else counted.rows[same.rows]
    X = _safe_indexing(X if hasattr(X, "iloc") else data, rows)
    return X, same.labels(counted.y), same.weights


def _directions(fits: list[NMFAlpha]) -> Directions | None:
    """Return the directions of the first fit, where there is one that had labels."""
    if not fits or fits[0].directions_ is None:
        return None
    return Directions(fits[0].directions_, tuple(fits[0].margin_names_))


def _agreed(runs: Array, fitted: NMFAlpha, *, mean: bool = False) -> Array:
    """Return the parts (r, d) on which runs (m, r, d) agree: medians, or means.

    Parts that have their place, because they are fixed or have features of their own, keep it.
    """
    m, r, _ = runs.shape
    k = r if fitted.allowed is not None else fitted.n_fixed_
    middle = mean_parts if mean else median_parts
    orders = np.tile(np.arange(r), (m, 1))
    if k < r:
        orders[:, k:] = k + matched_runs(runs[:, k:])
    groups = np.take_along_axis(runs, orders[:, :, None], axis=1)
    return np.vstack([runs[0, :k], middle(groups[:, k:])]) if k < r else middle(groups)


def start_at(fitted: NMFAlpha, X: Samples, parts: Array) -> tuple[Array, Array]:
    """Return a start ``(H, V)`` at some parts (r, d), for a fit to X with the same options."""
    data = fitted._check_data(X, reset=False)
    mean = fitted.components_.mean(axis=0)
    sums = parts.sum(axis=1, keepdims=True)
    parts = (1 - _BACKGROUND) * parts + _BACKGROUND * sums * mean / mean.sum()
    seen = copy(fitted)
    seen.components_, seen.map_iter = parts.astype(fitted.components_.dtype), 10
    return seen._coefficients(data), np.ascontiguousarray(seen.components_.T)
