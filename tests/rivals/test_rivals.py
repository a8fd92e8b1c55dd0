"""Naive Bayes with EM and label spreading: by their theory, and beside scikit-learn's."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.naive_bayes import MultinomialNB
from sklearn.semi_supervised import LabelSpreading

from marginparts.labels import encode_labels
from marginparts.rivals.label_spreading import find_neighbors, spread_values
from marginparts.teaching.naive_bayes import fit_naive_bayes, naive_bayes_values


@pytest.fixture(scope="module")
def counts():
    """Rows of counts from three classes of words, and their classes."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=120)
    words = rng.dirichlet(np.full(30, 0.7), size=3)
    return rng.poisson(6 * words[y]).astype(float), y


class TestNaiveBayes:
    @pytest.mark.parametrize("weight", [0.1, 1.0])
    def test_em_never_lowers_the_posterior(self, counts, weight):
        X, y = counts
        model = fit_naive_bayes(X[:9], np.eye(3)[y[:9]], X[9:], weight=weight, alpha=0.1)
        assert len(model.curve) > 2
        assert np.all(np.diff(model.curve) >= -1e-9 * np.abs(model.curve[0]))

    @pytest.mark.parametrize("weight", [0.0, 1.0])
    def test_without_unlabeled_rows_it_is_scikit_learns(self, counts, weight):
        X, y = counts
        known = MultinomialNB(alpha=0.5).fit(X, y)
        (values,) = naive_bayes_values(X, encode_labels(y), [X], weight=weight, alpha=0.5)
        assert_allclose(values, known.predict_joint_log_proba(X), rtol=1e-10)

    def test_a_weight_of_nothing_leaves_unlabeled_rows_out(self, counts):
        X, y = counts
        y = np.where(np.arange(len(y)) < 30, y, -1)
        (values,) = naive_bayes_values(X, encode_labels(y), [X], weight=0.0, alpha=1.0)
        known = MultinomialNB(alpha=1.0).fit(X[:30], y[:30])
        assert_allclose(values, known.predict_joint_log_proba(X), rtol=1e-10)

    def test_unlabeled_rows_help(self, counts):
        X, y = counts
        few = np.full(len(y), -1)
        first = [np.flatnonzero(y == k)[0] for k in range(3)]
        few[first] = y[first]
        alone, helped = (
            np.mean(
                naive_bayes_values(X, encode_labels(few), [X], weight=w, alpha=0.01)[0].argmax(1)
                == y
            )
            for w in (0.0, 1.0)
        )
        assert helped > alone

    def test_sparse_is_dense(self, counts):
        X, y = counts
        y = np.where(np.arange(len(y)) < 30, y, -1)
        dense, sparse = (
            naive_bayes_values(rows, encode_labels(y), [rows], weight=0.3, alpha=0.1)[0]
            for rows in (X, sp.csr_array(X))
        )
        assert_allclose(dense, sparse, rtol=1e-9)

    def test_each_label_of_several_is_a_question_of_its_own(self, counts):
        X, y = counts
        Y = np.stack([y == 0, y == 1, np.zeros(len(y))], axis=1).astype(int)
        Y[40:] = -1
        (values,) = naive_bayes_values(X, encode_labels(Y), [X], weight=0.3, alpha=0.1)
        codes = np.where(np.arange(len(y)) < 40, y == 0, -1)
        (first,) = naive_bayes_values(X, encode_labels(codes), [X], weight=0.3, alpha=0.1)
        assert_allclose(values[:, :1], first)
        assert (values[:, 2] < 0).all()  # a label that nobody has


class TestLabelSpreading:
    @pytest.mark.parametrize("n_classes", [2, 3])
    def test_it_is_scikit_learns(self, n_classes):
        rng = np.random.default_rng(1)
        y = rng.integers(n_classes, size=90)
        Z = np.eye(n_classes)[y] + 0.4 * rng.standard_normal((90, n_classes))
        codes = np.where(np.arange(90) < 15, y, -1)
        known = LabelSpreading(kernel="knn", n_neighbors=6, alpha=0.4).fit(Z[:70], codes[:70])
        near = find_neighbors(Z[:70], [Z[70:]], 10)
        (values,) = spread_values(near, encode_labels(codes[:70]), k=6, alpha=0.4)
        guess = values[:, 0] > 0 if n_classes == 2 else values.argmax(axis=1)
        assert_array_equal(guess, known.predict(Z[70:]))

    def test_each_label_of_several_is_a_question_of_its_own(self):
        rng = np.random.default_rng(2)
        Y = rng.integers(2, size=(80, 3))
        Z = Y + 0.2 * rng.standard_normal((80, 3))
        known = np.where(np.arange(80)[:, None] < 20, Y, -1)
        near = find_neighbors(Z, [Z[60:]], 8)
        (values,) = spread_values(near, encode_labels(known), k=8, alpha=0.5)
        for k in range(3):
            (one,) = spread_values(near, encode_labels(known[:, k]), k=8, alpha=0.5)
            # the rounds end when all labels together have settled
            assert_allclose(values[:, k], one[:, 0], atol=0.05)
        assert np.mean((values > 0) == Y[60:]) > 0.8
