"""Splitting and wrapping for partly labeled data.

scikit-learn's own splitters put unlabeled rows into test folds and take -1 for a class, and its
estimators train on them. Both go wrong without a word; these two do not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_method_params, _num_samples, check_is_fitted

from marginparts.labels import encode_labels


class LabeledKFold:
    """Folds over the labeled rows; the unlabeled rows are in every training part.

    Stratified by class, except for multilabel data.

    Parameters
    ----------
    n_splits : int
    shuffle : bool
    random_state : int, RandomState or None

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([0, 1, -1, 0, 1, -1])
    >>> for train, test in LabeledKFold(2).split(y, y):
    ...     print(train, test)
    [2 3 4 5] [0 1]
    [0 1 2 5] [3 4]
    """

    def __init__(
        self, n_splits: int = 5, *, shuffle: bool = False, random_state: Any = None
    ) -> None:
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds."""
        return self.n_splits

    def split(
        self, X: Any, y: Any, groups: Any = None
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Yield the rows of each training and test part.

        Parameters
        ----------
        X : array-like of n rows
            Not looked at.
        y : (n,) or (n, c) array-like
            Labels, -1, None or NaN for unlabeled.
        groups : ignored

        Yields
        ------
        train, test : int arrays
        """
        labels = encode_labels(y)
        rows = np.flatnonzero(labels.labeled)
        if len(rows) < self.n_splits:
            raise ValueError(
                f"There are {len(rows)} labeled samples and {self.n_splits} folds; "
                "use fewer folds or label more samples."
            )
        folds: Any = KFold if labels.multilabel else StratifiedKFold
        folds = folds(self.n_splits, shuffle=self.shuffle, random_state=self.random_state)
        for _, test in folds.split(rows, labels.codes[rows]):
            hidden = rows[test]
            yield np.setdiff1d(np.arange(len(labels.codes)), hidden), hidden


def _inner_has(name: str) -> Callable[[Any], bool]:
    """Whether the wrapped estimator has a method."""

    def check(self: Any) -> bool:
        getattr(getattr(self, "estimator_", self.estimator), name)
        return True

    return check


class LabeledOnly(MetaEstimatorMixin, BaseEstimator):
    """Fit an estimator on the labeled rows alone; use it on any.

    Parameters
    ----------
    estimator : estimator
        For instance ``LinearSVC()`` at the end of ``Pipeline(NMFAlpha(), LabeledOnly(...))``.

    Attributes
    ----------
    estimator_ : estimator
        The fitted estimator.
    classes_ : array
        Its classes, if it has any.

    Examples
    --------
    >>> from sklearn.svm import LinearSVC
    >>> model = LabeledOnly(LinearSVC()).fit([[0.], [1.], [9.]], ["low", "high", None])
    >>> model.predict([[2.]])
    array(['high'], dtype='<U4')
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: Any, **fit_params: Any) -> LabeledOnly:
        """Fit on the rows whose labels are all known.

        Parameters
        ----------
        X : array-like of n rows
        y : (n,) or (n, c) array-like
            Labels, -1, None or NaN for unlabeled.
        **fit_params
            Passed on; what has one entry a sample is cut down to the labeled ones.

        Returns
        -------
        LabeledOnly
            The fitted estimator.
        """
        rows, known = _labeled_rows(X, y)
        fit_params = _check_method_params(X, fit_params, indices=rows)
        self.estimator_ = clone(self.estimator).fit(_safe_indexing(X, rows), known, **fit_params)
        return self

    @property
    def classes_(self) -> Any:
        """Classes of the fitted estimator."""
        return self.estimator_.classes_

    @property
    def n_features_in_(self) -> int:
        """Number of features seen in the fit."""
        return int(self.estimator_.n_features_in_)

    @available_if(_inner_has("predict"))
    def predict(self, X: Any) -> Any:
        """Predict with the fitted estimator."""
        return self._call("predict", X)

    @available_if(_inner_has("predict_proba"))
    def predict_proba(self, X: Any) -> Any:
        """Return the fitted estimator's probabilities."""
        return self._call("predict_proba", X)

    @available_if(_inner_has("decision_function"))
    def decision_function(self, X: Any) -> Any:
        """Return the fitted estimator's decision values."""
        return self._call("decision_function", X)

    @available_if(_inner_has("transform"))
    def transform(self, X: Any) -> Any:
        """Transform with the fitted estimator."""
        return self._call("transform", X)

    @available_if(_inner_has("score"))
    def score(self, X: Any, y: Any) -> float:
        """Score on the labeled rows; unlabeled ones are ignored."""
        check_is_fitted(self)
        classes = getattr(self.estimator_, "classes_", None)
        rows, known = _labeled_rows(X, y, classes)
        return float(self.estimator_.score(_safe_indexing(X, rows), known))

    def _call(self, method: str, X: Any) -> Any:
        check_is_fitted(self)
        return getattr(self.estimator_, method)(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags = inner.classifier_tags
        tags.regressor_tags = inner.regressor_tags
        tags.transformer_tags = inner.transformer_tags
        tags.input_tags = inner.input_tags
        tags.target_tags = inner.target_tags
        return tags


def _labeled_rows(X: Any, y: Any, classes: Any = None) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """Return the rows whose labels are known, and those labels with their own values."""
    labels = encode_labels(y, _num_samples(X), classes=classes)
    rows = np.flatnonzero(labels.complete)
    if not len(rows):
        raise ValueError("There are no labeled samples in y; label at least two.")
    codes = labels.codes[rows]
    return rows, codes if labels.multilabel else labels.classes[codes]
