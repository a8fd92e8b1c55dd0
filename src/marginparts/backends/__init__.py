"""Where the arithmetic happens: two kernels, and nothing above them knows which backend runs.

For a matrix ``X`` (n, d) and factors ``A`` (n, r), ``B`` (d, r) a backend computes

    ratio_matmul(X, A, B)   (X / (A @ B.T)) @ B over the nonzeros of X          -> (n, r)
    divergence(X, A, B)     sum of x log(x / a.b) - x + a.b  (eq. 2)            -> float

The other factor's update is the same kernel on the transposed data, ``ratio_matmul(X.T, B, A)``.
A third function, `half_step`, is the update built on the first kernel; a backend may fuse the two,
so that no temporary of the factor's size is needed. See ``docs/backends.md``.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from marginparts._types import Array


class Matrix(Protocol):
    """Data made ready by a backend: it has a transpose and can be multiplied with a factor."""

    shape: tuple[int, ...]

    @property
    def T(self) -> Any:
        """The transpose, at no cost."""
        ...

    def __matmul__(self, B: Array) -> Array: ...


class Also(NamedTuple):
    """A second matrix with the same rows as X: adds ``weight * ratio_matmul(X, A, B)``."""

    X: Any
    B: Array
    weight: float


class Plus(NamedTuple):
    """A further numerator, ``weight * S @ T`` with S (n, l) sparse and T (l, r)."""

    S: Any
    T: Array
    weight: float


class Backend(Protocol):
    """What a backend offers; `reference` is the shortest complete one."""

    name: str

    def prepare(self, X: Any, like: Any = None) -> Any:
        """Make trusted data (dense array or canonical CSR) ready for the kernels.

        Dense or sparse is decided here, and nowhere above; matrices that meet in one `half_step`
        are of one kind, that of ``like``.
        """
        ...

    def ratio_matmul(self, X: Any, A: Array, B: Array) -> Array:
        """Return ``(X / (A @ B.T)) @ B`` over the nonzeros of X, skipping those with a.b = 0."""
        ...

    def divergence(self, X: Any, A: Array, B: Array) -> float:
        """Return the I-divergence of X from ``A @ B.T`` (eq. 2), skipping entries with a.b = 0."""
        ...

    def half_step(
        self,
        X: Any,
        A: Array,
        B: Array,
        den: Array,
        *,
        weight: Array | None = None,
        also: Also | None = None,
        plus: Plus | None = None,
    ) -> Array:
        """Return ``A * (ratio_matmul(X, A, B) + also + plus) / (weight[:, None] * den)``.

        ``den`` (r,) belongs to the columns and ``weight`` (n,) to the rows; 0 / 0 gives 0.
        """
        ...


def get_backend(name: str | Backend = "auto") -> Backend:
    """Return a backend by name; it is imported only now.

    Parameters
    ----------
    name : {"auto", "numba", "reference"} or Backend
        ``"auto"`` picks the fastest one that fits this machine; an object is taken as it is.
    """
    if not isinstance(name, str):
        return name
    if name in ("auto", "numba"):
        from marginparts.backends import numba_cpu

        return numba_cpu.NumbaBackend()
    if name == "reference":
        from marginparts.backends import reference

        return reference.ReferenceBackend()
    raise ValueError(f"backend={name!r} is unknown; choose 'auto', 'numba' or 'reference'.")
