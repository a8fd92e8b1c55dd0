"""Semi-NMF-alpha an iteration, beside plain semi-NMF in dense NumPy (Ding, Li & Jordan 2010).

python benchmarks/semi.py [--rows 20000] [--columns 256] [--parts 64] [--iterations 50]
python benchmarks/semi.py --memory --rows 300000 [--mapped]

Both run on one thread, and take turns; what counts is the ratio. Ours has 40 margin components
besides. The error of the data after the same number of iterations is shown too. With --memory it is
the peak of a fit with labels, beside the size of the data. With --mapped the data is in a file that
is mapped, and what counts is the memory that is not the file's.
"""

import argparse
import resource
import tempfile
import threading
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.utils import gen_batches
from threadpoolctl import threadpool_limits

from marginparts import SemiNMFAlpha
from marginparts.losses.least_squares import squared_norm
from marginparts.losses.semi import SemiProblem
from marginparts.solve.loop import minimize
from marginparts.solve.semi import semi_codes


def plain_iteration(X, H):
    """One iteration as the paper of semi-NMF writes it."""
    V = X.T @ H @ np.linalg.pinv(H.T @ H)
    XV, G = X @ V, V.T @ V
    up = (np.abs(XV) + XV) / 2 + H @ ((np.abs(G) - G) / 2)
    down = (np.abs(XV) - XV) / 2 + H @ ((np.abs(G) + G) / 2)
    return V, H * np.sqrt(up / np.maximum(down, 1e-30))


def own_memory():
    """Return the MiB of this process that belong to no file."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith("RssAnon"))


def mapped(n, d, r):
    """Print the largest memory of a fit to rows in a file, and the file's size."""
    rng, y = np.random.default_rng(0), np.full(n, -1)
    y[:200] = np.arange(200) % 4
    basis, peak, done = rng.normal(size=(20, d)).astype(np.float32), [0.0], threading.Event()

    def watch():
        while not done.wait(0.05):
            peak[0] = max(peak[0], own_memory())

    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "vectors.npy"
        X = np.lib.format.open_memmap(path, "w+", np.float32, (n, d))
        for some in gen_batches(n, 10_000):
            X[some] = rng.random((min(some.stop, n) - some.start, 20), np.float32) @ basis
        del X
        X = np.load(path, mmap_mode="r")
        SemiNMFAlpha(8, max_iter=12, tol=0, random_state=0).fit(X[:2000], y[:2000])  # compiled
        before, began = own_memory(), time.perf_counter()
        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        SemiNMFAlpha(r, max_iter=12, tol=0, random_state=0).fit(X, y)
        done.set()
        watcher.join()
    took, data = time.perf_counter() - began, n * d * 4 / 2**20
    what = f"{n} rows, {d} columns, {r} parts, float32: {data:.0f} MiB in a mapped file"
    share = (peak[0] - before) / data
    print(f"{what}, {share:.2f} x of memory beside it at most, 12 iterations in {took:.0f} s")


def memory(n, d, r):
    """Print the largest memory of a fit, less what there was before the data."""
    rng, y = np.random.default_rng(0), np.full(n, -1)
    y[:200] = np.arange(200) % 4
    basis = rng.normal(size=(20, d)).astype(np.float32)

    def fit(rows, parts):
        X = np.empty((rows, d), np.float32)
        for some in gen_batches(rows, 10_000):
            X[some] = rng.random((min(some.stop, rows) - some.start, 20), np.float32) @ basis
        SemiNMFAlpha(parts, max_iter=12, tol=0, random_state=0).fit(X, y[:rows])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit(2000, 8)  # compiled once
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        fit(n, r)
    peak, data = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, n * d * 4 / 2**20
    what = f"{n} rows, {d} columns, {r} parts, float32: {data:.0f} MiB of data"
    print(f"{what}, {(peak - before) / data:.2f} x at most")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, value in (("rows", 20_000), ("columns", 256), ("parts", 64), ("iterations", 50)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--mapped", action="store_true")
    args = parser.parse_args()
    if args.memory:
        (mapped if args.mapped else memory)(args.rows, args.columns, args.parts)
    else:
        speed(args)


def speed(args):
    """Print the time of an iteration, and how far it gets."""
    rng = np.random.default_rng(0)
    r, d = args.parts, args.columns
    X = rng.random((args.rows, r)) ** 3 @ rng.normal(size=(r, d)) + rng.normal(size=(args.rows, d))
    X = np.ascontiguousarray(X / np.linalg.norm(X, axis=1)[:, None], dtype=np.float32)
    more = (rng.random((40, args.rows)) < 0.01).astype(np.float32) @ X
    size = np.sqrt(3 * squared_norm(X) / squared_norm(more))
    samples = np.vstack([X, more * np.float32(size)])
    H = rng.random((len(samples), r), dtype=np.float32)
    V = SemiProblem(X).update({"V": np.zeros((d, r), np.float32), "H": H[: args.rows]}, "V").factor
    H[args.rows :] = semi_codes(samples[args.rows :], V, 40)
    print(f"{args.rows} rows, {d} columns, {r} parts, float32, one thread")
    with threadpool_limits(1):
        import numba

        numba.set_num_threads(1)
        times = {"plain NumPy": [], "mu": [], "cd": []}
        losses = {}
        for name, n in (("mu", 5), ("cd", 5)):  # compiled once
            minimize(SemiProblem(X[:100], 1.0), {"V": V, "H": H[:100]}, solver=name, max_iter=n)
        for _ in range(3):
            began, codes = time.process_time(), H[: args.rows].copy()
            for _ in range(args.iterations):
                V_plain, codes = plain_iteration(X, codes)
            times["plain NumPy"].append(time.process_time() - began)
            losses["plain NumPy"] = float(np.sum((X - codes @ V_plain.T) ** 2))
            for name in ("mu", "cd"):
                problem = SemiProblem(samples, squared_norm(samples))
                began = time.process_time()
                run = minimize(
                    problem, {"V": V, "H": H.copy()}, solver=name, max_iter=args.iterations, tol=0
                )
                times[name].append(time.process_time() - began)
                codes = run.state["H"][: args.rows]
                losses[name] = float(np.sum((X - codes @ run.state["V"].T) ** 2))
    base = min(times["plain NumPy"])
    for name, own in times.items():
        each, ratio = min(own) / args.iterations, base / min(own)
        what = f"{1000 * each:7.1f} ms an iteration, {ratio:5.2f} x plain NumPy"
        print(f"{name:12s} {what}, data's error {losses[name]:.1f}")


if __name__ == "__main__":
    main()
