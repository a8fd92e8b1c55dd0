"""Growth of resident memory over a fit on News counts, r = 64, float32.

    MARGINPARTS_DATA=path/to/data python benchmarks/memory.py

The growth is the peak during the fit less what the process held before, with data, start and
compiled kernels in place. It is compared with the bytes of X, its transpose, V and H. Each fit has
a process of its own.
"""

from __future__ import annotations

import ctypes
import gc
import json
import resource
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import numba

from common import parser, start, warm_up
from corpora import DESCRIBED, news_counts, partly_labeled
from marginparts import margin_directions, nmf_alpha
from records import Table

COLUMNS = (
    "solver", "directions", "start", "rank", "growth_bytes", "needed_bytes", "ratio", *DESCRIBED,
    "threads",
)  # fmt: skip


def growth(solver: str, directions: str, first: str, quick: bool) -> dict[str, Any]:
    """Fit once in this process and return what it took."""
    corpus = news_counts(quick)
    X, r = corpus.X, 16 if quick else 64
    H, V = start(X, r)
    S = None
    if directions != "none":
        y = partly_labeled(corpus.y, 0.2)
        S = margin_directions(X, y, features="hellinger", multiclass=directions, random_state=0)
    warm_up(X, H, V, S, solver)
    needed = 2 * (X.data.nbytes + X.indices.nbytes) + 4 * sum(X.shape) + H.nbytes + V.nbytes
    facts = {"rank": r, "threads": numba.get_num_threads(), **corpus.described}
    init: Any = "random" if first == "random" else (H, V)
    _give_back()
    before = _forget_peak()
    result = nmf_alpha(
        X, r, S=S, lam=3.0, init=init, solver=solver, max_iter=20, tol=0, random_state=0
    )
    grown = _peak() - before
    assert result.solver == solver
    return {
        "growth_bytes": grown,
        "needed_bytes": needed,
        "ratio": round(grown / needed, 3),
    } | facts


def _give_back() -> None:
    """Return freed memory to the system: what the fit would find there would not be counted."""
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except AttributeError:
        print("This C library keeps freed memory: growth may be understated.", file=sys.stderr)


def _forget_peak() -> int:
    """Set the peak back to what is held now, and return that in bytes."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        print("The peak cannot be set back here: growth may be overstated.", file=sys.stderr)
    return 1024 * _status("VmRSS")


def _peak() -> int:
    """Return the peak in bytes."""
    found = _status("VmHWM")
    return 1024 * (found or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def _status(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith(f"{field}:")), 0)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--case", nargs=3, metavar=("SOLVER", "DIRECTIONS", "START"),
                         help="fit once, here, and print the result")  # fmt: skip
    found = options.parse_args()
    if found.case:
        print(json.dumps(growth(*found.case, quick=found.quick)))
        return
    if not Path("/proc/self/status").exists():
        sys.exit("Resident memory is read from /proc, which only Linux has.")
    table = Table("memory", COLUMNS, found.quick)
    print("solver, directions, start: growth / (X + transpose + V + H)")
    cases = product(("mu", "mue", "cd"), ("none", "ovr"), ("given", "random"))
    for solver, directions, first in cases:
        command = [sys.executable, __file__, "--case", solver, directions, first]
        done = subprocess.run(
            [*command, *(["--quick"] if found.quick else [])], stdout=subprocess.PIPE, check=True,
            text=True,
        )  # fmt: skip
        case = json.loads(done.stdout.splitlines()[-1])
        table.add(solver=solver, directions=directions, start=first, **case)
        megabytes = tuple(round(case[key] / 2**20) for key in ("growth_bytes", "needed_bytes"))
        print(f"  {solver:4s} {directions:5s} {first:7s} {megabytes[0]:5d} / {megabytes[1]} MiB"
              f" = {case['ratio']:.2f}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
