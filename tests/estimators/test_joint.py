"""Directions that move with the parts: one objective that never rises, stopped by hidden labels."""

import warnings
from itertools import islice

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import kl_div

from marginparts import NMFAlpha, NMFAlphaClassifier, SemiNMFAlpha
from marginparts.directions import DirectionSpec, find_directions
from marginparts.estimators._joint import rounds_of
from marginparts.labels import encode_labels
from marginparts.svm.joint import Joint
from oracle import KINDS


def data(seed=0, classes=2, n=40, d=15):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    y[:classes] = np.arange(classes)
    X = rng.random((n, d)) * (rng.random((n, d)) < 0.5)
    X[:, :classes] += 0.4 * (y[:, None] == np.arange(classes)) + 0.01
    return X, np.where((np.arange(n) % 3 == 2) & (np.arange(n) >= classes), -1, y)


def objective(X, H, V, S, lam, asked, alphas, mu):
    """J as docs/math.md has it, with nothing shared."""
    total = kl_div(X, H @ V.T).sum() + lam * kl_div(S.T @ X, S.T @ H @ V.T).sum()
    for k, (task, cost, alpha) in enumerate(zip(asked.tasks, asked.costs, alphas, strict=True)):
        w = asked.seen.toarray()[task.rows].T @ (alpha * task.signs)
        total += mu[k] * (w @ w / 2 + (alpha**2 / (4 * cost)).sum() - alpha.sum())
    return total


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 10**6), classes=st.integers(2, 4), rank=st.integers(1, 6),
    lam=st.sampled_from([0.1, 1.0, 3.0, 30.0]), C=st.sampled_from([0.1, 1.0, 10.0]),
    kind=st.sampled_from(sorted(KINDS)), hellinger=st.booleans(),
)  # fmt: skip
def test_the_objective_never_rises(seed, classes, rank, lam, C, kind, hellinger):
    X, y = data(seed, classes)
    features = "hellinger" if hellinger else None
    parts = NMFAlpha(rank, direction_C=C, features=features, max_iter=10, backend="reference")
    rounds = islice(
        rounds_of(KINDS[kind](X), encode_labels(y), parts._recipe(), rank, lam, seed), 4
    )
    course = [value for each in rounds for value in each.objective]
    assert len(course) >= 1
    assert np.isfinite(course).all()
    sizes = 1e-9 * np.maximum(np.abs(course[:-1]), 1)
    assert (np.diff(course) <= sizes).all()


@pytest.mark.parametrize("classes", [2, 3])
def test_the_objective_is_the_loss_and_the_duals_of_the_svms(classes):
    X, y = data(1, classes)
    recipe = NMFAlpha(4, max_iter=10)._recipe()
    for each in islice(rounds_of(X, encode_labels(y), recipe, 4, 3.0, 0), 3):
        asked, S = each.found.asked, each.found.S.toarray()
        if len(each.objective) == 1:
            start = each.result.H, each.result.V
            mu, unit = Joint.of(X, asked, 3.0, *start).mu, S  # of the start, for all rounds
        alphas = [own_alphas(asked, S, k) for k in range(len(asked.tasks))]
        expected = objective(X, each.result.H, each.result.V, S, 3.0, asked, alphas, mu)
        assert_allclose(each.objective[-1], expected, rtol=1e-9)
    assert not np.allclose(unit, S)  # S did move


def own_alphas(asked, S, k):
    """The coefficients of a question back from S."""
    task, p = asked.tasks[k], len(asked.tasks)
    column = np.where(task.signs > 0, k, p + k)
    return S[task.rows, column] / asked.factors[column] / asked.carry[task.rows]


def test_prices_are_the_slopes_of_the_divergence():
    X, y = data(2)
    found = find_directions(X, encode_labels(y), DirectionSpec(), keep=True)
    rng = np.random.default_rng(0)
    H, V = rng.random((len(X), 3)), rng.random((X.shape[1], 3))
    joint = Joint.of(X, found.asked, 2.0, H, V)
    alpha = rng.random(len(found.asked.tasks[0].rows)) + 0.1
    alone = joint._replace(mu=np.zeros(1))

    def loss(alpha):
        return alone.value(0, alone._point(0, alpha, H), V)

    steps = 1e-6 * np.eye(len(alpha))
    slopes = [(loss(alpha + step) - loss(alpha - step)) / 2e-6 for step in steps]
    prices = joint.prices(0, joint._point(0, alpha, H), H, V)
    assert_allclose(prices, slopes, rtol=1e-4, atol=1e-5 * np.abs(prices).max())


def test_rounds_are_those_that_hidden_labels_are_in_favor_of():
    X, y = data(3, 3, n=90)
    fitted = NMFAlpha(4, directions="joint", max_iter=10, tol=0, random_state=0).fit(X, y)
    best = int(np.argmax(fitted.joint_scores_))
    assert len(fitted.joint_curve_) == 1 + 2 * best
    if best == 0:
        fixed = NMFAlpha(4, max_iter=10, tol=0, random_state=0).fit(X, y)
        assert_array_equal(fitted.components_, fixed.components_)


