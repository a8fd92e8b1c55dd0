"""How much a sample counts by its class: ``class_weight``, as in scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginparts.labels import UNKNOWN, BinaryTask, Labels

#: None, "balanced", or weights by class.
ClassWeight = str | Mapping[Any, float] | None


def check_class_weight(class_weight: object, labels: Labels | None = None) -> None:
    """Refuse what makes no sense; with labels also classes that do not occur.

    ``"balanced"`` lets all classes count alike in all: a sample counts in inverse proportion to
    the number of labeled samples of its class, and 1 on average. Where samples have several labels,
    each label is a question of its own, and its two sides count alike. A dict gives the weights,
    with 1 for classes it does not name; of samples with several labels it weighs those that have
    the label.
    """
    if class_weight is None or class_weight == "balanced":
        return
    if not isinstance(class_weight, Mapping):
        raise ValueError(
            f"class_weight={class_weight!r} is unknown; give None, 'balanced' or a dict of weights."
        )
    for name, weight in class_weight.items():
        if not isinstance(weight, Real) or not 0 < float(weight) < np.inf:
            raise ValueError(f"class_weight of {name!r} is {weight!r}; it must be larger than 0.")
        if labels is not None and name not in labels.classes.tolist():
            raise ValueError(f"class_weight names {name!r}, which is no class of y.")


def row_weights(labels: Labels, class_weight: ClassWeight) -> NDArray[np.float64]:
    """Return how much each row (n,) counts that has one label; unlabeled rows count 1.

    Examples
    --------
    >>> row_weights(Labels(np.array([0, 1]), np.array([0, 1, 1, 1])), "balanced")
    array([2.        , 0.66666667, 0.66666667, 0.66666667])
    """
    weights = np.ones(len(labels.codes))
    known = labels.codes != UNKNOWN
    codes = labels.codes[known]
    if class_weight == "balanced" and len(codes):
        own = None if labels.weights is None else labels.weights[known]
        counts = np.bincount(codes, own, minlength=len(labels.classes))
        total = len(codes) if own is None else own.sum()
        weights[known] = total / (np.count_nonzero(counts) * counts[codes])
    elif isinstance(class_weight, Mapping):
        each = [float(class_weight.get(name, 1.0)) for name in labels.classes.tolist()]
        weights[known] = np.array(each)[codes]
    return weights


def task_weights(
    task: BinaryTask, labels: Labels, class_weight: ClassWeight
) -> NDArray[np.float64]:
    """Return how much each row (m,) of a two-class question counts: by its class and its own.

    It is one of ``labels.tasks()``, perhaps with some rows left out.
    """
    own: Any = np.ones(len(task.rows)) if labels.weights is None else labels.weights[task.rows]
    if class_weight is None:
        return own
    if not labels.multilabel:
        return own * row_weights(labels, class_weight)[task.rows]
    positive = task.signs > 0
    if class_weight == "balanced":
        sides = np.array([own[~positive].sum(), own[positive].sum()])
        shares = np.divide(own.sum(), 2 * sides, out=np.ones(2), where=sides > 0)
        return np.asarray(own * shares[positive.astype(int)])
    assert isinstance(class_weight, Mapping)
    named = {str(name): float(weight) for name, weight in class_weight.items()}
    return own * np.where(positive, named.get(task.name, 1.0), 1.0)
