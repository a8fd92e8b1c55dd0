"""Label spreading on a graph of nearest neighbors (Zhou et al. 2004), for all labels at once.

scikit-learn's `LabelSpreading` builds its graph anew for each label and each setting; here one
graph serves them all. Settings that both have give the same predictions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginparts._types import Data
from marginparts.labels import UNKNOWN, Labels

Matrix = NDArray[np.float64]

#: Rounds at most, and the change that ends them: scikit-learn's.
_ROUNDS, _TOL = 30, 1e-3


class Neighbors(NamedTuple):
    """The nearest of the n rows to each of them (n, k), and to each of other rows (m, k)."""

    own: NDArray[np.intp]
    others: list[NDArray[np.intp]]


def find_neighbors(Z: Data, others: list[Data], k: int) -> Neighbors:
    """Find the k nearest rows of Z, itself included, for rows of Z and for others."""
    # its module is slow to import, and only this needs it
    from sklearn.neighbors import NearestNeighbors

    search = NearestNeighbors(n_neighbors=min(k, Z.shape[0]), algorithm="brute").fit(Z)
    return Neighbors(
        search.kneighbors(Z, return_distance=False),
        [search.kneighbors(rows, return_distance=False) for rows in others],
    )


def spread_values(neighbors: Neighbors, labels: Labels, *, k: int, alpha: float) -> list[Matrix]:
    """Spread the known labels over the graph; judge other rows by their neighbors.

    ``k`` neighbors count, and a share ``alpha`` of a row's label comes from them rather than from
    itself. Returns decision values (m, p) of the other rows: above 0 for the later of two classes
    or for a label that applies, largest for the class otherwise.
    """
    start, sided = _known(labels)
    graph = _normalized(neighbors.own[:, :k])
    F = start.copy()
    for _ in range(_ROUNDS):
        last, F = F, alpha * (graph @ F) + (1 - alpha) * start
        if np.abs(F - last).sum() < _TOL:
            break
    return [_judge(_shares(F, sided)[near[:, :k]].sum(axis=1), sided) for near in neighbors.others]


def _known(labels: Labels) -> tuple[Matrix, bool]:
    """Return what is known as 0 and 1: a column a class, or two columns a label."""
    if not labels.multilabel:
        return (labels.codes[:, None] == np.arange(len(labels.classes))).astype(float), False
    codes = labels.codes
    sides = np.stack([codes == 0, (codes == 1) & (codes != UNKNOWN)], axis=2)
    return sides.reshape(len(codes), -1).astype(float), True


def _normalized(near: NDArray[np.intp]) -> sp.csr_array:
    """Return the graph's symmetrically normalized weights without loops, as scikit-learn's are."""
    n, k = near.shape
    weights = (near != np.arange(n)[:, None]).astype(np.float64)
    W = sp.csr_array((weights.ravel(), near.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n))
    degree = np.asarray(W.sum(axis=0)).ravel()
    scale = sp.diags_array(1 / np.sqrt(np.where(degree > 0, degree, 1)))
    return sp.csr_array(scale @ W @ scale)


def _shares(F: Matrix, sided: bool) -> Matrix:
    """Return each row's shares of its classes, or of the two sides of each label."""
    if sided:
        pairs = F.reshape(len(F), -1, 2)
        return np.asarray(pairs / np.maximum(pairs.sum(axis=2, keepdims=True), 1e-300))
    return np.asarray(F / np.maximum(F.sum(axis=1, keepdims=True), 1e-300))


def _judge(sums: Matrix, sided: bool) -> Matrix:
    if sided:
        return np.asarray(sums[:, :, 1] - sums[:, :, 0])
    return sums[:, 1:] - sums[:, :1] if sums.shape[1] == 2 else sums
