"""Which choices lie at the end of what was tried, where trying more might have done better.

A choice is one value of one parameter, for one method, data set, share of labels and split (the
rank is chosen for all splits together). It lies at an edge when nothing beyond it was tried and it
is better on validation rows than its neighbor: where the two are equal, going on brings nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from marginparts.experiments.store import Record
from marginparts.experiments.tables import Cell, Curves, chosen

#: What is chosen among ordered values.
PARAMETERS = (
    "C", "lam", "direction_C", "map_iter", "shrinkage", "inputs", "weight", "alpha", "taught",
    "neighbors", "spread",
)  # fmt: skip

#: Ends beyond which there is nothing: unlabeled rows that count nothing or as much as labeled ones,
#: none or all of them taught, a single update.
NATURAL_ENDS = {"weight": (0.0, 1.0), "taught": (0.0, 1.0), "map_iter": (1,)}

#: Of choices: how many there are, and how many of them lie at an edge.
Count = dict[str, int]


def edges(found: Curves, records: Iterable[Record]) -> dict[str, dict[str, dict[str, Count]]]:
    """Count choices and those at an edge, by data and preparation, method and parameter.

    ``{"news, l2-log": {"pca": {"C": {"choices": 15, "at_edge": 0}}}}``, say, from the curves that
    are chosen from and the records that they were made of.
    """
    tried: dict[tuple[Cell, str, int], list[Record]] = defaultdict(list)
    for record in records:
        tried[Cell.of(record), record["method"], record["split"]].append(record)
    counts: dict[str, Any] = {}
    for cell, methods in found.items():
        rows = counts.setdefault(f"{cell.data}, {cell.preprocessing}", {})
        for method, points in methods.items():
            best, row = chosen(points), rows.setdefault(method, {})
            if len(points) > 1:
                ranks = {point.rank: point.validation for point in points}
                _count(row, "rank", ranks, best.rank)
            for record in best.best:
                for name, profile in _profiles(record, tried[cell, method, record["split"]]):
                    _count(row, name, profile, record[name])
    return counts


def _profiles(best: Record, records: list[Record]) -> Iterable[tuple[str, dict[Any, float]]]:
    """Yield the parameters with more than one value, and the best score of each value.

    Values are compared at the chosen rank; what was sought at another rank, over all of them.
    """
    same_rank = [record for record in records if record.get("rank") == best.get("rank")]
    for name in PARAMETERS:
        if name in best:
            profile = _profile(name, same_rank)
            if len(profile) == 1:
                profile = _profile(name, records)
            if len(profile) > 1:
                yield name, profile


def _profile(name: str, records: list[Record]) -> dict[Any, float]:
    found: dict[Any, float] = defaultdict(float)
    for record in records:
        found[record[name]] = max(found[record[name]], record["validation"])
    return found


def _count(row: dict[str, Count], name: str, profile: dict[Any, float], choice: Any) -> None:
    count = row.setdefault(name, {"choices": 0, "at_edge": 0})
    count["choices"] += 1
    count["at_edge"] += at_edge(profile, choice, NATURAL_ENDS.get(name, ()))


def at_edge(profile: dict[Any, float], choice: Any, natural: tuple[float, ...] = ()) -> bool:
    """Whether a choice is the first or last value that was tried, and better than the next one.

    Examples
    --------
    >>> at_edge({1: 50.0, 10: 60.0, 100: 70.0}, 100)
    True
    >>> at_edge({1: 50.0, 10: 70.0, 100: 70.0}, 100)
    False
    """
    values = sorted(profile)
    if choice in natural or len(values) < 2:
        return False
    inner = {values[0]: values[1], values[-1]: values[-2]}
    return choice in inner and profile[choice] > profile[inner[choice]]
