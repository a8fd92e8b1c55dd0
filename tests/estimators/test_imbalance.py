"""Rare classes and labels: weights, scores and thresholds."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import metrics
from sklearn.svm import LinearSVC

from marginparts import NMFAlphaClassifier, NMFAlphaCV, TransductiveSVM
from marginparts.labels import encode_labels
from marginparts.scores import quality
from marginparts.svm.class_weights import task_weights
from marginparts.svm.head import fit_head
from marginparts.svm.newton import SquaredHinge
from marginparts.svm.thresholds import choose_thresholds


def rare(n=1200, labeled=500, seed=0):
    """Return counts of which one in ten has somewhat more of some features."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(n) < 0.1).astype(int)
    rates = np.where(np.arange(30) < 6, 1 + 0.8 * truth[:, None], 1.0)
    X = rng.poisson(rates).astype(float)
    X[X.sum(axis=1) == 0, 0] = 1
    return X, np.where(np.arange(n) < labeled, truth, -1), truth


# --- weights


def test_balanced_weights_find_what_is_rare():
    X, y, truth = rare()
    given = {"lam": 1.0, "map_iter": 15, "normalize": True, "C": 2.0, "rehearse": False}
    plain, balanced = (
        NMFAlphaClassifier(6, **given, class_weight=w, random_state=0).fit(X, y)
        for w in (None, "balanced")
    )
    f = [metrics.f1_score(truth[500:], m.predict(X[500:])) for m in (plain, balanced)]
    assert f[1] > f[0] + 0.15


def test_the_transductive_svm_weighs_classes():
    X, y, truth = rare(n=300, labeled=200)
    found = [
        metrics.recall_score(truth, TransductiveSVM(0.01, class_weight=w).fit(X, y).predict(X))
        for w in (None, "balanced", {1: 50.0})
    ]
    assert found[0] < found[1]
    assert found[0] < found[2]


def test_weighted_svms_agree_with_liblinear():
    X, y, _ = rare(n=200, labeled=200)
    labels = encode_labels(y)
    theirs = LinearSVC(C=0.5, class_weight="balanced", tol=1e-8, max_iter=100_000).fit(X, y)
    counts = task_weights(labels.tasks()[0], labels, "balanced")
    signs = np.where(y == 1, 1.0, -1.0)
    w = SquaredHinge(np.hstack([X, np.ones((200, 1))]), signs, counts).at(0.5)
    assert_allclose(w, np.append(theirs.coef_, theirs.intercept_), atol=1e-3)
    dense, sparse = (fit_head(Z, labels, 1.0, class_weight={1: 4.0}) for Z in (X, sp.csr_array(X)))
    assert_allclose(dense.coef, sparse.coef, atol=0.02)


def test_balanced_weights_let_classes_and_the_sides_of_a_label_count_alike():
    labels = encode_labels([0, 1, 1, 2, 2, 2, -1])
    (first, *_) = labels.tasks()
    weights = task_weights(first, labels, "balanced")
    assert_allclose([weights[labels.codes[first.rows] == k].sum() for k in range(3)], 2.0)
    several = encode_labels([[1, 0], [0, 1], [0, 1], [0, -1]])
    for task in several.tasks():
        weights = task_weights(task, several, "balanced")
        assert_allclose(weights[task.signs > 0].sum(), weights[task.signs < 0].sum())
        assert_allclose(weights.mean(), 1.0)
    assert_array_equal(task_weights(several.tasks()[0], several, {0: 5.0}), [5, 1, 1, 1])


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"class_weight": "fair"}, "class_weight='fair'"),
        ({"class_weight": {1: 0}}, "larger than 0"),
        ({"class_weight": {"spam": 2.0}}, "names 'spam'"),
        ({"scoring": "roc"}, "scoring='roc'"),
        ({"thresholds": 0.3}, "thresholds=0.3"),
        ({"output": "Z"}, "output='Z'"),
        ({"direction_C": 0}, "direction_C=0"),
    ],
)
def test_what_cannot_be_meant_is_refused(options, sentence):
    X, y, _ = rare(n=40, labeled=40)
    with pytest.raises(ValueError, match=sentence):
        NMFAlphaClassifier(3, **options).fit(X, y)


# --- scores


