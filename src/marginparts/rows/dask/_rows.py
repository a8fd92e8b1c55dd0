"""Dask arrays as data for a fit."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from operator import getitem
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginparts._types import Data
from marginparts.backends import Backend, get_backend
from marginparts.rows.base import Elsewhere, Facts, OutOfCore, facts_of
from marginparts.rows.dask._calls import ClusterError, Workers, check_scheduler
from marginparts.rows.dask._shard import Spec
from marginparts.rows.dask.backend import DaskBackend
from marginparts.validation import check_matrix

if TYPE_CHECKING:
    import dask.array


class DaskRows(Elsewhere):
    """A Dask array (n, d) at the boundary: rows in chunks, features in one piece."""

    def __init__(self, array: dask.array.Array) -> None:
        if array.ndim != 2:
            raise ValueError(f"X has {array.ndim} dimensions; it needs two, samples and features.")
        if np.isnan(array.shape[0]):  # as from a data frame
            array = array.compute_chunk_sizes()
        if array.numblocks[1] > 1:
            warnings.warn(
                f"X is cut into {array.numblocks[1]} pieces along its features, and is put "
                "together by rows, which moves all of it; chunk it by rows alone.",
                stacklevel=3,
            )
            array = array.rechunk({1: -1})
        self.array: Any = array
        self.shape = (int(array.shape[0]), int(array.shape[1]))
        self.dtype = np.dtype(np.float32 if array.dtype == np.float32 else np.float64)

    def __repr__(self) -> str:
        return f"DaskRows({self.shape[0]:,} x {self.shape[1]:,})"

    def gathered(self) -> Any:
        """Return all rows in memory, for estimators that need them at once."""
        return self.array.compute()

    @contextmanager
    def at_hand(self, n_components: int, solver: str) -> Iterator[ClusterRows]:
        """Have all blocks checked and kept by their workers."""
        rows = ClusterRows(self.array, self.dtype)
        try:
            yield rows
        except Exception as error:
            check_scheduler(rows.client, error)  # whatever was asked for finds out
            raise
        finally:
            rows.close()


class ClusterRows(OutOfCore):
    """Checked blocks of rows on the workers of the current client."""

    def __init__(self, array: dask.array.Array, dtype: np.dtype[Any]) -> None:
        self.client = _client()
        raw = self.client.compute(list(array.to_delayed().ravel()))
        self.dtype = dtype
        self.blocks = [
            self.client.submit(_checked, block, i, dtype, pure=False) for i, block in enumerate(raw)
        ]
        told = self.client.gather(
            [self.client.submit(_facts, block, pure=False) for block in self.blocks]
        )
        self.sparse = told[0][1]
        self._note([facts for facts, _ in told])
        self.shape = (self.bounds[-1], int(array.shape[1]))
        self._workers: list[Workers] = []

    def kernels(self, backend: str | Backend, r: int) -> DaskBackend:
        """Return the backend of a fit: this one's kernels run on the workers."""
        name = backend if isinstance(backend, str) else backend.name
        spec = Spec("", name, self.nnz * r // len(self.blocks), r, self.dtype, self.scale)
        by_block = np.split(self.counts, np.asarray(self.bounds[1:-1], int))
        work = [counts.sum(dtype=np.int64) + len(counts) for counts in by_block]
        workers = Workers(self.client, self.blocks, self.bounds[:-1], work, spec)
        self._workers.append(workers)
        return DaskBackend(workers, get_backend("numba"), self.sparse, r)

    def _rows_of_blocks(self, wanted: dict[int, NDArray[np.intp]]) -> list[Data]:
        found = self.client.gather(
            [self.client.submit(getitem, self.blocks[i], rows) for i, rows in wanted.items()]
        )
        return [some if self.scale == 1 else some * some.dtype.type(self.scale) for some in found]

    def close(self) -> None:
        """Let the workers forget everything but what the caller holds."""
        for workers in self._workers:
            workers.close()


def _client() -> Any:
    """Return the client of the current cluster."""
    try:
        from distributed import get_client

        return get_client()
    except ImportError as error:
        raise ImportError(
            "A fit on a Dask array needs distributed: pip install 'marginparts[dask]'."
        ) from error
    except ValueError as error:
        raise ClusterError(
            "A fit on a Dask array needs a cluster; make a dask.distributed.Client first."
        ) from error


def _checked(X: Any, number: int, dtype: np.dtype[Any]) -> Data:
    """Return a block as trusted data, on its worker."""
    if not sp.issparse(X):
        X = np.asarray(X)
    try:
        return check_matrix(X.astype(dtype, copy=False), "a fit")
    except ValueError as error:
        raise ValueError(f"Block {number} of X: {error}") from None


def _facts(X: Data) -> tuple[Facts, bool]:
    return facts_of(X), sp.issparse(X)
