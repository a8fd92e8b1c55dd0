"""Semi-NMF on a GPU: matrix products in torch, and a sweep in one kernel.

H and ``X V`` are tensors (n, r) whose columns lie in one piece: a sample's codes are far apart, but
those of neighbors lie side by side. What decides the loss is added up in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from marginparts._types import Array, Data, Step
from marginparts.backends.gpu.dense import DenseMatrix
from marginparts.backends.gpu.launch import NUMPY, TORCH, launch
from marginparts.backends.gpu.sparse import SparseMatrix
from marginparts.backends.gpu.streams import bytes_of, free_memory
from marginparts.backends.gpu.triton_semi import sweep_kernel
from marginparts.backends.semi import SETTLED, SemiKernels, batches, violated

#: Rows whose products are added up in the type of the data, and how many such runs are multiplied
#: at a time; entries that are moved at a time, and those of a tile of the sweep: a warp keeps them
#: in registers.
_RUN, _RUNS, _MOVED, _TILE = 1 << 10, 128, 1 << 24, 1 << 11

#: Rows that begin at a multiple of 16 bytes.
_GRAIN = 4

#: Copies of H that a run keeps, X V among them, and one more while it begins.
_COPIES = 5


class TorchSemiKernels(SemiKernels):
    """Torch tensors on a device; ``memory`` bytes of it may be used, None is what is free."""

    name = "torch"

    at_once = 1 << 22

    def __init__(self, device: torch.device, memory: int | None = None) -> None:
        self.device, self.memory = device, memory

    def holds(self, X: Data, r: int) -> bool:
        """Say whether the card has memory for the data and what a run needs beside it."""
        factors = _COPIES * X.shape[0] * r * X.dtype.itemsize
        return bytes_of(X) + factors <= 0.8 * free_memory(self.device, self.memory)

    def prepare(self, X: Data) -> DenseMatrix | SparseMatrix:
        """Move the data, from a file a block of rows at a time."""
        if not isinstance(X, np.ndarray):
            return SparseMatrix(sp.csr_array(X), self.device)
        moved = torch.empty(X.shape, dtype=TORCH[X.dtype], device=self.device)
        return DenseMatrix(self._filled(moved, X))

    def factor(self, H: Array) -> Tensor:
        """Return H on the device, its columns in one piece each."""
        return self._filled(self._empty(H.shape, TORCH[H.dtype]), H)

    def release(self, H: Tensor | Array) -> Array:
        """Return H as a NumPy array."""
        if isinstance(H, np.ndarray):
            return H
        found = np.empty(tuple(H.shape), NUMPY[H.dtype])
        for rows in batches(H, _MOVED):
            found[rows] = H[rows].cpu().numpy()
        return found

    def _empty(self, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        return torch.empty(shape[::-1], dtype=dtype, device=self.device).T

    def _filled(self, moved: Tensor, X: Array) -> Tensor:
        """Return a tensor with the entries of an array, which may be in a file."""
        for rows in batches(X, _MOVED):
            moved[rows] = self._sent(X[rows])
        return moved

    def _sent(self, X: Array) -> Tensor:
        # a copy: torch wants arrays that may be written to
        return torch.from_numpy(np.array(X, order="C")).to(self.device)

    def inner(self, X: DenseMatrix | SparseMatrix, H: Tensor) -> Array:
        """Return ``X'H`` (d, r) in float64."""
        if isinstance(X, SparseMatrix):
            found: Tensor = X.T @ H.contiguous()
            return found.double().cpu().numpy()
        return _inner(X.X, H)

    def gram(self, H: Tensor) -> Array:
        """Return ``H'H`` (r, r) in float64."""
        return _inner(H, H)

    def product(self, samples: Sequence[Any], V: Array, out: Tensor | None = None) -> Tensor:
        """Return ``X V`` of several sets of samples, one below the other."""
        n, first, B = sum(X.shape[0] for X in samples), 0, self._sent(V)
        XV = self._empty((n, B.shape[1]), B.dtype) if out is None else out
        for X in samples:
            rows = slice(first, first := first + X.shape[0])
            if isinstance(X, DenseMatrix):
                for some in self._batches(XV[rows]):  # the card may copy what it multiplies
                    XV[rows][some] = X.X[some] @ B
            else:
                XV[rows] = X @ B
        return XV

    def multiplied(
        self, H: Tensor, XV: Tensor, gram: Array, out: Tensor | None = None, gauge: bool = False
    ) -> Step:
        """Return H after the multiplicative step of Ding, Li & Jordan."""
        return self._stepped(H, XV, gram, _multiplied, out, gauge)

    def swept(
        self, H: Tensor, XV: Tensor, gram: Array, out: Tensor | None = None, gauge: bool = False
    ) -> Step:
        """Return H after each entry of a row in turn went to its optimum."""
        return self._stepped(H, XV, gram, _swept, out, gauge)

    def _stepped(
        self, H: Tensor, XV: Tensor, gram: Array, step: Callable[..., Tensor], out: Tensor | None,
        gauge: bool,
    ) -> Step:  # fmt: skip
        """Return H after a step of each row, some rows at a time; the host waits for the gauge."""
        new, G = torch.empty_like(H) if out is None else out, self._sent(gram)
        lengths = G.diagonal().sqrt()
        told = torch.zeros(2, dtype=torch.float64, device=self.device)
        for rows in self._batches(H):
            found = step(H[rows], XV[rows], G)
            if gauge:
                told[0] += (found @ lengths).sum(dtype=torch.float64)
                told[1] += ((found - H[rows]).abs_() @ lengths).sum(dtype=torch.float64)
            new[rows] = found
        return violated(new, *told.tolist()) if gauge else Step(new)

    def _settled(self, X: Data, V: Array, gram: Array, sweeps: int, inverse: Array | None) -> Array:
        XV, G = self.product([self.prepare(X)], V), self._sent(gram)
        return self.release(_swept(self._start(XV, gram, inverse), XV, G, sweeps))

    def _start(self, XV: Tensor, gram: Array, inverse: Array | None) -> Tensor:
        """Return where sweeps begin."""
        H = torch.zeros_like(XV)
        if inverse is not None:
            G, to_codes = self._sent(gram.astype(np.float64)), self._sent(inverse)
            for rows in self._batches(H):
                H[rows] = _least_squares(XV[rows].double(), G, to_codes)
        return H

    def _batches(self, H: Tensor) -> Iterator[slice]:
        return batches(H, self.at_once, _GRAIN)  # as compiled kernels expect

    def ahead(self, now: Tensor, before: Tensor, b: float, least: float) -> Tensor:
        """Return a point ahead of H, for extrapolation, written over ``before``."""
        for rows in self._batches(now):
            point = torch.lerp(now[rows], before[rows], -b)
            torch.maximum(point, least * now[rows], out=before[rows])
        return before

    def cross(self, XV: Tensor, H: Tensor) -> float:
        """Return ``<X V, H>``, added up in float64."""
        total = torch.zeros((), dtype=torch.float64, device=self.device)
        for rows in self._batches(H):
            total += (XV[rows].double() * H[rows]).sum()
        return float(total)


