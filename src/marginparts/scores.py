"""How good decision values are: the scores of the paper's section 3."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marginparts._types import Array
from marginparts.labels import Labels


def quality(values: Array, truth: Labels) -> float:
    """Accuracy, or the mean of the micro and macro F over known entries for multilabel data.

    Parameters
    ----------
    values : (n, p)
        Decision values: one column for two classes, one a class or label otherwise.
    truth : Labels

    Returns
    -------
    float
        Between 0 and 1.
    """
    if truth.multilabel:
        return f_measure(values > 0, truth.codes)
    if values.shape[1] == 1:
        return float(np.mean(truth.codes == (values[:, 0] > 0)))
    return float(np.mean(truth.codes == values.argmax(axis=1)))


def f_measure(guess: NDArray[np.bool_], codes: NDArray[np.int64]) -> float:
    """Return the mean of the micro and the macro F over the known entries."""
    hits = np.sum(guess & (codes == 1), axis=0)
    errors = np.sum((guess & (codes == 0)) | (~guess & (codes == 1)), axis=0)
    return f_from_counts(hits, errors)


def f_from_counts(hits: NDArray[np.int64], errors: NDArray[np.int64]) -> float:
    """Return the mean of the micro and the macro F from each label's hits and errors (c,)."""
    macro = np.mean(2 * hits / np.maximum(2 * hits + errors, 1))
    micro = 2 * hits.sum() / max(2 * hits.sum() + errors.sum(), 1)
    return float((macro + micro) / 2)
