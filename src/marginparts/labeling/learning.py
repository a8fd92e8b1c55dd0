"""What is believed of all samples after some answers: quick enough to be asked every few labels.

The slow things do not depend on labels and are made once: the views of the teachers (latent space,
neighbors) and the parts. With each batch of labels the teachers learn anew, a second or two for
10,000 texts, and the parts go on from where they were.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import expit, softmax

from marginparts._types import Array, Data
from marginparts.estimators import NMFAlpha
from marginparts.labels import UNKNOWN, Labels
from marginparts.solve.start import thread_pools
from marginparts.svm.head import Head, fit_head
from marginparts.teaching.several import Answers, Opinion
from marginparts.teaching.values import all_values, teachers_for
from marginparts.teaching.views import Views, views_of
from marginparts.teaching.weighing import confident, weighed
from marginparts.weighting import usual_weights

#: Teachers that are left out: they are slow, and with few labels add little to the others.
_SLOW = ("logistic", "naive Bayes", "weighted Bayes")

#: Parts that are shown, iterations of the first fit and of each that goes on from it, lam of these.
_PARTS, _FIRST, _MORE, _LAM = 32, 30, 5, 1.0

#: Folds of hidden labels.
_FOLDS = 5


class Beliefs(NamedTuple):
    """What the teachers believe.

    Attributes
    ----------
    names : list of c str
        The labels that have an example.
    P : (n, c) array
        The probability of each label; rows sum to one unless samples can have several.
    apart : (n,) array
        How much the teachers differ, 0 for agreement.
    words : Head
        A linear classifier on `Views.inputs`, whose coefficients are the words' evidence.
    """

    names: list[str]
    P: Array
    apart: Array
    words: Head

    def best(self, several: bool) -> Array:
        """Return the labels that are believed as codes: (n,), or an indicator (n, c)."""
        return (self.P >= 0.5).astype(np.int64) if several else self.P.argmax(axis=1)


class HeldOut(NamedTuple):
    """What was believed of labeled samples whose labels were hidden.

    ``rows`` (m,) are the samples, ``P`` (m, c) the probabilities, ``right`` (m,) whether the most
    probable is the label that was given; ``hits`` where each teacher was right, fold by fold.
    ``even`` (m, c) are the probabilities if all teachers count alike: the best of them learn from
    all samples, and are the first to be taken in by wrong labels.
    """

    rows: NDArray[np.intp]
    P: Array
    right: NDArray[np.bool_]
    hits: dict[str, list[Array]]
    even: Array


def labels_of(
    answers: dict[int, tuple[str, ...]], n: int, several: bool
) -> tuple[Labels, list[str]]:
    """Return labels as codes, for the answers by row, and their names.

    Where samples have one label, "none of these" teaches nothing.
    """
    names = list(dict.fromkeys(name for labels in answers.values() for name in labels))
    number = {name: k for k, name in enumerate(names)}
    codes = np.full((n, len(names)) if several else n, UNKNOWN, dtype=np.int64)
    for row, labels in answers.items():
        if several:
            codes[row] = 0
            codes[row, [number[name] for name in labels]] = 1
        elif labels:
            codes[row] = number[labels[0]]
    return Labels(np.arange(len(names)), codes), names


@dataclass
class Learner:
    """The teachers of a pool, with what does not depend on labels.

    Attributes
    ----------
    X : (n, d) array or CSR array
    views : Views
    density : (n,) array
        How like a sample its neighbors are, between 0 and 1.
    """

    X: Data
    views: Views
    density: Array
    several: bool

    @classmethod
    def of(cls, X: Data, several: bool, seed: int = 0) -> Learner:
        """Look at all samples."""
        views = views_of(X, usual_weights(X), seed)
        return cls(X, views, _density(views), several)

    def understand(self, labels: Labels, names: list[str], hits: dict[str, list[Array]]) -> Beliefs:
        """Learn from labels of two classes at least; teachers count by hits on hidden ones."""
        with thread_pools().limit(limits=1, user_api="blas"):
            P, apart = self._believed(labels, hits)
            words = fit_head(self.views.inputs, labels, 1.0)
        return Beliefs(names, P, apart, words)

    def _believed(self, labels: Labels, hits: dict[str, list[Array]]) -> tuple[Array, Array]:
        if self.several:
            answers = Answers.of(self.views, labels)
            own = expit(answers.values)
            return Opinion.learned([], []).probabilities(answers), own.std(axis=2).mean(axis=1)
        said = self._said(labels)
        known = {name: hits.get(name, []) for name in said}
        verdict = weighed(said, known, sparse=self.views.sparse)
        votes = np.zeros_like(verdict.Q)
        for name, values in said.items():
            votes[np.arange(len(votes)), values.argmax(axis=1)] += verdict.shares[name]
        return verdict.Q, 1 - votes.max(axis=1)

    def _said(self, labels: Labels) -> dict[str, Array]:
        """Return what the teachers say; of a single class, as a fold may leave it, all say that."""
        present = np.unique(labels.codes[labels.labeled])
        if len(present) > 1:
            return all_values(self.views, labels, self._teachers())
        values = np.full((len(labels.codes), len(labels.classes)), -np.inf, dtype=np.float32)
        values[:, present] = 0
        return dict.fromkeys(self._teachers(), values)

    def _teachers(self) -> list[str]:
        return [name for name in teachers_for(self.views) if name not in _SLOW]

    def hidden(
        self, labels: Labels, seed: int = 0, between: Callable[[], object] = lambda: None
    ) -> HeldOut:
        """Hide the labels of each fold in turn, and say what is believed of them.

        Between the folds, whatever is more urgent is called.
        """
        rows = np.flatnonzero(labels.labeled)
        order = np.random.default_rng(seed).permutation(rows)
        folds = [order[k :: min(_FOLDS, len(rows))] for k in range(min(_FOLDS, len(rows)))]
        with thread_pools().limit(limits=1, user_api="blas"):
            if self.several:
                some = []
                for fold in folds:
                    P = self._believed(labels.hide(fold), {})[0][fold]
                    some.append((P, P))
                    between()
                hits: dict[str, list[Array]] = {}
            else:
                some, hits = self._taught(labels, folds, between)
        at = np.concatenate(folds)
        where = np.argsort(at)
        at = at[where]
        P, even = (np.concatenate(each)[where] for each in zip(*some, strict=True))
        codes = labels.codes[at]
        right = ((P >= 0.5) == (codes == 1)).all(axis=1) if self.several else P.argmax(1) == codes
        return HeldOut(at, P, np.asarray(right), hits, even)

    def _taught(
        self, labels: Labels, folds: list[NDArray[np.intp]], between: Callable[[], object]
    ) -> tuple[list[tuple[Array, Array]], dict[str, list[Array]]]:
        """Ask the teachers without each fold; they are weighed by the other folds, or alike."""
        said = []
        for fold in folds:
            said.append(self._said(labels.hide(fold)))
            between()
        hits: dict[str, list[Array]] = {
            name: [
                values[name][fold].argmax(axis=1) == labels.codes[fold]
                for values, fold in zip(said, folds, strict=True)
            ]
            for name in self._teachers()
        }
        found = []
        for k, (values, fold) in enumerate(zip(said, folds, strict=True)):
            others = {name: own[:k] + own[k + 1 :] for name, own in hits.items()}
            verdict = weighed(values, others, sparse=self.views.sparse)
            each = [
                np.log(confident(own, verdict.accuracies[name])[fold] + 1e-4)
                for name, own in values.items()
            ]
            found.append((verdict.Q[fold], softmax(np.mean(each, axis=0), axis=1)))
        return found, hits

    def parts(self, labels: Labels | None, last: tuple[Array, Array] | None) -> tuple[Array, Array]:
        """Return the parts, H (n, r) and V (d, r): new ones, or those of the last time gone on."""
        r = max(1, min(_PARTS, min(self.X.shape) // 2))
        y = None
        if labels is not None and last is not None and not self.several:
            y = labels.codes
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # few iterations are meant, and so are single labels
            model = NMFAlpha(
                r, lam=_LAM, max_iter=_FIRST if last is None else _MORE, tol=0.0, random_state=0,
                init="auto" if last is None else last,
            ).fit(self.X, y)  # fmt: skip
        return model._coefficients(self.X), np.ascontiguousarray(model.components_.T)


def _density(views: Views) -> Array:
    """Return the mean cosine of each row with its neighbors in the latent space."""
    graph = sp.coo_array(views.graph)
    near = np.einsum("eq,eq->e", views.latent[graph.row], views.latent[graph.col])
    n = len(views.latent)
    counts = np.bincount(graph.row, minlength=n)
    sums = np.bincount(graph.row, np.maximum(near, 0), minlength=n)
    return np.asarray(sums / np.maximum(counts, 1))
