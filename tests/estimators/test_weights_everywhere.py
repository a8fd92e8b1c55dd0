"""Weights of samples in every estimator: those beside `NMFAlpha`, and all of them in pipelines."""

import inspect

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import marginparts
from marginparts import (
    ConstrainedNMF,
    LabeledOnly,
    Landmarks,
    NMFAlphaConsensus,
    OnlineNMFAlphaClassifier,
    SemiNMFAlpha,
    SemiSupervisedNMF,
    TransductiveSVM,
)

R = 3
BASELINES = [SemiSupervisedNMF, ConstrainedNMF]
FORMS = [np.asarray, sp.csr_array]


def problem(seed=0, n=12, d=7):
    """Return data, a start, weights and labels, a third of them known."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, d)) * (rng.random((n, d)) > 0.3) + 0.01
    start = rng.random((n, R)) + 0.1, rng.random((d, R)) + 0.1
    return X, start, rng.integers(1, 4, n), np.resize([0, 1, 2, -1, -1, -1], n)


def plain(make, **more):
    options = {"solver": "mu", "max_iter": 40, "tol": 0.0, "random_state": 0}
    return make(R, **{**options, **more})


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("make", BASELINES)
@pytest.mark.parametrize("labeled", [False, True])
def test_weight_two_is_a_row_given_twice_from_the_same_start(make, form, labeled):
    X, (H, V), w, y = problem()
    y = y if labeled else np.full(len(X), -1)
    weighted = plain(make, init=(H, V)).fit(form(X), y, sample_weight=w)
    repeated = plain(make, init=(H.repeat(w, axis=0), V))
    repeated.fit(form(X.repeat(w, axis=0)), y.repeat(w))
    assert_allclose(weighted.components_, repeated.components_, rtol=1e-6, atol=1e-9)
    assert_allclose(weighted.loss_curve_, repeated.loss_curve_, rtol=1e-6)
    assert_allclose(weighted.reconstruction_err_, repeated.reconstruction_err_, rtol=1e-6)
    assert_allclose(weighted.transform(X), repeated.transform(X), rtol=1e-6, atol=1e-9)


def lee_updates(X, y, w, lam, H, V, U, n_iter):
    """Transcribe the updates of the weighted eq. 18 index by index; labels y >= 0 are known."""
    H, V, U = H.copy(), V.copy(), U.copy()
    (n, d), c = X.shape, len(U)
    known = [i for i in range(n) if y[i] >= 0]
    mass = sum(w[i] * X[i, j] ** 2 for i in known for j in range(d))
    unit = np.sqrt(mass / sum(w[i] for i in known))
    Y = np.array([[unit * (y[i] == k) for k in range(c)] for i in range(n)])
    for _ in range(n_iter):
        fit, new = H @ V.T, V.copy()
        for j in range(d):
            for a in range(R):
                up = sum(w[i] * X[i, j] * H[i, a] for i in range(n))
                new[j, a] *= up / sum(w[i] * fit[i, j] * H[i, a] for i in range(n))
        V, said, new = new, H @ U.T, U.copy()
        for k in range(c):
            for a in range(R):
                up = sum(w[i] * Y[i, k] * H[i, a] for i in known)
                new[k, a] *= up / sum(w[i] * said[i, k] * H[i, a] for i in known)
        U, new = new, H.copy()
        fit, said = H @ V.T, H @ U.T
        for i in range(n):
            for a in range(R):
                up = sum(X[i, j] * V[j, a] for j in range(d))
                down = sum(fit[i, j] * V[j, a] for j in range(d))
                if i in known:
                    up += lam * sum(Y[i, k] * U[k, a] for k in range(c))
                    down += lam * sum(said[i, k] * U[k, a] for k in range(c))
                new[i, a] *= up / down
        H = new
    error = sum(w[i] * ((X - H @ V.T)[i] ** 2).sum() for i in range(n))
    said = sum(w[i] * ((Y - H @ U.T)[i] ** 2).sum() for i in known)
    return V, error, error + lam * said


def test_the_weighted_regression_is_that_of_a_transcription(monkeypatch):
    X, (H, V), w, y = problem()
    U = np.random.default_rng(3).random((3, R)) + 0.1
    # the start of U is no parameter: here it is flat in units of what the estimator multiplies with
    monkeypatch.setattr("marginparts.estimators.baselines.uniform_rows", lambda *_: U)
    top = np.sqrt(sum(w[y >= 0] * (X[y >= 0] ** 2).sum(axis=1)) / w[y >= 0].sum())
    U_start = U[np.argsort(np.argsort([0, 1, 2]))] * top / np.average(H.mean(axis=1), weights=w)
    model = plain(SemiSupervisedNMF, lam=0.7, init=(H, V), max_iter=6).fit(X, y, sample_weight=w)
    V, error, loss = lee_updates(X, y, w, 0.7, H, V, U_start, 6)
    assert_allclose(model.components_, V.T / V.sum(axis=0)[:, None], rtol=1e-10)
    assert_allclose(model.reconstruction_err_, np.sqrt(error), rtol=1e-10)
    assert_allclose(model.loss_curve_[-1], loss, rtol=1e-10)


@pytest.mark.parametrize("make", [*BASELINES, SemiNMFAlpha])
def test_errors_warnings_and_words_are_where_they_are_looked_for(make, capsys):
    X, _, _, y = problem()
    with pytest.warns(ConvergenceWarning, match="increase one of them"):
        model = make(R, max_iter=11, tol=1e-12, verbose=1, random_state=0).fit(X)
    assert "loss" in capsys.readouterr().out
    assert model.n_components_ == R
    assert_allclose(model.reconstruction_err_, np.sqrt(model.loss_curve_[-1]), rtol=1e-6)
    with_labels = make(R, max_iter=11, tol=0, random_state=0).fit(X, y)
    assert 0 < with_labels.reconstruction_err_ <= 1.01 * np.sqrt(with_labels.loss_curve_[-1])


@pytest.mark.filterwarnings("ignore::UserWarning")  # so few samples
def test_what_is_made_of_parts_says_what_these_say(capsys):
    X, _, _, y = problem(n=40)
    consensus, model = small(NMFAlphaConsensus).fit(X), small(marginparts.NMFAlphaClassifier)
    inner = {consensus: consensus.estimator_, model.fit(X, y): model.parts_}
    for each, parts in inner.items():
        assert each.reconstruction_err_ == parts.reconstruction_err_ > 0
        assert (each.n_components_, each.n_iter_) == (R, parts.n_iter_)
    stream = small(OnlineNMFAlphaClassifier).set_params(verbose=1)
    stream.partial_fit(X[:30]).partial_fit(X[30:])
    assert stream.n_components_ == R
    assert capsys.readouterr().out.splitlines() == [
        "30 samples seen, 10 waiting", "40 samples seen, 0 waiting"
    ]  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_the_transductive_svm_counts_labeled_and_unlabeled_samples_by_their_weight(form):
    rng = np.random.default_rng(0)
    side = np.resize([-1, 1], 60)
    X = rng.normal(size=(60, 2)) + 1.5 * side[:, None]
    y = np.where(np.arange(60) < 10, side > 0, -1)
    w = np.ones(60, dtype=int)
    w[[0, 3, 20, 21, 25, 40]] = 3, 2, 2, 3, 2, 4
    model = TransductiveSVM(tol=1e-5, random_state=0)
    plain = sklearn.clone(model).fit(form(X), y)
    weighted = sklearn.clone(model).fit(form(X), y, sample_weight=w)
    repeated = model.fit(form(X.repeat(w, axis=0)), y.repeat(w))  # fewer than half are repeats
    assert_allclose(weighted.coef_, repeated.coef_, rtol=0.02)
    assert_allclose(weighted.intercept_, repeated.intercept_, atol=0.02)
    assert np.abs(plain.coef_ - repeated.coef_).max() > 0.05


def test_samples_of_weight_zero_take_no_part():
    X, _, _, y = problem(n=24)
    w = np.ones(24)
    w[[4, 5, 11, 16]] = 0
    kept = w > 0
    for model in (TransductiveSVM(random_state=0), plain(SemiSupervisedNMF), plain(ConstrainedNMF)):
        some = sklearn.clone(model).fit(X, y, sample_weight=w)
        model.fit(X[kept], y[kept])
        name = "coef_" if hasattr(model, "coef_") else "components_"
        assert_array_equal(getattr(some, name), getattr(model, name))
    some, model = (Landmarks(n_landmarks=4, random_state=0) for _ in range(2))
    some.fit(X, sample_weight=w)
    assert_array_equal(some.landmarks_, model.fit(X[kept]).landmarks_)
    assert some.gamma_ == model.gamma_


def test_landmarks_are_those_of_rows_given_as_often_as_they_count():
    X, _, w, _ = problem(n=30)
    weighted = Landmarks(n_landmarks=4, random_state=0).fit(X, sample_weight=w + 1)
    repeated = Landmarks(n_landmarks=4, random_state=0).fit(X.repeat(w + 1, axis=0))
    assert_array_equal(weighted.landmarks_, repeated.landmarks_)
    assert weighted.gamma_ == repeated.gamma_
    heavy = Landmarks(n_landmarks=1, random_state=0).fit(X, sample_weight=[1e6] + [1e-6] * 29)
    assert_allclose(heavy.landmarks_[0], X[0], atol=1e-3)


def with_fit():
    """Return all public estimators, so that a new one cannot be forgotten."""
    found = [getattr(marginparts, name) for name in marginparts.__all__]
    return [each for each in found if inspect.isclass(each) and issubclass(each, BaseEstimator)]


@pytest.mark.parametrize("make", with_fit(), ids=lambda cls: cls.__name__)
def test_every_estimator_takes_weights_and_can_ask_for_them(make):
    methods = [name for name in ("fit", "partial_fit", "score") if hasattr(make, name)]
    if make is LabeledOnly:  # passes on what its estimator asks for
        return
    for name in methods:
        assert "sample_weight" in inspect.signature(getattr(make, name)).parameters, name
        assert hasattr(make, f"set_{name}_request")


def small(make):
    if make is NMFAlphaConsensus:
        return make(marginparts.NMFAlpha(R, max_iter=5), n_runs=2, run_iter=3, random_state=0)
    if make is LabeledOnly:
        return make(TransductiveSVM(random_state=0))
    if make in (Landmarks, TransductiveSVM):
        return make(random_state=0)
    if make is marginparts.NMFAlphaCV:
        return make((2, R), lam=3.0, C=2.0, map_iter=5, normalize=False, cv=2, random_state=0)
    if make is OnlineNMFAlphaClassifier:
        return make(R, batch_size=20, random_state=0)
    return make(R, max_iter=10, random_state=0)


@pytest.mark.parametrize("make", with_fit(), ids=lambda cls: cls.__name__)
@pytest.mark.filterwarnings("ignore::UserWarning")  # so few samples
def test_a_pipeline_brings_weights_to_every_estimator(make):
    X, _, w, y = problem(n=60)
    alone = small(make).fit(X, y, sample_weight=w)
    unweighted = small(make).fit(X, y)
    with sklearn.config_context(enable_metadata_routing=True):
        last = small(make)
        getattr(last, "estimator", last).set_fit_request(sample_weight=True)
        if make is NMFAlphaConsensus:
            last.set_fit_request(sample_weight=True)
        whole = make_pipeline(FunctionTransformer(), last).fit(X, y, sample_weight=w)
    said = "decision_function" if hasattr(make, "decision_function") else "transform"
    ours, direct, without = (getattr(m, said)(X) for m in (whole, alone, unweighted))
    assert_array_equal(ours, direct)
    assert not np.array_equal(direct, without)
