"""Weights of samples in a stream, in `score`, and on their way through scikit-learn."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from packaging.version import Version
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from marginparts import (
    LabeledOnly,
    NMFAlpha,
    NMFAlphaClassifier,
    OnlineNMFAlphaClassifier,
    TransductiveSVM,
    load,
    save,
)
from marginparts.datasets import load_digits_49

DIGITS = load_digits_49()
X, TRUTH = DIGITS.data, DIGITS.target
TOLD = {"lam": 1.0, "map_iter": 5, "C": 1.0, "normalize": True, "rehearse": False, "max_iter": 10}


def stream(**more):
    return OnlineNMFAlphaClassifier(6, **{"batch_size": 50, "random_state": 0, **more})


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_weight_two_is_an_unlabeled_sample_given_twice(form):
    """Labels would be learned in another order: the learners see one sample after another."""
    w = np.random.default_rng(0).integers(1, 4, 100)
    both = [stream(batch_size=1000) for _ in range(2)]
    both[0].partial_fit(form(X[:100]), sample_weight=w)
    both[1].partial_fit(form(X[:100].repeat(w, axis=0)))
    assert_allclose(both[0].components_, both[1].components_, rtol=1e-8, atol=1e-12)


def test_what_has_left_the_memory_counts_by_its_weight():
    w = np.random.default_rng(0).integers(1, 4, 200).astype(float)
    model = stream(memory=20, batch_size=40).partial_fit(X[:200], TRUTH[:200], sample_weight=w)
    past, memory = model.stream_.past, model.stream_.memory
    kept = memory.weighted.sum()
    assert_allclose(past.mass + kept, (w @ X[:200]).sum(), rtol=1e-6)
    assert_array_equal(np.unique(memory.sample_weight), [1, 2, 3])


@pytest.mark.parametrize("labeled", [False, True])
def test_weight_zero_leaves_a_sample_out_and_weight_one_is_nothing(labeled):
    w = (np.random.default_rng(0).random(200) > 0.3).astype(float)
    y = np.where(np.arange(200) % 3 == 0, TRUTH[:200], -1) if labeled else None
    some, kept = stream(), w > 0
    for rows in np.split(np.arange(200), 4):
        some.partial_fit(X[rows], None if y is None else y[rows], sample_weight=w[rows])
    wanted = stream().partial_fit(X[:200][kept], None if y is None else y[kept])
    assert_array_equal(some.components_, wanted.components_)
    assert some.n_samples_seen_ == kept.sum()
    ones = stream().partial_fit(X[:200], y, sample_weight=np.ones(200))
    assert_array_equal(ones.components_, stream().partial_fit(X[:200], y).components_)


@pytest.mark.parametrize("light", [1e-3, 1e3])
def test_no_sample_is_forgotten_for_being_light(light):
    plain = stream(half_life=100).partial_fit(X[:200], TRUTH[:200])
    model = stream(half_life=100, C=2.0 / light)
    model.partial_fit(X[:200], TRUTH[:200], sample_weight=np.full(200, light))
    assert len(model.stream_.memory) == len(plain.stream_.memory)
    assert model.score(X[200:], TRUTH[200:]) > 0.9


@pytest.mark.parametrize("memory", [1000, 30])
def test_wrong_labels_without_weight_have_no_say(memory):
    wrong, w = TRUTH.copy(), np.ones(len(X))
    wrong[:150:2] = np.where(TRUTH[:150:2] == 0, 1, 0)
    w[:150:2] = 1e-6
    model = stream(memory=memory).partial_fit(X[:150], wrong[:150], sample_weight=w[:150])
    assert model.score(X[150:], TRUTH[150:]) > 0.9
    again = stream(memory=memory).fit(X[:150], wrong[:150], sample_weight=w[:150])
    assert again.score(X[150:], TRUTH[150:]) > 0.9
    without = stream(memory=memory).partial_fit(X[:150], wrong[:150])
    assert model.score(X[150:], TRUTH[150:]) > without.score(X[150:], TRUTH[150:])


def test_a_stream_with_weights_goes_on_from_a_file(tmp_path):
    w = np.linspace(0.1, 3, 200)
    whole, model = stream(), stream()
    for model_rows in (slice(0, 120), slice(120, 200)):
        for each in (whole, model):
            each.partial_fit(X[model_rows], TRUTH[model_rows], sample_weight=w[model_rows])
        save(model, tmp_path / "it.model")
        model = load(tmp_path / "it.model")
    assert_array_equal(model.components_, whole.components_)
    assert_array_equal(model.decision_function(X), whole.decision_function(X))


MODELS = [
    stream(), NMFAlphaClassifier(4, **TOLD, random_state=0), TransductiveSVM(),
    LabeledOnly(NMFAlphaClassifier(4, **TOLD, random_state=0)),
]  # fmt: skip


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_a_score_counts_samples_by_their_weight(model):
    model, y = sklearn.clone(model), TRUTH.copy()
    w = np.random.default_rng(0).integers(0, 4, len(X))
    with sklearn.config_context(enable_metadata_routing=isinstance(model, LabeledOnly)):
        if isinstance(model, LabeledOnly):
            model.estimator.set_score_request(sample_weight=True)
        model.fit(X[:60], y[:60])
        y[::5] = -1  # not known
        score = model.score(X, y, sample_weight=w)
        known = y != -1
        wanted = accuracy_score(y[known], model.predict(X)[known], sample_weight=w[known])
        assert_allclose(score, wanted)
        twice = np.arange(len(X)).repeat(w)
        assert_allclose(score, model.score(X[twice], y[twice]))


def test_weights_that_make_no_sense_are_refused():
    model = stream()
    for given, what in (
        (np.ones(3), "shape"),
        (-np.ones(50), "0 or larger"),
        (np.zeros(50), "not"),
    ):
        with pytest.raises(ValueError, match=what):
            model.partial_fit(X[:50], TRUTH[:50], sample_weight=given)
        assert not hasattr(model, "stream_")
        with pytest.raises(ValueError, match=what):
            stream().partial_fit(X[:50], TRUTH[:50]).score(X[:50], TRUTH[:50], given)
    known = np.where(np.arange(50) < 9, TRUTH[:50], -1)
    with pytest.raises(ValueError, match="weight 0"):
        model.partial_fit(X[:50], TRUTH[:50]).score(X[:50], known, np.arange(50) >= 9)


@pytest.mark.skipif(
    Version(sklearn.__version__) < Version("1.7"),
    reason="scikit-learn before 1.7 does not route metadata to the score of a pipeline",
)
def test_weights_are_routed_to_fit_score_and_partial_fit():
    w = np.resize([0.0, 1.0, 2.0], 120)
    with sklearn.config_context(enable_metadata_routing=True):
        last = stream().set_fit_request(sample_weight=True)
        last.set_score_request(sample_weight=True).set_partial_fit_request(sample_weight=True)
        whole = Pipeline([("roots", FunctionTransformer(np.sqrt)), ("last", last)])
        whole.fit(X[:120], TRUTH[:120], sample_weight=w)
        assert whole["last"].n_samples_seen_ == 80
        plain = whole.score(X[:120], TRUTH[:120])
        assert 0 <= plain <= 1
        search = GridSearchCV(whole, {"last__n_components": [2, 4]}, cv=2)
        search.fit(X[:120], TRUTH[:120], sample_weight=w)
        assert search.score(X, TRUTH, sample_weight=np.ones(len(X))) > 0.8
        by_hand = sklearn.clone(last).fit(np.sqrt(X[:120]), TRUTH[:120], sample_weight=w)
        assert_array_equal(whole["last"].components_, by_hand.components_)
        scores = cross_validate(last, X[:120], TRUTH[:120], cv=2, params={"sample_weight": w})
        assert len(scores["test_score"]) == 2
        requests = last.get_metadata_routing()
        assert requests.partial_fit.requests["sample_weight"] is True
        # who does not ask for weights is not given any
        silent = Pipeline([("last", stream())])
        with pytest.raises(ValueError, match="sample_weight"):
            silent.fit(X[:120], TRUTH[:120], sample_weight=w)
        parts = NMFAlpha(3, random_state=0, tol=0.1).set_fit_request(sample_weight=True)
        head = NMFAlphaClassifier(2, **TOLD, random_state=0)
        head.set_fit_request(sample_weight=False).set_score_request(sample_weight=True)
        both = Pipeline([("parts", parts.set_params(output="coefficients")), ("head", head)])
        both.fit(X[:120], TRUTH[:120], sample_weight=w)
        assert_array_equal(both["parts"].sample_weight_, w)
        assert both["head"].parts_.sample_weight_ is None
