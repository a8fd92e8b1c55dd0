"""What a backend is: two kernels, and defaults for everything that can be built on them.

The functions at the end are what all backends agree on to the last digit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from marginparts._types import Array, Data, Factor, Matrix, Operator, Step

if TYPE_CHECKING:
    from marginparts.backends.semi import SemiKernels
    from marginparts.losses.nmf_alpha import NMFAlphaProblem


class Also(NamedTuple):
    """A second matrix with the same rows as X: adds ``weight * ratio_matmul(X, A, B)``."""

    X: Matrix
    B: Array
    weight: float


class Plus(NamedTuple):
    """A further numerator, ``weight * S @ T`` with S (n, l) sparse and T (l, r)."""

    S: Operator
    T: Array
    weight: float


class Known(NamedTuple):
    """What is known of each row: the sum of B (d, r) over it is ``pattern @ blocks(B)``.

    ``gaps`` (n, d), where they are fewer, are what is not known: what they have of B may be taken
    from the sum of all, as far as that keeps its digits. Both are what `Backend.pattern` returns.
    """

    pattern: Any  # (n, q), of ones
    blocks: Callable[[Array], Array]  # of B (d, r): sums (q, r) of some of its rows
    gaps: Any = None

    def sums(self, B: Array) -> Array:
        """Return the sums of B (n, r)."""
        return np.asarray(self.pattern @ self.blocks(B))


class Shared(NamedTuple):
    """What `Backend.half_step_apart` is asked: charges of rows, and what holds sums of columns."""

    rows: Array  # (d,)
    mass: float
    sums: Array  # (r,), of the factor before the step
    l1: float
    l2: Any  # a number, or (d,)


class Backend(ABC):
    """Where the arithmetic happens. A new one writes the two kernels, and what it can do better.

    The defaults are NumPy on arrays: `reference` is a complete backend made of them. A backend
    whose prepared data or factors are no arrays overrides the methods that make and take them.
    """

    name = "unnamed"

    # ---- the two kernels

    @abstractmethod
    def ratio_matmul(self, X: Matrix, A: Array, B: Array) -> Any:
        """Return ``(X / (A @ B.T)) @ B`` over the nonzeros of X, skipping those with a.b = 0."""

    @abstractmethod
    def divergence(self, X: Matrix, A: Array, B: Array) -> float:
        """Return the I-divergence of X from ``A @ B.T`` (eq. 2), inf where x > 0 and a.b = 0."""

    # ---- data and factors as the kernels like them

    def prepare(self, X: Data, like: Matrix | None = None) -> Any:
        """Make trusted data (dense array or canonical CSR) ready for the kernels.

        Dense or sparse is decided here, and nowhere above; matrices that meet in one `half_step`
        are of one kind, that of ``like``. What is returned is a `Matrix`, and an `Operator` where
        models with a squared loss are to run on it.
        """
        return X

    def prepare_once(self, X: Data, like: Matrix) -> Any:
        """`prepare` a block of rows that serves a single pass."""
        return self.prepare(X, like)

    def coefficients(self, S: Data, rows_of: Matrix | None = None) -> Any:
        """Make a sparse matrix ready that is only multiplied with factors, it and its ``.T``.

        ``rows_of`` is the prepared matrix whose rows it shares, where it shares any.
        """
        return S

    def pattern(self, S: sp.csr_array) -> Any:
        """Make a sparse matrix of ones ready, which adds up rows of a factor: ``S @ B``."""
        return S

    def pattern_of(self, X: Matrix) -> Any:
        """Return the pattern of the nonzeros of prepared data."""
        return self.pattern(sp.csr_array(X).astype(bool).astype(np.int8))

    def factor(self, A: Array, rows_of: Matrix | None = None) -> Any:
        """Return a copy of a factor (n, r) as the kernels like it best, maybe with zero columns.

        ``rows_of`` is the prepared matrix whose rows it shares: a backend that keeps that one in
        blocks keeps the factor in the same.
        """
        return A.copy()

    def release(self, A: Array, r: int) -> Array:
        """Return a factor as a NumPy array (n, r) again."""
        return A

    # ---- the updates, built on the kernels

    def half_step(
        self, X: Matrix, A: Array, B: Array, den: Array, *, weight: Array | None = None,
        also: Also | None = None, plus: Plus | None = None, out: Array | None = None,
        gauge: bool = False,
    ) -> Step:  # fmt: skip
        """Return ``A * (ratio_matmul(X, A, B) + also + plus) / (weight[:, None] * den)``.

        ``den`` (r,) belongs to the columns and ``weight`` (n,) to the rows; 0 / 0 gives 0. The
        result may be written to ``out``, which may be A. With ``gauge`` the step has its violation.
        """
        return self.finish(A, self.numerator(X, A, B, also, plus), den, out, gauge, weight)

    def half_step_over(
        self, X: Matrix, A: Array, B: Array, den: Array, *, known: Known,
        weight: Array | None = None, also: Also | None = None, plus: Plus | None = None,
        out: Array | None = None, gauge: bool = False,
    ) -> Step:  # fmt: skip
        """`half_step` with ``weight[:, None] * den + known.sums(B)`` for a denominator.

        For backends that `can_shrink`.
        """
        numerator = self.numerator(X, A, B, also, plus)
        return multiplicative_step(A, numerator, full_denominator(den, weight, known, B), gauge)

    def log_terms(self, X: Matrix, A: Array, B: Array) -> float:
        """Return ``sum x log(x / a.b) - x``: the divergence less the sum of all a.b."""
        return self.divergence(X, A, B) - float(self.column_sums(A) @ self.column_sums(B))

    def numerator(
        self, X: Matrix, A: Array, B: Array, also: Also | None = None, plus: Plus | None = None
    ) -> Any:
        """Return ``ratio_matmul(X, A, B) + also + plus``, for updates that do not fuse them."""
        numerator = self.ratio_matmul(X, A, B)
        if also is not None:
            numerator = numerator + float(also.weight) * self.ratio_matmul(also.X, A, also.B)
        if plus is not None:
            numerator = numerator + float(plus.weight) * (plus.S @ plus.T)
        return numerator

    def finish(
        self, A: Array, numerator: Array, den: Array, out: Array | None = None, gauge: bool = False,
        weight: Array | None = None,
    ) -> Step:  # fmt: skip
        """Return ``A * numerator / (weight[:, None] * den)``: how every half-step ends."""
        rows = np.ones((len(A), 1)) if weight is None else weight[:, None]
        step = A * numerator * inverse_or_zero(den, A.dtype) / rows
        step = step.astype(A.dtype, copy=False)
        return gauged(step, *violation_of(A, numerator, rows * den)) if gauge else Step(step)

    #: Whether factors are arrays, so that steps can be shrunk and entries can have denominators.
    can_shrink = True

    def shrunk(
        self, step: Array, den: Array, weight: Array | None, l1: float, l2: Any,
        before: Array | None = None,
    ) -> Step:  # fmt: skip
        """Turn a step s of a factor into t with ``l2 t**2 + (u + l1) t = u s``, in its place.

        u is ``weight[:, None] * den``, or ``den`` (n, r) itself, and l2 a number or one for each
        row. With ``before``, the factor before the step, the step has its violation.
        """
        u = np.broadcast_to(den if weight is None else weight[:, None] * den, step.shape)
        a, l2 = u * step, np.reshape(l2, (-1, 1))
        half = (u + l1) / 2
        step[...] = safe_ratio(a, half + np.sqrt(half**2 + l2 * a))
        if before is None:
            return Step(step)
        numerator = safe_ratio(a, before)
        return gauged(step, *violation_of(before, numerator, u + l1 + l2 * before))

    def half_step_apart(
        self, X: Matrix, A: Array, B: Array, den: Array, *, asked: Shared, also: Also | None = None,
        plus: Plus | None = None, out: Array | None = None, gauge: bool = False,
    ) -> Step:  # fmt: skip
        """`half_step` with a charge for shared features. For backends that `can_shrink`.

        Of an entry v with the numerator G and ``g = G + mass / (its column's sum)``,
        ``u = den + l1`` and ``q = l2 v + rows (its row's sum - v)`` it returns t with
        ``q / v t**2 + u t = g v``.
        """
        g = self.numerator(X, A, B, also, plus)
        g = g + asked.mass * inverse_or_zero(asked.sums, np.float64)
        rest = A.sum(axis=1, keepdims=True) - A
        q = np.reshape(asked.l2, (-1, 1)) * A + asked.rows[:, None] * rest
        half = (den + asked.l1) / 2
        new = safe_ratio(A * g, half + np.sqrt(half**2 + q * g)).astype(A.dtype, copy=False)
        return gauged(new, *violation_of(A, g, den + asked.l1 + q)) if gauge else Step(new)

    def half_squares(self, A: Array, l2: Any) -> float:
        """Return ``sum_i l2_i / 2 * sum_k A_ik**2``."""
        squares = np.einsum("ik,ik->i", A, A, dtype=np.float64)
        return float(np.sum(l2 * squares)) / 2

    def overlap(self, A: Array, rows: Array) -> float:
        """Return ``sum_i rows_i sum_{k<l} A_ik A_il``."""
        A = A.astype(np.float64)
        return float(rows @ (A.sum(axis=1) ** 2 - np.einsum("ik,ik->i", A, A)) / 2)

    def entry_divergence(self, X: Array, A: Array, scale: Array) -> float:
        """Return the I-divergence of an array X from ``A * scale``, of the same shape."""
        seen, fit = X > 0, A.astype(np.float64) * scale
        if not fit[seen].all():
            return float("inf")
        more = fit[seen] / X[seen] - 1  # next to nothing where one is the other
        return float(np.sum(X[seen] * (more - np.log1p(more))) + fit[~seen].sum())

    def added(self, step: Array, A: Array, den: Array) -> Any:
        """Add ``A / den``, with 0 / 0 = 0, to a step in its place."""
        step += A / (den + (den == 0))
        return step

    def quotient(self, A: Array, B: Array) -> Any:
        """Return ``A / B`` entry by entry, and 0 where B is 0."""
        return safe_ratio(A, B)

    def total(self, parts: Iterable[Array]) -> Any:
        """Return the sum of factors of one shape, added up in float64 in their order."""
        parts = iter(parts)
        first = next(parts)
        total = first.astype(np.float64)
        for part in parts:
            total += part
        return total.astype(first.dtype, copy=False)

    def column_sums(self, A: Array) -> Any:
        """Return the sums over rows (r,) in float64."""
        return column_sums(A)

    def ahead(self, now: Array, before: Array, b: float, least: float) -> Any:
        """Return ``max(now + b * (now - before), least * now)``, maybe written over ``before``."""
        return moved_ahead(now, before, b, least)

    def ahead_and_sums(
        self, now: Array, before: Array, b: float, least: float
    ) -> tuple[Any, Array]:
        """Return what `ahead` returns, and its `column_sums`."""
        point = self.ahead(now, before, b, least)
        return point, self.column_sums(point)

    # ---- coordinate descent, where a backend has it

    def can_sweep(self, X: Matrix) -> bool:
        """Say whether there is a `sweep` for this matrix."""
        return False

    def sweep(
        self, X: Matrix, A: Array, B: Array, den: Array, *, sweeps: int = 1, settled: float = 0.0,
        lift: float = 0.0, weight: Array | None = None, also: Also | None = None,
        plus: Plus | None = None, out: Array | None = None, gauge: bool = False,
    ) -> Step:  # fmt: skip
        """Return A after coordinate descent on what `half_step` lowers, with its options.

        Each row is swept over ``sweeps`` times, or until no entry moves by more than the share
        ``settled`` of the row's mass. In rows with a ``plus``, entries below the share ``lift`` of
        the row's mass that should grow are lifted to it, which may raise the loss.
        """
        raise NotImplementedError(f"backend {self.name!r} has no coordinate descent")

    # ---- what happens around a run

    def suited_to(self, X: Data, r: int) -> Backend:
        """Return the backend for data of this size: one that streams it, where it is too large."""
        return self

    def semi(self) -> SemiKernels | None:
        """Return fast kernels for data of either sign, or None for those in NumPy."""
        return None

    def adapted(self, problem: NMFAlphaProblem) -> Any:
        """Return a problem as this backend wants it run: with updates recorded or repeated, say."""
        return problem

    @property
    def recovered(self) -> int:
        """How often rows of a factor were lost and computed again; only a cluster loses any."""
        return 0


@cache
def tiny(dtype: type | np.dtype[Any]) -> float:
    """Return the smallest a.b that counts as positive: the one epsilon of the package.

    Below it ``x / a.b`` could overflow. Such an entry cannot be explained (most often a word that
    never occurred in the training rows), and updates skip it.
    """
    return 1e-30 if dtype == np.float32 else 1e-290


def least_entry(dtype: type | np.dtype[Any]) -> float:
    """Return the smallest x whose missing fit counts; that of a smaller one is lost in rounding."""
    return 1e10 * tiny(dtype)


def column_sums(A: Array) -> Array:
    """Sums over rows, in float64 whatever the factor's type."""
    return np.asarray(A.sum(axis=0, dtype=np.float64))


def inverse_or_zero(den: Array, dtype: DTypeLike) -> Array:
    """Return ``1 / den``, and 0 where ``den`` is 0: a dead component stays dead, without a NaN.

    A sum below the smallest normal number of the factor's type counts as 0.
    """
    alive = den >= np.finfo(dtype).tiny
    return np.divide(1.0, den, out=np.zeros(len(den)), where=alive).astype(dtype)


def violation_of(A: Array, numerator: Array, denominator: Array) -> tuple[float, float]:
    """Return a factor's mass, and how far it is from optimal: 0 if no entry can lower the loss.

    An entry a with numerator G and denominator u is optimal if both its share ``a u`` of its row's
    mass ``M = sum a G`` and its slope ``(u - G) / max(u, G)`` are nonnegative and one of them is 0.
    A row counts by its mass, with its worst entry.
    """
    mass = np.sum(A * numerator, axis=1, dtype=np.float64, keepdims=True)
    larger = np.maximum(denominator, numerator)
    slope = np.divide(denominator - numerator, larger, out=np.zeros(A.shape), where=larger > 0)
    gap = np.abs(np.minimum(A * denominator, mass * slope))
    return float(mass.sum()), float(gap.max(axis=1, initial=0).sum())


def gauged(factor: Factor, mass: float, worst: float) -> Step:
    """Return a step with the violations of all rows as a share of their mass; 0 without any."""
    return Step(factor, float(worst / mass) if mass > 0 else 0.0, float(mass))


def full_denominator(den: Array, weight: Array | None, known: Known, B: Array) -> Array:
    """Return ``weight[:, None] * den + known.sums(B)`` (n, r)."""
    return np.asarray((den if weight is None else weight[:, None] * den) + known.sums(B))


def multiplicative_step(A: Array, numerator: Array, denominator: Array, gauge: bool) -> Step:
    """Return ``A * numerator / denominator``, with 0 / 0 = 0, as a step."""
    # in this order: a ratio to a denominator that all but vanished would be infinite
    new = safe_ratio(A * numerator, denominator)
    return gauged(new, *violation_of(A, numerator, denominator)) if gauge else Step(new)


def moved_ahead(now: Array, before: Array, b: float, least: float) -> Array:
    """Return ``max(now + b * (now - before), least * now)``."""
    dtype = now.dtype.type
    return np.maximum(now + dtype(b) * (now - before), dtype(least) * now)


def safe_ratio(numerator: Array, denominator: Array) -> Array:
    """Return ``numerator / denominator``, and 0 where the denominator is 0."""
    out = np.zeros(np.broadcast_shapes(numerator.shape, denominator.shape), numerator.dtype)
    return np.divide(numerator, denominator, out=out, where=denominator > 0)
