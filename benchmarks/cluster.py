"""Milliseconds of one update on a Dask cluster, and the bytes that go over the wire.

    python benchmarks/cluster.py [--workers 1 2 4]

A matrix of 20 million nonzeros on local clusters of processes with one thread each, against the
same update in this process with one thread (0 workers), in several rounds. The bytes are
those of the loopback device, which carries everything here: client and scheduler, scheduler and
workers, workers among them. Set against them is the formula of docs/scaling.md.
"""

from __future__ import annotations

import itertools
import time
from typing import Any

import numpy as np
import psutil
import scipy.sparse as sp

from common import parser
from marginparts import nmf_alpha
from marginparts._compiled import cores
from records import Table

COLUMNS = ("round", "workers", "rows", "columns", "nonzeros", "rank", "milliseconds", "wire_bytes",
           "formula_bytes", "dask", "distributed")  # fmt: skip
RANK = 128


def rows(seed: int, n: int, d: int, per_row: int) -> sp.csr_array:
    """Draw a block of rows with as many nonzeros each, the first columns more often."""
    rng = np.random.default_rng(seed)
    width = d // per_row
    columns = np.arange(per_row) * width + (width * rng.random((n, per_row)) ** 2).astype(np.int32)
    counts = rng.integers(1, 5, n * per_row).astype(np.float32)
    indptr = np.arange(0, n * per_row + 1, per_row, dtype=np.int32)
    return sp.csr_array((counts, columns.ravel().astype(np.int32), indptr), shape=(n, d))


def measured(X: Any, r: int, iterations: int) -> tuple[float, float]:
    """Return milliseconds and bytes of an iteration of ``mu``: the best ten, the first aside."""
    stamps: list[tuple[int, float, int]] = []

    def note(progress: Any) -> None:
        sent = psutil.net_io_counters(pernic=True)["lo"].bytes_sent
        stamps.append((progress.iteration, time.perf_counter(), sent))

    nmf_alpha(
        X, r, solver="mu", max_iter=iterations, tol=0, random_state=0, callback=note,
        backend="numba",
    )  # fmt: skip
    return min(
        (1e3 * (end - begin) / (j - i), (after - before) / (j - i))
        for (i, begin, before), (j, end, after) in itertools.pairwise(stamps)
    )


def formula(workers: int, d: int, r: int, itemsize: int) -> int:
    """Return the bytes of an update: V to the workers by way of the scheduler, numerators back."""
    out = 1 + workers
    back = 2 if workers == 1 else workers + 2
    return (out + back) * d * r * itemsize


def on_cluster(workers: int, shape: tuple[int, int, int, int], iterations: int) -> Any:
    """Return milliseconds and bytes of an iteration on a local cluster."""
    import dask.array as da
    from dask import delayed
    from distributed import Client, LocalCluster, wait

    blocks, n, d, per_row = shape
    cluster = LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0")
    with cluster, Client(cluster):
        meta = sp.csr_array((0, 0), dtype=np.float32)
        D = da.concatenate([
            da.from_delayed(delayed(rows)(i, n // blocks, d, per_row), (n // blocks, d),
                            dtype=np.float32, meta=meta)
            for i in range(blocks)
        ]).persist()  # fmt: skip
        wait(D)
        return measured(D, RANK, iterations)


def in_this_process(shape: tuple[int, int, int, int], iterations: int) -> Any:
    """Return the same for this process with one thread."""
    blocks, n, d, per_row = shape
    parts = [rows(i, n // blocks, d, per_row) for i in range(blocks)]
    with cores(1):
        return measured(sp.csr_array(sp.vstack(parts, format="csr")), RANK, iterations)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--workers", type=int, nargs="+", default=[1, 2], help="cluster sizes")
    options.add_argument("--rounds", type=int, default=3)
    options = options.parse_args()
    import dask
    import distributed

    n, d, per_row = (20_000 if options.quick else 200_000), 10_000, 100
    iterations = 20 if options.quick else 40
    shape = max(options.workers), n, d, per_row
    table = Table("cluster", COLUMNS, options.quick)
    facts = {
        "rows": n, "columns": d, "nonzeros": n * per_row, "rank": RANK,
        "dask": dask.__version__, "distributed": distributed.__version__,
    }  # fmt: skip
    found: dict[int, list[float]] = {workers: [] for workers in (0, *options.workers)}
    for number in range(options.rounds):  # the machine has good and bad minutes: all get some
        for workers, times in found.items():
            wire = {}
            if workers:
                milliseconds, sent = on_cluster(workers, shape, iterations)
                wire = {"wire_bytes": round(sent), "formula_bytes": formula(workers, d, RANK, 4)}
            else:
                milliseconds, _ = in_this_process(shape, iterations)
            times.append(milliseconds)
            table.add(round=number + 1, workers=workers, milliseconds=round(milliseconds, 1),
                      **wire, **facts)  # fmt: skip
            print(f"{workers} workers: {milliseconds:.0f} ms an update {wire or ''}", flush=True)
    best = {workers: min(times) for workers, times in found.items()}
    first = options.workers[0]
    for workers in options.workers:
        print(f"{workers} workers, best of {options.rounds}: {best[workers]:.0f} ms, "
              f"{best[workers] / best[0]:.2f} of this process alone, "
              f"{best[first] / best[workers]:.2f} x {first} workers")  # fmt: skip


if __name__ == "__main__":
    main()
