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
from marginparts.labels import Labels, encode_labels
from marginparts.rows.base import Elsewhere, OutOfCore, at_hand
from marginparts.rows.dask import as_dask_rows
from marginparts.solve.run_spec import RunSpec
from marginparts.svm.class_weights import ClassWeight, check_class_weight
from marginparts.validation import (
    DTYPES,
    canonical,
    check_count,
    check_mass,
    check_signed,
    check_signs,
    check_weights,
    has_signs,
    is_dask,
    on_the_host,
    plain_words,
    seed_of,
)

#: Entries of dense data that are looked at at a time.
_AT_ONCE = 1 << 22


class FitInputs(NamedTuple):
    """What a fit begins with: its data, its seed, and its checkpoint where it has one."""

    X: Data | OutOfCore
    seed: int
    logbook: Logbook | None


@contextmanager
def spoken(verbose: bool | int) -> Iterator[None]:
    """Show what the package logs on the standard output while something lasts."""
    if not isinstance(verbose, Integral | bool | np.bool_):
        raise ValueError(f"verbose={verbose!r} must be 0, 1 or 2.")
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
    with plain_words(signs=getattr(estimator, "embedded", 0) != 0):
        return validate_data(
            estimator, on_the_host(X), accept_sparse="csr", dtype=DTYPES, order="C", reset=reset,
            ensure_all_finite=finite,
        )  # fmt: skip


def check_data(
    estimator: BaseEstimator, X: Samples | Elsewhere, *, reset: bool
) -> Data | Elsewhere:
    """Return X as trusted data in canonical form; rows elsewhere are checked when they are read.

    With ``reset`` the number of features is stored, without it compared.
    """
    X = _checked(estimator, X, reset=reset)
    return X if isinstance(X, Elsewhere) else canonical(X)


def _checked(estimator: BaseEstimator, X: Samples | Elsewhere, *, reset: bool) -> Data | Elsewhere:
    """`check_data`, as X is stored: without a copy of it, if it has the right type."""
    X = as_dask_rows(X) if is_dask(X) else X
    name, signs = type(estimator).__name__, getattr(estimator, "embedded", 0) != 0
    if not isinstance(X, Elsewhere):
        X = validated(estimator, X, reset=reset)
        if not signs:
            check_signs(X, name)
        else:
            _check_words(X, embedded_columns(estimator, X.shape[1]), name)
        return X
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


def _check_words(X: Data, embedded: int, name: str) -> None:
    """Refuse entries below zero outside the embedded columns, which are the last ones."""
    first = X.shape[1] - embedded
    if first and has_signs(X[:, :first]):
        raise ValueError(
            f"Negative values in the first {first} columns of the data passed to {name}: with "
            f"embedded={embedded} only the last {embedded} may have them, so put the embedding "
            "last, or correct embedded."
        )


def embedded_columns(estimator: BaseEstimator, d: int) -> int:
    """Return how many of the last columns may have either sign."""
    value = getattr(estimator, "embedded", 0)
    if isinstance(value, str) and value == "all":
        return d
    if isinstance(value, str):
        raise ValueError(f"embedded={value!r} is unknown; it is a number of columns, or 'all'.")
    if check_count(value, "embedded", least=0) > d:
        raise ValueError(f"embedded={value!r} is more than the {d} columns of X.")
    return int(value)


def check_training_data(estimator: BaseEstimator, X: Samples | Elsewhere) -> Data | Elsewhere:
    """Return the X of a fit as trusted data in canonical form that is not all zero."""
    X = check_training_rows(estimator, X)
    return X if isinstance(X, Elsewhere) else canonical(X)


def check_training_rows(estimator: BaseEstimator, X: Samples | Elsewhere) -> Data | Elsewhere:
    """`check_training_data`, as X is stored: rows may be left out before it is copied."""
    X = _checked(estimator, X, reset=True)
    if not isinstance(X, Elsewhere):
        _check_size(X, type(estimator).__name__, embedded_columns(estimator, X.shape[1]))
    return X


