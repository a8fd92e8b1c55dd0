"""How a run is made: its start, its solver, and what is asked of the factors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array

from marginparts._types import Array, Seed
from marginparts.backends import Backend, get_backend
from marginparts.backends.base import column_sums, safe_ratio
from marginparts.labels import Labels
from marginparts.losses.nmf_alpha import Penalty, Steering
from marginparts.rows.base import Rows
from marginparts.solve.gaps import MISSING, Gaps
from marginparts.solve.loop import SOLVERS
from marginparts.solve.scales import Scales
from marginparts.solve.start import start_from
from marginparts.validation import check_count, check_nonnegative, check_option, check_weights


@dataclass(frozen=True)
class RunSpec:
    """How a factorization is run; `NMFAlpha` says what the fields mean."""

    init: str | tuple[Array, Array] = "auto"
    solver: str = "auto"
    max_iter: int = 100
    tol: float = 1e-4
    backend: str | Backend = "auto"
    feature_weight: Any = None
    alpha_W: float = 0.0  # noqa: N815 - scikit-learn's names
    alpha_H: float | str = "same"  # noqa: N815
    l1_ratio: float = 0.0
    fixed: Any = None
    allowed: Any = None
    missing: str | None = None

    def __post_init__(self) -> None:
        check_nonnegative(self.alpha_W, "alpha_W")
        if self.alpha_H != "same":
            check_nonnegative(self.alpha_H, "alpha_H")
        if check_nonnegative(self.l1_ratio, "l1_ratio") > 1:
            raise ValueError(f"l1_ratio={self.l1_ratio!r} must be a number from 0 to 1.")
        check_count(self.max_iter, "max_iter")
        check_nonnegative(self.tol, "tol")
        check_option(self.solver, "solver", SOLVERS)
        if self.missing is not None:
            check_option(self.missing, "missing", MISSING)
        get_backend(self.backend)
        if self.feature_weight is not None:
            given = check_weights(self.feature_weight, "feature_weight")
            object.__setattr__(self, "feature_weight", given)

    @property
    def n_fixed(self) -> int:
        """The number of parts that stay as they are."""
        return 0 if self.fixed is None else len(self.fixed)

    def start(
        self, X: Rows, r: int, seed: Seed, labels: Labels | None = None
    ) -> tuple[Array, Array]:
        """Return the start of a fit: fixed parts first, and zeros where a part may not be."""
        k = self.n_fixed
        by_name = isinstance(self.init, str)
        H, V = start_from(self.init, X, r - k if by_name else r, seed, labels)
        if k:
            fixed = self.fixed.T.astype(X.dtype)
            if by_name:
                # a fixed part explains of each row what one of the others does on average
                share = H.mean(axis=1, keepdims=True) * column_sums(V).mean()
                H = np.hstack([share / column_sums(fixed), H]).astype(X.dtype)
            V = np.hstack([fixed, V if by_name else V[:, k:]])
        if self.allowed is not None:
            V = V.copy()
            V[:, k:] *= self.allowed.T[:, k:]
        return H, V

    def steering(
        self, shape: tuple[int, int], scales: Scales, gaps: Gaps | None = None
    ) -> Steering:
        """Return the penalties of scaled factors: rows count by their weights, columns too."""
        alphas = self.alpha_W, self.alpha_W if self.alpha_H == "same" else self.alpha_H
        sizes = [n if own is None else own.sum() for n, own in zip(shape, scales, strict=True)]
        H, V = (
            Penalty(self.l1_ratio * float(alpha) * float(size), self._squares(alpha, size, own))
            for alpha, size, own in zip(alphas, reversed(sizes), scales, strict=True)
        )
        return Steering(H, V, self.n_fixed, self.allowed is not None, gaps)

    def _squares(self, alpha: Any, size: Any, own: Array | None) -> Any:
        """Return the weight of squares: of each row, where they are those of a scaled factor."""
        l2 = (1 - self.l1_ratio) * float(alpha) * float(size)
        if own is None or not l2:
            return l2
        return l2 * safe_ratio(np.ones(len(own)), own.astype(np.float64))


def check_parts(run: RunSpec, X: Rows, r: int) -> RunSpec:
    """Return a run whose fixed parts and allowed features are arrays that fit the data."""
    d, fixed, allowed = X.shape[1], run.fixed, run.allowed
    if fixed is not None:
        fixed = check_array(fixed, dtype=X.dtype, input_name="fixed")
        if fixed.shape[1] != d or not 0 < len(fixed) < r:
            raise ValueError(
                f"fixed has shape {fixed.shape}; it must have {d} columns, and fewer rows than the "
                f"{r} parts of n_components."
            )
        if fixed.min() < 0 or not fixed.any(axis=1).all():
            raise ValueError("fixed must be 0 or larger, and no part may be zero.")
    if allowed is not None:
        allowed = np.asarray(allowed, dtype=bool)
        if allowed.shape != (r, d):
            raise ValueError(f"allowed has shape {allowed.shape}; it must be {(r, d)}.")
        nowhere = ~(allowed | (np.arange(r) < len(() if fixed is None else fixed))[:, None])
        if nowhere.all(axis=0).any():
            raise ValueError(
                f"Feature {int(nowhere.all(axis=0).argmax())} is allowed in no part; leave it out, "
                "or give it feature_weight 0."
            )
    return replace(run, fixed=fixed, allowed=allowed)
