"""Data in blocks of rows, for data that is not all in one place: on disk, say.

A backend around another one, which sees one block at a time. H is cut like the data, V stays whole:

    update of H    block by block: a row of H depends on its own row of X alone
    update of V    the numerators of the blocks are added up in float64, in the order of the rows

Whoever has the blocks gives them as a `BlockSource`. There are no sweeps over blocks: coordinate
descent would need all of a row of ``X.T`` at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from types import EllipsisType
from typing import Any, TypeAlias, cast

import numpy as np
import scipy.sparse as sp

from marginparts._types import Array, Data, Matrix, Step
from marginparts.backends.base import Also, Backend, Plus, gauged


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

    def __setitem__(self, i: int, block: Any) -> None:
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


#: H is in blocks of rows; V and what belongs to the margin components is as the inner backend's.
Factor: TypeAlias = Array | BlockedFactor


class BlockedBackend(Backend):
    """Blocks of rows, each left to an inner backend.

    Parameters
    ----------
    inner : Backend
        Where the kernels run.
    cut : int or (k + 1,) ints
        Rows of a block, or the bounds of all blocks, for data that is in memory. A `BlockSource`
        brings its own.

    Examples
    --------
    >>> import numpy as np
    >>> from marginparts import nmf_alpha
    >>> from marginparts.backends import get_backend
    >>> X = np.random.default_rng(0).random((50, 20))
    >>> blocked = BlockedBackend(get_backend("numba"), cut=8)
    >>> a, b = (nmf_alpha(X, 3, solver="mu", random_state=0, backend=k) for k in ("numba", blocked))
    >>> np.allclose(a.V, b.V)
    True
    """

    name = "blocked"
    can_shrink = False

    def __init__(self, inner: Backend, cut: int | Sequence[int] = 10_000) -> None:
        self.inner, self.cut = inner, cut

    def prepare(self, X: Data | BlockSource, like: Matrix | None = None) -> Any:
        """Cut the data; what is like it (the margin components) stays whole."""
        if isinstance(X, BlockSource):
            return self._streamed(X)
        if like is not None:
            return self.inner.prepare(X, like=cast(BlockedMatrix, like).kind)
        return self._in_memory(X)

    def _streamed(self, source: BlockSource) -> BlockedMatrix:
        """Blocks that are read again in each pass."""
        # a matrix without rows settles the kind: all blocks must be of one
        empty = np.empty((0, source.shape[1]))
        kind = self.inner.prepare(sp.csr_array(empty) if source.sparse else empty,
                                  like=None if source.sparse else empty)  # fmt: skip

        def read(transposed: bool) -> Iterator[Any]:
            for block in source.read(transposed=transposed):
                part = self.inner.prepare_once(block, kind)
                yield part.T if transposed and not source.sparse else part

        return BlockedMatrix(
            source.shape, source.bounds, read, lambda: source.new_factor(self.inner), kind
        )

    def _in_memory(self, X: Data) -> BlockedMatrix:
        """Blocks that are prepared once and stay."""
        n = X.shape[0]
        if isinstance(self.cut, int | np.integer):
            bounds = [*range(0, n, int(self.cut)), n]
        else:
            bounds = [int(bound) for bound in self.cut]
        kind = self.inner.prepare(X[:0], like=self.inner.prepare(X[bounds[0] : bounds[1]]))
        parts = [self.inner.prepare(X[a:b], like=kind) for a, b in pairwise(bounds)]
        return BlockedMatrix(
            X.shape, bounds, lambda transposed: (part.T if transposed else part for part in parts),
            lambda: FactorBlocks(len(parts)), kind,
        )  # fmt: skip

    def coefficients(self, S: Data, rows_of: Matrix | None = None) -> Any:
        """Cut S like the data."""
        if rows_of is None:
            return self.inner.coefficients(S)
        return BlockedCoefficients(S, cast(BlockedMatrix, rows_of), self.inner)

    def factor(self, A: Array, rows_of: Matrix | None = None) -> Any:
        """Cut a factor like the data; one that shares no rows with it stays whole."""
        if rows_of is None:
            return self.inner.factor(A)
        blocked = BlockedFactor(cast(BlockedMatrix, rows_of), A.shape[1])
        for i, rows in enumerate(blocked.like.spans):
            blocked.blocks[i] = block = self.inner.factor(A[rows])
        blocked.shape = (blocked.shape[0], block.shape[1])
        return blocked

    def release(self, A: Factor, r: int) -> Array:
        """Return a factor as one array (n, r), one on disk as a memory map."""
        if isinstance(A, BlockedFactor):
            return A.blocks.whole(self.inner, r)
        return self.inner.release(A, r)

    def column_sums(self, A: Factor) -> Any:
        """Return the sums over rows in float64."""
        if not isinstance(A, BlockedFactor):
            return self.inner.column_sums(A)
        return self.inner.total(map(self.inner.column_sums, A.blocks))

    def quotient(self, A: Array, B: Array) -> Any:
        """Return ``A / B`` of factors that stay whole, and 0 where B is 0."""
        return self.inner.quotient(A, B)

    def ahead(self, now: Factor, before: Factor, b: float, least: float) -> Any:
        """Write the point ahead over ``before``."""
        if not isinstance(now, BlockedFactor) or not isinstance(before, BlockedFactor):
            return self.inner.ahead(cast(Array, now), cast(Array, before), b, least)
        for i, block in enumerate(now.blocks):
            before.blocks[i] = self.inner.ahead(block, before.blocks[i], b, least)
        return before

    def ratio_matmul(self, X: Matrix, A: Factor, B: Factor) -> Any:
        """Return ``(X / (A @ B.T)) @ B``: a sum over the blocks of B, or blocks of their own."""
        if not isinstance(X, BlockedMatrix):
            return self.inner.ratio_matmul(X, cast(Array, A), cast(Array, B))
        if isinstance(B, BlockedFactor):
            return self.inner.total(self._ratios(X, cast(Array, A), B))
        assert isinstance(A, BlockedFactor)
        found = A.empty_like()
        for i, part in enumerate(X.parts()):
            found.blocks[i] = self.inner.ratio_matmul(part, A.blocks[i], B)
        return found

    def _ratios(self, XT: BlockedMatrix, A: Array, B: BlockedFactor) -> Iterator[Array]:
        """Yield the share of each block of samples in the numerator of A (d, r)."""
        for i, part in enumerate(XT.parts()):
            yield self.inner.ratio_matmul(part, A, B.blocks[i])

    def divergence(self, X: Matrix, A: Factor, B: Factor) -> float:
        """Return the I-divergence (eq. 2), the sum of those of the blocks."""
        if isinstance(X, BlockedMatrix) and isinstance(A, BlockedFactor):
            parts = enumerate(X.parts())
            return sum(
                self.inner.divergence(part, A.blocks[i], cast(Array, B)) for i, part in parts
            )
        return self.inner.divergence(X, cast(Array, A), cast(Array, B))

    def half_step(
        self, X: Matrix, A: Factor, B: Factor, den: Array, *, weight: Array | None = None,
        also: Also | None = None, plus: Plus | None = None, out: Factor | None = None,
        gauge: bool = False,
    ) -> Step:  # fmt: skip
        """Return the update of H (n, r) block by block, or that of V (d, r) from all blocks."""
        assert isinstance(X, BlockedMatrix)
        if isinstance(A, BlockedFactor):
            new = A.empty_like() if out is None else cast(BlockedFactor, out)
            return self._update_blocks(X, A, cast(Array, B), den, weight, plus, new, gauge)
        terms = self._ratios(X, A, cast(BlockedFactor, B))
        if also is not None:
            ratio = self.inner.ratio_matmul(also.X, A, also.B)
            terms = chain(terms, [also.weight * ratio])
        if plus is not None:
            terms = chain(terms, [plus.weight * (plus.S @ plus.T)])
        return self.inner.finish(A, self.inner.total(terms), den, cast("Array | None", out), gauge)

    def _update_blocks(
        self, X: BlockedMatrix, A: BlockedFactor, B: Array, den: Array, weight: Array | None,
        plus: Plus | None, new: BlockedFactor, gauge: bool,
    ) -> Step:  # fmt: skip
        mass = worst = 0.0
        S = None if plus is None else cast(BlockedCoefficients, plus.S)
        for i, (rows, part) in enumerate(zip(X.spans, X.parts(), strict=True)):
            block = A.blocks[i]
            step = self.inner.half_step(
                part, block, B, den,
                weight=None if weight is None else weight[rows],
                plus=None if plus is None or S is None else plus._replace(S=S.blocks[i]),
                out=block if new is A else None, gauge=gauge,
            )  # fmt: skip
            new.blocks[i] = step.factor
            mass, worst = mass + step.mass, worst + step.mass * (step.violation or 0.0)
        return gauged(new, mass, worst) if gauge else Step(new)
