"""The long form of the attack: ``python tests/fuzz/campaign.py --cases 10000 --seed 1``.

Each target runs in a process of its own, so that a crash, a hang and the memory that it takes are
seen from outside. A line of the log says what was seen; failures follow with their numbers.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parent)]

#: Seconds without a finished case after which a process counts as hung. Compiling takes some.
HUNG = 120.0

#: Bytes that a process may take.
MEMORY = 1 << 30


def work(name: str, seed: int, first: int, n: int, folder: Path, until: float) -> None:
    """Run cases in this process, and say after each which it was and what was found."""
    from attacking import Outcome, tried
    from targets import TARGETS

    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # libraries print, too
    attack, case = TARGETS[name].prepare(folder), first
    print(json.dumps({"ready": True}), file=out)
    while case < first + n and time.time() < until:
        outcome = Outcome()
        tried(attack, seed, case, outcome)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        found = {
            "case": case, "counts": outcome.counts, "seconds": outcome.slowest, "peak": peak,
            "failures": outcome.failures,
        }  # fmt: skip
        print(json.dumps(found), file=out)
        case += 1


@dataclass
class Record:
    """What was seen of a target with one seed."""

    target: str
    seed: int
    case: int = 0
    refused: int = 0
    worked: int = 0
    failed: int = 0
    slowest: float = 0.0
    peak: int = 0
    minutes: float = 0.0
    failures: list[tuple[int, str]] = field(default_factory=list)

    def __str__(self) -> str:
        line = (
            f"{self.target:22} {self.seed:4} {self.case:6} {self.refused:7} {self.worked:6} "
            f"{self.failed:6} {self.slowest:6.2f} {self.peak >> 20:8} {self.minutes:5.1f}"
        )
        more = [f"    case {case}: {why}" for case, why in self.failures[:20]]
        return "\n".join([line, *more])


HEAD = "target                 seed  cases refused worked failed  max s  max MiB  min"


def campaign(record: Record, n: int, minutes: float) -> Record:
    """Attack one target until there were n cases, or for some minutes."""
    began, until = time.time(), time.time() + 60 * minutes
    while record.case < n and time.time() < until:
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+") as said:
            command = [
                sys.executable, __file__, "--worker", record.target, "--seed", str(record.seed),
                "--first", str(record.case), "--cases", str(n - record.case), "--until", str(until),
                "--folder", folder,
            ]  # fmt: skip
            child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said, text=True)
            while line := _line(child, HUNG):
                _add(record, json.loads(line))
            if line is None:
                child.send_signal(signal.SIGKILL)
            if child.wait() != 0:
                said.seek(0)
                last = said.read().strip().splitlines()[-1:] or [""]
                why = "hung" if line is None else f"ended with {child.returncode}: {last[0]}"
                record.failures.append((record.case, why))
                record.failed += 1
                record.case += 1
    if record.peak > MEMORY:
        record.failed += 1
        record.failures.append((record.case, f"{record.peak >> 20} MiB"))
    record.minutes += (time.time() - began) / 60
    return record


def _add(record: Record, found: dict[str, Any]) -> None:
    if "case" not in found:
        return
    record.case = found["case"] + 1
    for name, count in found["counts"].items():
        setattr(record, name, getattr(record, name) + count)
    record.slowest = max(record.slowest, found["seconds"])
    record.peak = max(record.peak, found["peak"])
    record.failures += found["failures"]


def _line(child: subprocess.Popen[str], seconds: float) -> str | None:
    """Return the next line of a process, "" at its end, None if there is none for long.

    Seconds in which this process or the other is paused do not count.
    """
    import select

    assert child.stdout is not None
    state = Path(f"/proc/{child.pid}/stat")
    while seconds > 0:
        ready, _, _ = select.select([child.stdout], [], [], 1.0)
        if ready:
            return child.stdout.readline()
        paused = state.exists() and state.read_text().rpartition(")")[2].split()[0] == "T"
        seconds -= 0.0 if paused else 1.0
    return None


def _all_targets() -> list[str]:
    from targets import TARGETS  # which imports all that is attacked

    return list(TARGETS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*")
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=60, help="for one target, at most")
    parser.add_argument("--state", type=Path, help="a folder, to go on from what is there")
    parser.add_argument("--show", action="store_true", help="print what is there, and end")
    parser.add_argument("--worker")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--until", type=float)
    parser.add_argument("--folder", type=Path)
    asked = parser.parse_args()
    if asked.worker:
        work(asked.worker, asked.seed, asked.first, asked.cases, asked.folder, asked.until)
        return
    print(HEAD, flush=True)
    if asked.show:
        order = _all_targets()
        records = [Record(**json.loads(path.read_text())) for path in asked.state.iterdir()]
        for record in sorted(records, key=lambda each: (order.index(each.target), each.seed)):
            print(record)
        return
    for name in asked.targets or _all_targets():
        record, kept = Record(name, asked.seed), None
        if asked.state:
            kept = asked.state / f"{name} {asked.seed}.json"
            if kept.exists():
                record = Record(**json.loads(kept.read_text()))
        campaign(record, asked.cases, asked.minutes)
        print(record, flush=True)
        if kept:
            kept.write_text(json.dumps(asdict(record)))


if __name__ == "__main__":
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
        os.environ.setdefault(name, "1")  # data are tiny, and cases count their computing
    main()
