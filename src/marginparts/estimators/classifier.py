"""The whole pipeline as one classifier: directions, parts, codes, linear SVM."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from marginparts._types import Array, Callback, Init, Samples, Seed, Targets
from marginparts.backends import Backend
from marginparts.checkpoint import Checkpoint
from marginparts.directions import DualSource
from marginparts.estimators._base import CarriesParts, PartsClassifier
from marginparts.estimators._fitting import Fitted, fit_classifier, is_calibrated
from marginparts.estimators._notebook import ShowsParts
from marginparts.rows.dask import mapped_lazily
from marginparts.selection import Setting
from marginparts.svm.class_weights import ClassWeight
from marginparts.validation import is_dask

#: The method of the paper, and nothing else; what it tunes is left to cross-validation.
_PAPER: dict[str, Any] = {
    "lam": "auto", "C": "auto", "direction_C": "auto", "map_iter": None, "normalize": False,
    "output": "gram", "thresholds": None, "directions": "svm", "multiclass": "ovo", "scale": False,
    "features": None, "pseudo": None, "init": "random", "solver": "mu", "max_iter": 200,
    "max_unlabeled": None,
}  # fmt: skip


class NMFAlphaClassifier(CarriesParts, PartsClassifier, ShowsParts):
    """Learn parts from all samples and the margin of the labeled ones, and classify by them.

    Directions, NMF-alpha, the map Z (eq. 5) and a linear SVM on its unit rows, in one object.
    Binary, multiway and multilabel. What is left at ``"auto"`` is chosen by cross-validation over
    the labeled samples; `NMFAlphaCV` chooses the number of parts as well.

    Parameters
    ----------
    n_components : int or "auto"
        The number r of parts; ``"auto"`` is 64, and up to 128 for dense data with 2,000 labels.
    lam : float or "auto"
        Weight of the margin components against the data, 0 or larger.
    C : float or "auto"
        Cost of the final SVM, on codes of length 1 (on average, without ``normalize``).
    map_iter : int, None or "auto"
        Updates of H that map a sample into the parts; None goes on to the optimum.
    output : {"auto", "gram", "coefficients", "projection", "mixed"}
        The codes that the SVM sees: Z (eq. 5), H, the projection onto the parts, or (2r columns)
        the projection beside the square roots of the parts' shares. ``"auto"`` is ``"mixed"``, or
        ``"gram"`` without teachers. ``"mixed"`` does not see the size of a sample; where the size
        matters, use ``"projection"`` without ``normalize``.
    normalize : bool or "auto"
        Whether each code is scaled to length 1 for the SVM, or all codes by one number.
    class_weight : None, "balanced" or dict
        How much the samples of each class count, for the final SVM and for directions that know a
        cost (see `margin_directions`). ``"balanced"`` lets rare classes count as much as frequent
        ones; None weighs all samples alike.
    scoring : {"accuracy", "balanced_accuracy", "f1", "f1_macro", "f1_micro"} or None
        The score by which candidates are compared. None is the accuracy, or the mean of the micro
        and the macro F-measure where samples have several labels.
    thresholds : "auto" or None
        Where samples have several labels: the decision values above which a label is given.
        ``"auto"`` chooses them on hidden labels, None is 0.
    rehearse : bool
        Hide labels and predict them even if nothing is left to choose: probabilities, thresholds
        and the honest score come from that. It costs one factorization for each fold.
    directions : {"svm", "perceptron", "averaged-perceptron", "pa", "cw", "arow", "class"}, callable
        Where the margin components come from, see `margin_directions`.
    multiclass : {"ovr", "ovo"}
        More than two classes: one classifier for each class, or one for each pair as in the paper.
    direction_C : float or "auto"
        Cost of the classifiers that give the directions; ``"auto"`` is 1, and chosen where there
        are some hundreds of labels or ``scale`` is False.
    scale : bool
        Whether lam counts in units of the data's mass, and the classifiers behind the directions
        see rows of length 1 on average; False is the paper's raw coefficients.
    features : {None, "hellinger"}
        What the classifiers behind the directions see: X itself, or the square roots of X in rows
        of length 1, which suits counts and does not depend on units.
    pseudo : {"auto", "teachers", None, "svm", "tsvm"}
        Guess the labels of unlabeled samples and learn from them too. With ``"teachers"`` several
        classifiers guess, weighed by how well they predict hidden labels
        (`marginparts.teaching`); the directions and the final SVM then learn from all samples, and
        each parameter at ``"auto"`` takes one value that is good on average; only ``C`` and
        ``direction_C`` are chosen, where there are some hundreds of labels. With ``"svm"`` and
        ``"tsvm"`` one classifier guesses, and the half it is surest of takes part in the
        directions. None guesses nothing. ``"auto"`` is ``"teachers"``, also with all labels known,
        except in three cases: more than 20,000 labeled samples; several labels and more than 8
        million entries of them; all labels known and fewer than 16 columns. Then it is ``"svm"``,
        or None for data on disk or on a cluster.
    seeds : dict or None
        Words that indicate a class, ``{"hockey": ["nhl", "puck"], ...}``, or each with a strength,
        ``{"hockey": {"nhl": 2.0, "inning": -1.0}, ...}``: 1 is usual, a negative one is evidence
        against it. They are names of a DataFrame's columns, or numbers of columns; see
        `seed_columns` for a matrix. Labels take precedence over seeds. No label is needed, but
        without any there is no score; samples with several labels need some.
    prior, strength, exclusivity, alpha_W, alpha_H, l1_ratio, fixed, allowed
        Parts of another fit to stay near, penalties and constraints, as for `NMFAlpha`; without
        effect by default.
    consensus : int
        Short runs from different starts, 2 or more, whose common parts the last factorization
        starts from, as for `NMFAlphaConsensus`; ``parts_.stability_`` then has a number for each
        part. 0 is one run from one start.
    missing : {None, "nan"}
        ``"nan"`` takes NaN for values that are not known. Plain parts (`filler_`) are fitted to
        the known ones and fill the others, in `fit` and in `predict`. For X in memory; in a sparse
        X only stored NaN are missing. None refuses NaN.
    embedded : int or "all"
        How many of the last columns are coordinates of an embedding, of either sign. They have
        parts of their own (`SemiNMFAlpha`), and the SVM sees both codes side by side. For X in
        memory, and ``init`` is "auto" or "random"; not with seeds, a prior, penalties, constraints,
        ``consensus`` or ``missing``.
    max_unlabeled : int or None
        Unlabeled samples that are learned from, at most; where there are more, so many of them are
        drawn at random, since the others cost time and memory and change next to nothing. None
        takes all. For X in memory; of data on disk or on a cluster, parts are learned from all
        rows.
    init : {"auto", "random", "nndsvda", "nndsvdar"} or (H, V)
        The start; ``"auto"`` starts from the labels.
    solver : {"auto", "mu", "mue", "cd"}
        How the factors are updated, as for `NMFAlpha`.
    max_iter : int
        Iterations at most, of each candidate as of the final factorization.
    tol : float
        Stop when the loss falls by at most this share over ten iterations, as for `NMFAlpha`.
    backend : {"auto", "numba", "torch", "reference"} or Backend
        Where the kernels run; ``"auto"`` is a GPU where there is one and it pays, else the CPU.
    random_state : int, RandomState or None
        Seed of the start, the folds and the SVMs; None gives another fit each time.
    callback : callable or None
        Called with a `Progress` while candidates are tried (its ``stage`` is ``"choosing"``) and
        during the final factorization; a true answer ends that stage with the best so far.
    checkpoint : path, Checkpoint or None
        A file for the trials of the candidates and the state of the final factorization, from
        which the same fit goes on after a kill (`Checkpoint`).
    verbose : int
        1 logs the progress of the fit to the logger ``"marginparts"``, 2 more of it, 0 nothing.

    Attributes
    ----------
    parts_ : NMFAlpha
        The fitted factorization; ``parts_.components_`` (r, d) are the parts. A `SemiNMFAlpha` with
        ``embedded="all"``.
    embedding_parts_ : SemiNMFAlpha or None
        The factorization of the embedded columns where there are others beside them.
    lam_, C_, map_iter_, normalize_, direction_C_
        What was given or chosen.
    selection_ : dict
        The cross-validation scores of every candidate, ``(n_components, lam, map_iter, normalize,
        C, direction_C)``, one a fold; fewer for those that were dropped as clearly worse. It is the
        score of the model that `fit` makes with these settings and without the labels of the fold,
        before thresholds.
    choice_ : Choice
        The same, with the best candidate's decision values of hidden labels, and with the rows of
        each fold: pairs (known, hidden), as scikit-learn's ``cv`` takes them.
    honest_score_ : float
        The score to expect on new samples: each fold was left out of the choice (thresholds
        included) and then scored. It holds for samples whose classes have the shares of the
        labeled ones. Where each row comes two to five times on average, its copies are left out
        with it; where more often, new samples are taken to repeat known ones, as these do. NaN when
        the labels were too few.
    honest_score_error_ : float
        Its standard error.
    calibration_ : Calibration or None
        What `predict_proba` uses; None when the labels were too few.
    thresholds_ : (p,) array
        Decision values of the SVMs above which a label is given; they are already subtracted from
        `decision_function`.
    coef_ : (p, r) or (p, 2r) array
        Hyperplanes over the codes that ``parts_.transform`` gives, and then over those of
        ``embedding_parts_.transform``, if there are any.
    intercept_ : (p,) array
    teachers_ : dict
        The share of each teacher in the guessed labels; empty without them.
    filler_ : NMFAlpha or None
        The parts that fill missing values, with ``missing="nan"``.
    head_ : Head
        The final SVM: coefficients, intercepts and how codes are scaled.
    n_iter_, reconstruction_err_, classes_, n_features_in_
        As for `NMFAlpha`; few iterations are usual, and no warning says so.

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
        n_components: int | str = "auto",
        *,
        lam: float | str = "auto",
        C: float | str = "auto",
        map_iter: int | str | None = "auto",
        normalize: bool | str = "auto",
        output: str = "auto",
        class_weight: ClassWeight = None,
        scoring: str | None = None,
        thresholds: str | None = "auto",
        rehearse: bool = True,
        directions: str | DualSource = "svm",
        multiclass: str = "ovr",
        direction_C: float | str = "auto",
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
        self.seeds = seeds
        self.prior = prior
        self.strength = strength
        self.exclusivity = exclusivity
        self.alpha_W = alpha_W
        self.alpha_H = alpha_H
        self.l1_ratio = l1_ratio
        self.fixed = fixed
        self.allowed = allowed
        self.consensus = consensus
        self.missing = missing
        self.embedded = embedded
        self.max_unlabeled = max_unlabeled
        self.init = init
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.backend = backend
        self.random_state = random_state
        self.callback = callback
        self.checkpoint = checkpoint
        self.verbose = verbose

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
            Parameters that differ from the paper's.

        Examples
        --------
        >>> from marginparts import NMFAlphaClassifier
        >>> NMFAlphaClassifier.paper(16, random_state=0).solver
        'mu'
        """
        return cls(n_components, **{**_PAPER, **changes})

    def fit(
        self, X: Samples, y: Targets | None = None, sample_weight: ArrayLike | None = None
    ) -> NMFAlphaClassifier:
        """Choose what is left to choose, find the parts, train the SVM.

        Parameters
        ----------
        X : (n, d) array or sparse matrix, RowBlocks or Dask array
            Nonnegative data, labeled and unlabeled, in memory, on disk (`open_rows`) or on a
            cluster, of which teachers see the labeled samples and a draw of the others.
        y : (n,) or (n, c) array-like
            Labels, -1, None or NaN for unlabeled; at least two classes. A row without entries in a
            sparse y is labeled: no label applies. With ``seeds`` it may be left out.
        sample_weight : (n,) array-like or None
            How much each row counts in the loss, in all SVMs and in the accuracy by which
            candidates are compared; 0 leaves it out. Teachers see each row once, unless rows are
            mostly repeats. For X in memory.

        Returns
        -------
        NMFAlphaClassifier
            The fitted estimator.
        """
        self._keep(fit_classifier(self, X, y, sample_weight, several=False))
        return self

    def _keep(self, fitted: Fitted) -> None:
        """Keep what a fit has found."""
        self.choice_ = choice = fitted.choice
        best = choice.best
        self.n_components_, self.lam_ = best.n_components, best.lam
        self.map_iter_, self.normalize_ = best.map_iter, best.normalize
        self.C_, self.direction_C_ = best.C, best.direction_C
        self.honest_score_, self.honest_score_error_ = choice.honest_score, choice.honest_error
        self.parts_, self.head_ = fitted.parts, fitted.head
        self.embedding_parts_ = fitted.beside
        self.n_iter_ = fitted.parts.n_iter_
        self.thresholds_, self.calibration_ = fitted.thresholds, fitted.calibration
        self.coef_, self.intercept_ = fitted.head.coef, fitted.head.intercept
        self.teachers_, self.filler_ = fitted.teachers, fitted.filler

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

    @available_if(is_calibrated)
    def predict_proba(self, X: Samples) -> Array:
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
        if is_dask(X):
            return mapped_lazily(self.predict_proba, X)
        check_is_fitted(self)
        return self.probabilities(self._values(X))

    def probabilities(self, values: Array) -> Array:
        """`predict_proba` for decision values (n, p)."""
        return np.asarray(self.calibration_.probabilities(values))  # type: ignore[union-attr]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = self.embedded == 0
        tags.input_tags.allow_nan = self.missing == "nan"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
