"""Parts of data that has either sign, such as embeddings."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.extmath import row_norms

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
from marginparts.directions import Directions, DirectionSpec, DualSource, Whole, find_directions
from marginparts.estimators._base import PartsTransformer
from marginparts.estimators._inputs import (
    Counted,
    check_training_data,
    fit_labels,
    prepared,
    warn_of_the_limit,
)
from marginparts.estimators._repeats import together
from marginparts.labels import Labels
from marginparts.losses.semi import SemiProblem, lean_squares
from marginparts.recipe import MapSpec, Recipe, RunSpec
from marginparts.rows.base import OutOfCore
from marginparts.solve.map import gram_root, share_in_span
from marginparts.solve.semi import check_semi_init, rows_times, semi_codes, semi_parts
from marginparts.svm.class_weights import ClassWeight
from marginparts.validation import check_nonnegative, check_rank


class SemiNMFAlpha(PartsTransformer):
    """Parts of data of either sign that keep the margin of the labeled samples.

    ``X ~ H V'`` with codes H of 0 or larger, a basis V of either sign and the squared error (Ding,
    Li & Jordan 2010), and the components w+ and w- of linear classifiers as further samples, each
    with codes of its own. For embeddings, and whatever else has negative entries.

    Parameters
    ----------
    n_components : int
        The number r of parts.
    lam : float
        Weight of the margin components; with ``scale``, their squares beside those of the data.
    directions : {"svm", "perceptron", "averaged-perceptron", "pa", "cw", "arow", "class"}, callable
        Where the margin components come from, see `margin_directions`.
    multiclass, direction_C, pseudo, class_weight
        How the classifiers behind them are trained, as for `NMFAlpha`.
    scale : bool
        Whether the margin components together have the squared length of the data, so that lam is
        a ratio; False takes the raw dual coefficients.
    init : {"auto", "random", "k-means"} or (H, V)
        ``"auto"`` is ``"k-means"``: each sample mostly in the part of its cluster.
    solver : {"auto", "mu", "mue", "cd"}
        How H is updated; V is solved for. ``"mu"`` is the multiplicative step of Ding, Li &
        Jordan, ``"mue"`` extrapolates it, and ``"cd"``, the default, is coordinate descent.
    max_iter : int
        Iterations at most.
    tol : float
        Stop when the loss falls by at most this share over ten iterations, or the residual, how far
        an update moves the codes beside their size, is at most this; 0 runs all of them. An offset
        of the columns counts in that size.
    map_iter : int or None
        Sweeps that map a sample into the parts, from the codes of least squares without those below
        zero. None goes on to the optimum, as any number does where parts are nearly dependent.
        Mixed codes take sweeps from zero.
    output : {"gram", "coefficients", "projection", "mixed"}
        The codes of `transform`, as for `NMFAlpha`.
    backend : {"auto", "numba", "torch", "reference"} or Backend
        Where the arithmetic happens; ``"auto"`` is a GPU where there is one, it pays and the data
        fits it, else the CPU.
    random_state, callback, checkpoint, verbose
        As for `NMFAlpha`.

    Attributes
    ----------
    components_ : (r, d) array
        The parts, each of length 1.
    margin_components_ : (2p, d) array or CSR array
        w+ and w- of each classifier, as they were factorized.
    margin_codes_ : (2p, r) array
        Their codes.
    margin_names_, margin_kept_, directions_
        As for `NMFAlpha`.
    reconstruction_err_ : float
        The root of the (weighted) squared error of the data alone.
    classes_, loss_curve_, n_iter_, stop_, solver_, history_, n_features_in_
        As for `NMFAlpha`.

    Examples
    --------
    >>> from marginparts import SemiNMFAlpha
    >>> X = [[1., -1.], [2., -2.], [-1., 1.], [0., 3.]]
    >>> SemiNMFAlpha(2, random_state=0).fit(X, [0, -1, 1, -1]).transform(X).shape
    (4, 2)
    """

    embedded = "all"
    directions_: sp.csr_array | None

    def __init__(
        self,
        n_components: int = 32,
        *,
        lam: float = DEFAULT_LAM,
        directions: str | DualSource = "svm",
        multiclass: str = "ovr",
        direction_C: float = 1.0,
        scale: bool = True,
        pseudo: str | None = None,
        class_weight: ClassWeight = None,
        init: Init = "auto",
        solver: str = "auto",
        max_iter: int = 200,
        tol: float = 1e-4,
        map_iter: int | None = 40,
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
        self.pseudo = pseudo
        self.class_weight = class_weight
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
        self, X: Samples, y: Targets | None = None, sample_weight: ArrayLike | None = None
    ) -> SemiNMFAlpha:
        """Find the parts.

        Parameters
        ----------
        X : (n, d) array or sparse matrix
            Data of either sign, in memory or memory-mapped.
        y : (n,) or (n, c) array-like, or None
            Labels, -1, None or NaN for unlabeled; None is plain semi-NMF.
        sample_weight : (n,) array-like or None
            How much each row counts in the loss and in the directions. Weight 0 leaves it out, and
            weight 2 is a row given twice, in the directions of SVMs and of class sums too. Others
            see each row once, as `NMFAlpha.fit` says.

        Returns
        -------
        SemiNMFAlpha
            The fitted estimator.
        """
        recipe = self._recipe()
        lam = check_nonnegative(self.lam, "lam")
        X = check_training_data(self, X)
        n, r = X.shape[0], check_rank(self.n_components, X.shape)
        check_semi_init(self.init, X.shape, r)
        counted = Counted.of(X, y, sample_weight, type(self).__name__, X.shape[1])
        X, y, weights, _ = counted
        by_name = isinstance(self.init, str)
        same = together(X, y, weights) if by_name and counted.may_repeat else None
        if same is not None:
            X, y, weights = same.data(X), same.labels(y), same.weights
        recipe = replace(recipe, run=counted.run(recipe.run), embedded=X.shape[1])
        labels = fit_labels(y, X.shape[0], self.class_weight, weights)
        told = {**self._told(recipe), "n_components": r, "lam": lam, "sample_weight": weights}
        del told["backend"]  # the one in use is compared in any case
        with prepared(self, X, labels, r, told) as fit:
            self._fit_trusted(fit.X, labels, recipe, fit.seed, fit.logbook, None, weights)
        warn_of_the_limit(self, depth=1)
        if same is not None:
            self.directions_ = same.spread(self.directions_)
        if counted.rows is not None:
            self._spread_over(counted.rows, n)
        return self

    def _told(self, recipe: Recipe) -> dict[str, Any]:
        """Return the parameters on which the parts depend."""
        known = self.get_params(deep=False)
        return {name: value for name, value in recipe.parameters().items() if name in known}

    def _recipe(self) -> Recipe:
        """Return the parameters as a recipe, or refuse what makes no sense."""
        return Recipe(
            DirectionSpec(
                self.directions, self.multiclass, None, self.pseudo, self.direction_C, self.scale,
                self.class_weight,
            ),
            RunSpec(self.init, self.solver, self.max_iter, self.tol, self.backend),
            MapSpec(self.map_iter, self.output),
        )  # fmt: skip

    @classmethod
    def _of(cls, recipe: Recipe, n_components: int, lam: float, **others: Any) -> SemiNMFAlpha:
        """Return the estimator of a recipe, not fitted."""
        parts = cls(n_components, lam=lam, **others)
        return parts.set_params(**parts._told(recipe))

    def _spread_over(self, rows: NDArray[np.intp], n: int) -> None:
        """Extend directions to all n rows."""
        if self.directions_ is not None:
            self.directions_ = Directions(self.directions_, ()).spread_over(rows, n).S

    def _fit_trusted(
        self,
        X: Data | OutOfCore,
        labels: Labels | None,
        recipe: Recipe,
        seed: int,
        logbook: Logbook | None,
        found: Directions | None = None,
        weights: Array | None = None,
    ) -> SemiNMFAlpha:
        """`fit` on checked data and labels, with a recipe that says the same as the parameters."""
        assert not isinstance(X, OutOfCore)
        self.n_features_in_ = X.shape[1]
        if found is None and labels is not None:
            found = _directions(X, labels, recipe.directions, seed)
        self.directions_ = None if found is None else found.S
        ((_, result),) = recipe.parts(
            X, labels, self.directions_, int(self.n_components), (float(self.lam),), seed,
            weights=weights, callback=self.callback, logbook=logbook,
        )  # fmt: skip
        self.classes_ = np.empty(0) if labels is None else labels.classes
        self._keep(result)
        self._project(None)
        self._keep_margins(result, () if found is None else found.names)
        rows, H = (A if weights is None else rows_times(A, np.sqrt(weights)) for A in (X, result.H))
        error = SemiProblem(rows, lean_squares(rows)).loss({"V": result.V, "H": H})
        self.reconstruction_err_ = float(np.sqrt(error))
        return self

    def _keep(self, result: Result, fixed: Array | None = None) -> None:
        super()._keep(result)
        self.components_ = semi_parts(result.V)
        self.gram_root_ = gram_root(self.components_.T)

    def _keep_margins(self, result: Result, names: tuple[str, ...]) -> None:
        """Keep the margin components and their codes, from which the parts rebuild them."""
        XS = np.empty((0, self.n_features_in_), result.V.dtype) if result.XS is None else result.XS
        self.margin_names_ = np.array(names, dtype=str)
        self.margin_components_ = XS
        self.margin_codes_ = semi_codes(XS, np.ascontiguousarray(self.components_.T), None)
        self.margin_kept_ = share_in_span(XS, self.components_)

    def _coefficients(self, X: Data) -> Array:
        V = np.ascontiguousarray(self.components_.T)
        X = X.astype(V.dtype, copy=False)
        mixed = self.output == "mixed"
        return semi_codes(X, V, self.map_iter, self.backend, from_zero=mixed)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = False
        return tags


def _directions(X: Data, labels: Labels, spec: DirectionSpec, seed: int) -> Directions:
    """Return the directions of labeled rows; only these are made ready for the SVMs.

    The mass is no matter: components get their length when they are factorized.
    """
    known = np.flatnonzero(labels.labeled)
    if spec.pseudo is not None or not len(known):
        return find_directions(X, labels, spec, seed)
    squares = row_norms(X, squared=True)
    size = float(np.sqrt(np.average(squares, weights=labels.weights)))
    whole = Whole(float(len(known)), size or 1.0)
    found = find_directions(X[known], labels.take(known), spec, seed, whole=whole)
    return found.spread_over(known, X.shape[0])
