"""What decided: which parts speak for which class, and which features of a sample did.

The last update of the map shares out each feature among the parts in proportion to what they
explain of it, ``h_k = sum_j x_j V_jk h_k' / (V h')_j`` (eq. 4, parts that sum to one). The decision
value is linear in h once the length of the code is known, so it is a sum of one term a feature and
the intercept: nothing is approximated. The vector beside a sample has one term, as a whole: its
coordinates mean nothing to a reader.
"""

import base64
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginparts._types import Array, Data
from marginparts.app.model import Model
from marginparts.app.preparation import PreparationError
from marginparts.app.readers import Batch
from marginparts.backends.base import inverse_or_zero, safe_ratio
from marginparts.estimators import NMFAlphaClassifier
from marginparts.recipe import blocks_of
from marginparts.solve.map import map_rows, map_rows_each, mixed_codes
from marginparts.topics import (
    TopicView,
    distinctive,
    flat,
    part_weights,
    top_columns,
    top_features,
    topic_view,
)

__all__ = [
    "VECTOR",
    "contributions",
    "distinctive",
    "flat",
    "part_weights",
    "picture",
    "top_columns",
    "top_features",
    "view_of",
]

#: What the term of a vector is called.
VECTOR = "(its vector)"

#: Entries of a temporary.
_AT_ONCE = 4e6


def picture(row: Data) -> str:
    """Return pixels as base64 of bytes, 255 for the largest."""
    pixels = flat(row)
    ink = np.rint(255 * np.maximum(pixels, 0) / max(pixels.max(initial=0), 1e-12))
    return base64.b64encode(ink.astype(np.uint8).tobytes()).decode("ascii")


def view_of(model: Model, batches: Iterable[Batch]) -> TopicView:
    """Return the topic model's view of samples; its certainty is that of what is counted in them.

    All of them are held in memory.
    """
    counting = replace(model.preparation, weighting="counts", idf=None, feature_weight=None)
    samples = [batch.samples for batch in batches]
    rows = [sp.csr_array(model.features(each)) for each in samples]
    if not sum(each.nnz for each in rows):
        raise PreparationError("The file has no sample with anything in it that the model knows.")
    X, names = sp.vstack(rows), model.feature_names
    counts = X  # what fills a gap was never counted
    if not model.layout.gaps:
        counts = sp.vstack([sp.csr_array(counting.apply(each)) for each in samples])
    return topic_view(model.classifier, X, counts=counts, feature_names=names)


def contributions(
    classifier: NMFAlphaClassifier, X: Data, questions: NDArray[np.intp]
) -> sp.csr_array:
    """Share out decision values among the features of trusted rows (n, d).

    ``questions`` (n,) are the decision values to explain, rows of ``coef_``. The rows (n, d) that
    are returned sum to the decision values less the intercepts. Where vectors stand beside other
    features, the sum of their terms is the last column.
    """
    # each nonzero meets every part: a few rows at a time
    step = max(1, int(_AT_ONCE / max(classifier.parts_.components_.shape[0], 1) / X.shape[1]))
    pieces = [slice(k, k + step) for k in range(0, X.shape[0], step)]
    vectors = getattr(classifier, "embedding_parts_", None)
    if vectors is None:
        return sp.vstack([_contributions(classifier, X[s], questions[s])[0] for s in pieces], "csr")
    found = []
    for s in pieces:
        words, rest = blocks_of(X[s], vectors.n_features_in_)
        terms, more = _contributions(classifier, words, questions[s], vectors._codes(rest))
        found.append(sp.hstack([terms, more[:, None]]))
    return sp.csr_array(sp.vstack(found))


def _contributions(
    classifier: NMFAlphaClassifier,
    X: Data,
    questions: NDArray[np.intp],
    beside: Array | None = None,
) -> tuple[sp.csr_array, Array]:
    """Return the terms of features (n, d), and that of codes ``beside`` (n, q) theirs."""
    X = sp.csr_array(X, dtype=np.float64)
    beside = np.empty((X.shape[0], 0)) if beside is None else beside.astype(np.float64)
    parts = classifier.parts_
    V = parts.components_.T.astype(np.float64)
    n_iter = parts.map_iter
    if n_iter is None:  # at the optimum an update changes nothing
        before = H = map_rows(X, V, None, parts.backend)
    elif n_iter > 1:
        before, H = map_rows_each(X, V, [n_iter - 1, n_iter], parts.backend)
    else:
        before, H = np.ones((X.shape[0], V.shape[1])), map_rows_each(X, V, [1], parts.backend)[0]
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    linear, pull, other = _pulls(classifier, X, H, questions, beside)
    shares = V[X.indices] * before[rows]
    explained = inverse_or_zero(shares.sum(axis=1), np.dtype(np.float64))
    terms = X.data * explained * np.einsum("ek,ek->e", shares, pull[rows])
    if linear is not None:
        terms += X.data * np.einsum("ek,ek->e", parts.projection_[X.indices], linear[rows])
    more = np.einsum("nq,nq->n", beside, other)
    return sp.csr_array((terms, X.indices, X.indptr), shape=X.shape), more


def _pulls(
    classifier: NMFAlphaClassifier,
    X: sp.csr_array,
    H: Array,
    questions: NDArray[np.intp],
    beside: Array,
) -> tuple[Array | None, Array, Array]:
    """Return what the decision values are made of, up to the intercepts.

    A decision value is ``(X @ projection) . linear + H . pull + beside . other``, row by row;
    ``linear`` is None where the codes have no projection.
    """
    parts, head = classifier.parts_, classifier.head_
    r = parts.components_.shape[0]
    gram = parts.output in ("gram", "coefficients")
    projected = np.empty((0, 0)) if gram else np.asarray(X @ parts.projection_)
    root = parts.gram_root_ if parts.output == "gram" else np.eye(r)
    mixed = parts.output == "mixed"
    codes = H @ root if gram else mixed_codes(projected, H) if mixed else projected
    sizes = _inverse_sizes(np.hstack([codes, beside]), head.size)
    coef = head.coef[questions] * sizes[:, None]
    coef, other = coef[:, : codes.shape[1]], coef[:, codes.shape[1] :]
    if gram:
        return None, coef @ root, other
    if not mixed:
        return coef, np.zeros_like(H), other
    # unit rows, and roots: sqrt(share) is the coefficient times 1 / sqrt(coefficient x sum)
    lengths = inverse_or_zero(np.linalg.norm(projected, axis=1), np.dtype(np.float64))
    products = H * H.sum(axis=1, keepdims=True)
    roots = 0.5 * np.sqrt(safe_ratio(np.ones_like(products), products))
    return coef[:, :r] * lengths[:, None], coef[:, r:] * roots, other


def _inverse_sizes(Z: Array, size: float | None) -> Array:
    """Return one over what the classifier divides each code by: its length, or one for all."""
    if size is not None:
        return np.full(len(Z), 1 / size)
    return inverse_or_zero(np.linalg.norm(Z, axis=1), np.dtype(np.float64))