def _check_size(X: Data, name: str, embedded: int) -> None:
    """Refuse data that is all zero or leaves the range; the last columns may be of either sign."""
    if embedded:
        check_signed(X, name, embedded)
    else:
        check_mass(X, name)


class Counted(NamedTuple):
    """The rows that count: data, labels, weights (None for all alike), and which rows they are."""

    X: Data | Elsewhere
    y: Any
    weights: Array | None
    rows: NDArray[np.intp] | None

    @classmethod
    def of(
        cls, X: Data | Elsewhere, y: Any, sample_weight: ArrayLike | None, name: str | None,
        embedded: int = 0,
    ) -> Counted:  # fmt: skip
        """Leave out rows of weight 0, as if they had not been given.

        With a ``name``, for the message, what is left must not be all zero; a batch may be. The
        last columns, the ``embedded`` ones, may have either sign.
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
            _check_size(X, name, embedded)
        counted = cls.of(X, y, weights[rows], name)
        return counted._replace(rows=rows)

    @property
    def may_repeat(self) -> bool:
        """Whether rows in memory have weights, or half of them may be repeats (`_repeats`).

        Rows whose sums, with random weights of the columns, differ clearly are not the same: that
        costs next to nothing.
        """
        if isinstance(self.X, Elsewhere):
            return False
        if self.weights is not None:
            return True
        n, d = self.X.shape
        drawn = np.random.default_rng(0).random(d)
        # some rows at a time: the product of float32 with float64 copies what it is given
        step = max(_AT_ONCE // d, 1) if isinstance(self.X, np.ndarray) else n
        parts = [self.X[first : first + step] @ drawn for first in range(0, n, step)]
        sums = np.concatenate(parts).astype(np.float64)
        with np.errstate(all="ignore"):  # NaN in gaps, and sums out of range
            scale = np.max(np.abs(sums), initial=0.0, where=np.isfinite(sums)) or 1.0
            return bool(2 * len(np.unique(np.round(sums / scale, 7))) <= n)

    def drawn(self, labels: Labels, most: int | None) -> tuple[Counted, Labels]:
        """Return the labeled rows and a draw of the others where those are more than ``most``.

        The draw depends on nothing but their number: a fit that is resumed has the same rows.
        """
        others = np.flatnonzero(~labels.labeled)
        if most is None or isinstance(self.X, Elsewhere) or len(others) <= most:
            return self, labels
        some = np.random.default_rng(0).choice(others, most, replace=False)
        rows = np.sort(np.append(np.flatnonzero(labels.labeled), some))
        X, weights = self.X[rows], None if self.weights is None else self.weights[rows]
        given = rows if self.rows is None else self.rows[rows]
        return Counted(X, None, weights, given), labels.take(rows)

    def in_form(self) -> Counted:
        """Return the same with data in canonical form."""
        return self if isinstance(self.X, Elsewhere) else self._replace(X=canonical(self.X))

    def of_rows(self, values: Any) -> Any:
        """Return what belongs to these rows of values (n,) for all rows, if there are any."""
        return values if values is None or self.rows is None else values[self.rows]

    def run(self, run: RunSpec) -> RunSpec:
        """Return how these rows are factorized, from their part of a start that was given."""
        if self.rows is None or isinstance(run.init, str):
            return run
        return replace(run, init=(np.asarray(run.init[0])[self.rows], run.init[1]))


def fit_labels(y: Any, n: int, class_weight: ClassWeight, weights: Array | None) -> Labels | None:
    """Return the labels of n rows that have weights (n,), if there are any."""
    if y is None:
        return None
    labels = encode_labels(y, n)
    check_class_weight(class_weight, labels)
    return replace(labels, weights=weights)


def column_names(estimator: BaseEstimator) -> NDArray[Any] | None:
    """Return the names of the columns of a fit, where they are known."""
    return getattr(estimator, "feature_names_in_", None)
