"""The transductive SVM: an SVM when all is labeled, better than one where clusters speak."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from marginparts.labels import encode_labels
from marginparts.svm.transductive import transductive_weights
from oracle import KINDS, primal_svm

kinds = pytest.mark.parametrize("kind", KINDS)
seeds = pytest.mark.parametrize("seed", range(3))


def parallel_clusters(seed, each=100):
    """Two parallel clusters, with one label in each, past their opposite ends."""
    rng = np.random.default_rng(seed)
    truth = np.repeat([0, 1], each)
    X = np.stack([np.where(truth, 2, -2), np.zeros(2 * each)], axis=1)
    X += rng.uniform(-1, 1, X.shape) * (0.3, 2)
    X[0], X[-1] = (-2, -3), (2, 3)
    y = np.full(2 * each, -1)
    y[[0, -1]] = 0, 1
    return X, truth, y


def accuracy(X, w, truth):
    return np.mean((X @ w > 0) == truth)


@kinds
@seeds
def test_it_beats_the_svm_where_the_labels_mislead_and_the_clusters_do_not(kind, seed):
    X, truth, y = parallel_clusters(seed)
    w = transductive_weights(KINDS[kind](X), encode_labels(y), 1.0)
    assert w.shape == (1, 2)
    assert accuracy(X, w[0], truth) >= 0.99
    assert accuracy(X, primal_svm(X[y >= 0], y[y >= 0], 1.0), truth) < 0.9


@kinds
@seeds
@pytest.mark.parametrize("classes", [2, 4])
def test_with_all_labels_it_is_the_svm(kind, seed, classes):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, 80)
    X = rng.random((80, 20)) + (y[:, None] == np.arange(20) % classes)
    W = transductive_weights(KINDS[kind](X), encode_labels(y), 1.0, tol=1e-8)
    tasks = [1] if classes == 2 else range(classes)
    for w, k in zip(W, tasks, strict=True):
        expected = primal_svm(X, y == k, 1.0)
        assert_allclose(w, expected, atol=1e-4 * np.linalg.norm(expected))


@seeds
def test_the_share_of_positives_is_that_of_the_labels(seed):
    """One blob without structure: the guesses are what the labels' shares make them."""
    rng = np.random.default_rng(seed)
    X = np.hstack([rng.standard_normal((400, 5)), np.ones((400, 1))])
    y = np.where(np.arange(400) < 40, np.arange(400) % 4 == 0, -1)
    w = transductive_weights(X, encode_labels(y), 1.0)[0]
    assert_allclose(np.mean(X[40:] @ w > 0), 0.25, atol=0.05)


def test_more_classes_and_several_labels_have_a_row_each():
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], 20)
    X = 0.2 * rng.random((60, 3)) + (truth[:, None] == np.arange(3))
    y = np.where(np.arange(60) % 20 < 2, truth, -1)
    W = transductive_weights(X, encode_labels(y), 1.0)
    assert W.shape == (3, 3)
    assert_array_equal((X @ W.T).argmax(axis=1), truth)

    Y = (truth[:, None] == np.arange(3)).astype(int)
    Y[y == -1] = -1
    assert_allclose(transductive_weights(X, encode_labels(Y), 1.0), W)


def test_a_label_with_one_sign_has_zero_weights():
    X = np.random.default_rng(0).random((10, 3))
    Y = np.stack([np.arange(10) % 2, np.ones(10)], axis=1).astype(int)
    Y[6:] = -1
    W = transductive_weights(X, encode_labels(Y), 1.0)
    assert np.abs(W[0]).max() > 0
    assert_array_equal(W[1], 0)


@pytest.mark.parametrize("unlabeled", [0, 1, 2])
def test_few_unlabeled_samples_are_no_trouble(unlabeled):
    X, _, y = parallel_clusters(0, each=3)
    y[1:-1] = [0, 0, 1, 1]
    y[1 : 1 + unlabeled] = -1
    assert np.isfinite(transductive_weights(X, encode_labels(y), 1.0)).all()


def test_same_seed_same_weights_and_the_data_is_not_written_to():
    X, _, y = parallel_clusters(0)
    rows = sp.csr_array(X)
    before = rows.copy()
    one, two = (transductive_weights(rows, encode_labels(y), 1.0, seed=3) for _ in range(2))
    assert_array_equal(one, two)
    assert_array_equal(rows.data, before.data)
