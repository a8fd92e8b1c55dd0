"""What the two classifiers share: from decision values to labels, and an honest score."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, check_is_fitted

from marginparts._types import Array
from marginparts.labels import Labels, encode_labels
from marginparts.rows.base import Elsewhere
from marginparts.rows.dask import as_dask_rows, lazy_on_dask


class PartlyLabeledClassifier(ClassifierMixin, BaseEstimator):
    """A classifier with one decision value a class (one in all for two classes)."""

    classes_: NDArray[Any]
    multilabel_: bool

    def _check_labels(self, y: Any, n: int) -> Labels:
        """Return the labels; refuse them when there is nothing to tell apart."""
        name = type(self).__name__
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

    def _values(self, X: Any) -> Array:
        """Return decision values (n, p) for data as the user gives it, p = 1 for two classes."""
        raise NotImplementedError

    @lazy_on_dask
    def decision_function(self, X: Any) -> Array:
        """Return signed distances to the hyperplanes, times the length of their normals.

        Parameters
        ----------
        X : (n, d) array or sparse matrix

        Returns
        -------
        (n,) array for two classes, else (n, c)
        """
        check_is_fitted(self)
        values = self._values(X)
        return values if self.multilabel_ or len(self.classes_) > 2 else values[:, 0]

    @lazy_on_dask
    def predict(self, X: Any) -> NDArray[Any]:
        """Predict labels.

        Parameters
        ----------
        X : (n, d) array or sparse matrix

        Returns
        -------
        (n,) array, or (n, c) indicator for multilabel data
        """
        values = self.decision_function(X)
        if self.multilabel_:
            return (values > 0).astype(np.int64)
        if values.ndim == 1:
            return np.asarray(self.classes_[(values > 0).astype(np.intp)])
        return np.asarray(self.classes_[values.argmax(axis=1)])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy on the labeled rows of y; unlabeled ones are ignored.

        For multilabel data a row counts as right when all its labels are, and rows with an unknown
        entry are ignored. The columns of a DataFrame are put into the order of `classes_` by their
        names; an array's are taken as they come.
        """
        check_is_fitted(self)
        labels = encode_labels(y, _num_samples(X), classes=self.classes_)
        self._check_form(labels)
        known = labels.complete
        if not known.any():
            raise ValueError("score needs labeled samples, and y has none.")
        truth = labels.codes[known] if labels.multilabel else labels.classes[labels.codes[known]]
        weight = None if sample_weight is None else np.asarray(sample_weight)[known]
        if isinstance(as_dask_rows(X), Elsewhere):
            predicted = np.asarray(self.predict(X))[known]
        else:
            predicted = self.predict(_safe_indexing(X, np.flatnonzero(known)))
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
