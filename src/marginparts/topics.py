"""The topic model's view of a fitted factorization: proportions, words, and how sure they are.

NMF with the I-divergence is a topic model (PLSA) with the size of each document split off:
`docs/math.md`, section 21.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from marginparts._types import Array, Data, Samples
from marginparts.backends.base import inverse_or_zero, safe_ratio
from marginparts.solve.map import mixed_codes
from marginparts.validation import canonical, check_matrix

#: Shares of entries that are held at a time.
_AT_ONCE = 1 << 22

#: Added to counts, as Jeffreys' prior of a Poisson rate does: what was never seen is rare.
_PRIOR = 0.5

#: Standard errors on either side of an interval that holds 95 of 100.
_WIDTH = 1.96


class DistinctiveWord(NamedTuple):
    """A feature that tells a part from the others.

    ``credited`` is how often it is credited to the part. ``log2_fold`` is the logarithm of its rate
    there over the largest rate in another part (1 is twice as frequent), and ``low`` and ``high``
    are the ends of a 95 % interval, with the proportions taken as known.
    """

    word: str
    probability: float
    credited: float
    log2_fold: float
    low: float
    high: float


@dataclass(frozen=True)
class TopicView:
    """A factorization read as a topic model; `topic_view` makes it.

    Attributes
    ----------
    proportions : (n, r) array
        The share of each part in each sample; rows sum to one, those of empty samples to zero.
    words : (r, d) array
        The probability of each feature in each part; rows sum to one.
    sizes : (n,) array
        The size factor of each sample: its total.
    shares : (r,) array
        The share of each part in all samples together.
    counts : (r, d) array
        How much of each feature is credited to each part.
    log2_fold, log2_fold_error : (r, d) array
        The logarithm of a feature's rate in a part over its largest rate in another part, and the
        standard error.
    feature_names : tuple of d str

    Examples
    --------
    >>> import numpy as np
    >>> from marginparts import NMFAlpha, topic_view
    >>> X = np.kron(np.eye(2), np.full((5, 3), 9.0)) + 0.1
    >>> view = topic_view(NMFAlpha(2, random_state=0).fit(X), X, feature_names=list("abcdef"))
    >>> view.proportions.shape, view.words.shape
    ((10, 2), (2, 6))
    >>> sorted(word.word for word in view.distinctive(0)) in (list("abc"), list("def"))
    True
    """

    proportions: Array
    words: Array
    sizes: Array
    shares: Array
    counts: Array
    log2_fold: Array
    log2_fold_error: Array
    feature_names: tuple[str, ...]

    def distinctive(self, part: int, n: int = 10) -> list[DistinctiveWord]:
        """Return the n most surely distinctive features of a part (from 0).

        They are ordered by the lower end of their interval, and those with one below 0, which may
        be as frequent in another part, are left out.
        """
        fold, half = self.log2_fold[part], _WIDTH * self.log2_fold_error[part]
        order = np.argsort(half - fold, kind="stable")[:n]
        return [
            DistinctiveWord(
                self.feature_names[j], float(self.words[part, j]), float(self.counts[part, j]),
                float(fold[j]), float(fold[j] - half[j]), float(fold[j] + half[j]),
            )
            for j in order if fold[j] > half[j]
        ]  # fmt: skip


def topic_view(
    model: Any,
    X: Samples,
    *,
    counts: Samples | None = None,
    feature_names: Sequence[str] | None = None,
) -> TopicView:
    """Read a fitted factorization as a topic model.

    Parameters
    ----------
    model : fitted NMFAlpha, NMFAlphaConsensus, classifier or stream
        Whose parts are the topics.
    X : (n, d) array or sparse matrix
        Samples as the model takes them, those of the fit or others, in memory.
    counts : (n, d) array or sparse matrix, or None
        What was counted, where X is not counts but was weighted or scaled: certainty comes from
        counts alone. None is X.
    feature_names : sequence of d str, or None
        None takes those of the data frame of the fit, or numbers the columns from 1.

    Returns
    -------
    TopicView

    Examples
    --------
    >>> import numpy as np
    >>> from marginparts import NMFAlpha, topic_view
    >>> X = np.array([[20., 10., 0., 1.], [40., 20., 0., 2.], [0., 0., 10., 31.]])
    >>> model = NMFAlpha(2, random_state=0, max_iter=500).fit(X)
    >>> view = topic_view(model, X, feature_names=["cat", "dog", "iron", "zinc"])
    >>> view.proportions.sum(axis=1).round(6), view.sizes.round(6)
    (array([1., 1., 1.]), array([31., 62., 41.]))
    >>> [view.distinctive(k, 1)[0].word for k in view.proportions[[0, 2]].argmax(axis=1)]
    ['cat', 'zinc']
    """
    check_is_fitted(model)
    parts = getattr(model, "parts_", getattr(model, "estimator_", model))
    parts = parts._as_parts() if hasattr(parts, "_as_parts") else parts
    if getattr(parts, "embedded", 0) != 0:
        raise ValueError("topic_view needs parts of 0 or larger, and these have either sign.")
    names = _names(model, parts, feature_names)
    data = _own_columns(model, parts, X)
    counted = sp.csr_array(data if counts is None else check_matrix(counts, "topic_view"))
    if counted.shape != data.shape:
        raise ValueError(f"counts has shape {counted.shape}, and X {data.shape}.")
    H, words = _codes_and_words(parts, data)
    sizes = H.sum(axis=1)
    credited = np.zeros(words.shape)
    for sums, values, shares in _credits(counted, H, words):
        credited += (sums @ (values * shares)).T
    fold, error = _log2_folds(counted, H, words, credited)
    total = max(float(sizes.sum()), np.finfo(float).tiny)
    return TopicView(
        safe_ratio(H, sizes[:, None]), words, sizes, H.sum(axis=0) / total, credited, fold, error,
        names,
    )  # fmt: skip


def to_pyldavis(
    model: Any,
    X: Samples,
    *,
    counts: Samples | None = None,
    feature_names: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Return what ``pyLDAvis.prepare`` needs: ``pyLDAvis.prepare(**to_pyldavis(model, X))``.

    Samples without a count, features that were never counted and parts without a feature are left
    out: pyLDAvis has no place for them.

    Parameters
    ----------
    model : fitted NMFAlpha, NMFAlphaConsensus, classifier or stream
        Whose parts are the topics.
    X : (n, d) array or sparse matrix
        Samples as the model takes them, in memory.
    counts : (n, d) array or sparse matrix, or None
        What was counted, where X was weighted or scaled. None is X.
    feature_names : sequence of d str, or None
        None takes those of the data frame of the fit, or numbers the columns from 1.

    Returns
    -------
    dict
        ``topic_term_dists`` (r, d) and ``doc_topic_dists`` (n, r), whose rows sum to one,
        ``doc_lengths`` (n,), ``vocab`` and ``term_frequency`` (d,).

    Examples
    --------
    >>> import numpy as np
    >>> from marginparts import NMFAlpha, to_pyldavis
    >>> X = np.array([[20., 10., 0., 1.], [40., 20., 0., 2.], [0., 0., 10., 31.]])
    >>> model = NMFAlpha(2, random_state=0).fit(X)
    >>> found = to_pyldavis(model, X, feature_names=["cat", "dog", "iron", "zinc"])
    >>> found["vocab"], found["doc_lengths"]
    (['cat', 'dog', 'iron', 'zinc'], array([31., 62., 41.]))
    >>> found["topic_term_dists"].sum(axis=1).round(6)
    array([1., 1.])
    """
    view = topic_view(model, X, counts=counts, feature_names=feature_names)
    if counts is None:
        counts = _own_columns(model, getattr(model, "parts_", model), X)
    counted = sp.csr_array(check_matrix(counts, "to_pyldavis"))
    lengths = np.asarray(counted.sum(axis=1, dtype=np.float64)).ravel()
    frequency = np.asarray(counted.sum(axis=0, dtype=np.float64)).ravel()
    terms = np.flatnonzero(frequency > 0)
    parts = np.flatnonzero(view.words[:, terms].sum(axis=1) > 0)
    docs = np.flatnonzero((lengths > 0) & (view.proportions[:, parts].sum(axis=1) > 0))
    words, shares = view.words[np.ix_(parts, terms)], view.proportions[np.ix_(docs, parts)]
    return {
        "topic_term_dists": words / words.sum(axis=1, keepdims=True),
        "doc_topic_dists": shares / shares.sum(axis=1, keepdims=True),
        "doc_lengths": lengths[docs],
        "vocab": [view.feature_names[j] for j in terms],
        "term_frequency": frequency[terms],
    }


