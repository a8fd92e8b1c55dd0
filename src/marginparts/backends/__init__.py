"""Where the arithmetic happens: two kernels, and nothing above them knows which backend runs.

For a matrix ``X`` (n, d) and factors ``A`` (n, r), ``B`` (d, r) a backend computes

    ratio_matmul(X, A, B)   (X / (A @ B.T)) @ B over the nonzeros of X          -> (n, r)
    divergence(X, A, B)     sum of x log(x / a.b) - x + a.b  (eq. 2)            -> float

The other factor's update is the same kernel on the transposed data, ``ratio_matmul(X.T, B, A)``.
`half_step` is the update built on the first kernel; a backend may fuse the two, so that no
temporary of the factor's size is needed. `sweep`, coordinate descent in place of that update, is
the one third kernel a backend may offer. See ``docs/backends.md``.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import sys
from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol, runtime_checkable

from marginparts._types import Array, Step

logger = logging.getLogger("marginparts")


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

    def coefficients(self, S: Any, rows_of: Any = None) -> Any:
        """Make a sparse matrix ready that is only multiplied with factors, it and its ``.T``.

        ``rows_of`` is the prepared matrix whose rows it shares, where it shares any.
        """
        ...

    def factor(self, A: Any, rows_of: Any = None) -> Any:
        """Return a copy of a factor (n, r) as the kernels like it best, maybe with zero columns.

        ``rows_of`` is the prepared matrix whose rows it shares: a backend that keeps that one in
        blocks keeps the factor in the same.
        """
        ...

    def release(self, A: Any, r: int) -> Array:
        """Return a factor as a NumPy array (n, r) again."""
        ...

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
        """Return the I-divergence of X from ``A @ B.T`` (eq. 2), inf where x > 0 and a.b = 0."""
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
        out: Array | None = None,
        gauge: bool = False,
    ) -> Step:
        """Return ``A * (ratio_matmul(X, A, B) + also + plus) / (weight[:, None] * den)``.

        ``den`` (r,) belongs to the columns and ``weight`` (n,) to the rows; 0 / 0 gives 0. The
        result may be written to ``out``, which may be A. With ``gauge`` its violation is told.
        """
        ...

    def finish(
        self, A: Array, numerator: Array, den: Array, out: Array | None = None, gauge: bool = False
    ) -> Step:
        """Return ``A * numerator / den``: how a half-step ends whose numerator is known."""
        ...

    def total(self, parts: Iterable[Array]) -> Array:
        """Return the sum of factors of one shape, added up in float64 and in their order."""
        ...

    def column_sums(self, A: Array) -> Array:
        """Return the sums over rows (r,) in float64."""
        ...

    def ahead(self, now: Array, before: Array, b: float, least: float) -> Array:
        """Return ``max(now + b * (now - before), least * now)``, maybe written over ``before``."""
        ...


@runtime_checkable
class SweepingBackend(Backend, Protocol):
    """A backend with the third kernel: coordinate descent in place of the half-step."""

    def can_sweep(self, X: Any) -> bool:
        """Say whether there is a `sweep` for this matrix."""
        ...

    def sweep(
        self,
        X: Any,
        A: Array,
        B: Array,
        den: Array,
        *,
        sweeps: int = 1,
        settled: float = 0.0,
        lift: float = 0.0,
        **options: Any,
    ) -> Step:
        """Return A after coordinate descent on what `half_step` lowers, with its ``options``.

        Each row is swept over ``sweeps`` times, or until no entry moves by more than the share
        ``settled`` of the row's mass. In rows with a ``plus``, entries below the share ``lift`` of
        the row's mass that should grow are lifted to it, which may raise the loss.
        """
        ...


#: Multiplications of one pass over the data (nonzeros times rank) from which a GPU pays.
_GPU_PAYS = 10**8


def get_backend(name: str | Backend = "auto", work: int = 0) -> Backend:
    """Return a backend by name; it is imported only now.

    Parameters
    ----------
    name : {"auto", "numba", "torch", "torch-half", "reference"} or Backend
        ``"auto"`` is the GPU where there is one and the work is large enough to pay, and the CPU
        otherwise; ``"torch-half"`` gathers numbers of half the width from sparse data; an object is
        taken as it is.
    work : int
        Nonzeros of the data times rank, for ``"auto"``.
    """
    if not isinstance(name, str):
        return name
    if name == "auto":
        name = "torch" if work >= _GPU_PAYS and _has_gpu() else "numba"
        logger.info("backend %s (for 'auto', %.1e multiplications a pass)", name, work)
    if name in ("torch", "torch-half"):
        return _torch_backend(half=name == "torch-half")
    if name == "numba":
        from marginparts.backends.cpu.backend import NumbaBackend

        return NumbaBackend()
    if name == "reference":
        from marginparts.backends.reference import ReferenceBackend

        return ReferenceBackend()
    raise ValueError(
        f"backend={name!r} is unknown; choose 'auto', 'numba', 'torch', 'torch-half' or "
        "'reference'."
    )


def _has_gpu() -> bool:
    """Whether torch sees a GPU. Torch is slow to import, so the driver is looked for first."""
    if "torch" not in sys.modules:
        driver = sys.platform == "win32" or os.path.exists("/dev/nvidiactl")
        if not driver or importlib.util.find_spec("torch") is None:
            return False
    import torch

    return bool(torch.cuda.is_available())


def _torch_backend(half: bool) -> Backend:
    try:
        import torch

        from marginparts.backends.gpu.backend import TorchBackend
    except ImportError as error:
        raise ImportError(
            "backend='torch' needs torch and triton: pip install 'marginparts[gpu]'."
        ) from error
    if not torch.cuda.is_available():
        raise ValueError("backend='torch' needs a GPU, and torch sees none; use 'numba'.")
    return TorchBackend(half=half)
