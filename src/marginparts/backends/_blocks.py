"""What travels through the blocked backend: data, H and S in blocks of rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass, replace
from itertools import pairwise
from types import EllipsisType
from typing import Any

import numpy as np
import scipy.sparse as sp

from marginparts._types import Array, Data, Factor, Matrix
from marginparts.backends.base import Backend


class FactorBlocks:
    """Where the blocks of a factor are kept, one for each block of rows: here, in memory.

    Whoever takes a block out and changes it must put it back: it may have come from elsewhere.
    """

    def __init__(self, count: int) -> None:
        self.kept: list[Any] = [None] * count

    def __len__(self) -> int:
        return len(self.kept)

    def __getitem__(self, i: int) -> Any:
        return self.kept[i]

    def __setitem__(self, i: int, block: Factor) -> None:
        self.kept[i] = block

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def whole(self, inner: Backend, r: int) -> Array:
        """Return all of the factor as one array (n, r)."""
        return np.concatenate([inner.release(block, r) for block in self])


class BlockSource(ABC):
    """Trusted data in blocks of rows."""

    bounds: Sequence[int]  # block i has the rows bounds[i]:bounds[i + 1]
    shape: tuple[int, int]
    sparse: bool

    @abstractmethod
    def read(self, *, transposed: bool) -> Iterator[Any]:
        """Yield the blocks in order: CSR (n_i, d), or the transpose of each, CSR (d, n_i).

        Dense ones are (n_i, d) and never transposed. A block may be written over once the next one
        is asked for.
        """

    def new_factor(self, inner: Backend) -> FactorBlocks:
        """Return where the blocks of a factor can be kept."""
        return FactorBlocks(len(self.bounds) - 1)


@dataclass
class BlockedMatrix:
    """Prepared data in blocks of rows, or the transpose of it.

    ``read(transposed)`` yields the blocks (n_i, d), or (d, n_i), prepared by the inner backend;
    ``new_factor()`` is where the blocks of a factor can be kept. A matrix of the blocks' ``kind``
    is for what is to be prepared alike.
    """

    shape: tuple[int, int]
    bounds: Sequence[int]  # block i has the rows bounds[i]:bounds[i + 1] of the data
    read: Callable[[bool], Iterable[Any]]
    new_factor: Callable[[], FactorBlocks]
    kind: Matrix
    transposed: bool = False

    @property
    def T(self) -> BlockedMatrix:
        """The transpose."""
        return replace(self, shape=self.shape[::-1], transposed=not self.transposed)

    @property
    def spans(self) -> list[slice]:
        """The rows of each block."""
        return [slice(int(a), int(b)) for a, b in pairwise(self.bounds)]

    def parts(self) -> Iterable[Any]:
        """Yield the blocks in order, transposed if this is."""
        return self.read(self.transposed)


class BlockedFactor:
    """A factor (n, r) in blocks like the data's. They are read and written, one at a time."""

    def __init__(self, like: BlockedMatrix, r: int) -> None:
        self.blocks, self.like = like.new_factor(), like
        self.shape = (int(like.bounds[-1]), r)

    def empty_like(self) -> BlockedFactor:
        """Return a factor of this shape, not yet filled."""
        return BlockedFactor(self.like, self.shape[1])

    def count_nonzero(self) -> int:
        """Count the entries that are not 0."""
        return sum(int((block != 0).sum()) for block in self.blocks)

    def __setitem__(self, where: EllipsisType, other: BlockedFactor) -> None:
        for i, block in enumerate(other.blocks):
            self.blocks[i] = deepcopy(block)

    def __deepcopy__(self, memo: dict[int, object]) -> BlockedFactor:
        copied = self.empty_like()
        copied[...] = self
        return copied


class BlockedCoefficients:
    """S (n, 2p), cut like the data, for vectors; its transpose is for factors in blocks."""

    def __init__(self, S: Data, like: BlockedMatrix, inner: Backend) -> None:
        S = sp.csr_array(S)
        self.S, self.inner, self.shape = S, inner, S.shape
        self.blocks = [inner.coefficients(S[rows]) for rows in like.spans]
        # most blocks may have no labeled row at all
        self.used = np.flatnonzero(np.diff(S.indptr[np.asarray(like.bounds)])).tolist() or [0]

    def __matmul__(self, B: Array | BlockedFactor) -> Any:
        """Return ``S.T @ H``, a sum over blocks, or the product of S with a vector (2p,)."""
        if isinstance(B, BlockedFactor):
            return self.inner.total(self.blocks[i].T @ B.blocks[i] for i in self.used)
        return self.inner.coefficients(self.S) @ B

    @property
    def T(self) -> BlockedCoefficients:
        """The transpose, which gathers the rows of a factor."""
        transpose = copy(self)
        transpose.shape = self.shape[::-1]
        return transpose
