"""The structure of compressed sparse matrices, checked before anything is made of it.

SciPy's own check passes over ``indptr`` when it ends at 0 or below, and takes differences that can
wrap; its compiled loops then read and write outside their arrays.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def check_pointers(indptr: Any, n: int, n_stored: int) -> NDArray[np.int64]:
    """Return the starts of n rows (or columns) in int64; they rise from 0 and end within the data.

    Examples
    --------
    >>> check_pointers([0, 2, 2], n=2, n_stored=2)
    array([0, 2, 2])
    >>> check_pointers([0, 2, -1], n=2, n_stored=2)
    Traceback (most recent call last):
    ...
    ValueError: indptr must rise from 0 and end within the data
    """
    found = np.asarray(indptr)
    if found.ndim != 1 or found.dtype.kind not in "iu" or len(found) != n + 1:
        raise ValueError(f"indptr must be {n + 1} integers")
    # compared and not subtracted, and before a cast: differences and casts can wrap
    rises = bool((found[1:] >= found[:-1]).all())
    if found[0] != 0 or not rises or found[-1] > n_stored:
        raise ValueError("indptr must rise from 0 and end within the data")
    return found.astype(np.int64, copy=False)


def check_indices(indices: Any, size: int) -> None:
    """Refuse places that are not in 0 to size - 1."""
    found = np.asarray(indices)
    if found.ndim != 1 or found.dtype.kind not in "iu":
        raise ValueError("indices must be integers")
    if len(found) and not 0 <= found.min() <= found.max() < size:
        raise ValueError(f"an index is not in 0 to {size - 1}")


def check_compressed(
    data: Any, indices: Any, indptr: Any, shape: tuple[int, int], *, by_columns: bool = False
) -> None:
    """Refuse three arrays that make no CSR (CSC, ``by_columns``) matrix of real numbers."""
    n, size = shape[::-1] if by_columns else shape
    if data.dtype.kind not in "biuf" or min(n, size) < 0:
        raise ValueError("the entries must be real numbers")
    check_pointers(indptr, n, min(len(data), len(indices)))
    check_indices(indices, size)
