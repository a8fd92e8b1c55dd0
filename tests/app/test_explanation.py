"""A decision value as a sum over the features of the sample."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from marginparts import NMFAlphaClassifier
from marginparts.app.explanation import contributions


def blocks(seed=0, n=60):
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % 3
    X = rng.poisson(1.0, size=(n, 12)) * rng.random((n, 12))
    X[np.repeat(np.eye(3, dtype=bool), 4, axis=1)[truth]] += 0.5
    return X, truth


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("map_iter", [1, 2, 15])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_contributions_sum_to_the_decision_value(normalize, map_iter, make):
    X, truth = blocks()
    model = NMFAlphaClassifier(
        5, lam=1.0, map_iter=map_iter, normalize=normalize, C=1.0, random_state=0
    ).fit(make(X), np.where(np.arange(60) < 30, truth, -1))
    questions = np.arange(60) % 3
    found = contributions(model, make(X), questions)
    values = model.decision_function(make(X))[np.arange(60), questions]
    assert_allclose(found.sum(axis=1) + model.intercept_[questions], values, atol=1e-10)


def test_contributions_at_the_optimum_sum_to_the_decision_value():
    X, truth = blocks()
    model = NMFAlphaClassifier(4, lam=1.0, map_iter=None, normalize=True, C=1.0, random_state=0)
    model.fit(X, truth)
    values = model.decision_function(X)[np.arange(60), truth]
    found = contributions(model, X, truth).sum(axis=1) + model.intercept_[truth]
    assert_allclose(found, values, atol=1e-3)


def test_only_features_of_the_sample_contribute():
    X, truth = blocks()
    model = NMFAlphaClassifier(4, lam=1.0, map_iter=5, normalize=True, C=1.0, random_state=0)
    model.fit(X, truth)
    found = contributions(model, X, truth).toarray()
    assert np.all(found[X == 0] == 0)


def test_the_features_of_a_class_speak_for_it():
    X, truth = blocks()
    model = NMFAlphaClassifier(6, lam=3.0, map_iter=15, normalize=True, C=1.0, random_state=0)
    model.fit(X, truth)
    found = contributions(model, X, truth).toarray()
    own = np.repeat(np.eye(3, dtype=bool), 4, axis=1)[truth]
    assert found[own].mean() > 2 * abs(found[~own].mean())


def test_an_empty_sample_has_nothing_that_decided():
    X, truth = blocks()
    model = NMFAlphaClassifier(4, lam=1.0, map_iter=5, normalize=True, C=1.0, random_state=0)
    model.fit(X, truth)
    found = contributions(model, np.zeros((1, 12)), np.array([0]))
    assert found.nnz == 0
