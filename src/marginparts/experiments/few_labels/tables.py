"""What the records of a race say: scores by cell, gains, and who is how far from whom.

A cell is a collection with a number of labels a class. Two entries are compared by the draws that
both have; a mean over cells counts every cell alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from marginparts.experiments.few_labels.collections import TEXT_ROWS
from marginparts.experiments.few_labels.methods import CONTESTANTS
from marginparts.experiments.few_labels.race import OURS, Entry, Race, RaceUnit
from marginparts.experiments.store import Record


class Cell(NamedTuple):
    """A collection with so many labels a class."""

    data: str
    labels: int

    def __str__(self) -> str:
        return f"{self.data}, {self.labels} a class"


class Difference(NamedTuple):
    """A mean over draws or cells, its standard error, and over how many it goes."""

    mean: float
    error: float
    n: int


class Scores(dict[Entry, dict[Cell, dict[int, float]]]):
    """Test scores in percent: by entry, cell and draw."""

    def mean(self, entry: Entry, cell: Cell) -> float | None:
        """Return an entry's mean in a cell; None if it has no score there."""
        found = self.get(entry, {}).get(cell)
        return float(np.mean([*found.values()])) if found else None

    def difference(self, entry: Entry, other: Entry, cell: Cell) -> Difference | None:
        """Return by how much an entry is above another in a cell, over the draws of both."""
        mine, theirs = (self.get(each, {}).get(cell, {}) for each in (entry, other))
        common = sorted(mine.keys() & theirs.keys())
        return spread([mine[draw] - theirs[draw] for draw in common]) if common else None

    def gain(self, entry: Entry, cell: Cell) -> Difference | None:
        """Return by how much an entry is above the linear SVM on the same rows."""
        return self.difference(entry, Entry("svm", entry.rows), cell)

    def over_cells(self, entry: Entry, other: Entry, cells: Iterable[Cell]) -> Difference | None:
        """Return the mean over cells of what an entry is above another."""
        found = [self.difference(entry, other, cell) for cell in cells]
        means = [each.mean for each in found if each is not None]
        return spread(means) if means else None

    def best_rival(self, cell: Cell) -> Entry | None:
        """Return the rival with the highest mean in a cell: chosen in hindsight."""
        found = {entry: self.mean(entry, cell) for entry in self if is_rival(entry)}
        told = {entry: mean for entry, mean in found.items() if mean is not None}
        return max(told, key=lambda entry: told[entry]) if told else None


def spread(values: Sequence[float]) -> Difference:
    """Return the mean of values, with its standard error; of a single one it is 0."""
    n = len(values)
    error = float(np.std(values, ddof=1) / np.sqrt(n)) if n > 1 else 0.0
    return Difference(float(np.mean(values)), error, n)


def is_rival(entry: Entry) -> bool:
    """Whether it is none of ours."""
    return entry.method in CONTESTANTS


def scores_of(records: Iterable[Record], entries: Sequence[Entry]) -> Scores:
    """Gather records; what is no text counts for an entry whichever way it prepares texts."""
    scores = Scores({entry: {} for entry in entries})
    for record in records:
        rows = (record["rows"],) if record["rows"] in TEXT_ROWS else TEXT_ROWS
        cell = Cell(record["data"], record["labels"])
        for each in rows:
            entry = Entry(record["method"], each)
            if entry in scores:
                scores[entry].setdefault(cell, {})[record["draw"]] = record["score"]
    return Scores({entry: found for entry, found in scores.items() if found})


def cells_of(race: Race, scores: Scores) -> list[Cell]:
    """Return the cells with any score, in the order of the race."""
    found = {cell for cells in scores.values() for cell in cells}
    every = [Cell(data, k) for data in race.collections for k in race.labels]
    return [cell for cell in every if cell in found]


def cell_table(race: Race, scores: Scores) -> dict[str, dict[str, Any]]:
    """Return mean, spread, draws and gain over the SVM of every entry in every cell."""
    return {
        str(cell): {
            entry.title: _row(scores, entry, cell) for entry in scores if cell in scores[entry]
        }
        for cell in cells_of(race, scores)
    }


def _row(scores: Scores, entry: Entry, cell: Cell) -> dict[str, Any]:
    values, gain = [*scores[entry][cell].values()], scores.gain(entry, cell)
    return {
        "mean": round(float(np.mean(values)), 2), "std": round(float(np.std(values)), 2),
        "draws": len(values), "gain": None if gain is None else round(gain.mean, 2),
    }  # fmt: skip


def common_cells(race: Race, scores: Scores) -> list[Cell]:
    """Return the cells in which all have a score but those that are for texts only."""
    all_ = [
        entry
        for entry in scores
        if entry.method not in CONTESTANTS or not CONTESTANTS[entry.method].texts_only
    ]
    return [cell for cell in cells_of(race, scores) if all(cell in scores[entry] for entry in all_)]


