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
from marginparts.labels import Labels

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
    graph = _normalized(neighbors.own[:, :k])
    F = start = _known(labels)
    for _ in range(_ROUNDS):
        last, F = F, alpha * (graph @ F) + (1 - alpha) * start
        if np.abs(F - last).sum() < _TOL:
            break
    # each row's shares of its classes, or of the two sides of each label
    groups = F.reshape(len(F), -1, 2 if labels.multilabel else F.shape[1])
    shares = groups / np.maximum(groups.sum(axis=2, keepdims=True), 1e-300)
    return [_judge(shares[near[:, :k]].sum(axis=1)) for near in neighbors.others]


def _known(labels: Labels) -> Matrix:
    """Return what is known as 0 and 1: a column a class, or two columns a label."""
    codes = labels.codes[..., None]
    values = np.arange(2 if labels.multilabel else len(labels.classes))
    return (codes == values).reshape(len(codes), -1).astype(float)


def _normalized(near: NDArray[np.intp]) -> sp.csr_array:
    """Return the graph's symmetrically normalized weights without loops, as scikit-learn's are."""
    n, k = near.shape
    weights = (near != np.arange(n)[:, None]).astype(np.float64)
    W = sp.csr_array((weights.ravel(), near.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n))
    degree = np.asarray(W.sum(axis=0)).ravel()
    scale = sp.diags_array(1 / np.sqrt(np.where(degree > 0, degree, 1)))
    return sp.csr_array(scale @ W @ scale)


def _judge(sums: Matrix) -> Matrix:
    """Return decision values from sums of shares (m, groups, members)."""
    return sums[:, :, 1] - sums[:, :, 0] if sums.shape[2] == 2 else sums[:, 0]
