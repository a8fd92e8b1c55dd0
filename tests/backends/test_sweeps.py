"""Coordinate descent against its formula, and what the theory says of every step of it."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize_scalar

from marginparts import NMFAlpha, nmf_alpha
from marginparts.backends import Also, Plus, get_backend
from marginparts.solve.map import map_rows, map_rows_each
from oracle import BACKENDS, coordinate_sweep, make_case
from problems import problem_of

pytestmark = pytest.mark.skipif("numba" not in BACKENDS, reason="numba is not under test")


@pytest.fixture
def kernels():
    return get_backend("numba")


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shape", [(9, 7), (5, 60)])  # less and more than a line of nonzeros
@pytest.mark.parametrize(("dtype", "rtol"), [(np.float64, 1e-11), (np.float32, 1e-4)])
def test_a_sweep_is_its_formula_entry_by_entry(kernels, seed, shape, dtype, rtol):
    case = make_case(seed, *shape, density=0.7)
    rng = np.random.default_rng(seed)
    n, r = case.H.shape
    X2, B2 = rng.random((n, 4)) * (rng.random((n, 4)) < 0.6), rng.random((4, r)) + 0.1
    S, T = case.S, rng.random((4, r))
    den, weight = case.V.sum(axis=0), 1 + rng.random(n)
    pulls = 0.7 * case.H * (S @ T)
    expected = coordinate_sweep(case.X, case.H, case.V, den, weight, (X2, B2, 0.3), pulls)

    X, X2, S = (sp.csr_array(M.astype(dtype)) for M in (case.X, X2, S))
    H, V, B2, T = (M.astype(dtype) for M in (case.H, case.V, B2, T))
    P = kernels.prepare(X)
    also = Also(kernels.prepare(X2, like=P), B2, 0.3)
    plus = Plus(S, T, 0.7)
    step = kernels.sweep(P, H, V, den, weight=weight, also=also, plus=plus)
    assert step.factor.dtype == dtype
    assert_allclose(step.factor, expected, rtol=rtol)
    assert_array_equal(H, case.H.astype(dtype))
    over = kernels.sweep(P, H, V, den, weight=weight, also=also, plus=plus, out=H)
    assert_allclose(over.factor, step.factor, rtol=rtol)


@settings(derandomize=True, deadline=None, max_examples=200, database=None)
@given(seed=st.integers(0, 2**20), n=st.integers(1, 30), log_u=st.floats(-3, 3))
def test_a_step_lies_between_the_multiplicative_one_and_the_optimum(seed, n, log_u):
    rng = np.random.default_rng(seed)
    x, b, rest = rng.gamma(1, 1, n), rng.gamma(0.5, 1, n), rng.gamma(0.5, 1, n)
    t0, u = rng.gamma(0.5, 1) + 1e-3, 10**log_u

    def loss(t):
        return u * t - np.sum(x * np.log(rest + t * b))

    fit = rest + t0 * b
    g, h = np.sum(x * b / fit), np.sum(x * b**2 / fit**2)
    multiplicative = t0 * g / u
    optimum = minimize_scalar(
        loss, bounds=(0, 10 * (t0 + x.sum() / u)), method="bounded", options={"xatol": 1e-12}
    ).x
    # one entry moves, the others stand still: two columns, the second fixed at one
    kernels = get_backend("numba")
    A, B = np.array([[t0, 1.0]]), np.column_stack([b, rest])
    step = kernels.sweep(kernels.prepare(sp.csr_array(x[None])), A, B, np.array([u, np.inf]))
    t = step.factor[0, 0]
    assert_allclose(t, t0 + (g / h) * (g / u - 1) if g >= u else t0**2 * h / (t0 * h + u - g))
    low, high = sorted([multiplicative, optimum])
    slack = 1e-6 * (t0 + high)
    assert low - slack <= t <= high + slack
    assert loss(t) <= loss(t0) + 1e-12 * abs(loss(t0))


@settings(derandomize=True, deadline=None, max_examples=60, database=None)
@given(
    seed=st.integers(0, 2**16),
    n=st.integers(1, 12),
    d=st.integers(1, 12),
    r=st.sampled_from([1, 3, 9, 16]),  # the last: far more entries than nonzeros, in two lines
    density=st.sampled_from([0.2, 0.6, 1.0]),
    log_lam=st.floats(-3, 3),
)
def test_the_loss_falls_at_every_sweep(seed, n, d, r, density, log_lam):
    case = make_case(seed, n, d, r, columns=2, density=density)
    problem = problem_of(sp.csr_array(case.X), case.S, 10**log_lam, "numba")
    slack = 1e-12 * (case.X.sum() + problem.lam * (case.S.T @ case.X).sum())
    state = {"V": case.V, "H": case.H}
    loss = first = problem.loss(state)
    for _ in range(4):
        for block in ("V", "H"):
            state = {**state, block: problem.sweep(state, block).factor}
            before, loss = loss, problem.loss(state)
            assert loss <= before + slack
            assert (state[block] >= 0).all()
    assert loss < first


@pytest.mark.parametrize(("dtype", "small"), [(np.float32, 1e-4), (np.float64, 1e-7)])
def test_a_long_run_ends_at_a_stationary_point_with_zeros(dtype, small):
    case = make_case(3, n=40, d=30, r=6, density=0.4)
    X = sp.csr_array(case.X.astype(dtype))
    result = nmf_alpha(X, 6, solver="cd", random_state=0, max_iter=300, tol=0)
    residuals = [check.residual for check in result.history]
    assert residuals[-1] < small < 0.02 < residuals[1]
    assert 0 < result.history[-1].nonzeros["V"] == np.count_nonzero(result.V) < result.V.size
    # the conditions of Karush, Kuhn and Tucker, from their definition
    H, V = result.H.astype(float), result.V.astype(float)
    ratio = np.divide(case.X, H @ V.T, out=np.zeros_like(case.X), where=case.X > 0)
    for A, slope in ((H, 1 - ratio @ V / V.sum(axis=0)), (V, 1 - ratio.T @ H / H.sum(axis=0))):
        assert slope.min() > -100 * small
        assert np.abs(A / A.max() * slope).max() < 100 * small


@pytest.mark.parametrize("lam", [0.0, 1.0, 30.0])
def test_sweeps_go_on_where_multiplicative_updates_end(lam):
    case = make_case(4, n=40, d=30, r=6, density=0.4)
    options = {"S": case.S, "lam": lam, "tol": 0}
    ended = nmf_alpha(sp.csr_array(case.X), 6, solver="mu", random_state=0, max_iter=500, **options)
    start = (ended.H, ended.V)
    result = nmf_alpha(sp.csr_array(case.X), 6, init=start, solver="cd", max_iter=50, **options)
    assert result.losses[-1] < ended.losses[-1]


def test_the_residual_does_not_depend_on_the_scale_of_the_data():
    case = make_case(0, n=30, d=20)
    options = {"solver": "cd", "random_state": 0, "max_iter": 15, "tol": 0}
    small, large = (nmf_alpha(sp.csr_array(c * case.X), 3, **options) for c in (1e-3, 1e3))
    ours, theirs = ([c.residual for c in run.history[1:]] for run in (small, large))
    assert_allclose(ours, theirs, rtol=1e-6)
    assert all(0 <= residual <= 1 for residual in ours)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_map_without_a_number_of_updates_is_the_optimum(dtype):
    case = make_case(1, n=50, d=30, r=5, density=0.3)
    X, V = sp.csr_array(case.X.astype(dtype)), case.V.astype(dtype)
    kernels = get_backend("numba")
    P = kernels.prepare(X)
    exact = kernels.divergence(P, map_rows(X, V, 20_000), V)
    assert_allclose(kernels.divergence(P, map_rows(X, V, None), V), exact, rtol=1e-6)
    without_sweeps = map_rows(X, V, None, backend="reference")
    assert_allclose(kernels.divergence(P, without_sweeps, V), exact, rtol=1e-5)


def test_maps_for_several_numbers_of_updates_are_those_for_each():
    case = make_case(1, n=50, d=30, r=5, density=0.3)
    X = sp.csr_array(case.X)
    for count, H in zip([2, 5, 9], map_rows_each(X, case.V, [2, 5, 9]), strict=True):
        assert_array_equal(H, map_rows(X, case.V, count))


@pytest.mark.parametrize("map_iter", [None, 7])
def test_the_map_of_a_row_depends_on_that_row_alone(map_iter):
    case = make_case(2, n=60, d=25, density=0.4)
    X = sp.csr_array(case.X)
    parts = NMFAlpha(4, map_iter=map_iter, max_iter=20, random_state=0).fit(X)
    assert_array_equal(parts.transform(X)[10:15], parts.transform(X[10:15]))


def test_an_entry_at_zero_comes_back_where_it_helps_and_stays_where_it_does_not(kernels):
    """Multiplicative updates cannot do this: for them zero is forever."""
    X = kernels.prepare(sp.csr_array([[4.0, 0.0], [0.0, 4.0]]))
    V = np.array([[1.0, 0.01], [0.01, 1.0]])
    H = np.array([[1.0, 0.0], [1.0, 0.0]])
    swept = kernels.sweep(X, H, V, V.sum(axis=0)).factor
    assert swept[1, 1] > 1
    assert swept[0, 1] == 0
    assert_array_equal(kernels.half_step(X, H, V, V.sum(axis=0)).factor[:, 1], 0)


def test_empty_rows_and_unexplained_entries_give_zeros_and_no_nan(kernels):
    X = kernels.prepare(sp.csr_array([[0.0, 0.0, 0.0], [1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]))
    V = np.array([[1.0, 0.5], [0.0, 0.0], [0.2, 1.0]])  # nothing explains the middle column
    step = kernels.sweep(X, np.ones((3, 2)), V, V.sum(axis=0), gauge=True)
    assert_array_equal(step.factor[[0, 2]], 0)
    assert (step.factor[1] > 0).all()
    assert np.isfinite(step.violation)


def test_only_backends_that_have_it_are_asked_for_it(kernels):
    assert not get_backend("reference").can_sweep(np.ones((3, 3)))
    assert kernels.can_sweep(kernels.prepare(np.ones((3, 3))))
    assert not kernels.can_sweep(np.ones((3, 3)))
