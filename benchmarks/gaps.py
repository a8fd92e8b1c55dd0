"""Gaps: how well hidden entries are predicted, whether the number of parts is found, what it costs.

    MARGINPARTS_DATA=path/to/data python benchmarks/gaps.py [filled] [parts] [updates] [classified]

``filled``: a tenth of the entries of counts with planted parts is hidden; the divergence of the
hidden entries from what the fit says of them, beside that from the means they were drawn with.
``parts``: `how_many_parts` on counts with 8 planted parts, one draw a seed. ``updates``: one
multiplicative update of V and one of H beside one without gaps, on one thread and in seconds of the
processor, the median ratio of 101 rounds in which all take turns. ``classified``: a tenth of the
pixels of digits is hidden, and five labels a class known.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numba
import numpy as np
import scipy.sparse as sp
from scipy.special import xlogy
from sklearn.datasets import load_digits

from common import both_updates, parser, raced, ratio_of, start, times_of
from corpora import DESCRIBED, described, news_counts
from marginparts import NMFAlpha, NMFAlphaClassifier, how_many_parts
from marginparts.backends.cpu.backend import NumbaBackend
from marginparts.losses.nmf_alpha import NMFAlphaProblem
from marginparts.solve.gaps import Blocks, Zeros, found_gaps
from records import Table

COLUMNS = ("question", "asked", "seed", "rank", "value", "beside", "ratio", *DESCRIBED)

PLANTED, RANKS = 8, (4, 5, 6, 7, 8, 9, 10, 12)


class Planted(NamedTuple):
    """Counts, and the means they were drawn with."""

    X: np.ndarray
    M: np.ndarray

    @property
    def described(self) -> dict[str, Any]:
        """The columns that say what was factorized."""
        return described(f"Poisson counts, {PLANTED} parts", sp.csr_array(self.X))


def planted(seed: int, n: int, d: int) -> Planted:
    """Draw counts with a mean of 2 from parts and codes with a few large entries each."""
    rng = np.random.default_rng(seed)
    M = rng.gamma(0.3, 1.0, (n, PLANTED)) @ rng.gamma(0.3, 1.0, (PLANTED, d))
    M *= 2 / M.mean()
    return Planted(rng.poisson(M).astype(float), M)


def filled(quick: bool) -> Iterator[dict[str, Any]]:
    """Yield the error of filled gaps beside that of the planted means."""
    n, d, seeds = (200, 100, 1) if quick else (3000, 1500, 3)
    for seed in range(seeds):
        data = planted(seed, n, d)
        hidden = np.random.default_rng(100 + seed).random((n, d)) < 0.1
        gaps = np.where(hidden, np.nan, data.X)
        model = NMFAlpha(
            PLANTED, missing="nan", max_iter=1000, tol=1e-5, map_iter=None, random_state=seed
        ).fit(gaps)
        guess = model.inverse_transform(model.transform(gaps))
        errors = [
            float(np.mean(xlogy(x, x / f) - x + f))
            for x, f in ((data.X[hidden], F[hidden]) for F in (guess, data.M))
        ]
        yield {
            "question": "filled", "asked": "divergence of a hidden entry", "seed": seed,
            "rank": PLANTED, "value": errors[0], "beside": errors[1],
            "ratio": round(errors[0] / errors[1], 4), **data.described,
        }  # fmt: skip


def parts(quick: bool) -> Iterator[dict[str, Any]]:
    """Yield the number of parts that is found for each seed."""
    for seed in range(2 if quick else 20):
        data = planted(seed, *((100, 80) if quick else (300, 200)))
        found = how_many_parts(sp.csr_array(data.X), RANKS, random_state=seed)
        yield {
            "question": "parts", "asked": "best", "seed": seed, "rank": found.best,
            "value": found.mean.min(), "beside": found.least, "ratio": found.best / PLANTED,
            **data.described,
        }  # fmt: skip


def updates(quick: bool) -> Iterator[dict[str, Any]]:
    """Yield the seconds of an update with gaps beside one without."""
    numba.set_num_threads(1)
    corpus, rounds, r = news_counts(quick), 3 if quick else 101, 16 if quick else 64
    entrants = {name: _update(X, gaps, r) for name, (X, gaps) in _masks(corpus.X).items()}
    seconds = raced(entrants, rounds, clock=time.process_time)
    plain = seconds["nothing"]
    for name, own in seconds.items():
        yield {
            "question": "updates", "asked": name, "rank": r, "value": times_of(own).median_seconds,
            "beside": times_of(plain).median_seconds, "ratio": round(ratio_of(own, plain), 3),
            **corpus.described,
        }  # fmt: skip


def _masks(X: sp.csr_array) -> dict[str, tuple[sp.csr_array, Any]]:
    rng = np.random.default_rng(0)
    rows, columns = (rng.permutation(n) % 10 for n in X.shape)
    found = {
        "nothing": (X, None),
        'missing="zeros"': (X, Zeros()),
        "a tenth of all entries hidden": (X, Blocks(rows, columns, 0, 10)),
    }
    for share in (0.01, 0.1):
        holes = X.copy()
        holes.data[rng.random(X.nnz) < share] = np.nan
        found[f'missing="nan", {share:.0%} of the nonzeros'] = found_gaps(holes, "nan")
    return found


def _update(X: sp.csr_array, gaps: Any, r: int) -> Callable[[], None]:
    H, V = start(X, r)
    kernels = NumbaBackend()
    data = kernels.prepare(X if gaps is None else gaps.known(X))
    problem = NMFAlphaProblem(kernels, data) if gaps is None else gaps.problem(kernels, data)
    return both_updates(problem, V, H)


def classified(quick: bool) -> Iterator[dict[str, Any]]:
    """Yield the accuracy with a tenth of the pixels of digits hidden, beside that of whole ones."""
    digits, r = load_digits(), 8 if quick else 32
    for seed in range(1 if quick else 5):
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(digits.data))
        X, truth = digits.data[order], digits.target[order]
        known = np.concatenate([np.flatnonzero(truth[:900] == k)[:5] for k in range(10)])
        y = np.where(np.isin(np.arange(900), known), truth[:900], -1)
        hidden = rng.random(X.shape) < 0.1
        gaps = np.where(hidden, np.nan, X)
        ways = {
            "whole": X, "filled by parts": gaps, "zeros": np.where(hidden, 0, X),
            "means": np.where(hidden, np.nanmean(gaps[:900], axis=0), X),
        }  # fmt: skip
        whole = None
        for name, data in ways.items():
            missing = "nan" if data is gaps else None
            model = NMFAlphaClassifier(r, missing=missing, rehearse=False, random_state=0)
            score = model.fit(data[:900], y).score(data[900:], truth[900:])
            whole = score if whole is None else whole
            yield {
                "question": "classified", "asked": name, "seed": seed, "rank": r, "value": score,
                "beside": whole, "ratio": round(score / whole, 3),
                **described("digits", sp.csr_array(X)),
            }  # fmt: skip


QUESTIONS = {"filled": filled, "parts": parts, "updates": updates, "classified": classified}


def main() -> None:
    asking = parser(__doc__)
    asking.add_argument("questions", nargs="*", default=[], metavar="question")
    options = asking.parse_args()
    table = Table("gaps", COLUMNS, options.quick)
    for question in options.questions or QUESTIONS:
        for row in QUESTIONS[question](options.quick):
            table.add(**row)
            told = (row["question"], row["asked"], row.get("seed", ""), row["rank"])
            print(*told, f"{row['value']:.5g} beside {row['beside']:.5g}: x {row['ratio']}")


if __name__ == "__main__":
    main()
