"""NMF-alpha as a transformer."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from marginparts._types import (
    DEFAULT_LAM,
    Array,
    Callback,
    Data,
    Init,
    Result,
    Samples,
    Seed,
    Targets,
)
from marginparts.backends import Backend
from marginparts.checkpoint import Checkpoint, Logbook
from marginparts.directions import Directions, DirectionSpec, DualSource, find_directions
from marginparts.estimators._base import CarriesParts
from marginparts.estimators._inputs import (
    Counted,
    check_training_data,
    column_names,
    fit_labels,
    prepared,
    warn_of_the_limit,
)
from marginparts.estimators._joint import check_joint, joint_fit
from marginparts.estimators._margins import MarginTransformer
from marginparts.estimators._repeats import together
from marginparts.labels import Labels
from marginparts.recipe import MapSpec, Recipe, RunSpec
from marginparts.rows.base import OutOfCore
from marginparts.solve.gaps import Gaps, found_gaps
from marginparts.solve.run_spec import check_parts
from marginparts.solve.start import check_init
from marginparts.svm.class_weights import ClassWeight
from marginparts.validation import check_nonnegative, check_rank, check_weights


class NMFAlpha(CarriesParts, MarginTransformer):
    """Nonnegative parts that keep the margin of the labeled samples (Cho & Saul's NMF-alpha).

    Linear classifiers trained on the labeled samples say which directions of the data matter; the
    factorization keeps them. Without labels this is NMF with the I-divergence.

    Parameters
    ----------
    n_components : int
        The number r of parts.
    lam : float
        Weight of the margin components against the data; 1 to 100 is the usual range.
    directions : str or callable
        Where the margin components come from: ``"svm"``, ``"perceptron"``,
        ``"averaged-perceptron"``, ``"pa"``, ``"cw"``, ``"arow"``, ``"class"`` or a function, see
        `margin_directions`. With ``"joint"`` the coefficients of the SVMs are updated with the
        parts, as often as hidden labels support it: several times the work for 0.1 to 0.4 points
        on five splits, and no better than ``"class"`` (``docs/math.md``, section 23).
    multiclass : {"ovr", "ovo"}
        More than two classes: one classifier for each class, or one for each pair as in the paper.
    direction_C : float
        Cost of the classifiers that give the directions, where they know one.
    scale : bool
        Whether lam counts in units of the data's mass; False is the paper's raw coefficients.
    features : {None, "hellinger"}
        What those classifiers see: X itself, or the square roots of X in rows of length 1.
    pseudo : {None, "svm", "tsvm"}
        Who guesses labels of unlabeled samples, an SVM or a transductive one; the half that it is
        surest of then takes part in the directions. None uses given labels alone.
    class_weight : None, "balanced" or dict
        What ``direction_C`` is multiplied by for the samples of each class; None is 1 for all.
    feature_weight : (d,) array or None
        How much each feature counts in the loss and in `transform`: weight 2 is a column given
        twice, weight 0 one left out. The classifiers that give the directions see X as it is.
    alpha_W : float
        Penalty on the codes, which scikit-learn calls W (H here), times the number of features.
    alpha_H : float or "same"
        Penalty on the parts, which scikit-learn calls H (V here), times the number of samples.
        Penalize both or none: if only one is penalized it shrinks, and the other grows instead.
    l1_ratio : float
        The share of both penalties that is the sum of the entries; the rest is half the sum of
        their squares. As in scikit-learn, but `transform` is not penalized. For X in memory.
    exclusivity : float
        A penalty on features that several parts share; 0 is none, 0.01 to 1 the usual range. For X
        in memory, and ``"cd"`` then runs ``"mue"``; so it is with the next three.
    fixed : (k, d) array, fitted estimator or None
        Parts that stay exactly as they are while the others are learned: the first k of the
        n_components. Those of an estimator are matched by the names of columns, as a prior is.
    allowed : (n_components, d) array of bool or None
        True where a part may have a weight; elsewhere it stays at 0. None allows all.
    missing : {None, "nan", "zeros"}
        Which entries are not known, and left out of the loss: none, NaN (in sparse data those that
        are stored), or zeros, as in ratings; `fit` takes a mask instead. `fill` and
        `inverse_transform` fill them in. The classifiers that give the directions see the column's
        mean in the place of NaN; there can be no labels with ``"zeros"``.
    prior : (m, d) array, fitted estimator or None
        Parts of another fit that the first m parts (after fixed ones) are pulled toward; the
        others are free. Where both fits know the names of their columns these are matched: words
        that X does not have are dropped, and new ones have no prior. Otherwise see
        `carried_parts`. For X in memory.
    strength : float
        Weight of the prior: with 1 a prior part counts as much as the data does, on average, for
        one part. 0 is no prior; a very large one all but fixes the parts.
    init : {"auto", "random", "nndsvda", "nndsvdar"} or (H, V)
        ``"auto"`` starts from the labels when there are any (`class_start`), else at random. A
        given one, say the parts of another fit, is continued.
    solver : {"auto", "mu", "mue", "cd"}
        ``"mu"`` is the paper's, ``"mue"`` extrapolates it, ``"cd"`` is coordinate descent on sparse
        data. ``"auto"`` is ``"cd"`` without labels and ``"mue"``, safer for a classifier, with
        them.
    max_iter : int
        Iterations at most.
    tol : float
        Stop when the loss falls by at most this share over ten iterations, or the residual is at
        most this; 0 runs all iterations.
    map_iter : int or None
        Updates of H in `transform`, from a flat start. Few regularize the map and are usually
        better for classification; None goes on to the optimum.
    output : {"gram", "coefficients", "projection", "mixed"}
        What `transform` returns: Z, which keeps inner products (eq. 5), the nonnegative H, the
        projection onto the parts, or that beside the square roots of the parts' shares.
    backend : {"auto", "numba", "torch", "reference"} or Backend
        Where the kernels run; ``"auto"`` is a GPU where there is one and it pays, else the CPU.
    random_state : int, RandomState or None
        Seed of everything random; None gives another result each time.
    callback : callable or None
        Called with a `Progress` during the fit; a true answer ends it.
    checkpoint : path, Checkpoint or None
        A file for the state of the fit, from which the same fit goes on after a kill.
    verbose : int
        1 logs the loss whenever it is evaluated, to the logger ``"marginparts"``; 0 nothing.

    Attributes
    ----------
    components_ : (r, d) array
        The parts; each sums to one, but those of ``fixed`` are as they were given.
    gram_root_ : (r, r) array
        The root of the parts' inner products, which turns H into Z (eq. 5).
    directions_ : (n, 2p) CSR array or None
        S: dual coefficients, all plus columns, then all minus columns (eq. 17).
    margin_names_ : (p,) array
        The two-class questions behind the columns of S.
    margin_components_ : (2p, d) array or CSR array
        XS: the components w+ of all questions, then w- of all (eq. 10).
    margin_codes_ : (2p, r) array
        HS: ``margin_codes_ @ components_`` is their reconstruction by the parts.
    margin_kept_ : (p,) array
        The share of each hyperplane's squared length that lies in the span of the parts.
    classes_ : array
        The labels seen.
    n_components_, n_fixed_ : int
        The number of parts, and how many of them, the first ones, stayed as they were given.
    reconstruction_err_ : float
        ``sqrt(2 D)`` with D the (weighted) divergence of the data alone, as scikit-learn has it.
    loss_curve_ : array
        The loss at the start and at each evaluation after it.
    n_iter_ : int
    stop_ : Stop
        Why the fit ended; ``str(stop_)`` is a sentence.
    solver_ : str
        The solver used.
    history_ : list of Check
        Iteration, loss, seconds, residual and nonzeros at each evaluation of the loss.
    sample_weight_ : (n,) array or None
        The weights of the rows, where they were not all alike.
    joint_curve_ : list of float
        Only with ``directions="joint"``: the objective at the start, and after each step.
    joint_scores_ : list of float
        Only with it: the score on hidden labels after 0, 1, ... rounds.
    n_features_in_ : int

    Examples
    --------
    >>> from marginparts import NMFAlpha
    >>> from marginparts.datasets import load_digits_49
    >>> digits = load_digits_49()
    >>> y = digits.target.copy()
    >>> y[40:] = -1  # unlabeled
    >>> parts = NMFAlpha(16, random_state=0).fit(digits.data, y)
    >>> parts.transform(digits.data).shape
    (361, 16)
    """

    def __init__(
        self,
        n_components: int = 32,
        *,
        lam: float = DEFAULT_LAM,
        directions: str | DualSource = "svm",
        multiclass: str = "ovr",
        direction_C: float = 1.0,
        scale: bool = True,
        features: str | None = None,
        pseudo: str | None = None,
        class_weight: ClassWeight = None,
        feature_weight: ArrayLike | None = None,
        alpha_W: float = 0.0,
        alpha_H: float | str = "same",
        l1_ratio: float = 0.0,
        exclusivity: float = 0.0,
        fixed: Any = None,
        allowed: ArrayLike | None = None,
        missing: str | None = None,
        prior: Any = None,
        strength: float = 1.0,
        init: Init = "auto",
        solver: str = "auto",
        max_iter: int = 200,
        tol: float = 1e-4,
        map_iter: int | None = 10,
        output: str = "gram",
        backend: str | Backend = "auto",
        random_state: Seed = None,
        callback: Callback | None = None,
        checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.lam = lam
        self.directions = directions
        self.multiclass = multiclass
        self.direction_C = direction_C
        self.scale = scale
        self.features = features
        self.pseudo = pseudo
        self.class_weight = class_weight
        self.feature_weight = feature_weight
        self.alpha_W = alpha_W
        self.alpha_H = alpha_H
        self.l1_ratio = l1_ratio
        self.exclusivity = exclusivity
        self.fixed = fixed
        self.allowed = allowed
        self.missing = missing
        self.prior = prior
        self.strength = strength
        self.init = init
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.map_iter = map_iter
        self.output = output
        self.backend = backend
        self.random_state = random_state
        self.callback = callback
        self.checkpoint = checkpoint
        self.verbose = verbose

    def fit(
        self,
        X: Samples,
        y: Targets | None = None,
        sample_weight: ArrayLike | None = None,
        mask: Any = None,
    ) -> NMFAlpha:
        """Find the parts.

        Parameters
        ----------
        X : (n, d) array or sparse matrix, RowBlocks or Dask array
            Nonnegative data, in memory, on disk (`open_rows`) or on a cluster.
        y : (n,) or (n, c) array-like, or None
            Labels, -1, None or NaN for unlabeled; None is plain NMF. A row without entries in a
            sparse y is labeled: no label applies.
        sample_weight : (n,) array-like or None
            How much each row counts in the loss and in the directions. Weight 0 leaves it out, and
            weight 2 is a row given twice: from the same start, and to the last bit where half of
            the rows or more are repeats, which are fitted as weights. Directions other than those
            of SVMs and class sums see each row once: ``"pa"``, ``"cw"`` and ``"arow"`` with C times
            its weight, perceptrons and functions of your own like any other. For X in memory.
        mask : (n, d) array or sparse array of bool, or None
            True where an entry is known, zeros included. What is not is as NaN is with
            ``missing="nan"``. In a sparse mask only what is stored is known; with a sparse X it is
            listed, and there are no labels then, as with ``missing="zeros"``.

        Returns
        -------
        NMFAlpha
            The fitted estimator.
        """
        return self._fit(X, y, sample_weight, mask=mask)

    def _fit(
        self, X: Samples, y: Targets | None, sample_weight: ArrayLike | None,
        found: Directions | None = None, mask: Any = None,
    ) -> NMFAlpha:  # fmt: skip
        """`fit`, maybe with directions that another fit to the same rows has found."""
        recipe = self._recipe()
        lam = check_nonnegative(self.lam, "lam")
        X, missing = self._masked(check_training_data(self, X), mask)
        r = check_rank(self.n_components, X.shape)
        check_init(self.init, X, r)
        if recipe.run.feature_weight is not None:
            check_weights(recipe.run.feature_weight, "feature_weight", X.shape[1])
        counted = Counted.of(X, y, sample_weight, type(self).__name__)
        run = check_parts(counted.run(recipe.run), X, r, column_names(self))
        n, (X, y, weights, rows) = X.shape[0], counted
        in_place = isinstance(missing, Gaps) or not isinstance(self.init, str)
        in_place = in_place or self.directions == "joint"  # which knows of no weights
        same = together(X, y, weights) if counted.may_repeat and not in_place else None
        if same is not None:
            X, y, weights = same.data(X), same.labels(y), same.weights
        if rows is not None and isinstance(missing, Gaps):
            missing = missing.of_rows(rows)
        recipe = replace(recipe, run=replace(run, missing=missing))
        labels = fit_labels(y, X.shape[0], self.class_weight, weights)
        self._check_missing(X, labels, missing)
        if self.directions == "joint":
            check_joint(X, recipe.run, weights, self.checkpoint)
        no_matter = ("backend", "map_iter", "output")  # the backend in use is compared in any case
        told = {name: value for name, value in recipe.parameters().items() if name not in no_matter}
        told |= {"n_components": r, "lam": lam, "sample_weight": weights}
        with prepared(self, X, labels, r, told) as fit:
            if found is not None:
                S = found.S if rows is None else found.S[rows]
                found = found._replace(S=S if same is None else same.gathered(S))
            self._fit_trusted(fit.X, labels, recipe, fit.seed, fit.logbook, found, weights)
        warn_of_the_limit(self)
        if same is not None:
            self.directions_ = same.spread(self.directions_)
        ones = None if rows is None else np.ones(len(rows))  # beside others of weight 0
        self.sample_weight_ = ones if counted.weights is None else counted.weights
        if rows is not None:
            self._spread_over(rows, n)
        return self

    def _recipe(self) -> Recipe:
        """Return the parameters as a recipe, or refuse what makes no sense."""
        return Recipe(
            DirectionSpec(
                "svm" if self.directions == "joint" else self.directions, self.multiclass,
                self.features, self.pseudo, self.direction_C, self.scale, self.class_weight,
            ),
            RunSpec(
                self.init, self.solver, self.max_iter, self.tol, self.backend, self.feature_weight,
                self.alpha_W, self.alpha_H, self.l1_ratio, self.fixed, self.allowed, self.prior,
                self.strength, self.exclusivity, self.missing,
            ),
            MapSpec(self.map_iter, self.output),
        )  # fmt: skip

    @classmethod
    def _of(cls, recipe: Recipe, n_components: int, lam: float, **others: Any) -> NMFAlpha:
        """Return the estimator of a recipe, not fitted."""
        return cls(n_components, lam=lam, **recipe.parameters(), **others)

    def _fit_trusted(
        self,
        X: Data | OutOfCore,
        labels: Labels | None,
        recipe: Recipe,
        seed: int,
        logbook: Logbook | None,
        found: Directions | None = None,
        weights: Array | None = None,
    ) -> NMFAlpha:
        """`fit` on checked data and labels, with a recipe that says the same as the parameters.

        Directions that are given are taken as they are; ``weights`` (n,) are larger than 0.
        """
        self.n_features_in_ = X.shape[1]
        gaps: Gaps | None = None
        if recipe.run.missing is not None:
            X, gaps = found_gaps(X, recipe.run.missing)
        result: Result | None = None
        self._forget("joint_curve_", "joint_scores_")
        if self.directions == "joint" and labels is not None:
            found, result, self.joint_curve_, self.joint_scores_ = joint_fit(
                X, labels, recipe, int(self.n_components), float(self.lam), seed, self.callback
            )
        if found is None and labels is not None:
            found = find_directions(X, labels, recipe.directions, seed)
        self.directions_ = None if found is None else found.S
        self.sample_weight_ = weights
        if result is None:
            ((_, result),) = recipe.parts(
                X, labels, self.directions_, int(self.n_components), (float(self.lam),), seed,
                weights=weights, gaps=gaps, callback=self.callback, logbook=logbook,
            )  # fmt: skip
        self.classes_ = np.empty(0) if labels is None else labels.classes
        self._keep(result, recipe.run.fixed)
        self.n_fixed_ = recipe.run.n_fixed
        self._keep_projection(X)
        self._keep_margins(X, result, () if found is None else found.names)
        error = result.losses[-1] - self._beside_the_data(X, result, recipe.run)
        self.reconstruction_err_ = float(np.sqrt(2 * max(error, 0.0)))
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing == "nan"
        return tags
