"""A model as people use it: samples as they have them in, labels by name out.

It is what ``marginparts fit`` writes and `marginparts.load` returns: a classifier, the preparation
of its inputs, how to read files like the one it was fitted to, and a card that says what is known
about it. It holds no sample as such, but words, and the margin components: weighted sums of labeled
samples, which come close to a sample where a class has only one.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from marginparts._types import Array, Data, PathStep, Samples
from marginparts.app.encoders import encoded
from marginparts.app.evaluation import Rated
from marginparts.app.preparation import (
    Preparation,
    PreparationError,
    TextPreparation,
    beside,
)
from marginparts.app.readers import Label, Layout
from marginparts.estimators import NMFAlphaClassifier
from marginparts.scores import score_name


class Decision(NamedTuple):
    """The labels of one sample, each with its score and its probability (NaN where unknown)."""

    labels: tuple[str, ...]
    scores: tuple[float, ...]
    probabilities: tuple[float, ...]


@dataclass
class Card:
    """What is known about a model.

    Attributes
    ----------
    source : str
        The name of the file it was fitted to.
    n_samples, n_labeled, label_counts : int, int, list of int
        Samples, those with a label, and those with each label.
    rated : list of Rated
        How good it is on hidden labels, and how good the alternatives are.
    doubt : str or None
        A sentence when the labels are too few to trust these scores.
    shares : list of float
        The share of the data that each part explains.
    seconds, stopped : float, bool
        What the fit took, and whether it was ended early.
    prior, carried : str or None, int
        What the prior was fitted to, and how many of the parts, the first ones, come from it.
    n_fixed : int
        How many of the parts, the first ones, stayed as they were given.
    stability : list of float
        How well each part was found again by runs from other starts, where that was asked for.
    """

    source: str
    n_samples: int
    n_labeled: int
    label_counts: list[int]
    rated: list[Rated] = field(default_factory=list)
    doubt: str | None = None
    shares: list[float] = field(default_factory=list)
    seconds: float = 0.0
    stopped: bool = False
    prior: str | None = None
    carried: int = 0
    n_fixed: int = 0
    stability: list[float] = field(default_factory=list)


@dataclass
class Model:
    """A fitted classifier with the preparation of its inputs.

    Attributes
    ----------
    classifier : NMFAlphaClassifier
    preparation : TextPreparation or MatrixPreparation
    layout : Layout
        How files are read.
    class_names : list of str
        The labels, in the order of the classifier's.
    card : Card
    path : list of PathStep
        The parts for several lam, when they were asked for; unless they are images, the weights of
        their most telling features only.
    """

    classifier: NMFAlphaClassifier
    preparation: Preparation
    layout: Layout
    class_names: list[str]
    card: Card
    path: list[PathStep] = field(default_factory=list)

    @property
    def multilabel(self) -> bool:
        """Whether a sample can have several labels."""
        return bool(self.classifier.multilabel_)

    @property
    def metric(self) -> str:
        """What scores are called."""
        return score_name(self.classifier.scoring, self.multilabel)

    @property
    def n_parts(self) -> int:
        """The number of parts."""
        return int(self.classifier.parts_.components_.shape[0])

    @property
    def n_learned(self) -> int:
        """The samples that it learned from: all, or of very many unlabeled ones a draw."""
        unlabeled = self.card.n_samples - self.card.n_labeled
        most = getattr(self.classifier, "max_unlabeled", None)
        return self.card.n_labeled + min(unlabeled, unlabeled if most is None else most)

    @property
    def display_order(self) -> list[int]:
        """The classes as people sort them: label 2 before label 10."""
        return sorted(range(len(self.class_names)), key=lambda k: natural(self.class_names[k]))

    @property
    def feature_names(self) -> list[str]:
        """What the columns of the prepared data are called."""
        d = self.classifier.n_features_in_ - self.layout.vectors
        return self.preparation.names or [f"column {k + 1}" for k in range(d)]

    def __repr__(self) -> str:
        return (
            f"Model({self.card.source!r}, {self.n_parts} parts, {len(self.class_names)} labels, "
            f"{self.card.n_labeled} of {self.card.n_samples} samples labeled)"
        )

    def prepare(self, samples: Samples, vectors: Array | None = None) -> Any:
        """Return samples as rows (n, d) that the classifier takes, with gaps filled.

        A model that was fitted with vectors needs those of the samples (n, k), unless it has an
        encoder.
        """
        samples = self._read(samples)
        return beside(self.features(samples), self._vectors(samples, vectors))

    def _vectors(self, samples: Samples, vectors: Array | None) -> Array | None:
        """Return the vectors beside samples, or say why there should be some or none."""
        k = self.layout.vectors
        if vectors is None and self.layout.encoder is not None:
            vectors = encoded(self.layout.encoder, samples)  # type: ignore[arg-type]
        if not k and vectors is not None:
            raise PreparationError("The model was fitted without vectors; leave them out.")
        if k and _width(vectors) != k:
            raise PreparationError(
                f"The model was fitted with vectors of {k} numbers beside the samples; give one "
                "from the same encoder for each."
            )
        return vectors

    def features(self, samples: Samples) -> Any:
        """Return words or columns of samples as rows, with gaps filled, without vectors."""
        X = self.preparation.apply(self._read(samples))
        return self.classifier._whole(X) if self.layout.gaps else X

    def _read(self, samples: Samples) -> Any:
        """Return samples that can be read more than once; texts are str, or refused."""
        if isinstance(samples, str | bytes):
            raise ValueError("A model takes a list of samples; put the text into a list.")
        samples = _kept(samples)
        return _as_texts(samples) if isinstance(self.preparation, TextPreparation) else samples

    def transform(self, samples: Samples, vectors: Array | None = None) -> Array:
        """Return Z (n, r): samples expressed in the parts; those of vectors are left out."""
        return self.classifier.transform(self.prepare(samples, vectors))

    def values(self, X: Data) -> Array:
        """Return decision values (n, c) of prepared rows, one column a class.

        With two classes the second column is the first one's negative, whose sign is the decision.
        """
        values = self.classifier.decision_function(X)
        return np.column_stack([-values, values]) if values.ndim == 1 else values

    def decide(self, values: Array) -> list[Decision]:
        """Return the labels that decision values (n, c) stand for."""
        probabilities = self.probabilities(values)
        if self.multilabel:
            chosen = [np.flatnonzero(row > 0) for row in values]
            # the surest first
            chosen = [ks[np.argsort(-row[ks])] for ks, row in zip(chosen, values, strict=True)]
        else:
            chosen = list(values.argmax(axis=1)[:, None])
        found = []
        for ks, row, p in zip(chosen, values, probabilities, strict=True):
            names = tuple(self.class_names[k] for k in ks)
            found.append(Decision(names, tuple(row[ks].tolist()), tuple(p[ks].tolist())))
        return found

    def probabilities(self, values: Array) -> Array:
        """Return probabilities (n, c) for decision values (n, c); NaN where labels were too few."""
        if self.classifier.calibration_ is None:
            return np.full(values.shape, np.nan)
        two = not self.multilabel and values.shape[1] == 2
        return self.classifier.probabilities(values[:, 1:] if two else values)

    def known(self, label: Label) -> tuple[str, ...] | None:
        """Return the labels that a file gives to a sample, or None for an unlabeled one.

        As everywhere, -1 means unlabeled unless it is one of the classes.
        """
        if label is None or (label in ("-1", ("-1",)) and "-1" not in self.class_names):
            return None
        return (label,) if isinstance(label, str) else label

    def sureness(self, values: Array) -> Array:
        """Return how sure decisions are (n,): the lead of the best class over the next.

        Where there can be several labels, how far the most likely one is from being given or not.
        """
        if self.multilabel:
            return np.abs(values.max(axis=1))
        top = np.partition(values, -2, axis=1)[:, -2:]
        return np.asarray(top[:, 1] - top[:, 0])

    def predict(self, samples: Samples, vectors: Array | None = None) -> list[Any]:
        """Return a label for each sample; a tuple of labels where there can be several."""
        samples = _kept(samples)
        if isinstance(samples, list) and not samples:
            return []
        decisions = self.decide(self.decision_function(samples, vectors))
        return [d.labels if self.multilabel else d.labels[0] for d in decisions]

    def decision_function(self, samples: Samples, vectors: Array | None = None) -> Array:
        """Return a score for each sample and class (n, c); the largest, or those above 0, win."""
        return self.values(self.prepare(samples, vectors))

    def predict_proba(self, samples: Samples, vectors: Array | None = None) -> Array:
        """Return a probability for each sample and class (n, c); NaN where labels were too few."""
        return self.probabilities(self.decision_function(samples, vectors))


def _kept(samples: Any) -> Any:
    """Return samples as a list if they come from an iterator: they are read more than once."""
    return list(samples) if isinstance(samples, Iterator) else samples


def _width(vectors: Any) -> int | None:
    """Return how many numbers each vector has; None if there are none, or not as many in all."""
    try:
        _, k = np.shape(vectors)
    except ValueError:
        return None
    return int(k)


def _as_texts(samples: Any) -> Any:
    """Decode bytes, and refuse what is no text, as the gaps of a data frame are."""
    texts, decoded = [], False
    for k, sample in enumerate(samples):
        if isinstance(sample, bytes):
            try:
                sample, decoded = sample.decode("utf-8"), True
            except UnicodeDecodeError:
                raise ValueError(
                    f"sample {k + 1} is bytes that are not UTF-8; decode it to a str first."
                ) from None
        elif not isinstance(sample, str):
            raise ValueError(
                f"sample {k + 1} is {sample!r} and no text; put '' in its place, or leave it out."
            )
        texts.append(sample)
    return texts if decoded else samples


def natural(name: str) -> list[tuple[int, str]]:
    """Return a key that sorts the numbers in names by their size."""
    pieces = re.split(r"(\d+)", name)
    return [(int(piece), "") if piece.isdecimal() else (0, piece) for piece in pieces]


def largest_entries(components: Array, n: int) -> sp.csr_array:
    """Return parts (r, d) with all but the n largest entries of each set to zero."""
    found = np.zeros_like(components)
    top = np.argsort(-components, axis=1, kind="stable")[:, :n]
    np.put_along_axis(found, top, np.take_along_axis(components, top, axis=1), axis=1)
    return sp.csr_array(found)
