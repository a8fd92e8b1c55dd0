"""Parts that share few features: the charge against a transcription, and what comes of it."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from marginparts import NMFAlpha, open_rows
from marginparts.backends import get_backend
from marginparts.backends.blocked import BlockedBackend
from marginparts.datasets import load_docstrings
from marginparts.losses.nmf_alpha import Apart, NMFAlphaProblem, Steering
from oracle import BACKENDS, eq_2, eq_14, eq_15, eq_16, make_case

R = 3
LONG = {"solver": "mu", "max_iter": 60, "tol": 0.0, "random_state": 0}


def overlap(parts):
    """Return the mean cosine of two parts."""
    unit = parts / np.linalg.norm(parts, axis=1, keepdims=True)
    return (unit @ unit.T)[np.triu_indices(len(parts), 1)].mean()


def charge(V, X, exclusivity):
    """Return what shared features and sums other than one cost, entry by entry."""
    d, r = V.shape
    mass, total = X.sum(), 0.0
    for j in range(d):
        for k in range(r):
            for other in range(k):
                shared = V[j, k] * V[j, other] * mass / X[:, j].sum()
                total += exclusivity * mass * shared / (r * (r - 1) / 2)
    return total + sum(eq_2([mass / r], [mass / r * V[:, k].sum()]) for k in range(r))


def transcribed(case, lam, exclusivity, l1, l2, n_iter):
    """Minimize the bound of each entry by the formula of school."""
    X, S, H, V = case.X.T, case.S, case.H.T, case.V
    (d, _), r, mass = X.shape, V.shape[1], X.sum()
    for _ in range(n_iter):
        u = H.sum(1) + lam * (H @ S).sum(1)
        data, new = eq_15(X, V, H, S, lam) * u, V.copy()
        for j in range(d):
            for k in range(r):
                w = exclusivity * mass**2 / (r * (r - 1) / 2) / X[j].sum()
                a = data[j, k] + mass / r * V[j, k] / V[:, k].sum()
                b = u[k] + mass / r + l1
                q = l2 + w * sum(V[j, i] for i in range(r) if i != k) / V[j, k]
                new[j, k] = (np.sqrt(b**2 + 4 * q * a) - b) / (2 * q)
        V = new
        H = eq_16(X, V, H, S, lam)
    return H.T, V


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("labeled", [False, True])
@pytest.mark.parametrize("alpha", [0.0, 0.03])
def test_exclusivity_is_that_of_a_transcription(backend, form, labeled, alpha):
    case = make_case(3)
    case = case._replace(H=case.H * case.V.sum(0), V=case.V / case.V.sum(0))  # as a fit does
    y = np.resize([0, 1, 2, -1], len(case.X)) if labeled else None
    model = NMFAlpha(R, exclusivity=0.2, alpha_H=alpha, l1_ratio=0.4, init=(case.H, case.V),
                     lam=2.0, directions="class", backend=backend,
                     **{**LONG, "max_iter": 10})  # fmt: skip
    model.fit(form(case.X), y)
    S = model.directions_.toarray() if labeled else case.S
    lam, size = 2.0 * labeled, alpha * len(case.X)
    H, V = transcribed(case._replace(S=S), lam, 0.2, 0.4 * size, 0.6 * size, 10)
    assert_allclose(model.components_, V.T / V.sum(0)[:, None], rtol=1e-10)
    loss = eq_14(case.X.T, V, H.T, S, lam) + charge(V, case.X, 0.2)
    loss += size * (0.4 * V.sum() + 0.3 * (V**2).sum())
    assert_allclose(model.loss_curve_[-1], loss, rtol=1e-10)
    assert_allclose(model.reconstruction_err_, np.sqrt(2 * eq_2(case.X, H @ V.T)), rtol=1e-8)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_step_from_a_point_ahead_knows_that_point(backend):
    case, backend = make_case(3), get_backend(backend)
    apart = Apart(np.linspace(0.5, 1.5, case.V.shape[0]), 2.0, 2.0)
    X, H, V, before = case.X, *map(backend.factor, (case.H, case.V, case.V / 2))

    def problem():
        return NMFAlphaProblem(backend, backend.prepare(X), steering=Steering(apart=apart))

    one = problem()
    point = one.ahead("V", V, before, 0.5, 1.0)
    fresh = problem().update({"V": point, "H": H}, "V").factor.copy()
    assert_array_equal(one.update({"V": point, "H": H}, "V").factor, fresh)
    point *= 3.0  # sums that were known before a factor changed must not be taken again
    fresh = problem().update({"V": point, "H": H}, "V").factor.copy()
    assert_array_equal(one.update({"V": point, "H": H}, "V").factor, fresh)


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    solver=st.sampled_from(["mu", "mue", "cd"]),
    exclusivity=st.floats(-3, 2).map(lambda power: 10**power),
    labeled=st.booleans(),
    dense=st.booleans(),
    more=st.sampled_from([{}, {"alpha_W": 0.02}, {"fixed": np.ones((1, 12))},
                          {"prior": np.eye(2, 12) + 0.1}]),
)  # fmt: skip
def test_the_loss_with_exclusivity_never_rises(seed, solver, exclusivity, labeled, dense, more):
    X = np.random.default_rng(seed).poisson(0.7, (15, 12)) + np.eye(15, 12)
    y = np.resize([0, 1, -1], len(X)) if labeled else None
    model = NMFAlpha(4, exclusivity=exclusivity, **more,
                     **{**LONG, "solver": solver, "max_iter": 40})  # fmt: skip
    losses = model.fit(X if dense else sp.csr_array(X), y).loss_curve_
    assert (np.diff(losses) <= 1e-12 * losses[0]).all()
    assert np.isfinite(losses).all()
    assert model.solver_ == ("mu" if solver == "mu" else "mue")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_parts_share_less_as_it_grows_and_nothing_in_the_end(dtype):
    X = load_docstrings().data[:200].astype(dtype)
    rule = {"solver": "mue", "max_iter": 60, "tol": 0, "random_state": 0}
    plain = NMFAlpha(6, **rule).fit(X)
    none = NMFAlpha(6, exclusivity=0.0, **rule).fit(X)
    assert none.components_.tobytes() == plain.components_.tobytes()
    models = [NMFAlpha(6, exclusivity=e, **rule).fit(X) for e in (0.1, 1.0, 10.0)]
    shared = [overlap(model.components_) for model in (none, *models)]
    assert (np.diff(shared) < 0).all()
    assert shared[-1] < 0.05
    errors = [model.reconstruction_err_ for model in models]
    assert (np.diff(errors) > 0).all()
    assert errors[0] < 1.01 * none.reconstruction_err_
    # a part cannot evade the charge by being small: no part is lost
    assert_allclose([model.components_.sum(axis=1) for model in models], 1, rtol=1e-4)


def test_planted_parts_that_share_nothing_come_apart():
    """The loss has many minima, so it goes on from a plain fit, whose parts still share noise."""
    rng = np.random.default_rng(0)
    planted = np.kron(np.eye(4), rng.dirichlet(np.ones(5)))
    X = rng.poisson(3 * rng.gamma(0.3, size=(200, 4)) @ planted + 0.05)
    plain = NMFAlpha(4, solver="mue", output="coefficients", max_iter=500, random_state=1).fit(X)
    start = plain.transform(X), plain.components_.T
    model = NMFAlpha(4, exclusivity=0.3, init=start, max_iter=500).fit(X)
    alike = np.corrcoef(np.vstack([model.components_, planted]))[:4, 4:]
    assert_array_equal(np.sort(alike.argmax(axis=1)), np.arange(4))
    assert alike.max(axis=1).min() > 0.95
    assert overlap(model.components_) < 0.2 * overlap(plain.components_)


def test_it_counts_weights_and_knows_no_units():
    rng = np.random.default_rng(1)
    X, f = rng.poisson(0.7, (20, 7)) + np.eye(20, 7), np.array([1, 2, 1, 1, 3, 1, 1])
    H, V = rng.random((20, R)) + 0.1, rng.random((7, R)) + 0.1
    w = rng.integers(1, 4, 20)
    model = NMFAlpha(R, exclusivity=0.2, **LONG)
    both = sklearn.clone(model).set_params(init=(H, V), feature_weight=f).fit(X, sample_weight=w)
    again = sklearn.clone(model).set_params(init=(H.repeat(w, axis=0), V.repeat(f, axis=0)))
    again.fit(X.repeat(w, axis=0).repeat(f, axis=1))
    assert_allclose(both.loss_curve_, again.loss_curve_, rtol=1e-8)
    plain = model.fit(X).components_
    for scale in (1e-20, 1e15):
        moved = sklearn.clone(model).fit(X * scale).components_
        assert_allclose(moved, plain, rtol=1e-6, atol=1e-9)


def test_what_cannot_carry_it_says_so(tmp_path):
    X = make_case(0).X
    with pytest.raises(ValueError, match="exclusivity"):
        NMFAlpha(R, exclusivity=-1.0).fit(X)
    with pytest.raises(ValueError, match="cannot carry"):
        NMFAlpha(R, exclusivity=1.0, backend=BlockedBackend(get_backend("numba"), cut=4)).fit(X)
    np.save(tmp_path / "X.npy", X)
    with pytest.raises(ValueError, match="memory"):
        NMFAlpha(R, exclusivity=1.0).fit(open_rows(tmp_path / "X.npy"))
    one = NMFAlpha(1, exclusivity=1.0, **LONG).fit(X)  # nobody to share with
    assert_allclose(one.components_, NMFAlpha(1, **LONG).fit(X).components_, rtol=1e-12)
