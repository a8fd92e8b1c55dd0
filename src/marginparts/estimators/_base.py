"""What the three factorizing transformers share: everything but the fit itself."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from marginparts._types import Array, Result, Stop
from marginparts.backends import Backend
from marginparts.checkpoint import Logbook, logbook_of
from marginparts.labels import Labels
from marginparts.rows.base import Elsewhere
from marginparts.rows.dask import as_dask_rows, lazy_on_dask
from marginparts.rows.disk import RowBlocks, mapped_by_blocks
from marginparts.solve.factorize import parts_of
from marginparts.solve.geometry import gram_root
from marginparts.validation import (
    DTYPES,
    as_nonnegative,
    check_count,
    check_mass,
    check_option,
    check_rank,
    on_the_host,
    seed_of,
)

#: What a sample's codes can be: Z (eq. 5), or H.
OUTPUTS = ("gram", "coefficients")

#: Parameters on which what a fit finds does not depend.
_NO_MATTER = {"callback", "checkpoint", "random_state"}


def open_logbook(
    estimator: Any, X: Any, labels: Labels | None, no_matter: Iterable[str] = ()
) -> AbstractContextManager[Logbook]:
    """Open the checkpoint of an estimator's fit to trusted data; without one, an empty logbook.

    ``no_matter`` names parameters, besides the usual ones, that do not tell one fit from another.
    """
    apart = {*_NO_MATTER, *no_matter}
    given = estimator.get_params(deep=False).items()
    return logbook_of(
        estimator.checkpoint, type(estimator).__name__, seed_of(estimator.random_state),
        any_seed=estimator.random_state is None, X=X, y=labels,
        **{name: value for name, value in given if name not in apart},
    )  # fmt: skip


def check_rows(estimator: Any, X: Elsewhere, *, reset: bool) -> Elsewhere:
    """Take note of the number of features, or compare it; `validate_data` for rows elsewhere."""
    if reset:
        estimator.n_features_in_ = X.shape[1]
        vars(estimator).pop("feature_names_in_", None)
    elif X.shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input."
        )
    return X


class PartsTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A fitted basis V, and the maps into it and back."""

    # set by the constructors of the subclasses
    n_components: int
    map_iter: int | None
    output: str
    backend: str | Backend

    #: Whether X may be on disk.
    _takes_rows: ClassVar[bool] = False

    def _check_data(self, X: Any, *, reset: bool) -> Any:
        """Return X as trusted data; rows elsewhere are checked when they are read."""
        X = as_dask_rows(X)
        if isinstance(X, Elsewhere):
            if not self._takes_rows:
                return self._check_data(X.gathered(), reset=reset)
            return check_rows(self, X, reset=reset)
        X = validate_data(
            self, on_the_host(X), accept_sparse="csr", dtype=DTYPES, order="C", reset=reset
        )
        return as_nonnegative(X, type(self).__name__)

    def _check_fit(self, X: Any) -> tuple[Any, int]:
        """Return trusted training data and the rank."""
        if self.map_iter is not None:
            check_count(self.map_iter, "map_iter")
        check_option(self.output, "output", OUTPUTS)
        X = self._check_data(X, reset=True)
        if not isinstance(X, Elsewhere):
            check_mass(X, type(self).__name__)
        return X, check_rank(self.n_components, X.shape)

    def _keep(self, result: Result) -> None:
        """Keep what a run found, with parts that sum to one."""
        self.components_ = parts_of(result.V)
        self.loss_curve_ = np.array(result.losses)
        self.n_iter_ = result.n_iter
        self.stop_ = result.stop
        self.solver_ = result.solver
        self.history_ = result.history
        self.gram_root_ = gram_root(self.components_.T)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state with plain values only, so that skops can keep it as well as pickle."""
        state = super().__getstate__()
        return {**state, "stop_": state["stop_"].name} if "stop_" in state else state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the state back."""
        if "stop_" in state:
            state = {**state, "stop_": Stop[state["stop_"]]}
        super().__setstate__(state)

    def _map(self, X: Any) -> Array:
        """Return H (n, r) for trusted data."""
        raise NotImplementedError

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    @lazy_on_dask
    def transform(self, X: Any, *, out: str | os.PathLike[str] | None = None) -> Array:
        """Express samples in the learned parts; labels never enter.

        Parameters
        ----------
        X : (n, d) array or sparse matrix, RowBlocks or Dask array
            Rows on disk are mapped a block at a time; a Dask array gives a lazy one.
        out : path or None
            An ``.npy`` file to write the codes to.

        Returns
        -------
        (n, r) array
            Z (eq. 5) with ``output="gram"``, H with ``output="coefficients"``. A row depends on
            its own sample alone. With ``out`` it is a memory map of that file.
        """
        check_is_fitted(self)
        X = self._check_data(X, reset=False)
        if out is None and not isinstance(X, RowBlocks):
            return self.codes(X)
        return mapped_by_blocks(X, self.codes, self._n_features_out, out)

    def coefficients(self, X: Any) -> Array:
        """Return H (n, r) for checked data: how much of each part a sample has."""
        return self._map(X.astype(self.components_.dtype, copy=False))

    def codes(self, X: Any) -> Array:
        """`transform` on checked data."""
        H = self.coefficients(X)
        Z = H @ self.gram_root_ if self.output == "gram" else H
        return np.asarray(Z, dtype=X.dtype)

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """Fit and map the same samples, exactly as ``fit(X, y).transform(X)``."""
        return self.fit(X, y).transform(X)

    def inverse_transform(self, X: Any) -> Array:
        """Rebuild samples from their codes.

        Parameters
        ----------
        X : (n, r) array
            What `transform` returns; Z is turned back into H by the pseudo-inverse.

        Returns
        -------
        (n, d) array
        """
        check_is_fitted(self)
        X = check_array(X, dtype=DTYPES)
        if X.shape[1] != self._n_features_out:
            raise ValueError(f"X has {X.shape[1]} columns, expected {self._n_features_out}.")
        H = X @ np.linalg.pinv(self.gram_root_, hermitian=True) if self.output == "gram" else X
        return np.asarray(H @ self.components_, dtype=X.dtype)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
