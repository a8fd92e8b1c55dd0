"""From which decision value on a label is given, where samples can have several.

An SVM for a rare label makes few errors by almost never giving it. The value from which a label is
given is therefore chosen on samples whose labels were hidden: one value for all
labels, and a value of its own for a label with many examples.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marginparts._types import Array
from marginparts.labels import UNKNOWN, Labels
from marginparts.scores import f_of_each, quality

#: Hidden samples that a threshold for all labels needs, and examples that one for a label needs.
_ENOUGH, _ENOUGH_EXAMPLES = 20, 50

#: Thresholds lie between the values at which an SVM is sure of either side.
_SURE = 0.95

#: Thresholds that are compared, at most.
_COMPARED = 100


def choose_thresholds(values: Array, truth: Labels, scoring: str | None = None) -> Array:
    """Return the decision value (p,) from which on each label is given.

    Parameters
    ----------
    values : (n, p)
        Decision values of samples whose labels the classifier had not seen.
    truth : Labels
        Of the same n samples, several a sample.
    scoring : str or None
        The score to maximize, see `quality`.

    Returns
    -------
    (p,) array
        Zeros when there are too few samples to go by.
    """
    thresholds = np.zeros(values.shape[1])
    if len(values) < _ENOUGH:
        return thresholds
    cuts = _cuts(values[truth.codes != UNKNOWN])
    thresholds[:] = _best(cuts, [quality(values - cut, truth, scoring) for cut in cuts])
    if scoring in ("accuracy", "balanced_accuracy"):
        return thresholds
    for k, codes in enumerate(truth.codes.T):
        positive = codes == 1
        if positive.sum() >= _ENOUGH_EXAMPLES:
            own, known = values[:, k], codes != UNKNOWN
            cuts = _cuts(own[known])
            given = own > cuts[:, None]
            hits = np.sum(given & positive, axis=1)
            errors = np.sum((given != positive) & known, axis=1)
            thresholds[k] = _best(cuts, f_of_each(hits, errors))
    return thresholds


def _cuts(values: Array) -> Array:
    """Return thresholds to compare: 0, and values between those that occur."""
    within = np.unique(values[np.abs(values) < _SURE])
    middles = (within[1:] + within[:-1]) / 2
    some = np.linspace(0, len(middles) - 1, min(len(middles), _COMPARED)).astype(int)
    return np.concatenate([[0.0], middles[some]]).astype(np.float64)


def _best(cuts: Array, scores: list[float] | NDArray[np.float64]) -> float:
    """Return the threshold with the best score; of several, the one nearest 0."""
    good = cuts[np.asarray(scores) >= np.max(scores) - 1e-12]
    return float(good[np.abs(good).argmin()])
