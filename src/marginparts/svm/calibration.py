"""From decision values to probabilities, learned on labels that were hidden from the classifier.

A probability never contradicts a prediction: the more probable class is the predicted one. So a
decision value of 0 is a probability of one half, and what is learned is a slope: how fast the
probability moves away from one half as the value grows. Two-class questions have two slopes, since
a "no" to a rare label is more often right than a "yes"; more classes share one. Where a side of 0
has few samples, its slope stays close to that of all samples together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize_scalar
from scipy.special import expit, log_expit, softmax

from marginparts._types import Array
from marginparts.labels import UNKNOWN, Labels

#: Hidden labels that a calibration needs, in all and on either side of a two-class question.
ENOUGH, ENOUGH_A_SIDE = 30, 5

#: Logarithms of the slopes that are considered.
_RANGE = (-6.0, 6.0)

#: How far the logarithm of one side's slope is expected to be from that of all samples.
_SPREAD = 0.5


class Calibration(NamedTuple):
    """Slopes (2, p): for negative and positive values of each two-class question, or one number.

    NaN where the labels did not suffice.
    """

    slopes: Array
    multilabel: bool

    def probabilities(self, values: Array) -> Array:
        """Return probabilities (n, c) for decision values (n, p).

        The columns of a row sum to one, except for multilabel data.
        """
        if self.slopes.size == 1:  # more than two classes, one label each
            return np.asarray(softmax(self.slopes[0, 0] * values, axis=1))
        p = expit(np.where(values > 0, self.slopes[1], self.slopes[0]) * values)
        return np.asarray(p) if self.multilabel else np.hstack([1 - p, p])


def calibrate(values: Array, truth: Labels) -> Calibration | None:
    """Learn the slopes from decision values (n, p) of samples whose labels were hidden.

    Returns None when there are too few labels.
    """
    if len(values) < ENOUGH:
        return None
    if not truth.multilabel and values.shape[1] > 1:
        return Calibration(np.array([[_temperature(values, truth.codes)]]), False)
    codes = truth.codes if truth.multilabel else truth.codes[:, None]
    common = _slope(values[codes != UNKNOWN], codes[codes != UNKNOWN] == 1)
    questions = [_question(v, c, common) for v, c in zip(values.T, codes.T, strict=True)]
    slopes = np.array(questions).T
    return None if np.isnan(slopes).all() else Calibration(slopes, truth.multilabel)


def _question(values: Array, codes: NDArray[np.int64], common: float) -> tuple[float, float]:
    """Return the slopes below and above 0 of one two-class question."""
    known = codes != UNKNOWN
    values, positive = values[known], codes[known] == 1
    if min(positive.sum(), (~positive).sum()) < ENOUGH_A_SIDE:
        return (np.nan, np.nan)
    above = values > 0
    below_slope, above_slope = (
        _slope(values[side], positive[side], common) for side in (~above, above)
    )
    return below_slope, above_slope


def _slope(values: Array, positive: NDArray[np.bool_], common: float | None = None) -> float:
    """Return the slope that makes the truth most likely, regularized.

    The truth is softened as by Platt (1999), so that a side without mistakes does not get an
    infinite slope; and a penalty keeps the slope near the common one where samples are few.
    """
    n = np.array([np.sum(~positive), np.sum(positive)])
    soft = np.where(positive, (n[1] + 1) / (n[1] + 2), 1 / (n[0] + 2))

    def surprise(log_slope: float) -> float:
        scaled = np.exp(log_slope) * values
        fit = -float(np.sum(soft * log_expit(scaled) + (1 - soft) * log_expit(-scaled)))
        far = 0.0 if common is None else (log_slope - np.log(common)) / _SPREAD
        return fit + far**2 / 2

    return float(np.exp(minimize_scalar(surprise, bounds=_RANGE, method="bounded").x))


def _temperature(values: Array, codes: NDArray[np.int64]) -> float:
    """Return the one slope with which the predictions are, on average, as sure as they are right.

    Likelihood would give more doubt: it is ruled by the few samples that are far on a wrong side.
    """
    right = np.sum(values.argmax(axis=1) == codes)
    share = (right + 1) / (len(codes) + 2)

    def too_sure(log_slope: float) -> float:
        return float(np.mean(softmax(np.exp(log_slope) * values, axis=1).max(axis=1)) - share)

    if too_sure(_RANGE[0]) >= 0:  # no better than a guess
        return float(np.exp(_RANGE[0]))
    return float(np.exp(brentq(too_sure, *_RANGE))) if too_sure(_RANGE[1]) > 0 else 1.0
