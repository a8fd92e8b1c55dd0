"""Choosing the rank, lam, C and the map on the labeled samples.

The labeled samples are cut into folds; the labels of one fold at a time are hidden and predicted.
The factorizations of one fold and rank run down along lam, each from where the last one ended, and
one factorization serves every map and every SVM. First the codes are chosen (rank, lam and map)
with the default SVM, then the SVM on them, so that a grid costs little more than a few fits.

It is a race: after each fold from the second on, codes that are clearly worse than the best are
dropped, and no factorization is made for their sake any more.
"""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from marginparts._race_notes import Candidate, Standing, choice_notes, read_standing, standing_notes
from marginparts._types import Array, Callback, Progress
from marginparts.backends import Backend
from marginparts.checkpoint import Logbook, Notes
from marginparts.directions import Source, find_directions
from marginparts.factorization import factorize_path, map_rows_each, parts_of, start_from
from marginparts.folds import Fold, enough_labels, folds_of
from marginparts.geometry import gram_root
from marginparts.labels import Labels

logger = logging.getLogger("marginparts")

#: What is tried for each parameter left to choose.
LAM_GRID = (0.3, 1.0, 3.0, 10.0)
#: Where samples have several labels, many are rare, and the components of rare labels are noisy.
LAM_GRID_SEVERAL = (0.1, 0.3, 1.0, 3.0)
MAP_GRID = (5, 15, 40, 100)
NORMALIZE_GRID = (True, False)
C_GRID = (0.1, 0.5, 2.0, 10.0)

#: A factorization that only ranks candidates need not be finished: the most iterations of the
#: first along lam, and of those that go on from it.
_MAX_ITER, _WARM_ITER, _TOL = 60, 20, 1e-3

#: Nor need it see all unlabeled rows: parts change little beyond this number.
_ENOUGH_ROWS = 20_000

#: Standard errors by which a candidate must be behind the best to be dropped.
_CLEARLY = 2.0

#: Labeled samples and standard error (of a score between 0 and 1) at which a score is a hint only.
_FEW_LABELS, _LARGE_ERROR = 40, 0.05


class Setting(NamedTuple):
    """One candidate: codes (n_components, lam, map_iter) and an SVM on them (normalize, C)."""

    n_components: int
    lam: float
    map_iter: int
    normalize: bool
    C: float


DEFAULT = Setting(n_components=32, lam=3.0, map_iter=40, normalize=True, C=2.0)


def default_for(labels: Labels) -> Setting:
    """Return the setting that is taken unless another is clearly better."""
    return DEFAULT._replace(lam=0.3) if labels.multilabel else DEFAULT


class Grid(NamedTuple):
    """Candidates for each parameter; a single entry fixes it."""

    n_components: tuple[int, ...] = (DEFAULT.n_components,)
    lam: tuple[float, ...] = LAM_GRID
    map_iter: tuple[int, ...] = MAP_GRID
    normalize: tuple[bool, ...] = NORMALIZE_GRID
    C: tuple[float, ...] = C_GRID

    def fallback(self, default: Setting = DEFAULT) -> Setting:
        """Return the defaults, where they are candidates."""
        values: list[Any] = [d if d in g else g[0] for g, d in zip(self, default, strict=True)]
        return Setting(*values)


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


