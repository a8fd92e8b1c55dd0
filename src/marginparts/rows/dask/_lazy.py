"""Maps of Dask arrays that are computed when they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from marginparts.rows.dask._rows import as_dask_rows


def mapped_lazily(method: Any, X: Any) -> Any:
    """Return a Dask array with what a method of a fitted estimator says of each block of X."""
    from sklearn.utils.validation import check_is_fitted

    estimator, X = method.__self__, as_dask_rows(X)
    check_is_fitted(estimator)
    d = estimator.n_features_in_
    if X.shape[1] != d:
        raise ValueError(
            f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting {d} "
            "features as input."
        )
    # what it looks like is asked of a sample without entries
    like = method(np.zeros((1, d), X.dtype))
    columns: dict[str, Any] = {"drop_axis": 1}
    if like.ndim == 2:
        columns = {"chunks": (X.array.chunks[0], (like.shape[1],))}
    return X.array.map_blocks(_on_block, method, like[:0], dtype=like.dtype, meta=like[:0],
                              **columns)  # fmt: skip


def _on_block(X: Any, function: Callable[[Any], Any], nothing: Any) -> Any:
    if not X.shape[0]:
        return nothing
    return function(X if sp.issparse(X) else np.asarray(X))
