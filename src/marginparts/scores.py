"""How good decision values are: the scores of the paper's section 3, and those for rare classes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginparts._types import Array
from marginparts.labels import UNKNOWN, Labels

#: What scores are called, by the names that scikit-learn has for them.
SCORINGS = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "f1": "F-measure",
    "f1_macro": "macro F-measure",
    "f1_micro": "micro F-measure",
}


def check_scoring(scoring: object, labels: Labels | None = None) -> None:
    """Refuse a score that is not known, or that does not suit the labels."""
    if scoring is None:
        return
    if not isinstance(scoring, str) or scoring not in SCORINGS:
        raise ValueError(f"scoring={scoring!r} is unknown; choose one of {', '.join(SCORINGS)}.")
    if scoring == "f1" and labels is not None and (labels.multilabel or len(labels.classes) != 2):
        raise ValueError("scoring='f1' is for two classes; choose f1_macro or f1_micro.")


def score_name(scoring: str | None, multilabel: bool) -> str:
    """Return what a score is called."""
    if scoring is None:
        return "F-measure" if multilabel else "accuracy"
    return SCORINGS[scoring]


def quality(values: Array, truth: Labels, scoring: str | None = None) -> float:
    """Return how well decision values tell the labels, between 0 and 1.

    Values (n, p) have one column for two classes, one a class or label otherwise. ``scoring`` is
    one of `SCORINGS`; None is the accuracy, or the mean of the micro and macro F over known entries
    for multilabel data.
    """
    if truth.multilabel:
        return _of_labels(values > 0, truth, scoring)
    if values.shape[1] == 1:
        return _of_classes((values[:, 0] > 0).astype(np.int64), truth, scoring)
    return _of_classes(values.argmax(axis=1), truth, scoring)


def _of_classes(guess: NDArray[np.int64], truth: Labels, scoring: str | None) -> float:
    """Return the score of one guess a sample."""
    codes = truth.codes
    if scoring in (None, "accuracy", "f1_micro"):  # one label each: both are the share of hits
        return float(np.average(codes == guess, weights=truth.weights))
    n = len(truth.classes)
    true, guessed, hits = (
        np.bincount(found, minlength=n) for found in (codes, guess, codes[codes == guess])
    )
    if scoring == "balanced_accuracy":
        return float(np.mean(hits[true > 0] / true[true > 0]))
    f = 2 * hits / np.maximum(true + guessed, 1)
    return float(f[1]) if scoring == "f1" else float(np.mean(f[true + guessed > 0]))


def _of_labels(guess: NDArray[np.bool_], truth: Labels, scoring: str | None) -> float:
    """Return the score of several guesses a sample."""
    codes = truth.codes
    if scoring == "accuracy":  # all labels of a sample right, as in `score`
        complete = truth.complete
        return float(np.mean(np.all(guess[complete] == (codes[complete] == 1), axis=1)))
    right = guess == (codes == 1)
    if scoring == "balanced_accuracy":
        sides = [(codes == side, right & (codes == side)) for side in (0, 1)]
        shares = [np.sum(hit, axis=0) / np.maximum(np.sum(all_, axis=0), 1) for all_, hit in sides]
        both = (codes == 0).any(axis=0) & (codes == 1).any(axis=0)
        return float(np.mean(np.mean(shares, axis=0)[both])) if both.any() else 0.0
    hits = np.sum(guess & (codes == 1), axis=0)
    errors = np.sum(~right & (codes != UNKNOWN), axis=0)
    if scoring == "f1_macro":
        return float(np.mean(f_of_each(hits, errors)))
    if scoring == "f1_micro":
        return float(f_of_each(hits.sum(), errors.sum()))
    return f_from_counts(hits, errors)


def f_of_each(hits: Any, errors: Any) -> Any:
    """Return the F-measure from numbers of hits and errors."""
    return 2 * hits / np.maximum(2 * hits + errors, 1)


def f_from_counts(hits: NDArray[np.int64], errors: NDArray[np.int64]) -> float:
    """Return the mean of the micro and the macro F from each label's hits and errors (c,)."""
    return float((np.mean(f_of_each(hits, errors)) + f_of_each(hits.sum(), errors.sum())) / 2)
