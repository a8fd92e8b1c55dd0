"""Probabilities from decision values of hidden labels."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, softmax

from marginparts import NMFAlphaClassifier
from marginparts.labels import encode_labels
from marginparts.svm.calibration import ENOUGH, calibrate


def drawn(values, p, rng):
    return (rng.random(len(values)) < p).astype(int)


@pytest.mark.parametrize("slope", [0.3, 1.0, 4.0])
def test_the_slope_of_a_two_class_question_is_found(slope):
    rng = np.random.default_rng(0)
    values = rng.normal(scale=2 / slope, size=(20_000, 1))
    truth = encode_labels(drawn(values, expit(slope * values[:, 0]), rng))
    found = calibrate(values, truth)
    assert_allclose(found.slopes.ravel(), slope, rtol=0.1)
    p = found.probabilities(values)
    assert_allclose(p.sum(axis=1), 1)
    assert_allclose(p[:, 1], expit(slope * values[:, 0]), atol=0.02)


def test_the_two_sides_of_a_question_have_their_own_slopes():
    rng = np.random.default_rng(1)
    values = rng.normal(size=(40_000, 1))
    p = expit(np.where(values > 0, 0.5, 3.0) * values)[:, 0]
    found = calibrate(values, encode_labels(drawn(values, p, rng)))
    assert_allclose(found.slopes.ravel(), [3.0, 0.5], rtol=0.1)


@pytest.mark.parametrize("slope", [0.5, 3.0])
def test_the_temperature_of_several_classes_is_found(slope):
    rng = np.random.default_rng(2)
    values = rng.normal(size=(20_000, 4))
    p = softmax(slope * values, axis=1)
    codes = (p.cumsum(axis=1) < rng.random(len(p))[:, None]).sum(axis=1)
    found = calibrate(values, encode_labels(codes))
    assert_allclose(found.slopes, slope, rtol=0.1)
    assert_allclose(found.probabilities(values), p, atol=0.02)


def test_a_probability_never_contradicts_the_prediction():
    rng = np.random.default_rng(3)
    two, four = rng.normal(size=(100, 1)), rng.normal(size=(100, 4))
    p = calibrate(two, encode_labels(rng.integers(2, size=100))).probabilities(two)
    assert_array_equal(p.argmax(axis=1), two[:, 0] > 0)
    p = calibrate(four, encode_labels(rng.integers(4, size=100))).probabilities(four)
    assert_array_equal(p.argmax(axis=1), four.argmax(axis=1))


def test_a_side_without_a_mistake_is_not_taken_for_infallible():
    values = np.linspace(-1, 1, 40)[:, None]
    found = calibrate(values, encode_labels((values[:, 0] > 0).astype(int)))
    # twenty right answers of twenty are worth 21 of 22
    assert found.probabilities(values).max(axis=1).mean() < 0.97


def test_two_lucky_samples_do_not_make_a_side_certain():
    rng = np.random.default_rng(6)
    values = rng.normal(-1.0, 0.4, size=(200, 1))
    values[:2] = 0.01  # given twice, barely, and right both times
    codes = np.zeros(200, dtype=int)
    codes[:8] = 1
    p = calibrate(values, encode_labels(codes)).probabilities(np.array([[0.3]]))
    assert p[0, 1] < 0.8


def test_too_few_labels_give_no_probabilities():
    values = np.linspace(-1, 1, ENOUGH - 1)[:, None]
    assert calibrate(values, encode_labels((values[:, 0] > 0).astype(int))) is None


def test_a_label_with_too_few_examples_has_none_and_the_others_have():
    rng = np.random.default_rng(4)
    values = rng.normal(size=(200, 2))
    indicator = (values > 0).astype(int)
    indicator[:, 1] = 0
    indicator[:2, 1] = 1
    p = calibrate(values, encode_labels(indicator)).probabilities(values)
    assert np.isnan(p[:, 1]).all()
    assert np.isfinite(p[:, 0]).all()


def test_a_class_that_a_fold_did_not_know_does_no_harm():
    rng = np.random.default_rng(5)
    values = rng.normal(size=(60, 3))
    values[:20, 2] = -np.inf
    p = calibrate(values, encode_labels(np.arange(60) % 3)).probabilities(values)
    assert np.isfinite(p).all()


def blocks(n, seed=0):
    """Samples of three classes, each using its own four of twelve features more."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % 3
    X = rng.gamma(1.0, size=(n, 12))
    X[np.repeat(np.eye(3, dtype=bool), 4, axis=1)[truth]] *= 2
    return X, truth


def test_probabilities_of_the_classifier_match_the_frequencies():
    X, truth = blocks(1500)
    y = np.where(np.arange(1500) < 300, truth, -1)
    model = NMFAlphaClassifier(6, random_state=0).fit(X, y)
    p = model.predict_proba(X[300:])
    assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X[300:]))
    sure = p.max(axis=1)
    right = model.predict(X[300:]) == truth[300:]
    assert abs(sure.mean() - right.mean()) < 0.06


def test_without_enough_labels_there_is_no_predict_proba():
    X, truth = blocks(60)
    model = NMFAlphaClassifier(4, random_state=0).fit(X, np.where(np.arange(60) < 12, truth, -1))
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError) as refused:
        model.predict_proba(X)
    assert "12 labels could be hidden" in str(refused.value.__cause__)


def test_there_are_probabilities_when_everything_is_given():
    X, truth = blocks(90)
    given = {"lam": 1.0, "C": 2.0, "map_iter": 9, "normalize": True, "max_iter": 10}
    model = NMFAlphaClassifier(4, **given, random_state=0)
    model.fit(X, np.where(np.arange(90) < 60, truth, -1))
    p = model.predict_proba(X)
    assert_allclose(p.sum(axis=1), 1)
    assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(X))
    assert 0.5 < model.honest_score_ <= 1
    model.set_params(rehearse=False).fit(X, truth)
    with pytest.raises(AttributeError) as refused:
        model.predict_proba(X)
    assert "rehearse=True" in str(refused.value.__cause__)
