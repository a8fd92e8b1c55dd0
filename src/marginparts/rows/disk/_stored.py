"""Checked data in a scratch folder, ready for the passes of a fit."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginparts.backends import Backend, get_backend
from marginparts.backends.blocked import BlockedBackend
from marginparts.rows.base import OutOfCore, facts_of
from marginparts.rows.disk._block_files import BlockFile, FactorFile, Room, new_room
from marginparts.rows.disk._limits import Plan, shown

logger = logging.getLogger("marginparts")


class StoredRows(OutOfCore):
    """Data in blocks of rows on disk, sparse blocks by rows and by columns.

    Each half-step of a fit needs one of the two, so nothing is transposed twice. It is a
    `BlockSource` for the blocked backend, and can be asked for what a fit wants to know of X: its
    shape, type and sums, and some of its rows.

    Attributes
    ----------
    shape : (n, d)
    dtype : float32 or float64
    nnz : int
    bounds : (k + 1,) ints
        Block i has the rows ``bounds[i]:bounds[i + 1]``.
    mass, lengths : (n,) arrays
        The sum and the Euclidean length of each row, in float64.
    """

    def __init__(self, folder: Path, d: int, dtype: Any, sparse: bool, plan: Plan) -> None:
        self.folder, self.d, self.dtype, self.sparse, self.plan = folder, d, dtype, sparse, plan
        self.by_rows, self.by_columns = (BlockFile(folder / name) for name in ("rows", "columns"))
        self.bounds = [0]
        self.nnz = 0
        self._names = count()
        self._rooms: list[Room] = []

    @property
    def shape(self) -> tuple[int, int]:
        """Samples and features."""
        return self.bounds[-1], self.d

    def write(self, blocks: Iterable[Any]) -> None:
        """Store trusted blocks, by rows and (sparse ones) by columns."""
        told: list[tuple[NDArray[Any], ...]] = []
        with self.by_rows.writing() as by_rows, self.by_columns.writing() as by_columns:
            for X in blocks:
                self.bounds.append(self.bounds[-1] + X.shape[0])
                told.append(facts_of(X))
                if self.sparse:
                    by_rows(X.data, X.indices, X.indptr)
                    XT = X.T.tocsr()
                    by_columns(XT.data, XT.indices, XT.indptr)
                else:
                    by_rows(X)
        self.mass, self.lengths, self.counts = map(np.concatenate, zip(*told, strict=True))
        self.nnz = int(self.counts.sum(dtype=np.int64))
        logger.info(
            "%d rows in %d blocks on disk, the largest of %s; H is %s", self.shape[0], len(told),
            shown(self.by_rows.largest),
            "on disk" if self.plan.H_on_disk else "in memory",
        )  # fmt: skip

    def read(self, *, transposed: bool, only: Iterable[int] | None = None) -> Iterator[Any]:
        """Yield the blocks in order, or some of them; each is gone with the next."""
        file = self.by_columns if transposed and self.sparse else self.by_rows
        numbers = list(range(len(self.bounds) - 1) if only is None else only)
        # the same two rooms serve one pass after the other, by rows and by columns
        size = max(self.by_rows.largest, self.by_columns.largest)
        rooms, self._rooms = self._rooms or [new_room(size), new_room(size)], []
        for i, arrays in zip(numbers, file.read(numbers, rooms), strict=True):
            if self.scale != 1:
                arrays[0] *= self.dtype.type(self.scale)
            if self.sparse:
                shape = (self.bounds[i + 1] - self.bounds[i], self.d)
                yield _as_csr(arrays, shape[::-1] if transposed else shape)
            else:
                yield arrays[0]
        self._rooms = rooms

    def kernels(self, backend: str | Backend, r: int) -> BlockedBackend:
        """Return a backend that takes a block at a time."""
        return BlockedBackend(get_backend(backend, self.nnz * r))

    def room_for_blocks(self, inner: Any) -> Any:
        """Return where the blocks of H are kept: in memory, or in a file."""
        if not self.plan.H_on_disk:
            return [None] * (len(self.bounds) - 1)
        return FactorFile(self.folder / f"factor{next(self._names)}", self.bounds, inner)

    def __getitem__(self, rows: Any) -> Any:
        """Return some rows (m, d) in the order asked for, in memory."""
        rows = np.asarray(rows)
        size = int(self.counts[rows].sum(dtype=np.int64)) * (self.dtype.itemsize + 4)
        if size > self.plan.gather_bytes:
            raise ValueError(
                f"The {len(rows)} rows that are needed at once, the labeled ones first of all, "
                f"take {shown(size)}, and memory_limit leaves {shown(self.plan.gather_bytes)} for "
                "them; raise it or label fewer rows."
            )
        order = np.argsort(rows, kind="stable")
        cuts = np.searchsorted(rows[order], self.bounds)
        used = np.flatnonzero(np.diff(cuts))
        found = [
            block[rows[order[cuts[i] : cuts[i + 1]]] - self.bounds[i]]
            for i, block in zip(used, self.read(transposed=False, only=used), strict=True)
        ]
        back = np.argsort(order, kind="stable")
        if not self.sparse:
            return np.concatenate(found)[back] if found else np.empty((0, self.d), self.dtype)
        if not found:
            return sp.csr_array((0, self.d), dtype=self.dtype)
        return sp.csr_array(sp.vstack(found, format="csr")[back])

    def transposed_product(self, S: Any) -> Any:
        """Return ``S.T @ X`` (2p, d) for a sparse S (n, 2p), reading only blocks that S needs."""
        S = sp.csr_array(S)
        used = np.flatnonzero(np.diff(S.indptr[np.asarray(self.bounds)]))
        shape = (S.shape[1], self.d)
        total: Any = sp.csr_array(shape) if self.sparse else np.zeros(shape)
        for i, block in zip(used, self.read(transposed=False, only=used), strict=True):
            total = total + S[self.bounds[i] : self.bounds[i + 1]].T @ block
        return total.astype(self.dtype)


def _as_csr(arrays: list[Any], shape: tuple[int, int]) -> sp.csr_array:
    """Return a CSR matrix of these very arrays: SciPy would copy views of larger ones."""
    X = sp.csr_array(shape, dtype=arrays[0].dtype)
    X.data, X.indices, X.indptr = arrays
    return X
