"""Which part of one fit is which part of another, and what several fits agree on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.preprocessing import normalize

from marginparts._types import Array

#: A part whose likeness to the median of its group is smaller is left out of it.
_OUTLIER = 0.6


class Matched(NamedTuple):
    """For each part its match among others (r,), -1 for none, and how alike they are (r,)."""

    order: NDArray[np.intp]
    cosine: Array


def match_parts(parts: ArrayLike, others: ArrayLike) -> Matched:
    """Match the parts of two fits one to one.

    The sum of the likenesses is the largest possible; two parts are alike by the cosine of their
    square roots, in which frequent features do not drown the others.

    Parameters
    ----------
    parts : (r, d) array
        ``components_`` of a fit, 0 or larger.
    others : (s, d) array
        Those of another one.

    Returns
    -------
    order : (r,) array of int
        The match of each part among the others; -1 where there is none left.
    cosine : (r,) array
        The cosine of the two parts themselves, 0 to 1.

    Examples
    --------
    >>> order, cosine = match_parts([[1., 0., 0.], [0., 2., 2.]], [[0., 1., 1.], [3., 0., 0.]])
    >>> order, cosine.round(3)
    (array([1, 0]), array([1., 1.]))
    """
    A, B = np.asarray(parts, np.float64), np.asarray(others, np.float64)
    rows, columns = linear_sum_assignment(-_roots(A) @ _roots(B).T)
    order, cosine = np.full(len(A), -1), np.zeros(len(A))
    order[rows] = columns
    cosine[rows] = np.einsum("kd,kd->k", normalize(A)[rows], normalize(B)[columns])
    return Matched(order, np.clip(cosine, 0.0, 1.0))


def matched_runs(runs: Array) -> NDArray[np.intp]:
    """Group the parts of several runs (m, r, d), one part of each run in each group.

    The sum of all likenesses within groups is raised, a run at a time with the others held, until
    it no longer rises; of the ends from matches to each of the runs the highest is taken.

    Returns
    -------
    (m, r) array of int
        ``orders[i, k]`` is the part of run i in group k.
    """
    m, r, d = runs.shape
    flat = _roots(runs.reshape(m * r, d))
    alike = np.asarray(flat @ flat.T).reshape(m, r, m, r)
    climbs = [_climb(alike, first) for first in range(m)]
    return max(climbs, key=lambda orders: within_groups(alike, orders))


def within_groups(alike: Array, orders: NDArray[np.intp]) -> float:
    """Return the sum of the likenesses (m, r, m, r) of all pairs within groups."""
    m = len(orders)
    pairs = ((i, j) for i in range(m) for j in range(i))
    return float(sum(alike[i, orders[i], j, orders[j]].sum() for i, j in pairs))


def _climb(alike: Array, first: int) -> NDArray[np.intp]:
    m = len(alike)
    orders = np.array([linear_sum_assignment(-alike[first, :, i])[1] for i in range(m)])
    reached = -1.0
    while (now := within_groups(alike, orders)) > reached + 1e-9:
        reached = now
        for i in range(m):
            others = (alike[j, orders[j], i] for j in range(m) if j != i)
            orders[i] = linear_sum_assignment(-np.sum(list(others), axis=0))[1]
    return orders


def mean_parts(groups: Array) -> Array:
    """Return the mean (r, d) of each group (m, r, d); what is returned sums to one."""
    return normalize(groups.mean(axis=0), norm="l1")


def median_parts(groups: Array) -> Array:
    """Return the median (r, d) of each group (m, r, d), without parts that are not like it.

    Two parts stay in any case. What is returned sums to one.
    """
    found = []
    for group in np.swapaxes(groups, 0, 1):
        likeness = _roots(group) @ _roots(_middle(group)[None])[0]
        least = min(_OUTLIER, np.partition(likeness, -2)[-2])
        found.append(_middle(group[likeness >= least]))
    return normalize(found, norm="l1")


def _middle(group: Array) -> Array:
    """Return the median (d,) of some parts (m, d); the mean, where they have nothing in common."""
    median = np.median(group, axis=0)
    return median if median.any() else group.mean(axis=0)


def _roots(parts: Array) -> Array:
    """Return the square roots in rows of length 1."""
    return normalize(np.sqrt(parts))
