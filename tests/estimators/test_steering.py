"""Weights, said with data given twice or left out; penalties, against a transcription."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from packaging.version import Version
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_validate
from sklearn.pipeline import Pipeline

from marginparts import (
    NMFAlpha,
    NMFAlphaClassifier,
    NMFAlphaConsensus,
    NMFAlphaCV,
    SemiNMFAlpha,
    Stop,
    edit_parts,
    load,
    save,
)
from marginparts.backends import get_backend
from marginparts.backends.blocked import BlockedBackend
from marginparts.datasets import load_digits_49
from marginparts.estimators._repeats import together
from marginparts.losses.nmf_alpha import Penalty, Steering
from marginparts.solve.factorize import factorize
from marginparts.solve.run_spec import RunSpec, Scales
from oracle import BACKENDS, eq_14, eq_15, eq_16, make_case

R = 3
LONG = {"solver": "mu", "max_iter": 60, "tol": 0.0, "random_state": 0}


def problem(seed=0, n=9, d=7):
    rng = np.random.default_rng(seed)
    X = rng.random((n, d)) * (rng.random((n, d)) > 0.3) + 0.01
    start = rng.random((n, R)) + 0.1, rng.random((d, R)) + 0.1
    return X, start, rng.integers(1, 4, n)


def weighted_loss(X, w, f, H, V):
    """Return the weighted loss entry by entry."""
    total = 0.0
    for i, row in enumerate(X):
        for j, x in enumerate(row):
            fit = sum(H[i, k] * V[j, k] for k in range(V.shape[1]))
            total += w[i] * f[j] * ((x * np.log(x / fit) if x > 0 else 0.0) - x + fit)
    return total


def weighted_updates(X, w, f, H, V, n_iter):
    """Transcribe the updates of the weighted loss index by index."""
    n, d = X.shape
    H, V = H.copy(), V.copy()
    for _ in range(n_iter):
        fit = H @ V.T
        new = V.copy()
        for j in range(d):
            for k in range(R):
                num = sum(w[i] * H[i, k] * X[i, j] / fit[i, j] for i in range(n))
                new[j, k] = V[j, k] * num / sum(w[i] * H[i, k] for i in range(n))
        V, fit = new, H @ new.T
        new = H.copy()
        for i in range(n):
            for k in range(R):
                num = sum(f[j] * V[j, k] * X[i, j] / fit[i, j] for j in range(d))
                new[i, k] = H[i, k] * num / sum(f[j] * V[j, k] for j in range(d))
        H = new
    return H, V


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_weights_are_those_of_a_transcription(backend, form):
    X, (H, V), w = problem()
    f = np.random.default_rng(1).random(X.shape[1]) + 0.5
    model = NMFAlpha(R, init=(H, V), feature_weight=f, backend=backend, **{**LONG, "max_iter": 8})
    model.fit(form(X), sample_weight=w)
    H, V = weighted_updates(X, w, f, H, V, 8)
    assert_allclose(model.components_, V.T / V.sum(0)[:, None], rtol=1e-10)
    assert_allclose(model.loss_curve_[-1], weighted_loss(X, w, f, H, V), rtol=1e-10)


@pytest.mark.parametrize("solver", ["mu", "mue", "cd"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("labeled", [False, True])
def test_weight_two_is_a_row_given_twice(solver, form, labeled):
    X, (H, V), w = problem()
    y = np.resize([0, 1, 2, -1], len(X)) if labeled else None
    # sums of classes are exact; SVMs would agree to their tolerance
    model = NMFAlpha(R, directions="class", **{**LONG, "solver": solver})
    weighted = sklearn.clone(model).set_params(init=(H, V)).fit(form(X), y, sample_weight=w)
    y = None if y is None else y.repeat(w)
    repeated = model.set_params(init=(H.repeat(w, axis=0), V)).fit(form(X.repeat(w, axis=0)), y)
    assert_allclose(weighted.components_, repeated.components_, rtol=1e-6, atol=1e-9)
    assert_allclose(weighted.loss_curve_[-1], repeated.loss_curve_[-1], rtol=1e-6)
    assert_allclose(weighted.margin_codes_, repeated.margin_codes_, rtol=1e-6, atol=1e-9)
    assert_allclose(weighted.transform(X), repeated.transform(X), rtol=1e-6, atol=1e-9)


def test_svms_behind_the_directions_count_rows_by_their_weight():
    digits = load_digits_49()
    X, y = digits.data[:80], digits.target[:80]
    w = np.random.default_rng(0).integers(1, 4, len(X))
    for more in ({}, {"class_weight": "balanced"}, {"features": "hellinger"}):
        model = NMFAlpha(4, max_iter=2, tol=0, random_state=0, **more)
        weighted = sklearn.clone(model).fit(X, y, sample_weight=w).margin_components_
        repeated = model.fit(X.repeat(w, axis=0), y.repeat(w)).margin_components_
        assert_allclose(weighted, repeated, atol=2e-3 * repeated.max())


@pytest.mark.parametrize("given_start", [False, True])
def test_weight_zero_leaves_a_row_out_and_weight_one_is_nothing(given_start):
    X, (H, V), _ = problem()
    y = np.array([0, 1, 0, 1, -1, -1, 2, 2, 2])
    w = np.array([1, 1, 1, 1, 0, 1, 0, 0, 0])
    kept = w > 0
    model = NMFAlpha(R, **LONG)
    some = sklearn.clone(model)
    if given_start:
        some.set_params(init=(H, V))
        model.set_params(init=(H[kept], V))
    some.fit(X, y, sample_weight=w)
    model.fit(X[kept], y[kept])
    assert_array_equal(some.components_, model.components_)
    assert_array_equal(some.classes_, [0, 1])
    assert some.directions_.shape[0] == len(X)
    assert_array_equal(some.directions_.toarray()[kept], model.directions_.toarray())
    assert len(some.path(X, (1.0, 3.0))) == 2
    again = sklearn.clone(model).fit(X[kept], y[kept], sample_weight=np.ones(kept.sum()))
    assert_array_equal(again.components_, model.components_)
    assert again.sample_weight_ is None


def test_feature_weight_two_is_a_column_given_twice_and_zero_one_left_out():
    X, (H, V), _ = problem()
    f = np.array([1, 2, 1, 0, 3, 1, 1])
    weighted = NMFAlpha(R, init=(H, V), feature_weight=f, map_iter=30, **LONG).fit(X)
    repeated = NMFAlpha(R, init=(H, V.repeat(f, axis=0)), map_iter=30, **LONG)
    repeated.fit(X.repeat(f, axis=1))
    found = weighted.components_.repeat(f, axis=1)
    found /= found.sum(axis=1, keepdims=True)
    assert_allclose(found, repeated.components_, rtol=1e-6, atol=1e-9)
    assert not weighted.components_[:, 3].any()
    H = weighted.set_params(output="coefficients").transform(X)
    fit = repeated.set_params(output="coefficients").inverse_transform(
        repeated.transform(X.repeat(f, axis=1))
    )
    assert_allclose((H @ weighted.components_).repeat(f, axis=1), fit, rtol=1e-6)
    hidden = X.copy()
    hidden[:, 3] = 9.0
    assert_array_equal(weighted.transform(hidden), H)


def penalized_updates(case, lam, penalties, n_iter):
    """Transcribe the updates with penalties, from what the paper's updates would be."""
    X, S, H, V = case.X.T, case.S, case.H.T, case.V
    (l1_H, l2_H), (l1_V, l2_V) = penalties
    for _ in range(n_iter):
        HS = H @ S
        u = (H.sum(1) + lam * HS.sum(1))[None]
        V = root(eq_15(X, V, H, S, lam) * u, u + l1_V, l2_V)
        u = V.sum(0)[:, None] * (1 + lam * S.sum(1))[None]
        H = root(eq_16(X, V, H, S, lam) * u, u + l1_H, l2_H)
    return H.T, V


