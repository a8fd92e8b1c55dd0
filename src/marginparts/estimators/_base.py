"""What estimators share: the map into parts, and prediction."""

from __future__ import annotations

import os
from copy import copy
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.metrics import accuracy_score
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, check_array, check_is_fitted

from marginparts._types import Array, Data, Result, Samples, Stop, Targets
from marginparts.backends import Backend
from marginparts.estimators._inputs import check_data
from marginparts.estimators._notebook import ShowsParts
from marginparts.labels import UNKNOWN, Labels, encode_labels
from marginparts.recipe import blocks_of
from marginparts.rows.base import Elsewhere, OutOfCore
from marginparts.rows.dask import mapped_lazily
from marginparts.rows.disk import RowBlocks, mapped_by_blocks
from marginparts.seeds import Seeds, with_classes
from marginparts.solve.factorize import parts_of
from marginparts.solve.map import gram_root, mixed_codes, projection
from marginparts.svm.head import Head
from marginparts.validation import DTYPES, check_weights, is_dask
from marginparts.weighting import usual_weights

#: Rows elsewhere that are read to weigh the columns.
_ENOUGH_ROWS = 20_000


def _first_rows(X: OutOfCore) -> Data:
    """Return as many of the first rows as are needed and fit into memory."""
    count = min(X.shape[0], _ENOUGH_ROWS)
    while count > 1 and not X.fits(np.arange(count)):
        count //= 2
    return X[np.arange(count)]


class CarriesParts(BaseEstimator):
    """An estimator with parts of others, maybe fitted ones: no part of it, but what it learns from.

    These are ``prior`` and ``fixed``.
    """

    prior: Any
    fixed: Any

    def __sklearn_clone__(self) -> Any:
        """Return a clone with these as they are: an estimator among them would lose its fit."""
        bare = copy(self)
        bare.prior = bare.fixed = None
        again = super(CarriesParts, bare).__sklearn_clone__()
        return again.set_params(prior=self.prior, fixed=self.fixed)


class PartsTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ShowsParts):
    """A fitted basis V, and the maps into it and back."""

    # set by the constructors of the subclasses
    n_components: int
    map_iter: int | None
    output: str
    backend: str | Backend

    def _check_data(self, X: Samples, *, reset: bool) -> Data | Elsewhere:
        return check_data(self, X, reset=reset)

    def _keep(self, result: Result, fixed: Array | None = None) -> None:
        """Keep what a run found, with parts that sum to one but those that were fixed."""
        self.components_ = parts_of(result.V, fixed)
        self.n_components_ = len(self.components_)
        self.loss_curve_ = np.array(result.losses)
        self.n_iter_ = result.n_iter
        self.stop_ = result.stop
        self.solver_ = result.solver
        self.history_ = result.history
        self.gram_root_ = gram_root(self.components_.T)

    def _forget(self, *names: str) -> None:
        """Leave nothing of an earlier fit that this one may not have."""
        for name in names:
            self.__dict__.pop(name, None)

    def _keep_projection(self, X: Data | OutOfCore) -> None:
        """Keep the weights of the columns and the map onto the parts, where the codes need them."""
        self._forget("column_weights_", "projection_")
        if self.output in ("projection", "mixed"):
            self._project(usual_weights(_first_rows(X) if isinstance(X, OutOfCore) else X))

    def _project(self, weights: Array | None) -> None:
        self.column_weights_ = weights
        self.projection_ = projection(self.components_.T, weights)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state with plain values only, so that skops can keep it as well as pickle."""
        state = super().__getstate__()
        return {**state, "stop_": state["stop_"].name} if "stop_" in state else state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the state back."""
        if "stop_" in state:
            state = {**state, "stop_": Stop[state["stop_"]]}
        super().__setstate__(state)

    def _coefficients(self, X: Data) -> Array:
        """Return H (n, r) for trusted data: how much of each part a sample has."""
        raise NotImplementedError

    def _codes(self, X: Data, **known: Any) -> Array:
        """`transform` on trusted data in memory; ``known`` is for `_coefficients`."""
        if self.output == "projection":
            return np.asarray(X @ self.projection_, dtype=X.dtype)
        H = self._coefficients(X, **known)
        if self.output == "mixed":
            return np.asarray(mixed_codes(X @ self.projection_, H), dtype=X.dtype)
        Z = H @ self.gram_root_ if self.output == "gram" else H
        return np.asarray(Z, dtype=X.dtype)

    def _transformed(self, X: Data) -> Array:
        """`transform` on a block, without scikit-learn's wrapper that may make a DataFrame."""
        return self._codes(self._check_data(X, reset=False))

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0]) * (2 if self.output == "mixed" else 1)

    def transform(self, X: Samples, *, out: str | os.PathLike[str] | None = None) -> Array:
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
            Z (eq. 5) with ``output="gram"``, H with ``output="coefficients"``, the weighted row in
            a basis of the parts' span with ``output="projection"``; with ``output="mixed"`` (n, 2r)
            that, of length 1, beside the roots of the parts' shares. A row depends on its own
            sample alone. With ``out`` it is a memory map of that file.
        """
        if is_dask(X):
            return mapped_lazily(self._transformed, X, out)
        check_is_fitted(self)
        X = self._check_data(X, reset=False)
        if out is None and not isinstance(X, RowBlocks):
            return self._codes(X)
        return mapped_by_blocks(X, self._codes, self._n_features_out, out)

    def fit_transform(self, X: Samples, y: Targets | None = None, **fit_params: Any) -> Array:
        """Fit and map the same samples, exactly as ``fit(X, y, **fit_params).transform(X)``."""
        return self.fit(X, y, **fit_params).transform(X)

    def inverse_transform(self, X: Samples) -> Array:
        """Rebuild samples from their codes.

        Parameters
        ----------
        X : (n, r) array
            What `transform` returns; Z is turned back into H by the pseudo-inverse, and a
            projection into the point of the parts' span that it stands for. Mixed codes have lost
            the size of a sample and cannot be turned back.

        Returns
        -------
        (n, d) array
        """
        check_is_fitted(self)
        X = check_array(X, dtype=DTYPES)
        if X.shape[1] != self._n_features_out:
            raise ValueError(f"X has {X.shape[1]} columns, expected {self._n_features_out}.")
        if self.output == "mixed":
            raise ValueError(
                'Codes with output="mixed" have lost the size of the samples, so these cannot be '
                "rebuilt; use another output."
            )
        H = X
        if self.output == "gram":
            H = X @ np.linalg.pinv(self.gram_root_, hermitian=True)
        elif self.output == "projection":
            H = X @ np.linalg.pinv(self.components_ @ self.projection_)
        return np.asarray(H @ self.components_, dtype=X.dtype)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class PartlyLabeledClassifier(ClassifierMixin, BaseEstimator):
    """A classifier with one decision value a class (one in all for two classes)."""

    classes_: NDArray[Any]
    multilabel_: bool

    def _check_labels(self, y: Targets | None, n: int, seeds: Seeds | None = None) -> Labels:
        """Return the labels; refuse them when there is nothing to tell apart.

        With seeds, which name classes, none need be known.
        """
        name = type(self).__name__
        if seeds is not None:
            none = np.full(n, UNKNOWN)
            labels = with_classes(encode_labels(none if y is None else y, n), seeds.classes)
            self.classes_, self.multilabel_ = labels.classes, labels.multilabel
            return labels
        if y is None:
            raise ValueError(
                f"{name} requires y to be passed, but the target y is None; "
                "give labels, with -1, None or NaN for unlabeled samples."
            )
        labels = encode_labels(y, n)
        if not labels.labeled.any():
            raise ValueError(f"{name} needs labeled samples, and y has none; label at least two.")
        if not labels.multilabel and len(labels.classes) < 2:
            raise ValueError(
                f"{name} needs labeled samples of at least two classes, and y has one class only: "
                f"{labels.classes[0]}."
            )
        self.classes_ = labels.classes
        self.multilabel_ = labels.multilabel
        return labels

    def _values(self, X: Samples) -> Array:
        """Return decision values (n, p) for data as the user gives it, p = 1 for two classes."""
        raise NotImplementedError

    def decision_function(self, X: Samples) -> Array:
        """Return signed distances to the hyperplanes, times the length of their normals.

        Parameters
        ----------
        X : (n, d) array or sparse matrix

        Returns
        -------
        (n,) array for two classes, else (n, c)
        """
        if is_dask(X):
            return mapped_lazily(self.decision_function, X)
        check_is_fitted(self)
        values = self._values(X)
        return values if self.multilabel_ or len(self.classes_) > 2 else values[:, 0]

    def predict(self, X: Samples) -> NDArray[Any]:
        """Predict labels.

        Parameters
        ----------
        X : (n, d) array or sparse matrix

        Returns
        -------
        (n,) array, or (n, c) indicator for multilabel data
        """
        if is_dask(X):
            return mapped_lazily(self.predict, X)
        check_is_fitted(self)
        values = self._values(X)
        if self.multilabel_:
            return (values > 0).astype(np.int64)
        if len(self.classes_) > 2:
            return np.asarray(self.classes_[values.argmax(axis=1)])
        return np.asarray(self.classes_[(values[:, 0] > 0).astype(np.intp)])

    def score(self, X: Samples, y: Targets, sample_weight: ArrayLike | None = None) -> float:
        """Return the accuracy on the labeled rows of y; unlabeled ones are ignored.

        For multilabel data a row counts as right when all its labels are, and rows with an unknown
        entry are ignored. The columns of a DataFrame are put into the order of `classes_` by their
        names; an array's are taken as they come. With ``sample_weight`` (n,) it is the share of the
        labeled rows' weight that is right.
        """
        check_is_fitted(self)
        labels = encode_labels(y, _num_samples(X), classes=self.classes_)
        self._check_form(labels)
        known = labels.complete
        if not known.any():
            raise ValueError("score needs labeled samples, and y has none.")
        truth = labels.codes[known] if labels.multilabel else labels.classes[labels.codes[known]]
        weight = None
        if sample_weight is not None:
            weight = check_weights(sample_weight, "sample_weight", len(known))[known]
            if not weight.any():
                raise ValueError("score needs labeled samples, and all of them have weight 0.")
        if is_dask(X) or isinstance(X, Elsewhere):
            predicted = np.asarray(self.predict(X))[known]
        else:
            rows: Any = sp.csr_array(X) if sp.issparse(X) else X  # not all formats have rows
            predicted = self.predict(_safe_indexing(rows, np.flatnonzero(known)))
        return float(accuracy_score(truth, predicted, sample_weight=weight))

    def _check_form(self, labels: Labels) -> None:
        """Refuse labels of another form than those of the fit."""
        form = f"an indicator with {len(self.classes_)} columns" if self.multilabel_ else "a 1d y"
        same = labels.multilabel == self.multilabel_
        if not same or (self.multilabel_ and labels.codes.shape[1] != len(self.classes_)):
            raise ValueError(
                f"y has shape {labels.codes.shape}, but the fit had {form}; keep to that."
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        return tags


class PartsClassifier(ClassNamePrefixFeaturesOutMixin, TransformerMixin, PartlyLabeledClassifier):
    """A classifier on the codes of fitted parts, which it also shows."""

    # set by `fit`
    parts_: Any
    head_: Head

    @property
    def _n_features_out(self) -> int:
        return int(self.parts_.components_.shape[0])

    @property
    def reconstruction_err_(self) -> float:
        """That of the parts, see `NMFAlpha`."""
        return float(self.parts_.reconstruction_err_)

    def _shown_codes(self, X: Data) -> Array:
        """Return a column a part: of mixed codes the projection."""
        return self.parts_._codes(self._without_embedding(X))[:, : self._n_features_out]

    def _without_embedding(self, X: Data) -> Data:
        return X[:, : self.parts_.n_features_in_]

    def _codes(self, X: Data) -> Array:
        """Return what the SVM sees of trusted rows."""
        beside = getattr(self, "embedding_parts_", None)
        if beside is None:
            return self.parts_._codes(X)
        words, vectors = blocks_of(X, beside.n_features_in_)
        return np.hstack([self.parts_._codes(words), beside._codes(vectors)])

    def transform(self, X: Samples, *, out: str | os.PathLike[str] | None = None) -> Array:
        """Return the samples expressed in the parts (n, r), see `NMFAlpha.transform`.

        Of mixed codes it is the projection; ``parts_.transform`` gives all that the SVM sees. Where
        an embedding stands beside other columns, it is these others in `parts_`, which take no
        more; ``embedding_parts_.transform`` takes the embedding.
        """
        if is_dask(X):
            return mapped_lazily(self._transformed, X, out)
        check_is_fitted(self)
        X = self._whole(X)
        if out is None and not isinstance(X, RowBlocks):
            return self._shown_codes(X)
        return mapped_by_blocks(X, self._shown_codes, self._n_features_out, out)

    def inverse_transform(self, X: Samples) -> Array:
        """Rebuild samples (n, d) from what `transform` returns, see `NMFAlpha.inverse_transform`.

        They have the columns of `parts_`, so none of an embedding that stands beside others.
        Mixed codes have lost the size of a sample: what is rebuilt of them has a size of its own.
        """
        check_is_fitted(self)
        parts = copy(self.parts_)
        parts.output = "projection" if parts.output == "mixed" else parts.output
        return parts.inverse_transform(X)

    def _transformed(self, X: Data) -> Array:
        """`transform` on a block, without scikit-learn's wrapper that may make a DataFrame."""
        return self._shown_codes(self._whole(X))

    def _whole(self, X: Samples) -> Any:
        """Return X as trusted data, with its gaps filled."""
        X = check_data(self, X, reset=False)
        filler = getattr(self, "filler_", None)  # which old files do not have
        return X if filler is None or isinstance(X, Elsewhere) else filler.fill(X)

    def _values(self, X: Samples) -> Array:
        X = self._whole(X)
        if isinstance(X, RowBlocks):
            return mapped_by_blocks(
                X, lambda x: self.head_.values(self._codes(x)), self._n_features_out
            )
        return self.head_.values(self._codes(X))
