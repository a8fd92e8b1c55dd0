"""Cost of an update for each nonzero, against nonzeros, rank and threads.

    python benchmarks/scaling.py

Synthetic word counts with power-law frequencies, float32, ours against the C loop. The largest
matrix is 1,000,000 x 100,000 with about 1e8 nonzeros; the peak of memory is below 12 GiB.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numba

import c_loop
from common import parser, race, start
from corpora import DESCRIBED, described, power_law_counts
from marginparts.backends.cpu.storage import SparseMatrix
from records import Table
from updates import updates_of

COLUMNS = (
    "series", "method", "measured", "rank", "threads", *DESCRIBED, "best_seconds",
    "median_seconds", "rounds", "nanoseconds_per_nonzero", "ratio",
)  # fmt: skip

#: Documents and words: the vocabulary grows with the root of the text. Near 100 nonzeros a row.
SIZES = (
    (10_000, 10_000),
    (30_000, 17_000),
    (100_000, 32_000),
    (300_000, 55_000),
    (1_000_000, 100_000),
)
MIDDLE = (200_000, 45_000)
RANKS = (16, 32, 64, 128, 256)
_LOG_LENGTH = 4.62


def drawn(n: int, d: int) -> SparseMatrix:
    """Draw a matrix, and make its transpose."""
    began = time.perf_counter()
    X = SparseMatrix(power_law_counts(n, d, log_length=_LOG_LENGTH))
    X.T  # noqa: B018 - it is made when first asked for
    seconds = time.perf_counter() - began
    print(f"{n} x {d}, {X.nnz} nonzeros (drawn in {seconds:.0f} s)", flush=True)
    return X


def measure(table: Table, series: str, X: SparseMatrix, r: int, threads: int, rounds: int) -> None:
    """Time an update at one size, rank and number of threads."""
    numba.set_num_threads(threads)
    c_loop.set_threads(threads)
    updates = updates_of(X, *start(X.csr, r))
    entrants: dict[Any, Any] = {}
    for name, update in updates.items():
        entrants[name, "kernels"], entrants[name, "whole update"] = update.kernels, update.whole
    times = race(entrants, rounds, settle=True)
    for (name, what), found in times.items():
        ratio = found.median_seconds / times["marginparts", what].median_seconds
        cost = 1e9 * found.median_seconds / X.nnz
        table.add(
            series=series, method=name, measured=what, rank=r, threads=threads,
            nanoseconds_per_nonzero=round(cost, 3), ratio=round(ratio, 3), **found._asdict(),
            **described("synthetic power law", X.csr),
        )  # fmt: skip
        print(
            f"  r = {r}, {threads} threads, {name}, {what}: {found.best_seconds:.4f} s at best, "
            f"{cost:.2f} ns a nonzero, x {ratio:.2f}",
            flush=True,
        )


def arguments() -> argparse.Namespace:
    options = parser(__doc__)
    options.add_argument("--largest", type=int, default=len(SIZES), help="how many of the sizes")
    return options.parse_args()


def main() -> None:
    options = arguments()
    quick, most = options.quick, numba.get_num_threads()
    table = Table("scaling", COLUMNS, quick)
    for n, d in SIZES[: 1 if quick else options.largest]:
        X = drawn(n // 20, d // 4) if quick else drawn(n, d)
        rounds = 3 if quick else max(5, min(31, round(1e8 / X.nnz)))
        measure(table, "nonzeros", X, 64, most, rounds)
        del X
    X = drawn(600, 3000) if quick else drawn(*MIDDLE)
    for r in RANKS[:2] if quick else RANKS:
        for threads in sorted({1, most}):
            measure(table, "rank and threads", X, r, threads, 2 if quick else 7)


if __name__ == "__main__":
    main()