def root(a, u, l2):
    """Return the minimum of ``u t + l2 / 2 t^2 - a log t``, by the formula of school."""
    return a / u if l2 == 0 else (np.sqrt(u**2 + 4 * l2 * a) - u) / (2 * l2)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("l1_ratio", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("lam", [0.0, 2.0])
def test_penalties_are_those_of_a_transcription(backend, form, l1_ratio, lam):
    case = make_case(3)
    n, d = case.X.shape
    run = RunSpec(alpha_W=0.02, alpha_H=0.03, l1_ratio=l1_ratio)
    found = factorize(
        form(case.X), case.H, case.V, S=sp.csr_array(case.S) if lam else None, lam=lam, solver="mu",
        max_iter=10, tol=0, backend=backend, steering=run.steering(case.X, R, Scales()),
    )  # fmt: skip
    penalties = [
        (alpha * size * l1_ratio, alpha * size * (1 - l1_ratio))
        for alpha, size in ((0.02, d), (0.03, n))
    ]
    H, V = penalized_updates(case, lam, penalties, 10)
    assert_allclose(found.H, H, rtol=1e-10)
    assert_allclose(found.V, V, rtol=1e-10)
    loss = eq_14(case.X.T, V, H.T, case.S, lam)
    for A, (l1, l2) in zip((H, V), penalties, strict=True):
        loss += l1 * A.sum() + l2 / 2 * (A**2).sum()
    assert_allclose(found.losses[-1], loss, rtol=1e-10)


@pytest.mark.parametrize("l1_ratio", [0.0, 0.5, 1.0])
def test_where_scikit_learn_ends_there_is_nothing_to_gain(l1_ratio):
    X = make_case(1).X
    rule = {"alpha_W": 0.01, "alpha_H": 0.02, "l1_ratio": l1_ratio, "solver": "mu", "tol": 0}
    theirs = NMF(R, init="random", beta_loss="kullback-leibler", max_iter=3000, random_state=0,
                 **rule)  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        W = theirs.fit_transform(X)
        ours = NMFAlpha(R, init=(W, theirs.components_.T), max_iter=50, **rule).fit(X)
    assert ours.loss_curve_[-1] > (1 - 1e-4) * ours.loss_curve_[0]
    assert_allclose(ours.history_[-1].residual, 0, atol=1e-2)


def test_penalties_count_weights():
    X, (H, V), w = problem()
    model = NMFAlpha(R, directions="class", alpha_W=0.05, l1_ratio=0.3, **LONG)
    y = np.resize([0, 1, 2, -1], len(X))
    weighted = sklearn.clone(model).set_params(init=(H, V)).fit(X, y, sample_weight=w)
    model.set_params(init=(H.repeat(w, axis=0), V)).fit(X.repeat(w, axis=0), y.repeat(w))
    assert_allclose(weighted.components_, model.components_, rtol=1e-6, atol=1e-9)
    assert_allclose(weighted.loss_curve_, model.loss_curve_, rtol=1e-6)
    f = np.array([1, 2, 1, 0, 3, 1, 1])
    model = NMFAlpha(R, alpha_W=0.05, l1_ratio=0.3, **LONG)
    weighted = sklearn.clone(model).set_params(init=(H, V), feature_weight=f).fit(X)
    model.set_params(init=(H, V.repeat(f, axis=0))).fit(X.repeat(f, axis=1))
    assert_allclose(weighted.loss_curve_, model.loss_curve_, rtol=1e-6)


@pytest.mark.parametrize("scale", [1e-20, 1e15])
def test_penalties_know_the_units_of_extreme_data(scale):
    """With H in the units of before and V in new ones, the loss is a multiple of what it was."""
    X, (H, V), _ = problem()
    plain = Penalty(0.1, 0.2), Penalty(0.3, 0.4)
    moved = plain[0].scaled(1.0, 1 / scale), plain[1].scaled(1 / scale, 1 / scale)
    found, wanted = (
        factorize(data, H, start, solver="mu", max_iter=20, tol=0, steering=Steering(*penalties))
        for data, start, penalties in ((X * scale, V * scale, moved), (X, V, plain))
    )
    assert_allclose(found.losses[-1] / scale, wanted.losses[-1], rtol=1e-9)
    assert_allclose(found.V / scale, wanted.V, rtol=1e-9)


@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    solver=st.sampled_from(["mu", "mue", "cd"]),
    alphas=st.tuples(st.floats(0, 1), st.floats(0, 1)),
    l1_ratio=st.sampled_from([0.0, 0.5, 1.0]),
    labeled=st.booleans(),
)
def test_the_penalized_loss_never_rises(seed, solver, alphas, l1_ratio, labeled):
    X, _, w = problem(seed % 50)
    y = np.resize([0, 1, -1], len(X)) if labeled else None
    model = NMFAlpha(R, alpha_W=alphas[0], alpha_H=alphas[1], l1_ratio=l1_ratio,
                     **{**LONG, "solver": solver, "max_iter": 30})  # fmt: skip
    losses = model.fit(X, y, sample_weight=w).loss_curve_
    assert (np.diff(losses) <= 1e-12 * losses[0]).all()
    if solver == "cd" and (l1_ratio < 1 and max(alphas) > 0):
        assert model.solver_ == "mue"  # sweeps cannot carry squares


