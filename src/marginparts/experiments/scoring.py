"""Scoring what a method makes in stages, the same for every method, so that grids may be wide.

First all parts that a method finds are compared with one map and one cost. For the best of them the
number of mapping updates is sought, and for the best codes the cost of the SVM: each from a start
outwards until validation scores stop rising (`climb`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from marginparts.experiments.climbing import COSTS, climb
from marginparts.experiments.protocol import Codes, Records, Scored, Trial
from marginparts.svm.head import Heads
from marginparts.weighting import has_unit_rows

#: Mapping updates that may be tried.
MAP_ITERS = (1, 2, 5, 15, 60, 240)


class Search(NamedTuple):
    """Where searches begin, and how far they may go."""

    C: float  # the cost with which codes are compared
    steps: int  # how far a search goes either way
    map_iter: int = 15  # the updates with which parts are compared
    map_iters: tuple[int, ...] = ()  # all tried on the best parts, in the place of a search


class Parts(NamedTuple):
    """What a method found with one setting: ``codes(map_iter)`` are the rows' codes in it."""

    setting: dict[str, Any]
    codes: Callable[[int], Codes]


class Board:
    """The parts or codes of one method at one rank, their scores, and the best of them."""

    def __init__(self, trial: Trial, fractions: Iterable[float], search: Search) -> None:
        self.trial, self.fractions, self.search = trial, tuple(fractions), search
        self.records = Records(trial)
        #: For each share of labels the best validation score at the first cost, and its codes.
        self.best: dict[float, tuple[float, Codes]] = {}
        self._best_parts: dict[float, tuple[float, Parts]] = {}

    def enter(self, found: Parts | Codes) -> float:
        """Score parts, or codes, for every share of labels; return the best validation score."""
        codes = found.codes(self.search.map_iter) if isinstance(found, Parts) else found
        top = []
        for fraction in self.fractions:
            top.append(self._enter_codes(codes, fraction))
            known = self._best_parts.get(fraction)
            if isinstance(found, Parts) and (known is None or top[-1] > known[0]):
                self._best_parts[fraction] = top[-1], found
        return max(top)

    def _enter_codes(self, codes: Codes, fraction: float) -> float:
        score = self._scorer(fraction, codes, True)(self.search.C)
        if fraction not in self.best or score > self.best[fraction][0]:
            self.best[fraction] = score, codes
        return score

    def finish(self) -> list[dict[str, Any]]:
        """Seek the map for the best parts, then the cost for the best codes; return all records."""
        for fraction in self.fractions:
            parts = self._best_parts.get(fraction)
            if parts is not None and self.search.map_iters:
                for n in self.search.map_iters:
                    codes = parts[1].codes(n)
                    self._seek_costs(fraction, codes, self._enter_codes(codes, fraction))
                continue
            if parts is not None:
                self._seek_map(fraction, *parts)
            known, codes = self.best[fraction]
            self._seek_costs(fraction, codes, known)
        return self.records

    def _seek_map(self, fraction: float, known: float, parts: Parts) -> None:
        def score(n: float) -> float:
            return self._enter_codes(parts.codes(int(n)), fraction)

        climb(MAP_ITERS, self.search.map_iter, score, self.search.steps, known)

    def _seek_costs(self, fraction: float, codes: Codes, known: float) -> None:
        """Seek the cost for codes of length 1, and for codes that are all scaled by one number."""
        C, steps = self.search.C, self.search.steps
        climb(COSTS, C, self._scorer(fraction, codes, True), steps, known)
        if not has_unit_rows(codes.train):
            climb(COSTS, C, self._scorer(fraction, codes, False), steps)

    def _scorer(self, fraction: float, codes: Codes, normalize: bool) -> Callable[[float], float]:
        """Return a function of the cost that scores an SVM on codes."""
        m = self.trial.n_labeled(fraction)
        labels = self.trial.train.take(np.arange(m))
        heads = Heads(codes.train[:m], labels, normalize=normalize)

        def score(C: float) -> float:
            head, setting = heads.at(C), {**codes.setting, "normalize": normalize, "C": C}
            values = head.values(codes.validation), head.values(codes.test)
            return self.records.enter(fraction, setting, *values)

        return score


def score_all(
    trial: Trial, fractions: Iterable[float], every: Iterable[Parts | Codes], search: Search
) -> Scored:
    """Score all that a method makes, and seek the map and the cost for the best of it."""
    board = Board(trial, fractions, search)
    for found in every:
        board.enter(found)
    yield from board.finish()
