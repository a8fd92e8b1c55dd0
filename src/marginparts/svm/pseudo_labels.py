"""Labels that a classifier guesses for the unlabeled rows it is surest of."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginparts._types import Array
from marginparts.labels import UNKNOWN, Labels
from marginparts.svm.class_weights import ClassWeight, task_weights
from marginparts.svm.duals import DualProblem, solve_duals
from marginparts.svm.transductive import transductive_weights

#: The share of the unlabeled samples of each predicted class that may enter as pseudo-labeled.
_SUREST = 0.5


def pseudo_labels(
    seen: sp.csr_array,
    labels: Labels,
    how: str,
    C: float,
    seed: int,
    class_weight: ClassWeight = None,
) -> Labels:
    """Fill in the labels of the unlabeled rows that a classifier is surest of.

    The surest half of each predicted class (of each side of each label, for multilabel data).
    """
    tasks = labels.tasks("ovr")
    if not any(len(np.unique(task.signs)) == 2 for task in tasks) or labels.complete.all():
        return labels
    if how == "tsvm":
        W = transductive_weights(seen, labels, C, class_weight=class_weight, seed=seed)
    else:
        problems = [
            DualProblem(t.rows, t.signs, C * task_weights(t, labels, class_weight)) for t in tasks
        ]
        W = np.stack([s.w for s in solve_duals(seen, problems, tol=1e-3, seed=seed)])
    return with_surest(labels, np.asarray(seen @ W.T), _SUREST)


def with_surest(labels: Labels, values: Array, share: float) -> Labels:
    """Fill in the unknown labels for which decision values (n, p) are surest.

    A share of each predicted class is filled in (of each side of each label, for multilabel data).
    Values have one column for two classes, else one a class or label.
    """
    codes = labels.codes.copy()
    if labels.multilabel:
        answerable = [len(np.unique(task.signs)) == 2 for task in labels.tasks()]
        for k in np.flatnonzero(answerable):
            _fill_surest(codes[:, k], values[:, k] > 0, np.abs(values[:, k]), share)
    elif len(labels.classes) == 2:
        _fill_surest(codes, values[:, 0] > 0, np.abs(values[:, 0]), share)
    else:
        top = np.sort(values, axis=1)[:, -2:]
        _fill_surest(codes, values.argmax(axis=1), top[:, 1] - top[:, 0], share)
    return replace(labels, codes=codes)


def _fill_surest(
    codes: NDArray[np.int64], predicted: NDArray[Any], sureness: Array, share: float
) -> None:
    """Write the surest predictions of each class into the unknown entries of ``codes``."""
    unknown = codes == UNKNOWN
    for k in np.unique(predicted):
        rows = np.flatnonzero(unknown & (predicted == k))
        surest = rows[np.argsort(-sureness[rows], kind="stable")]
        codes[surest[: round(share * len(rows))]] = k
