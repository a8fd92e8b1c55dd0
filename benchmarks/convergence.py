"""Loss against seconds on News counts, from one start for all methods.

    MARGINPARTS_DATA=path/to/data python benchmarks/convergence.py --seeds 5

Our seconds are those of ``history``, with evaluations of the loss and the transpose in them. Of
the other libraries only the updates are timed. With ``--seeds`` our solvers also run from random
starts.
"""

from __future__ import annotations

import argparse
from typing import Any

import numba

import peers
from common import Check, Curve, parser, seconds_to, start, warm_up
from corpora import DESCRIBED, Corpus, news_counts
from marginparts import nmf_alpha
from records import Table

SOLVERS = ("mu", "mue", "cd")
COLUMNS = (
    "method", "start", "rank", "seed", "iteration", "seconds", "loss", *DESCRIBED, "threads"
)  # fmt: skip

#: Losses at rank 64 on News counts: early, late and near the end.
TARGETS = (4.80e6, 4.72e6, 4.70e6)

#: Iterations of each solver from random starts.
LONG_RUNS = {"mu": 400, "mue": 400, "cd": 200}

YARDSTICK = "scikit-learn mu"

#: How many times longer the yardstick may take: it must get to where it is compared.
PATIENCE = 6


def ours(X: Any, r: int, solver: str, **options: Any) -> Curve:
    """Return the losses of a fit."""
    result = nmf_alpha(X, r, solver=solver, tol=0, **options)
    return [Check(check.iteration, check.seconds, check.loss) for check in result.history]


def curves_of(corpus: Corpus, r: int, seconds: float, names: list[str]) -> dict[str, Curve]:
    """Run every method from the common start."""
    X = corpus.X
    H, V = start(X, r)
    curves: dict[str, Curve] = {}
    for solver in SOLVERS:
        warm_up(X, H, V, solver=solver)
        pace = ours(X, r, solver, init=(H, V), max_iter=20)[-1].seconds / 20
        # a callback is not asked after a step that is taken back, as all are at the very end, so
        # the iterations are limited as well
        curves[f"marginparts {solver}"] = ours(
            X, r, solver, init=(H, V), max_iter=20 + round(2 * seconds / pace),
            callback=lambda now: now.seconds >= seconds,
        )  # fmt: skip
    target = loss_of_100(curves)
    for name in names:
        peer = peers.begin(name, X, H, V)
        if peer is None:
            continue
        # of a method with another loss only the time of a pass is of interest
        budget = seconds if peer.factors is not None else min(seconds, 10)
        limit = PATIENCE * budget if name == YARDSTICK else budget
        curves[name] = peers.run(peer, X, budget, enough=target, limit=limit)
        print(f"  {name}: {curves[name][-1].iteration} iterations", flush=True)
    return curves


def loss_of_100(curves: dict[str, Curve]) -> float:
    """Return the loss after 100 plain updates, or after all of them where there were fewer."""
    return [check.loss for check in curves["marginparts mu"] if check.iteration <= 100][-1]


def summarize(r: int, curves: dict[str, Curve], millions: bool) -> None:
    """Print when each method got where 100 plain updates get."""
    target = loss_of_100(curves)
    print(f"\nr = {r}: seconds to the loss of 100 mu updates, {target:,.0f}")
    yardstick = seconds_to(target, curves.get(YARDSTICK, []))
    for name, curve in curves.items():
        iterations, seconds, last = curve[-1]
        if last != last:
            print(f"  {name:28s} another loss; {seconds / iterations:.3f} s a pass")
            continue
        found = seconds_to(target, curve)
        if found is None:
            print(f"  {name:28s} not in {seconds:.0f} s (loss {last:,.0f})")
        else:
            ratio = "" if yardstick is None or not found else f"   1 / {yardstick / found:.1f}"
            print(f"  {name:28s} {found:9.3f} s{ratio}   (last loss {last:,.0f})")
    if not millions:
        return
    for target in TARGETS:
        when = {solver: seconds_to(target, curves[f"marginparts {solver}"]) for solver in SOLVERS}
        told = ", ".join(
            f"{solver} {'never' if s is None else f'{s:.2f} s'}" for solver, s in when.items()
        )
        print(f"  to {target:,.0f}: {told}")


def random_starts(corpus: Corpus, table: Table, r: int, seeds: int, quick: bool) -> None:
    """Run our solvers to the end from several random starts."""
    print(f"\nr = {r}, {seeds} random starts: last loss (seconds)")
    for solver, max_iter in LONG_RUNS.items():
        warm_up(corpus.X, *start(corpus.X, r), solver=solver)
        told = []
        for seed in range(seeds):
            curve = ours(corpus.X, r, solver, random_state=seed, max_iter=10 if quick else max_iter)
            record(table, corpus, f"marginparts {solver}", "random", r, seed, curve)
            told.append(f"{curve[-1].loss:,.0f} ({curve[-1].seconds:.1f})")
        print(f"  {solver:4s} {'  '.join(told)}", flush=True)


def record(
    table: Table, corpus: Corpus, method: str, start: str, r: int, seed: int, curve: Curve
) -> None:
    for iteration, seconds, loss in curve:
        table.add(
            method=method, start=start, rank=r, seed=seed, iteration=iteration,
            seconds=round(seconds, 5), loss="" if loss != loss else loss,
            threads=numba.get_num_threads(), **corpus.described,
        )  # fmt: skip


def arguments() -> argparse.Namespace:
    options = parser(__doc__)
    options.add_argument("--seconds", type=float, default=60, help="time for each method")
    options.add_argument("--seeds", type=int, default=0, help="random starts of our solvers")
    options.add_argument("--ranks", type=int, nargs="+", default=[16, 64, 128])
    options.add_argument(
        "--peers", nargs="*", choices=peers.PEERS, default=list(peers.PEERS), help="all by default"
    )
    found = options.parse_args()
    if found.quick:
        found.seconds, found.ranks, found.seeds = min(found.seconds, 1), [16], min(found.seeds, 2)
    return found


def main() -> None:
    options = arguments()
    corpus = news_counts(options.quick)
    table = Table("convergence", COLUMNS, options.quick)
    for r in options.ranks:
        print(f"r = {r}", flush=True)
        curves = curves_of(corpus, r, options.seconds, options.peers)
        for method, curve in curves.items():
            record(table, corpus, method, "common", r, 0, curve)
        summarize(r, curves, millions=r == 64 and not options.quick)
    if options.seeds:
        random_starts(corpus, table, 16 if options.quick else 64, options.seeds, options.quick)


if __name__ == "__main__":
    main()
