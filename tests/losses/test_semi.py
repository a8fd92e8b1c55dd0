"""Semi-NMF-alpha: equal to a transcription, a loss that never rises, and what a basis must be."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import nnls

from marginparts.losses.least_squares import squared_norm
from marginparts.losses.semi import _TIE, SemiProblem
from marginparts.solve.loop import RangeError, minimize
from marginparts.solve.run_spec import RunSpec
from marginparts.solve.semi import semi_codes, semi_parts, semi_path
from oracle import KINDS, product

kinds = pytest.mark.parametrize("kind", KINDS)


def make_case(seed, n=9, d=6, r=3, p=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.8)
    S = rng.random((n, 2 * p)) * (rng.random((n, 2 * p)) < 0.6)
    return X, S, rng.random((n + 2 * p, r)) + 0.1, rng.normal(size=(d, r))


def stacked(X, S, lam):
    """X over its weighted margin components, by their definition."""
    return np.vstack([X, np.sqrt(lam) * product(S.T, X)])


def loss_of(X, S, lam, H, V):
    """The loss, entry by entry, with U at the end of H."""
    n, U = len(X), H[len(X) :] / np.sqrt(lam)
    data = (X - product(H[:n], V.T)) ** 2
    return data.sum() + lam * ((product(S.T, X) - product(U, V.T)) ** 2).sum()


def basis_of(A, H, V):
    """V by the normal equations of each of its rows, tied to where it was."""
    gram = product(H.T, H)
    tie = _TIE * np.trace(gram)
    return np.array([np.linalg.solve(gram + tie * np.eye(len(gram)), H.T @ a + tie * v)
                     for a, v in zip(A.T, V, strict=True)])  # fmt: skip


def multiplied(A, H, V):
    """The step of Ding, Li & Jordan (their eq. 10), entry by entry."""
    XV, G = product(A, V), product(V.T, V)
    new = np.empty_like(H)
    for i, k in np.ndindex(*H.shape):
        up, down = max(XV[i, k], 0), max(-XV[i, k], 0)
        for j in range(len(G)):
            up, down = up + H[i, j] * max(-G[j, k], 0), down + H[i, j] * max(G[j, k], 0)
        new[i, k] = H[i, k] * np.sqrt(up / down)
    return new


def swept(A, H, V):
    """Each entry in turn at the minimum over it alone."""
    new = H.copy()
    for i, k in np.ndindex(*H.shape):
        residual = A[i] - sum(new[i, j] * V[:, j] for j in range(H.shape[1]) if j != k)
        new[i, k] = max(residual @ V[:, k] / (V[:, k] @ V[:, k]), 0)
    return new


@kinds
@pytest.mark.parametrize(("step", "code"), [("update", multiplied), ("sweep", swept)])
def test_five_iterations_are_those_of_the_formulas(kind, step, code):
    X, S, H, V = make_case(0)
    A = stacked(X, S, 2.5)
    problem = SemiProblem(KINDS[kind](A), squared_norm(A))
    state = {"V": V, "H": H}
    for _ in range(5):
        V = basis_of(A, H, V)
        H = code(A, H, V)
        for block in problem.blocks:
            state[block] = getattr(problem, step)(state, block).factor
        assert_allclose(state["V"], V, rtol=1e-10, atol=1e-12)
        assert_allclose(state["H"], H, rtol=1e-10, atol=1e-12)
        assert_allclose(problem.loss(state), loss_of(X, S, 2.5, H, V), rtol=1e-10)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000), n=st.integers(1, 8), d=st.integers(1, 6), r=st.integers(1, 6),
    copies=st.booleans(),
)  # fmt: skip
def test_the_loss_never_rises(seed, n, d, r, copies):
    rng = np.random.default_rng(seed)
    X, H = rng.normal(size=(n, d)), rng.random((n, r))
    if copies:  # codes whose Gram matrix is singular
        H[:, -1] = H[:, 0]
    problem, first = SemiProblem(X, squared_norm(X)), {"V": rng.normal(size=(d, r)), "H": H}
    for step in (problem.update, problem.sweep):
        state, before = dict(first), np.inf
        for block in problem.blocks * 15:
            state[block] = step(state, block).factor
            # as a residual: the sum of three terms has their rounding, and parts may be large
            loss = np.sum((X - state["H"] @ state["V"].T) ** 2)
            assert loss <= before + 1e-10 * problem.x_squared
            before = loss
        assert state["H"].min() >= 0


@pytest.mark.parametrize("solver", ["mue", "cd"])
def test_no_rise_is_kept_of_steps_ahead(solver):
    X, _, H, V = make_case(7, n=40, d=12, r=5, p=0)
    run = minimize(
        SemiProblem(X, squared_norm(X)), {"V": V, "H": H}, solver=solver, max_iter=60, tol=0
    )
    assert np.all(np.diff([check.loss for check in run.history]) <= 0)
    assert run.state["H"].min() >= 0


def test_margin_components_are_kept_as_their_weight_grows():
    X, S, _, _ = make_case(3, n=40, d=12, p=1)
    S, missed = sp.csr_array(S), {}
    for lam, result in semi_path(X, S, 3, (0.0, 0.1, 1e4), 0, RunSpec(max_iter=200)):
        V = np.ascontiguousarray(semi_parts(result.V).T)
        missed[lam] = np.linalg.norm(result.XS - semi_codes(result.XS, V, None) @ V.T)
    assert missed[1e4] < 1e-3 * missed[0.0]
    assert missed[0.1] <= missed[0.0]


def test_with_scale_margin_components_share_the_squares_of_the_data():
    X, S, _, _ = make_case(4)
    ((_, result),) = semi_path(1e30 * X, sp.csr_array(S), 2, (1.0,), 0, RunSpec(max_iter=2))
    assert_allclose((result.XS**2).sum(axis=1), np.sum((1e30 * X) ** 2) / 4)


def test_weights_are_rows_given_as_often():
    X, _, _, _ = make_case(5, n=6)
    weights, H = np.array([1.0, 2, 3, 1, 2, 1]), np.random.default_rng(0).random((6, 2))
    often = np.repeat(np.arange(6), weights.astype(int))
    V = np.zeros((X.shape[1], 2))
    once = RunSpec((H, V), max_iter=10, tol=0)
    again = RunSpec((H[often], V), max_iter=10, tol=0)
    ((_, one),) = semi_path(X, None, 2, (0.0,), 0, once, weights=weights)
    ((_, two),) = semi_path(X[often], None, 2, (0.0,), 0, again)
    assert_allclose(one.losses, two.losses)
    assert_allclose(one.V, two.V, atol=1e-8)
    assert_allclose(one.H[often], two.H, atol=1e-8)


@kinds
def test_codes_are_nonnegative_least_squares(kind):
    X, _, _, V = make_case(6)
    H = semi_codes(KINDS[kind](X), V, None)
    assert_allclose(H, [nnls(V, x)[0] for x in X], atol=1e-6)


EXTREME = [np.full(40, 1e-45), np.full(40, 1e-80), np.full(40, 1e38), np.full(40, 1e300)]


@pytest.mark.parametrize("weights", [*EXTREME, np.where(np.arange(40) == 5, 1e38, 1.0)])
def test_weights_out_of_range_are_refused_and_their_ratios_are_what_counts(weights):
    X = make_case(3, n=40, d=12)[0].astype(np.float32)
    run = RunSpec(max_iter=5, tol=0)
    with pytest.raises(RangeError, match="divide the weights by the largest"):
        list(semi_path(X, None, 3, (0.0,), 0, run, weights=weights))
    ((_, result),) = semi_path(X, None, 3, (0.0,), 0, run, weights=weights / weights.max())
    assert np.isfinite(result.V).all()
    assert np.isfinite(result.H).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weight", [1e-80, 1e-300, 5e-324])
def test_a_row_of_next_to_no_weight_has_codes_and_changes_nothing(weight, dtype):
    X = make_case(3, n=40, d=12)[0].astype(dtype)
    weights = np.where(np.arange(40) == 5, weight, 1.0)
    H = np.random.default_rng(0).random((40, 3))
    start = RunSpec((H, np.zeros((12, 3))), max_iter=5, tol=0)
    others = RunSpec((H[weights == 1], np.zeros((12, 3))), max_iter=5, tol=0)
    ((_, ours),) = semi_path(X, None, 3, (0.0,), 0, start, weights=weights)
    ((_, without),) = semi_path(X[weights == 1], None, 3, (0.0,), 0, others)
    assert_allclose(ours.V, without.V, rtol=1e-3)
    assert np.isfinite(ours.H).all()
    assert ours.H[5].any()


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("lam", [1e38, 1e60, 1e300])
def test_a_lam_out_of_range_is_refused(lam, scale):
    X, S, _, _ = make_case(3, n=40, d=12, p=1)
    path = semi_path(
        X.astype(np.float32), sp.csr_array(S), 3, (lam,), 0, RunSpec(max_iter=5), scale=scale
    )
    with pytest.raises(RangeError, match="take a smaller lam"):
        list(path)


def test_a_singular_basis_is_out_of_range(monkeypatch):
    X = make_case(3, n=40, d=12)[0]

    def fails(*_):
        raise np.linalg.LinAlgError("3-th leading minor of the array is not positive definite")

    monkeypatch.setattr(SemiProblem, "_best_basis", fails)
    with pytest.raises(RangeError, match="The loss leaves the range of numbers"):
        list(semi_path(X, None, 3, (0.0,), 0, RunSpec(max_iter=5)))
