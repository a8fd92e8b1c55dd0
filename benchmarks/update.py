"""Seconds of one multiplicative update of V and H on News counts, float32.

    MARGINPARTS_DATA=path/to/data python benchmarks/update.py

Plain NMF: our fit (the difference of a long and a short one, with its evaluations of the loss), our
kernels, the C loop and scikit-learn, all in one run. NMF-alpha: the same difference of fits with
one-vs-rest and one-vs-one directions at 20 % labels against plain NMF.
"""

from __future__ import annotations

from typing import Any

import numba

from common import Times, parser, per_iteration, race, start, warm_up
from corpora import DESCRIBED, Corpus, news_counts, partly_labeled
from marginparts import margin_directions, nmf_alpha
from marginparts.backends.cpu.storage import SparseMatrix
from marginparts.solve.factorize import margin_components
from peers import begin
from records import Table
from updates import updates_of

COLUMNS = (
    "method", "measured", "solver", "rank", "directions", "columns_of_S", "nonzeros_of_XS",
    *DESCRIBED, "threads", "best_seconds", "median_seconds", "rounds", "ratio",
)  # fmt: skip


class Report:
    """Prints and records times, each as a multiple of the first one."""

    def __init__(self, table: Table, corpus: Corpus) -> None:
        self.table, self.corpus = table, corpus

    def add(self, title: str, rows: list[tuple[dict, Times]]) -> None:
        """Take rows of labels and times."""
        print(f"\n{title} (milliseconds: best, median; ratio of medians)")
        first = rows[0][1].median_seconds
        for labels, times in rows:
            ratio = times.median_seconds / first
            self.table.add(
                **labels, **times._asdict(), **self.corpus.described, ratio=round(ratio, 3),
                threads=numba.get_num_threads(),
            )  # fmt: skip
            name = " ".join(str(labels.get(key, "")) for key in ("method", "measured", "solver"))
            name += f" {labels.get('directions', '')}"
            best, median = 1e3 * times.best_seconds, 1e3 * times.median_seconds
            print(f"  {name:48s} {best:9.2f} {median:9.2f}   x {ratio:.2f}", flush=True)


def plain(report: Report, r: int, quick: bool) -> None:
    """Time plain NMF by every method."""
    X = report.corpus.X
    H, V = start(X, r)
    warm_up(X, H, V, solver="mu")
    entrants: dict[Any, Any] = {}
    for name, update in updates_of(SparseMatrix(X), H, V).items():
        entrants[name, "kernels"], entrants[name, "whole update"] = update.kernels, update.whole
    times = race(entrants, 5 if quick else 31, settle=True)

    few, many = (2, 6) if quick else (10, 60)
    entrants = {
        n: lambda n=n: nmf_alpha(X, r, init=(H, V), solver="mu", max_iter=n, tol=0)
        for n in (few, many)
    }
    # the step of a peer goes on from its last one: its time does not depend on the numbers
    for name in ("scikit-learn mu", "scikit-learn mu, V by rows"):
        peer = begin(name, X, H, V)
        if peer is not None:
            peer.step()
            entrants[name, "whole update"] = peer.step
    fits = race(entrants, 2 if quick else 7)
    fit = per_iteration(fits.pop(many), fits.pop(few), many - few)
    times = {("marginparts", "fit"): fit, **times, **fits}
    for title, included in (("kernels", ("kernels",)), ("whole update", ("fit", "whole update"))):
        rows = [
            ({"method": name, "measured": measured, "solver": "mu", "rank": r}, found)
            for (name, measured), found in times.items()
            if measured in included
        ]
        report.add(f"r = {r}, {title}", rows)


def supervised(report: Report, r: int, quick: bool) -> None:
    """Time NMF-alpha against plain NMF, so the time against the number 2p of columns of S."""
    X = report.corpus.X
    y = partly_labeled(report.corpus.y, 0.2)
    H, V = start(X, r)
    choices: dict[str, Any] = {"none": None}
    for multiclass in ("ovr", "ovo"):
        choices[multiclass] = margin_directions(
            X, y, features="hellinger", multiclass=multiclass, random_state=0
        )
    few, many = (4, 8) if quick else (10, 60)
    for solver in ("mu", "cd"):
        entrants: dict[Any, Any] = {}
        for name, S in choices.items():
            warm_up(X, H, V, S, solver)
            for n in (few, many):
                entrants[(name, n)] = lambda S=S, n=n, solver=solver: nmf_alpha(
                    X, r, S=S, lam=3.0, init=(H, V), solver=solver, max_iter=n, tol=0
                )
        fits = race(entrants, 1 if quick else 5)
        rows = []
        for name, S in choices.items():
            labels = {
                "method": "marginparts", "measured": "fit", "solver": solver, "rank": r,
                "directions": name, "columns_of_S": 0 if S is None else S.shape[1],
                "nonzeros_of_XS": 0 if S is None else margin_components(S, X).nnz,
            }  # fmt: skip
            rows.append((labels, per_iteration(fits[name, many], fits[name, few], many - few)))
        report.add(f"NMF-alpha, r = {r}, solver {solver}, 20 % labels", rows)


def main() -> None:
    options = parser(__doc__).parse_args()
    corpus = news_counts(options.quick)
    report = Report(Table("update", COLUMNS, options.quick), corpus)
    for r in (16,) if options.quick else (16, 64, 128):
        plain(report, r, options.quick)
    supervised(report, 16 if options.quick else 64, options.quick)


if __name__ == "__main__":
    main()
