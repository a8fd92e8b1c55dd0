"""The whole pipeline as one classifier: directions, parts, codes, linear SVM."""

from __future__ import annotations

import os
from typing import Any, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from marginparts._types import Array, Callback
from marginparts.backends import Backend
from marginparts.checkpoint import Checkpoint, Logbook
from marginparts.directions import Source
from marginparts.estimators._base import OUTPUTS, check_rows, open_logbook
from marginparts.estimators._classifying import PartlyLabeledClassifier
from marginparts.estimators.nmf_alpha import NMFAlpha
from marginparts.labels import Labels
from marginparts.rows.base import Elsewhere, at_hand
from marginparts.rows.dask import as_dask_rows, lazy_on_dask
from marginparts.rows.disk import RowBlocks, mapped_by_blocks
from marginparts.scores import check_scoring
from marginparts.selection import (
    C_GRID_UNSCALED,
    DIRECTION_GRID_UNSCALED,
    LAM_GRID,
    LAM_GRID_SEVERAL,
    LAM_GRID_UNSCALED,
    Grid,
    Setting,
    choose,
)
from marginparts.solve.factorize import check_init
from marginparts.svm.calibration import ENOUGH, calibrate
from marginparts.svm.class_weights import ClassWeight, check_class_weight
from marginparts.svm.head import fit_head
from marginparts.svm.thresholds import choose_thresholds
from marginparts.validation import (
    DTYPES,
    as_nonnegative,
    check_count,
    check_mass,
    check_nonnegative,
    check_option,
    check_positive,
    check_rank,
    on_the_host,
)

#: How a value of each parameter that may be chosen is checked.
_CHECKS: dict[str, Any] = {
    "lam": check_nonnegative,
    "map_iter": lambda value, name: None if value is None else check_count(value, name),
    "normalize": lambda value, name: bool(value),
    "C": check_positive,
    "direction_C": check_positive,
}


#: The method of the paper, and nothing else; what it tunes is left to cross-validation.
_PAPER: dict[str, Any] = {
    "lam": "auto", "C": "auto", "direction_C": "auto", "map_iter": None, "normalize": False,
    "output": "gram", "thresholds": None, "directions": "svm", "multiclass": "ovo", "scale": False,
    "features": None, "pseudo": None, "init": "random", "solver": "mu", "max_iter": 200,
}  # fmt: skip


def _is_calibrated(estimator: Any) -> bool:
    """Whether there were labels enough for probabilities; if not, say why there are none."""
    if getattr(estimator, "calibration_", None) is not None:
        return True
    check_is_fitted(estimator)
    held_out = estimator.choice_.held_out
    if held_out is None and not estimator.rehearse:
        why = "no labels were hidden and predicted; fit with rehearse=True"
    else:
        n = 0 if held_out is None else len(held_out.rows)
        why = (
            f"{n} labels could be hidden and predicted, and {ENOUGH} with a few of each side are "
            "needed; label more samples"
        )
    raise AttributeError(f"There are no probabilities: {why}.")


