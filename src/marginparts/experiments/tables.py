"""From records to the tables of the paper: models are chosen on validation scores alone.

Within a split, each rank gets the best of its settings (lam, mapping updates, C). The rank is then
the one with the best mean over the splits: the hollow square in the paper's Figure 3.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from statistics import fmean, stdev
from typing import Any, NamedTuple

from marginparts.datasets import PAPER_DATA
from marginparts.experiments.plan import AVIATION, TABLE_2
from marginparts.experiments.registry import METHODS
from marginparts.experiments.store import Record

#: Table 2 of the paper, in percent: NMF-alpha and LDA.
PAPER_TABLE_2 = {
    "mnist": {"2%": (93.3, 88.5), "10%": (96.9, 92.7), "100%": (98.2, 94.2)},
    "news": {"20%": (70.1, 65.3), "40%": (75.3, 69.8), "100%": (78.1, 73.5)},
    "aviation": {"5%": (48.5, 43.6), "10%": (51.0, 47.9), "100%": (57.2, 56.4)},
}

#: How the data of Table 2 is prepared; other preparations are reported beside it.
PREPARATION = {study.data: study.preprocessing for study in (*TABLE_2, AVIATION)}


class Cell(NamedTuple):
    """Where results are compared: the same data, preparation and labels."""

    data: str
    preprocessing: str
    fraction: float

    @classmethod
    def of(cls, record: Record) -> Cell:
        """Return the cell of a record."""
        return cls(*(record[name] for name in cls._fields))

    @property
    def share(self) -> str:
        """The share of labels in words."""
        return f"{100 * self.fraction:g}%"


class Point(NamedTuple):
    """One method at one rank in one cell: means over the splits, each at its best setting."""

    method: str
    rank: int | None
    validation: float
    test: float
    std: float
    best: tuple[Record, ...]

    @property
    def splits(self) -> int:
        """How many splits it was run on."""
        return len(self.best)


Curves = dict[Cell, dict[str, list[Point]]]


def curves(records: Iterable[Record]) -> Curves:
    """Return, for each cell and method, a point a rank, in order of rank.

    A rank that was not run on all splits of its method is left out.
    """
    groups: dict[tuple[Cell, str, int | None], list[Record]] = defaultdict(list)
    for record in records:
        groups[Cell.of(record), record["method"], record.get("rank")].append(record)
    found: Curves = defaultdict(lambda: defaultdict(list))
    for (cell, method, rank), some in sorted(groups.items(), key=lambda item: item[0][2] or 0):
        best = best_by_split(some)
        tests = [record["test"] for record in best]
        validation, test = fmean(record["validation"] for record in best), fmean(tests)
        point = Point(method, rank, validation, test, _spread(tests), tuple(best))
        found[cell][method].append(point)
    for methods in found.values():
        for method, points in methods.items():
            most = max(point.splits for point in points)
            methods[method] = [point for point in points if point.splits == most]
    return dict(sorted(found.items()))


def best_by_split(records: Iterable[Record]) -> list[Record]:
    """Return the record with the best validation score of each split, in order of splits."""
    splits: dict[int, list[Record]] = defaultdict(list)
    for record in records:
        splits[record["split"]].append(record)
    return [max(some, key=lambda r: r["validation"]) for _, some in sorted(splits.items())]


def chosen(points: Iterable[Point]) -> Point:
    """Return the point with the best mean validation score."""
    return max(points, key=lambda point: point.validation)


def table1() -> list[dict[str, Any]]:
    """Return the composition of the data sets, one dictionary each."""
    return [
        {
            "data": entry.name, "kind": entry.kind, "training": entry.n_train,
            "validation": entry.n_validation, "test": entry.n_test, "columns": entry.n_columns,
            "classes": entry.n_classes,
        }
        for entry in PAPER_DATA.values()
    ]  # fmt: skip


def table2(found: Curves) -> dict[str, Any]:
    """Return Table 2: data, share of labels, method, and its score in percent.

    Another preparation than the usual one of a data set has a table of its own.
    """
    usual: dict[str, Any] = {data: {} for data in PREPARATION}
    beside: dict[str, Any] = {}
    for cell, methods in found.items():
        row = {method: _summary(chosen(points)) for method, points in methods.items()}
        if PREPARATION.get(cell.data) == cell.preprocessing:
            scores = PAPER_TABLE_2.get(cell.data, {}).get(cell.share, ())
            for method, score in zip(("nmf_alpha", "lda"), scores, strict=False):
                if method in row:
                    row[method]["paper"] = score
            usual[cell.data][cell.share] = row
        else:
            beside.setdefault(f"{cell.data}, {cell.preprocessing}", {})[cell.share] = row
    return {data: shares for data, shares in usual.items() if shares} | beside


def _summary(point: Point) -> dict[str, Any]:
    scores = {"mean": point.test, "std": point.std, "validation": point.validation}
    rank = {} if point.rank is None else {"rank": point.rank}
    rounded = {name: round(score, 2) for name, score in scores.items()}
    return {**rounded, "splits": point.splits, **rank}


def ablation(records: Iterable[Record]) -> dict[str, list[dict[str, Any]]]:
    """Return what each choice in NMF-alpha is worth, by data set and share of labels.

    Every row is chosen on validation scores within a split, as in Table 2. ``change`` is the
    mean over the splits of the difference from the paper's way on the same split.
    """
    cells: dict[str, dict[str, list[Record]]] = defaultdict(lambda: defaultdict(list))
    order = list(METHODS)
    # the paper's way first, then by mapping updates, then the others as they are listed
    for record in sorted(records, key=lambda r: (order.index(r["method"]), r["map_iter"])):
        rows = cells[f"{record['data']} {100 * record['fraction']:g}%"]
        rows[METHODS[record["method"]].title].append(record)
        if record["method"] == "nmf_alpha":
            rows[f"NMF-alpha, {record['map_iter']} mapping updates"].append(record)
    found = {}
    for name, rows in cells.items():
        tests = {
            what: {record["split"]: record["test"] for record in best_by_split(some)}
            for what, some in rows.items()
        }
        base = tests.get(METHODS["nmf_alpha"].title, {})
        found[name] = [_ablation_row(what, scores, base) for what, scores in tests.items()]
    return found


def _ablation_row(what: str, tests: dict[int, float], base: dict[int, float]) -> dict[str, Any]:
    changes = [tests[split] - base[split] for split in tests if split in base]
    same = tests == base or not changes
    mean, std = _mean_and_spread(list(tests.values()))
    change, change_std = (None, None) if same else _mean_and_spread(changes)
    return {"what": what, "mean": mean, "std": std, "change": change, "change_std": change_std}


def _mean_and_spread(scores: list[float]) -> tuple[float, float]:
    return round(fmean(scores), 2), round(_spread(scores), 2)


def _spread(scores: list[float]) -> float:
    return stdev(scores) if len(scores) > 1 else 0.0


def open_goal(records: Iterable[Record], others: Iterable[Record]) -> dict[str, Any]:
    """Return how far past the paper it goes, by data set and share of labels.

    For each the score, the dimensions, the setting, and the best of the ``others``: classifiers
    without parts, with any preparation.
    """
    rivals = _pooled(others)
    found: dict[str, Any] = {}
    for (data, share), points in _pooled(records).items():
        best = chosen(points)
        row = _summary(best) | {
            "dims": max(record["dimensions"] for record in best.best),
            "setting": _setting(best),
        }
        if (data, share) in rivals:
            rival = chosen(rivals[data, share])
            name = f"{METHODS[rival.method].title}, {rival.best[0]['preprocessing']}"
            row["best_rival"] = _summary(rival) | {"method": name}
        found.setdefault(data, {})[share] = row
    return found


def _pooled(records: Iterable[Record]) -> dict[tuple[str, str], list[Point]]:
    """Return the points of all methods and preparations, by data set and share of labels.

    In the order in which methods are listed, so that of equal ones the plainest is chosen.
    """
    pooled: dict[tuple[str, str], list[Point]] = defaultdict(list)
    for cell, methods in curves(records).items():
        for method in sorted(methods, key=list(METHODS).index):
            pooled[cell.data, cell.share].extend(methods[method])
    return pooled


#: What a record says of its work rather than of its setting.
_NOT_SETTINGS = {
    "method", "data", "split", "seed", "fraction", "validation", "test", "seconds", "versions",
    "dimensions",
}  # fmt: skip


def _setting(point: Point) -> str:
    """Return what was chosen, with all values that some split chose."""
    names = [name for name in point.best[0] if name not in _NOT_SETTINGS]
    told = {name: sorted({record[name] for record in point.best}) for name in names}
    values = [f"{name} {'/'.join(map(str, some))}" for name, some in told.items()]
    return f"{METHODS[point.method].title}: {', '.join(values)}"
