"""On the paper's own data, where it is at hand (`MARGINPARTS_DATA`)."""

import gzip
import os
from pathlib import Path

import numpy as np
from sklearn.svm import LinearSVC

from marginparts import NMFAlphaClassifier, OnlineNMFAlphaClassifier
from marginparts.weighting import l2_log
from realdata import REAL, real_data

FOLDER = Path(os.environ.get("MARGINPARTS_DATA", "")) / "mnist"

pytestmark = REAL


def read(name, header, shape):
    return np.frombuffer(gzip.decompress((FOLDER / name).read_bytes()), np.uint8)[header:].reshape(
        shape
    )


def test_mnist_with_two_percent_of_labels_beats_the_raw_svm_by_a_point():
    X, y = (
        read("train-images-idx3-ubyte.gz", 16, (-1, 784)),
        read("train-labels-idx1-ubyte.gz", 8, -1),
    )
    keep = (y == 4) | (y == 9)
    X, y = (X[keep] / 255).astype(np.float32), (y[keep] == 9).astype(int)
    gains = []
    for seed in range(2):
        order = np.random.default_rng(seed).permutation(len(y))
        train, test = order[:5000], order[5000:]
        labels = np.where(np.arange(5000) < 100, y[train], -1)
        ours = NMFAlphaClassifier(64, random_state=seed).fit(X[train], labels)
        raw = max(
            LinearSVC(C=C).fit(X[train[:100]], y[train[:100]]).score(X[test], y[test])
            for C in (0.01, 0.1)
        )
        gains.append(ours.score(X[test], y[test]) - raw)
    assert np.mean(gains) > 0.01


def test_one_pass_over_the_news_is_within_two_points_of_the_batch_fit():
    """The batch fit on these labels is at 78.5 %: `benchmarks/results/online.csv`.

    On average over orders: one alone is lucky or not by half a point. The last is by class.
    """
    news = real_data("news")
    X, X_test = (l2_log(counts.astype(np.float32)) for counts in (news.X_train, news.X_test))
    n = X.shape[0]
    y = np.full(n, -1)
    known = np.random.default_rng(0).permutation(n)[: round(0.2 * n)]
    y[known] = news.y_train[known]
    shuffled = [np.random.default_rng(seed).permutation(n) for seed in (1, 2, 3)]
    scores = []
    for order in (*shuffled, np.argsort(news.y_train, kind="stable")):
        model = OnlineNMFAlphaClassifier(64, random_state=0)
        for rows in np.split(order, range(500, n, 500)):
            model.partial_fit(X[rows], y[rows])
        scores.append(model.score(X_test, news.y_test))
    assert np.mean(scores[:3]) > 0.785 - 0.02
    assert scores[3] > 0.785 - 0.03
