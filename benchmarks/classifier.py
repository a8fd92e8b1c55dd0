"""Seconds and test accuracy of the classifier on News, and of a path over five weights.

    MARGINPARTS_DATA=path/to/data python benchmarks/classifier.py

20 % of the labels, l2-normalized log counts, 64 parts, everything else as it is by default. The
path is compared with one fit, and with a fit for each weight.
"""

from __future__ import annotations

import time
from typing import Any

import numba
import numpy as np

from common import parser, start, warm_up
from corpora import DESCRIBED, Corpus, news_l2_log, partly_labeled
from marginparts import NMFAlphaClassifier, margin_directions, nmf_alpha, nmf_alpha_path
from records import Table

COLUMNS = (
    "measured", "lam", "rank", "seconds", "iterations", "loss", "accuracy", "map_iter",
    "normalize", "C", *DESCRIBED, "threads",
)  # fmt: skip

LAMS = (0.3, 1.0, 3.0, 10.0, 30.0)


def timed(run: Any) -> tuple[float, Any]:
    """Return seconds and result of a call."""
    began = time.perf_counter()
    result = run()
    return time.perf_counter() - began, result


def classify(table: Table, corpus: Corpus, y: Any, facts: dict[str, Any]) -> None:
    """Time the whole classifier."""
    few = np.arange(0, corpus.X.shape[0], corpus.X.shape[0] // 300)  # of all classes
    NMFAlphaClassifier(facts["rank"], lam=1.0, random_state=0).fit(corpus.X[few], corpus.y[few])
    seconds, model = timed(
        lambda: NMFAlphaClassifier(facts["rank"], random_state=0).fit(corpus.X, y)
    )
    accuracy = float(model.score(corpus.X_test, corpus.y_test))
    table.add(
        measured="classifier", lam=model.lam_, seconds=round(seconds, 3), iterations=model.n_iter_,
        accuracy=round(accuracy, 4), map_iter=model.map_iter_, normalize=model.normalize_,
        C=model.C_, **facts,
    )  # fmt: skip
    print(
        f"classifier: {seconds:.1f} s, test accuracy {100 * accuracy:.1f} % "
        f"(lam {model.lam_}, map_iter {model.map_iter_}, normalize {model.normalize_}, "
        f"C {model.C_})",
        flush=True,
    )


def follow_path(table: Table, corpus: Corpus, y: Any, facts: dict[str, Any]) -> None:
    """Time a path over the weights, and a fit for each."""
    X, r = corpus.X, facts["rank"]
    S = margin_directions(X, y, features="hellinger", pseudo="svm", random_state=0)
    H, V = start(X, r)
    warm_up(X, H, V, S)
    whole, path = timed(lambda: nmf_alpha_path(X, r, S=S, lams=LAMS, init=(H, V)))
    table.add(
        measured="path", seconds=round(whole, 3), iterations=sum(found.n_iter for found in path),
        **facts,
    )  # fmt: skip
    print(f"path over {len(LAMS)} weights: {whole:.2f} s", flush=True)
    alone = []
    for lam, on_path in zip(LAMS, path, strict=True):
        seconds, fit = timed(lambda lam=lam: nmf_alpha(X, r, S=S, lam=lam, init=(H, V)))
        alone.append(seconds)
        for name, found, took in (
            ("one fit", fit, round(seconds, 3)),
            ("on the path", on_path, ""),
        ):
            table.add(
                measured=name, lam=lam, seconds=took, iterations=found.n_iter,
                loss=found.losses[-1], **facts,
            )  # fmt: skip
        print(
            f"  lam {lam}: one fit {seconds:.2f} s, {fit.n_iter} iterations, loss "
            f"{fit.losses[-1]:.6g}; on the path {on_path.n_iter}, {on_path.losses[-1]:.6g}",
            flush=True,
        )
    print(
        f"path / first fit {whole / alone[0]:.2f}, path / mean fit "
        f"{whole * len(alone) / sum(alone):.2f}, path / all fits {whole / sum(alone):.2f}"
    )


def main() -> None:
    options = parser(__doc__).parse_args()
    corpus = news_l2_log(options.quick)
    y = partly_labeled(corpus.y, 0.2)
    facts = {
        "rank": 16 if options.quick else 64, "threads": numba.get_num_threads(), **corpus.described
    }  # fmt: skip
    table = Table("classifier", COLUMNS, options.quick)
    classify(table, corpus, y, facts)
    follow_path(table, corpus, y, facts)


if __name__ == "__main__":
    main()
