"""Which rows of data in memory are the same: a number for each, made of what is in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginparts._types import Array, Data

#: Entries of dense data that are looked at at a time.
_CHUNK = 1 << 22


def row_numbers(X: Data, stream: int) -> NDArray[np.uint64]:
    """Return a number for each row (n,) that depends on its entries alone, zeros left out."""
    drawn: Any = np.random.default_rng(stream).integers(2**64, size=X.shape[1], dtype=np.uint64)
    factors: NDArray[np.uint64] = drawn | np.uint64(1)
    if isinstance(X, np.ndarray):
        step = max(_CHUNK // max(X.shape[1], 1), 1)
        parts = [X[first : first + step] for first in range(0, X.shape[0], step)]
        found = [(_bits(part) * factors).sum(axis=1, dtype=np.uint64) for part in parts]
        return np.concatenate(found)
    sums: NDArray[np.uint64] = np.zeros(X.nnz + 1, dtype=np.uint64)
    sums[1:] = np.cumsum(_bits(X.data) * factors[X.indices], dtype=np.uint64)
    return np.asarray(np.diff(sums[X.indptr]), dtype=np.uint64)


def in_order(keys: Sequence[NDArray[Any]]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return the order of rows by their keys (n,), and which in that order are not as the last."""
    order = np.lexsort(keys)
    new = np.ones(len(order), dtype=bool)
    new[1:] = np.any([key[order][1:] != key[order][:-1] for key in keys], axis=0)
    return order, new


def _bits(values: Array) -> NDArray[np.uint64]:
    """Return the bits of numbers, well mixed; 0 for 0."""
    bits = np.ascontiguousarray(values, dtype=np.float64).view(np.uint64).copy()
    bits ^= bits >> np.uint64(30)
    bits *= np.uint64(0xBF58476D1CE4E5B9)
    bits ^= bits >> np.uint64(27)
    bits *= np.uint64(0x94D049BB133111EB)
    bits ^= bits >> np.uint64(31)
    return bits
