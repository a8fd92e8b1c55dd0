"""How fast a fit is whose data is on disk, and how much memory its process takes.

A matrix is written to disk, row after row. One process fits it under a memory limit; before and
after it another one fits as much of it in memory as is given it. Times are of an update of V and H
after the first, so that neither the copy in the scratch folder nor a first transpose is in them.
Beside the seconds that pass there are those of all processors: they say more on a busy machine.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from common import parser
from marginparts import nmf_alpha, open_rows
from marginparts.losses.nmf_alpha import NMFAlphaProblem
from marginparts.rows.disk._limits import bytes_of, shown
from records import Table

COLUMNS = (
    "rows", "columns", "nonzeros", "rank", "bytes_on_disk", "memory_limit", "peak_bytes",
    "store_seconds", "iteration_seconds", "ns_a_nonzero", "memory_nonzeros", "memory_peak_bytes",
    "memory_ns_a_nonzero", "relative_speed", "cpu_ns_a_nonzero", "memory_cpu_ns_a_nonzero",
    "relative_cpu_speed", "load", "loss_fell",
)  # fmt: skip

#: Nonzeros of a row, columns, and rows drawn at a time.
_IN_A_ROW, _COLUMNS, _CHUNK = 200, 50_000, 50_000


def write_matrix(folder: Path, size: int) -> dict[str, int]:
    """Write the arrays of a CSR matrix of so many bytes, in float32 and with indices of 32 bits.

    Columns of a row are sums of random gaps, so they rise; values are larger in columns that
    belong to the row's topic, so there are parts to be found.
    """
    n, rng = size // (_IN_A_ROW * 8), np.random.default_rng(0)
    gap = _COLUMNS // _IN_A_ROW
    names = {"data": np.float32, "indices": np.int32}
    files = {name: (folder / f"{name}.npy").open("wb") for name in names}
    for name, file in files.items():
        head = {"descr": np.dtype(names[name]).str, "fortran_order": False}
        np.lib.format.write_array_header_1_0(file, {**head, "shape": (n * _IN_A_ROW,)})
    for first in range(0, n, _CHUNK):
        rows = min(_CHUNK, n - first)
        indices = np.cumsum(rng.integers(1, gap + 1, (rows, _IN_A_ROW), np.int32), axis=1) - 1
        data = rng.random((rows, _IN_A_ROW), np.float32) + np.float32(0.01)
        topic = (np.arange(first, first + rows) % 10)[:, None]
        data[indices // (_COLUMNS // 10) == topic] *= 8
        files["indices"].write(indices.astype(np.int32).data)
        files["data"].write(data.data)
    for file in files.values():
        file.close()
    np.save(folder / "indptr.npy", np.arange(n + 1, dtype=np.int64) * _IN_A_ROW)
    np.save(folder / "shape.npy", np.array([n, _COLUMNS]))
    return {"rows": n, "columns": _COLUMNS, "nonzeros": n * _IN_A_ROW}


def head_of(folder: Path, nonzeros: int) -> sp.csr_array:
    """Return the first rows, in memory."""
    n = nonzeros // _IN_A_ROW
    data, indices = (
        np.array(np.load(folder / f"{name}.npy", mmap_mode="r")[: n * _IN_A_ROW])
        for name in ("data", "indices")
    )
    indptr = np.arange(n + 1, dtype=np.int32) * _IN_A_ROW
    return sp.csr_array((data, indices, indptr), shape=(n, _COLUMNS))


def fit(folder: Path, scratch: Path, limit: str, nonzeros: int, r: int, iterations: int) -> Any:
    """Fit here, on disk (with a limit) or in memory, and return what it took."""
    X = (
        open_rows(folder, memory_limit=limit, scratch=scratch)
        if limit
        else head_of(folder, nonzeros)
    )
    times: list[tuple[float, float]] = []
    plain = NMFAlphaProblem.update

    def timed(self: Any, *args: Any, **options: Any) -> Any:
        before = _clocks()
        step = plain(self, *args, **options)
        times.append(tuple(after - b for after, b in zip(_clocks(), before, strict=True)))
        return step

    NMFAlphaProblem.update = timed  # type: ignore[method-assign]
    began = time.perf_counter()
    result = nmf_alpha(X, r, solver="mu", max_iter=iterations, tol=0, random_state=0)
    whole = time.perf_counter() - began
    passed, used = (
        statistics.median(V[k] + H[k] for V, H in zip(times[2::2], times[3::2], strict=True))
        for k in (0, 1)
    )
    return {
        "iteration_seconds": passed, "ns_a_nonzero": 1e9 * passed / X.nnz, "nonzeros": X.nnz,
        "cpu_ns_a_nonzero": 1e9 * used / X.nnz,
        "store_seconds": whole - result.history[-1].seconds, "peak_bytes": peak(),
        "loss_fell": bool(result.losses[-1] < result.losses[0]),
    }  # fmt: skip


def _clocks() -> tuple[float, float]:
    """Return the seconds that have passed, and those of all processors."""
    return time.perf_counter(), time.process_time()


def peak() -> int:
    """Return the largest resident memory of this process so far, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) * 1024


