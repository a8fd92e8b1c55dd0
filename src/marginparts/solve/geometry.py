"""The map that keeps inner products: ``Z = H (V'V)^(1/2)`` (eq. 5).

If ``X ~ H V'`` then ``Z Z' ~ X X'``: a linear SVM on the r columns of Z sees nearly the geometry of
the d columns of X, which it does not on H, because the parts in V are not orthogonal.
"""

from __future__ import annotations

import numpy as np

from marginparts._types import Array


def gram_root(V: Array) -> Array:
    """Return the symmetric square root of ``V.T @ V``, in float64.

    Parameters
    ----------
    V : (d, r)

    Returns
    -------
    (r, r) array
    """
    V = V.astype(np.float64, copy=False)
    values, vectors = np.linalg.eigh(V.T @ V)
    # rounding can push the eigenvalues of dependent parts below zero
    return np.asarray((vectors * np.sqrt(np.clip(values, 0, None))) @ vectors.T)
