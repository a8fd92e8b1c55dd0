"""Checked data in a scratch folder, ready for the passes of a fit."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from marginparts._types import Array, Data
from marginparts.backends import Backend, get_backend
from marginparts.backends.blocked import BlockedBackend, BlockSource, FactorBlocks
from marginparts.rows.base import Facts, OutOfCore, facts_of
from marginparts.rows.disk._block_files import BlockFile, Buffer, FactorFile, new_buffer
from marginparts.rows.disk._limits import Plan, shown

logger = logging.getLogger("marginparts")


class StoredRows(OutOfCore, BlockSource):
    """Data in blocks of rows on disk, sparse blocks by rows and by columns.

    Each half-step of a fit needs one of the two, so nothing is transposed twice.
    """

    def __init__(
        self, folder: Path, d: int, dtype: np.dtype[Any], sparse: bool, plan: Plan
    ) -> None:
        self.folder, self.shape, self.dtype, self.sparse = folder, (0, d), dtype, sparse
        self.plan = plan
        self.by_rows, self.by_columns = (BlockFile(folder / name) for name in ("rows", "columns"))
        self._names = count()
        self._buffers: list[Buffer] = []

    def write(self, blocks: Iterable[Data]) -> None:
        """Store trusted blocks, by rows and (sparse ones) by columns."""
        told: list[Facts] = []
        with self.by_rows.writing() as by_rows, self.by_columns.writing() as by_columns:
            for X in blocks:
                told.append(facts_of(X))
                if isinstance(X, np.ndarray):
                    by_rows(X)
                else:
                    by_rows(X.data, X.indices, X.indptr)
                    XT = X.T.tocsr()
                    by_columns(XT.data, XT.indices, XT.indptr)
                    del XT
                del X  # it would be kept while the next is read
        self._note(told)
        self.shape = (self.bounds[-1], self.shape[1])
        logger.info(
            "%d rows in %d blocks on disk, the largest of %s; H is %s", self.shape[0], len(told),
            shown(self.by_rows.largest),
            "on disk" if self.plan.H_on_disk else "in memory",
        )  # fmt: skip

    def read(self, *, transposed: bool, only: Iterable[int] | None = None) -> Iterator[Any]:
        """Yield the blocks in order, or some of them; each is gone with the next."""
        file = self.by_columns if transposed and self.sparse else self.by_rows
        numbers = list(range(len(self.bounds) - 1) if only is None else only)
        # the same two buffers serve one pass after the other, by rows and by columns
        size = max(self.by_rows.largest, self.by_columns.largest)
        buffers, self._buffers = self._buffers or [new_buffer(size), new_buffer(size)], []
        for i, arrays in zip(numbers, file.read(numbers, buffers), strict=True):
            if self.scale != 1:
                arrays[0] *= self.dtype.type(self.scale)
            if self.sparse:
                shape = (self.bounds[i + 1] - self.bounds[i], self.shape[1])
                yield _as_csr(arrays, shape[::-1] if transposed else shape)
            else:
                yield arrays[0]
        self._buffers = buffers

    def kernels(self, backend: str | Backend, r: int) -> BlockedBackend:
        """Return a backend that takes a block at a time."""
        return BlockedBackend(get_backend(backend, self.nnz * r))

    def new_factor(self, inner: Backend) -> FactorBlocks:
        """Return where the blocks of H are kept: in memory, or in a file."""
        if not self.plan.H_on_disk:
            return super().new_factor(inner)
        return FactorFile(self.folder / f"factor{next(self._names)}", self.bounds, inner)

    def fits(self, rows: ArrayLike) -> bool:
        """Whether some rows fit into what the memory limit leaves for them."""
        return self._size(rows) <= self.plan.gather_bytes

    def _size(self, rows: ArrayLike) -> int:
        return int(self.counts[np.asarray(rows)].sum(dtype=np.int64)) * (self.dtype.itemsize + 4)

    def __getitem__(self, rows: ArrayLike) -> Data:
        """Return some rows (m, d) in memory, if they fit."""
        if not self.fits(rows):
            size = self._size(rows)
            raise ValueError(
                f"The {np.size(rows)} rows that are needed at once, the labeled ones first of all, "
                f"take {shown(size)}, and memory_limit leaves {shown(self.plan.gather_bytes)} for "
                "them; raise it or label fewer rows."
            )
        return super().__getitem__(rows)

    def _rows_of_blocks(self, wanted: dict[int, NDArray[np.intp]]) -> list[Data]:
        blocks = self.read(transposed=False, only=wanted)
        return [block[rows] for rows, block in zip(wanted.values(), blocks, strict=True)]

    def transposed_product(self, S: Data) -> Data:
        """Return ``S.T @ X`` (2p, d) for a sparse S (n, 2p), reading only blocks that S needs."""
        S = sp.csr_array(S)
        used = np.flatnonzero(np.diff(S.indptr[np.asarray(self.bounds)])).tolist()
        shape = (S.shape[1], self.shape[1])
        total: Any = sp.csr_array(shape) if self.sparse else np.zeros(shape)
        for i, block in zip(used, self.read(transposed=False, only=used), strict=True):
            total = total + S[self.bounds[i] : self.bounds[i + 1]].T @ block
        return total.astype(self.dtype)


def _as_csr(arrays: list[Array], shape: tuple[int, int]) -> sp.csr_array:
    """Return a CSR matrix of these very arrays: SciPy would copy views of larger ones."""
    X = sp.csr_array(shape, dtype=arrays[0].dtype)
    X.data, X.indices, X.indptr = arrays
    return X
