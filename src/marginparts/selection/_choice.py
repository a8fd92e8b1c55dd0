"""What can be chosen, how it is compared, what was chosen, and how far that can be trusted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from marginparts._types import DEFAULT_LAM, Array
from marginparts.labels import Labels
from marginparts.scores import check_scoring
from marginparts.selection.folds import Fold, FoldRows
from marginparts.svm.thresholds import choose_thresholds
from marginparts.validation import check_count, check_option

#: What is tried for each parameter left to choose.
LAM_GRID = (0.3, 1.0, 3.0, 10.0)
#: Where samples have several labels, many are rare, and the components of rare labels are noisy.
LAM_GRID_SEVERAL = (0.1, 0.3, 1.0, 3.0)
MAP_GRID = (5, 15, 40, 100)
NORMALIZE_GRID = (True, False)
C_GRID = (0.1, 0.5, 2.0, 10.0)
#: In the units of the data (``scale=False``), of which nothing is known beforehand: weights, and
#: costs of the SVMs behind the directions and of the last one.
LAM_GRID_UNSCALED = (0.1, 1.0, 10.0, 100.0, 1e3, 1e4)
DIRECTION_GRID_UNSCALED = (1e-4, 0.01, 1.0, 100.0)
C_GRID_UNSCALED = (0.01, 0.1, 1.0, 10.0, 100.0)

#: Labeled samples and standard error (of a score between 0 and 1) at which a score is a hint only.
_FEW_LABELS, _LARGE_ERROR = 40, 0.05

#: The codes that run against each other: n_components, lam, map_iter, direction_C.
Candidate = tuple[int, float, int | None, float]


class Setting(NamedTuple):
    """One candidate: codes (n_components, lam, map_iter, direction_C) and an SVM on them."""

    n_components: int
    lam: float
    map_iter: int | None
    normalize: bool
    C: float
    direction_C: float = 1.0  # noqa: N815 - as the parameter is called

    @property
    def codes(self) -> Candidate:
        """What the codes depend on."""
        return self.n_components, self.lam, self.map_iter, self.direction_C

    @property
    def svm(self) -> tuple[bool, float]:
        """The SVM on them: normalize and C."""
        return self.normalize, self.C

    @classmethod
    def of(cls, codes: Candidate, svm: tuple[bool, float]) -> Setting:
        """Return codes with an SVM on them."""
        return cls(*codes[:3], *svm, codes[3])


DEFAULT = Setting(n_components=32, lam=DEFAULT_LAM, map_iter=40, normalize=True, C=2.0)


def default_for(labels: Labels) -> Setting:
    """Return the setting that is taken unless another is clearly better."""
    return DEFAULT._replace(lam=0.3) if labels.multilabel else DEFAULT


class CandidateGrid(NamedTuple):
    """Candidates for each parameter; a single entry fixes it."""

    n_components: tuple[int, ...] = (DEFAULT.n_components,)
    lam: tuple[float, ...] = LAM_GRID
    map_iter: tuple[int | None, ...] = MAP_GRID
    normalize: tuple[bool, ...] = NORMALIZE_GRID
    C: tuple[float, ...] = C_GRID
    direction_C: tuple[float, ...] = (DEFAULT.direction_C,)  # noqa: N815

    def fallback(self, default: Setting = DEFAULT) -> Setting:
        """Return the candidates nearest the defaults."""
        pairs: Any = zip(self, default, strict=True)
        values: list[Any] = [min(g, key=partial(ratio, default=d)) for g, d in pairs]
        return Setting(*values)


def ratio(value: Any, default: Any) -> float:
    """Return how far a value of a parameter is from another: the logarithm of their ratio.

    A map to the optimum is as one of very many updates.
    """
    sizes = [(1000.0 if each is None else float(each)) + 1e-3 for each in (value, default)]
    return float(abs(np.log(sizes[0] / sizes[1])))


def usual_ranks(labels: Labels, shape: tuple[int, int]) -> tuple[int, ...]:
    """Return the numbers of parts to try: the classes' number (8 at least), its double, ...

    Up to 128, or twice the classes, and up to half the samples or columns where that is more than
    the first number. With few labels not many more than these: they could not tell the difference.
    """
    base = max(8, len(labels.classes))
    few_labels = max(2 * int(labels.labeled.sum()), base)
    most = min(max(128, 2 * base), max(min(shape) // 2, 1), few_labels)
    ranks = tuple(base * 2**k for k in range(5) if base * 2**k <= most)
    return ranks or (min(base, *shape),)


@dataclass(frozen=True)
class Comparison:
    """How candidates are compared; `NMFAlphaClassifier` says what the fields mean.

    ``n_splits`` is the number of folds: by default five, or three when there are many labels.
    """

    scoring: str | None = None
    thresholds: str | None = "auto"
    rehearse: bool = True
    n_splits: int | None = None

    def __post_init__(self) -> None:
        check_scoring(self.scoring)
        if self.thresholds is not None:
            check_option(self.thresholds, "thresholds", ("auto",))
        if self.n_splits is not None:
            check_count(self.n_splits, "cv", least=2)


class HeldOut(NamedTuple):
    """Decision values (m, p) of labeled rows (m,) whose labels were hidden."""

    rows: NDArray[np.intp]
    values: Array


class Choice(NamedTuple):
    """What was chosen, and how.

    ``scores`` has a list for each candidate, with an entry a fold: fewer for those that were
    dropped on the way. ``held_out`` has the best candidate's decision values of hidden labels.
    ``honest_scores`` has the score in each fold of what would be chosen without it. ``folds`` has
    the rows of each fold, for others who want to be scored on them; model files leave it out.
    """

    best: Setting
    scores: dict[Setting, list[float]]
    held_out: HeldOut | None = None
    honest_scores: list[float] = []  # noqa: RUF012 - never written to
    folds: list[FoldRows] = []  # noqa: RUF012 - never written to

    @property
    def score(self) -> float:
        """The best candidate's mean score; NaN when nothing was tried."""
        return float(np.mean(self.scores.get(self.best, [float("nan")])))

    @property
    def error(self) -> float:
        """The standard error of that mean; NaN when it cannot be told."""
        return standard_error(self.scores.get(self.best, []))

    @property
    def honest_score(self) -> float:
        """What a model made in this way is worth: the mean of the honest scores.

        A candidate's score on the samples by which it was chosen is too high. Here every fold was
        left out of the choice, thresholds included, and then scored.
        """
        return float(np.mean(self.honest_scores)) if self.honest_scores else self.score

    @property
    def honest_error(self) -> float:
        """The standard error of that mean; NaN when it cannot be told."""
        return standard_error(self.honest_scores) if self.honest_scores else self.error

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
        share = (self.honest_score * n_labeled + 2) / (n_labeled + 4)
        chance = np.sqrt(share * (1 - share) / (n_labeled + 4))
        error = float(np.fmax(self.honest_error, chance))
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

    As good as the best are those within one standard error of it.
    """
    means = {setting: float(np.mean(values)) for setting, values in scores.items()}
    top = max(means, key=lambda setting: means[setting])
    spread = float(np.nan_to_num(standard_error(scores[top])))
    good = [setting for setting in means if means[setting] >= means[top] - spread]

    def distance(setting: Setting) -> float:
        return sum(min(ratio(a, b), 10.0) for a, b in zip(setting, default, strict=True))

    return min(good, key=lambda setting: (distance(setting), -means[setting]))


def honest_scores(
    folds: list[Fold],
    pick: Callable[[list[int]], Setting],
    values: Callable[[Setting, int], Array],
    *,
    thresholds: bool = True,
    trust: float = 1.0,
) -> list[float]:
    """Return the score in each fold of what would be chosen on the others; none for one fold.

    ``pick`` chooses a setting on some folds, given by their numbers; ``values`` returns what a
    setting says of the hidden labels of a fold: decision values (hidden, p). With ``thresholds``
    these are chosen as well, where samples have several labels, and taken at the share ``trust``.
    """
    found = []
    for k, fold in enumerate(folds if len(folds) > 1 else []):
        others = [i for i in range(len(folds)) if i != k]
        setting = pick(others)
        said = values(setting, k)
        if thresholds and fold.labels.multilabel:
            seen = np.concatenate([values(setting, i) for i in others])
            truth = fold.labels.take(np.concatenate([folds[i].hidden for i in others]))
            said = said - trust * choose_thresholds(seen, truth, fold.scoring)
        found.append(fold.quality(said))
    return found
