"""Milliseconds of one update on a Dask cluster, and the bytes that go over the wire.

    python benchmarks/cluster.py

A matrix of 20 million nonzeros on local clusters of one and two processes with one thread each,
against the same update in this process with one thread. The bytes are those of the loopback device,
which carries everything here: client and scheduler, scheduler and workers, workers among them.
Set against them is the formula of docs/scaling.md.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import psutil
import scipy.sparse as sp

from common import parser
from marginparts import nmf_alpha
from marginparts._compiled import cores
from records import Table

COLUMNS = ("workers", "rows", "columns", "nonzeros", "rank", "milliseconds", "ratio", "wire_bytes",
           "formula_bytes", "dask", "distributed")  # fmt: skip


def rows(seed: int, n: int, d: int, per_row: int) -> sp.csr_array:
    """Draw a block of rows with as many nonzeros each, the first columns more often."""
    rng = np.random.default_rng(seed)
    width = d // per_row
    columns = np.arange(per_row) * width + (width * rng.random((n, per_row)) ** 2).astype(np.int32)
    counts = rng.integers(1, 5, n * per_row).astype(np.float32)
    indptr = np.arange(0, n * per_row + 1, per_row, dtype=np.int32)
    return sp.csr_array((counts, columns.ravel().astype(np.int32), indptr), shape=(n, d))


def measured(X: Any, r: int, iterations: int) -> tuple[float, float]:
    """Return milliseconds and bytes of an iteration of ``mu``, between the last two looks."""
    stamps: list[tuple[int, float, int]] = []

    def note(progress: Any) -> None:
        sent = psutil.net_io_counters(pernic=True)["lo"].bytes_sent
        stamps.append((progress.iteration, time.perf_counter(), sent))

    nmf_alpha(X, r, solver="mu", max_iter=iterations, tol=0, random_state=0, callback=note)
    (i, begin, before), (j, end, after) = stamps[-2:]
    return 1e3 * (end - begin) / (j - i), (after - before) / (j - i)


def formula(workers: int, d: int, r: int, itemsize: int) -> int:
    """Return the bytes of an update: V to the workers by way of the scheduler, numerators back."""
    out = 1 + workers
    back = 2 if workers == 1 else workers + 2
    return (out + back) * d * r * itemsize


def main() -> None:
    options = parser(__doc__).parse_args()
    import dask
    import dask.array as da
    import distributed
    from dask import delayed
    from distributed import Client, LocalCluster

    n, d, per_row, r = (20_000 if options.quick else 200_000), 20_000, 100, 128
    iterations, blocks = (20 if options.quick else 40), 2
    table = Table("cluster", COLUMNS, options.quick)
    facts = {
        "rows": n, "columns": d, "nonzeros": n * per_row, "rank": r, "dask": dask.__version__,
        "distributed": distributed.__version__,
    }  # fmt: skip
    parts = [rows(i, n // blocks, d, per_row) for i in range(blocks)]
    X = sp.csr_array(sp.vstack(parts, format="csr"))
    with cores(1):
        local = min(measured(X, r, iterations)[0] for _ in range(2))
    table.add(workers="none", milliseconds=round(local, 1), **facts)
    print(f"in this process, one thread: {local:.0f} ms an update", flush=True)
    del X, parts
    for workers in (1, 2):
        cluster = LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0")
        with cluster, Client(cluster):
            chunks = [
                da.from_delayed(delayed(rows)(i, n // blocks, d, per_row), (n // blocks, d),
                                dtype=np.float32, meta=sp.csr_array((0, 0), dtype=np.float32))
                for i in range(blocks)
            ]  # fmt: skip
            D = da.concatenate(chunks).persist()
            distributed.wait(D)
            best, sent = min(measured(D, r, iterations) for _ in range(2))
            wire = formula(workers, d, r, 4)
            table.add(workers=workers, milliseconds=round(best, 1), ratio=round(best / local, 2),
                      wire_bytes=round(sent), formula_bytes=wire, **facts)  # fmt: skip
            print(f"{workers} workers: {best:.0f} ms, {best / local:.2f} of this process; "
                  f"{sent / 1e6:.1f} MB on the wire, {wire / 1e6:.1f} by the formula",
                  flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
