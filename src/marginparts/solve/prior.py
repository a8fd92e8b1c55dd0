"""Parts of one corpus as a prior for those of another: each is a sample that one part explains.

A prior part p of weight c adds ``c * D(p, v)`` to the loss, which is ``D(c * p, c * v)``: one more
sample, with its whole code in the part v that it is tied to.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_array

from marginparts._types import Array
from marginparts.backends.base import safe_ratio
from marginparts.losses.nmf_alpha import Prior

#: Shares of a part below this say nothing, and the numbers of float32 end not far below it.
_LEAST = 1e-12


def carried_parts(parts: ArrayLike, names: ArrayLike, to: ArrayLike) -> Array:
    """Return parts for other columns: a prior for data whose features have other places.

    Parameters
    ----------
    parts : (m, d) array
        The parts of a fit, or any other rows.
    names : (d,) array-like of str
        The names of their columns.
    to : (e,) array-like of str
        The names of the new columns.

    Returns
    -------
    (m, e) array
        Columns without a name in ``to`` are dropped, new ones are 0. Rows keep their scale.

    Examples
    --------
    >>> carried_parts([[0.5, 0.3, 0.2]], ["ice", "puck", "goal"], ["goal", "ball", "ice"])
    array([[0.2, 0. , 0.5]])
    """
    parts, names, to = np.asarray(parts), np.asarray(names), np.asarray(to)
    if parts.ndim != 2 or names.shape != parts.shape[1:]:
        raise ValueError(
            f"parts has shape {parts.shape} and names {names.shape}; each column has one name."
        )
    place = {name: k for k, name in enumerate(names.tolist())}
    pairs = [(place[name], k) for k, name in enumerate(to.tolist()) if name in place]
    if not pairs:
        raise ValueError("No name of the earlier parts' columns is among the new ones.")
    before, after = np.array(pairs).T
    carried = np.zeros((len(parts), len(to)), parts.dtype)
    carried[:, after] = parts[:, before]
    return carried


def count_parts(given: Any) -> int:
    """Return how many parts there are in an array, or a fitted estimator; None has none."""
    if given is None:
        return 0
    return len(getattr(given, "parts_", given).components_) if _is_estimator(given) else len(given)


def given_parts(given: Any, what: str, names: ArrayLike | None) -> Any:
    """Return the parts of a fitted estimator, and all else as it is.

    Where both know the names of their columns, these are matched.
    """
    if not _is_estimator(given):
        return given
    try:
        parts = getattr(given, "parts_", given).components_
    except (AttributeError, NotFittedError) as error:
        raise ValueError(f"{what} is not fitted; fit it first, or give its parts.") from error
    before = getattr(given, "feature_names_in_", None)
    if before is None or names is None:
        return parts
    # beside vectors a classifier's parts are those of the words, which come first
    return carried_parts(parts, before[: np.shape(parts)[1]], names)


def _is_estimator(given: Any) -> bool:
    return hasattr(given, "get_params")


def prior_parts(prior: Any, dtype: Any, d: int, names: ArrayLike | None) -> Array:
    """Return the prior (m, d) for d columns, maybe with names, from an array or a fitted model."""
    parts = check_array(given_parts(prior, "prior", names), dtype=dtype, input_name="prior")
    if parts.shape[1] != d:
        raise ValueError(
            f"prior has {parts.shape[1]} columns and X has {d}; without names on both sides they "
            "must agree, see carried_parts."
        )
    if parts.min() < 0 or not parts.any():
        raise ValueError("prior must be 0 or larger, and not all zero.")
    return parts


def pseudo_counts(parts: Array, first: int, r: int, weight: float) -> Prior:
    """Return the prior of the parts from ``first`` on, each of the same weight, from parts (m, d).

    An empty one, of which no word is left, has none.
    """
    shares = safe_ratio(parts, parts.sum(axis=1, keepdims=True)).astype(np.float64)
    shares[shares < _LEAST] = 0
    A, own = np.zeros((parts.shape[1], r)), slice(first, first + len(parts))
    A[:, own] = weight * shares.T
    return Prior(A, A.sum(axis=0))
