"""Launching kernels quickly, one by one or recorded; types that torch and NumPy share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from torch import Tensor

from marginparts._types import Step

if TYPE_CHECKING:
    from marginparts.losses.nmf_alpha import NMFAlphaProblem

TORCH: dict[Any, Any] = {np.dtype(np.float32): torch.float32, np.dtype(np.float64): torch.float64}
NUMPY: dict[Any, Any] = {kind: dtype for dtype, kind in TORCH.items()}


def half_width(A: Tensor) -> torch.dtype:
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
    kinds = tuple(a.dtype if isinstance(a, Tensor) else type(a) is int and a for a in args)
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


#: How often an update occurs before it is recorded.
_WORTH_RECORDING = 3


class Recorded:
    """A problem whose updates are recorded as CUDA graphs, and from then on replayed.

    An update is a dozen launches, which take the host longer than a small problem takes the card.
    A run writes its factors to the same few arrays over and over, so each combination of them is
    recorded when it has occurred a few times: a recording is worth several updates, and the first
    one compiles kernels and moves data. An update that is gauged, or has no place to be written
    to, runs as it is.
    """

    def __init__(self, problem: NMFAlphaProblem) -> None:
        self.problem = problem
        self.seen: Counter[Any] = Counter()
        self.graphs: dict[Any, Any] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.problem, name)

    def update(
        self, state: dict[str, Tensor], block: str, out: Tensor | None = None, gauge: bool = False
    ) -> Step:
        """Return the update of the problem."""
        if gauge or out is None:
            return self._plain(state, block, out, gauge)
        places = tuple(state[name].data_ptr() for name in self.problem.blocks)
        key = (block, places, out.data_ptr(), self.problem.lam)
        self.seen[key] += 1
        if self.seen[key] <= _WORTH_RECORDING:
            return self._plain(state, block, out, gauge)
        if key not in self.graphs:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                self._plain(state, block, out, gauge)
            self.graphs[key] = graph
        self.graphs[key].replay()
        return Step(out)

    def _plain(self, state: dict[str, Tensor], block: str, out: Tensor | None, gauge: bool) -> Step:
        found: Step = self.problem.update(state, block, out=out, gauge=gauge)
        if out is not None and found.factor is not out:
            out.copy_(found.factor)
        return found
