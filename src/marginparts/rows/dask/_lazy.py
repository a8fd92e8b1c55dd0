"""Maps of Dask arrays that are computed when they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import numpy as np
import scipy.sparse as sp

from marginparts.rows.dask._rows import DaskRows, as_dask_rows


def lazy_on_dask(method: Any) -> Any:
    """Let a method of a fitted estimator map Dask arrays lazily, a block at a time."""

    @wraps(method)
    def mapped(self: Any, X: Any, *args: Any, **options: Any) -> Any:
        X = as_dask_rows(X)
        if not isinstance(X, DaskRows):
            return method(self, X, *args, **options)
        return _mapped(partial(method, self), self, X)

    return mapped


def _mapped(function: Callable[[Any], Any], estimator: Any, X: DaskRows) -> Any:
    """Return a Dask array with what a method says of each block."""
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(estimator)
    d = estimator.n_features_in_
    if X.shape[1] != d:
        raise ValueError(
            f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting {d} "
            "features as input."
        )
    # what it looks like is asked of a sample without entries
    like = function(np.zeros((1, d), X.dtype))
    columns: dict[str, Any] = {"drop_axis": 1}
    if like.ndim == 2:
        columns = {"chunks": (X.array.chunks[0], (like.shape[1],))}
    return X.array.map_blocks(_on_block, function, like[:0], dtype=like.dtype, meta=like[:0],
                              **columns)  # fmt: skip


def _on_block(X: Any, function: Callable[[Any], Any], nothing: Any) -> Any:
    if not X.shape[0]:
        return nothing
    return function(X if sp.issparse(X) else np.asarray(X))
