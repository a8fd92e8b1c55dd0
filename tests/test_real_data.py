"""On the paper's own data, where it is at hand (`MARGINPARTS_DATA`)."""

import gzip
import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from marginparts import NMFAlphaClassifier

FOLDER = Path(os.environ.get("MARGINPARTS_DATA", "")) / "mnist"

pytestmark = [
    pytest.mark.realdata,
    pytest.mark.skipif(
        "MARGINPARTS_DATA" not in os.environ, reason="MARGINPARTS_DATA names no folder of data"
    ),
]


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
