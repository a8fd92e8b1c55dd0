"""How a run is made: its start, its solver, weights of rows and columns, what is asked of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_array

from marginparts._types import Array, Data, Result, Seed
from marginparts.backends import Backend, get_backend
from marginparts.backends.base import column_sums, safe_ratio
from marginparts.labels import Labels
from marginparts.losses.nmf_alpha import Apart, Penalty, Prior, Steering
from marginparts.rows.base import Elsewhere, OutOfCore, Rows
from marginparts.solve.gaps import MISSING, Gaps, Missing
from marginparts.solve.loop import SOLVERS
from marginparts.solve.prior import given_parts, prior_parts, pseudo_counts
from marginparts.solve.start import prior_start, start_from
from marginparts.validation import (
    check_count,
    check_nonnegative,
    check_option,
    check_weights,
    seed_of,
)


class Scales(NamedTuple):
    """What rows (n,) and columns (d,) are multiplied with, None for nothing; rows are positive.

    The I-divergence is homogeneous, ``w * D(x, y) = D(w * x, w * y)``, so the weighted loss
    ``sum_ij w_i f_j D(x_ij, (H V')_ij)`` is that of the data ``diag(w) X diag(f)`` with the factors
    ``diag(w) H`` and ``diag(f) V``. Weights cost one scaled copy of the data, and no kernel knows
    of them.
    """

    rows: Array | None = None
    columns: Array | None = None

    @classmethod
    def of(cls, X: Rows, rows: Array | None, columns: Array | None = None) -> Scales:
        """Return scales in the type of the data; data that is not in memory has none."""
        given = [None if own is None else own.astype(X.dtype) for own in (rows, columns)]
        if isinstance(X, OutOfCore) and any(own is not None for own in given):
            raise ValueError("Weights need X in memory, and not rows on disk or on a cluster.")
        return cls(*given)

    @property
    def are_one(self) -> bool:
        """Whether they change nothing."""
        return self.rows is None and self.columns is None

    def data(self, X: Any) -> Any:
        """Return ``diag(rows) X diag(columns)``; without scales it is X itself."""
        if self.are_one:
            return X
        rows = np.ones(X.shape[0], X.dtype) if self.rows is None else self.rows
        columns = np.ones(X.shape[1], X.dtype) if self.columns is None else self.columns
        if isinstance(X, np.ndarray):
            scaled = X * rows[:, None]
            scaled *= columns
            return scaled
        values = X.data * np.repeat(rows, np.diff(X.indptr))
        values *= columns[X.indices]
        scaled = sp.csr_array((values, X.indices, X.indptr), shape=X.shape)
        if not values.all():  # stored zeros are left out, in arrays of their own
            scaled = scaled.copy()
            scaled.eliminate_zeros()
        return scaled

    def column_masses(self, X: Any) -> Array:
        """Return the sums of the columns (d,) of the scaled data."""
        rows = np.ones(X.shape[0]) if self.rows is None else self.rows.astype(np.float64)
        sums = np.asarray(X.T @ rows).ravel()
        return sums if self.columns is None else sums * self.columns

    def start(self, H: Array, V: Array) -> tuple[Array, Array]:
        """Return the factors of the scaled data."""
        H = H if self.rows is None else H * self.rows[:, None]
        return H, V if self.columns is None else V * self.columns[:, None]

    def margins(self, S: Data | None) -> Data | None:
        """Return the S whose margin components of the scaled rows are those of the rows."""
        if S is None or self.rows is None:
            return S
        return sp.csr_array(sp.diags_array(1 / self.rows) @ S).astype(S.dtype)

    def back(self, result: Result) -> Result:
        """Return the factors and margin components of the data as it was."""
        H, V, XS = result.H, result.V, result.XS
        if self.rows is not None:
            H = H / self.rows[:, None]
        if self.columns is not None:
            V = safe_ratio(V, self.columns[:, None])
            if XS is not None:
                inverse = safe_ratio(np.ones_like(self.columns), self.columns)
                XS = Scales(columns=inverse).data(XS)
        return replace(result, H=H, V=V, XS=XS)


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
    prior: Any = None
    strength: float = 1.0
    exclusivity: float = 0.0
    missing: Missing = None

    def __post_init__(self) -> None:
        check_nonnegative(self.alpha_W, "alpha_W")
        if self.alpha_H != "same":
            check_nonnegative(self.alpha_H, "alpha_H")
        if check_nonnegative(self.l1_ratio, "l1_ratio") > 1:
            raise ValueError(f"l1_ratio={self.l1_ratio!r} must be a number from 0 to 1.")
        check_nonnegative(self.strength, "strength")
        check_nonnegative(self.exclusivity, "exclusivity")
        check_count(self.max_iter, "max_iter")
        check_nonnegative(self.tol, "tol")
        check_option(self.solver, "solver", SOLVERS)
        if self.missing is not None:
            if not isinstance(self.missing, Gaps):
                check_option(self.missing, "missing", MISSING)
            if self.prior is not None or self.exclusivity:
                raise ValueError("A prior and exclusivity need data without gaps; drop missing.")
        get_backend(self.backend)
        if self.feature_weight is not None:
            given = check_weights(self.feature_weight, "feature_weight")
            object.__setattr__(self, "feature_weight", given)

    @property
    def n_fixed(self) -> int:
        """The number of parts that stay as they are."""
        return 0 if self.fixed is None else len(self.fixed)

    @property
    def carried(self) -> Array | None:
        """The parts (m, d) of a prior that has any strength."""
        return None if self.prior is None or not self.strength else self.prior

    def start(
        self, X: Rows, r: int, seed: Seed, labels: Labels | None = None
    ) -> tuple[Array, Array]:
        """Return the start of a fit: fixed parts first, then those with a prior.

        There are zeros where a part may not be.
        """
        k, by_name, m = self.n_fixed, isinstance(self.init, str), self._n_carried
        H, V = start_from(self.init, X, max(r - k - m, 1) if by_name else r, seed, labels)
        known = [] if self.fixed is None else [self.fixed.T.astype(X.dtype)]
        if self.carried is not None:
            begun = prior_start(self.carried, X, seed_of(seed))
            known.append(
                begun if by_name else np.where(V[:, k : k + m] > 0, V[:, k : k + m], begun)
            )
        if known and by_name:
            # such a part explains of each row what one of the others does on average
            share = H.mean(axis=1, keepdims=True) * column_sums(V).mean()
            first = np.hstack(known)
            H = np.hstack([share / column_sums(first), H])[:, :r].astype(X.dtype)
            V = np.hstack([first, V])[:, :r]
        elif known:
            V = np.hstack([*known, V[:, k + m :]])
        if self.allowed is not None:
            V = V.copy()
            V[:, k:] *= self.allowed.T[:, k:]
        if self.exclusivity:  # parts that sum to one, near which it holds them
            counted = V if self.feature_weight is None else V * self.feature_weight[:, None]
            sums = np.where(np.arange(r) < k, 1, column_sums(counted)).astype(V.dtype)
            H, V = H * sums, safe_ratio(V, sums[None])
        return H, V

    @property
    def _n_carried(self) -> int:
        return 0 if self.carried is None else len(self.carried)

    def steering(self, X: Rows, r: int, scales: Scales, gaps: Gaps | None = None) -> Steering:
        """Return the penalties of scaled factors: rows count by their weights, columns too."""
        alphas = self.alpha_W, self.alpha_W if self.alpha_H == "same" else self.alpha_H
        sizes = [n if own is None else own.sum() for n, own in zip(X.shape, scales, strict=True)]
        H, V = (
            Penalty(self.l1_ratio * float(alpha) * float(size), self._squares(alpha, size, own))
            for alpha, size, own in zip(alphas, reversed(sizes), scales, strict=True)
        )
        steering = Steering(H, V, self.n_fixed, self.allowed is not None, gaps)
        if self.carried is None and not self.exclusivity:
            return steering
        masses = scales.column_masses(X)
        prior = self._pseudo_counts(float(masses.sum()), r, scales)
        return steering._replace(prior=prior, apart=self._apart(masses, r))

    def _apart(self, masses: Array, r: int) -> Apart | None:
        """Return the charge for shared features, from the data's masses (d,).

        Two parts like the mean of the data share 1. With exclusivity 1 the mean over all pairs is
        charged like the whole mass of the data.
        """
        if not self.exclusivity or r < 2:
            return None
        mass = float(masses.sum())
        pairs = r * (r - 1) / 2
        rows = safe_ratio(np.full(len(masses), self.exclusivity * mass**2 / pairs), masses)
        return Apart(rows, mass / r, mass / r)

    def _pseudo_counts(self, mass: float, r: int, scales: Scales) -> Prior | None:
        """Return the prior of scaled parts: with strength 1 all r would have the data's mass."""
        if self.carried is None:
            return None
        parts, k = self.carried, self.n_fixed
        if self.allowed is not None:
            parts = parts * self.allowed[k : k + len(parts)]
        if scales.columns is not None:
            parts = parts * scales.columns
        return pseudo_counts(parts, k, r, self.strength * mass / r)

    def _squares(self, alpha: Any, size: Any, own: Array | None) -> Any:
        """Return the weight of squares: of each row, where they are those of a scaled factor."""
        l2 = (1 - self.l1_ratio) * float(alpha) * float(size)
        if own is None or not l2:
            return l2
        return l2 * safe_ratio(np.ones(len(own)), own.astype(np.float64))


def check_parts(run: RunSpec, X: Rows, r: int, names: ArrayLike | None = None) -> RunSpec:
    """Return a run whose fixed parts, prior and allowed features are arrays that fit the data.

    ``names`` are those of the columns, where they are known.
    """
    d, fixed, allowed, prior = X.shape[1], run.fixed, run.allowed, run.prior
    if fixed is not None:
        try:
            fixed = given_parts(fixed, "fixed", names)
            fixed = check_array(fixed, dtype=X.dtype, input_name="fixed")
        except (TypeError, ValueError) as error:
            if isinstance(error, ValueError) and "could not convert" not in str(error):
                raise
            raise ValueError(f"fixed must be an array of parts with {d} columns.") from None
        if fixed.shape[1] != d or not 0 < len(fixed) < r:
            raise ValueError(
                f"fixed has shape {fixed.shape}; it must have {d} columns, and fewer rows than the "
                f"{r} parts of n_components."
            )
        if fixed.min() < 0 or not fixed.any(axis=1).all():
            raise ValueError("fixed must be 0 or larger, and no part may be zero.")
    if (prior is not None or run.exclusivity) and isinstance(X, Elsewhere):
        raise ValueError(
            "A prior and exclusivity need X in memory, and not rows on disk or on a cluster."
        )
    if prior is not None:
        prior = prior_parts(prior, X.dtype, d, names)
        free = r - (0 if fixed is None else len(fixed))
        if len(prior) > free:
            raise ValueError(
                f"prior has {len(prior)} parts, and n_components leaves room for {free}; raise it, "
                "or give fewer."
            )
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
    return replace(run, fixed=fixed, allowed=allowed, prior=prior)
