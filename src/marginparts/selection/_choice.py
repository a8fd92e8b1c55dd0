"""What was chosen, how good it is, and how far that can be trusted."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from marginparts._types import Array
from marginparts.selection._settings import DEFAULT, Setting

#: Labeled samples and standard error (of a score between 0 and 1) at which a score is a hint only.
_FEW_LABELS, _LARGE_ERROR = 40, 0.05


class HeldOut(NamedTuple):
    """Decision values (m, p) of labeled rows (m,) whose labels were hidden."""

    rows: NDArray[np.intp]
    values: Array


class Choice(NamedTuple):
    """What was chosen, and how.

    ``scores`` has a list for each candidate, with an entry a fold: fewer for those that were
    dropped on the way. ``held_out`` is what the best candidate said of hidden labels.
    """

    best: Setting
    scores: dict[Setting, list[float]]
    held_out: HeldOut | None = None

    @property
    def score(self) -> float:
        """The best candidate's mean score; NaN when nothing was tried."""
        return float(np.mean(self.scores.get(self.best, [float("nan")])))

    @property
    def error(self) -> float:
        """The standard error of that mean; NaN when it cannot be told."""
        return standard_error(self.scores.get(self.best, []))

    def doubt(self, n_labeled: int) -> str | None:
        """Say when the labels are too few to trust the score, else return None."""
        if self.held_out is not None:  # a race that was cut short has hidden only some
            n_labeled = len(self.held_out.rows)
        if not self.scores:
            return (
                f"With {n_labeled} labeled samples nothing was compared, so how good this is is "
                "unknown; label a few samples of each class."
            )
        # the folds' own spread is itself uncertain; chance alone gives at least this (Agresti and
        # Coull's two more hits and misses keep a perfect score from looking certain)
        share = (self.score * n_labeled + 2) / (n_labeled + 4)
        chance = np.sqrt(share * (1 - share) / (n_labeled + 4))
        error = float(np.fmax(self.error, chance))
        if n_labeled >= _FEW_LABELS and error <= _LARGE_ERROR:
            return None
        return (
            f"The score comes from {n_labeled} labeled samples and may be {200 * error:.0f} points "
            "off either way; more labels would tell."
        )


def standard_error(scores: list[float]) -> float:
    """Return the standard error of the mean over folds; NaN for fewer than two."""
    if len(scores) < 2:
        return float("nan")
    return float(np.std(scores, ddof=1) / np.sqrt(len(scores)))


def best_of(scores: dict[Setting, list[float]], default: Setting = DEFAULT) -> Setting:
    """Return the candidate nearest the defaults among those as good as the best.

    As good is what cannot be told from the best by one standard error.
    """
    means = {setting: float(np.mean(values)) for setting, values in scores.items()}
    top = max(means, key=lambda setting: means[setting])
    spread = float(np.std(scores[top])) / np.sqrt(max(len(scores[top]), 1))
    good = [setting for setting in means if means[setting] >= means[top] - spread]

    def distance(setting: Setting) -> float:
        steps = [
            abs(np.log((a + 1e-3) / (b + 1e-3))) for a, b in zip(setting, default, strict=True)
        ]
        return float(np.sum(np.minimum(steps, 10)))

    return min(good, key=lambda setting: (distance(setting), -means[setting]))
