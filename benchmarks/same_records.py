"""Whether the code of today gives the records of Table 2 that are in the repository.

    MARGINPARTS_DATA=path/to/data python benchmarks/same_records.py [--data mnist] [--seconds 60]

Units of one split whose records took no longer than so many seconds are computed again, into no
file, and compared with what is in ``results/records``: every field but seconds and versions.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from joblib import Parallel, delayed

from common import parser
from marginparts.experiments.plan import TABLE_2, Study, Unit
from marginparts.experiments.reproduce import Results
from marginparts.experiments.runner import run_unit
from marginparts.experiments.store import Record

FOLDER = Path(__file__).parent.parent / "results"

#: Fields that are not what was found.
OTHERS = ("seconds", "versions")
SCORES = ("validation", "test")


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--data", action="append", help="mnist, news, ...; all by default")
    options.add_argument("--method", action="append")
    options.add_argument("--split", type=int, default=0)
    options.add_argument("--seconds", type=float, default=60.0, help="the longest unit to compute")
    options.add_argument("--jobs", type=int, default=1)
    given = options.parse_args()
    total: Counter[str] = Counter()
    for study in TABLE_2:
        if given.data and study.name not in given.data:
            continue
        found = recorded(study)
        units = [
            unit
            for unit in study.units()
            if unit.split == given.split
            and unit.key in found
            and (not given.method or unit.method in given.method)
            and sum(record["seconds"] for record in found[unit.key]) <= given.seconds
        ]
        units = units[:2] if given.quick else units
        again = Parallel(n_jobs=given.jobs, return_as="generator")(
            delayed(run_unit)(unit) for unit in units
        )
        for unit, records in zip(units, again, strict=True):
            total += judged(unit, found[unit.key], records)
    print(f"{total['same']} of {total.total()} records are the same")


def recorded(study: Study) -> dict[str, list[Record]]:
    """Return the records of each unit that is complete."""
    store = Results(FOLDER).store(study)
    return {key: list(store.of({key})) for key in store.units()}


def judged(unit: Unit, before: list[Record], now: list[Record]) -> Counter[str]:
    """Print how many records of a unit are there again, and by how much scores differ.

    A search that goes on from its best settings may take another way after a tie.
    """
    scores = {settings(record): record["test"] for record in now}
    gaps = [abs(scores.get(settings(r), float("inf")) - r["test"]) for r in before]
    same = sum(bare(record) in map(bare, now) for record in before)
    name = f"{unit.data}, {unit.method}, {unit.fractions}, {unit.ranks or 'no ranks'}"
    said = f"{same} of {len(before)} records are the same"
    if same < len(before):
        tried = [gap for gap in gaps if gap < float("inf")]
        most = max(tried, default=0.0)
        said += f"; {len(gaps) - len(tried)} not tried, others differ by up to {most:.3f}"
    print(f"{name}: {said}", flush=True)
    return Counter(same=same, different=len(before) - same)


def bare(record: Record) -> Record:
    """Return what was found."""
    return {key: value for key, value in record.items() if key not in OTHERS}


def settings(record: Record) -> str:
    """Return what was tried."""
    tried = {key: value for key, value in bare(record).items() if key not in SCORES}
    return json.dumps(tried, sort_keys=True)


if __name__ == "__main__":
    main()
