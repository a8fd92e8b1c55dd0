"""The dual coordinate descent: against LIBLINEAR, its optimality conditions and duality."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.svm import LinearSVC

from marginparts.svm.duals import DualProblem, solve_duals
from oracle import KINDS, primal_svm

kinds = pytest.mark.parametrize("kind", KINDS)
seeds = pytest.mark.parametrize("seed", range(3))
losses = pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])


def data(seed, m=60, d=40, density=0.3):
    """Labels that no hyperplane explains altogether."""
    rng = np.random.default_rng(seed)
    X = rng.random((m, d)) * (rng.random((m, d)) < density)
    return X, np.where(X @ rng.standard_normal(d) + 0.3 * rng.standard_normal(m) > 0, 1.0, -1.0)


def solve(X, y, C=1.0, *, alpha=None, tol=1e-8, max_epochs=100_000, **options):
    """One problem over all rows, solved tightly."""
    cost = np.broadcast_to(np.asarray(C, float), y.shape)
    problem = DualProblem(np.arange(len(y)), y, cost, alpha)
    return solve_duals(X, [problem], tol=tol, max_epochs=max_epochs, **options)[0]


@kinds
@seeds
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_squared_hinge_is_linear_svc(kind, seed, C):
    X, y = data(seed)
    solution = solve(KINDS[kind](X), y, C)
    assert solution.converged
    assert_allclose(solution.w, primal_svm(X, y, C), atol=1e-6 * np.linalg.norm(solution.w))


@kinds
@seeds
def test_hinge_is_linear_svc(kind, seed):
    X, y = data(seed)
    svm = LinearSVC(loss="hinge", fit_intercept=False, tol=1e-9, max_iter=10**6, random_state=0)
    solution = solve(KINDS[kind](X), y, loss="hinge")
    assert_allclose(solution.w, svm.fit(X, y).coef_[0], atol=1e-5 * np.linalg.norm(solution.w))


@kinds
@losses
def test_w_is_the_sum_over_its_duals(kind, loss):
    X, y = data(0)
    solution = solve(KINDS[kind](X), y, loss=loss, tol=1e-2)  # also far from the optimum
    assert_allclose(solution.w, X.T @ (solution.alpha * y), atol=1e-13)


@settings(derandomize=True, deadline=None, max_examples=40, database=None)
@given(
    seed=st.integers(0, 2**16),
    m=st.integers(1, 30),
    d=st.integers(1, 20),
    log_C=st.floats(-3, 1.5),
    loss=st.sampled_from(["squared_hinge", "hinge"]),
)
def test_optimality_conditions_hold(seed, m, d, log_C, loss):
    X, y = data(seed, m, d, density=0.7)
    X[:, 0] += 0.1  # no empty samples: they have a test of their own
    C, tol = 10**log_C, 1e-6
    alpha, w, converged, _ = solve(X, y, C, loss=loss, tol=tol)
    assert converged
    squared = loss == "squared_hinge"
    gradient = y * (X @ w) - 1 + (alpha / (2 * C) if squared else 0)
    upper = np.inf if squared else C
    slack = 5 * tol  # gradients move a little within the last pass
    assert (alpha >= 0).all()
    assert (alpha <= upper).all()
    assert (gradient[alpha <= 0] >= -slack).all()
    assert (gradient[alpha >= upper] <= slack).all()
    assert_allclose(gradient[(alpha > 0) & (alpha < upper)], 0, atol=slack)


@seeds
@losses
def test_primal_and_dual_values_meet(seed, loss):
    X, y = data(seed)
    C = 2.0
    alpha, w, *_ = solve(X, y, C, loss=loss, tol=1e-9)
    hinge = np.maximum(0, 1 - y * (X @ w))
    if loss == "squared_hinge":
        primal = w @ w / 2 + C * np.sum(hinge**2)
        dual = alpha.sum() - w @ w / 2 - np.sum(alpha**2) / (4 * C)
        assert_allclose(alpha, 2 * C * hinge, atol=1e-6)
    else:
        primal = w @ w / 2 + C * np.sum(hinge)
        dual = alpha.sum() - w @ w / 2
    assert_allclose(primal, dual, rtol=1e-6)


def test_hinge_duals_lie_in_the_box_and_touch_it():
    X, y = data(0)
    alpha = solve(X, y, 0.5, loss="hinge").alpha
    assert alpha.min() == 0
    assert alpha.max() == 0.5


@seeds
def test_duplicate_samples_share_unique_squared_hinge_duals(seed):
    X, y = data(1)
    X, y = np.vstack([X, X]), np.concatenate([y, y])
    alpha = solve(X, y, tol=1e-10, seed=seed).alpha
    assert_allclose(alpha[:60], alpha[60:], atol=1e-7)
    assert_allclose(alpha, solve(X, y, tol=1e-10, seed=seed + 100).alpha, atol=1e-7)


@losses
def test_a_sample_that_costs_twice_is_worth_two(loss):
    X, y = data(2)
    heavy = np.where(np.arange(60) < 10, 2.0, 1.0)
    twice = solve(np.vstack([X, X[:10]]), np.concatenate([y, y[:10]]), loss=loss)
    once = solve(X, y, heavy, loss=loss)
    assert_allclose(once.w, twice.w, atol=1e-5)


def test_cost_per_sample_is_liblinears_sample_weight():
    X, y = data(0)
    cost = np.random.default_rng(0).uniform(0.1, 10, len(y))
    solution = solve(X, y, cost)
    expected = primal_svm(X, y, 1.0, sample_weight=cost)
    assert_allclose(solution.w, expected, atol=1e-6 * np.linalg.norm(expected))


@losses
def test_a_warm_start_at_the_optimum_needs_one_pass(loss):
    X, y = data(0)
    optimum = solve(X, y, loss=loss, tol=1e-9)
    warm = solve(X, y, loss=loss, tol=1e-6, alpha=optimum.alpha, max_epochs=1)
    assert warm.converged
    assert_allclose(warm.alpha, optimum.alpha, atol=1e-6)
    assert_allclose(warm.w, optimum.w, atol=1e-6)
    assert not solve(X, y, loss=loss, tol=1e-6, max_epochs=1).converged


def test_a_warm_start_is_not_written_to_and_is_brought_into_the_box():
    X, y = data(0)
    start = np.full(len(y), 7.0)
    solution = solve(X, y, 0.5, loss="hinge", alpha=start)
    assert_array_equal(start, 7.0)
    assert_allclose(solution.w, solve(X, y, 0.5, loss="hinge").w, atol=1e-5)


@kinds
def test_problems_side_by_side_are_solved_like_one_alone(kind):
    X, y = data(0)
    stored = KINDS[kind](X)
    rows = [np.arange(0, 30), np.arange(20, 60), np.arange(60)]
    problems = [DualProblem(i, y[i], np.ones(len(i))) for i in rows]
    together = solve_duals(stored, problems, tol=1e-9)
    for i, solution in zip(rows, together, strict=True):
        assert_allclose(solution.w, solve(X[i], y[i], tol=1e-9).w, atol=1e-7)
        assert solution.alpha.shape == i.shape


def test_no_problems_no_solutions():
    assert solve_duals(np.eye(2), []) == []


def test_running_out_of_passes_is_not_called_convergence():
    X, y = data(0)
    assert not solve(X, y, 100.0, max_epochs=2).converged


@losses
def test_an_empty_sample_moves_nothing(loss):
    X, y = data(0)
    with_empty = solve(np.vstack([X, np.zeros(40)]), np.append(y, 1.0), loss=loss)
    assert with_empty.converged
    # its margin is 0 whatever w: the dual is 2 C max(0, 1 - 0), or at the bound C
    assert_allclose(with_empty.alpha[-1], 2.0 if loss == "squared_hinge" else 1.0, rtol=1e-6)
    assert_allclose(with_empty.w, solve(X, y, loss=loss).w, atol=1e-6)


def test_single_precision_rows_are_solved_in_double():
    X, y = data(0)
    single = sp.csr_array(X.astype(np.float32))
    solution = solve(single, y)
    assert solution.w.dtype == np.float64
    assert_allclose(solution.w, solve(single.astype(float), y).w, atol=1e-12)