class NMFAlphaClassifier(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, PartlyLabeledClassifier
):
    """Learn parts from all samples and the margin of the labeled ones, and classify by them.

    Directions, NMF-alpha, the map Z (eq. 5) and a linear SVM on its unit rows, in one object.
    Binary, multiway and multilabel. What is left at ``"auto"`` is chosen by cross-validation over
    the labeled samples; `NMFAlphaCV` chooses the number of parts as well.

    Parameters
    ----------
    n_components : int
        The number r of parts.
    lam : float or "auto"
        Weight of the margin components.
    C : float or "auto"
        Cost of the final SVM, on codes of length 1 (on average, without ``normalize``).
    map_iter : int, None or "auto"
        Updates of H that map a sample into the parts; None goes on to the optimum.
    output : {"gram", "coefficients"}
        The codes that the SVM sees and `transform` returns: Z (eq. 5), or H.
    normalize : bool or "auto"
        Whether the SVM sees each code with length 1, or all codes scaled alike.
    class_weight : None, "balanced" or dict
        How much the samples of each class count, for the directions and for the final SVM;
        ``"balanced"`` where some classes are rare.
    scoring : {"accuracy", "balanced_accuracy", "f1", "f1_macro", "f1_micro"} or None
        What the choice is to make large. None is the accuracy, or the mean of the micro and the
        macro F-measure where samples have several labels.
    thresholds : "auto" or None
        Where samples have several labels: choose the decision values from which on labels are
        given, on hidden labels; None gives them from 0 on.
    rehearse : bool
        Hide labels and predict them even if nothing is left to choose: probabilities and
        thresholds are learned by that. It costs a factorization a fold.
    directions : {"svm", "perceptron", "averaged-perceptron", "pa", "class"} or callable
        Where the margin components come from, see `margin_directions`.
    multiclass : {"ovr", "ovo"}
        More than two classes: one direction a class, or one a pair as in the paper.
    direction_C : float or "auto"
        Cost of the classifiers that give the directions; ``"auto"`` tries several.
    scale : bool
        Whether lam counts in units of the data's mass, and the classifiers behind the directions
        see rows of length 1 on average; False is the paper's raw coefficients.
    features : {None, "hellinger"}
        What the classifiers behind the directions see: X itself, or the square roots of X in rows
        of length 1, which suits counts and needs no care for units.
    pseudo : {None, "svm", "tsvm"}
        Let the surest unlabeled samples take part in the directions too.
    init : {"auto", "random", "nndsvda", "nndsvdar"} or (H, V)
        ``"auto"`` starts from the labels.
    solver : {"auto", "mu", "mue", "cd"}
    max_iter : int
        Iterations at most, of each candidate as of the final factorization.
    tol : float
        As for `NMFAlpha`.
    backend : {"auto", "numba", "torch", "reference"} or Backend
    random_state : int, RandomState or None
    callback : callable or None
        Called with a `Progress` while candidates are tried (its ``stage`` is ``"choosing"``) and
        during the final factorization; a true answer ends that stage with the best so far.
    checkpoint : path, Checkpoint or None
        Keep the trials of the candidates and the position of the final factorization there, so
        that the same fit goes on after a kill (`Checkpoint`).

    Attributes
    ----------
    parts_ : NMFAlpha
        The fitted factorization; ``parts_.components_`` (r, d) are the parts.
    lam_, C_, map_iter_, normalize_, direction_C_
        What was given or chosen.
    selection_ : dict
        The cross-validation scores of every candidate, ``(n_components, lam, map_iter, normalize,
        C, direction_C)``, one a fold; fewer for those that were dropped as clearly worse. It is the
        score of the model that `fit` makes with these settings and without the labels of the fold,
        before thresholds.
    choice_ : Choice
        The same with what the best candidate said of hidden labels.
    honest_score_ : float
        What a model made in this way is worth on labels that had no part in making it: each fold
        was left out of the choice (thresholds included), and then scored. It holds for samples
        whose classes have the shares of the labeled ones. NaN when the labels were too few.
    honest_score_error_ : float
        Its standard error.
    calibration_ : Calibration or None
        What `predict_proba` uses; None when the labels were too few.
    thresholds_ : (p,) array
        Decision values of the SVMs from which on a label is given; `decision_function` is what
        exceeds them.
    coef_ : (p, r) array
        Hyperplanes over the parts' codes.
    intercept_ : (p,) array
    head_ : Head
        The final SVM: coefficients, intercepts and how codes are scaled.
    n_iter_ : int
    classes_ : array
    n_features_in_ : int

    Examples
    --------
    >>> from marginparts import NMFAlphaClassifier
    >>> from marginparts.datasets import load_digits_49
    >>> digits = load_digits_49()
    >>> y = digits.target.copy()
    >>> y[40:] = -1  # unlabeled
    >>> model = NMFAlphaClassifier(16, random_state=0).fit(digits.data, y)
    >>> model.score(digits.data[40:], digits.target[40:]) > 0.9
    True
    """

    def __init__(
        self,
        n_components: int = 32,
        *,
        lam: float | str = "auto",
        C: float | str = "auto",
        map_iter: int | str | None = "auto",
        normalize: bool | str = "auto",
        output: str = "gram",
        class_weight: ClassWeight = None,
        scoring: str | None = None,
        thresholds: str | None = "auto",
        rehearse: bool = True,
        directions: str | Source = "svm",
        multiclass: str = "ovr",
        direction_C: float | str = 1.0,
        scale: bool = True,
        features: str | None = "hellinger",
        pseudo: str | None = "svm",
        init: Any = "auto",
        solver: str = "auto",
        max_iter: int = 100,
        tol: float = 1e-4,
        backend: str | Backend = "auto",
        random_state: Any = None,
        callback: Callback | None = None,
        checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
    ) -> None:
        self.n_components = n_components
        self.lam = lam
        self.C = C
        self.map_iter = map_iter
        self.normalize = normalize
        self.output = output
        self.class_weight = class_weight
        self.scoring = scoring
        self.thresholds = thresholds
        self.rehearse = rehearse
        self.directions = directions
        self.multiclass = multiclass
        self.direction_C = direction_C
        self.scale = scale
        self.features = features
        self.pseudo = pseudo
        self.init = init
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.backend = backend
        self.random_state = random_state
        self.callback = callback
        self.checkpoint = checkpoint

    @classmethod
    def paper(cls, n_components: Any = 32, **changes: Any) -> Self:
        """Return the classifier exactly as the paper has it, not fitted.

        The SVMs behind the directions see X itself, one for each pair of classes; S is taken in
        its own units; the multiplicative updates (eqs. 15-16) start at random; samples are mapped
        to the optimum and become Z (eq. 5). lam and the costs of all SVMs are tuned over wide
        grids. docs/departures.md lists what the defaults do otherwise.

        Parameters
        ----------
        n_components : int
            For `NMFAlphaCV` also several, or "auto".
        **changes
            Parameters that are to be otherwise after all.

        Examples
        --------
        >>> from marginparts import NMFAlphaClassifier
        >>> NMFAlphaClassifier.paper(16, random_state=0).solver
        'mu'
        """
        return cls(n_components, **{**_PAPER, **changes})

    def fit(self, X: Any, y: Any) -> NMFAlphaClassifier:
        """Choose what is left to choose, find the parts, train the SVM.

        Parameters
        ----------
        X : (n, d) array or sparse matrix, RowBlocks or Dask array
            Nonnegative data, labeled and unlabeled, in memory, on disk (`open_rows`) or on a
            cluster; set ``pseudo=None`` for these two.
        y : (n,) or (n, c) array-like
            Labels, -1, None or NaN for unlabeled; at least two classes.

        Returns
        -------
        NMFAlphaClassifier
            The fitted estimator.
        """
        self._given()  # refuses what cannot be meant before the data is looked at
        check_scoring(self.scoring)
        if self.thresholds is not None:
            check_option(self.thresholds, "thresholds", ("auto",))
        check_option(self.output, "output", OUTPUTS)
        parts = NMFAlpha(
            directions=self.directions, multiclass=self.multiclass, scale=self.scale,
            features=self.features, pseudo=self.pseudo, class_weight=self.class_weight,
            output=self.output, init=self.init, solver=self.solver, max_iter=self.max_iter,
            tol=self.tol, backend=self.backend, callback=self.callback,
        )  # fmt: skip
        parts.check_parameters()
        X = self._check_data(X, reset=True)
        if not isinstance(X, Elsewhere):
            check_mass(X, type(self).__name__)
        labels = self._check_labels(y, X.shape[0])
        check_class_weight(self.class_weight, labels)
        check_scoring(self.scoring, labels)
        grid = self._grid(labels, X.shape)
        for rank in grid.n_components:
            check_init(self.init, X, rank)
        with (
            at_hand(X, max(grid.n_components), self.solver) as X,
            open_logbook(self, X, labels) as logbook,
        ):
            return self._fit_trusted(X, labels, grid, parts, logbook)

    def _fit_trusted(
        self, X: Any, labels: Labels, grid: Grid, parts: NMFAlpha, logbook: Logbook
    ) -> NMFAlphaClassifier:
        """`fit` on checked data and labels: the candidates, and what they are candidates for."""
        seed = logbook.seed
        choice = choose(
            X, labels, grid, parts.recipe(), scoring=self.scoring,
            thresholds=self.thresholds is not None, rehearse=bool(self.rehearse),
            output=self.output, seed=seed, n_splits=self._n_splits(), callback=self.callback,
            logbook=logbook,
        )  # fmt: skip
        self.n_components_, self.lam_, self.map_iter_, self.normalize_ = choice.best[:4]
        self.C_, self.direction_C_ = choice.best[4:]
        self.choice_ = choice
        self.honest_score_, self.honest_score_error_ = choice.honest_score, choice.honest_error
        self.parts_ = parts.set_params(
            n_components=self.n_components_, lam=self.lam_, map_iter=self.map_iter_,
            C=self.direction_C_, random_state=seed,
        )  # fmt: skip
        self.parts_.fit_trusted(X, labels, logbook)
        self.n_iter_ = self.parts_.n_iter_
        known = np.flatnonzero(labels.labeled)
        self.head_ = fit_head(
            self.parts_.codes(X[known]), labels.take(known), self.C_, normalize=self.normalize_,
            class_weight=self.class_weight,
        )  # fmt: skip
        self._learn_from_hidden(labels)
        self.coef_, self.intercept_ = self.head_.coef, self.head_.intercept
        return self

    def _learn_from_hidden(self, labels: Labels) -> None:
        """Learn thresholds and probabilities from what was said of hidden labels.

        The hyperplanes are moved by the thresholds, so that a value above 0 is a yes.
        """
        self.thresholds_: Array = np.zeros(len(self.head_.intercept))
        self.calibration_ = None
        if self.choice_.held_out is None:
            return
        rows, values = self.choice_.held_out
        truth = labels.take(rows)
        if labels.multilabel and self.thresholds is not None:
            self.thresholds_ = choose_thresholds(values, truth, self.scoring)
            moved = self.head_.intercept - self.thresholds_
            self.head_ = self.head_._replace(intercept=moved)
        self.calibration_ = calibrate(values - self.thresholds_, truth)

    def _candidates(self, name: str) -> tuple[Any, ...] | None:
        """Return what is to be tried for a parameter, or None when that is left open."""
        value = getattr(self, name)
        if isinstance(value, str):
            if value != "auto":
                raise ValueError(f"{name}={value!r} is unknown; give a number or 'auto'.")
            return None
        return (self._checked(name, value),)

    def _checked(self, name: str, value: Any) -> Any:
        """Return a value of a parameter, or refuse it."""
        return _CHECKS[name](value, name)

    def _given(self) -> dict[str, Any]:
        """Return the candidates of all parameters but those left open."""
        found = {name: self._candidates(name) for name in _CHECKS}
        return {name: candidates for name, candidates in found.items() if candidates is not None}

    def _grid(self, labels: Labels, shape: tuple[int, int]) -> Grid:
        """Return the candidates, the number of parts among them."""
        return self._filled_grid(labels, (check_rank(self.n_components, shape),))

    def _filled_grid(self, labels: Labels, ranks: tuple[int, ...]) -> Grid:
        """Return the candidates given, and the usual ones for what is left open."""
        usual: dict[str, Any] = {"direction_C": DIRECTION_GRID_UNSCALED}
        if self.scale:
            usual["lam"] = LAM_GRID_SEVERAL if labels.multilabel else LAM_GRID
        else:  # nothing is known of the units
            usual.update(lam=LAM_GRID_UNSCALED, C=C_GRID_UNSCALED)
        return Grid(**{"n_components": ranks, **usual, **self._given()})

    def _n_splits(self) -> int | None:
        """Return the number of folds, None for as many as suit the labels."""
        return None

    def _check_data(self, X: Any, *, reset: bool) -> Any:
        X = as_dask_rows(X)
        if isinstance(X, Elsewhere):
            return check_rows(self, X, reset=reset)
        X = validate_data(
            self, on_the_host(X), accept_sparse="csr", dtype=DTYPES, order="C", reset=reset
        )
        return as_nonnegative(X, type(self).__name__)

    @property
    def selection_(self) -> dict[Setting, list[float]]:
        """The scores of all candidates."""
        return self.choice_.scores

    def __getstate__(self) -> dict[str, Any]:
        """Return the state with plain values only, so that skops can keep it as well as pickle."""
        state = super().__getstate__()
        if "choice_" in state:
            choice = state["choice_"]
            state = {**state, "choice_": choice._replace(scores=list(choice.scores.items()))}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the state back."""
        if "choice_" in state:
            choice = state["choice_"]
            state = {**state, "choice_": choice._replace(scores=dict(choice.scores))}
        super().__setstate__(state)

    @property
    def _n_features_out(self) -> int:
        return int(self.parts_.components_.shape[0])

    @lazy_on_dask
    def transform(self, X: Any, *, out: str | os.PathLike[str] | None = None) -> Array:
        """Return Z (n, r): the samples expressed in the parts, see `NMFAlpha.transform`."""
        check_is_fitted(self)
        X = self._check_data(X, reset=False)
        if out is None and not isinstance(X, RowBlocks):
            return self.parts_.codes(X)
        return mapped_by_blocks(X, self.parts_.codes, self._n_features_out, out)

    def _values(self, X: Any) -> Array:
        X = self._check_data(X, reset=False)
        if isinstance(X, RowBlocks):
            return mapped_by_blocks(X, self._values_of, self._n_features_out)
        return self._values_of(X)

    def _values_of(self, X: Any) -> Array:
        return self.head_.values(self.parts_.codes(X))

    @available_if(_is_calibrated)
    @lazy_on_dask
    def predict_proba(self, X: Any) -> Array:
        """Return calibrated probabilities of the classes.

        Learned on labels that were hidden, so there are none when the labels were too few. The
        most probable class is the predicted one.

        Parameters
        ----------
        X : (n, d) array or sparse matrix

        Returns
        -------
        (n, c) array
            Rows sum to one. For multilabel data each column is a probability of its own, NaN for a
            label with too few examples.
        """
        check_is_fitted(self)
        return self.probabilities(self._values(X))

    def probabilities(self, values: Array) -> Array:
        """`predict_proba` for decision values (n, p)."""
        return np.asarray(self.calibration_.probabilities(values))  # type: ignore[union-attr]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
