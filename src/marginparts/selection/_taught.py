"""Choosing, and judging what is chosen, where teachers label what is unlabeled.

With few labels there is little to choose by: what is left open takes one value that is good on
average, and a single candidate is tried. Some hundreds of labels can tell what the last SVM should
cost. Hidden labels also say what the model is worth, and give thresholds and probabilities.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginparts._types import Array, Callback, Data, Progress
from marginparts.directions import Directions, Whole, find_directions, total_mass
from marginparts.labels import UNKNOWN, Labels
from marginparts.recipe import Recipe, blocks_of
from marginparts.rows.base import OutOfCore
from marginparts.seeds import Seeds
from marginparts.selection._choice import (
    CandidateGrid,
    Choice,
    Comparison,
    HeldOut,
    Setting,
    best_of,
)
from marginparts.selection._choice import honest_scores as honest_scores_of
from marginparts.selection.folds import Fold, enough_labels, enough_rows, folds_of, renumbered
from marginparts.solve.start import thread_pools
from marginparts.svm.class_weights import ClassWeight
from marginparts.svm.head import Head, Heads
from marginparts.teaching import (
    Lesson,
    hints_of,
    joint_views,
    lessons_of,
    lessons_of_several,
    views_of,
)
from marginparts.weighting import usual_weights

#: What is taken where nothing is said: good on average over the development collections.
TAUGHT_DEFAULT = Setting(n_components=64, lam=10.0, map_iter=40, normalize=True, C=4.0)

#: The same for dense data, whose samples need more of the parts.
_DENSE_DEFAULT = TAUGHT_DEFAULT._replace(lam=3.0)

#: Where two folds hide as many labels as this, they tell enough; and the costs of the last SVM and
#: of those behind the directions that are then worth a trial.
_TELLING, _COSTS, _DIRECTION_COSTS = 500, (1 / 16, 0.25, 1.0, 4.0, 16.0), (0.25, 1.0)

#: So many samples for each part are enough to begin with means of them.
_SAMPLES_A_PART = 12

#: Candidates differ on few samples, so the error of a difference is about this share of a score's.
_PAIRED = 0.5

#: Of thresholds that are chosen on few hidden labels, this share is taken: 0 is where the teachers
#: cut, and the mean of two guesses is better than either.
_TRUST = 0.5


@dataclass(frozen=True)
class Classroom:
    """The rows that teachers see (all labeled ones and enough others), and what they say of them.

    Attributes
    ----------
    rows : (m,) int array
        Which rows of the data these are.
    X : (m, d) array or CSR array
    weights : (d,) array or None
        Of the columns.
    inputs : (m, d) CSR array
        The rows as SVMs on the inputs see them (`Views`); the other views are large, and only the
        teachers need them.
    sparse : bool
        Whether the rows have few entries, as texts do.
    folds : list of Fold
        Over the m rows.
    lesson : Lesson
        With all labels.
    without : list of Lesson
        Without those of each fold.
    signs : bool
        Whether there are columns of either sign.
    in_memory : bool
        Whether all rows of the data are.
    """

    rows: NDArray[np.intp]
    X: Data
    weights: Array | None
    inputs: sp.csr_array
    sparse: bool
    folds: list[Fold]
    lesson: Lesson
    without: list[Lesson]
    signs: bool = False
    in_memory: bool = True

    @classmethod
    def of(
        cls, X: Data | OutOfCore, labels: Labels, recipe: Recipe, comparison: Comparison, seed: int,
        seeds: Seeds | None = None,
    ) -> Classroom:  # fmt: skip
        """Let the teachers learn; each is judged on labels that were hidden from it."""
        whole = not isinstance(recipe.run.init, str)  # a start that was given is one for all rows
        rows = np.arange(X.shape[0]) if whole else enough_rows(labels, seed)
        while isinstance(X, OutOfCore) and not X.fits(rows) and not labels.labeled[rows].all():
            # under a tight memory limit teachers see fewer of the unlabeled ones
            rows = enough_rows(labels, seed, int((~labels.labeled[rows]).sum()) // 2)
        few, known = X[rows], labels.take(rows)
        blocks, signs = blocks_of(few, recipe.embedded), bool(recipe.embedded)
        weights = None if signs and len(blocks) == 1 else usual_weights(blocks[0])
        folds = folds_of(
            enough_labels(known, seed), seed, comparison.n_splits,
            class_weight=recipe.head.class_weight, scoring=comparison.scoring,
        )  # fmt: skip
        if _tell(folds):
            folds = folds[:2]
        latent = not known.complete.all()
        views = views_of(blocks[0], weights, seed, latent=latent)
        if len(blocks) > 1:
            views = joint_views(views, views_of(blocks[1], None, seed, latent=latent), seed)
        hidden = [fold.hidden for fold in folds]
        if known.multilabel:
            said = None if seeds is None else seeds.values(views.inputs, labels.classes)
            lesson, without = lessons_of_several(views, known, hidden, said)
        else:
            hints = None
            if seeds is not None:
                hints = hints_of(few, views, weights, seeds, labels.classes, seed)
            lesson, without = lessons_of(views, known, hidden, hints)
        in_memory = not isinstance(X, OutOfCore)
        return cls(
            rows, few, weights, views.inputs, views.sparse, folds, lesson, without, signs, in_memory
        )

    def blocks(self, recipe: Recipe) -> list[Any]:
        """Return the columns without and with signs."""
        return blocks_of(self.X, recipe.embedded)

    @property
    def default(self) -> Setting:
        """What is taken for these rows where nothing is said."""
        return TAUGHT_DEFAULT if self.sparse or self.signs else _DENSE_DEFAULT

    @property
    def trust(self) -> float:
        """How much of a threshold is taken that was chosen on hidden labels."""
        return 1.0 if _tell(self.folds) else _TRUST

    def left_open(self, given: Collection[str], grid: CandidateGrid) -> CandidateGrid:
        """Return the candidates with those that suit these rows for what was not given."""
        if "lam" not in given:
            grid = grid._replace(lam=(self.default.lam,))
        if "C" not in given and _tell(self.folds):
            grid = grid._replace(C=_COSTS)
        if "direction_C" not in given and _tell(self.folds):
            grid = grid._replace(direction_C=_DIRECTION_COSTS)
        return grid

    def start(self, lesson: Lesson, rank: int, n: int | None = None) -> Labels | None:
        """Return the labels that the parts begin with, of these rows or of all n; None for none.

        Dense samples are near to the means of some samples of their class, and parts that begin
        there end better, where there are samples enough for means, all of them in memory. Texts are
        mixtures of parts that classes share.
        """
        if self.sparse or self.signs or not self.in_memory:
            return None
        if len(self.rows) < _SAMPLES_A_PART * rank:
            return None
        if n is None or n == len(self.rows):
            return lesson.labels
        codes = np.full((n, *lesson.labels.codes.shape[1:]), UNKNOWN)
        codes[self.rows] = lesson.labels.codes
        return Labels(lesson.labels.classes, codes)

    def directions(
        self, lesson: Lesson, recipe: Recipe, seed: int, whole: Whole | None = None
    ) -> Directions:
        """Return the margin components of SVMs that learn from a lesson, over these rows.

        Where columns with signs stand beside others, each of the two has its own.
        """
        X, *beside = self.blocks(recipe)
        return find_directions(
            X, lesson.labels, recipe.directions, seed,
            features=self.inputs, whole=whole, weights=lesson.weights,
            by_mass=lesson.labels.multilabel, beside=beside[0] if beside else None,
        )  # fmt: skip

    def all_directions(
        self, X: Data | OutOfCore, recipe: Recipe, seed: int, counts: Array | None = None
    ) -> Directions:
        """Return those of the lesson with all labels, for all rows, which count so much each."""
        # rows of the inputs have length 1
        few = len(self.rows) < X.shape[0]
        whole = None
        if few:
            mass, *beside = (total_mass(each, counts) for each in blocks_of(X, recipe.embedded))
            whole = Whole(mass, 1.0, *beside)
        found = self.directions(self.lesson, recipe, seed, whole)
        return found.spread_over(self.rows, X.shape[0])

    def heads(
        self, Z: Array, lesson: Lesson, costs: Iterable[float], *, normalize: bool,
        class_weight: ClassWeight,
    ) -> list[Head]:  # fmt: skip
        """Train the last SVM on the codes (m, r) of these rows, once for each cost."""
        with thread_pools().limit(limits=1, user_api="blas"):  # for many small systems
            heads = Heads(
                Z, lesson.labels, normalize=normalize, class_weight=class_weight,
                weights=lesson.weights, center=True,
            )  # fmt: skip
            return [heads.at(C) for C in costs]


def _tell(folds: list[Fold]) -> bool:
    """Whether two of the folds hide labels enough to tell settings apart."""
    return sum(len(fold.hidden) for fold in folds[:2]) >= _TELLING


def choose_taught(
    classroom: Classroom,
    grid: CandidateGrid,
    recipe: Recipe,
    comparison: Comparison,
    seed: int,
    callback: Callback | None = None,
) -> Choice:
    """Choose among candidates on hidden labels; with a single one, say what it is worth.

    The callback is called with a `Progress`; a true answer ends the trials, and what was tried
    until then decides.
    """
    fallback = grid.fallback(classroom.default)
    alone = all(len(candidates) == 1 for candidates in grid)
    if not classroom.folds or (alone and not comparison.rehearse):
        return Choice(fallback, {})
    trials = _Trials(len(classroom.folds), callback)
    said: dict[Setting, list[Array]] = {}
    for fold, lesson in zip(classroom.folds, classroom.without, strict=True):
        found = list(_answers(classroom, fold, lesson, grid, recipe, seed, trials))
        if trials.stopped:
            break
        for setting, values in found:
            said.setdefault(setting, []).append(values)
        trials.done += 1
        if len(grid.direction_C) > 1 and _tell(classroom.folds):
            grid = grid._replace(direction_C=(_direction_cost(said, fold),))
    if not said:
        return Choice(fallback, {})
    folds = classroom.folds[: trials.done]
    scores = {  # those that were dropped on the way have fewer
        setting: [fold.quality(values) for fold, values in zip(folds, own, strict=False)]
        for setting, own in said.items()
    }
    whole = {setting: own for setting, own in scores.items() if len(own) == len(folds)}

    def pick(some: Iterable[int]) -> Setting:
        """Choose on some folds: the best rank, and what is simplest or usual at that rank."""
        some = list(some)
        seen = {setting: [own[k] for k in some] for setting, own in whole.items()}
        top = max(seen, key=lambda setting: float(np.mean(seen[setting])))
        at_rank = {s: own for s, own in seen.items() if s.n_components == top.n_components}
        if _tell(classroom.folds):
            return _simplest_of(at_rank, sum(len(folds[k].hidden) for k in some))
        return best_of(at_rank, classroom.default)

    best = pick(range(len(folds)))
    honest = honest_scores_of(
        folds, pick, lambda setting, k: said[setting][k],
        thresholds=comparison.thresholds is not None, trust=classroom.trust,
    )  # fmt: skip
    rows = renumbered([fold.rows for fold in folds], classroom.rows)
    held_out = HeldOut(np.concatenate([hidden for _, hidden in rows]), np.concatenate(said[best]))
    return Choice(best, scores, held_out, honest, rows)


def _answers(
    classroom: Classroom,
    fold: Fold,
    lesson: Lesson,
    grid: CandidateGrid,
    recipe: Recipe,
    seed: int,
    trials: _Trials,
) -> Iterable[tuple[Setting, Array]]:
    """Yield what each candidate says of the hidden labels of a fold: decision values."""
    for cost, rank in product(grid.direction_C, grid.n_components):
        aimed = replace(recipe, directions=replace(recipe.directions, C=cost))
        margins = classroom.directions(lesson, aimed, seed)
        found = recipe.parts(
            classroom.X, classroom.start(lesson, rank), margins.S, rank, grid.lam, seed,
            weights=lesson.labels.weights, callback=trials.watch,
            S_beside=None if margins.beside is None else margins.beside.S,
        )  # fmt: skip
        for lam, result in found:
            if trials.stopped:
                return
            codes = recipe.codes(classroom.X, result, grid.map_iter, classroom.weights)
            for (map_iter, Z), normalize in product(codes.items(), grid.normalize):
                heads = classroom.heads(
                    Z, lesson, grid.C, normalize=normalize, class_weight=recipe.head.class_weight
                )
                for C, head in zip(grid.C, heads, strict=True):
                    setting = Setting(rank, lam, map_iter, normalize, C, cost)
                    yield setting, head.values(Z[fold.hidden])


def _direction_cost(said: dict[Setting, list[Array]], fold: Fold) -> float:
    """Choose the cost of the SVMs behind the directions by what was said of the first fold.

    Each cost takes parts of its own, so the folds that follow try the chosen one alone.
    """
    scores = {setting: [fold.quality(own[0])] for setting, own in said.items()}
    return _simplest_of(scores, len(fold.hidden)).direction_C


def _simplest_of(scores: dict[Setting, list[float]], hidden: int) -> Setting:
    """Return the candidate with the smallest costs among those as good as the best.

    As good is what so many hidden samples cannot tell from the best. Where samples to come differ
    from those that are labeled, what is simpler is safer.
    """
    means = {setting: float(np.mean(own)) for setting, own in scores.items()}
    top = max(means.values())
    error = _PAIRED * np.sqrt(max(top * (1 - top), 0.0) / max(hidden, 1))
    good = [setting for setting, mean in means.items() if mean >= top - error]
    return min(good, key=lambda setting: (setting.C * setting.direction_C, -means[setting]))


class _Trials:
    """How many folds are done, and whether the caller has had enough."""

    def __init__(self, total: int, callback: Callback | None) -> None:
        self.total, self.done, self.stopped = total, 0, False
        self._callback = callback

    def watch(self, progress: Progress) -> Any:
        """Tell the callback how a factorization goes."""
        if self._callback is not None:
            told = progress._replace(iteration=self.done, max_iter=self.total, stage="choosing")
            self.stopped = bool(self._callback(told)) or self.stopped
        return self.stopped
