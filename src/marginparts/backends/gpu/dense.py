"""Dense data on a GPU: one fused kernel in single precision, matrix products otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from marginparts._types import Array
from marginparts.backends.base import least_entry, tiny
from marginparts.backends.gpu.launch import NUMPY, half_width, launch
from marginparts.backends.gpu.triton_csr import dense_ratio_kernel

#: Columns of factors up to which the dense kernel keeps its tiles in registers, the programs that
#: it needs to fill the card, and the terms that are summed up in single precision.
_FUSED_COLUMNS, _SHARES, _LONGEST_SUM = 128, 256, 1024

#: Entries of a dense block: temporaries of this size, and no larger.
_BLOCK = 1 << 27


class DenseMatrix:
    """A dense matrix on the device, or the transpose of one."""

    def __init__(self, X: Tensor, transposed: bool = False) -> None:
        self.X, self.transposed = X, transposed
        self.shape: tuple[int, ...] = tuple(X.shape[::-1] if transposed else X.shape)

    @property
    def T(self) -> DenseMatrix:
        """The transpose, a view."""
        return DenseMatrix(self.X, not self.transposed)

    def blocks(self) -> Iterator[slice]:
        """Slices of samples with a bounded number of entries."""
        n, d = self.X.shape
        step = max(1, _BLOCK // max(d, 1))
        return (slice(start, min(start + step, n)) for start in range(0, n, step))

    def __matmul__(self, B: Tensor | Array) -> Any:
        X = self.X.T if self.transposed else self.X
        if isinstance(B, torch.Tensor):
            return X @ B
        moved = torch.from_numpy(np.ascontiguousarray(B)).to(X.device, X.dtype)
        return (X @ moved).cpu().numpy()


def dense_ratio_matmul(X: DenseMatrix, A: Tensor, B: Tensor) -> Tensor:
    """Return ``(X / (A @ B.T)) @ B``: fused in single precision, in blocks of samples otherwise."""
    if A.dtype == torch.float32 and A.shape[1] <= _FUSED_COLUMNS:
        return _fused_ratio_matmul(X, A, B)
    floor = tiny(NUMPY[A.dtype])
    if not X.transposed:
        out = torch.empty_like(A)
        for rows in X.blocks():
            torch.matmul(_ratio(X.X[rows], A[rows] @ B.T, floor), B, out=out[rows])
        return out
    sums = torch.zeros_like(A, dtype=torch.float64)
    for rows in X.blocks():
        sums += _ratio(X.X[rows], B[rows] @ A.T, floor).T @ B[rows]
    return sums.to(A.dtype)


def _fused_ratio_matmul(X: DenseMatrix, A: Tensor, B: Tensor) -> Tensor:
    """The same in one kernel: neither ``A @ B.T`` nor the ratio is ever written."""
    (n, d), r = X.shape, A.shape[1]
    strides = X.X.stride()[::-1] if X.transposed else X.X.stride()
    tile = {"M": 64, "N": 32, "R": max(16, 1 << (r - 1).bit_length())}  # measured on an H200
    blocks = -(-n // tile["M"])
    # few rows (the features) are shared out along the columns, so that all of the card has work,
    # and long sums are put together in float64
    shares = max(1, min(_SHARES // blocks, -(-d // (4 * tile["N"]))), -(-d // _LONGEST_SUM))
    span = -(-d // (shares * tile["N"])) * tile["N"]
    shares = -(-d // span)
    partial = torch.empty((shares, n, r), dtype=A.dtype, device=A.device)
    high = B.to(half_width(B))
    low = (B - high).to(high.dtype)
    args = (X.X, A.contiguous(), high, low, partial, n, d, *strides, r, span)
    flags = {"FLOOR": tiny(NUMPY[A.dtype]), **tile, "num_warps": 4, "num_stages": 3}
    launch(dense_ratio_kernel, (blocks, shares), args, flags)
    return partial[0] if shares == 1 else partial.sum(0, dtype=torch.float64).to(A.dtype)


def _ratio(X: Tensor, fitted: Tensor, floor: float) -> Tensor:
    """Write ``X / fitted`` over ``fitted``, and 0 where the fit is 0."""
    empty = fitted <= floor
    return torch.div(X, fitted, out=fitted).masked_fill_(empty, 0.0)


def dense_log_terms(X: DenseMatrix, A: Tensor, B: Tensor) -> Tensor:
    """Return the sum of ``x log(x / a.b) - x`` over the nonzeros."""
    samples, features = (B, A) if X.transposed else (A, B)
    total = torch.zeros((), dtype=torch.float64, device=A.device)
    for rows in X.blocks():
        x = X.X[rows]
        fitted = samples[rows] @ features.T
        seen = (fitted > 0) & (x > 0)
        logs = torch.log(x) - torch.log(fitted)
        terms = torch.where(seen, x * logs - x, torch.zeros_like(x))
        missed = (fitted <= 0) & (x > least_entry(NUMPY[A.dtype]))
        total += terms.masked_fill_(missed, float("inf")).sum(dtype=torch.float64)
    return total
