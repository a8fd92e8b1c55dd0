"""What is chosen against the obvious alternatives, on equal terms."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from marginparts import NMFAlphaClassifier, NMFAlphaCV
from marginparts.app import evaluation
from marginparts.app.evaluation import Rated, compare
from marginparts.app.report._payload import headline_sentence
from marginparts.labels import encode_labels
from marginparts.rivals import contest as rivals
from marginparts.selection import folds
from marginparts.selection.folds import folds_of


def fitted(X, y, **options):
    model = NMFAlphaCV((2, 4), random_state=0, **options).fit(X, y)
    return compare(X, encode_labels(y), model.choice_, seed=0), model


@pytest.mark.wide
def test_ours_is_what_was_chosen_and_the_rivals_are_scored_on_the_same_folds():
    rng = np.random.default_rng(0)
    truth = np.arange(80) % 2
    X = rng.gamma(1.0, size=(80, 8))
    X[truth == 0, :4] *= 4
    X[truth == 1, 4:] *= 4
    rated, model = fitted(X, np.where(np.arange(80) < 40, truth, -1))
    assert [r.name for r in rated] == [
        f"NMF-alpha, {model.n_components_} parts",
        "linear SVM on the inputs",
        f"plain NMF, {model.n_components_} parts",
        "transductive SVM on the inputs",
        "self-training SVM on the inputs",
        "LSA and a linear SVM",
        "label spreading",
    ]
    assert rated[0].score == model.honest_score_
    assert all(0.7 < r.score <= 1 for r in rated)


def test_counts_have_naive_bayes_and_a_large_set_has_no_transductive_svm(monkeypatch):
    rng = np.random.default_rng(5)
    truth = np.arange(80) % 2
    X = sp.csr_array(rng.poisson(1 + 3 * (np.arange(8) % 2 == truth[:, None])).astype(float))
    y = np.where(np.arange(80) < 40, truth, -1)
    model = NMFAlphaCV((2,), random_state=0).fit(X, y)

    def names():
        return [r.name for r in compare(X, encode_labels(y), model.choice_, seed=0)]

    assert "naive Bayes with EM" in names()
    monkeypatch.setattr(rivals, "_TSVM_WORK", 10)
    assert "transductive SVM on the inputs" not in names()
    monkeypatch.setattr(evaluation, "_FEW_LABELS", 10)
    assert len(names()) == 3  # too many labels for the others


def test_the_others_see_hidden_labels_no_more_than_we_do():
    """With labels that are noise nobody is good, whatever is tried."""
    rng = np.random.default_rng(6)
    X = sp.csr_array(rng.poisson(1.0, (120, 12)).astype(float))
    y = np.where(np.arange(120) < 80, rng.integers(2, size=120), -1)
    labels = encode_labels(y)
    for rival in rivals.RIVALS:
        ours = folds_of(labels, 0)
        said = rivals.hidden_values(rival, X, labels, ours, 0)
        assert 0 < len(said) <= len(rival.settings)
        scores = [
            [fold.quality(values) for fold, values in zip(ours, own, strict=True)]
            for own in said.values()
        ]
        assert abs(np.mean(scores) - 0.5) < 0.15, rival.name


def test_fewer_unlabeled_rows_leave_every_label_where_it_was(monkeypatch):
    rng = np.random.default_rng(7)
    truth = np.arange(200) % 2
    X = rng.gamma(1.0, size=(200, 6)) + 4 * (np.arange(6) % 2 == truth[:, None])
    y = np.where(rng.random(200) < 0.3, truth, -1)
    monkeypatch.setattr(evaluation, "_FEW_ROWS", 20)
    rated, _ = fitted(X, y)
    assert all(r.score > 0.85 for r in rated)


def test_rivals_may_use_the_length_of_samples_as_ours_may():
    rng = np.random.default_rng(1)
    truth = np.arange(120) % 2
    X = rng.dirichlet(np.ones(6), size=120) * (1 + 9 * truth)[:, None]  # only the size tells
    rated, _ = fitted(X, truth)
    assert min(r.score for r in rated) > 0.9


@pytest.mark.wide
def test_noise_flatters_nobody():
    rng = np.random.default_rng(2)
    scores = []
    for _ in range(4):
        X = rng.gamma(1.0, size=(60, 10))
        y = np.where(np.arange(60) < 40, rng.integers(2, size=60), -1)
        rated, _ = fitted(X, y)
        scores.append([r.score for r in rated])
    assert np.abs(np.mean(scores, axis=0) - 0.5).max() < 0.2


def test_copies_flatter_nobody():
    rng = np.random.default_rng(8)
    X, y = np.repeat(rng.random((60, 20)), 3, axis=0), np.repeat(rng.integers(2, size=60), 3)
    model = NMFAlphaClassifier(4, max_iter=20, random_state=0).fit(X, y)
    rated = compare(X, encode_labels(y), model.choice_)
    assert max(r.score for r in rated) < 0.75


def test_the_folds_are_the_same_where_the_teachers_saw_some_rows_only(monkeypatch):
    monkeypatch.setattr(folds, "_ENOUGH_ROWS", 50)
    monkeypatch.setattr(folds, "_LARGE", 300)
    rng = np.random.default_rng(9)
    y = np.where(np.arange(200) < 40, np.arange(200) % 2, -1)
    X = rng.random((200, 6)) + (np.arange(6) % 2 == (np.arange(200) % 2)[:, None])
    model = NMFAlphaClassifier(4, max_iter=20, random_state=0).fit(X, y)
    seen = []
    monkeypatch.setattr(evaluation, "_honest", lambda name, some, *_: seen.append((name, some)))
    compare(X, encode_labels(y), model.choice_)
    assert dict(seen).keys() >= {"linear SVM on the inputs", "plain NMF, 4 parts"}
    for name, some in seen[:2]:
        for fold, (known, hidden) in zip(some, model.choice_.folds, strict=True):
            assert_array_equal(fold.hidden, hidden, err_msg=name)
            assert_array_equal(np.flatnonzero(fold.left.labeled), known, err_msg=name)


def test_nothing_tried_is_nothing_rated():
    X = np.random.default_rng(3).random((10, 4))
    y = np.array([0, 1] + [-1] * 8)
    assert fitted(X, y)[0] == []


@pytest.mark.parametrize("classes", [2, 3])
def test_several_classes(classes):
    rng = np.random.default_rng(4)
    truth = np.arange(90) % classes
    X = rng.gamma(1.0, size=(90, 9)) + 3 * (np.arange(9) % classes == truth[:, None])
    rated, _ = fitted(X, np.where(np.arange(90) < 60, truth, -1))
    assert all(r.score > 0.7 for r in rated)


@pytest.mark.parametrize(
    ("best", "words"), [(0.95, "5.0 points below"), (0.8, "10.0 points above")]
)
def test_the_sentence_names_the_best_of_the_others(best, words):
    rated = [
        Rated("NMF-alpha, 4 parts", 0.9, 0.01), Rated("linear SVM on the inputs", 0.8, 0.01),
        Rated("plain NMF, 4 parts", 0.7, 0.01), Rated("label spreading", 0.6, 0.01),
        Rated("naive Bayes with EM", best, 0.01),
    ]  # fmt: skip
    model = SimpleNamespace(
        card=SimpleNamespace(rated=rated, doubt=None), metric="accuracy", n_parts=4,
        classifier=SimpleNamespace(n_features_in_=9),
    )  # fmt: skip
    said = headline_sentence(model)
    assert said.endswith(f"It is {words} the best of the others that were tried, {rated[-1].name}.")
    model.card.rated = rated[:3]  # as models of before have it
    assert headline_sentence(model).endswith("plain NMF.")
