"""Data on a Dask cluster: each block of rows stays on its worker, with its rows of H.

This module takes Dask arrays: as data for a fit, or for maps that are computed when asked for.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from marginparts._types import Array, Data


def as_dask_rows(X: Any) -> Any:
    """Return a Dask array or DataFrame as rows on a cluster, and all else as it is."""
    if "dask" not in sys.modules or not type(X).__module__.startswith(("dask.", "dask_expr")):
        return X
    from marginparts.rows.dask._rows import DaskRows

    return DaskRows(X.values if hasattr(X, "to_dask_array") else X)


def mapped_lazily(method: Any, X: Any, out: object = None) -> Any:
    """Return a Dask array with the result of a fitted estimator's method for each block of X."""
    if out is not None:
        raise ValueError(
            "out= is for rows in memory or on disk; a Dask array has to_zarr and to_npy_stack."
        )
    from sklearn.utils.validation import check_is_fitted

    estimator, X = method.__self__, as_dask_rows(X)
    check_is_fitted(estimator)
    d = estimator.n_features_in_
    if X.shape[1] != d:
        raise ValueError(
            f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting {d} "
            "features as input."
        )
    # its shape and type are found with a sample without entries
    like = method(np.zeros((1, d), X.dtype))
    columns: dict[str, Any] = {"drop_axis": 1}
    if like.ndim == 2:
        columns = {"chunks": (X.array.chunks[0], (like.shape[1],))}
    return X.array.map_blocks(_on_block, method, like[:0], dtype=like.dtype, meta=like[:0],
                              **columns)  # fmt: skip


def _on_block(X: Data, function: Callable[[Data], Array], nothing: Array) -> Array:
    if not X.shape[0]:
        return nothing
    return function(X if sp.issparse(X) else np.asarray(X))