def _names(model: Any, parts: Any, given: Sequence[str] | None) -> tuple[str, ...]:
    d = parts.components_.shape[1]
    if given is None:
        given = getattr(model, "feature_names_in_", None)
        given = given if given is None else given[:d]  # those of an embedding come last
    names = [f"column {j + 1}" for j in range(d)] if given is None else given
    if len(names) != d:
        raise ValueError(f"There are {len(names)} names and {d} features; they must be equal.")
    return tuple(map(str, names))


def _own_columns(model: Any, parts: Any, X: Samples) -> Data:
    """Return X as trusted data in the columns of the parts, without those of an embedding."""
    has_more = getattr(model, "embedding_parts_", None) is not None
    if has_more and np.shape(X)[1:] == (model.n_features_in_,):
        return canonical(model._without_embedding(model._whole(X)))
    data: Data = parts._check_data(X, reset=False)
    return data


def _codes_and_words(parts: Any, X: Data) -> tuple[Array, Array]:
    """Return the best H for parts that sum to one, and these parts (r, d)."""
    exact = copy(parts)
    exact.map_iter = None
    sums = parts.components_.sum(axis=1, dtype=np.float64)
    H = np.asarray(exact._coefficients(X), dtype=np.float64) * sums
    return H, safe_ratio(parts.components_.astype(np.float64), sums[:, None])


