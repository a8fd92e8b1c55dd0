"""Sparse data on a GPU: the rows of a CSR matrix in pieces, and a pass of the kernels over them."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray
from torch import Tensor

from marginparts._types import Array
from marginparts.backends.base import Also, Plus, least_entry, tiny
from marginparts.backends.gpu.launch import NUMPY, launch
from marginparts.backends.gpu.triton_csr import log_terms_kernel, long_rows_kernel, pieces_kernel

#: Nonzeros of a piece, at least and at most: longer rows are cut. A matrix with few rows is cut
#: finer, into so many pieces that all of the card has work.
_SHORTEST, _LONGEST, _ENOUGH_PIECES = 32, 512, 1 << 11

Indices = NDArray[np.integer[Any]]


class Pieces(NamedTuple):
    """The rows of a CSR matrix cut into pieces, and the rows that have several."""

    row: Tensor
    start: Tensor
    stop: Tensor
    slot: Tensor  # -1 where a piece is all of its row
    long_row: Tensor  # the rows with several pieces
    first_slot: Tensor
    n_slots: int


class SparseMatrix:
    """A CSR matrix on the device; its transpose is made when needed."""

    def __init__(
        self, csr: sp.csr_array, device: torch.device, transpose: SparseMatrix | None = None
    ):
        self.shape: tuple[int, int] = csr.shape
        self.device = device
        self.host = csr
        self._buffer: Tensor | None = None
        if transpose is not None:
            self.T = transpose

    @cached_property
    def T(self) -> SparseMatrix:
        """The transpose, by rows as well."""
        return SparseMatrix(self.host.T.tocsr(), self.device, transpose=self)

    @cached_property
    def arrays(self) -> tuple[Any, Any, Any]:
        """Row pointers, column indices and values on the device."""
        csr = self.host
        index = np.int32 if max(csr.nnz, *self.shape) < 2**31 else np.int64
        found = csr.indptr.astype(index), csr.indices.astype(np.int32, copy=False), csr.data
        indptr, indices, data = map(self._moved, found)
        return indptr, indices, data

    def _moved(self, part: Indices) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(part)).to(self.device)

    @cached_property
    def pieces(self) -> Pieces:
        """The cut of the rows, in the order in which the card takes them."""
        found = cut_rows(self.host.indptr, self.host.indices)
        return Pieces._make([*map(self._moved, found[:-1]), found[-1]])

    def buffer(self, n_slots: int, r: int, dtype: torch.dtype) -> Tensor:
        """Return where the sums of pieces are kept, made once."""
        if self._buffer is None or self._buffer.shape[1] != r or self._buffer.dtype != dtype:
            self._buffer = torch.empty((max(n_slots, 1), r), dtype=dtype, device=self.device)
        return self._buffer

    def __matmul__(self, B: Tensor | Array) -> Any:
        """Multiply with a factor on the device, or with one on the host, which gives one there.

        A vector of the host gives one on the device: the row sums of S are wanted there.
        """
        if isinstance(B, torch.Tensor):
            return sum_rows(self, None, B)
        if B.ndim == 1:
            return torch.from_numpy(np.asarray(self.host @ B)).to(self.device)
        moved = torch.from_numpy(np.ascontiguousarray(B, dtype=self.host.dtype)).to(self.device)
        return sum_rows(self, None, moved).cpu().numpy()


class Arrived(SparseMatrix):
    """A block of rows that was sent to the card: indices, values and the cut of the rows."""

    def __init__(
        self, shape: tuple[int, int], device: torch.device, sent: list[Tensor], n_slots: int
    ) -> None:
        self.shape, self.device, self._buffer = shape, device, None
        # in the place of what would be made from a matrix on the host
        self.arrays = (None, *sent[:2])
        self.pieces = Pieces._make([*sent[2:], n_slots])


def cut_rows(indptr: Indices, indices: Indices) -> tuple[Any, ...]:
    """Cut rows into pieces that are not too long, and order them.

    The pieces of long rows come first, by their first column: those that run at one time gather
    the same rows of the other factor, which then stay in the card's cache. Whole rows follow, the
    longest first, so that none is waited for. Returns what `Pieces` are made of.
    """
    indptr = indptr.astype(np.int64)
    lengths = np.diff(indptr)
    piece = _LONGEST
    counts = np.maximum(-(-lengths // piece), 1)
    while counts.sum() < _ENOUGH_PIECES and piece > _SHORTEST:
        piece //= 2
        counts = np.maximum(-(-lengths // piece), 1)
    row = np.repeat(np.arange(len(lengths)), counts)
    within = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    start = indptr[row] + within * piece
    stop = np.minimum(start + piece, indptr[row + 1])
    is_long = counts[row] > 1
    slot = np.where(is_long, np.cumsum(is_long) - 1, -1)
    first_column = indices[np.where(is_long, start, 0)] if len(indices) else np.zeros(len(row))
    order = np.lexsort((np.where(is_long, first_column, start - stop), ~is_long))
    long_row = np.flatnonzero(counts > 1)
    first_slot = np.concatenate([[0], np.cumsum(counts[long_row])])
    index = np.int32 if indptr[-1] < 2**31 else np.int64
    return (
        row[order].astype(np.int32), start[order].astype(index), stop[order].astype(index),
        slot[order].astype(np.int32), long_row.astype(np.int32), first_slot.astype(np.int32),
        int(is_long.sum()),
    )  # fmt: skip


def sum_rows(
    X: SparseMatrix, A: Tensor | None, B: Tensor, *, den: Tensor | None = None,
    weight: Tensor | None = None, also: Also | None = None, plus: Plus | None = None,
    out: Tensor | None = None, gauge: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Return ``ratio_matmul(X, A, B)``; ``X @ B`` without A; with ``den`` what `half_step` does.

    ``gauge`` (n, 2) gets the mass and the violation of each row.
    """
    r, pieces, B = B.shape[1], X.pieces, B.contiguous()
    _, indices, values = X.arrays
    if out is None:
        out = torch.empty((X.shape[0], r), dtype=values.dtype, device=B.device)
    if not X.shape[0]:
        return out
    flags = {
        "RATIO": A is not None, "STEP": den is not None, "WEIGHT": weight is not None,
        "ALSO": also is not None, "PLUS": plus is not None, "GAUGE": gauge is not None,
        "TINY": float(np.finfo(NUMPY[values.dtype]).tiny), **_flags(X, B),
    }  # fmt: skip
    # placeholders of the right types for what is absent
    A, den, weight, gauge = (B if each is None else each for each in (A, den, weight, gauge))
    common = (
        den, weight, *_arrays(also, pieces.row, B), *_arrays(plus, pieces.row, B),
        *_split(also), *_split(plus), out, gauge, X.buffer(pieces.n_slots, r, values.dtype), r,
    )  # fmt: skip
    own = (pieces.row, pieces.start, pieces.stop, pieces.slot, indices, values, A, B)
    launch(pieces_kernel, (len(pieces.row),), (*own, *common), flags)
    if pieces.n_slots:
        args = (pieces.long_row, pieces.first_slot, A, *common)
        launch(long_rows_kernel, (len(pieces.long_row),), args, {**flags, **many_of(r)})
    return out


