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
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parent)]

#: Seconds without a finished case after which a process counts as hung. Compiling takes some.
HUNG = 120.0

#: Bytes that a process may take.
MEMORY = 1 << 30


def work(name: str, seed: int, first: int, n: int, folder: Path, until: float) -> None:
    """Run cases in this process, and say after each which it was and what was found."""
    from attacking import Outcome, tried
    from targets import TARGETS

    attack, case = TARGETS[name].prepare(folder), first
    print(json.dumps({"ready": True}), flush=True)
    while case < first + n and time.time() < until:
        outcome = Outcome()
        tried(attack, seed, case, outcome)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        found = {
            "case": case, "counts": outcome.counts, "seconds": outcome.slowest, "peak": peak,
            "failures": outcome.failures,
        }  # fmt: skip
        print(json.dumps(found), flush=True)
        case += 1


def campaign(name: str, seed: int, n: int, minutes: float) -> str:
    """Attack one target; return the lines of the log."""
    began, failures, case = time.time(), [], 0
    counts = {"refused": 0, "worked": 0, "failed": 0}
    slowest, peak = 0.0, 0
    until = began + 60 * minutes
    while case < n and time.time() < until:
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+") as said:
            command = [
                sys.executable, __file__, "--worker", name, "--seed", str(seed), "--first",
                str(case), "--cases", str(n - case), "--until", str(until), "--folder", folder,
            ]  # fmt: skip
            child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said, text=True)
            why = ""
            while True:
                line = _line(child, HUNG)
                if not line:
                    why = "hung" if line is None else ""
                    break
                found = json.loads(line)
                if "case" not in found:
                    continue
                case = found["case"] + 1
                for key, value in found["counts"].items():
                    counts[key] += value
                slowest, peak = max(slowest, found["seconds"]), max(peak, found["peak"])
                failures += found["failures"]
            if child.poll() is None and why:
                child.send_signal(signal.SIGKILL)
            if child.wait() != 0:
                said.seek(0)
                last = said.read().strip().splitlines()[-1:] or [""]
                failures.append((case, why or f"the process ended with {child.returncode}: {last}"))
                counts["failed"] += 1
                case += 1
    done = sum(counts.values())
    if peak > MEMORY:
        failures.append((-1, f"{peak >> 20} MiB"))
    line = (
        f"{name:22} {seed:4} {done:6} {counts['refused']:7} {counts['worked']:6} "
        f"{len(failures):6} {slowest:7.2f} {peak >> 20:6} {(time.time() - began) / 60:5.1f}"
    )
    return "\n".join([line, *(f"    case {case}: {why}" for case, why in failures[:40])])


HEAD = "target                 seed  cases refused worked failed  max s  max MiB  min"


def _line(child: subprocess.Popen[str], seconds: float) -> str | None:
    """Return the next line of a process, "" at its end, None if there is none for long."""
    import select

    assert child.stdout is not None
    ready, _, _ = select.select([child.stdout], [], [], seconds)
    return child.stdout.readline() if ready else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*")
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=60, help="for one target, at most")
    parser.add_argument("--log", type=Path)
    parser.add_argument("--worker")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--until", type=float)
    parser.add_argument("--folder", type=Path)
    asked = parser.parse_args()
    if asked.worker:
        work(asked.worker, asked.seed, asked.first, asked.cases, asked.folder, asked.until)
        return
    from targets import TARGETS

    print(HEAD, flush=True)
    for name in asked.targets or TARGETS:
        lines = campaign(name, asked.seed, asked.cases, asked.minutes)
        print(lines, flush=True)
        if asked.log:
            with asked.log.open("a") as log:
                log.write(lines + "\n")


if __name__ == "__main__":
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    main()
