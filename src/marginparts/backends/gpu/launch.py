"""Launching kernels with little ado, and the types that torch and NumPy share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import torch

TORCH: dict[Any, Any] = {np.dtype(np.float32): torch.float32, np.dtype(np.float64): torch.float64}
NUMPY: dict[Any, Any] = {kind: dtype for dtype, kind in TORCH.items()}


def half_width(A: torch.Tensor) -> torch.dtype:
    """Return the type of half the width: on a CPU one that Triton's interpreter can multiply."""
    return torch.bfloat16 if A.is_cuda else torch.float16


class Kernel(Protocol):
    """A function compiled by Triton: ``kernel[grid](*args, **constants)``."""

    arg_names: list[str]

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., Any]: ...


#: Kernels as they were compiled for arguments of some kinds.
_compiled: dict[Any, tuple[Any, list[Any]]] = {}


def launch(
    kernel: Kernel, grid: tuple[int, ...], args: tuple[Any, ...], flags: dict[str, Any]
) -> None:
    """Launch a kernel; from the second time on without asking which version of it fits.

    Triton looks at every argument of every launch, which takes longer than a small kernel. What it
    would find is known here: types and whole numbers are in the key, and all arrays are aligned.
    """
    kinds = tuple(a.dtype if isinstance(a, torch.Tensor) else type(a) is int and a for a in args)
    key = (kernel, args[0].device, kinds, tuple(flags.values()))
    found = _compiled.get(key)
    if found is None:
        compiled = kernel[grid](*args, **flags)
        if compiled is not None:  # the interpreter compiles nothing
            constants = [flags[name] for name in kernel.arg_names[len(args) :]]
            _compiled[key] = compiled, constants
        return
    compiled, constants = found
    compiled[(*grid, 1, 1)[:3]](*args, *constants)
