"""Splitting and wrapping for partly labeled data.

scikit-learn's own splitters put unlabeled rows into test folds and take -1 for a class, and its
estimators train on them. Both go wrong without a word; these two do not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_method_params, _num_samples, check_is_fitted

from marginparts._types import Samples, Seed, Targets
from marginparts.labels import Labels, are_numbers, encode_labels
from marginparts.validation import seed_of

#: The methods of a wrapped estimator that are passed on, with what is given for them.
_PASSED_ON = ("fit", "predict", "predict_proba", "decision_function", "transform", "score")


class LabeledKFold:
    """Folds over the labeled rows; the unlabeled rows are in every training part.

    Stratified by class, except for multilabel data.

    Parameters
    ----------
    n_splits : int
        The number of folds.
    shuffle : bool
        Whether labeled rows are dealt to folds at random, and not in their order.
    random_state : int, RandomState or None
        Seed of that, with ``shuffle``.

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
        self, n_splits: int = 5, *, shuffle: bool = False, random_state: Seed = None
    ) -> None:
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state

    def get_n_splits(self, X: object = None, y: object = None, groups: object = None) -> int:
        """Return the number of folds."""
        return self.n_splits

    def split(
        self, X: Samples, y: Targets, groups: object = None
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Yield the rows of each training and test part.

        Parameters
        ----------
        X : array-like of n rows
            Not used.
        y : (n,) or (n, c) array-like
            Labels, -1, None or NaN for unlabeled. A row without entries in a sparse y is labeled:
            no label applies.
        groups : None
            Not used; there for scikit-learn.

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
        seed = self.random_state
        if isinstance(seed, Integral):
            seed = seed_of(seed)
        folds = folds(self.n_splits, shuffle=self.shuffle, random_state=seed)
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
        Its classes, if it has any; the column names of a multilabel DataFrame.
    feature_names_in_ : array
        The columns of X, if the estimator keeps them.

    Notes
    -----
    Metadata is routed as by scikit-learn's own wrappers: with
    ``sklearn.set_config(enable_metadata_routing=True)`` the estimator gets what it has asked for,
    without it all that is given. What has one entry a sample, such as ``sample_weight``, is cut
    down to the labeled rows with them.

    Examples
    --------
    >>> from sklearn.svm import LinearSVC
    >>> model = LabeledOnly(LinearSVC()).fit([[0.], [1.], [9.]], ["low", "high", None])
    >>> model.predict([[2.]])
    array(['high'], dtype='<U4')
    """

    def __init__(self, estimator: BaseEstimator) -> None:
        self.estimator = estimator

    def fit(self, X: Samples, y: Targets, **fit_params: Any) -> LabeledOnly:
        """Fit on the rows whose labels are all known.

        Parameters
        ----------
        X : array-like of n rows
        y : (n,) or (n, c) array-like
            Labels, -1, None or NaN for unlabeled. A row without entries in a sparse y is labeled:
            no label applies.
        **fit_params
            Passed on; what has one entry a sample is cut down to the labeled ones.

        Returns
        -------
        LabeledOnly
            The fitted estimator.
        """
        labels = encode_labels(y, _num_samples(X))
        rows, known = _known(labels)
        params = self._routed("fit", fit_params, X, rows)
        self.estimator_ = clone(self.estimator).fit(_safe_indexing(X, rows), known, **params)
        self.label_names_ = labels.classes if labels.multilabel else None
        return self

    @property
    def classes_(self) -> Any:
        """Classes of the fitted estimator, or the column names of a multilabel DataFrame."""
        names = self.label_names_
        return self.estimator_.classes_ if names is None or are_numbers(names) else names

    @property
    def n_features_in_(self) -> int:
        """Number of features seen in the fit."""
        return int(self.estimator_.n_features_in_)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of the features seen in the fit."""
        return np.asarray(self.estimator_.feature_names_in_)

    @available_if(_inner_has("predict"))
    def predict(self, X: Samples, **params: Any) -> Any:
        """Predict with the fitted estimator."""
        return self._call("predict", X, params)

    @available_if(_inner_has("predict_proba"))
    def predict_proba(self, X: Samples, **params: Any) -> Any:
        """Return the fitted estimator's probabilities."""
        return self._call("predict_proba", X, params)

    @available_if(_inner_has("decision_function"))
    def decision_function(self, X: Samples, **params: Any) -> Any:
        """Return the fitted estimator's decision values."""
        return self._call("decision_function", X, params)

    @available_if(_inner_has("transform"))
    def transform(self, X: Samples, **params: Any) -> Any:
        """Transform with the fitted estimator."""
        return self._call("transform", X, params)

    @available_if(_inner_has("score"))
    def score(self, X: Samples, y: Targets, **score_params: Any) -> float:
        """Score on the labeled rows; unlabeled ones are ignored.

        Parameters
        ----------
        X : array-like of n rows
        y : (n,) or (n, c) array-like
            As in `fit`. The columns of a multilabel DataFrame are put into the order of the fit by
            their names.
        **score_params
            As in `fit`, for instance ``sample_weight``.

        Returns
        -------
        float
        """
        check_is_fitted(self)
        classes = self.label_names_
        if classes is None:
            classes = getattr(self.estimator_, "classes_", None)
        labels = encode_labels(y, _num_samples(X), classes=classes)
        rows, known = _known(labels)
        params = self._routed("score", score_params, X, rows)
        return float(self.estimator_.score(_safe_indexing(X, rows), known, **params))

    def _call(self, method: str, X: Samples, params: dict[str, Any]) -> Any:
        check_is_fitted(self)
        return getattr(self.estimator_, method)(X, **self._routed(method, params))

    def _routed(
        self,
        method: str,
        params: dict[str, Any],
        X: Samples | None = None,
        rows: NDArray[np.intp] | None = None,
    ) -> dict[str, Any]:
        """Return what the estimator's method gets, cut down to some rows of X."""
        if get_config()["enable_metadata_routing"]:
            params = process_routing(self, method, **params)["estimator"][method]
        return params if rows is None else _check_method_params(X, params, indices=rows)

    def get_metadata_routing(self) -> MetadataRouter:
        """Say to whom metadata goes, see scikit-learn's guide to metadata routing."""
        mapping = MethodMapping()
        for method in _PASSED_ON:
            mapping.add(caller=method, callee=method)
        router = MetadataRouter(owner=type(self).__name__)
        return router.add(estimator=self.estimator, method_mapping=mapping)

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        for what in ("classifier", "regressor", "transformer", "input", "target"):
            setattr(tags, f"{what}_tags", getattr(inner, f"{what}_tags"))
        return tags


def _known(labels: Labels) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """Return the rows whose labels are all known, and these labels with their own values."""
    rows = np.flatnonzero(labels.complete)
    if not len(rows):
        raise ValueError("There are no labeled samples in y; label at least two.")
    codes = labels.codes[rows]
    return rows, codes if labels.multilabel else labels.classes[codes]
