"""Nonnegative least squares of many rows: ``min |x - V h|^2`` over h >= 0, with the same V for all.

All that is asked of V is its Gram matrix ``G = V'V`` (r, r), in float64 whatever the data is in:
where parts have much in common, as those of data with a common offset do, float32 cannot tell them
apart.
"""

from __future__ import annotations

import numpy as np

from marginparts._types import Array, Data
from marginparts.backends.semi import batches

#: Eigenvalues of a Gram matrix that count as zero, beside the largest; more where rounding is
#: coarser.
_DEPENDENT, _COARSE = 1e-10, 10.0

#: What keeps a Gram matrix from being singular, beside its trace.
_RIDGE = 1e-12

#: The pull on an entry that counts as none, beside the terms that it is the sum of.
_ROUNDING = 1e-13

#: Squared condition of parts above which sweeps creep.
_STEEP = 1e3

#: Entries of X or H that are worked on at a time.
_CHUNK = 1 << 20


def inverse_gram(V: Array) -> Array:
    """Return the pseudo-inverse (r, r) of ``V'V``: from ``X V`` to the codes of least squares.

    Its directions are those that the rounding of ``X V`` in the type of V leaves something of.
    """
    least = max(_DEPENDENT, _COARSE * float(np.finfo(V.dtype).eps))
    return np.asarray(np.linalg.pinv(_gram(V), rcond=least, hermitian=True))


def are_nearly_dependent(V: Array) -> bool:
    """Say whether sweeps over the codes of parts V (d, r) creep; parts of length 0 do not count."""
    gram = _gram(V)
    alive = np.flatnonzero(np.diag(gram) > 0)
    if not len(alive):
        return False
    lengths = np.sqrt(np.diag(gram)[alive])
    values = np.linalg.eigvalsh(gram[np.ix_(alive, alive)] / np.outer(lengths, lengths))
    return bool(values[-1] > _STEEP * values[0])


def bring_to_optimum(X: Data, V: Array, H: Array) -> None:
    """Bring codes H (n, r) of samples to their optimum, in place; it is quick where they are near.

    Active sets (Lawson & Hanson 1974), from the entries that are not zero.
    """
    from marginparts._compiled import check_threads
    from marginparts.solve._active_set import rows_to_optimum

    check_threads()
    basis, gram = V.astype(np.float64), _gram(V)
    for rows in batches(H, _CHUNK * V.shape[1] // max(V.shape)):
        some = X[rows]
        if isinstance(some, np.ndarray):
            some = some.astype(np.float64, copy=False)
        codes = H[rows].astype(np.float64)
        XV = np.ascontiguousarray(some @ basis)
        rows_to_optimum(gram, XV, codes, _RIDGE * float(np.trace(gram)), _ROUNDING)
        H[rows] = codes


def _gram(V: Array) -> Array:
    V = V.astype(np.float64, copy=False)
    return np.asarray(V.T @ V)
