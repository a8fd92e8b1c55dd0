"""A race of candidates over folds: the clearly worse are dropped on the way."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import product

import numpy as np

from marginparts._types import Array, Callback, Progress
from marginparts.checkpoint import Logbook, Notes
from marginparts.folds import Fold
from marginparts.selection._choice import Choice, HeldOut, best_of
from marginparts.selection._notes import Candidate, Standing, read_standing, standing_notes
from marginparts.selection._settings import Grid, Setting

#: Standard errors by which a candidate must be behind the best to be dropped.
_CLEARLY = 2.0


class Race:
    """The candidates still running, their codes in each fold, and their scores."""

    def __init__(
        self,
        grid: Grid,
        folds: list[Fold],
        callback: Callback | None,
        default: Setting,
        logbook: Logbook,
    ) -> None:
        self.grid, self.folds, self.callback, self.default = grid, folds, callback, default
        self.svm = grid.fallback(default)[3:]
        candidates = list(product(grid.n_components, grid.lam, grid.map_iter))
        self.running = set(candidates)
        self.codes: dict[Candidate, list[Array]] = {c: [] for c in candidates}
        self.scores: dict[Setting, list[float]] = {Setting(*c, *self.svm): [] for c in candidates}
        self.trials_done = 0
        self.trials = len(folds) * len(grid.n_components)
        self.number, self.done = 0, list[int]()  # the fold, and the ranks done in it
        self.logbook = logbook
        self.stopped = False
        self.began = time.perf_counter()
        if (notes := logbook.recall("race")) is not None:
            self._take_up(read_standing(notes))

    @property
    def ranks(self) -> list[int]:
        return sorted({rank for rank, _, _ in self.running})

    @property
    def ranks_left(self) -> list[int]:
        return [rank for rank in self.ranks if rank not in self.done]

    def folds_left(self) -> Iterator[Fold]:
        """Yield the fold under way, and those after it."""
        while self.number < len(self.folds):
            yield self.folds[self.number]
            self.number, self.done = self.number + 1, []

    def notes(self) -> Notes:
        """Return where the race is after the last whole trial."""
        whole = {c: self.number + (c[0] in self.done) for c in self._own_scores()}
        return standing_notes(
            Standing(
                self.trials_done, self.number, self.done, self.running,
                {c: values[: whole[c]] for c, values in self._own_scores().items()},
                {c: codes[: whole[c]] for c, codes in self.codes.items()},
            )
        )  # fmt: skip

    def _take_up(self, standing: Standing) -> None:
        """Go on from where a race was."""
        self.trials_done, self.number, self.done = standing[:3]
        self.running, self.codes = standing.running, standing.codes
        self.scores = {Setting(*c, *self.svm): s for c, s in standing.scores.items()}

    def _own_scores(self) -> dict[Candidate, list[float]]:
        """Return the scores by candidate, with the default SVM."""
        return {s[:3]: values for s, values in self.scores.items()}

    def lams(self, rank: int) -> list[float]:
        return sorted({lam for r, lam, _ in self.running if r == rank})

    def watch(self, progress: Progress) -> bool:
        """Pass on how a factorization fares; end it when the caller has had enough."""
        if self.callback is not None:
            told = Progress(
                self.trials_done, self.trials, progress.loss,
                time.perf_counter() - self.began, progress.residual, "choosing",
            )  # fmt: skip
            self.stopped = bool(self.callback(told)) or self.stopped
        self.stopped = self.stopped or self.logbook.interrupted
        return self.stopped

    def enter(self, fold: Fold, rank: int, lam: float, codes: dict[int, Array]) -> None:
        """Score the running candidates of one factorization."""
        for map_iter, Z in codes.items():
            candidate = (rank, lam, map_iter)
            if candidate in self.running:
                self.codes[candidate].append(Z)
                normalize, C = self.svm
                score = fold.score(Z, C, normalize=normalize)
                self.scores[Setting(*candidate, *self.svm)].append(score)

    def end_trial(self, rank: int) -> None:
        """Count a factorization path as done."""
        self.trials_done += 1
        self.done.append(rank)

    def drop_the_hopeless(self) -> None:
        """Drop candidates that are behind the best in every fold, and clearly so on average.

        Two candidates are scored on the same samples, so the error of a single score is a cautious
        bound for that of their difference.
        """
        scores = {c: self.scores[Setting(*c, *self.svm)] for c in self.codes}
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

    def _comparable(self, scores: dict[Setting, list[float]]) -> dict[Setting, list[float]]:
        """Return the scores of the candidates still running, over folds that all have finished.

        In a fold that was cut short, the small ranks are ahead of the others by a score.
        """
        running = {s: values for s, values in scores.items() if s[:3] in self.running}
        done = min(len(self.scores[Setting(*c, *self.svm)]) for c in self.running)
        return {s: values[:done] for s, values in running.items()} if done else running

    def finish(self) -> Choice:
        """Choose the codes, then the SVM on them."""
        scores = {setting: values for setting, values in self.scores.items() if values}
        if not scores:
            return Choice(self.grid.fallback(self.default), {})
        whole = self._comparable(scores)
        top = max(whole, key=lambda s: float(np.mean(whole[s])))
        at_rank = {s: v for s, v in whole.items() if s.n_components == top.n_components}
        codes = best_of(at_rank, self.default)[:3]
        Zs = self.codes[codes]
        pairs = list(zip(self.folds, Zs, strict=False))  # a race may be cut short
        for normalize, C in product(self.grid.normalize, self.grid.C):
            setting = Setting(*codes, normalize, C)
            if setting not in scores:
                scores[setting] = [fold.score(Z, C, normalize=normalize) for fold, Z in pairs]
        on_codes = {s: values for s, values in scores.items() if s[:3] == codes}
        best = best_of(on_codes, self.default)
        values = [fold.values(Z, best.C, normalize=best.normalize) for fold, Z in pairs]
        hidden = [fold.hidden for fold, _ in pairs]
        return Choice(best, scores, HeldOut(np.concatenate(hidden), np.concatenate(values)))
