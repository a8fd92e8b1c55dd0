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
    slot: Tensor
    long_row: Tensor
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
            return SparsePass(self, None, B).run(step=False)
        if B.ndim == 1:
            return torch.from_numpy(np.asarray(self.host @ B)).to(self.device)
        moved = torch.from_numpy(np.ascontiguousarray(B, dtype=self.host.dtype)).to(self.device)
        return SparsePass(self, None, moved).run(step=False).cpu().numpy()


class Arrived(SparseMatrix):
    """A block of rows that was sent to the card, with the cut of its rows.

    Parameters
    ----------
    shape : (n, d)
    device : torch.device
    sent : list of tensors
        Those of `packed`, on the device.
    n_slots : int
    """

    def __init__(
        self, shape: tuple[int, int], device: torch.device, sent: list[Tensor], n_slots: int
    ) -> None:
        self.shape, self.device, self._buffer = shape, device, None
        # in the place of what would be made from a matrix on the host
        self.arrays = (None, *sent[:2])
        self.pieces = Pieces._make([*sent[2:], n_slots])


def packed(csr: sp.csr_array) -> tuple[list[Any], int]:
    """Return indices, values and the cut of the rows as arrays, and the number of slots."""
    *cut, n_slots = cut_rows(csr.indptr, csr.indices)
    return [csr.indices.astype(np.int32, copy=False), csr.data, *cut], n_slots


def cut_rows(indptr: Indices, indices: Indices) -> tuple[Any, ...]:
    """Cut rows into pieces that are not too long, and order them.

    The pieces of long rows come first, by their first column: those that run at one time gather
    the same rows of the other factor, which then stay in the card's cache. Whole rows follow, the
    longest first, so that none is waited for.

    Returns
    -------
    row, start, stop, slot : arrays over the pieces
        ``slot`` is -1 where a piece is all of its row.
    long_row, first_slot : arrays over the rows with several pieces
    n_slots : int
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


class SparsePass:
    """One pass over the nonzeros: the arguments of `half_step` as the kernels want them."""

    def __init__(
        self,
        X: SparseMatrix,
        A: Tensor | None,
        B: Tensor,
        *,
        den: Tensor | None = None,
        weight: Tensor | None = None,
        also: Also | None = None,
        plus: Plus | None = None,
        gauge: bool = False,
    ) -> None:
        self.X, self.A, self.B = X, A, B.contiguous()
        self.den, self.weight = den, weight
        self.also, self.plus = also, plus
        self.dtype = X.arrays[2].dtype
        self.gauge = B
        if gauge:
            self.gauge = torch.empty((X.shape[0], 2), dtype=torch.float64, device=B.device)
        self.flags = {
            "FLOOR": tiny(NUMPY[self.dtype]), "WIDE": max(X.shape) * B.shape[1] >= 2**31,
            **tile_of(B.shape[1]),
        }  # fmt: skip

    def run(self, *, step: bool, out: Tensor | None = None) -> Tensor:
        """Sum every row, and finish it."""
        X, B, pieces = self.X, self.B, self.X.pieces
        r = B.shape[1]
        if out is None:
            out = torch.empty((X.shape[0], r), dtype=self.dtype, device=B.device)
        if not X.shape[0]:
            return out
        _, indices, values = X.arrays
        partial = X.buffer(pieces.n_slots, r, self.dtype)
        A = B if self.A is None else self.A
        common = (
            B if self.den is None else self.den, B if self.weight is None else self.weight,
            *self._more(self.also), *self._more(self.plus), *_split(self.also), *_split(self.plus),
            out, self.gauge, partial, r,
        )  # fmt: skip
        flags = {
            "RATIO": self.A is not None, "STEP": step, "WEIGHT": self.weight is not None,
            "ALSO": self.also is not None, "PLUS": self.plus is not None,
            "GAUGE": self.gauge is not B, "TINY": float(np.finfo(NUMPY[self.dtype]).tiny),
            **self.flags,
        }  # fmt: skip
        own = (pieces.row, pieces.start, pieces.stop, pieces.slot, indices, values, A, B)
        launch(pieces_kernel, (len(pieces.row),), (*own, *common), flags)
        if pieces.n_slots:
            flags = {**flags, **many_of(r)}
            args = (pieces.long_row, pieces.first_slot, A, *common)
            launch(long_rows_kernel, (len(pieces.long_row),), args, flags)
        return out

    def _more(self, term: Also | Plus | None) -> tuple[Any, ...]:
        """Return the arrays of a further term; anything will do where there is none."""
        if term is None:
            return (self.X.pieces.row,) * 2 + (self.B,) * 2
        matrix, factor = cast(SparseMatrix, term[0]), cast(Tensor, term[1])
        return (*matrix.arrays, factor.contiguous())

    def log_terms(self) -> Tensor:
        """Return the sum of ``x log(x / a.b) - x``."""
        pieces = self.X.pieces
        _, indices, values = self.X.arrays
        terms = torch.empty(len(pieces.row), dtype=torch.float64, device=self.B.device)
        own = (pieces.row, pieces.start, pieces.stop, indices, values, self.A, self.B)
        args = (*own, terms, self.B.shape[1])
        flags = {**self.flags, "LEAST": least_entry(NUMPY[self.dtype])}
        launch(log_terms_kernel, (len(pieces.row),), args, flags)
        return terms.sum()


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
