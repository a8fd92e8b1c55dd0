"""Parts of one fit as a prior for another: against a transcription, and at its two ends."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.decomposition import NMF

from marginparts import NMFAlpha, NMFAlphaClassifier, carried_parts, load, open_rows, save
from marginparts.backends import get_backend
from marginparts.backends.blocked import BlockedBackend
from oracle import BACKENDS, eq_2, eq_14, eq_15, eq_16, make_case

R = 3
LONG = {"solver": "mu", "max_iter": 60, "tol": 0.0, "random_state": 0}


def parts(m, d, seed=0):
    found = np.random.default_rng(seed).dirichlet(np.full(d, 0.5), m)
    found[:, ::3] = 0
    return found / found.sum(axis=1, keepdims=True)


def transcribed(case, lam, prior, c, n_iter):
    """Update with pseudo-counts, from what the paper's updates would be."""
    X, S, H, V = case.X.T, case.S, case.H.T, case.V
    for _ in range(n_iter):
        u = H.sum(1) + lam * (H @ S).sum(1)
        V = eq_15(X, V, H, S, lam) * u
        for k, p in enumerate(prior):
            V[:, k] = (V[:, k] + c * p) / (u[k] + c)
        V[:, len(prior) :] /= u[len(prior) :]
        H = eq_16(X, V, H, S, lam)
    return H.T, V


