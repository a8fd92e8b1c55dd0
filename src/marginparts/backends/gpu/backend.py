"""The kernels on a GPU: Triton for sparse data, matrix products for dense data, all in torch.

Data is moved once, by rows and (when needed) by columns. Factors and their column sums stay on the
card; the host waits for it only when the loss is evaluated.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from marginparts._types import Array, Data, Matrix, Step
from marginparts.backends.base import Also, Backend, Plus, gauged
from marginparts.backends.blocked import BlockedBackend, BlockSource
from marginparts.backends.gpu.dense import DenseMatrix, dense_log_terms, dense_ratio_matmul
from marginparts.backends.gpu.launch import NUMPY, TORCH, Recorded, half_width, launch
from marginparts.backends.gpu.semi import TorchSemiKernels
from marginparts.backends.gpu.sparse import SparseMatrix, log_terms, many_of, sum_rows, tile_of
from marginparts.backends.gpu.streams import HostBlocks, bytes_of, free_memory
from marginparts.backends.gpu.triton_csr import column_sums_kernel

if TYPE_CHECKING:
    from marginparts.losses.nmf_alpha import NMFAlphaProblem

logger = logging.getLogger("marginparts")

#: Partial sums of a column sum, and the rows below which there is one.
_SUMS, _FEW = 1024, 256


class TorchBackend(Backend):
    """Torch tensors and Triton kernels, for CSR and dense data.

    Parameters
    ----------
    device : str or None
        None is the first GPU.
    half : bool
        Whether updates of sparse float32 data gather rows of half the width: half of the bytes,
        for updates good to eight bits. Factors, sums and the loss keep theirs.
    memory : int or None
        Bytes of the card that data and factors may take; None is what is free. Data that does not
        fit is sent to the card block by block in each pass.
    """

    def __init__(
        self, device: str | None = None, half: bool = False, memory: int | None = None
    ) -> None:
        self.device = torch.device(device or "cuda")
        self.half, self.memory = half, memory
        self.name = "torch-half" if half else "torch"

    can_shrink = False

    def adapted(self, problem: NMFAlphaProblem) -> Any:
        """Return the problem with updates that are replayed; on a CPU there is nothing to gain."""
        return Recorded(problem) if self.device.type == "cuda" else problem

    def semi(self) -> TorchSemiKernels:
        """Return the kernels for data of either sign; rows of half the width are not for them."""
        return TorchSemiKernels(self.device, self.memory)

    def suited_to(self, X: Data, r: int) -> Backend:
        """Return this backend, or one that streams blocks of X where it is larger than the card."""
        memory = free_memory(self.device, self.memory)
        factors = 4 * (X.shape[0] + X.shape[1]) * r * X.dtype.itemsize
        if bytes_of(X) + factors <= 0.8 * memory:
            return self
        return StreamedBackend(self, memory, r)

    def prepare(self, X: Data | SparseMatrix | DenseMatrix, like: Matrix | None = None) -> Any:
        """Move the data; what has many zeros is kept sparse."""
        if isinstance(X, SparseMatrix | DenseMatrix):  # it came from the host just now
            return X
        if like is not None:
            sparse = isinstance(like, SparseMatrix)
        else:
            sparse = bool(sp.issparse(X) or np.count_nonzero(X) < 0.1 * X.size)
        if sparse:
            return SparseMatrix(sp.csr_array(X), self.device)
        X = X if isinstance(X, np.ndarray) else X.toarray()
        return DenseMatrix(torch.from_numpy(np.ascontiguousarray(X)).to(self.device))

    def coefficients(self, S: Data, rows_of: Matrix | None = None) -> SparseMatrix:
        """Move a sparse matrix."""
        return SparseMatrix(sp.csr_array(S), self.device)

    def factor(self, A: Array, rows_of: Matrix | None = None) -> Tensor:
        """Return a copy on the device, its rows a multiple of 16 bytes long."""
        grain = 16 // A.itemsize
        width = -(-A.shape[1] // grain) * grain
        moved = torch.zeros((len(A), width), dtype=TORCH[A.dtype], device=self.device)
        moved[:, : A.shape[1]] = torch.from_numpy(np.ascontiguousarray(A)).to(self.device)
        return moved

    def release(self, A: Tensor, r: int) -> Array:
        """Return the first r columns as a NumPy array."""
        return np.ascontiguousarray(A[:, :r].cpu().numpy())

    def column_sums(self, A: Tensor) -> Tensor:
        """Return the sums over rows in float64, on the device."""
        n, r = A.shape
        rows = n if n <= _FEW else -(-n // _SUMS)
        sums = torch.empty((-(-n // rows), r), dtype=torch.float64, device=A.device)
        tile = {**tile_of(r), **many_of(r)} if n <= _FEW else tile_of(r)
        launch(column_sums_kernel, (len(sums),), (A, sums, n, rows, r), tile)
        return sums.sum(0) if len(sums) > 1 else sums[0]

    def ahead(self, now: Tensor, before: Tensor, b: float, least: float) -> Tensor:
        """Write ``max(now + b * (now - before), least * now)`` over ``before``."""
        torch.lerp(now, before, -b, out=before)
        return torch.maximum(before, least * now, out=before)

    def ratio_matmul(self, X: Matrix, A: Tensor, B: Tensor) -> Tensor:
        """Return ``(X / (A @ B.T)) @ B`` over the nonzeros of X."""
        if isinstance(X, DenseMatrix):
            return dense_ratio_matmul(X, A, B)
        assert isinstance(X, SparseMatrix)
        return sum_rows(X, A, self._gathered(B))

    def _gathered(self, B: Tensor) -> Tensor:
        """Return a factor as its rows are gathered."""
        return B.to(half_width(B)) if self.half and B.dtype == torch.float32 else B

    def divergence(self, X: Matrix, A: Tensor, B: Tensor) -> float:
        """Return ``sum x log(x / a.b) - x + a.b`` (eq. 2)."""
        total = self.column_sums(A) @ self.column_sums(B)
        if isinstance(X, DenseMatrix):
            return float(total + dense_log_terms(X, A, B))
        assert isinstance(X, SparseMatrix)
        return float(total + log_terms(X, A, B))

    def half_step(
        self, X: Matrix, A: Tensor, B: Tensor, den: Tensor, *, weight: Tensor | None = None,
        also: Also | None = None, plus: Plus | None = None, out: Tensor | None = None,
        gauge: bool = False,
    ) -> Step:  # fmt: skip
        """Return ``A * (ratio_matmul(X, A, B) + also + plus) / (weight[:, None] * den)``."""
        if isinstance(X, DenseMatrix):
            return self.finish(A, self.numerator(X, A, B, also, plus), den, out, gauge, weight)
        assert isinstance(X, SparseMatrix)
        told = torch.empty((X.shape[0], 2), dtype=torch.float64, device=B.device) if gauge else None
        new = sum_rows(
            X, A, self._gathered(B), den=den, weight=weight, also=also, plus=plus, out=out,
            gauge=told,
        )  # fmt: skip
        return Step(new) if told is None else gauged(new, *told.sum(0).tolist())

    def finish(
        self, A: Tensor, numerator: Tensor, den: Tensor, out: Tensor | None = None,
        gauge: bool = False, weight: Tensor | None = None,
    ) -> Step:  # fmt: skip
        """Return ``A * numerator / (weight[:, None] * den)``."""
        alive = den >= np.finfo(NUMPY[A.dtype]).tiny
        inverse = torch.where(alive, 1 / den, torch.zeros_like(den)).to(A.dtype)
        heavy = 1.0 if weight is None else weight.to(A.dtype)[:, None]
        step = A * numerator * inverse / heavy
        if not gauge:
            return Step(step)
        share = heavy * den.to(A.dtype)
        mass = (A * numerator).sum(1, dtype=torch.float64)[:, None]
        larger = torch.maximum(share.expand_as(numerator) if weight is None else share, numerator)
        slope = torch.where(larger > 0, (share - numerator) / larger, torch.zeros_like(larger))
        gap = torch.minimum((A * share).double(), mass * slope.double()).abs().amax(1)
        return gauged(step, float(mass.sum()), float(gap.sum()))

    def quotient(self, A: Tensor, B: Tensor) -> Tensor:
        """Return ``A / B`` entry by entry, and 0 where B is 0."""
        return torch.where(B > 0, A / B, torch.zeros_like(B))

    def total(self, parts: Iterable[Tensor]) -> Tensor:
        """Return the sum of factors, added up in float64."""
        parts = iter(parts)
        first = next(parts)
        return reduce(Tensor.add_, parts, first.to(torch.float64, copy=True)).to(first.dtype)


class StreamedBackend(BlockedBackend):
    """The same for data larger than the card: V stays there, blocks of rows come and go.

    ``memory`` bytes of the card may be used.
    """

    def __init__(self, inner: TorchBackend, memory: int, r: int) -> None:
        super().__init__(inner)
        self.device, self.memory, self.r = inner.device, memory, r

    def prepare(self, X: Data | BlockSource, like: Matrix | None = None) -> Any:
        """Keep the data on the host, in blocks that fit the card twice."""
        if like is not None:
            return super().prepare(X, like=like)
        source = HostBlocks(X, self.device, self.memory, self.r)
        logger.info("%d blocks of rows, sent to the card in each pass", len(source.bounds) - 1)
        return super().prepare(source)
