"""Seconds to express the test documents of News in 64 parts, and how good the codes are.

    MARGINPARTS_DATA=path/to/data python benchmarks/transform.py

The parts come from our own fit. Codes are compared by their loss: its relative gap to the smallest
one known. scikit-learn's multiplicative updates with the same parts run until their gap is 1e-4.
"""

from __future__ import annotations

import numba

import peers
from common import loss, parser, race, seconds_to, start, times_of, warm_up
from corpora import DESCRIBED, described, news_counts
from marginparts import nmf_alpha
from marginparts.solve.factorize import parts_of
from marginparts.solve.map import map_rows
from records import Table

COLUMNS = (
    "method", "iterations", "rank", "loss", "gap", *DESCRIBED, "threads", "best_seconds",
    "median_seconds", "rounds",
)  # fmt: skip

#: The gap at which the two libraries are compared.
CLOSE = 1e-4


def main() -> None:
    options = parser(__doc__).parse_args()
    corpus = news_counts(options.quick)
    r, fit_iter, many = (16, 10, 300) if options.quick else (64, 60, 4000)
    H, V = start(corpus.X, r)
    warm_up(corpus.X, H, V)
    fitted = nmf_alpha(corpus.X, r, init=(H, V), max_iter=fit_iter, tol=0)
    V = parts_of(fitted.V).T.copy()  # as NMFAlpha keeps them: each part sums to one
    X = corpus.X_test
    table = Table("transform", COLUMNS, options.quick)
    facts = {
        "rank": r, "threads": numba.get_num_threads(), **described(f"{corpus.data}, test", X)
    }  # fmt: skip

    counts: tuple[int | None, ...] = (None, 5, 10, 40, 100, 400)
    for n in counts:
        map_rows(X[:50], V, n)
    losses = {n: loss(X, map_rows(X, V, n), V) for n in (*counts, many)}
    best = min(losses.values())
    times = race({n: lambda n=n: map_rows(X, V, n) for n in counts}, 2 if options.quick else 9)
    print(f"\nr = {r}, {X.shape[0]} documents: seconds (best, median) and gap to {best:,.1f}")
    for n, found in times.items():
        gap = losses[n] / best - 1
        name = "to the optimum" if n is None else f"{n} updates"
        print(f"  marginparts, {name:16s} {found.best_seconds:8.4f} {found.median_seconds:8.4f}"
              f"   {gap:.1e}")  # fmt: skip
        table.add(
            method="marginparts", iterations="" if n is None else n, loss=losses[n], gap=gap,
            **found._asdict(), **facts,
        )  # fmt: skip

    enough = (1 + CLOSE) * best
    peer = peers.sklearn_transform(X, V)
    curve = peers.run(peer, X, 0, enough=enough, limit=5 if options.quick else 600)
    for check in curve:
        table.add(
            method="scikit-learn mu", iterations=check.iteration, loss=check.loss,
            gap=check.loss / best - 1, **times_of([check.seconds])._asdict(), **facts,
        )  # fmt: skip
    iterations, seconds, last = curve[-1]
    print(f"  scikit-learn, {iterations} updates {seconds:8.2f} s   {last / best - 1:.1e}")
    close = seconds_to(enough, curve)
    if close is None:
        print(f"  scikit-learn did not come within {CLOSE:g} in this time.")
    else:
        ratio = close / times[None].median_seconds
        print(f"  scikit-learn within {CLOSE:g} after {close:.2f} s: {ratio:.0f} times our optimum")


if __name__ == "__main__":
    main()
