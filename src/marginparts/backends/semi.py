"""What semi-NMF asks of a machine: products with the data, and steps of the rows of H.

`SemiKernels` is the definition, in NumPy. `cpu.semi` and `gpu.semi` do the same faster. The basis V
(d, r) and all that is small is on the host; data, H and ``X V`` are where the kernels run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from marginparts._types import Array, Data, Step
from marginparts.backends.base import Backend, gauged, moved_ahead, safe_ratio

#: Entries of H that are worked on at a time: they stay in the cache.
_AT_ONCE = 1 << 16

#: Entries that new samples, or their codes, have at a time.
_CHUNK = 1 << 23

#: The change of a row, beside its largest entry, that ends its sweeps.
SETTLED = 1e-7

Rows = Any  # H or X V as the kernels keep it: an array, or a tensor on a GPU


def semi_kernels_of(backend: Backend) -> SemiKernels:
    """Return the kernels of a backend for data of either sign, in NumPy where it has no others."""
    return backend.semi() or SemiKernels()


class SemiKernels:
    """Plain NumPy, never optimized; ``gram`` (r, r) is ``V'V``."""

    name = "reference"

    #: Entries of H that a step works on at a time.
    at_once = _AT_ONCE

    def holds(self, X: Data, r: int) -> bool:
        """Say whether there is memory for the data and what a run needs beside it."""
        return True

    def prepare(self, X: Data) -> Any:
        """Return data ready for products; it has a ``shape``."""
        return X

    def factor(self, H: Array) -> Rows:
        """Return H as the kernels like it best; it may be the array itself."""
        return H

    def release(self, H: Rows) -> Array:
        """Return that H as a NumPy array."""
        return np.asarray(H)

    def inner(self, X: Any, H: Rows) -> Array:
        """Return ``X'H`` (d, r) in float64."""
        return np.asarray(X.T @ H, dtype=np.float64)

    def gram(self, H: Rows) -> Array:
        """Return ``H'H`` (r, r) in float64."""
        return np.asarray(H.T @ H, dtype=np.float64)

    def product(self, samples: Sequence[Any], V: Array, out: Rows | None = None) -> Rows:
        """Return ``X V`` of several sets of samples, one below the other."""
        n, first = sum(X.shape[0] for X in samples), 0
        XV = np.empty((n, V.shape[1]), V.dtype) if out is None else out
        for X in samples:
            rows = slice(first, first := first + X.shape[0])
            if isinstance(X, np.ndarray):
                np.matmul(X, V, out=XV[rows])
            else:
                XV[rows] = X @ V
        return XV

    def multiplied(
        self, H: Rows, XV: Rows, gram: Array, out: Rows | None = None, gauge: bool = False
    ) -> Step:
        """Return H after the multiplicative step of Ding, Li & Jordan."""
        return self._by_blocks(H, XV, gram, _multiplied, out, gauge)

    def swept(
        self, H: Rows, XV: Rows, gram: Array, out: Rows | None = None, gauge: bool = False
    ) -> Step:
        """Return H after each entry of a row in turn went to its optimum."""
        return self._by_blocks(H, XV, gram, _swept, out, gauge)

    def codes(self, X: Data, V: Array, sweeps: int, inverse: Array | None = None) -> Array:
        """Return H (n, r) of samples after sweeps, each row until it is settled.

        They are from zero, or with the inverse of the Gram matrix (r, r) from `least_squares`.
        """
        n, r = X.shape[0], V.shape[1]
        H, gram = np.zeros((n, r), V.dtype), V.T @ V
        for rows in batches(H, r * self.rows_at_once(X, r)):
            H[rows] = self._settled(X[rows], V, gram, sweeps, inverse)
        return H

    def rows_at_once(self, X: Data, r: int) -> int:
        """Return how many of some new samples are worked on at a time."""
        entries = X.size if isinstance(X, np.ndarray) else X.nnz
        return max(1, _CHUNK // max(r, -(-entries // max(X.shape[0], 1))))

    def _settled(self, X: Data, V: Array, gram: Array, sweeps: int, inverse: Array | None) -> Array:
        """Return the codes of some samples."""
        XV = np.ascontiguousarray(X @ V, dtype=V.dtype)
        H, going = self._start(XV, gram, inverse), np.ones(len(XV), bool)
        for _ in range(sweeps):
            before, H = H, np.where(going[:, None], _swept(H, XV, gram), H)
            going &= np.abs(H - before).max(axis=1) > SETTLED * H.max(axis=1)
            if not going.any():
                break
        return H

    def _start(self, XV: Rows, gram: Array, inverse: Array | None) -> Rows:
        """Return where sweeps begin."""
        H = np.zeros_like(XV)
        if inverse is not None:
            for rows in self._batches(H):
                H[rows] = least_squares(XV[rows], gram, inverse)
        return H

    def ahead(self, now: Rows, before: Rows, b: float, least: float) -> Rows:
        """Return a point ahead of H, for extrapolation, written over ``before``."""
        for rows in self._batches(now):
            before[rows] = moved_ahead(now[rows], before[rows], b, least)
        return before

    def cross(self, XV: Rows, H: Rows) -> float:
        """Return ``<X V, H>``, added up in float64."""
        return float(np.einsum("ik,ik->", XV, H, dtype=np.float64))

    def _batches(self, H: Rows) -> Iterator[slice]:
        """Return slices of some rows each."""
        return batches(H, self.at_once)

    def _by_blocks(
        self, H: Rows, XV: Rows, gram: Array, step: Callable[..., Rows], out: Rows | None,
        gauge: bool,
    ) -> Step:  # fmt: skip
        """Return H after a step of each row, some rows at a time."""
        new = np.empty_like(H) if out is None else out
        lengths, mass, moved = np.sqrt(np.diag(gram)), 0.0, 0.0
        for rows in self._batches(H):
            found = step(H[rows], XV[rows], gram)
            if gauge:
                mass += float((found @ lengths).sum(dtype=np.float64))
                moved += float((np.abs(found - H[rows]) @ lengths).sum(dtype=np.float64))
            new[rows] = found
        return violated(new, mass, moved) if gauge else Step(new)


def batches(A: Rows, at_once: int, grain: int = 1) -> Iterator[slice]:
    """Return slices of rows with so many entries each; they begin at a multiple of a grain."""
    step = max(grain, at_once // max(A.shape[1], 1) // grain * grain)
    return (slice(first, min(first + step, A.shape[0])) for first in range(0, A.shape[0], step))


def violated(new: Rows, mass: float, moved: float) -> Step:
    """Return a step whose violation is how far the codes moved, relative to their size.

    An entry counts by the length of its part.
    """
    return gauged(new, mass, min(moved, mass))


def least_squares(XV: Array, gram: Array, inverse: Array) -> Array:
    """Return the codes of least squares without those below zero, each row times its best number.

    So none is worse than zero, or than what is left without that number. In float64.
    """
    H = XV @ inverse
    np.maximum(H, 0, out=H)
    with np.errstate(over="ignore", invalid="ignore"):  # the largest data begins at zero
        up, down = np.einsum("ik,ik->i", H, XV), np.einsum("ik,ik->i", H @ gram, H)
        ratio = np.nan_to_num(up / np.where(down > 0, down, np.inf), posinf=0.0)
    H *= np.maximum(ratio, 0)[:, None]
    return H


def _multiplied(H: Array, XV: Array, gram: Array) -> Array:
    """Return rows of H times the root of what pulls them up over what pulls them down."""
    zero = H.dtype.type(0)
    up, down, part = H @ np.maximum(-gram, zero), H @ np.maximum(gram, zero), np.maximum(XV, zero)
    up += part
    part -= XV  # what is left are the negative entries, as positive ones
    down += part
    return H * np.sqrt(safe_ratio(up, down))


def _swept(H: Array, XV: Array, gram: Array) -> Array:
    """Return rows of H after a sweep of coordinate descent; parts of length 0 have none."""
    H = H.copy()
    for k, row in enumerate(gram):
        slope = H @ row - XV[:, k]
        H[:, k] = np.maximum(H[:, k] - slope / row[k], 0) if row[k] > 0 else 0
    return H
