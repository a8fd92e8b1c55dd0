"""What a factorization keeps of its margin components, and its parts as their weight changes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from marginparts._types import Array, Callback, Data, PathStep, Result, Samples
from marginparts.backends import get_backend, work_of
from marginparts.backends.base import column_sums
from marginparts.directions import Directions
from marginparts.estimators._gaps import GapsTransformer
from marginparts.estimators._inputs import column_names
from marginparts.recipe import Recipe, RunSpec
from marginparts.rows.base import Elsewhere, OutOfCore
from marginparts.solve.factorize import factorize_path, margin_components, parts_of
from marginparts.solve.gaps import Missing, found_gaps
from marginparts.solve.map import map_rows_each, share_in_span
from marginparts.solve.prior import count_parts
from marginparts.solve.run_spec import Scales, check_parts
from marginparts.validation import check_nonnegative


class MarginTransformer(GapsTransformer):
    """A `GapsTransformer` whose parts keep margin components.

    A subclass has a `_recipe`, and its `fit` sets ``directions_``, ``sample_weight_`` and
    ``n_fixed_``.
    """

    # set by the constructor of the subclass
    lam: float
    fixed: Any
    feature_weight: ArrayLike | None
    solver: str
    max_iter: int
    tol: float

    sample_weight_: Array | None
    directions_: sp.csr_array | None
    n_fixed_: int

    def _recipe(self) -> Recipe:
        """Return the parameters as a recipe, or refuse what makes no sense."""
        raise NotImplementedError

    @property
    def _n_fixed(self) -> int:
        """How many parts were fixed; fits of old files have kept no number."""
        return self.n_fixed_ if hasattr(self, "n_fixed_") else count_parts(self.fixed)

    def _spread_over(self, rows: NDArray[np.intp], n: int) -> None:
        """Extend directions, and weights where there are any, to all n rows; others are zero."""
        if self.sample_weight_ is not None:
            weights: Array = np.zeros(n)
            weights[rows] = self.sample_weight_
            self.sample_weight_ = weights
        if self.directions_ is not None:
            self.directions_ = Directions(self.directions_, ()).spread_over(rows, n).S

    def _keep_margins(self, X: Data | OutOfCore, result: Result, names: tuple[str, ...]) -> None:
        """Keep the margin components and their codes, from which the parts rebuild them."""
        S = self.directions_
        if S is None:
            S = sp.csr_array((X.shape[0], 0), dtype=X.dtype)
        self.margin_names_ = np.array(names, dtype=str)
        self.margin_components_ = margin_components(S, X) if result.XS is None else result.XS
        # only labeled rows of H are read: it may be on disk, or on a cluster
        known = np.flatnonzero(np.diff(S.indptr))
        HS = S[known].T @ np.asarray(result.H[known])
        sums = column_sums(result.V)
        sums[: self._n_fixed] = 1.0  # these are as they were given
        self.margin_codes_ = np.asarray(HS) * sums.astype(X.dtype)
        self.margin_kept_ = share_in_span(self.margin_components_, self.components_)

    def _beside_the_data(self, X: Data | OutOfCore, result: Result, run: RunSpec) -> float:
        """Return what the margin components, penalties and the prior have in the loss."""
        scales = Scales.of(X, self.sample_weight_, run.feature_weight)
        steering = run.steering(X, len(self.components_), scales)
        XS, loss = self.margin_components_, 0.0
        if XS.shape[0] and self.lam > 0:
            kernels = get_backend(self.backend, work_of(XS, len(self.components_)))
            columns = scales._replace(rows=None)
            HS, V = columns.start(self.margin_codes_, self.components_.T)
            data = kernels.prepare(columns.data(XS))
            factors = kernels.factor(HS, rows_of=data), kernels.factor(np.ascontiguousarray(V))
            loss += float(self.lam) * kernels.divergence(data, *factors)
        if not steering.is_straight:
            loss += steering.charge(get_backend("reference"), *scales.start(result.H, result.V))
        return loss

    def _coefficients(self, X: Data, missing: Missing = None) -> Array:
        X, V = X.astype(self.components_.dtype, copy=False), self.components_.T.copy()
        missing, gaps = missing or self.missing, None
        if missing is not None:
            X, gaps = found_gaps(X, missing)
            X = gaps.known(X)
        if self.feature_weight is not None:
            scales = Scales.of(X, None, np.asarray(self.feature_weight))
            X, V = scales.data(X), scales.start(V, V)[1]
        return map_rows_each(X, V, [self.map_iter], self.backend, gaps)[0]

    def path(
        self, X: Samples, lams: Iterable[float], *, mask: Any = None,
        callback: Callback | None = None,
    ) -> list[PathStep]:  # fmt: skip
        """Follow the fitted parts as the weight of the margin components changes.

        The same margin components throughout; part k of one weight continues part k of the others.

        Parameters
        ----------
        X : (n, d) array or sparse matrix
            The data of the fit.
        lams : iterable of float
        mask : (n, d) array of bool or None
            That of the fit.
        callback : callable or None
            Called with a `Progress`; a true answer ends the fit for the weight under way.

        Returns
        -------
        list of PathStep
            ``(lam, components)`` for each weight, the smallest first.
        """
        check_is_fitted(self)
        lams = [check_nonnegative(lam, "lams") for lam in lams]
        X = self._check_data(X, reset=False)
        if isinstance(X, Elsewhere):
            raise ValueError("path needs X in memory, and not rows on disk or on a cluster.")
        S = self.directions_
        if S is None or S.shape[0] != X.shape[0]:
            raise ValueError("path needs the X of a fit with labels: its margin components.")
        X, missing = self._masked(X, mask)
        r = len(self.components_)
        # what was given may be an estimator that has been fitted again since
        fixed = self.components_[: self._n_fixed] if self._n_fixed else None
        run = check_parts(replace(self._recipe().run, fixed=fixed), X, r, column_names(self))
        weights = getattr(self, "sample_weight_", None)
        if weights is not None:
            rows = np.flatnonzero(weights)
            X, S, weights = X[rows], S[rows], weights[rows]
        H, V = self._coefficients(X, missing), self.components_.T.astype(X.dtype)
        gaps = None
        if missing is not None:
            X, gaps = found_gaps(X, missing)
        scales = Scales.of(X, weights, run.feature_weight)
        start = scales.start(np.ascontiguousarray(H), np.ascontiguousarray(V))
        steps = factorize_path(
            scales.data(X), start, S=scales.margins(S), lams=lams, solver=self.solver,
            max_iter=self.max_iter, tol=self.tol, backend=self.backend, callback=callback,
            steering=run.steering(X, r, scales, gaps),
        )  # fmt: skip
        found = (PathStep(lam, parts_of(scales.back(result).V, run.fixed)) for lam, result in steps)
        return sorted(found, key=lambda step: step.lam)
