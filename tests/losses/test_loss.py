"""One loss: entries without a fit, losses that are no numbers, and where a run may end."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from marginparts import ConstrainedNMF, NMFAlpha, SemiSupervisedNMF, Stop, nmf_alpha
from marginparts.backends import get_backend
from marginparts.checkpoint._position import noted, position_of
from marginparts.datasets import load_digits_49
from marginparts.losses.nmf_alpha import NMFAlphaProblem
from marginparts.solve.factorize import margin_components
from marginparts.solve.loop import Position
from marginparts.solve.map import map_rows
from oracle import BACKENDS, KINDS, eq_14

NO_MARGIN = np.zeros((30, 2))


def counts(seed=0, n=30, d=20, r=4):
    """Counts as of words, with many zeros, an empty row and an empty column."""
    rng = np.random.default_rng(seed)
    X = rng.poisson(rng.gamma(0.3, 1, (n, r)) @ rng.gamma(0.5, 1, (r, d))).astype(float)
    X[5], X[:, 7] = 0, 0
    return X


def coefficients(seed, n, p=1, share=0.7):
    """Dual coefficients S (n, 2p) of some rows."""
    rng = np.random.default_rng(seed)
    known = rng.permutation(n)[: int(share * n)]
    S = np.zeros((n, 2 * p))
    S[known, rng.integers(0, 2 * p, len(known))] = rng.gamma(0.5, 1, len(known))
    return sp.csr_array(S)


# --- Entries that cannot be explained ------------------------------------------------------------


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_start_without_a_fit_is_filled_and_said(backend, kind):
    X = counts()
    H, V = np.zeros((30, 2)), np.zeros((20, 2))
    H[:, 0], V[:, 1] = 1, 1
    with pytest.warns(UserWarning, match=f"no fit for {np.count_nonzero(X)} positive entries"):
        result = nmf_alpha(KINDS[kind](X), 2, init=(H, V), solver="mu", backend=backend)
    assert result.stop is not Stop.EXACT
    assert np.isfinite(result.losses).all()
    assert_allclose(result.losses[-1], eq_14(X.T, result.V, result.H.T, NO_MARGIN, 0.0), rtol=1e-9)
    assert_array_equal(H[:, 1], 0)  # what was given stays as it is


@pytest.fixture(scope="module")
def updated():
    """Counts, coefficients, a fit by coordinate descent, and the counts some time later."""
    X, S = counts(), coefficients(0, 30)
    fitted = nmf_alpha(X, 4, S=S, solver="cd", random_state=0, backend="numba")
    later = X + np.random.default_rng(1).poisson(0.2, X.shape)
    return S, fitted, later


@pytest.mark.skipif("numba" not in BACKENDS, reason="numba is not under test")
@pytest.mark.parametrize("lam", [0.0, 1.0])
def test_a_warm_start_on_updated_counts_ends_like_a_cold_one(updated, lam):
    S, fitted, later = updated
    missed = np.count_nonzero((later > 0) & (fitted.H @ fitted.V.T <= 1e-290))
    assert missed > 0
    options = {"S": S, "lam": lam, "solver": "cd", "tol": 0, "backend": "numba"}
    with pytest.warns(UserWarning, match=f"no fit for {missed} positive"):
        warm = nmf_alpha(later, 4, init=(fitted.H, fitted.V), **options)
    cold = nmf_alpha(later, 4, random_state=0, **options)
    assert (np.diff(warm.losses) <= 0).all()
    assert len(warm.losses) > 50  # of 200 looks, most of them at the end of the road
    exact = eq_14(later.T, warm.V, warm.H.T, S.toarray(), lam)
    assert_allclose(warm.losses[-1], exact, rtol=1e-9)
    assert warm.losses[-1] < 1.05 * cold.losses[-1]


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_infinite_loss_may_come_from_the_margin_components_alone(backend):
    kernels, X, S = get_backend(backend), np.ones((2, 3)), np.array([[1.0], [0.0]])
    XS = kernels.prepare(np.ones((1, 3)))
    problem = NMFAlphaProblem(kernels, kernels.prepare(X), kernels.coefficients(S), XS, lam=1.0)
    state = {"V": np.ones((3, 2)), "H": np.ones((2, 2))}
    assert np.isfinite(problem.loss(state))
    problem.XS = kernels.prepare(np.ones((1, 3)))
    problem.S = kernels.coefficients(sp.csr_array(np.zeros((2, 1))))
    assert problem.loss(state) == np.inf


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_entry_next_to_nothing_has_no_infinite_loss(backend, dtype):
    """Its row of H passes below all numbers, which costs less than rounding."""
    X = counts().astype(dtype)
    X[3] = X[3] > 0
    X[3] *= np.finfo(dtype).tiny
    result = nmf_alpha(X, 3, random_state=0, solver="mu", max_iter=20, backend=backend)
    assert np.isfinite(result.losses).all()
    assert (np.diff(result.losses) <= 1e-6 * result.losses[0]).all()


def test_a_start_with_zeros_that_do_no_harm_is_taken_as_it_is(recwarn):
    X = counts()
    H, V = (np.random.default_rng(0).random((m, 2)) for m in X.shape)
    H[5], V[7] = 0, 0  # the empty row and the empty column
    H[3, 0] = 0
    result = nmf_alpha(X, 2, init=(H, V), max_iter=1, solver="mu")
    assert not recwarn
    assert_allclose(result.losses[0], eq_14(X.T, V, H.T, NO_MARGIN, 0.0), rtol=1e-12)


def test_the_map_of_new_samples_still_skips_unknown_words():
    V = np.random.default_rng(0).random((20, 3))
    V[4] = 0
    X = counts()
    without = X.copy()
    without[:, 4] = 0
    assert_allclose(map_rows(X, V, 30, "reference"), map_rows(without, V, 30, "reference"))


# --- Stationary points ---------------------------------------------------------------------------

#: n, d, rank, lam, questions, seed, density: many entries of H are pushed to zero on the way.
ADVERSARIAL = [
    (60, 40, 6, 1.0, 1, 0, 0.3),
    (60, 40, 6, 1.0, 1, 0, 1.0),
    (60, 40, 6, 1.0, 4, 7, 0.3),
    (100, 20, 3, 0.1, 1, 4, 0.3),
    (30, 60, 8, 1.0, 3, 3, 1.0),
    (40, 30, 5, 10.0, 2, 5, 0.3),
    (20, 15, 4, 100.0, 1, 6, 0.3),
]


@pytest.mark.skipif("numba" not in BACKENDS, reason="numba is not under test")
@pytest.mark.parametrize(("n", "d", "r", "lam", "p", "seed", "density"), ADVERSARIAL)
def test_supervised_sweeps_end_at_stationary_points(n, d, r, lam, p, seed, density):
    rng = np.random.default_rng(seed)
    X = rng.integers(1, 9, (n, d)) * rng.random((n, d)) * (rng.random((n, d)) < density)
    result = nmf_alpha(
        X, r, S=coefficients(seed, n, p), lam=lam, solver="cd", max_iter=6000, tol=0,
        random_state=0, backend="numba", callback=lambda progress: progress.residual < 5e-5,
    )  # fmt: skip
    assert result.history[-1].residual < 1e-4
    assert (np.diff(result.losses) <= 0).all()


@pytest.mark.skipif("numba" not in BACKENDS, reason="numba is not under test")
def test_a_zero_that_the_margin_asks_for_is_lifted_by_a_bold_sweep_alone():
    kernels = get_backend("numba")
    X, S = np.array([[1.0, 0.0], [0.0, 1.0]]), sp.csr_array([[1.0], [1.0]])
    XS = margin_components(S, X)
    problem = NMFAlphaProblem(
        kernels, kernels.prepare(X), kernels.coefficients(S), kernels.prepare(XS), lam=50.0
    )
    H, V = np.array([[1.0, 0.0], [0.5, 0.001]]), np.array([[1.0, 0.02], [0.1, 1.0]])
    state = {"V": kernels.factor(V), "H": kernels.factor(H)}
    plain, bold = (problem.sweep(state, "H", bold=bold).factor for bold in (False, True))
    assert plain[0, 1] == 0
    assert 0 < bold[0, 1] < 1e-3
    bold[0, 1] = 0
    assert_array_equal(plain, bold)


# --- Losses that are no numbers ------------------------------------------------------------------


@pytest.mark.skipif("numba" not in BACKENDS, reason="numba is not under test")
@pytest.mark.parametrize("solver", ["mue", "cd"])
@pytest.mark.parametrize("size", [1e15, 1e30])
def test_one_huge_entry_in_float32_leaves_finite_factors(solver, size):
    rng = np.random.default_rng(0)
    X = (rng.random((60, 50)) * (rng.random((60, 50)) < 0.3)).astype(np.float32)
    X[3, 4] = size
    result = nmf_alpha(
        X, 16, S=coefficients(0, 60), lam=1e6, solver=solver, max_iter=30, tol=0, random_state=0,
        backend="numba",
    )  # fmt: skip
    assert np.isfinite(result.losses).all()
    assert np.isfinite(result.V).all()
    assert np.isfinite(result.H).all()


# --- Bookkeeping ---------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [SemiSupervisedNMF, ConstrainedNMF, NMFAlpha])
def test_the_history_is_in_the_units_of_the_loss_curve(estimator):
    X = counts() * 2.0**40  # divided by a power of two in the fit
    y = np.where(np.arange(30) < 20, np.arange(30) % 2, -1)
    parts = estimator(3, random_state=0, max_iter=5, backend="reference").fit(X, y)
    assert_array_equal([check.loss for check in parts.history_], parts.loss_curve_)


def test_a_checkpoint_keeps_the_iteration_from_which_losses_are_compared():
    position = Position({"V": np.ones((2, 1))}, [], None, {}, iteration=30, begun=20)
    back = position_of(noted(position, np.asarray), lambda array, block: array)
    assert (back.iteration, back.begun) == (30, 20)


def test_a_fit_makes_the_margin_components_once(monkeypatch):
    made = []

    def counted(S, X):
        made.append(S.shape)
        return margin_components(S, X)

    for module in ("solve.factorize", "estimators._margins"):
        monkeypatch.setattr(f"marginparts.{module}.margin_components", counted)
    digits = load_digits_49()
    y = np.where(np.arange(len(digits.target)) < 40, digits.target, -1)
    for units in (1.0, 2.0**40):
        parts = NMFAlpha(4, random_state=0, max_iter=2, backend="reference")
        parts.fit(units * digits.data, y)
        XS = margin_components(parts.directions_, units * digits.data)
        assert_allclose(parts.margin_components_, XS, rtol=1e-12)
    assert len(made) == 2