def test_a_callback_is_told_of_the_choice_and_of_the_parts():
    X, y = data(3, 3, n=90)
    told = []
    given = {"directions": "joint", "max_iter": 10, "tol": 0, "random_state": 0}
    fitted = NMFAlpha(4, **given, callback=told.append).fit(X, y)
    assert_array_equal(fitted.components_, NMFAlpha(4, **given).fit(X, y).components_)
    stages = [progress.stage for progress in told]
    assert stages == sorted(stages)  # first "choosing", then "parts"
    chosen = {p.iteration for p in told if p.stage == "choosing"}
    assert chosen == set(range(len(fitted.joint_scores_)))
    at = [p.iteration for p in told if p.stage == "parts"]
    assert all(np.diff(at) > 0)
    last = told[-1]
    assert last.iteration == last.max_iter == fitted.n_iter_  # rounds are iterations too


@pytest.mark.parametrize("moment", [1, 3, 5])
def test_a_callback_ends_the_choice(moment):
    X, y = data(3, 3, n=90)
    told = []

    def enough(progress):
        told.append(progress)
        return len(told) == moment

    given = {"max_iter": 10, "tol": 0, "random_state": 0}
    fitted = NMFAlpha(4, directions="joint", callback=enough, **given).fit(X, y)
    assert [p.stage for p in told].count("choosing") == moment
    assert fitted.joint_scores_ == whole(X, y).joint_scores_[: told[moment - 1].iteration]


def whole(X, y):
    """The fit that is not ended."""
    return NMFAlpha(4, directions="joint", max_iter=10, tol=0, random_state=0).fit(X, y)


@pytest.mark.parametrize("iterations", [1, 15])
def test_a_callback_ends_the_parts_with_what_there_is(iterations, monkeypatch):
    # two rounds in any case, so that one is left out
    monkeypatch.setattr("marginparts.estimators._joint._evidence", lambda *given: [0.0, 0.0, 1.0])
    X, y = data(3, 3, n=90)
    expected = whole(X, y)
    assert len(expected.joint_curve_) == 5

    def enough(progress):
        return progress.iteration >= iterations

    fitted = NMFAlpha(
        4, directions="joint", max_iter=10, tol=0, random_state=0, callback=enough
    ).fit(X, y)
    assert fitted.stop_.name == "CALLBACK"
    assert iterations <= fitted.n_iter_ < expected.n_iter_
    assert len(fitted.joint_curve_) == (1 if iterations == 1 else 3)
    assert (np.diff(fitted.joint_curve_) <= 1e-9 * np.abs(fitted.joint_curve_[:-1])).all()


def test_without_enough_labels_it_is_the_fit_with_fixed_duals():
    X, y = data(4)
    y[2:] = -1  # one of each class: nothing can be hidden
    fitted = NMFAlpha(3, directions="joint", max_iter=10, tol=0, random_state=0).fit(X, y)
    fixed = NMFAlpha(3, max_iter=10, tol=0, random_state=0).fit(X, y)
    assert fitted.joint_scores_ == []
    assert_array_equal(fitted.components_, fixed.components_)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no labels of two classes
        plain = NMFAlpha(3, directions="joint", max_iter=10, tol=0, random_state=0)
        assert plain.fit(X, np.full(len(X), -1)).components_.shape == (3, X.shape[1])


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"alpha_W": 0.1}, "alpha_W"),
        ({"feature_weight": np.full(15, 2.0)}, "feature_weight"),
        ({"missing": "nan"}, "missing"),
        ({"checkpoint": "here"}, "checkpoint"),
    ],
)
def test_what_it_does_not_go_with_is_refused(options, word):
    X, y = data()
    with pytest.raises(ValueError, match=word):
        NMFAlpha(3, directions="joint", **options).fit(X, y)


@pytest.mark.parametrize("after", ["no labels", "other directions"])
def test_a_later_fit_without_them_leaves_nothing_of_them(after):
    X, y = data()
    fitted = whole(X, y)
    assert fitted.joint_curve_
    if after == "other directions":
        fitted.set_params(directions="svm")
    fitted.fit(X, y if after == "other directions" else None)
    fresh = sklearn.clone(fitted).fit(X, y if after == "other directions" else None)
    assert vars(fitted).keys() == vars(fresh).keys()


def test_rows_may_repeat_each_other():
    X, y = data()
    X, y = np.repeat(X, 2, axis=0), np.repeat(y, 2)
    fitted = NMFAlpha(3, directions="joint", max_iter=10, random_state=0).fit(X, y)
    assert fitted.sample_weight_ is None
    assert fitted.directions_.shape == (len(X), 2)


def test_weights_and_other_estimators_are_refused():
    X, y = data()
    with pytest.raises(ValueError, match="sample_weight"):
        NMFAlpha(3, directions="joint").fit(X, y, sample_weight=1 + np.arange(len(X)) % 2)
    for other in (NMFAlphaClassifier, SemiNMFAlpha):
        with pytest.raises(ValueError, match="joint"):
            other(3, directions="joint").fit(sp.csr_array(X).toarray(), y)
