"""Counts of cells as rows for a fit: where AnnData keeps them, and how they are prepared.

The usual preparation of counts is divided by size factors and then ``log(1 + x)``: how deeply a
cell was sequenced says nothing of its type, and a gene that is counted a hundred times should not
drown those that are counted once. Both keep zeros, so sparse stays sparse and a matrix on disk is
prepared while it is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginparts._types import Array, Data
from marginparts.rows.disk import RowBlocks, open_rows
from marginparts.validation import is_dask

#: Rows whose factors are spread over their entries at a time.
_ROWS = 4096


class Wanted(NamedTuple):
    """Which matrix of an AnnData object is meant, which of its genes, and how it is prepared."""

    layer: str | None = None
    use_raw: bool = False
    mask_var: Any = None
    size_factors: Any = "auto"
    memory_limit: int | str = "2GB"


class Cells(NamedTuple):
    """Prepared rows (n, k), which columns of the matrix they have (None for all), how prepared."""

    X: Data | RowBlocks
    genes: NDArray[np.intp] | None
    prepared: str


@dataclass(frozen=True)
class _Prepared:
    """What makes some rows as they are stored into rows for a fit."""

    genes: NDArray[np.intp] | None
    factors: Array | None

    def __call__(self, X: Any, rows: slice = slice(None)) -> Any:
        """Return some rows (m, k) in float32; ``rows`` says which of all they are."""
        X = X if self.genes is None else X[:, self.genes]
        if not sp.issparse(X):
            X = X.astype(np.float32)
            if self.factors is not None:
                X /= self.factors[rows].astype(np.float32)[:, None]
                np.log1p(X, out=X)
            return X
        values = X.data.astype(np.float32)
        if self.factors is not None:
            _divide(values, X.indptr, self.factors[rows].astype(np.float32))
            np.log1p(values, out=values)
        return sp.csr_array((values, X.indices, X.indptr), shape=X.shape)


def _divide(values: Array, indptr: NDArray[Any], factors: Array) -> None:
    """Divide the entries of each row by its factor, some rows at a time: a block is large."""
    for first in range(0, len(factors), _ROWS):
        ends = indptr[first : first + _ROWS + 1]
        values[ends[0] : ends[-1]] /= np.repeat(factors[first : first + _ROWS], np.diff(ends))


def cells_of(adata: Any, wanted: Wanted) -> Cells:
    """Return the rows of a fit, in memory or, for a backed object, on disk."""
    X = _matrix(adata, wanted)
    genes = _genes(adata.raw if wanted.use_raw else adata, wanted)
    factors = _factors(adata, X, wanted)
    prepare = _Prepared(genes, factors)
    prepared = "as they are" if factors is None else "log(1 + x / size factor)"
    if isinstance(X, RowBlocks):
        d = X.shape[1] if genes is None else len(genes)
        return Cells(X.prepared(prepare, d), genes, prepared)
    return Cells(prepare(X), genes, prepared)


def _matrix(adata: Any, wanted: Wanted) -> Data | RowBlocks:
    """Return the matrix that is meant, as it is stored."""
    if wanted.use_raw:
        if wanted.layer is not None:
            raise ValueError("use_raw=True and layer= name two matrices; give one of them.")
        if adata.raw is None:
            raise ValueError("use_raw=True needs adata.raw, and there is none.")
    if wanted.layer is not None and wanted.layer not in adata.layers:
        known = ", ".join(map(str, adata.layers)) or "none"
        raise ValueError(f"adata.layers has no {wanted.layer!r}; there are: {known}.")
    # of a backed object X and raw are on disk; AnnData has its layers in memory
    if adata.isbacked and wanted.layer is None:
        if adata.is_view:
            raise ValueError(
                "A part of a backed object cannot be read by rows; write it to a file of its own, "
                "or load it with .to_memory()."
            )
        group = "raw/X" if wanted.use_raw else "X"
        return open_rows(adata.filename, memory_limit=wanted.memory_limit, group=group)
    holder = adata.raw if wanted.use_raw else adata
    X = holder.X if wanted.layer is None else adata.layers[wanted.layer]
    if X is None:
        raise ValueError("adata.X is empty; name a matrix with layer=.")
    if is_dask(X):
        raise ValueError(
            "The matrix is a Dask array; load it with .compute(), or open the file with "
            'anndata.read_h5ad(path, backed="r").'
        )
    return _nonnegative(sp.csr_array(X) if sp.issparse(X) else np.asarray(X))


def _nonnegative(X: Data) -> Data:
    values: Any = X.data if sp.issparse(X) else X
    if values.dtype.kind not in "buif":
        raise ValueError(f"The matrix holds {values.dtype} entries; it needs numbers.")
    if values.size and not values.min() >= 0:
        raise ValueError(
            "The matrix has entries below 0 or NaN, as after sc.pp.scale; name one that has none, "
            "counts or their logarithms, with layer= or use_raw=True."
        )
    return X


def _genes(holder: Any, wanted: Wanted) -> NDArray[np.intp] | None:
    """Return the columns that ``mask_var`` leaves: a column of var, or one bool a gene."""
    mask = wanted.mask_var
    if mask is None:
        return None
    if isinstance(mask, str):
        if mask not in holder.var:
            where = "adata.raw.var" if wanted.use_raw else "adata.var"
            raise ValueError(f"mask_var={mask!r} is no column of {where}.")
        mask = holder.var[mask]
    mask = np.asarray(mask)
    if mask.shape != (holder.n_vars,) or mask.dtype != bool:
        raise ValueError(f"mask_var must be one bool for each of {holder.n_vars} genes.")
    if not mask.any():
        raise ValueError("mask_var leaves no gene.")
    return np.flatnonzero(mask)


def _factors(adata: Any, X: Data | RowBlocks, wanted: Wanted) -> Array | None:
    """Return what each cell's counts are divided by; None where there is nothing to prepare."""
    given = wanted.size_factors
    if given is None:
        return None
    if isinstance(given, str) and given == "auto":
        totals = _totals(X)
        return None if totals is None else _around_one(totals)
    if isinstance(given, str) and given not in adata.obs:
        raise ValueError(f"size_factors={given!r} is neither 'auto' nor a column of adata.obs.")
    factors = np.asarray(adata.obs[given] if isinstance(given, str) else given, dtype=np.float64)
    if factors.shape != (adata.n_obs,) or not (np.isfinite(factors) & (factors > 0)).all():
        raise ValueError("size_factors must be one number above 0 for each cell.")
    return _around_one(factors)


def _around_one(totals: Array) -> Array:
    """Return totals over their median, 1 for empty cells."""
    some = totals > 0
    middle = float(np.median(totals[some])) if some.any() else 1.0
    return np.where(some, totals / middle, 1.0)


def _totals(X: Data | RowBlocks) -> Array | None:
    """Return the sum of each row over all genes if entries are counts, else None.

    Counts are whole numbers, of which some are larger than 1.
    """
    totals, largest = [], 0.0
    for rows in X.as_stored() if isinstance(X, RowBlocks) else (X,):
        values: Any = rows.data if sp.issparse(rows) else rows
        if not np.array_equal(values, np.rint(values)):
            return None
        largest = max(largest, float(values.max(initial=0)))
        totals.append(np.asarray(rows.sum(axis=1, dtype=np.float64)).ravel())
    return np.concatenate(totals) if largest > 1 else None
