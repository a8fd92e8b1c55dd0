"""What travels through the blocked backend: data, H and S in blocks of rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy, deepcopy
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

    #: (k + 1,): block i has the rows ``bounds[i]:bounds[i + 1]``.
    bounds: Sequence[int]
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


class BlockedMatrix:
    """Prepared data in blocks of rows, or the transpose of it.

    Parameters
    ----------
    shape : (n, d)
        Of the data, whether transposed or not.
    bounds : (k + 1,) ints
        Block i has the rows ``bounds[i]:bounds[i + 1]`` of the data.
    read : callable
        ``read(transposed)`` yields the blocks (n_i, d), or (d, n_i), prepared by the inner backend.
    new_factor : callable
        Returns where the blocks of a factor can be kept.
    kind : prepared matrix
        One of the blocks' kind, for what is to be prepared alike.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        bounds: Sequence[int],
        read: Callable[[bool], Iterable[Any]],
        new_factor: Callable[[], FactorBlocks],
        kind: Matrix,
    ) -> None:
        self.shape, self.bounds, self.read, self.new_factor = shape, bounds, read, new_factor
        self.kind, self.transposed = kind, False

    @property
    def T(self) -> BlockedMatrix:
        """The transpose."""
        transpose = copy(self)
        transpose.shape, transpose.transposed = self.shape[::-1], not self.transposed
        return transpose

    @property
    def spans(self) -> list[slice]:
        """The rows of each block."""
        return [slice(int(a), int(b)) for a, b in pairwise(self.bounds)]

    def parts(self) -> Iterable[Any]:
        """Yield the blocks in order, transposed if this is."""
        return self.read(self.transposed)


class BlockedFactor:
    """A factor (n, r) in blocks of rows. Reading a block and writing one is all there is to it.

    Parameters
    ----------
    like : BlockedMatrix
        The data whose rows these are.
    r : int
    """

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
    """S (n, 2p), cut like the data."""

    def __init__(self, S: Data, like: BlockedMatrix, inner: Backend) -> None:
        S = sp.csr_array(S)
        self.S, self.inner, self.shape = S, inner, S.shape
        self.blocks = [inner.coefficients(S[rows]) for rows in like.spans]
        # most blocks may have no labeled row at all
        self.used = np.flatnonzero(np.diff(S.indptr[np.asarray(like.bounds)])).tolist() or [0]

    def __matmul__(self, ones: Array) -> Array:
        """Return the product with a vector (2p,)."""
        product: Array = self.inner.coefficients(self.S) @ ones
        return product

    @property
    def T(self) -> _Gathering:
        """The transpose, which gathers the rows of a factor."""
        return _Gathering(self)


class _Gathering:
    """``S.T``: its product with H is a sum over blocks."""

    def __init__(self, S: BlockedCoefficients) -> None:
        self.S = S

    def __matmul__(self, H: BlockedFactor) -> Any:
        return self.S.inner.total(self.S.blocks[i].T @ H.blocks[i] for i in self.S.used)