def summary(race: Race, scores: Scores) -> dict[str, Any]:
    """Return each entry's means over cells, and how far ours are from the rivals.

    The best single rival is the one with the highest mean over the common cells; in a cell the
    best rival is chosen in hindsight.
    """
    cells, common = cells_of(race, scores), common_cells(race, scores)
    single = _best_single(scores, common)
    ours = [entry for entry in scores if not is_rival(entry)]
    return {
        "cells": len(cells),
        "common_cells": len(common),
        "entries": [_means(scores, entry, cells) for entry in scores],
        "best_single_rival": None if single is None else single.title,
        "ours": {
            entry.title: {
                "over_best_single": _told(single and scores.over_cells(entry, single, common)),
                "over_svm": _told(
                    scores.over_cells(entry, Entry("svm", entry.rows), scores[entry])
                ),
                "against_best_of_cell": _in_hindsight(scores, entry, cells),
                "worst_against_svm": _worst_against_svm(scores, entry, cells),
            }
            for entry in ours
        },
    }


def _best_single(scores: Scores, common: list[Cell]) -> Entry | None:
    """Return the rival with the highest mean over cells in which all have scores."""
    rivals = [
        entry for entry in scores if is_rival(entry) and all(c in scores[entry] for c in common)
    ]
    if not rivals or not common:
        return None
    return max(rivals, key=lambda entry: np.mean([scores.mean(entry, c) or 0.0 for c in common]))


def _told(found: Difference | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {"mean": round(found.mean, 2), "error": round(found.error, 2), "cells": found.n}


def _means(scores: Scores, entry: Entry, cells: list[Cell]) -> dict[str, Any]:
    own = [cell for cell in cells if cell in scores[entry]]
    gain = scores.over_cells(entry, Entry("svm", entry.rows), own)
    score = float(np.mean([scores.mean(entry, cell) or 0.0 for cell in own]))
    return {
        "method": entry.method, "rows": entry.rows, "title": entry.title, "cells": len(own),
        "score": round(score, 2), "gain": None if gain is None else round(gain.mean, 2),
        "error": None if gain is None else round(gain.error, 2),
    }  # fmt: skip


def _in_hindsight(scores: Scores, entry: Entry, cells: list[Cell]) -> dict[str, Any] | None:
    """Count the cells in which an entry is within one standard error of the best rival or above."""
    found = {}
    for cell in cells:
        rival = scores.best_rival(cell)
        difference = rival and scores.difference(entry, rival, cell)
        if rival and difference:
            found[cell] = (difference, rival)
    if not found:
        return None
    level = [each for each, _ in found.values() if each.mean >= -each.error]
    worst = min(found, key=lambda cell: found[cell][0].mean)
    difference, rival = found[worst]
    return {
        "level": len(level), "cells": len(found), "share": round(len(level) / len(found), 3),
        "worst": {"cell": str(worst), "mean": round(difference.mean, 2), "rival": rival.title},
    }  # fmt: skip


def _worst_against_svm(scores: Scores, entry: Entry, cells: list[Cell]) -> dict[str, Any] | None:
    gains = {cell: scores.gain(entry, cell) for cell in cells}
    told = {cell: gain.mean for cell, gain in gains.items() if gain is not None}
    if not told:
        return None
    worst = min(told, key=lambda cell: told[cell])
    return {"cell": str(worst), "mean": round(told[worst], 2)}


def changes(race: Race, scores: Scores) -> list[dict[str, Any]]:
    """Return what each variant of ours changes, mean over cells with its standard error."""
    found = []
    for entry in scores:
        base = Entry(OURS, entry.rows)
        change = scores.over_cells(entry, base, cells_of(race, scores))
        if not is_rival(entry) and entry != base and change is not None:
            found.append({"title": entry.title, **(_told(change) or {})})
    return found


def missing_sentence(planned: Sequence[RaceUnit], left: Sequence[RaceUnit]) -> str:
    """Say plainly which units have no record."""
    if not left:
        return f"All {len(planned)} units are there."
    parts = []
    for what in ("data", "method"):
        counts: dict[str, list[int]] = {}
        for units, place in ((planned, 1), (left, 0)):
            for unit in units:
                counts.setdefault(getattr(unit, what), [0, 0])[place] += 1
        told = (f"{name} {n} of {of}" for name, (n, of) in counts.items() if n)
        parts.append(f"by {'collection' if what == 'data' else what}: {', '.join(told)}")
    return f"{len(left)} of {len(planned)} units are missing; {'; '.join(parts)}."
