"""Do two seeds find the same parts? Consensus beside single fits: News counts, without labels.

    MARGINPARTS_DATA=path/to/data python benchmarks/consensus.py

Pairs of fits that differ by their seed alone, their parts matched one to one. The correlation is
that of two matched parts over all words. Seconds are the processor's, on one thread. How near the
last fit stays to what short runs agree on was chosen with the seeds 0 to 7; these are others.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numba
import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from common import parser
from corpora import DESCRIBED, news_counts
from marginparts import NMFAlpha, NMFAlphaConsensus, match_parts
from records import Table

#: A part that is found again.
SAME = 0.95

#: A part that is called stable.
STABLE = 0.9

COLUMNS = ("rank", "kind", "seeds", "mean_correlation", "least_correlation", "share_found_again",
           "stable_parts", "stable_mean", "stable_least", "stability", "mean_loss", "mean_seconds",
           "cost", *DESCRIBED)  # fmt: skip


def fitted(estimator: Any, X: Any, seed: int) -> tuple[Any, float]:
    began = time.process_time()
    estimator = clone(estimator).set_params(random_state=seed).fit(X)
    return estimator, time.process_time() - began


def compared(first: Any, second: Any) -> dict[str, float]:
    """Return how alike the matched parts of two fits are."""
    A, B = first.components_, second.components_
    order = match_parts(A, B).order
    same = np.array([np.corrcoef(a, B[k])[0, 1] for a, k in zip(A, order, strict=True)])
    found = {
        "mean_correlation": same.mean(), "least_correlation": same.min(),
        "share_found_again": np.mean(same >= SAME),
    }  # fmt: skip
    if hasattr(first, "stability_"):
        stable = same[(first.stability_ >= STABLE) & (second.stability_[order] >= STABLE)]
        found |= {"stable_parts": len(stable), "stability": first.total_stability_}
        if len(stable):
            found |= {"stable_mean": stable.mean(), "stable_least": stable.min()}
    return {name: round(float(value), 4) for name, value in found.items()}


def _pair(first: int) -> str:
    return f"{first} {first + 1}"


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--pairs", type=int, default=3)
    options.add_argument("--first-seed", type=int, default=100)
    options.add_argument("--ranks", type=int, nargs="+", default=[10, 20])
    options = options.parse_args()
    numba.set_num_threads(1)
    warnings.simplefilter("ignore", ConvergenceWarning)
    corpus = news_counts(options.quick)
    table = Table("consensus", COLUMNS, options.quick)
    ranks, pairs = ([8], 1) if options.quick else (options.ranks, options.pairs)
    NMFAlpha(ranks[0], max_iter=15).fit(corpus.X[:200])  # compiles
    for r in ranks:
        plain = NMFAlpha(r)
        seconds: dict[str, float] = {}
        for kind, estimator in (("single", plain), ("consensus", NMFAlphaConsensus(plain))):
            rows, times, losses = [], [], []
            for pair in range(pairs):
                first = options.first_seed + 2 * pair
                fits = [fitted(estimator, corpus.X, first + s) for s in (0, 1)]
                times += [taken for _, taken in fits]
                losses += [
                    getattr(f, "estimator_", f).reconstruction_err_ ** 2 / 2 for f, _ in fits
                ]
                rows.append(compared(fits[0][0], fits[1][0]))
            seconds[kind] = float(np.mean(times))
            for pair, found in enumerate(rows):
                print(r, kind, found)
                table.add(
                    rank=r, kind=kind, seeds=_pair(options.first_seed + 2 * pair), **found,
                    mean_loss=round(float(np.mean(losses[2 * pair : 2 * pair + 2]))),
                    mean_seconds=round(float(np.mean(times[2 * pair : 2 * pair + 2])), 2),
                    cost=round(seconds[kind] / seconds["single"], 2), **corpus.described,
                )  # fmt: skip
            print(f"{r} parts, {kind}: {seconds[kind]:.1f} s a fit, "
                  f"{seconds[kind] / seconds['single']:.2f} single fits", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
