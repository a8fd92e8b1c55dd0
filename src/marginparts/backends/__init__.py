"""Where the arithmetic happens: two kernels, and nothing above them knows which backend runs.

For a matrix ``X`` (n, d) and factors ``A`` (n, r), ``B`` (d, r) a backend computes

    ratio_matmul(X, A, B)   (X / (A @ B.T)) @ B over the nonzeros of X          -> (n, r)
    divergence(X, A, B)     sum of x log(x / a.b) - x + a.b  (eq. 2)            -> float

The other factor's update is the same kernel on the transposed data, ``ratio_matmul(X.T, B, A)``.
`Backend` in ``base.py`` builds all else on them; a backend overrides what it can do faster: the
update fused into one pass, say, or coordinate descent in its place. See ``docs/backends.md``.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from marginparts._types import Data
from marginparts.backends.base import Also, Backend, Known, Plus, Shared

__all__ = [
    "Also",
    "Backend",
    "Known",
    "Plus",
    "Shared",
    "backend_at_hand",
    "enough_memory",
    "get_backend",
    "has_gpu",
    "work_of",
]

logger = logging.getLogger("marginparts")


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
    if not isinstance(name, str) and hasattr(name, "prepare"):
        return name
    if name == "auto":
        name = "torch" if work >= _GPU_PAYS and has_gpu() else "numba"
        logger.info("backend %s (for 'auto', %.1e multiplications a pass)", name, work)
    if name in ("torch", "torch-half"):
        return _torch_backend(half=name == "torch-half")
    if name == "numba":
        from marginparts._compiled import check_threads
        from marginparts.backends.cpu.backend import NumbaBackend

        check_threads()
        return NumbaBackend()
    if name == "reference":
        from marginparts.backends.reference import ReferenceBackend

        return ReferenceBackend()
    raise ValueError(
        f"backend={name!r} is unknown; choose 'auto', 'numba', 'torch', 'torch-half' or "
        "'reference'."
    )


def backend_at_hand(name: str | Backend, work: int) -> Backend:
    """Return a backend for the codes of new samples: that of the CPU where there is no GPU.

    A model that was fitted on a GPU may be used on a machine without one.
    """
    if name in ("torch", "torch-half") and not has_gpu():
        logger.info("there is no GPU here, and codes are found on the CPU")
        name = "numba"
    return get_backend(name, work)


def work_of(X: Data, r: int) -> int:
    """Return the multiplications of one pass over the data."""
    return int(X.size if isinstance(X, np.ndarray) else X.nnz) * r


@contextmanager
def enough_memory(
    backend: str | Backend, instead: str = "rows on the disk (marginparts.open_rows)"
) -> Iterator[None]:
    """Say in a sentence that memory did not suffice; on a GPU that is an error of torch's own.

    ``instead`` is what else can hold such data.
    """
    try:
        yield
    except Exception as error:
        if not isinstance(error, MemoryError) and type(error).__name__ != "OutOfMemoryError":
            raise
        raise MemoryError(
            f"The memory of backend={getattr(backend, 'name', backend)!r} is full; end what else "
            "uses it and go on with the same call where there is a checkpoint, or take fewer "
            f"parts, float32, or {instead}."
        ) from error


def has_gpu() -> bool:
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
