"""The boundary of a fit: data, labels and weights, checked once."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import (
    BaseEstimator,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import (
    check_consistent_length,
    validate_data,
)

from marginparts._types import Array, Data, Samples, Stop
from marginparts.checkpoint import Logbook, logbook_of
from marginparts.labels import Labels
from marginparts.rows.base import Elsewhere, OutOfCore, at_hand
from marginparts.rows.dask import as_dask_rows
from marginparts.solve.run_spec import RunSpec
from marginparts.validation import (
    DTYPES,
    as_nonnegative,
    canonical,
    check_count,
    check_mass,
    check_signed,
    check_weights,
    is_dask,
    on_the_host,
    plain_words,
    seed_of,
)


class FitInputs(NamedTuple):
    """What a fit begins with: its data, its seed, and its checkpoint where it has one."""

    X: Data | OutOfCore
    seed: int
    logbook: Logbook | None


@contextmanager
def spoken(verbose: bool | int) -> Iterator[None]:
    """Show what the package logs on the standard output while something lasts."""
    if not verbose:
        yield
        return
    logger, handler = logging.getLogger("marginparts"), logging.StreamHandler(sys.stdout)
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO if int(verbose) == 1 else logging.DEBUG)
    try:
        yield
    finally:
        logger.setLevel(before)
        logger.removeHandler(handler)


@contextmanager
def prepared(
    estimator: BaseEstimator,
    X: Data | Elsewhere,
    labels: Labels | None,
    rank: int,
    told: dict[str, Any],
) -> Iterator[FitInputs]:
    """Make checked data (n, d) ready for a fit, and open the fit's checkpoint if there is one.

    ``rank`` is the largest number of parts. ``told`` has the parameters on which the result
    depends: a checkpoint with others is refused.
    """
    seed = seed_of(estimator.random_state)
    with ExitStack() as stack:
        stack.enter_context(spoken(getattr(estimator, "verbose", 0)))
        if isinstance(X, Elsewhere):
            X = stack.enter_context(at_hand(X, rank, estimator.solver))
        logbook = None
        if estimator.checkpoint is not None:
            seed, logbook = stack.enter_context(
                logbook_of(
                    estimator.checkpoint, type(estimator).__name__, seed,
                    any_seed=estimator.random_state is None, X=X, y=labels, **told,
                )
            )  # fmt: skip
        yield FitInputs(X, seed, logbook)


def warn_of_the_limit(estimator: BaseEstimator, depth: int = 2) -> None:
    """Say that a fit ended before it was good enough; ``depth`` calls lie between it and a user."""
    if estimator.stop_ is Stop.MAX_ITER and estimator.tol > 0:
        warnings.warn(
            f"The largest number of iterations was reached ({estimator.max_iter}) before the "
            f"tolerance (tol={estimator.tol:g}); increase one of them, or set tol=0.",
            ConvergenceWarning,
            stacklevel=depth + 2,
        )


def validated(estimator: BaseEstimator, X: Samples, *, reset: bool) -> Data:
    """Return X as numbers in memory; the number of features is noted with ``reset``."""
    finite = "allow-nan" if getattr(estimator, "missing", None) == "nan" else True
    with plain_words():
        return validate_data(
            estimator, on_the_host(X), accept_sparse="csr", dtype=DTYPES, order="C", reset=reset,
            ensure_all_finite=finite,
        )  # fmt: skip


def check_data(
    estimator: BaseEstimator, X: Samples | Elsewhere, *, reset: bool
) -> Data | Elsewhere:
    """Return X as trusted data; rows elsewhere are checked when they are read.

    With ``reset`` the number of features is stored, without it compared.
    """
    X = as_dask_rows(X) if is_dask(X) else X
    name, signs = type(estimator).__name__, getattr(estimator, "embedded", 0) != 0
    if not isinstance(X, Elsewhere):
        X = validated(estimator, X, reset=reset)
        if not signs:
            return as_nonnegative(X, name)
        first = X.shape[1] - embedded_columns(estimator, X.shape[1])
        if first:
            as_nonnegative(X[:, :first], name)
        return canonical(X)
    if signs:
        raise ValueError(
            f"{name} with columns of either sign needs X in memory, or numpy.load(..., "
            'mmap_mode="r"), and not rows on disk or on a cluster.'
        )
    if reset:
        estimator.n_features_in_ = X.shape[1]
        vars(estimator).pop("feature_names_in_", None)
    elif X.shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input."
        )
    return X


def embedded_columns(estimator: BaseEstimator, d: int) -> int:
    """Return how many of the last columns may have either sign."""
    value = getattr(estimator, "embedded", 0)
    if isinstance(value, str) and value == "all":
        return d
    if check_count(value, "embedded", least=0) > d:
        raise ValueError(f"embedded={value!r} is more than the {d} columns of X.")
    return int(value)


def has_folds(cv: Any) -> bool:
    """Whether folds are given, and not their number."""
    return not (cv is None or isinstance(cv, Integral | float | str))


def fold_numbers(cv: Any, X: Any, y: Any) -> NDArray[np.intp]:
    """Return the fold of each row (n,), -1 for none, of a splitter or of pairs of rows."""
    n = X.shape[0]
    pairs = cv.split(X, y) if hasattr(cv, "split") else cv
    folds = np.full(n, -1, dtype=np.intp)
    try:
        for k, (_, hidden) in enumerate(pairs):
            if (folds[np.asarray(hidden)] >= 0).any():
                raise ValueError
            folds[np.asarray(hidden)] = k
    except (TypeError, ValueError, IndexError) as error:
        raise ValueError(
            f"cv={cv!r} must be a number of folds, 2 or larger, or a splitter or pairs (others, "
            "hidden) of row numbers in which no row is hidden twice."
        ) from error
    return folds


def check_embedded(model: BaseEstimator) -> None:
    """Refuse what columns of either sign cannot have: they take the teachers' recipe alone."""
    if model.pseudo not in ("auto", "teachers"):
        raise ValueError(f"embedded columns need teachers, and pseudo={model.pseudo!r} has none.")
    unset = {
        "seeds": None, "prior": None, "missing": None, "exclusivity": 0, "alpha_W": 0,
        "fixed": None, "allowed": None, "consensus": 0,
    }  # fmt: skip
    for name, value in unset.items():
        if getattr(model, name) is not None and np.any(getattr(model, name) != value):
            raise ValueError(f"{name} needs data without embedded columns; drop one of them.")