@pytest.mark.parametrize("kind", ["binary", "multiway", "multilabel"])
def test_scores_are_those_of_scikit_learn(kind):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(80, 1 if kind == "binary" else 3))
    if kind == "multilabel":
        truth, guess = rng.integers(2, size=(80, 3)), (values > 0).astype(int)
    else:
        truth = rng.choice(2 if kind == "binary" else 3, size=80, p=None)
        guess = (values[:, 0] > 0).astype(int) if kind == "binary" else values.argmax(axis=1)
    labels = encode_labels(truth)
    for name in ("f1_macro", "f1_micro"):
        expected = metrics.f1_score(truth, guess, average=name[3:])
        assert_allclose(quality(values, labels, name), expected)
    assert_allclose(quality(values, labels, "accuracy"), metrics.accuracy_score(truth, guess))
    if kind == "multilabel":
        each = [metrics.balanced_accuracy_score(truth[:, k], guess[:, k]) for k in range(3)]
        assert_allclose(quality(values, labels, "balanced_accuracy"), np.mean(each))
    else:
        expected = metrics.balanced_accuracy_score(truth, guess)
        assert_allclose(quality(values, labels, "balanced_accuracy"), expected)
    if kind == "binary":
        assert_allclose(quality(values, labels, "f1"), metrics.f1_score(truth, guess))
    else:
        with pytest.raises(ValueError, match="two classes"):
            NMFAlphaCV(3, scoring="f1").fit(np.ones((80, 4)), truth)


def test_the_choice_goes_by_the_score_that_was_asked_for():
    X, y, _ = rare(n=150, labeled=150)
    grid = {"lam": 1.0, "map_iter": 5, "normalize": True, "C": (0.01, 10.0), "max_iter": 10}
    model = NMFAlphaCV(3, **grid, scoring="balanced_accuracy", random_state=0).fit(X, y)
    assert min(map(np.mean, model.selection_.values())) == 0.5  # all are said to be common


# --- thresholds


def test_one_threshold_for_few_labels_and_one_each_for_many():
    rng = np.random.default_rng(1)
    truth = (rng.random((2000, 3)) < [0.1, 0.1, 0.01]).astype(int)
    values = 0.1 * rng.normal(size=truth.shape) + np.where(truth == 1, [-0.3, 0.3, -0.3], -0.7)
    labels = encode_labels(truth)
    found = choose_thresholds(values, labels)
    assert_allclose(found[0], -0.5, atol=0.1)  # between the two sides
    assert -0.6 < found[1] < 0.2
    few = choose_thresholds(values[:200], labels.take(np.arange(200)))
    assert np.ptp(few) == 0  # one for all
    assert quality(values - found, labels) > quality(values, labels) + 0.3
    assert_array_equal(choose_thresholds(values[:10], labels.take(np.arange(10))), 0)


def several(n=400, labeled=200, seed=0):
    """Return counts with two rare labels."""
    rng = np.random.default_rng(seed)
    truth = (rng.random((n, 2)) < 0.12).astype(int)
    rates = np.ones((n, 16))
    rates[:, :4] += 1.2 * truth[:, :1]
    rates[:, 4:8] += 1.2 * truth[:, 1:]
    X = rng.poisson(rates).astype(float)
    X[X.sum(axis=1) == 0, 0] = 1
    return X, np.where(np.arange(n)[:, None] < labeled, truth, -1), truth


def test_thresholds_of_the_classifier_raise_the_f_measure():
    X, y, truth = several()
    given = {"lam": 0.3, "map_iter": 15, "normalize": True, "C": 2.0, "random_state": 0}
    plain, moved = (
        NMFAlphaClassifier(4, **given, thresholds=how).fit(X, y) for how in (None, "auto")
    )
    unseen = encode_labels(truth[200:])
    values = [m.decision_function(X[200:]) for m in (plain, moved)]
    assert quality(values[1], unseen) > quality(values[0], unseen) + 0.05
    assert_allclose(values[1], values[0] - moved.thresholds_)
    assert_array_equal(moved.predict(X) == 1, moved.predict_proba(X) > 0.5)
    assert moved.honest_score_ > np.mean(next(iter(moved.selection_.values())))
    assert_array_equal(plain.thresholds_, 0)
