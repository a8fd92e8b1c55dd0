"""Semi-NMF-alpha an iteration, beside plain semi-NMF in dense NumPy (Ding, Li & Jordan 2010).

python benchmarks/semi.py [--rows 20000] [--columns 256] [--parts 64] [--iterations 50]
python benchmarks/semi.py --memory --rows 300000 [--mapped] [--backend torch]

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


def filled(X, rng):
    """Fill rows with a nonnegative mixture of 20 directions, some at a time."""
    basis = rng.normal(size=(20, X.shape[1])).astype(np.float32)
    for some in gen_batches(len(X), 10_000):
        X[some] = rng.random((min(some.stop, len(X)) - some.start, 20), np.float32) @ basis
    return X


def labels(n):
    """Return labels of 200 rows, of four classes."""
    return np.where(np.arange(n) < 200, np.arange(n) % 4, -1)


def fit(X, r, backend, iterations):
    """Fit parts, and return the model."""
    model = SemiNMFAlpha(r, max_iter=iterations, tol=0, backend=backend, random_state=0)
    return model.fit(X, labels(len(X)))


def on_the_card(X, model, before):
    """Print the peak of the card's memory, less what there was, and the time of an iteration."""
    import torch

    first, last = model.history_[1], model.history_[-1]
    each = (last.seconds - first.seconds) / (last.iteration - first.iteration)
    peak, held = (
        (most() - before) / X.nbytes
        for most in (torch.cuda.max_memory_allocated, torch.cuda.max_memory_reserved)
    )
    began = time.perf_counter()
    model.transform(X)
    took = time.perf_counter() - began
    print(
        f"{torch.cuda.get_device_name()}: {peak:.2f} x the data allocated at most, {held:.2f} x "
        f"reserved, {1000 * each:.1f} ms an iteration, {took:.1f} s for codes of all rows"
    )


def compiled(X, backend):
    """Fit a few rows, for all to be compiled; return the bytes of the card that are in use."""
    fit(X, 8, backend, 12)
    if not backend.startswith("torch"):
        return 0
    import torch

    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    return torch.cuda.memory_allocated()


def mapped(n, d, r, backend, iterations):
    """Print the largest memory of a fit to rows in a file, and the file's size."""
    peak, done = [0.0], threading.Event()

    def watch():
        while not done.wait(0.05):
            peak[0] = max(peak[0], own_memory())

    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "vectors.npy"
        filled(
            np.lib.format.open_memmap(path, "w+", np.float32, (n, d)), np.random.default_rng(0)
        ).flush()
        X = np.load(path, mmap_mode="r")
        on_card = compiled(X[:2000], backend)
        before, began = own_memory(), time.perf_counter()
        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        model = fit(X, r, backend, iterations)
        done.set()
        watcher.join()
        took, data = time.perf_counter() - began, X.nbytes / 2**20
        what = f"{n} rows, {d} columns, {r} parts, float32: {data:.0f} MiB in a mapped file"
        share = (peak[0] - before) / data
        beside = f"{share:.2f} x of memory beside it at most"
        print(f"{what}, {beside}, {iterations} iterations in {took:.0f} s")
        if backend.startswith("torch"):
            on_the_card(X, model, on_card)


def memory(n, d, r, backend, iterations):
    """Print the largest memory of a fit, less what there was before the data."""
    rng = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        on_card = compiled(filled(np.empty((2000, d), np.float32), rng), backend)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        X = filled(np.empty((n, d), np.float32), rng)
        model = fit(X, r, backend, iterations)
        peak, data = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, X.nbytes / 2**20
        what = f"{n} rows, {d} columns, {r} parts, float32: {data:.0f} MiB of data"
        print(f"{what}, {(peak - before) / data:.2f} x at most")
        if backend.startswith("torch"):
            on_the_card(X, model, on_card)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, value in (("rows", 20_000), ("columns", 256), ("parts", 64), ("iterations", 50)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--mapped", action="store_true")
    parser.add_argument("--backend", default="numba", help="for --memory")
    args = parser.parse_args()
    if args.memory:
        sizes = args.rows, args.columns, args.parts
        (mapped if args.mapped else memory)(
            *sizes, args.backend, 12 if args.backend == "numba" else args.iterations
        )
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
