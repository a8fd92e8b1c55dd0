"""The two semi-supervised factorizations that the paper compares with."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, DTypeLike, NDArray

from marginparts._types import (
    Array,
    Callback,
    Data,
    Init,
    Problem,
    Result,
    Samples,
    Seed,
    State,
    Targets,
)
from marginparts.backends import Backend, get_backend
from marginparts.checkpoint import Checkpoint, Logbook
from marginparts.estimators._base import PartsTransformer
from marginparts.estimators._inputs import (
    Counted,
    FitInputs,
    check_data,
    prepared,
    warn_of_the_limit,
)
from marginparts.estimators._repeats import together
from marginparts.labels import UNKNOWN, Labels, encode_labels
from marginparts.losses.least_squares import LeastSquaresMap, squared_error, squared_norm
from marginparts.losses.lee2010 import Lee2010Problem
from marginparts.losses.liu_wu2010 import LiuWu2010Problem
from marginparts.recipe import MapSpec, RunSpec
from marginparts.rows.base import Elsewhere
from marginparts.solve.loop import Run, check_losses, minimize
from marginparts.solve.map import extreme_scale, scaled, tame_rows
from marginparts.solve.semi import rows_times
from marginparts.solve.start import check_init, start_from, uniform_rows
from marginparts.validation import check_mass, check_nonnegative, check_rank, check_squares

#: Updates of a map that is to end close to its optimum.
_TO_THE_OPTIMUM = 1000


class _SquaredLossParts(PartsTransformer):
    """A factorization with the squared loss: its checks, its start and its map."""

    def __init__(
        self,
        n_components: int = 32,
        *,
        init: Init = "auto",
        solver: str = "auto",
        max_iter: int = 200,
        tol: float = 1e-4,
        map_iter: int | None = 50,
        output: str = "gram",
        backend: str | Backend = "auto",
        random_state: Seed = None,
        callback: Callback | None = None,
        checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
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

    def _check_data(self, X: Samples, *, reset: bool) -> Data:
        X = check_data(self, X, reset=reset)
        # there is no update for rows that are not in memory
        return self._check_data(X.gathered(), reset=reset) if isinstance(X, Elsewhere) else X

    def _fit(self, X: Samples, y: Targets | None, sample_weight: ArrayLike | None) -> None:
        """Check, start and find the parts.

        The squared error of a row that counts w is that of the row, and of its code, times the
        root of w.
        """
        run = RunSpec(self.init, self.solver, self.max_iter, self.tol, self.backend)
        MapSpec(self.map_iter, self.output)
        X = self._check_data(X, reset=True)
        check_mass(X, type(self).__name__)
        check_squares(X, type(self).__name__)
        r = check_rank(self.n_components, X.shape)
        check_init(self.init, X, r)
        counted = Counted.of(X, y, sample_weight, type(self).__name__)
        run, (X, y, weights, _) = counted.run(run), counted
        repeats = counted.may_repeat and isinstance(run.init, str)
        same = together(X, y, weights) if repeats else None
        if same is not None:
            X, y, weights = same.data(X), same.labels(y), same.weights
        roots = None if weights is None else np.sqrt(weights)
        if roots is not None:
            check_squares(rows_times(X, roots), type(self).__name__)
        self._scale = extreme_scale(X)
        if self._scale != 1:
            X = scaled(X, self._scale)
        y = np.full(X.shape[0], UNKNOWN) if y is None else y
        labels = replace(encode_labels(y, X.shape[0]), weights=weights)
        self.classes_ = labels.classes
        told = {"n_components": r, "lam": getattr(self, "lam", None), **vars(run)}
        with prepared(self, X, labels, r, told | {"sample_weight": weights}) as ready:
            H, V = start_from(run.init, X, r, ready.seed, labels)
            if not isinstance(run.init, str):
                V = V * V.dtype.type(1 / self._scale)
            if roots is not None:
                ready, H = ready._replace(X=rows_times(X, roots)), rows_times(H, roots)
            self._fit_trusted(ready, labels, H, V)
        self._keep_projection(X)
        warn_of_the_limit(self)

    def _fit_trusted(self, ready: FitInputs, labels: Labels, H: Array, V: Array) -> None:
        """`fit` on checked data from a start (H, V), both times the roots of the weights."""
        raise NotImplementedError

    def _minimize(self, problem: Problem, state: State, logbook: Logbook | None) -> Run:
        shapes = {block: factor.shape for block, factor in state.items()}
        return minimize(
            problem, state, solver=self.solver, max_iter=self.max_iter, tol=self.tol,
            callback=self.callback, keeper=None if logbook is None else logbook.keeper({}, shapes),
        )  # fmt: skip

    def _keep_run(self, run: Run, H: Array, error: float) -> None:
        """Keep what was found; ``error`` is the squared one of the data alone."""
        history = [check._replace(loss=check.loss * self._scale**2) for check in run.history]
        losses = [check.loss for check in history]
        check_losses(losses)
        self.reconstruction_err_ = float(np.sqrt(error)) * self._scale
        self._keep(Result(run.state["V"], H, losses, run.n_iter, run.stop, run.solver, history))

    def _coefficients(self, X: Data) -> Array:
        V = self.components_.T
        X, scale = tame_rows(X.astype(V.dtype, copy=False))
        problem = LeastSquaresMap(np.asarray(X @ V), V.T @ V)
        state = {"H": problem.start()}
        updates = _TO_THE_OPTIMUM if self.map_iter is None else self.map_iter
        run = minimize(problem, state, solver="mu", max_iter=updates, watch=False)
        return run.state["H"] if scale is None else run.state["H"] * scale[:, None]


class SemiSupervisedNMF(_SquaredLossParts):
    """NMF whose codes also regress the labels (Lee, Yoo & Choi 2010; eq. 18).

    Parameters
    ----------
    n_components : int
        The number r of parts.
    lam : float
        Weight of the regression; 1 weighs the labels like the labeled samples' own mass.
    init : {"auto", "random", "nndsvda", "nndsvdar"} or (H, V)
        ``"auto"`` starts from the labels when there are any.
    solver : {"auto", "mu", "mue"}
        ``"auto"`` is ``"mue"``.
    max_iter : int
        Iterations at most.
    tol : float
        Stop when the loss falls by at most this share over ten iterations; 0 runs all of them.
    map_iter : int or None
        Updates of H in `transform`, from a flat start; None goes on to the optimum.
    output : {"gram", "coefficients", "projection", "mixed"}
        What `transform` returns, as for `NMFAlpha`.
    backend : {"auto", "numba", "torch", "reference"} or Backend
        Where the data's products with factors are computed, as for `NMFAlpha`.
    random_state, callback, checkpoint
        As for `NMFAlpha`.
    verbose : int
        1 shows the loss whenever it is evaluated, by the logger ``"marginparts"``.

    Attributes
    ----------
    components_ : (r, d) array
        The parts; each sums to one.
    n_components_ : int
        How many parts there are.
    reconstruction_err_ : float
        The root of the (weighted) squared error of the data alone.
    classes_, loss_curve_, n_iter_, stop_, solver_, history_, n_features_in_
        As for `NMFAlpha`.

    Examples
    --------
    >>> from marginparts import SemiSupervisedNMF
    >>> X = [[1., 0.], [2., 0.], [0., 1.]]
    >>> SemiSupervisedNMF(2, random_state=0).fit(X, [0, -1, 1]).transform(X).shape
    (3, 2)
    """

    def __init__(
        self,
        n_components: int = 32,
        *,
        lam: float = 1.0,
        init: Init = "auto",
        solver: str = "auto",
        max_iter: int = 200,
        tol: float = 1e-4,
        map_iter: int | None = 50,
        output: str = "gram",
        backend: str | Backend = "auto",
        random_state: Seed = None,
        callback: Callback | None = None,
        checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            n_components, init=init, solver=solver, max_iter=max_iter, tol=tol, map_iter=map_iter,
            output=output, backend=backend, random_state=random_state, callback=callback,
            checkpoint=checkpoint, verbose=verbose,
        )  # fmt: skip
        self.lam = lam

    def fit(
        self, X: Samples, y: Targets | None = None, sample_weight: ArrayLike | None = None
    ) -> SemiSupervisedNMF:
        """Find the parts.

        Parameters
        ----------
        X : (n, d) array or sparse matrix
            Nonnegative data.
        y : (n,) or (n, c) array-like, or None
            Labels, -1, None or NaN for unlabeled; None is plain NMF with the squared loss.
            A row without entries in a sparse y is labeled: no label applies.
        sample_weight : (n,) array-like or None
            How much each row counts in the loss, its label included: weight 2 is a row given
            twice, weight 0 one left out.

        Returns
        -------
        SemiSupervisedNMF
            The fitted estimator.
        """
        check_nonnegative(self.lam, "lam")
        self._fit(X, y, sample_weight)
        return self

    def _fit_trusted(self, ready: FitInputs, labels: Labels, H: Array, V: Array) -> None:
        X: Any = ready.X
        rows = np.flatnonzero(labels.labeled)
        Y, known = _indicator(labels, rows, X.dtype)
        counting = _rooted(Y, rows, labels)
        size = np.sqrt(float(np.sum(counting**2)))
        if size > 0:
            unit = X.dtype.type(np.sqrt(squared_norm(X[rows])) / size)
            Y, counting = Y * unit, counting * unit
        data = get_backend(self.backend).prepare(X)
        problem = Lee2010Problem(data, squared_norm(X), counting, known, rows, float(self.lam))
        mean_code = max(_mean_code(H, labels.weights), np.finfo(X.dtype).tiny)
        U = uniform_rows(ready.seed, 2, (Y.shape[1], V.shape[1])) * (Y.max(initial=0) / mean_code)
        # dealt out by the classes' first samples, not by their names
        U = U[np.argsort(np.argsort(np.argmax(Y > 0, axis=0), kind="stable"))] if len(Y) else U
        run = self._minimize(problem, {"V": V, "U": U.astype(X.dtype), "H": H}, ready.logbook)
        V, H = run.state["V"], run.state["H"]
        self._keep_run(run, H, squared_error(problem.x_squared, data, H, V))


class ConstrainedNMF(_SquaredLossParts):
    """NMF in which the labeled samples of a class share one code (Liu & Wu 2010; eqs. 19-20).

    The labeled samples' codes coincide by construction, so `transform` maps all samples anew.

    Parameters
    ----------
    n_components, init, solver, max_iter, tol, map_iter, output
        As for `SemiSupervisedNMF`.
    backend, random_state, callback, checkpoint, verbose
        As for `SemiSupervisedNMF`.

    Attributes
    ----------
    components_, n_components_, reconstruction_err_, classes_, loss_curve_, n_iter_, stop_, solver_
        As for `SemiSupervisedNMF`.
    history_, n_features_in_
        As for `SemiSupervisedNMF`.

    Examples
    --------
    >>> from marginparts import ConstrainedNMF
    >>> X = [[1., 0.], [2., 0.], [0., 1.]]
    >>> ConstrainedNMF(2, random_state=0).fit(X, [0, -1, 1]).transform(X).shape
    (3, 2)
    """

    def fit(
        self, X: Samples, y: Targets | None = None, sample_weight: ArrayLike | None = None
    ) -> ConstrainedNMF:
        """Find the parts.

        Parameters
        ----------
        X, y, sample_weight
            As for `SemiSupervisedNMF.fit`.

        Returns
        -------
        ConstrainedNMF
            The fitted estimator.
        """
        self._fit(X, y, sample_weight)
        return self

    def _fit_trusted(self, ready: FitInputs, labels: Labels, H: Array, V: Array) -> None:
        X: Any = ready.X
        rows = np.flatnonzero(labels.complete)
        Y, _ = _indicator(labels, rows, X.dtype)
        # a sample without a single label cannot be tied to any other
        tied = Y.any(axis=1)
        rows, Y = rows[tied], _rooted(Y[tied], rows[tied], labels)
        free = np.setdiff1d(np.arange(X.shape[0]), rows, assume_unique=True)
        sums = Y.T @ X[rows] if len(rows) else np.zeros((Y.shape[1], X.shape[1]), X.dtype)
        stack = (
            sp.vstack([sp.csr_array(sums), X[free]], format="csr")
            if sp.issparse(X)
            else (np.concatenate([sums, X[free]]))
        )
        P = np.concatenate([safe_mean(Y, H[rows]), H[free]])
        problem = LiuWu2010Problem(
            get_backend(self.backend).prepare(stack), Y.T @ Y, squared_norm(X)
        )
        run = self._minimize(problem, {"V": V, "P": P}, ready.logbook)
        self._keep_run(run, run.state["P"], run.history[-1].loss)


def safe_mean(Y: Array, H: Array) -> Array:
    """Return the mean code of each class, positive even for a class without samples."""
    counts = np.sum(Y**2, axis=0)[:, None]
    counts[counts == 0] = 1
    return np.asarray((Y.T @ H) / counts + np.finfo(H.dtype).eps, dtype=H.dtype)


def _mean_code(H: Array, weights: Array | None) -> float:
    """Return the mean entry of codes (n, r) that are times the roots of their weights."""
    if weights is None:
        return float(H.mean())
    return float(np.sum(np.sqrt(weights) @ H) / (H.shape[1] * np.sum(weights)))


def _rooted(Y: Array, rows: NDArray[np.intp], labels: Labels) -> Array:
    """Return labels (m, c) of some rows, times the roots of their weights."""
    return Y if labels.weights is None else rows_times(Y, np.sqrt(labels.weights[rows]))


def _indicator(labels: Labels, rows: NDArray[np.intp], dtype: DTypeLike) -> tuple[Array, Array]:
    """Return the labels of some rows as 0 and 1 (m, c), and where they are known."""
    codes = labels.codes[rows]
    if not labels.multilabel:
        Y = (codes[:, None] == np.arange(max(len(labels.classes), 1))).astype(dtype)
        return Y, np.ones_like(Y)
    return (codes == 1).astype(dtype), (codes != UNKNOWN).astype(dtype)
