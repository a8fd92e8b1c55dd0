"""Choosing the rank, lam, C and the map on the labeled samples.

The labeled samples are cut into folds; the labels of one fold at a time are hidden and predicted.
What is scored is the model that a fit makes with the candidate's settings and the labels left: the
parts come from the same `Recipe`, afresh for each rank and lam. One factorization serves every map
and every SVM: first the codes are chosen (rank, lam and map) with the default SVM, then the SVM on
them.

It is a race: after each fold from the second on, codes that are clearly worse than the best are
dropped, and no factorization is made for their sake any more.
"""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache, partial
from itertools import product

import numpy as np
import scipy.sparse as sp

from marginparts._types import Array, Callback, Data, Progress
from marginparts.checkpoint import Logbook
from marginparts.directions import DirectionSpec, find_directions
from marginparts.labels import Labels
from marginparts.recipe import Recipe
from marginparts.rows.base import OutOfCore
from marginparts.selection._choice import (
    Candidate,
    CandidateGrid,
    Choice,
    Comparison,
    HeldOut,
    Setting,
    best_of,
    default_for,
    honest_scores,
)
from marginparts.selection._notes import Standing, kept_choice
from marginparts.selection.folds import Fold, enough_labels, enough_rows, folds_of

logger = logging.getLogger("marginparts")

#: Standard errors by which a candidate must be behind the best to be dropped.
_CLEARLY = 2.0


def choose(
    X: Data | OutOfCore,
    labels: Labels,
    grid: CandidateGrid,
    recipe: Recipe,
    comparison: Comparison,
    seed: int = 0,
    *,
    callback: Callback | None = None,
    logbook: Logbook | None = None,
) -> Choice:
    """Choose the rank, lam, the map and the SVM by cross-validation over the labeled samples.

    The rank with the best codes wins. At that rank, among candidates that cannot be told from the
    best (one standard error), the one nearest the defaults does: with few labels the best score is
    mostly chance.

    Parameters
    ----------
    X : (n, d) trusted data
    labels : Labels
    grid : CandidateGrid
    recipe : Recipe
        How a model is made; the candidates stand in for its mapping updates and costs.
    comparison : Comparison
    seed : int
        As for the fit.
    callback : callable or None
        Called with a `Progress`; a true answer ends the trials, and the best so far is taken.
    logbook : Logbook or None
        Keeps the trials that are done, so that they are not done again.
    """
    default = default_for(labels)
    if not comparison.rehearse and all(len(candidates) == 1 for candidates in grid):
        return Choice(grid.fallback(default), {})
    labels = enough_labels(labels, seed)
    folds = folds_of(
        labels, seed, comparison.n_splits, class_weight=recipe.head.class_weight,
        scoring=comparison.scoring,
    )  # fmt: skip
    if not folds:
        logger.info("too few labels to choose on; taking %s", grid.fallback(default))
        return Choice(grid.fallback(default), {})
    race = Race(grid, folds, callback, default, thresholds=comparison.thresholds is not None)
    run = partial(_run, race, X, labels, recipe, seed)
    if logbook is not None:
        return kept_choice(race, run, logbook)
    run()
    return race.finish()


def _run(
    race: Race,
    X: Data | OutOfCore,
    labels: Labels,
    recipe: Recipe,
    seed: int,
    ends: Callable[[], bool] = lambda: False,
) -> bool:
    """Run a race, a trial for each fold and rank; say whether it came to its end.

    ``ends`` is asked after each trial.
    """
    whole = not isinstance(recipe.run.init, str)  # a start that was given is one for all rows
    rows = np.arange(X.shape[0]) if whole else enough_rows(labels, seed)
    X_few, labeled = X[rows], X[np.flatnonzero(labels.labeled)]
    for fold in race.folds_left():
        left = fold.left.take(rows)
        margins = _margins(X_few, left, recipe.directions, seed)
        for rank in race.ranks_left:
            for cost in race.costs(rank):
                found = recipe.parts(
                    X_few, left, margins(cost), rank, race.lams(rank, cost), seed,
                    weights=left.weights, callback=race.watch,
                )  # fmt: skip
                for lam, result in found:
                    if race.stopped:
                        return False
                    codes = recipe.codes(labeled, result, race.grid.map_iter)
                    race.enter(fold, rank, lam, cost, codes)
            race.end_trial(rank)
            if ends():
                return False
        race.drop_the_hopeless()
    return True


