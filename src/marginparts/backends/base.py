"""What a backend is: two kernels, and defaults for everything that can be built on them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from marginparts._types import Array, Data, Matrix, Operator, Step
from marginparts.backends._common import column_sums, finished, moved_ahead, total_of

if TYPE_CHECKING:
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
        result may be written to ``out``, which may be A. With ``gauge`` its violation is told.
        """
        return finished(A, self.numerator(X, A, B, also, plus), den, weight, gauge)

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
        self, A: Array, numerator: Array, den: Array, out: Array | None = None, gauge: bool = False
    ) -> Step:
        """Return ``A * numerator / den``: how a half-step ends whose numerator is known."""
        return finished(A, numerator, den, gauge=gauge)

    def total(self, parts: Iterable[Array]) -> Any:
        """Return the sum of factors of one shape, added up in float64 and in their order."""
        return total_of(parts)

    def column_sums(self, A: Array) -> Any:
        """Return the sums over rows (r,) in float64."""
        return column_sums(A)

    def ahead(self, now: Array, before: Array, b: float, least: float) -> Any:
        """Return ``max(now + b * (now - before), least * now)``, maybe written over ``before``."""
        return moved_ahead(now, before, b, least)

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

    def adapted(self, problem: NMFAlphaProblem) -> Any:
        """Return a problem as this backend wants it run: with updates recorded or repeated, say."""
        return problem

    @property
    def recovered(self) -> int:
        """How often rows of a factor were lost and computed again; only a cluster loses any."""
        return 0


class WrappingBackend(Backend):
    """A backend around another one, which works on what is not in blocks.

    Parameters
    ----------
    inner : Backend
    """

    def __init__(self, inner: Backend) -> None:
        self.inner = inner

    def finish(
        self, A: Array, numerator: Array, den: Array, out: Array | None = None, gauge: bool = False
    ) -> Step:
        """Return ``A * numerator / den`` for a factor that is not in blocks."""
        return self.inner.finish(A, numerator, den, out, gauge)

    def total(self, parts: Iterable[Array]) -> Any:
        """Return the sum of factors that are not in blocks."""
        return self.inner.total(parts)