def check_consensus(model: BaseEstimator, X: Any) -> None:
    """Refuse numbers of runs, and starts, that cannot agree on anything."""
    if not check_count(model.consensus, "consensus", least=0):
        return
    if model.consensus == 1:
        raise ValueError("consensus must be 2 or larger, or 0: one run agrees with itself.")
    if not isinstance(model.init, str) or model.init not in ("auto", "random"):
        raise ValueError("consensus needs starts that differ; init must be 'auto' or 'random'.")
    if isinstance(X, Elsewhere):
        raise ValueError("consensus needs X in memory, and not rows on disk or on a cluster.")


def check_training_data(estimator: BaseEstimator, X: Samples | Elsewhere) -> Data | Elsewhere:
    """Return the X of a fit as trusted data that is not all zero."""
    X = check_data(estimator, X, reset=True)
    if not isinstance(X, Elsewhere):
        signs = getattr(estimator, "embedded", 0) != 0
        (check_signed if signs else check_mass)(X, type(estimator).__name__)
    return X


class Counted(NamedTuple):
    """The rows that count: data, labels, weights (None for all alike), and which rows they are."""

    X: Data | Elsewhere
    y: Any
    weights: Array | None
    rows: NDArray[np.intp] | None

    @classmethod
    def of(
        cls, X: Data | Elsewhere, y: Any, sample_weight: ArrayLike | None, name: str | None
    ) -> Counted:
        """Leave out rows of weight 0, as if they had not been given.

        With a ``name``, for the message, what is left must not be all zero; a batch may be.
        """
        if sample_weight is None:
            return cls(X, y, None, None)
        if isinstance(X, Elsewhere):
            raise ValueError(
                "sample_weight needs X in memory, and not rows on disk or on a cluster."
            )
        weights = check_weights(sample_weight, "sample_weight", X.shape[0])
        rows = np.flatnonzero(weights)
        if len(rows) == len(weights):
            return cls(X, y, None if (weights == 1).all() else weights, None)
        if y is not None:
            check_consistent_length(X, y)
            y = _safe_indexing(y, rows)
        X = X[rows]
        if name is not None:
            check_mass(X, name)
        counted = cls.of(X, y, weights[rows], name)
        return counted._replace(rows=rows)

    def of_rows(self, values: Any) -> Any:
        """Return what belongs to these rows of values (n,) for all rows, if there are any."""
        return values if values is None or self.rows is None else values[self.rows]

    def run(self, run: RunSpec) -> RunSpec:
        """Return how these rows are factorized, from their part of a start that was given."""
        if self.rows is None or isinstance(run.init, str):
            return run
        return replace(run, init=(np.asarray(run.init[0])[self.rows], run.init[1]))


def column_names(estimator: BaseEstimator) -> NDArray[Any] | None:
    """Return the names of the columns of a fit, where they are known."""
    return getattr(estimator, "feature_names_in_", None)
