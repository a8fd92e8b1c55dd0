"""What travels through the blocked backend: data, H and S in blocks of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, MutableSequence, Sequence
from copy import deepcopy
from itertools import pairwise
from typing import Any, Protocol, runtime_checkable

import numpy as np
import scipy.sparse as sp

from marginparts._types import Array
from marginparts.backends import Backend


@runtime_checkable
class BlockSource(Protocol):
    """Trusted data in blocks of rows."""

    #: (k + 1,): block i has the rows ``bounds[i]:bounds[i + 1]``.
    bounds: Sequence[int]
    sparse: bool

    @property
    def shape(self) -> tuple[int, int]:
        """Samples and features."""
        ...

    def read(self, *, transposed: bool) -> Iterator[Any]:
        """Yield the blocks in order: CSR (n_i, d), or the transpose of each, CSR (d, n_i).

        Dense ones are (n_i, d) and never transposed. A block may be written over once the next one
        is asked for.
        """
        ...

    def room_for_blocks(self, inner: Backend) -> MutableSequence[Any]:
        """Return where the blocks of a factor can be kept, one for each block of rows."""
        ...


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
    room : callable
        Returns where the blocks of a factor can be kept.
    kind : prepared matrix
        One of the blocks' kind, for what is to be prepared alike.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        bounds: Sequence[int],
        read: Callable[[bool], Iterable[Any]],
        room: Callable[[], MutableSequence[Any]],
        kind: Any,
        transposed: bool = False,
    ) -> None:
        self.data_shape, self.bounds, self.read, self.room = shape, bounds, read, room
        self.kind, self.transposed = kind, transposed
        self.shape = shape[::-1] if transposed else shape

    @property
    def T(self) -> BlockedMatrix:
        """The transpose."""
        return BlockedMatrix(
            self.data_shape, self.bounds, self.read, self.room, self.kind, not self.transposed
        )

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
    blocks : mutable sequence
        The blocks as the inner backend keeps them. Whoever takes one out and changes it must put
        it back: the sequence may be on disk.
    like : BlockedMatrix
        The data whose rows these are.
    r : int
    """

    def __init__(self, blocks: MutableSequence[Any], like: BlockedMatrix, r: int) -> None:
        self.blocks, self.like = blocks, like
        self.shape = (like.data_shape[0], r)

    def empty_like(self) -> BlockedFactor:
        """Return room for such a factor."""
        return BlockedFactor(self.like.room(), self.like, self.shape[1])

    def count_nonzero(self) -> int:
        """Count the entries that are not 0."""
        return sum(int(np.count_nonzero(_host(block))) for block in self.blocks)

    def __setitem__(self, where: Any, other: BlockedFactor) -> None:
        assert where is Ellipsis
        for i, block in enumerate(other.blocks):
            self.blocks[i] = deepcopy(block)

    def __deepcopy__(self, memo: Any) -> BlockedFactor:
        copied = self.empty_like()
        copied[...] = self
        return copied


def _host(block: Any) -> Any:
    """Return a block that NumPy can count."""
    return block if isinstance(block, np.ndarray) else block.cpu().numpy()


class BlockedCoefficients:
    """S (n, 2p), cut like the data."""

    def __init__(self, S: Any, like: BlockedMatrix, inner: Backend) -> None:
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
