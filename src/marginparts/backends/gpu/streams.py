"""Data larger than the card: blocks of rows that come from host memory and go again.

V and the block in use are on the card; the next block is on its way while this one is worked on.
Copies overlap only from pages that stay where they are, so the data's are pinned. Sparse blocks
are kept by rows and by columns, since each half-step needs one of the two.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from marginparts._types import Array, Data
from marginparts.backends.base import Backend
from marginparts.backends.blocked import BlockSource, FactorBlocks
from marginparts.backends.gpu.dense import DenseMatrix
from marginparts.backends.gpu.sparse import Arrived, cut_rows

logger = logging.getLogger("marginparts")

#: The share of the card's memory for blocks (one in use, one on its way) and for H.
_BLOCKS, _FOR_H = 0.4, 0.3

#: Copies of H that a run with momentum keeps, one more for what is being made.
_COPIES = 4


def free_memory(device: torch.device, limit: int | None) -> int:
    """Return the bytes of the card that may be used."""
    if device.type != "cuda":
        return limit if limit is not None else 1 << 62
    free = int(torch.cuda.mem_get_info(device)[0])
    return free if limit is None else min(free, limit)


def bytes_of(X: Data) -> int:
    """Return what a matrix takes on the card: sparse ones are there by rows and by columns."""
    if isinstance(X, np.ndarray):
        return int(X.nbytes)
    return 2 * int(X.nnz) * (X.dtype.itemsize + 4)


class HostBlocks(BlockSource):
    """A `BlockSource` of data in host memory, whose blocks are on the card while they are needed.

    ``memory`` bytes of the card may be used.
    """

    def __init__(self, X: Data, device: torch.device, memory: int, r: int) -> None:
        self.shape, self.sparse, self.device = X.shape, sp.issparse(X), device
        n, itemsize = X.shape[0], X.dtype.itemsize
        size = bytes_of(X) // (2 if self.sparse else 1)
        count = max(1, min(n, -(-2 * size // int(_BLOCKS * memory))))
        self.bounds = [int(bound) for bound in np.linspace(0, n, count + 1)]
        self.H_stays = _COPIES * n * r * itemsize <= _FOR_H * memory
        blocks: list[Any] = [X[a:b] for a, b in pairwise(self.bounds)]
        if self.sparse:
            self.by_rows = [_sparse_block(block, device) for block in blocks]
            self.by_columns = [_sparse_block(block.T.tocsr(), device) for block in blocks]
        else:
            self._held = X  # its pages are pinned as long as this lives
            if device.type == "cuda":
                _pin_in_place(self, X)
            self.by_rows = [(block.shape, 0, [torch.from_numpy(block)]) for block in blocks]

    def read(self, *, transposed: bool) -> Iterator[Any]:
        """Yield the blocks in order, each on the card until the next is asked for."""
        blocks = self.by_columns if transposed and self.sparse else self.by_rows
        arriving = _arriving((block[2] for block in blocks), self.device)
        for (shape, n_slots, _), sent in zip(blocks, arriving, strict=True):
            if self.sparse:
                yield Arrived(shape, self.device, sent, n_slots)
            else:
                yield DenseMatrix(sent[0])

    def new_factor(self, inner: Backend) -> FactorBlocks:
        """Return where the blocks of H are kept: on the card if they fit."""
        count = len(self.bounds) - 1
        return FactorBlocks(count) if self.H_stays else _OnHost(count, self.device)


class _OnHost(FactorBlocks):
    """Blocks of a factor in host memory, which come to the card when they are taken."""

    def __init__(self, count: int, device: torch.device) -> None:
        super().__init__(count)
        self.device = device

    def __getitem__(self, i: int) -> torch.Tensor:
        return self.kept[i].to(self.device)

    def __setitem__(self, i: int, block: torch.Tensor) -> None:
        self.kept[i] = block.cpu()


def _sparse_block(block: sp.csr_array, device: torch.device) -> tuple[Any, int, list[Any]]:
    """Return the shape, the number of slots and all arrays of a block, pinned."""
    *cut, n_slots = cut_rows(block.indptr, block.indices)
    arrays = block.indices.astype(np.int32, copy=False), block.data, *cut
    tensors = [torch.from_numpy(np.ascontiguousarray(part)) for part in arrays]
    return block.shape, n_slots, [t.pin_memory() if device.type == "cuda" else t for t in tensors]


def _pin_in_place(owner: HostBlocks, X: Array) -> None:
    """Pin the pages of an array that is too large to be copied, until its owner is gone."""
    cuda = torch.cuda.cudart()
    if int(cuda.cudaHostRegister(X.ctypes.data, X.nbytes, 0)) == 0:
        weakref.finalize(owner, cuda.cudaHostUnregister, X.ctypes.data)
    else:
        logger.info("the data could not be pinned; copies to the card will not overlap")


def _arriving(
    blocks: Iterable[list[torch.Tensor]], device: torch.device
) -> Iterator[list[torch.Tensor]]:
    """Yield blocks on the device, with the next one on its way."""
    if device.type != "cuda":
        yield from (list(block) for block in blocks)
        return
    copies, here = torch.cuda.Stream(device), torch.cuda.current_stream(device)

    def send(block: list[torch.Tensor]) -> tuple[list[torch.Tensor], Any]:
        with torch.cuda.stream(copies):
            moved = [part.to(device, non_blocking=True) for part in block]
        return moved, copies.record_event()

    waiting = iter(blocks)
    coming: Any = send(next(waiting))
    worked: Any = None
    while coming is not None:
        moved, arrived = coming
        if worked is not None:
            worked.synchronize()  # else blocks would be sent before there is memory for them
        following = next(waiting, None)
        coming = None if following is None else send(following)
        here.wait_event(arrived)
        for part in moved:
            part.record_stream(here)
        yield moved
        del moved
        worked = here.record_event()