def _inner(A: Tensor, B: Tensor) -> Array:
    """Return ``A'B`` in float64: runs of rows by themselves, for the card to have work.

    Some runs at a time, for it may copy what it multiplies.
    """
    whole = len(A) // _RUN * _RUN
    total = (A[whole:].T @ B[whole:]).double()
    for first in range(0, whole, _RUNS * _RUN):
        rows = slice(first, min(first + _RUNS * _RUN, whole))
        runs, others = (each[rows].unflatten(0, (-1, _RUN)) for each in (A, B))
        total += torch.bmm(runs.mT, others).sum(0, dtype=torch.float64)
    found: Array = total.cpu().numpy()
    return found


def _least_squares(XV: Tensor, G: Tensor, inverse: Tensor) -> Tensor:
    """Return what the function of that name in `backends.semi` does."""
    H = (XV @ inverse).clamp_(min=0)
    H = (H / H.amax(1, keepdim=True)).nan_to_num_(0.0)
    ratio = (H * XV).sum(1).clamp_(min=0) / ((H @ G) * H).sum(1)
    return H.mul_(ratio.nan_to_num_(0.0)[:, None])


def _multiplied(H: Tensor, XV: Tensor, G: Tensor) -> Tensor:
    """Return rows of H times the root of what pulls them up over what pulls them down."""
    up = torch.addmm(XV.clamp(min=0), H, (-G).clamp_(min=0))
    down = torch.addmm((-XV).clamp_(min=0), H, G.clamp(min=0))
    ratio = up.div_(down).masked_fill_(down <= 0, 0.0)
    return ratio.sqrt_().mul_(H)


def _swept(H: Tensor, XV: Tensor, G: Tensor, sweeps: int = 1) -> Tensor:
    """Return rows of H after sweeps, each row until it is settled."""
    new, (n, r) = torch.empty_like(H), H.shape
    R = max(16, 1 << (r - 1).bit_length())
    M = max(2, min(32, _TILE // R))
    args = (H, XV, G, new, n, r, H.stride(1), XV.stride(1), new.stride(1), sweeps)
    launch(sweep_kernel, (-(-n // M),), args, {"SETTLED": SETTLED, "M": M, "R": R, "num_warps": 1})
    return new