def in_a_child(*arguments: Any) -> Any:
    """Run `fit` in a process of its own, whose peak is no other's."""
    command = [sys.executable, __file__, "--fit", *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--size", nargs="+", default=["160MB"], help="bytes of the matrix")
    options.add_argument("--limit", default="700MB", help="memory limit of the fit on disk")
    options.add_argument("--rank", nargs="+", type=int, default=[32, 64])
    options.add_argument("--iterations", type=int, default=8)
    options.add_argument("--in-memory", type=int, default=20_000_000,
                         help="nonzeros of the fit in memory")  # fmt: skip
    options.add_argument("--folder", default=None, help="where the matrix and the scratch go")
    options.add_argument("--name", default="out_of_core", help="of the CSV file")
    options.add_argument("--fit", nargs=6, help="fit once, here, and print the result")
    found = options.parse_args()
    if found.fit:
        folder, scratch, limit, *numbers = found.fit
        print(json.dumps(fit(Path(folder), Path(scratch), limit, *map(int, numbers))))
        return
    if not Path("/proc/self/status").exists():
        sys.exit("Resident memory is read from /proc, which only Linux has.")
    if found.quick:
        found.size, found.limit, found.rank, found.iterations = ["40MB"], "520MB", [8], 3
    table = Table(found.name, COLUMNS, found.quick)
    for size in found.size:
        with tempfile.TemporaryDirectory(dir=found.folder) as name:
            measure(Path(name), bytes_of(size), found, table)


def measure(folder: Path, size: int, options: Any, table: Table) -> None:
    """Write a matrix and fit it at each rank."""
    began = time.perf_counter()
    described = write_matrix(folder, size)
    on_disk = sum(file.stat().st_size for file in folder.iterdir())
    print(f"{described['rows']:,} x {described['columns']:,}, {described['nonzeros']:,} nonzeros: "
          f"{on_disk / 2**30:.2f} GiB written in {time.perf_counter() - began:.0f} s",
          flush=True)  # fmt: skip
    few = min(options.in_memory, described["nonzeros"])
    for r in options.rank:
        in_memory = (folder, folder, "", few, r, options.iterations)
        before = in_a_child(*in_memory)
        disk = in_a_child(folder, folder, options.limit, 0, r, options.iterations)
        after = in_a_child(*in_memory)
        memory = {key: (before[key] + after[key]) / 2 for key in before}
        speed, work = (memory[key] / disk[key] for key in ("ns_a_nonzero", "cpu_ns_a_nonzero"))
        table.add(
            **{**disk, **described}, rank=r, bytes_on_disk=on_disk,
            memory_limit=bytes_of(options.limit), memory_nonzeros=few,
            memory_peak_bytes=memory["peak_bytes"], memory_ns_a_nonzero=memory["ns_a_nonzero"],
            memory_cpu_ns_a_nonzero=memory["cpu_ns_a_nonzero"], relative_speed=speed,
            relative_cpu_speed=work, load=os.getloadavg()[1],
        )  # fmt: skip
        print(
            f"rank {r}, limit {shown(bytes_of(options.limit))}: peak {shown(disk['peak_bytes'])}, "
            f"stored in {disk['store_seconds']:.1f} s\n"
            f"  on disk: {disk['iteration_seconds']:.2f} s an iteration, "
            f"{disk['ns_a_nonzero']:.2f} ns a nonzero, {disk['cpu_ns_a_nonzero']:.2f} ns of cores\n"
            f"  in memory: {few:,} nonzeros, peak {shown(memory['peak_bytes'])}, "
            f"{before['ns_a_nonzero']:.2f} ns before and {after['ns_a_nonzero']:.2f} ns after, "
            f"{memory['cpu_ns_a_nonzero']:.2f} ns of cores\n"
            f"  speed on disk: {speed:.2f} of that in memory, {work:.2f} by the time of the cores; "
            f"load {os.getloadavg()[1]:.1f}",
            flush=True,
        )  # fmt: skip


if __name__ == "__main__":
    main()
