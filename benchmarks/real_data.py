"""Accuracy of NMF-alpha on MNIST (4 v 9) and 20 Newsgroups, with the paper's protocol in small.

    MARGINPARTS_DATA=path/to/data python benchmarks/real_data.py mnist --splits 3
    MARGINPARTS_DATA=path/to/data python benchmarks/real_data.py news --splits 2

Rank, lam, mapping updates, unit codes or not, and C are chosen on validation data; the test score
of the chosen setting is printed beside that of a linear SVM on the raw inputs. Data preparation:
pixels / 255, and l2-normalized log(1 + count). Directions are the paper's: SVM duals on X, no
pseudo-labels.
"""

from __future__ import annotations

import argparse
import gzip
import os
import time
from itertools import product
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize
from sklearn.svm import LinearSVC

from marginparts import NMFAlpha


def load_mnist(folder: Path):
    def read(name, header, shape):
        raw = gzip.decompress((folder / "mnist" / name).read_bytes())
        return np.frombuffer(raw, np.uint8)[header:].reshape(shape)

    parts = []
    for prefix in ("train", "t10k"):
        X = read(f"{prefix}-images-idx3-ubyte.gz", 16, (-1, 784))
        y = read(f"{prefix}-labels-idx1-ubyte.gz", 8, -1)
        keep = (y == 4) | (y == 9)
        parts += [(X[keep] / 255).astype(np.float32), (y[keep] == 9).astype(int)]
    return parts


def load_news(folder: Path):
    parts = []
    for prefix in ("train", "test"):
        X = sp.csr_array(sp.load_npz(folder / "20newsgroups" / f"{prefix}_counts.npz"))
        X = X.astype(np.float32)
        X.data = np.log1p(X.data)
        y = np.load(folder / "20newsgroups" / f"{prefix}_labels.npy").astype(int)
        parts += [normalize(X), y]
    return parts


SETTINGS = {
    # data: loader, training size, label fractions, ranks, lams, mapping updates
    "mnist": (load_mnist, 5000, (0.02, 0.1, 1.0), (256,), (10.0, 30.0), (15, 60)),
    "news": (load_news, 9007, (0.2, 0.4, 1.0), (32,), (1.0, 10.0), (4, 8, 16)),
}


def best_svm(train, y, valid, y_valid, test, y_test, grid=(0.01, 0.1, 1.0, 10.0)):
    """Return the validation and test score of the C that is best on validation data."""
    scores = []
    for C in grid:
        # the primal solver wants columns fewer than rows, and dense data
        dual = sp.issparse(train) or train.shape[0] < train.shape[1]
        svm = LinearSVC(C=C, dual=dual, tol=1e-3 if dual else 1e-2, max_iter=3000).fit(train, y)
        scores.append((svm.score(valid, y_valid), svm.score(test, y_test), C))
    return max(scores)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", choices=SETTINGS)
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--first", type=int, default=0, help="seed of the first split")
    parser.add_argument("--starts", nargs="+", default=["auto", "random"])
    parser.add_argument("--fractions", type=float, nargs="+", default=None)
    arguments = parser.parse_args()
    load, n_train, fractions, ranks, lams, maps = SETTINGS[arguments.data]
    X, y, X_test, y_test = load(Path(os.environ["MARGINPARTS_DATA"]))
    for fraction in arguments.fractions or fractions:
        results: dict[str, list[float]] = {}
        for split in range(arguments.first, arguments.first + arguments.splits):
            order = np.random.default_rng(split).permutation(len(y))
            train, valid = order[:n_train], order[n_train:]
            m = round(fraction * n_train)
            labels = np.where(np.arange(n_train) < m, y[train], -1)
            known = train[:m]
            raw = best_svm(X[known], y[known], X[valid], y[valid], X_test, y_test)
            results.setdefault("raw SVM", []).append(raw[1])
            for start in arguments.starts:
                tried = []
                for r, lam in product(ranks, lams):
                    began = time.perf_counter()
                    model = NMFAlpha(r, lam=lam, init=start, random_state=split)
                    model.fit(X[train], labels)
                    seconds = time.perf_counter() - began
                    for n in maps:
                        model.set_params(map_iter=n)
                        Z = [model.transform(A) for A in (X[known], X[valid], X_test)]
                        for unit in (False, True):
                            codes = [normalize(z) for z in Z] if unit else Z
                            score = best_svm(
                                codes[0], y[known], codes[1], y[valid], codes[2], y_test
                            )
                            tried.append((*score, r, lam, n, unit, round(seconds, 1)))
                print(f"  split {split}, {start} start: {max(tried)}", flush=True)
                results.setdefault(f"NMF-alpha, {start} start", []).append(max(tried)[1])
        for name, scores in results.items():
            mean, spread = 100 * np.mean(scores), 100 * np.std(scores)
            cell = f"{arguments.data} {fraction:.0%} {name}"
            print(f"{cell}: {mean:.1f} +/- {spread:.1f}", flush=True)


if __name__ == "__main__":
    main()
