"""The race as data: collections, labels a class, draws and methods, cut into units of work.

``k`` labels a class means that k times the number of classes training rows are drawn from all of
them and labeled, as a person labels what comes: a rare class may have one label, or none.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from marginparts.experiments.few_labels.collections import (
    COLLECTIONS,
    OTHER_ROWS,
    TEXT_ROWS,
    Collection,
    are_texts,
    load_collection,
    prepared_rows,
)
from marginparts.experiments.few_labels.methods import CONTESTANTS, Trial, predict_with_parts
from marginparts.experiments.runner import about
from marginparts.experiments.store import Record
from marginparts.labels import UNKNOWN, Labels
from marginparts.scores import quality

#: The method of this package, and it with other options by name: method ``nmf_alpha:NAME``.
OURS = "nmf_alpha"
VARIANTS: dict[str, dict[str, Any]] = {
    "class sums": {"directions": "class"},
    "projection": {"output": "projection"},
    "Z": {"output": "gram"},
    "no teachers": {
        "pseudo": None, "output": "mixed", "lam": 10.0, "C": 4.0, "map_iter": 40, "normalize": True,
    },
    "plain parts": {"lam": 0.0},
    "last SVM on labels alone": {"guessed": False},
}  # fmt: skip

#: Of what the race is about: classes that must be known, and the score of several labels a sample.
_FEWEST_CLASSES, SEVERAL = 2, "f1_micro"


#: Labels a class at most, where more would be all training rows or nearly so.
_MOST_LABELS = {"usps": 100, "ohsumed": 100}


class Entry(NamedTuple):
    """A method with one way to prepare texts: what a person could choose once and for all."""

    method: str
    rows: str

    @property
    def title(self) -> str:
        """How it is named in print."""
        return f"{title_of(self.method)}, {self.rows}"


def title_of(method: str) -> str:
    """Return how a method is named in print."""
    name, _, variant = method.partition(":")
    title = "NMF-alpha" if name == OURS else CONTESTANTS[name].title
    return f"{title} ({variant})" if variant else title


def _every(methods: Iterable[str]) -> tuple[Entry, ...]:
    return tuple(Entry(*each) for each in product(methods, TEXT_ROWS))


@dataclass(frozen=True)
class Race:
    """Which entries run on which collections, with how many labels a class."""

    name: str
    entries: tuple[Entry, ...]
    collections: tuple[str, ...] = COLLECTIONS
    labels: tuple[int, ...] = (5, 20)
    draws: tuple[int, ...] = (0, 1, 2, 3, 4)

    def units(
        self, only: Iterable[str] = (), data_dir: str | os.PathLike[str] | None = None
    ) -> list[RaceUnit]:
        """Return the units, the cheapest first; of those whose name matches a pattern, if any."""
        patterns = tuple(only)
        found = dict.fromkeys(self._all(data_dir))
        some = (
            unit
            for unit in found
            if not patterns or any(fnmatchcase(unit.name, pattern) for pattern in patterns)
        )
        return sorted(some, key=lambda unit: unit.weight)

    def _all(self, data_dir: str | os.PathLike[str] | None) -> Iterator[RaceUnit]:
        for draw, data, k in product(self.draws, self.collections, self.labels):
            if k > _MOST_LABELS.get(data, k):
                continue
            texts = are_texts(data, data_dir)
            for method, rows in self.entries:
                if texts:
                    yield RaceUnit(data, k, draw, method, rows)
                elif method not in CONTESTANTS or not CONTESTANTS[method].texts_only:
                    yield RaceUnit(data, k, draw, method, *OTHER_ROWS)


@dataclass(frozen=True)
class RaceUnit:
    """One method on one draw of the labels of one collection."""

    data: str
    labels: int
    draw: int
    method: str
    rows: str

    @property
    def name(self) -> str:
        """Say what it is, for patterns: ``collection/labels/draw/method/rows``."""
        return f"{self.data}/{self.labels}/{self.draw}/{self.method}/{self.rows}"

    @property
    def key(self) -> str:
        """Its name, and a digest of the settings that the method may choose from."""
        said = json.dumps([*options_of(self.method)], sort_keys=True)
        short = hashlib.sha1(said.encode(), usedforsecurity=False).hexdigest()[:6]
        return f"{self.name} {short}"

    @property
    def weight(self) -> float:
        """About how long it takes, in any unit."""
        method = self.method.partition(":")[0]
        return _COST[method] * _SIZE.get(self.data, 5.0) * (1 + self.labels / 100)

    @property
    def split(self) -> int:
        """The draw, by the name that all units have for it."""
        return self.draw

    @property
    def ranks(self) -> tuple[int, ...]:
        """None: what a method needs of them it chooses itself."""
        return ()


#: Rough cost of a method, and of a collection.
_COST = {
    "svm": 0.3, "logistic": 1.0, "nb_em": 1.0, "lsa": 1.0, "label_spreading": 1.0,
    "self_training": 3.0, "nmf": 3.0, "lee2010": 5.0, "liu_wu2010": 5.0, "tsvm": 20.0, OURS: 25.0,
}  # fmt: skip
_SIZE = {
    "digits": 0.5, "sms_spam": 0.5, "usps": 1.5, "docstrings": 1.5, "webkb": 1.5, "yahoo_arts": 3.0,
    "mnist-49": 4.0, "fsdd": 4.0, "aviation-counts": 6.0, "ohsumed": 7.0, "news": 20.0,
    "mnist": 15.0,
}  # fmt: skip

#: The race that decides; how much changes with the number of labels; and with the options.
FEW_LABELS = Race("few-labels", _every((*CONTESTANTS, OURS)))
CURVE = Race(
    "few-labels-curve",
    (Entry("svm", "tf-idf"), Entry("tsvm", "tf-idf"), Entry("lsa", "tf-idf"), Entry(OURS, "log")),
    ("ohsumed", "news", "usps"), (1, 2, 5, 10, 20, 50, 100, 200),
)  # fmt: skip
ABLATION = Race(
    "few-labels-ablation",
    tuple(Entry(name, "log") for name in (OURS, *(f"{OURS}:{each}" for each in VARIANTS))),
)


def quick(race: Race) -> Race:
    """Return a small version of a race: one draw of few labels on small collections."""
    some = tuple(name for name in race.collections if name in ("digits", "usps", "sms_spam"))
    return replace(race, collections=some, labels=race.labels[:2], draws=race.draws[:1])


def options_of(method: str) -> Iterable[Any]:
    """Return what a method chooses from, or the options of a variant of ours."""
    name, _, variant = method.partition(":")
    if name == OURS:
        return [VARIANTS[variant]] if variant else []
    contestant = CONTESTANTS[method]
    return [contestant.folds, *contestant.rival.settings]


def draw_rows(collection: Collection, labels: int, draw: int) -> NDArray[np.intp]:
    """Draw the rows to label, anew while fewer than two classes would be known.

    Fewer labels of the same draw are a part of more.
    """
    y, many = collection.y_train, labels * collection.n_classes
    rng = np.random.default_rng(draw)
    for _ in range(1000):
        rows = rng.permutation(len(y))[:many]
        if len(_present(y[rows])) >= _FEWEST_CLASSES:
            return np.sort(rows)
    raise ValueError(f"{collection.name} has fewer than {_FEWEST_CLASSES} classes to tell apart.")


def _present(y: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return the classes, or the columns of an indicator, that some rows have."""
    return np.flatnonzero(y.any(axis=0)) if y.ndim == 2 else np.unique(y)


