"""Cost of an iteration with weights, penalties, fixed parts, a prior, beside a plain one.

    MARGINPARTS_DATA=path/to/data python benchmarks/steering.py

News counts; the default solver's iteration (points ahead, a multiplicative update of V and one of
H), from the same factors every time, on one thread and in seconds of the processor. All ways take
turns, and the ratio is the median of those within a round: other work on the machine takes the
caches from everybody now and then. What is asked once in a fit (the scaled copy of the data) is
shown apart.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from common import one_iteration, parser, raced, ratio_of, start, times_of
from corpora import DESCRIBED, news_counts, partly_labeled
from marginparts import margin_directions
from marginparts.backends.cpu.backend import NumbaBackend
from marginparts.losses.nmf_alpha import NMFAlphaProblem, Pull
from marginparts.solve.factorize import margin_components
from marginparts.solve.run_spec import RunSpec, Scales
from records import Table

COLUMNS = ("labels", "asked", "rank", "best_seconds", "median_seconds", "rounds", "ratio",
           "ratio_of_bests", *DESCRIBED)  # fmt: skip


def updates(X: Any, S: Any, r: int) -> dict[str, Callable[[], None]]:
    """Return a function for each way to update both factors."""
    rng = np.random.default_rng(0)
    weighted = Scales.of(X, rng.random(X.shape[0]) + 0.5, rng.random(X.shape[1]) + 0.5)
    asked = {
        "nothing": (Scales(), RunSpec()),
        "weights of rows and columns": (weighted, RunSpec()),
        "l1 penalties": (Scales(), RunSpec(alpha_W=1e-4, l1_ratio=1.0)),
        "squared penalties": (Scales(), RunSpec(alpha_W=1e-4)),
        "weights and both penalties": (weighted, RunSpec(alpha_W=1e-4, l1_ratio=0.5)),
        "exclusivity": (Scales(), RunSpec(exclusivity=0.1)),
        "8 fixed parts": (Scales(), RunSpec(fixed=np.ones((8, X.shape[1])))),
        "a prior of all parts": (Scales(), RunSpec(prior=rng.random((r, X.shape[1])) ** 9)),
    }
    return {name: _update(X, S, r, *how) for name, how in asked.items()}


def _update(X: Any, S: Any, r: int, scales: Scales, run: RunSpec) -> Callable[[], None]:
    kernels, (H, V) = NumbaBackend(), scales.start(*start(X, r))
    X, S = scales.data(X), scales.margins(S)
    problem = NMFAlphaProblem(kernels, X=kernels.prepare(X), lam=3.0)
    if S is not None:
        problem.S = kernels.coefficients(S)
        problem.XS = kernels.prepare(margin_components(S, X), like=problem.X)
    problem.steering = run.steering(X, r, scales)
    problem.kept = kernels.factor(V)[:, : problem.steering.fixed].copy()
    if problem.steering.prior is not None:
        problem.pull = Pull.of(problem.steering.prior, kernels, V.dtype)
    return one_iteration(problem, V, H)


def main() -> None:
    options = parser(__doc__).parse_args()
    numba.set_num_threads(1)
    corpus, rounds = news_counts(options.quick), 3 if options.quick else 101
    table, r = Table("steering", COLUMNS, options.quick), 16 if options.quick else 64
    y = partly_labeled(corpus.y, 0.2)
    S = margin_directions(corpus.X, y, features="hellinger", random_state=0)
    began = time.process_time()
    Scales(rows=np.ones(corpus.X.shape[0], np.float32)).data(corpus.X)
    print(f"the scaled copy of the data: {1e3 * (time.process_time() - began):.1f} ms once a fit")
    for labels, margins in (("none", None), ("20 %", S)):
        seconds = raced(updates(corpus.X, margins, r), rounds, clock=time.process_time)
        plain = seconds["nothing"]
        print(f"\nlabels: {labels}, r = {r} (milliseconds: best, median; ratio within a round)")
        for name, own in seconds.items():
            (best, median, _), ratio = times_of(own), ratio_of(own, plain)
            print(f"  {name:30s} {1e3 * best:8.1f} {1e3 * median:8.1f}   x {ratio:.3f}", flush=True)
            table.add(
                labels=labels, asked=name, rank=r, best_seconds=best, median_seconds=median,
                rounds=rounds, ratio=round(ratio, 3), ratio_of_bests=round(best / min(plain), 3),
                **corpus.described,
            )  # fmt: skip


if __name__ == "__main__":
    main()
