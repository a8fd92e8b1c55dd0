"""The classifier that also chooses its number of parts."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from marginparts._types import Callback, Init, Samples, Seed, Targets
from marginparts.backends import Backend
from marginparts.checkpoint import Checkpoint
from marginparts.directions import DualSource
from marginparts.estimators._fitting import fit_classifier
from marginparts.estimators.classifier import NMFAlphaClassifier
from marginparts.selection import Setting, standard_error
from marginparts.svm.class_weights import ClassWeight


class NMFAlphaCV(NMFAlphaClassifier):
    """`NMFAlphaClassifier` with everything chosen by cross-validation, the number of parts too.

    Candidates race: those that are clearly worse after some folds are dropped, and cost nothing
    more. What wins is fitted to all samples.

    Parameters
    ----------
    n_components : int, sequence of int or "auto"
        Numbers of parts to try. ``"auto"`` tries the number of classes (8 at least), its double
        and so on up to 128; where there are teachers it takes 64, or half of the samples or
        columns if these are fewer.
    lam : float, sequence of float or "auto"
        Weights of the margin components to try.
    C : float, sequence of float or "auto"
        Costs of the final SVM to try.
    map_iter : int, None, sequence of these or "auto"
        Numbers of mapping updates to try; None goes on to the optimum.
    normalize : bool, sequence of bool or "auto"
        Whether the SVM sees each code with length 1.
    cv : int, splitter, iterable of (others, hidden) or None
        Folds of the labeled samples; None is 5, or 3 for 200 labels or more and for large data.
        Of folds that are given, the labels of the second rows are hidden; none twice.
    direction_C : float, sequence of float or "auto"
        Costs of the classifiers behind the directions to try.
    output, class_weight, scoring, thresholds, rehearse, scale
        As for `NMFAlphaClassifier`.
    directions, multiclass, features, pseudo, seeds, prior, strength, exclusivity, missing
        As for `NMFAlphaClassifier`.
    alpha_W, alpha_H, l1_ratio, fixed, allowed, consensus, embedded, max_unlabeled
        As for `NMFAlphaClassifier`.
    init, solver, max_iter, tol
        As for `NMFAlphaClassifier`.
    backend, random_state
        As for `NMFAlphaClassifier`.
    callback : callable or None
        As for `NMFAlphaClassifier`; a true answer while candidates are tried ends the search with
        the best so far.
    checkpoint : path, Checkpoint or None
        As for `NMFAlphaClassifier`: trials that are done are not done again.
    verbose : int
        1 shows how the fit goes on, by the logger ``"marginparts"``.

    Attributes
    ----------
    n_components_, lam_, C_, map_iter_, normalize_, direction_C_
        What was chosen.
    best_params_ : dict
        The same, by name.
    best_score_ : float
        Its mean score on hidden labels: accuracy, or the F-measure for multilabel data, or what
        ``scoring`` says. As the best of many, it is too high.
    best_score_error_ : float
        Its standard error.
    honest_score_, honest_score_error_ : float
        As for `NMFAlphaClassifier`: what such a model is worth on labels that had no part in it.
    doubt_ : str or None
        A sentence when the labels are too few to trust the score.
    cv_results_ : dict of arrays
        One entry a candidate: its parameters, ``mean_score``, ``standard_error``, ``n_folds`` and
        ``dropped``; ``pandas.DataFrame(cv_results_)`` is a table.
    parts_, coef_, intercept_, selection_, choice_, calibration_, thresholds_, classes_, filler_
        As for `NMFAlphaClassifier`.
    n_iter_, n_features_in_
        As for `NMFAlphaClassifier`.

    Examples
    --------
    >>> from marginparts import NMFAlphaCV
    >>> from marginparts.datasets import load_digits_49
    >>> digits = load_digits_49()
    >>> y = digits.target.copy()
    >>> y[60:] = -1  # unlabeled
    >>> model = NMFAlphaCV((4, 8), random_state=0).fit(digits.data, y)
    >>> model.n_components_ in (4, 8)
    True
    """

    def __init__(
        self,
        n_components: int | Sequence[int] | str = "auto",
        *,
        lam: float | Sequence[float] | str = "auto",
        C: float | Sequence[float] | str = "auto",
        map_iter: int | Sequence[int | None] | str | None = "auto",
        normalize: bool | Sequence[bool] | str = "auto",
        output: str = "auto",
        class_weight: ClassWeight = None,
        scoring: str | None = None,
        thresholds: str | None = "auto",
        rehearse: bool = True,
        cv: Any = None,
        directions: str | DualSource = "svm",
        multiclass: str = "ovr",
        direction_C: float | Sequence[float] | str = "auto",
        scale: bool = True,
        features: str | None = "hellinger",
        pseudo: str | None = "auto",
        seeds: Mapping[Any, Any] | None = None,
        prior: Any = None,
        strength: float = 1.0,
        exclusivity: float = 0.0,
        alpha_W: float = 0.0,
        alpha_H: float | str = "same",
        l1_ratio: float = 0.0,
        fixed: Any = None,
        allowed: ArrayLike | None = None,
        consensus: int = 0,
        missing: str | None = None,
        embedded: int | str = 0,
        max_unlabeled: int | None = 200_000,
        init: Init = "auto",
        solver: str = "auto",
        max_iter: int = 100,
        tol: float = 1e-4,
        backend: str | Backend = "auto",
        random_state: Seed = None,
        callback: Callback | None = None,
        checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
        verbose: int = 0,
    ) -> None:
        candidates: dict[str, Any] = {
            "n_components": n_components, "lam": lam, "C": C, "map_iter": map_iter,
            "normalize": normalize, "direction_C": direction_C,
        }  # fmt: skip
        super().__init__(
            **candidates, output=output,
            class_weight=class_weight, scoring=scoring, thresholds=thresholds, rehearse=rehearse,
            directions=directions, multiclass=multiclass, scale=scale, features=features,
            pseudo=pseudo, seeds=seeds, prior=prior, strength=strength, exclusivity=exclusivity,
            alpha_W=alpha_W, alpha_H=alpha_H, l1_ratio=l1_ratio, fixed=fixed, allowed=allowed,
            consensus=consensus, missing=missing, embedded=embedded,
            max_unlabeled=max_unlabeled, init=init, solver=solver,
            max_iter=max_iter, tol=tol, backend=backend, random_state=random_state,
            callback=callback, checkpoint=checkpoint, verbose=verbose,
        )  # fmt: skip
        self.cv = cv

    def fit(
        self, X: Samples, y: Targets | None = None, sample_weight: ArrayLike | None = None
    ) -> NMFAlphaCV:
        """Try the candidates on folds of the labeled samples, and fit the best one to all samples.

        Parameters
        ----------
        X, y, sample_weight
            As for `NMFAlphaClassifier.fit`.

        Returns
        -------
        NMFAlphaCV
            The fitted estimator.
        """
        fitted = fit_classifier(self, X, y, sample_weight, several=True, cv=self.cv)
        self._keep(fitted)
        self.best_params_ = self.choice_.best._asdict()
        self.best_score_, self.best_score_error_ = self.choice_.score, self.choice_.error
        self.doubt_ = self.choice_.doubt(fitted.n_labeled)
        self.cv_results_ = _as_columns(self.selection_)
        return self


def _as_columns(scores: dict[Setting, list[float]]) -> dict[str, Any]:
    """Return one array a column, one entry a candidate."""
    most = max(map(len, scores.values()), default=0)
    columns: dict[str, Any] = {
        name: np.array([getattr(setting, name) for setting in scores]) for name in Setting._fields
    }
    columns["mean_score"] = np.array([np.mean(values) for values in scores.values()])
    columns["standard_error"] = np.array([standard_error(values) for values in scores.values()])
    columns["n_folds"] = np.array([len(values) for values in scores.values()])
    columns["dropped"] = columns["n_folds"] < most
    return columns
