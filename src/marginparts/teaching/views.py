"""The rows as the teachers see them: weighted, in few dimensions, and with their neighbors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.preprocessing import normalize
from sklearn.utils.extmath import randomized_svd

from marginparts._types import Array, Data
from marginparts.weighting import idf_of, made_small, weighted_rows

#: Dimensions of the latent space; the leading ones in which neighbors are sought, and neighbors of
#: a row, for sparse and for dense rows.
_DIMENSIONS, _NEAR, _NEIGHBORS = 200, {True: 100, False: 50}, {True: 10, False: 7}

#: Leading eigenvectors of the graph, how fast their weight falls with the eigenvalue, and what the
#: latent space counts beside them.
_WAVES, _FALL, _BESIDE = 50, 0.999, 0.5

#: How often labels flow along the graph.
_FLOWS = 50


#: The least that counts as one in a row, as a share of the row's largest entry.
_RANGE = 1e-6


class Views(NamedTuple):
    """All rows in several views.

    Attributes
    ----------
    inputs : (n, d) CSR array
        Rows of length 1, columns weighted (`usual_weights`).
    latent : (n, q) array
        The same in their leading singular directions, again of length 1.
    graph : (n, n) CSR array
        Each row and its nearest ones in that space, symmetric, scaled so that the largest
        eigenvalue is 1. Empty rows have no neighbors.
    spectral : (n, q) array
        The rows by the graph's leading eigenvectors, which vary slowly from a row to its neighbors,
        and beside these in the latent space; again of length 1. Without columns for sparse data.
    counts : (n, d) CSR array or None
        The rows without idf, in units of their smallest entry, for sparse data: near to counts,
        however these were weighted.
    apart : tuple of Views
        Those of the words of texts and of the vectors beside them, each by themselves.
    """

    inputs: sp.csr_array
    latent: Array
    graph: sp.csr_array
    spectral: Array
    counts: sp.csr_array | None
    apart: tuple[Views, ...] = ()

    @property
    def sparse(self) -> bool:
        """Whether rows have few entries, as texts do."""
        return self.counts is not None

    @property
    def words(self) -> sp.csr_array:
        """The inputs without what stands beside words (`joint_views`)."""
        return self.apart[0].inputs if self.apart else self.inputs

    def flowed(self, start: Array, share: float) -> Array:
        """Let what rows have (n, c) flow to their neighbors, of which so much comes each time."""
        F = start
        for _ in range(_FLOWS):
            F = share * (self.graph @ F) + (1 - share) * start
        return F


def views_of(
    X: Data, weights: Array | None, seed: int, *, latent: bool = True, neighbors: bool = True
) -> Views:
    """Return the views of trusted rows (n, d) whose columns have weights (d,), None for none.

    Without ``neighbors`` those that need the graph are empty, and without ``latent`` all but the
    inputs and counts are.
    """
    counts = None if weights is None else _like_counts(sp.csr_array(X), weights)
    ones = np.ones(X.shape[1], dtype=X.dtype)
    inputs = sp.csr_array(weighted_rows(sp.csr_array(X), ones if weights is None else weights))
    n = X.shape[0]
    nothing, alone = np.empty((n, 0)), sp.csr_array((n, n))
    if not latent:
        return Views(inputs, nothing, alone, nothing, counts)
    rank = max(1, min(_DIMENSIONS, min(X.shape) - 1))
    _, _, axes = randomized_svd(inputs, rank, n_iter=4, random_state=seed)
    Z = np.asarray(inputs @ axes.T, dtype=np.float64)
    if not neighbors:
        return Views(inputs, normalize(Z), alone, nothing, counts)
    sparse = counts is not None
    graph = _neighbor_graph(normalize(Z[:, : _NEAR[sparse]]), sparse=sparse)
    Z, spectral = normalize(Z), nothing
    if not sparse:
        spectral = normalize(np.hstack([_by_eigenvectors(graph, seed), _BESIDE * Z]))
    return Views(inputs, Z, graph, spectral, counts)


def joint_views(words: Views, vectors: Views, seed: int) -> Views:
    """Return the views of rows that are known in two ways, each of which counts as much.

    Words of texts and vectors are also there apart: one of the two may say more than both.
    """
    half, apart = np.sqrt(0.5), (words, vectors) if words.sparse else ()
    inputs = sp.csr_array(sp.hstack([half * words.inputs, half * vectors.inputs]))
    nothing = np.empty((inputs.shape[0], 0))
    if not words.latent.shape[1]:
        return Views(inputs, nothing, words.graph, nothing, words.counts, apart)
    Z = normalize(np.hstack([words.latent, vectors.latent]))
    near = [normalize(own[:, : _NEAR[words.sparse]]) for own in (words.latent, vectors.latent)]
    graph = _neighbor_graph(normalize(np.hstack(near)), sparse=words.sparse)
    spectral = nothing
    if not words.sparse:
        spectral = normalize(np.hstack([_by_eigenvectors(graph, seed), _BESIDE * Z]))
    return Views(inputs, Z, graph, spectral, words.counts, apart)


def _neighbor_graph(Z: Array, *, sparse: bool) -> sp.csr_array:
    """Return the graph of the nearest rows of Z (n, q), whose rows have length 1.

    Texts are as near as the cosine of their angle says. Of other rows some lie denser than others:
    there distances count in units of the distance to the farthest neighbor. Rows of length 0, which
    are as far from all others, have no neighbors.
    """
    # its module is slow to import, and only this needs it
    from sklearn.neighbors import kneighbors_graph

    n, full = len(Z), np.flatnonzero(np.einsum("iq,iq->i", Z, Z) > 0.5)
    k = min(_NEIGHBORS[sparse], len(full) - 1)
    if k < 1:
        return sp.csr_array((n, n))
    near = sp.csr_array(kneighbors_graph(Z[full], k, mode="distance"))
    if sparse:
        near.data = np.maximum(1 - near.data**2 / 2, 0) + 1e-6
    else:
        reach = near.data.reshape(-1, k).max(axis=1)
        scale = np.repeat(reach, k) * reach[near.indices]
        near.data = np.exp(-(near.data**2) / np.maximum(scale, 1e-12)) + 1e-6
    graph = near.maximum(near.T)
    root = sp.diags_array(1 / np.sqrt(np.asarray(graph.sum(axis=1)).ravel()))
    graph = sp.csr_array(root @ graph @ root)
    return graph if len(full) == n else _among_all(graph, full, n)


def _among_all(graph: sp.csr_array, rows: NDArray[np.intp], n: int) -> sp.csr_array:
    """Return the graph of some rows as one of all n, of which the others have no neighbors."""
    edges = sp.coo_array(graph)
    return sp.csr_array((edges.data, (rows[edges.row], rows[edges.col])), shape=(n, n))


def _by_eigenvectors(graph: sp.csr_array, seed: int) -> Array:
    """Return the rows (n, q) by the leading eigenvectors of their graph, weighted.

    Those without neighbors have no part in it: each would be an eigenvector by itself.
    """
    from scipy.sparse.linalg import eigsh

    n, joined = graph.shape[0], np.flatnonzero(np.diff(graph.indptr))
    m = len(joined)
    if not m:
        return np.empty((n, 0))
    if m < n:
        graph = graph[joined][:, joined]
    start = np.random.default_rng(seed).random(m)
    values, vectors = eigsh(graph, min(_WAVES, m - 1), which="LA", v0=start, tol=1e-3)
    found = np.zeros((n, len(values)))
    found[joined] = normalize(vectors / np.sqrt(1 - _FALL * np.minimum(values, 1)))
    return found


def _like_counts(X: sp.csr_array, weights: Array) -> sp.csr_array:
    """Take out the idf of rows that have it already (`usual_weights`), and the rows' units."""
    if np.all(weights == 1):
        X = sp.csr_array(X @ sp.diags_array(1 / idf_of(X), dtype=X.dtype))
    return _in_smallest_units(X)


def _in_smallest_units(X: sp.csr_array) -> sp.csr_array:
    """Divide each row by its smallest entry.

    Where columns were given small weights, they do not tell what counts as one in a row, unless it
    has nothing else; and no entry is so small that others are millions of it.
    """
    sizes = np.diff(X.indptr)
    full, first = sizes > 0, X.indptr[:-1][sizes > 0]
    if not len(first):
        return X
    told = np.where(made_small(X)[X.indices], np.inf, X.data)
    unit = np.ones(X.shape[0])
    unit[full] = np.minimum.reduceat(told, first)
    others = np.minimum.reduceat(X.data, first)
    unit[full] = np.where(np.isfinite(unit[full]), unit[full], others)
    unit[full] = np.maximum(unit[full], _RANGE * np.maximum.reduceat(X.data, first))
    data = X.data / np.repeat(unit, sizes)
    return sp.csr_array((data, X.indices, X.indptr), shape=X.shape)