def log_terms(X: SparseMatrix, A: Tensor, B: Tensor) -> Tensor:
    """Return the sum of ``x log(x / a.b) - x``."""
    pieces, B = X.pieces, B.contiguous()
    _, indices, values = X.arrays
    terms = torch.empty(len(pieces.row), dtype=torch.float64, device=B.device)
    args = (pieces.row, pieces.start, pieces.stop, indices, values, A, B, terms, B.shape[1])
    flags = {**_flags(X, B), "LEAST": least_entry(NUMPY[values.dtype])}
    launch(log_terms_kernel, (len(pieces.row),), args, flags)
    return terms.sum()


def _flags(X: SparseMatrix, B: Tensor) -> dict[str, Any]:
    """Return what all kernels are compiled for."""
    floor, wide = tiny(NUMPY[X.arrays[2].dtype]), max(X.shape) * B.shape[1] >= 2**31
    return {"FLOOR": floor, "WIDE": wide, **tile_of(B.shape[1])}


def _arrays(term: Also | Plus | None, index: Tensor, factor: Tensor) -> tuple[Any, ...]:
    """Return the arrays of a further term, or others of their types where there is none."""
    if term is None:
        return index, index, factor, factor
    return *cast(SparseMatrix, term[0]).arrays, cast(Tensor, term[1]).contiguous()


def _split(term: Also | Plus | None) -> tuple[float, float]:
    """Return a weight as two numbers of single precision, whose sum is exact enough for double."""
    weight = 0.0 if term is None else float(term.weight)
    high = float(np.float32(weight))
    return high, weight - high


def tile_of(r: int) -> dict[str, int]:
    """Return the columns of a tile, the nonzeros taken at a time, and the warps that share them.

    Measured: one warp gathers fastest, with a thousand entries in its registers (of wide rows
    half of that, which leaves room for the row of A).
    """
    R = max(16, 1 << (r - 1).bit_length())
    entries = 1024 if R <= 128 else 512
    return {"R": R, "K": max(2, min(32, entries // R)), "num_warps": 1 if R <= 512 else 4}


def many_of(r: int) -> dict[str, int]:
    """Return what of `_tile` is different where few programs have many rows to add."""
    return {"K": max(2, 2048 // tile_of(r)["R"]), "num_warps": 4}
