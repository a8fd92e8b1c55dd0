"""Updates recorded as CUDA graphs."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from marginparts._types import Step

if TYPE_CHECKING:
    from marginparts.losses.nmf_alpha import NMFAlphaProblem

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