def test_a_penalized_run_ends_where_no_entry_can_lower_the_loss():
    X, _, _ = problem()
    rule = {"alpha_W": 0.02, "l1_ratio": 0.5, "max_iter": 5000, "tol": 1e-6, "random_state": 0}
    for y in (None, np.resize([0, 1, -1], len(X))):
        model = NMFAlpha(R, **rule).fit(X, y)
        assert model.stop_ is not Stop.MAX_ITER
        assert model.history_[-1].residual < 1e-3


def test_what_cannot_carry_penalties_says_so():
    X, (H, V), _ = problem()
    blocked = BlockedBackend(get_backend("numba"), cut=4)
    for more in ({}, {"l1_ratio": 0.5}):
        with pytest.raises(ValueError, match="cannot carry"):
            NMFAlpha(R, alpha_W=0.1, backend=blocked, **more).fit(X)
    init = {"init": (H, V), "alpha_W": 0.1, "l1_ratio": 1.0, **LONG}
    some = NMFAlpha(R, backend=blocked, **init).fit(X)
    assert_allclose(some.components_, NMFAlpha(R, **init).fit(X).components_, rtol=1e-10)
    for wrong in ({"alpha_W": -1.0}, {"alpha_H": "other"}, {"l1_ratio": 1.5}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            NMFAlpha(R, **wrong).fit(X)


@pytest.mark.parametrize("solver", ["mu", "mue", "cd"])
@pytest.mark.parametrize("labeled", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_fixed_part_keeps_its_bits_and_the_others_are_learned(solver, labeled, dtype):
    X, _, w = problem(n=30, d=12)
    X = X.astype(dtype)
    fixed = np.random.default_rng(5).random((2, 12)).astype(dtype) ** 3
    fixed[0, :4] = 0
    y = np.resize([0, 1, 2, -1], len(X)) if labeled else None
    more = {"solver": solver, "max_iter": 200, "tol": 0, "random_state": 0}
    for options in ({}, {"feature_weight": np.linspace(0.1, 3, 12)}, {"alpha_W": 0.01}):
        model = NMFAlpha(5, fixed=fixed, **options, **more).fit(X, y, sample_weight=w)
        assert model.n_iter_ == 200
        assert model.components_[:2].tobytes() == fixed.tobytes()
        assert_allclose(model.components_[2:].sum(axis=1), 1, rtol=1e-5)
        assert (np.diff(model.loss_curve_) <= 1e-6 * model.loss_curve_[0]).all()
        assert model.loss_curve_[-1] < 0.9 * model.loss_curve_[1]
        codes = model.set_params(output="coefficients").transform(X)
        assert_allclose(model.inverse_transform(codes), codes @ model.components_, rtol=1e-4)
        if labeled:
            HSV = model.margin_codes_ @ model.components_
            assert_allclose(HSV.sum(), model.margin_components_.sum(), rtol=0.05)
            assert model.path(X, [1.0])[0].components[:2].tobytes() == fixed.tobytes()


def test_a_model_file_keeps_what_was_asked(tmp_path):
    X, _, w = problem()
    model = NMFAlpha(R, fixed=np.eye(1, 7), feature_weight=np.arange(7.0) + 1, alpha_W=0.1,
                     random_state=0).fit(X, sample_weight=w)  # fmt: skip
    save(model, tmp_path / "it.model")
    again = load(tmp_path / "it.model")
    assert_array_equal(again.transform(X), model.transform(X))
    assert_array_equal(again.fixed, model.fixed)


def test_fixed_parts_are_those_of_a_transcription():
    case = make_case(2)
    fixed = case.V[:, :1].T.copy()
    model = NMFAlpha(R, fixed=fixed, init=(case.H, case.V), **{**LONG, "max_iter": 10})
    model.fit(case.X)
    X, S, H, V = case.X.T, case.S, case.H.T, case.V
    for _ in range(10):
        V = np.hstack([fixed.T, eq_15(X, V, H, S, 0.0)[:, 1:]])
        H = eq_16(X, V, H, S, 0.0)
    assert_allclose(model.components_[1:], (V / V.sum(0)).T[1:], rtol=1e-10)
    assert_allclose(model.loss_curve_[-1], eq_14(X, V, H, S, 0.0), rtol=1e-10)


def test_a_planted_part_that_is_given_leaves_the_others_to_be_found():
    rng = np.random.default_rng(0)
    planted = rng.dirichlet(np.full(20, 0.2), 3)
    X = rng.gamma(0.5, size=(200, 3)) @ planted
    model = NMFAlpha(3, fixed=planted[:1], max_iter=500, tol=1e-7, random_state=0).fit(X)
    alike = np.corrcoef(np.vstack([model.components_[1:], planted[1:]]))[:2, 2:]
    assert (alike.max(axis=1) > 0.98).all()
    assert set(alike.argmax(axis=1)) == {0, 1}


@pytest.mark.parametrize("solver", ["mu", "mue", "cd"])
def test_a_feature_that_is_not_allowed_never_enters_a_part(solver):
    X, _, _ = problem(n=30, d=12)
    allowed = np.random.default_rng(0).random((4, 12)) > 0.4
    allowed[1] = True
    model = NMFAlpha(4, allowed=allowed, solver=solver, random_state=0).fit(X)
    assert not model.components_[~allowed].any()
    assert (model.components_[allowed] > 0).mean() > 0.5
    assert np.isfinite(model.loss_curve_).all()
    with pytest.raises(ValueError, match="Feature 7 is allowed in no part"):
        NMFAlpha(4, allowed=np.arange(12) != np.full((4, 1), 7)).fit(X)
    with pytest.raises(ValueError, match="allowed has shape"):
        NMFAlpha(4, allowed=allowed[:2]).fit(X)


def test_fixed_parts_are_a_fit_or_a_classifier_and_a_clone_keeps_it():
    X, _, _ = problem(n=30, d=12)
    y = np.resize([0, 1, -1], len(X))
    first = NMFAlpha(2, random_state=0, max_iter=10).fit(X)
    rule = {"random_state": 1, "max_iter": 10}
    wanted = NMFAlpha(4, fixed=first.components_, **rule).fit(X, y)
    model = sklearn.clone(NMFAlpha(4, fixed=first, **rule))
    assert model.fixed is first
    assert_array_equal(model.fit(X, y).components_, wanted.components_)
    assert_array_equal(model.margin_codes_, wanted.margin_codes_)
    assert_array_equal(model.path(X, [1.0])[0].components[:2], first.components_)
    assert_array_equal(edit_parts(model, X, merge=[(2, 3)]).fixed, first.components_)
    agreed = NMFAlphaConsensus(NMFAlpha(4, fixed=first, **rule), n_runs=2, random_state=0)
    assert_array_equal(agreed.fit(X).components_[:2], first.components_)
    told = {"lam": 1.0, "map_iter": 5, "C": 1.0, "normalize": True, "pseudo": None, **rule}
    classifier = NMFAlphaClassifier(2, **told).fit(X, y)
    kept = NMFAlphaClassifier(4, fixed=classifier, **told).fit(X, y).parts_.components_
    assert_array_equal(kept[:2], classifier.parts_.components_)


def test_the_fixed_parts_of_a_fit_stay_when_their_source_is_fitted_again(tmp_path):
    X, _, _ = problem(n=30, d=12)
    y = np.resize([0, 1, -1], len(X))
    rule = {"random_state": 0, "max_iter": 10}
    source = NMFAlpha(2, **rule).fit(X)
    model = NMFAlpha(5, fixed=source, **rule).fit(X, y)
    agreed = NMFAlphaConsensus(NMFAlpha(5, fixed=source, **rule), n_runs=2, random_state=0).fit(X)
    before = source.components_.copy()
    steps = [step.components for step in model.path(X, [1.0, 3.0])]
    source.set_params(n_components=4, random_state=1).fit(X)
    save(model, tmp_path / "it.model")
    for each in (model, load(tmp_path / "it.model")):
        assert_array_equal(edit_parts(each, X, delete=[3]).fixed, before)
        assert_array_equal([step.components for step in each.path(X, [1.0, 3.0])], steps)
    assert_array_equal(edit_parts(agreed, X, delete=[3]).fixed, before)
    assert model.n_fixed_ == 2


def test_a_fit_from_before_the_number_of_fixed_parts_was_kept_still_has_them(tmp_path):
    X, _, _ = problem(n=30, d=12)
    y = np.resize([0, 1, -1], len(X))
    fixed = X[:2] / X[:2].sum(axis=1, keepdims=True)
    model = NMFAlpha(5, fixed=fixed, random_state=0, max_iter=10).fit(X, y)
    del model.n_fixed_
    save(model, tmp_path / "it.model")
    again = load(tmp_path / "it.model")
    assert_array_equal(edit_parts(again, X, delete=[3]).fixed, fixed)
    assert_array_equal(again.path(X, [1.0])[0].components[:2], fixed)


def test_fixed_parts_of_a_fit_are_matched_by_the_names_of_columns():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    before = pd.DataFrame(rng.poisson(1.0, (30, 4)) + 0.1, columns=list("abcd"))
    after = pd.DataFrame(rng.poisson(1.0, (30, 4)) + 0.1, columns=list("dxab"))
    first = NMFAlpha(2, random_state=0).fit(before)
    found = NMFAlpha(3, fixed=first, random_state=0).fit(after).components_
    assert_array_equal(found[:2, 1], 0)
    assert_array_equal(found[:2, [0, 2, 3]], first.components_[:, [3, 0, 1]])
    with pytest.raises(ValueError, match="No name of the earlier parts"):
        NMFAlpha(3, fixed=first).fit(after.set_axis(list("efgh"), axis=1))
    with pytest.raises(ValueError, match="must have 3 columns"):
        NMFAlpha(3, fixed=first).fit(before.to_numpy()[:, :3])


@pytest.mark.parametrize(
    ("fixed", "what"),
    [(np.ones((2, 3)), "columns"), (np.ones((3, 7)), "fewer rows"), (-np.ones((1, 7)), "0 or larg"),
     (np.zeros((1, 7)), "no part may be zero"), (NMFAlpha(2), "fixed is not fitted")],
)  # fmt: skip
def test_parts_that_cannot_be_fixed_are_refused(fixed, what):
    X, _, _ = problem()
    with pytest.raises(ValueError, match=what):
        NMFAlpha(R, fixed=fixed).fit(X)


@pytest.mark.parametrize("labeled", [False, True])
@pytest.mark.parametrize(
    "options", [{}, {"alpha_W": 0.02, "l1_ratio": 0.5}, {"fixed": np.eye(1, 7)}]
)
def test_the_reconstruction_error_is_that_of_the_data_alone(labeled, options):
    X, _, w = problem()
    y = np.resize([0, 1, -1], len(X)) if labeled else None
    f = np.linspace(0.5, 2, 7)
    found, back = [], Scales.back
    with pytest.MonkeyPatch.context() as patch:
        # the factors themselves are not kept
        patch.setattr(Scales, "back", lambda *args: found.append(back(*args)) or found[0])
        model = NMFAlpha(R, feature_weight=f, **options, **LONG).fit(X, y, sample_weight=w)
    same = together(X, y, w)  # the order in which weighted rows are fitted
    wanted = weighted_loss(X[same.rows], same.weights, f, found[0].H, found[0].V)
    assert_allclose(model.reconstruction_err_, np.sqrt(2 * wanted), rtol=1e-8)
    assert model.n_components_ == R


def test_the_reconstruction_error_is_scikit_learns():
    X = make_case(0).X
    ours = NMFAlpha(R, solver="mu", random_state=0, max_iter=2000, tol=0).fit(X)
    start = {"W": np.ones((len(X), R)), "H": ours.components_}
    theirs = NMF(R, init="custom", solver="mu", beta_loss="kullback-leibler", max_iter=2000, tol=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs.fit_transform(X, **start)
    assert_allclose(ours.reconstruction_err_, theirs.reconstruction_err_, rtol=1e-4)


def test_a_fit_that_was_cut_short_warns_once_and_a_classifier_does_not():
    X, _, _ = problem(n=40)
    y = np.resize([0, 1], len(X))
    with pytest.warns(
        ConvergenceWarning, match=r"\(3\) before the tolerance \(tol=0.0001\)"
    ) as said:
        NMFAlpha(R, max_iter=3).fit(X)
    assert len(said) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        NMFAlpha(R, max_iter=3, tol=0).fit(X)
        NMFAlpha(R, max_iter=3000).fit(X)
        NMFAlphaClassifier(R, max_iter=3, random_state=0).fit(X, y)


@pytest.mark.parametrize("make", [NMFAlpha, NMFAlphaClassifier, NMFAlphaCV])
def test_verbose_shows_the_loss_and_nothing_afterwards(make, capsys):
    X, _, _ = problem(n=40)
    y = np.resize([0, 1], len(X))
    make(R, max_iter=3, tol=0, verbose=1, random_state=0).fit(X, y)
    assert "iteration 3 of 3: loss" in capsys.readouterr().out
    make(R, max_iter=3, tol=0, random_state=0).fit(X, y)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("output", ["gram", "coefficients", "projection", "mixed"])
def test_a_classifier_rebuilds_samples(output):
    digits = load_digits_49()
    X, y = digits.data[:150], digits.target[:150]
    model = NMFAlphaClassifier(16, lam=1.0, map_iter=40, C=1.0, normalize=True, rehearse=False,
                               output=output, random_state=0).fit(X, y)  # fmt: skip
    rebuilt = model.inverse_transform(model.transform(X))
    assert rebuilt.shape == X.shape
    alike = (
        np.sum(rebuilt * X, axis=1) / np.linalg.norm(X, axis=1) / np.linalg.norm(rebuilt, axis=1)
    )
    assert np.median(alike) > 0.9


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10**6), solver=st.sampled_from(["mu", "mue", "cd"]))
def test_the_weighted_loss_never_rises(seed, solver):
    X, _, _ = problem(seed % 50)
    rng = np.random.default_rng(seed)
    w, f = 10.0 ** rng.uniform(-3, 3, len(X)), 10.0 ** rng.uniform(-2, 2, X.shape[1])
    y = rng.integers(-1, 2, len(X))
    y[:2] = 0, 1
    model = NMFAlpha(R, feature_weight=f, **{**LONG, "solver": solver, "max_iter": 30})
    losses = model.fit(X, y, sample_weight=w).loss_curve_
    assert (np.diff(losses) <= 1e-12 * losses[0]).all()


@pytest.mark.parametrize("make", [NMFAlphaClassifier, NMFAlphaCV])
def test_a_classifier_takes_weights(make):
    digits = load_digits_49()
    X, y = digits.data[:120], digits.target[:120].copy()
    rng = np.random.default_rng(0)
    fixed = {"lam": 3.0, "map_iter": 5, "C": 2.0, "normalize": False, "directions": "class"}
    model = make(4, max_iter=10, rehearse=False, random_state=0, **fixed)
    w = rng.integers(0, 3, len(X)).astype(float)
    kept = w > 0
    out = sklearn.clone(model).fit(X, y, sample_weight=kept)
    assert_array_equal(
        out.decision_function(X), sklearn.clone(model).fit(X[kept], y[kept]).decision_function(X)
    )
    ones = sklearn.clone(model).fit(X, y, sample_weight=np.ones(len(X)))
    assert_array_equal(ones.coef_, sklearn.clone(model).fit(X, y).coef_)
    # one label all but without weight has next to no say in all of it
    wrong = y.copy()
    wrong[:40] = 13 - wrong[:40]
    light = np.where(np.arange(len(X)) < 40, 1e-6, 1.0)
    score = sklearn.clone(model).fit(X, wrong, sample_weight=light).score(X[40:], y[40:])
    assert score > 0.9
    y[60:] = -1  # teachers
    taught = make(4, max_iter=10, rehearse=False, random_state=0).fit(X, y, sample_weight=w)
    assert taught.score(digits.data[120:], digits.target[120:]) > 0.8
    everyone = make(4, max_iter=10, random_state=0)
    assert everyone.fit(X, y, sample_weight=w + 1).score(X, y, sample_weight=w) > 0.8


@pytest.mark.skipif(
    Version(sklearn.__version__) < Version("1.7"),
    reason="scikit-learn before 1.7 does not route metadata to the score of a pipeline",
)
def test_metadata_is_routed_to_every_step():
    X, _, _ = problem(n=40)
    y = np.resize([0, 1], len(X))
    with sklearn.config_context(enable_metadata_routing=True):
        parts = NMFAlpha(R, random_state=0, tol=0.1).set_fit_request(sample_weight=True)
        last = NMFAlphaClassifier(2, lam=1.0, map_iter=5, C=1.0, normalize=True, max_iter=5,
                                  rehearse=False, random_state=0)  # fmt: skip
        last.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        parts.set_params(output="coefficients")
        both = Pipeline([("parts", parts), ("last", last)])
        scores = cross_validate(both, X, y, cv=2, params={"sample_weight": np.resize([1, 2], 40)})
        both.fit(X, y, sample_weight=np.resize([1.0, 2.0], 40))
    assert len(scores["test_score"]) == 2
    assert_array_equal(both["parts"].sample_weight_, np.resize([1.0, 2.0], 40))
    assert both["last"].parts_.sample_weight_ is not None


@pytest.mark.parametrize(
    ("given", "what"),
    [
        (np.ones(3), "shape"),
        (np.ones((9, 1)), "shape"),
        (-np.ones(9), "0 or larger"),
        (np.zeros(9), "not all zero"),
        (np.full(9, np.nan), "finite"),
    ],
)
def test_weights_that_make_no_sense_are_refused(given, what):
    X, _, _ = problem()
    with pytest.raises(ValueError, match=what):
        NMFAlpha(R).fit(X, sample_weight=given)
    with pytest.raises(ValueError, match=what):
        NMFAlpha(R, feature_weight=given).fit(X.T)


def test_fixed_parts_that_sum_to_any_number_are_kept_in_a_file(tmp_path):
    X = np.random.default_rng(0).random((40, 8))
    model = NMFAlpha(3, fixed=5 + X[:1], max_iter=5, tol=0).fit(X)
    save(model, tmp_path / "model")
    assert_array_equal(load(tmp_path / "model").transform(X), model.transform(X))


def test_parts_of_either_sign_are_not_edited():
    X = np.random.default_rng(0).normal(size=(30, 4))
    with pytest.raises(TypeError, match="edit_parts is for parts of NMFAlpha, and not of SemiNMF"):
        edit_parts(SemiNMFAlpha(2, max_iter=3, tol=0).fit(X), X, delete=[0])