def run_race_unit(unit: RaceUnit, data_dir: str | None = None) -> list[Record]:
    """Run one unit; its one record has the test score in percent and the time."""
    collection = load_collection(unit.data, data_dir)
    X, X_test = prepared_rows(unit.data, unit.rows, data_dir)
    rows = draw_rows(collection, unit.labels, unit.draw)
    present = _present(collection.y_train[rows])
    trial = Trial(X, known_labels(collection.y_train, rows, present), X_test, unit.draw)
    # one thread: the sums of some libraries depend on their number
    with threadpool_limits(1), warnings.catch_warnings():
        # classes with a single label, models that are hard to train: the scores show what it costs
        warnings.simplefilter("ignore")
        began = time.perf_counter()
        guess, setting = _guess(unit.method, trial)
        seconds = time.perf_counter() - began
    return [
        {
            "data": unit.data, "labels": unit.labels, "draw": unit.draw, "method": unit.method,
            "rows": unit.rows, **_scored(guess, collection.y_test, present), **setting,
            "labeled": len(rows), "seconds": round(seconds, 3), **about(),
        }
    ]  # fmt: skip


def known_labels(y: NDArray[np.int64], rows: NDArray[np.intp], present: NDArray[np.intp]) -> Labels:
    """Return the labels of all training rows as they are known, in terms of the classes present."""
    known = y[rows][:, present] if y.ndim == 2 else np.searchsorted(present, y[rows])
    codes = np.full((len(y), *known.shape[1:]), UNKNOWN)
    codes[rows] = known
    return Labels(np.arange(len(present)), codes)


def _guess(method: str, trial: Trial) -> tuple[NDArray[np.int64], Record]:
    name, _, variant = method.partition(":")
    if name == OURS:
        return predict_with_parts(trial, **(VARIANTS[variant] if variant else {})), {}
    guess, setting = CONTESTANTS[method].predict(trial)
    return guess, {"setting": list(setting)}


def _scored(guess: NDArray[np.int64], y: NDArray[np.int64], present: NDArray[np.intp]) -> Record:
    """Return the accuracy, or the micro F and beside it the mean of the micro and the macro F."""
    if y.ndim == 1:
        return {"score": round(100 * float(np.mean(present[guess] == y)), 3)}
    given = np.full(y.shape, -1.0)
    given[:, present] = np.where(guess > 0, 1.0, -1.0)
    truth = Labels(np.arange(y.shape[1]), y)
    micro, both = (100 * quality(given, truth, scoring) for scoring in (SEVERAL, None))
    return {"score": round(micro, 3), "mean_f": round(both, 3)}