def _margins(
    X: Data, labels: Labels, spec: DirectionSpec, seed: int
) -> Callable[[float], sp.csr_array]:
    """Return a function that finds S for a cost of the SVMs behind it, once for each."""

    @cache
    def found(cost: float) -> sp.csr_array:
        with warnings.catch_warnings():
            # that all labels of a class are hidden needs no warning
            warnings.simplefilter("ignore", UserWarning)
            return find_directions(X, labels, replace(spec, C=cost), seed).S

    return found


class Race:
    """The candidates still running, their codes in each fold, and their scores."""

    def __init__(
        self,
        grid: CandidateGrid,
        folds: list[Fold],
        callback: Callback | None,
        default: Setting,
        *,
        thresholds: bool = True,
    ) -> None:
        self.grid, self.folds, self.callback, self.default = grid, folds, callback, default
        self.thresholds = thresholds
        self.svm = grid.fallback(default).svm
        candidates = list(product(grid.n_components, grid.lam, grid.map_iter, grid.direction_C))
        self.running = set(candidates)
        self.codes: dict[Candidate, list[Array]] = {c: [] for c in candidates}
        self.scores: dict[Setting, list[float]] = {Setting.of(c, self.svm): [] for c in candidates}
        self._said: dict[tuple[Setting, int], Array] = {}
        self.trials_done = 0
        self.trials = len(folds) * len(grid.n_components)
        self.number, self.done = 0, list[int]()  # the fold, and the ranks done in it
        self.interrupted: Callable[[], bool] = lambda: False
        self.stopped = False
        self.began = time.perf_counter()

    @property
    def ranks(self) -> list[int]:
        return sorted({candidate[0] for candidate in self.running})

    @property
    def ranks_left(self) -> list[int]:
        return [rank for rank in self.ranks if rank not in self.done]

    def folds_left(self) -> Iterator[Fold]:
        """Yield the fold under way, and those after it."""
        while self.number < len(self.folds):
            yield self.folds[self.number]
            self.number, self.done = self.number + 1, []

    def standing(self) -> Standing:
        """Return where the race is after the last whole trial."""
        whole = {c: self.number + (c[0] in self.done) for c in self._own_scores()}
        return Standing(
            self.trials_done, self.number, self.done, self.running,
            {c: values[: whole[c]] for c, values in self._own_scores().items()},
            {c: codes[: whole[c]] for c, codes in self.codes.items()},
        )  # fmt: skip

    def resume(self, standing: Standing) -> None:
        """Go on from where a race was."""
        self.trials_done, self.number, self.done = standing[:3]
        self.running, self.codes = standing.running, standing.codes
        self.scores = {Setting.of(c, self.svm): s for c, s in standing.scores.items()}

    def _own_scores(self) -> dict[Candidate, list[float]]:
        """Return the scores by candidate, with the default SVM."""
        return {s.codes: values for s, values in self.scores.items()}

    def costs(self, rank: int) -> list[float]:
        """Return the costs behind the directions that are still of interest at a rank."""
        return sorted({cost for r, _, _, cost in self.running if r == rank})

    def lams(self, rank: int, cost: float) -> list[float]:
        """Return the weights that are still of interest with these directions."""
        return sorted({lam for r, lam, _, c in self.running if (r, c) == (rank, cost)})

    def watch(self, progress: Progress) -> bool:
        """Tell the callback how a factorization goes; end it when that asks for it."""
        if self.callback is not None:
            told = Progress(
                self.trials_done, self.trials, progress.loss,
                time.perf_counter() - self.began, progress.residual, "choosing",
            )  # fmt: skip
            self.stopped = bool(self.callback(told)) or self.stopped
        self.stopped = self.stopped or self.interrupted()
        return self.stopped

    def enter(
        self, fold: Fold, rank: int, lam: float, cost: float, codes: dict[int | None, Array]
    ) -> None:
        """Score the running candidates of one factorization."""
        for map_iter, Z in codes.items():
            candidate = (rank, lam, map_iter, cost)
            if candidate in self.running:
                self.codes[candidate].append(Z)
                normalize, C = self.svm
                score = fold.score(Z, C, normalize=normalize)
                self.scores[Setting.of(candidate, self.svm)].append(score)

    def end_trial(self, rank: int) -> None:
        """Count a factorization path as done."""
        self.trials_done += 1
        self.done.append(rank)

    def drop_the_hopeless(self) -> None:
        """Drop candidates that are behind the best in every fold, and clearly so on average.

        Two candidates are scored on the same samples, so the error of a single score is a cautious
        bound for that of their difference.
        """
        scores = {c: self.scores[Setting.of(c, self.svm)] for c in self.codes}
        done = max(map(len, scores.values()))
        if done < 2:
            return
        top = max(scores, key=lambda c: float(np.mean(scores[c])))
        best, mean = scores[top], float(np.mean(scores[top]))
        seen = sum(len(fold.hidden) for fold in self.folds[:done])
        clearly = _CLEARLY * np.sqrt(max(mean * (1 - mean), 0.01) / seen)
        for candidate, own in scores.items():  # self.codes shrinks with the field
            if mean - np.mean(own) > clearly and np.all(np.array(own) < best):
                self.running.discard(candidate)
                self.codes.pop(candidate)

    def finish(self) -> Choice:
        """Choose the codes, then the SVM on them; and estimate the score of such a choice."""
        scores = {setting: values for setting, values in self.scores.items() if values}
        if not scores:
            return Choice(self.grid.fallback(self.default), {})
        # in a fold that was cut short, the small ranks are ahead of the others by a score
        whole = max(1, min(len(self.codes[c]) for c in self.running))
        best = self._pick(range(whole))
        seen = self.folds[: len(self.codes[best.codes])]
        for svm in product(self.grid.normalize, self.grid.C):
            setting = Setting.of(best.codes, svm)
            scores[setting] = self._scores(setting, range(len(seen)))
        held_out = HeldOut(
            np.concatenate([fold.hidden for fold in seen]),
            np.concatenate([self._values(best, k) for k in range(len(seen))]),
        )
        honest = honest_scores(
            self.folds[:whole], self._pick, self._values, thresholds=self.thresholds
        )
        return Choice(best, scores, held_out, honest, [fold.rows for fold in seen])

    def _pick(self, folds: Iterable[int]) -> Setting:
        """Choose on some folds: the best rank, then its codes, then the SVM on them."""
        scores = {}
        for setting in self.scores:
            if setting.codes in self.running and self.codes[setting.codes]:
                scores[setting] = self._scores(setting, folds)
        top = max(scores, key=lambda s: float(np.mean(scores[s])))
        at_rank = {s: v for s, v in scores.items() if s.n_components == top.n_components}
        codes = best_of(at_rank, self.default).codes
        on_codes = {}
        for svm in product(self.grid.normalize, self.grid.C):
            setting = Setting.of(codes, svm)
            on_codes[setting] = self._scores(setting, folds)
        return best_of(on_codes, self.default)

    def _values(self, setting: Setting, k: int) -> Array:
        """Return the decision values of a setting for the hidden labels of a fold."""
        if (setting, k) not in self._said:
            Z, fold = self.codes[setting.codes][k], self.folds[k]
            self._said[setting, k] = fold.values(Z, setting.C, normalize=setting.normalize)
        return self._said[setting, k]

    def _scores(self, setting: Setting, folds: Iterable[int]) -> list[float]:
        """Return how good that is in some folds."""
        known, found = self.scores.get(setting, []), []
        for k in folds:
            scored = k < len(known)
            found.append(known[k] if scored else self.folds[k].quality(self._values(setting, k)))
        return found
