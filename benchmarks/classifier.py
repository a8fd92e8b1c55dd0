"""Seconds and test accuracy of the classifier on News, and of a path over five weights.

    MARGINPARTS_DATA=path/to/data python benchmarks/classifier.py [--million [--whole]]

20 % of the labels, l2-normalized log counts, 64 parts, everything else as it is by default; then
100 labels of 6,000 documents with the 20,000 most frequent words. The path is compared with one
fit, and with a fit for each weight. With ``--million`` it is instead a million documents drawn at
random, three words of each from its class, with 1,000 labels: seconds, and the peak of memory
beside what the data take. By default parts are learned from a draw of them, with ``--whole`` from
all.
"""

from __future__ import annotations

import resource
import tempfile
import time
from multiprocessing import get_context
from typing import Any

import numba
import numpy as np
import scipy.sparse as sp

from common import parser, start, warm_up
from corpora import DESCRIBED, Corpus, described, news_l2_log, partly_labeled, power_law_counts
from marginparts import NMFAlphaClassifier, margin_directions, nmf_alpha, nmf_alpha_path
from records import Table

COLUMNS = (
    "measured", "lam", "rank", "seconds", "iterations", "loss", "accuracy", "map_iter",
    "normalize", "C", "labels", "data_bytes", "peak_bytes", *DESCRIBED, "threads",
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
    some = np.where(np.arange(len(few)) % 3, -1, corpus.y[few])
    NMFAlphaClassifier(16, max_iter=5, random_state=0).fit(corpus.X[few], some)  # compiles
    seconds, model = timed(
        lambda: NMFAlphaClassifier(facts["rank"], random_state=0).fit(corpus.X, y)
    )
    accuracy = float(model.score(corpus.X_test, corpus.y_test))
    table.add(
        measured="classifier", lam=model.lam_, seconds=round(seconds, 3), iterations=model.n_iter_,
        accuracy=round(accuracy, 4), map_iter=model.map_iter_, normalize=model.normalize_,
        C=model.C_, labels=int(np.sum(y >= 0)), **facts,
    )  # fmt: skip
    print(
        f"{np.sum(y >= 0)} labels: {seconds:.1f} s, test accuracy {100 * accuracy:.1f} % "
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


def few_documents(corpus: Corpus) -> tuple[Corpus, Any]:
    """Return 6,000 documents with the 20,000 most frequent words, and 100 labels."""
    rng = np.random.default_rng(0)
    rows = rng.permutation(corpus.X.shape[0])[:6000]
    words = np.sort(np.argsort(-np.bincount(corpus.X.indices))[:20_000])
    X, X_test = corpus.X[rows][:, words], corpus.X_test[:, words]
    y = np.where(np.arange(len(rows)) < 100, corpus.y[rows], -1)
    return corpus._replace(X=X, X_test=X_test, y=corpus.y[rows]), y


def make_million(n: int, path: str) -> None:
    """Write very many documents to a file: making them takes more memory than a fit."""
    d, c = 50_000, 20
    rng = np.random.default_rng(0)
    y = rng.integers(c, size=n)
    words = (y[:, None] * 50 + rng.integers(50, size=(n, 3))).ravel()
    of_class = sp.csr_array((np.ones(3 * n, np.float32), words, 3 * np.arange(n + 1)), shape=(n, d))
    X = power_law_counts(n, d, log_length=3.9) + of_class
    del of_class, words
    np.savez(path, data=np.log1p(X.data), indices=X.indices.astype(np.int32), indptr=X.indptr, y=y)


def million(table: Table, quick: bool, most: int | None) -> None:
    """Time the classifier on very many documents, and watch its memory."""
    n = 10_000 if quick else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/million.npz"
        child = get_context("spawn").Process(target=make_million, args=(n, path))
        child.start()
        child.join()
        with np.load(path) as kept:
            y, indptr = kept["y"], kept["indptr"].astype(np.int32)
            X = sp.csr_array((kept["data"], kept["indices"], indptr), shape=(n, 50_000))
    known = np.where(np.arange(n) < 1000, y, -1)
    NMFAlphaClassifier(16, max_iter=5, random_state=0).fit(X[:3000], known[:3000])  # compiles
    # with indices of 32 bits: the least that these data can take
    bytes_ = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    model = NMFAlphaClassifier(max_unlabeled=most, random_state=0)
    seconds, _ = timed(lambda: model.fit(X, known))
    peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    accuracy = float(np.mean(model.predict(X[-20_000:]) == y[-20_000:]))
    facts = described("drawn at random", X)
    table.add(
        measured="million", rank=model.n_components, seconds=round(seconds, 1),
        accuracy=round(accuracy, 4), labels=1000, data_bytes=bytes_, peak_bytes=peak,
        threads=numba.get_num_threads(), **facts,
    )  # fmt: skip
    print(
        f"{n} documents, {X.nnz} entries: {seconds:.0f} s, accuracy {100 * accuracy:.1f} %; the "
        f"process took {peak / 1e9:.2f} GB at most ({before * 1024 / 1e9:.2f} before, with the "
        f"interpreter and all libraries), the data {bytes_ / 1e9:.2f} GB: {peak / bytes_:.2f} "
        f"times, {1 + (peak - before * 1024) / bytes_:.2f} times without what was there before"
    )


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--million", action="store_true", help="a million documents instead")
    options.add_argument("--whole", action="store_true", help="learn from all of the million")
    given = options.parse_args()
    if given.million:
        name = "million_whole" if given.whole else "million"
        most = None if given.whole else NMFAlphaClassifier().max_unlabeled
        million(Table(name, COLUMNS, given.quick), given.quick, most)
        return
    corpus = news_l2_log(given.quick)
    y = partly_labeled(corpus.y, 0.2)
    facts = {
        "rank": 16 if given.quick else 64, "threads": numba.get_num_threads(), **corpus.described
    }  # fmt: skip
    table = Table("classifier", COLUMNS, given.quick)
    classify(table, corpus, y, facts)
    few, y_few = few_documents(corpus)
    classify(table, few, y_few, {**facts, **few.described})
    follow_path(table, corpus, y, facts)


if __name__ == "__main__":
    main()