def _credits(
    X: sp.csr_array, H: Array, words: Array
) -> Iterator[tuple[sp.csr_array, Array, Array]]:
    """Yield entries of X, some rows at a time, with the shares (m, r) that parts have in them.

    With them comes the matrix (d, m) that sums over the entries of each column.
    """
    V = np.ascontiguousarray(words.T)
    step = max(1, _AT_ONCE * X.shape[0] // max(X.nnz * len(words), 1))
    for first in range(0, X.shape[0], step):
        block = sp.coo_array(X[first : first + step])
        fits = H[first + block.row] * V[block.col]
        m = len(block.data)
        sums = sp.csr_array((np.ones(m), (block.col, np.arange(m))), shape=(X.shape[1], m))
        values = block.data.astype(np.float64)[:, None]
        yield sums, values, safe_ratio(fits, fits.sum(axis=1, keepdims=True))


def _log2_folds(X: sp.csr_array, H: Array, words: Array, credited: Array) -> tuple[Array, Array]:
    """Return the log fold changes (r, d) against the largest other rate, and their errors.

    The information about the logarithms of two rates of a feature, all else being known, is
    ``[[a, c], [c, b]]``: the sums over samples of its counts times products of the parts' shares.
    """
    r, d = words.shape
    if r == 1:
        return np.zeros((r, d)), np.full((r, d), np.inf)
    rates = (credited + _PRIOR) / np.maximum(credited.sum(axis=1, keepdims=True), 1.0)
    rival = _largest_other(rates)
    own, both = np.zeros((d, r)), np.zeros((d, r))
    for sums, values, shares in _credits(X, H, words):
        own += sums @ (values * shares**2)
        columns = sums.tocsc().indices
        both += sums @ (values * shares * np.take_along_axis(shares, rival.T[columns], axis=1))
    a = own.T + _PRIOR
    b, c = np.take_along_axis(a, rival, axis=0), both.T
    variance = (a + b + 2 * c) / (a * b - c**2)
    fold = np.log2(rates / np.take_along_axis(rates, rival, axis=0))
    return fold, np.sqrt(variance) / np.log(2)


def _largest_other(rates: Array) -> NDArray[np.intp]:
    """Return for each part and feature (r, d) the other part with the largest rate."""
    second, first = np.argsort(rates, axis=0, kind="stable")[-2:]
    return np.where(np.arange(len(rates))[:, None] == first, second, first)


def top_columns(row: Data, n: int = 10) -> list[int]:
    """Return where the largest positive entries of a row (d,), dense or CSR, are."""
    values = flat(row)
    few = np.argpartition(-values, min(n, len(values) - 1))[:n]
    order = few[np.argsort(-values[few], kind="stable")]
    return [int(j) for j in order if values[j] > 0]


def top_features(row: Data, names: Sequence[str], n: int = 10) -> list[tuple[str, float]]:
    """Return the names and values of the largest positive entries of a row (d,)."""
    values = flat(row)
    return [(str(names[j]), float(values[j])) for j in top_columns(values, n)]


def flat(row: Data) -> Array:
    """Return a row (d,), dense or CSR, as a vector in float64."""
    dense = row.toarray() if isinstance(row, sp.sparray | sp.spmatrix) else row
    return np.asarray(dense, dtype=np.float64).ravel()


def distinctive(components: Array, shares: Sequence[float] | Array | None = None) -> Array:
    """Weigh the features of parts by how much they tell the parts from all parts together.

    A feature that is large in every part distinguishes none of them. Its weight is its term in the
    divergence of the part from the mean of all parts, ``v log(v / mean)``, or 0 where negative.

    Parts (r, d) sum to one; ``shares`` (r,) say how much of the data each explains, for the mean.
    """
    V = np.asarray(components, dtype=np.float64)
    weights = np.full(len(V), 1 / len(V)) if shares is None else np.asarray(shares)
    mean = weights @ V
    lift = np.divide(V, mean, out=np.ones_like(V), where=(mean > 0) & (V > 0))
    return np.maximum(V * np.log(lift), 0)


def part_weights(classifier: Any) -> Array:
    """Return what a sample made of one part alone would score (r, c), less the intercept.

    It has no vector. One column a class; with two classes the first is the second one's negative.
    """
    parts = classifier.parts_
    if parts.output in ("projection", "mixed"):
        codes: Array = parts.components_.astype(np.float64) @ parts.projection_
        if parts.output == "mixed":
            codes = mixed_codes(codes, np.eye(len(codes)))
    else:
        codes = parts.gram_root_.astype(np.float64)
    lengths = inverse_or_zero(np.linalg.norm(codes, axis=1), codes.dtype)
    weights = (codes * lengths[:, None]) @ classifier.head_.coef[:, : codes.shape[1]].T
    two = not classifier.multilabel_ and weights.shape[1] == 1
    return np.hstack([-weights, weights]) if two else np.asarray(weights)
