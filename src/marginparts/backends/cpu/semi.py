"""Semi-NMF on CPUs: BLAS for the products, compiled sweeps."""

from __future__ import annotations

import numpy as np

from marginparts._compiled import check_threads
from marginparts._types import Array, Data, Step
from marginparts.backends.cpu.semi_sweeps import LINES, lanes, sweep_rows
from marginparts.backends.semi import SETTLED, SemiKernels, violated


class NumbaSemiKernels(SemiKernels):
    """The same with sweeps over many samples at a time."""

    name = "numba"

    def swept(
        self, H: Array, XV: Array, gram: Array, out: Array | None = None, gauge: bool = False
    ) -> Step:
        """Return H after each entry of a row in turn went to its optimum."""
        new = np.empty_like(H) if out is None else out
        told = np.zeros((-(-len(H) // lanes(H.dtype)) if gauge else 0, 2))
        _sweep(H, XV, gram, 1, new, told)
        return violated(new, *told.sum(axis=0).tolist()) if gauge else Step(new)

    def _settled(self, X: Data, V: Array, gram: Array, sweeps: int, inverse: Array | None) -> Array:
        XV = np.ascontiguousarray(X @ V, dtype=V.dtype)
        H = self._start(XV, gram, inverse)
        _sweep(H, XV, gram, sweeps, H, np.zeros((0, 2)))
        return H


def _sweep(H: Array, XV: Array, gram: Array, sweeps: int, out: Array, told: Array) -> None:
    check_threads()
    settled = H.dtype.type(SETTLED)
    sweep_rows(H, XV, gram, sweeps, settled, LINES, lanes(H.dtype), out, told)
