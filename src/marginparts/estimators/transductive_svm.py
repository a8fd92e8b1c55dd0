"""The transductive SVM as an estimator."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from marginparts._types import Array, Samples, Seed, Targets
from marginparts.estimators._base import PartlyLabeledClassifier
from marginparts.estimators._inputs import Counted, validated
from marginparts.estimators._repeats import together
from marginparts.svm.class_weights import ClassWeight, check_class_weight
from marginparts.svm.transductive import transductive_weights
from marginparts.validation import (
    check_cost,
    check_positive,
    check_squares,
    seed_of,
)


class TransductiveSVM(PartlyLabeledClassifier):
    """Linear SVM that also learns from the unlabeled samples (Joachims 1999b).

    Binary, one-vs-rest for more classes, one problem a label for multilabel data. The share of
    each class among the unlabeled samples is taken to be its share among the labeled. With
    everything labeled it is an ordinary SVM with the squared hinge.

    Parameters
    ----------
    C : float
        Cost of a labeled sample.
    fit_intercept : bool
        Whether to add a constant feature.
    class_weight : None, "balanced" or dict
        How much the labeled samples of each class cost; ``"balanced"`` where some are rare.
    tol : float
        Tolerance of the SVMs.
    random_state : int, RandomState or None
        Seed of the order in which samples are visited.

    Attributes
    ----------
    coef_ : (p, d) array
    intercept_ : (p,) array
    classes_ : array
    n_features_in_ : int

    Examples
    --------
    >>> from marginparts import TransductiveSVM
    >>> TransductiveSVM().fit([[0.], [1.], [3.], [4.]], [0, -1, -1, 1]).predict([[0.5], [3.5]])
    array([0, 1])
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        fit_intercept: bool = True,
        class_weight: ClassWeight = None,
        tol: float = 1e-2,
        random_state: Seed = None,
    ) -> None:
        self.C = C
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.random_state = random_state

    def fit(
        self, X: Samples, y: Targets, sample_weight: ArrayLike | None = None
    ) -> TransductiveSVM:
        """Train on labeled and unlabeled samples.

        Parameters
        ----------
        X : (n, d) array or sparse matrix
            All samples, of either sign.
        y : (n,) or (n, c) array-like
            Labels, -1, None or NaN for unlabeled. A row without entries in a sparse y is labeled:
            no label applies.
        sample_weight : (n,) array-like or None
            How much each sample costs, labeled or not: weight 2 is a sample given twice, weight 0
            one left out.

        Returns
        -------
        TransductiveSVM
            The fitted estimator.
        """
        C, tol = check_cost(self.C, "C"), check_positive(self.tol, "tol")
        X = validated(self, X, reset=True)
        check_squares(X, type(self).__name__)
        counted = Counted.of(X, y, sample_weight, None)
        X, y, weights, _ = counted
        same = together(X, y, weights) if y is not None and counted.may_repeat else None
        if same is not None:
            X, y, weights = same.data(X), same.labels(y), same.weights
        labels = replace(self._check_labels(y, X.shape[0]), weights=weights)
        check_class_weight(self.class_weight, labels)
        seen = sp.csr_array(X)
        if self.fit_intercept:
            seen = sp.hstack([seen, np.ones((X.shape[0], 1))], format="csr")
        W = transductive_weights(
            seen, labels, C, class_weight=self.class_weight, tol=tol,
            seed=seed_of(self.random_state),
        )  # fmt: skip
        d = X.shape[1]
        self.coef_ = W[:, :d]
        self.intercept_ = W[:, d] if self.fit_intercept else np.zeros(len(W))
        for k, task in enumerate(labels.tasks("ovr")):
            if len(task.signs) and np.all(task.signs == 1):
                self.intercept_[k] = 1.0  # a label that every sample has is always predicted
        return self

    def _values(self, X: Samples) -> Array:
        X = validated(self, X, reset=False)
        return np.asarray(X @ self.coef_.T) + self.intercept_
