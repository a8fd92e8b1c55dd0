"""One trial of the paper's section 3.1: rows, labels and scores.

Training and validation rows are drawn anew for each split; the test rows stay. The first rows of a
training set are the labeled ones, so that smaller shares of labels are subsets of larger ones. The
last SVM is trained on the labeled rows alone, and everything is chosen on the validation rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from marginparts._types import Array
from marginparts.datasets import PaperData
from marginparts.experiments.preprocessing import preprocess
from marginparts.labels import Labels, encode_labels
from marginparts.scores import quality

Scored = Iterator[dict[str, Any]]


@dataclass(frozen=True, eq=False)
class Trial:
    """The rows of one split, preprocessed, with all their labels."""

    X_train: Any
    train: Labels
    X_validation: Any
    validation: Labels
    X_test: Any
    test: Labels
    seed: int
    backend: str  # where the factorizations run
    counts: tuple[Any, Any, Any]  # the rows before they were prepared, training ones first

    @property
    def rows(self) -> tuple[Any, Any, Any]:
        """The training, validation and test rows."""
        return self.X_train, self.X_validation, self.X_test

    def n_labeled(self, fraction: float) -> int:
        """Return how many of the training rows are labeled: the first ones."""
        return round(fraction * self.X_train.shape[0])

    def labels(self, fraction: float) -> Labels:
        """Return the labels of the training rows, unknown after the first ``n_labeled``."""
        return self.train.hide(np.arange(self.n_labeled(fraction), self.X_train.shape[0]))


class Codes(NamedTuple):
    """What a method makes of the rows with one setting: the first training rows, and all others."""

    setting: dict[str, Any]
    train: Any
    validation: Any
    test: Any


def draw_trial(data: PaperData, preprocessing: str, split: int, backend: str = "numba") -> Trial:
    """Draw the training and validation rows of a split; its number is its seed."""
    order = np.random.default_rng(split).permutation(data.X_train.shape[0])
    train, rest = order[: data.n_train], order[data.n_train : data.n_train + data.n_validation]
    counts = (data.X_train[train], data.X_train[rest], data.X_test)
    X = preprocess(preprocessing, *counts)
    # encoded together: a class may be absent from one of the parts
    labels = encode_labels(np.concatenate([data.y_train, data.y_test]))
    test = np.arange(len(data.y_train), len(labels.codes))
    return Trial(
        X[0], labels.take(train), X[1], labels.take(rest), X[2], labels.take(test), split, backend,
        counts,
    )  # fmt: skip


class Records(list[dict[str, Any]]):
    """A record for each setting that a method tried on a trial."""

    def __init__(self, trial: Trial) -> None:
        super().__init__()
        self.trial = trial

    def enter(
        self, fraction: float, setting: dict[str, Any], validation: Array, test: Array
    ) -> float:
        """Score decision values in percent, and return the score on the validation rows."""
        found = {
            "validation": round(100 * quality(validation, self.trial.validation), 3),
            "test": round(100 * quality(test, self.trial.test), 3),
        }
        self.append({"fraction": fraction, **setting, **found})
        return found["validation"]