@pytest.mark.parametrize("backend", [*BACKENDS, "blocked"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("labeled", [False, True])
def test_a_prior_is_that_of_a_transcription(backend, form, labeled):
    case, prior = make_case(3), parts(2, 7)
    y = np.resize([0, 1, 2, -1], len(case.X)) if labeled else None
    if backend == "blocked":
        backend = BlockedBackend(get_backend("numba"), cut=4)
    model = NMFAlpha(R, prior=2 * prior, strength=0.7, init=(case.H, case.V), lam=2.0,
                     directions="class", backend=backend, **{**LONG, "max_iter": 10})  # fmt: skip
    model.fit(form(case.X), y)
    S = model.directions_.toarray() if labeled else case.S
    lam, c = 2.0 * labeled, 0.7 * case.X.sum() / R
    H, V = transcribed(case._replace(S=S), lam, prior, c, 10)
    assert_allclose(model.components_, V.T / V.sum(0)[:, None], rtol=1e-10)
    loss = eq_14(case.X.T, V, H.T, S, lam) + eq_2(c * prior, c * V[:, :2].T)
    assert_allclose(model.loss_curve_[-1], loss, rtol=1e-10)
    error = np.sqrt(2 * eq_2(case.X, H @ V.T))
    assert_allclose(model.reconstruction_err_, error, rtol=1e-8)


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    solver=st.sampled_from(["mu", "mue", "cd"]),
    strength=st.floats(-3, 3).map(lambda power: 10**power),
    labeled=st.booleans(),
    dense=st.booleans(),
    alpha=st.sampled_from([0.0, 0.02]),
)
def test_the_loss_with_a_prior_never_rises(seed, solver, strength, labeled, dense, alpha):
    rng = np.random.default_rng(seed)
    X = rng.poisson(0.7, (15, 12)) + np.eye(15, 12)
    y = np.resize([0, 1, -1], len(X)) if labeled else None
    model = NMFAlpha(4, prior=parts(rng.integers(1, 5), 12, seed), strength=strength, alpha_W=alpha,
                     **{**LONG, "solver": solver, "max_iter": 40})  # fmt: skip
    losses = model.fit(X if dense else sp.csr_array(X), y).loss_curve_
    assert (np.diff(losses) <= 1e-12 * losses[0]).all()
    assert np.isfinite(losses).all()


def test_all_solvers_end_at_one_loss():
    X = sp.csr_array(np.random.default_rng(0).poisson(0.7, (30, 12)) + np.eye(30, 12))
    rule = {"prior": parts(3, 12), "max_iter": 1000, "tol": 0, "random_state": 0}
    ends = {}
    for solver in ("mu", "mue", "cd"):
        model = NMFAlpha(3, solver=solver, **rule).fit(X)
        assert model.solver_ == solver
        assert model.history_[-1].residual < 1e-3
        ends[solver] = model.loss_curve_[-1]
    assert_allclose([ends["mue"], ends["cd"]], ends["mu"], rtol=1e-5)


@pytest.mark.parametrize("solver", ["mu", "mue", "cd"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_strength_is_no_prior_and_a_large_one_fixes_the_parts(solver, dtype):
    X = (np.random.default_rng(0).poisson(0.7, (30, 12)) + np.eye(30, 12)).astype(dtype)
    rule = {**LONG, "solver": solver}
    for y in (None, np.resize([0, 1, -1], 30)):
        plain = NMFAlpha(4, **rule).fit(X, y)
        none = NMFAlpha(4, prior=parts(2, 12), strength=0.0, **rule).fit(X, y)
        assert none.components_.tobytes() == plain.components_.tobytes()
        assert none.loss_curve_.tobytes() == plain.loss_curve_.tobytes()
        given = parts(2, 12).astype(dtype)
        held = NMFAlpha(4, prior=given, strength=1e9, **rule).fit(X, y)
        assert_allclose(held.components_[:2], given, atol=1e-6)
        fixed = NMFAlpha(4, fixed=given, **rule).fit(X, y)
        assert_allclose(held.reconstruction_err_, fixed.reconstruction_err_, rtol=0.15)


def test_parts_come_closer_to_the_prior_as_it_gets_stronger():
    X = np.random.default_rng(0).poisson(0.7, (60, 12)) + np.eye(60, 12)
    prior = parts(3, 12)
    away = [
        eq_2(prior, np.maximum(NMFAlpha(4, prior=prior, strength=s, max_iter=1000, random_state=0)
             .fit(X).components_[:3], 1e-300)) for s in (0.01, 0.1, 1.0, 10.0, 100.0)
    ]  # fmt: skip
    assert (np.diff(away) < 0).all()


def test_weights_and_fixed_parts_go_with_a_prior():
    rng = np.random.default_rng(1)
    X = rng.poisson(0.7, (20, 7)) + np.eye(20, 7)
    f = np.array([1, 2, 1, 1, 3, 1, 1])
    H, V, prior = rng.random((20, R)) + 0.1, rng.random((7, R)) + 0.1, parts(2, 7)
    rule = {"fixed": np.ones((1, 7)), "prior": prior, **LONG}
    weighted = NMFAlpha(R, feature_weight=f, init=(H, V), **rule).fit(X)
    rule |= {"fixed": np.ones((1, f.sum())), "prior": prior.repeat(f, axis=1)}
    repeated = NMFAlpha(R, init=(H, V.repeat(f, axis=0)), **rule).fit(X.repeat(f, axis=1))
    assert_allclose(weighted.loss_curve_, repeated.loss_curve_, rtol=1e-8)
    assert_array_equal(weighted.components_[0], np.ones(7))
    w = rng.integers(1, 4, 20)
    twice = NMFAlpha(R, prior=prior, init=(H, V), **LONG).fit(X, sample_weight=w)
    again = NMFAlpha(R, prior=prior, init=(H.repeat(w, axis=0), V), **LONG)
    assert_allclose(
        twice.components_, again.fit(X.repeat(w, axis=0)).components_, rtol=1e-6, atol=1e-9
    )
    allowed = rng.random((R, 7)) > 0.3
    allowed[2] = True
    kept = NMFAlpha(R, prior=prior, allowed=allowed, strength=10.0, **LONG).fit(X)
    assert not kept.components_[~allowed].any()
    assert np.isfinite(kept.loss_curve_).all()


@pytest.mark.parametrize("scale", [1e-20, 1e15])
def test_a_prior_knows_no_units(scale):
    X = np.random.default_rng(0).poisson(0.7, (20, 7)) + np.eye(20, 7)
    plain, moved = (NMFAlpha(R, prior=parts(2, 7), **LONG).fit(data) for data in (X, X * scale))
    assert_allclose(moved.components_, plain.components_, rtol=1e-6, atol=1e-9)
    assert_allclose(moved.loss_curve_[-1] / scale, plain.loss_curve_[-1], rtol=1e-9)


def test_columns_are_matched_by_their_names():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    before = pd.DataFrame(rng.poisson(1.0, (30, 4)) + 0.1, columns=list("abcd"))
    after = pd.DataFrame(rng.poisson(1.0, (30, 4)) + 0.1, columns=list("dxab"))
    first = NMFAlpha(2, random_state=0).fit(before)
    carried = carried_parts(first.components_, list("abcd"), list("dxab"))
    assert_array_equal(carried[:, 1], 0)
    assert_array_equal(carried[:, [0, 2, 3]], first.components_[:, [3, 0, 1]])
    named = NMFAlpha(2, prior=first, random_state=0).fit(after)
    by_hand = NMFAlpha(2, prior=carried, random_state=0).fit(after.to_numpy())
    assert_array_equal(named.components_, by_hand.components_)
    assert named.components_[:, 1].max() > 0.05  # what is new is learned
    with pytest.raises(ValueError, match="No name of the earlier parts"):
        NMFAlpha(3, prior=first).fit(after.set_axis(list("efgh"), axis=1))
    with pytest.raises(ValueError, match="one name"):
        carried_parts(first.components_, list("abc"), list("d"))


def test_a_prior_is_a_fit_a_classifier_or_another_library_and_a_clone_keeps_it(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.poisson(1.0, (40, 8)) + 0.1, np.resize([0, 1], 40)
    first = NMFAlpha(2, random_state=0).fit(X)
    wanted = NMFAlpha(3, prior=first.components_, random_state=0).fit(X).components_
    model = sklearn.clone(NMFAlpha(3, prior=first, random_state=0))
    assert model.prior is first
    assert_array_equal(model.fit(X).components_, wanted)
    save(model, tmp_path / "it.model")
    assert_array_equal(load(tmp_path / "it.model").transform(X), model.transform(X))
    told = {"lam": 1.0, "map_iter": 5, "C": 1.0, "normalize": True, "random_state": 0}
    classifier = NMFAlphaClassifier(2, **told).fit(X, y)
    theirs = NMF(2, random_state=0, max_iter=1000).fit(X)
    for prior in (classifier, theirs):
        found = sklearn.clone(NMFAlphaClassifier(3, prior=prior, strength=1e6, **told)).fit(X, y)
        given = getattr(prior, "parts_", prior).components_
        assert_allclose(
            found.parts_.components_[:2], given / given.sum(axis=1, keepdims=True), atol=1e-4
        )


@pytest.mark.parametrize(
    ("prior", "what"),
    [(np.ones((2, 3)), "carried_parts"), (np.ones((4, 7)), "room for 3"),
     (-np.ones((1, 7)), "0 or larger"), (np.zeros((1, 7)), "not all zero"),
     (NMFAlpha(2), "not fitted")],
)  # fmt: skip
def test_a_prior_that_makes_no_sense_is_refused(prior, what):
    X = make_case(0).X
    for make in (NMFAlpha, NMFAlphaClassifier):
        with pytest.raises(ValueError, match=what):
            make(R, prior=prior).fit(X, np.resize([0, 1], len(X)))
    with pytest.raises(ValueError, match="strength"):
        NMFAlpha(R, prior=np.ones((1, 7)), strength=-1.0).fit(X)


def test_a_prior_needs_data_in_memory(tmp_path):
    X = make_case(0).X
    np.save(tmp_path / "X.npy", X)
    with pytest.raises(ValueError, match="memory"):
        NMFAlpha(R, prior=np.ones((1, 7))).fit(open_rows(tmp_path / "X.npy"))


def test_a_part_of_which_no_word_is_left_is_free():
    X = np.random.default_rng(0).poisson(0.7, (20, 7)) + np.eye(20, 7)
    prior = np.vstack([np.zeros((2, 7)), np.ones((1, 7))])
    model = NMFAlpha(R, prior=prior, strength=100.0, **LONG).fit(X)
    assert np.isfinite(model.loss_curve_).all()
    assert abs(model.components_[0] - model.components_[1]).max() > 0.01