def choose(
    X: Any,
    labels: Labels,
    grid: Grid,
    *,
    source: str | Source = "svm",
    multiclass: str = "ovr",
    features: Any = None,
    pseudo: str | None = None,
    init: Any = "auto",
    solver: str = "auto",
    backend: str | Backend = "auto",
    seed: int = 0,
    n_splits: int | None = None,
    callback: Callback | None = None,
    logbook: Logbook | None = None,
) -> Choice:
    """Choose the rank, lam, the map and the SVM by cross-validation over the labeled samples.

    Parameters
    ----------
    X : (n, d) trusted data
    labels : Labels
    grid : Grid
    source, multiclass, features, pseudo : see `find_directions`
    init, solver, backend : see `NMFAlpha`
    seed : int
    n_splits : int or None
        Folds; by default five, or three when there are many labels.
    callback : callable or None
        Called with a `Progress` while candidates are tried; a true answer ends the trials, and
        the best so far is taken.
    logbook : Logbook or None
        Keeps the trials that are done, so that they are not done again.

    Returns
    -------
    Choice
        The rank with the best codes wins. At that rank, among candidates that cannot be told from
        the best (one standard error), the one nearest the defaults does: with few labels the best
        score is mostly luck.
    """
    default = default_for(labels)
    if all(len(candidates) == 1 for candidates in grid):
        return Choice(grid.fallback(default), {})
    labels = enough_labels(labels, seed)
    folds = folds_of(labels, seed, n_splits)
    if not folds:
        logger.info("too few labels to choose on; taking %s", grid.fallback(default))
        return Choice(grid.fallback(default), {})
    logbook = Logbook(seed) if logbook is None else logbook
    if (notes := logbook.recall("choice")) is not None:
        return _settled(_choice_of(notes), logbook)
    race = _Race(grid, folds, callback, default, logbook)
    rows = enough_rows(labels, seed) if isinstance(init, str) else np.arange(X.shape[0])
    X_few, labeled = X[rows], X[np.flatnonzero(labels.labeled)]
    for fold in race.folds_left():
        left, ranks = fold.left.take(rows), race.ranks_left
        if ranks:
            with warnings.catch_warnings():
                # a class that is hidden whole is no news to the user
                warnings.simplefilter("ignore", UserWarning)
                S = find_directions(
                    X_few, left, source=source, multiclass=multiclass, features=features,
                    pseudo=pseudo, seed=seed,
                ).S  # fmt: skip
        for rank in ranks:
            H, V = start_from(init, X_few, rank, seed, left)
            path = factorize_path(
                X_few, H, V, S=S, lams=race.lams(rank), solver=solver, max_iter=_MAX_ITER,
                warm_iter=_WARM_ITER, tol=_TOL, backend=backend, callback=race.watch,
            )  # fmt: skip
            for lam, result in path:
                if race.stopped:
                    return _settled(race.finish(), logbook, race)
                race.enter(fold, rank, lam, codes_by_map(labeled, result.V, grid.map_iter, backend))
            race.end_trial(rank)
            if logbook.offer("race", race.notes):
                return _settled(race.finish(), logbook, race)
        race.drop_the_hopeless()
    return _settled(race.finish(), logbook)


def _settled(choice: Choice, logbook: Logbook, unfinished: _Race | None = None) -> Choice:
    """Note the choice; if the race was interrupted, note where that was, and do not go by it."""
    if unfinished is not None and logbook.interrupted:
        logbook.offer("race", unfinished.notes)
        logbook.break_off()
    logbook.settle("choice", choice_notes(choice))
    return choice


def _choice_of(notes: Notes) -> Choice:
    """Return the choice that was noted."""
    scores = {Setting(*names): values for names, values in notes.tree["scores"]}
    held_out = HeldOut(**notes.arrays) if notes.arrays else None  # type: ignore[arg-type]
    return Choice(Setting(*notes.tree["best"]), scores, held_out)


def enough_rows(labels: Labels, seed: int) -> NDArray[np.intp]:
    """Return all labeled rows and, where there are very many, a draw of the unlabeled ones."""
    unlabeled = np.flatnonzero(~labels.labeled)
    if len(unlabeled) > _ENOUGH_ROWS:
        unlabeled = np.random.default_rng(seed).choice(unlabeled, _ENOUGH_ROWS, replace=False)
    return np.sort(np.concatenate([np.flatnonzero(labels.labeled), unlabeled]))


def codes_by_map(
    X: Any, V: Array, map_iters: tuple[int, ...], backend: str | Backend
) -> dict[int, Array]:
    """Return the codes Z of rows for every map into one factorization."""
    V = parts_of(V).T.copy()
    root = gram_root(V).astype(V.dtype)
    counts = sorted(map_iters)
    maps = map_rows_each(X, V, counts, backend)
    return {n: H @ root for n, H in zip(counts, maps, strict=True)}


class _Race:
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
