"""Semi-NMF-alpha an iteration, beside plain semi-NMF in dense NumPy (Ding, Li & Jordan 2010).

python benchmarks/semi.py [--rows 20000] [--columns 256] [--parts 64] [--iterations 50]

Both run on one thread, and take turns; what counts is the ratio. Ours has 40 margin components
besides. The loss after the same number of iterations is shown too.
"""

import argparse
import time

import numpy as np
from threadpoolctl import threadpool_limits

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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, value in (("rows", 20_000), ("columns", 256), ("parts", 64), ("iterations", 50)):
        parser.add_argument(f"--{name}", type=int, default=value)
    args = parser.parse_args()
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
            began, codes = time.perf_counter(), H[: args.rows].copy()
            for _ in range(args.iterations):
                V_plain, codes = plain_iteration(X, codes)
            times["plain NumPy"].append(time.perf_counter() - began)
            losses["plain NumPy"] = float(np.sum((X - codes @ V_plain.T) ** 2))
            for name in ("mu", "cd"):
                problem = SemiProblem(samples, squared_norm(samples))
                began = time.perf_counter()
                run = minimize(
                    problem, {"V": V, "H": H.copy()}, solver=name, max_iter=args.iterations, tol=0
                )
                times[name].append(time.perf_counter() - began)
                codes = run.state["H"][: args.rows]
                losses[name] = float(np.sum((X - codes @ run.state["V"].T) ** 2))
    base = min(times["plain NumPy"])
    for name, own in times.items():
        each, ratio = min(own) / args.iterations, base / min(own)
        what = f"{1000 * each:7.1f} ms an iteration, {ratio:5.2f} x plain NumPy"
        print(f"{name:12s} {what}, data's error {losses[name]:.1f}")


if __name__ == "__main__":
    main()
