"""The teachers: each learns from the labels and from all rows, and answers for all rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any

import numpy as np

from marginparts._types import Array
from marginparts.labels import UNKNOWN, Labels
from marginparts.svm.head import fit_head
from marginparts.teaching.naive_bayes import naive_bayes_values
from marginparts.teaching.transduction import Codes, least_squares_values, logistic_values
from marginparts.teaching.views import Views

#: LIBLINEAR draws from one stream of random numbers for all threads.
_ONE_AT_A_TIME = Lock()

#: How much of a row's label comes from its neighbors.
_FROM_NEIGHBORS = 0.9

#: ``teacher(views, codes, c)``: decision values (n, c) of all rows, where each class has a label.
Teacher = Callable[[Views, Codes, int], Array]


def _one_a_class(values: Array) -> Array:
    """Return values (n, p) with a column for each class, also where one tells two classes."""
    return np.hstack([-values, values]) if values.shape[1] == 1 else values


def _svm(views: Views, codes: Codes, c: int) -> Array:
    with _ONE_AT_A_TIME:
        head = fit_head(views.inputs, Labels(np.arange(c), codes), 1.0)
    values = head.values(views.inputs)
    return _one_a_class(values)


def _latent(views: Views, codes: Codes, c: int) -> Array:
    return logistic_values(views.latent, codes, c, rounds=0)


def _least_squares(views: Views, codes: Codes, c: int) -> Array:
    return least_squares_values(views.latent, codes, c, dense=not views.sparse)


def _logistic(views: Views, codes: Codes, c: int) -> Array:
    return logistic_values(views.latent, codes, c, dense=not views.sparse)


def _spectral(views: Views, codes: Codes, c: int) -> Array:
    return logistic_values(views.spectral, codes, c, rounds=0)


def _spreading(views: Views, codes: Codes, c: int) -> Array:
    """Let labels flow to neighbors (Zhou et al. 2004); the logarithm of what arrives."""
    F = views.flowed((codes[:, None] == np.arange(c)).astype(np.float64), _FROM_NEIGHBORS)
    shares = F / np.maximum(F.sum(axis=1, keepdims=True), 1e-12)
    return np.asarray(np.log(shares + 1e-3))


def _naive_bayes(views: Views, codes: Codes, c: int) -> Array:
    return _bayes(views.counts, codes, c, weight=0.1, alpha=0.1)


def _weighted_bayes(views: Views, codes: Codes, c: int) -> Array:
    """Naive Bayes as if weighted rows of length 1 were counts: long texts are not too sure."""
    return _bayes(views.words, codes, c, weight=1.0, alpha=0.01)


def _bayes(rows: Any, codes: Codes, c: int, *, weight: float, alpha: float) -> Array:
    labels = Labels(np.arange(c), codes)
    (values,) = naive_bayes_values(rows, labels, [rows], weight=weight, alpha=alpha)
    return _one_a_class(values)


_TEACHERS: dict[str, Teacher] = {
    "svm": _svm, "latent": _latent, "least squares": _least_squares, "logistic": _logistic,
    "spreading": _spreading, "spectral": _spectral, "naive Bayes": _naive_bayes,
    "weighted Bayes": _weighted_bayes,
}  # fmt: skip

#: Those who see words and nothing else, and the endings of the names of those who see vectors alone
#: and of those who see words and vectors.
OF_WORDS, VECTORS, BOTH = {"naive Bayes", "weighted Bayes"}, ", vectors", ", both"


def teachers_for(views: Views) -> list[str]:
    """Return the names of the teachers that suit the rows.

    Naive Bayes takes texts alone; classes that are curved, as the spectral one expects, are found
    among images and sounds.
    """
    others = {"spectral"} if views.sparse else OF_WORDS
    return [name for name in _TEACHERS if name not in others]


def all_values(
    views: Views, labels: Labels, names: Sequence[str] | None = None
) -> dict[str, Array]:
    """Return what every teacher that suits, or those named, says of all rows: values (n, c) each.

    The largest is 0. A class without a labeled row is never predicted. Where vectors stand beside
    words, all who suit answer by the words alone, by the vectors alone, and by both.
    """
    if views.apart and names is None:
        words, vectors = (all_values(own, labels) for own in views.apart)
        suit = [name for name in words if name not in OF_WORDS]
        both = all_values(views._replace(apart=()), labels, suit)
        endings = (("", words), (VECTORS, vectors), (BOTH, both))
        return {name + ending: own[name] for ending, own in endings for name in own}
    known = labels.codes != UNKNOWN
    present = np.unique(labels.codes[known])
    codes = np.full(len(labels.codes), UNKNOWN)
    codes[known] = np.searchsorted(present, labels.codes[known])
    said = {}
    for name in names or teachers_for(views):
        alone = len(present) == 1  # nobody has to be asked
        own = np.zeros((len(codes), 1)) if alone else _TEACHERS[name](views, codes, len(present))
        values = np.full((len(codes), len(labels.classes)), -np.inf, dtype=np.float32)
        values[:, present] = own - own.max(axis=1, keepdims=True)
        said[name] = values
    return said


def kind_of(name: str) -> str:
    """Return the name of a teacher without the view that it has."""
    return name.removesuffix(VECTORS).removesuffix(BOTH)
