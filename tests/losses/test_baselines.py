"""Lee et al. (eq. 18) and Liu & Wu (eqs. 19-20): losses by their formulas, updates that descend."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import nnls

from marginparts import ConstrainedNMF, SemiSupervisedNMF
from marginparts.backends import get_backend
from marginparts.losses.least_squares import LeastSquaresMap, squared_error, squared_norm
from marginparts.losses.lee2010 import Lee2010Problem
from marginparts.losses.liu_wu2010 import LiuWu2010Problem
from marginparts.solve.loop import minimize
from oracle import BACKENDS, KINDS

backends = pytest.mark.parametrize("backend", BACKENDS)
kinds = pytest.mark.parametrize("kind", KINDS)
seeds = pytest.mark.parametrize("seed", range(3))


def one_label(Y):
    """One label a sample from an indicator; unlabeled rows stay so."""
    return np.where((Y >= 0).any(axis=1), Y.argmax(axis=1), -1)


def make_data(seed, n=12, d=8, c=3, r=4, density=0.7):
    """X (n, d), a multilabel indicator Y (n, c) with -1 for unknown entries, and a start."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, d)) * (rng.random((n, d)) < density)
    Y = rng.integers(0, 2, (n, c))
    Y[rng.random((n, c)) < 0.2] = -1
    Y[0], Y[1 % n] = 0, 1  # no label at all, and every label
    Y[max(n // 2, 2) :] = -1
    return X, Y, rng.random((n, r)) + 0.1, rng.random((d, r)) + 0.1, rng.random((c, r)) + 0.1


# --- Lee, Yoo & Choi 2010 ------------------------------------------------------------------------


def lee_problem(X, Y, lam, backend="reference"):
    """The problem over the rows about which anything is known."""
    rows = np.flatnonzero((Y >= 0).any(axis=1))
    Y, known = (Y[rows] == 1).astype(float), (Y[rows] >= 0).astype(float)
    prepared = get_backend(backend).prepare(X)
    return Lee2010Problem(prepared, squared_norm(X), Y=Y, known=known, rows=rows, lam=lam)


def eq_18(X, Y, V, H, U, lam):
    """The loss entry by entry, over known labels only."""
    loss = sum((x - f) ** 2 for x, f in zip(X.ravel(), (H @ V.T).ravel(), strict=True))
    for y, f in zip(Y.ravel(), (H @ U.T).ravel(), strict=True):
        loss += lam * (y - f) ** 2 if y >= 0 else 0.0
    return loss


@backends
@kinds
@seeds
@pytest.mark.parametrize("lam", [0.0, 0.5, 20.0])
def test_lees_loss_is_eq_18_over_the_known_labels(backend, kind, seed, lam):
    X, Y, H, V, U = make_data(seed)
    loss = lee_problem(KINDS[kind](X), Y, lam, backend).loss({"V": V, "H": H, "U": U})
    assert_allclose(loss, eq_18(X, Y, V, H, U, lam), rtol=1e-12)


@backends
@kinds
@seeds
def test_lees_updates_are_those_with_explicit_masks(backend, kind, seed):
    X, Y, H, V, U = make_data(seed)
    lam, state = 0.7, {"V": V, "H": H, "U": U}
    mask, Y1 = (Y >= 0).astype(float), (Y == 1).astype(float)
    problem = lee_problem(KINDS[kind](X), Y, lam, backend)
    assert_allclose(problem.update(state, "V").factor, V * (X.T @ H) / (V @ H.T @ H), rtol=1e-11)
    assert_allclose(
        problem.update(state, "U").factor, U * (Y1.T @ H) / ((mask * (H @ U.T)).T @ H), rtol=1e-11
    )
    above = X @ V + lam * Y1 @ U
    below = H @ V.T @ V + lam * (mask * (H @ U.T)) @ U
    assert_allclose(problem.update(state, "H").factor, H * above / below, rtol=1e-11)


@settings(derandomize=True, deadline=None, max_examples=40, database=None)
@given(
    seed=st.integers(0, 2**16),
    n=st.integers(2, 14),
    d=st.integers(1, 10),
    r=st.integers(1, 5),
    log_lam=st.floats(-3, 3),
    kind=st.sampled_from(list(KINDS)),
    backend=st.sampled_from(BACKENDS),
)
def test_lees_loss_falls_at_every_update(seed, n, d, r, log_lam, kind, backend):
    X, Y, H, V, U = make_data(seed, n, d, r=r)
    problem = lee_problem(KINDS[kind](X), Y, 10**log_lam, backend)
    state = {"V": V, "H": H, "U": U}
    loss = first = problem.loss(state)
    for _ in range(4):
        for block in problem.blocks:
            state = {**state, block: problem.update(state, block).factor}
            before, loss = loss, problem.loss(state)
            assert loss <= before + 1e-12 * first
    assert loss < first


def test_lees_model_without_labels_is_plain_nmf():
    X, Y, H, V, U = make_data(0)
    problem = lee_problem(X, np.full_like(Y, -1), 5.0)
    state = {"V": V, "H": H, "U": U}
    assert_allclose(problem.loss(state), np.sum((X - H @ V.T) ** 2), rtol=1e-12)
    assert_allclose(problem.update(state, "H").factor, H * (X @ V) / (H @ V.T @ V), rtol=1e-12)
    assert_array_equal(problem.update(state, "U").factor, 0)


# --- Liu & Wu 2010 -------------------------------------------------------------------------------


def liu_wu_parts(X, Y):
    """``A`` (c + n - m, n) of eq. 19, with labels where a row is complete and not empty."""
    tied = (Y >= 0).all(axis=1) & (Y == 1).any(axis=1)
    A = np.zeros((Y.shape[1] + np.sum(~tied), len(X)))
    A[: Y.shape[1], tied] = Y[tied].T
    A[Y.shape[1] + np.arange(np.sum(~tied)), np.flatnonzero(~tied)] = 1
    return A, Y[tied].astype(float)


def liu_wu_problem(X, Y, backend="reference", kind="dense"):
    A, Y_tied = liu_wu_parts(X, Y)
    prepared = get_backend(backend).prepare(KINDS[kind](A @ X))
    return LiuWu2010Problem(prepared, Y_tied.T @ Y_tied, squared_norm(X)), A


@backends
@kinds
@seeds
def test_liu_and_wus_loss_is_eq_20_with_the_explicit_matrix_a(backend, kind, seed):
    X, Y, _, V, _ = make_data(seed)
    problem, A = liu_wu_problem(X, Y, backend, kind)
    P = np.random.default_rng(seed).random((len(A), 4))
    assert_allclose(
        problem.loss({"V": V, "P": P}), np.linalg.norm(X - A.T @ P @ V.T) ** 2, rtol=1e-11
    )


@backends
@kinds
@seeds
def test_liu_and_wus_updates_are_those_with_the_explicit_matrix_a(backend, kind, seed):
    X, Y, _, V, _ = make_data(seed, density=1.0)
    problem, A = liu_wu_problem(X, Y, backend, kind)
    P = np.random.default_rng(seed).random((len(A), 4)) + 0.1
    state = {"V": V, "P": P}
    H = A.T @ P
    assert_allclose(problem.update(state, "V").factor, V * (X.T @ H) / (V @ H.T @ H), rtol=1e-11)
    expected = P * (A @ X @ V) / np.maximum(A @ A.T @ P @ V.T @ V, 1e-300)
    assert_allclose(problem.update(state, "P").factor, expected, rtol=1e-11, atol=1e-300)


@settings(derandomize=True, deadline=None, max_examples=40, database=None)
@given(
    seed=st.integers(0, 2**16),
    n=st.integers(2, 14),
    d=st.integers(1, 10),
    r=st.integers(1, 5),
    kind=st.sampled_from(list(KINDS)),
    backend=st.sampled_from(BACKENDS),
)
def test_liu_and_wus_loss_falls_at_every_update(seed, n, d, r, kind, backend):
    X, Y, _, V, _ = make_data(seed, n, d, r=r)
    problem, A = liu_wu_problem(X, Y, backend, kind)
    state = {"V": V, "P": np.random.default_rng(seed).random((len(A), r)) + 0.1}
    loss = first = problem.loss(state)
    for _ in range(4):
        for block in problem.blocks:
            state = {**state, block: problem.update(state, block).factor}
            before, loss = loss, problem.loss(state)
            assert loss <= before + 1e-12 * first
    assert loss < first


# --- The squared error and the map ---------------------------------------------------------------


@kinds
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_squared_error_without_the_product_is_the_squared_error(kind, dtype):
    X, _, H, V, _ = make_data(0)
    X, H, V = (M.astype(dtype) for M in (X, H, V))
    stored = KINDS[kind](X)
    expected = np.sum((X.astype(float) - H.astype(float) @ V.T.astype(float)) ** 2)
    error = squared_error(squared_norm(stored), stored, H, V)
    assert_allclose(error, expected, rtol=1e-6 if dtype == np.float32 else 1e-12)
    assert_allclose(squared_norm(stored), np.sum(X.astype(float) ** 2), rtol=1e-12)


@seeds
def test_the_map_goes_to_nonnegative_least_squares(seed):
    X, _, _, V, _ = make_data(seed, n=6, d=10)
    problem = LeastSquaresMap(X @ V, V.T @ V)
    run = minimize(problem, {"H": problem.start()}, solver="mu", max_iter=20_000, watch=False)
    H = run.state["H"]
    best = np.stack([nnls(V, x)[0] for x in X])
    constant = np.sum(X**2)
    assert_allclose(
        problem.loss({"H": H}) + constant, np.sum((X - best @ V.T) ** 2), rtol=1e-5, atol=1e-8
    )


def test_the_map_starts_from_each_rows_best_flat_code():
    X, _, _, V, _ = make_data(0)
    start = LeastSquaresMap(X @ V, V.T @ V).start()
    flat = V.sum(axis=1)
    assert_allclose(start, np.outer(X @ flat / (flat @ flat), np.ones(4)), rtol=1e-12)


# --- Through the estimators ----------------------------------------------------------------------


@kinds
@pytest.mark.parametrize("solver", ["mu", "mue"])
@pytest.mark.parametrize("estimator", [SemiSupervisedNMF, ConstrainedNMF])
@pytest.mark.parametrize("labels", ["one a sample", "partly known multilabel", "none"])
def test_estimators_descend_with_any_kind_of_labels(kind, solver, estimator, labels):
    X, Y, *_ = make_data(0, n=30, d=12)
    X[:, 0] += 0.1
    y = {"one a sample": one_label(Y), "partly known multilabel": Y, "none": None}[labels]
    parts = estimator(4, solver=solver, max_iter=30, tol=0, random_state=0)
    parts.fit(KINDS[kind](X), y)
    assert (np.diff(parts.loss_curve_) <= 1e-12 * parts.loss_curve_[0]).all()
    assert parts.loss_curve_[-1] < 0.9 * parts.loss_curve_[0]
    assert parts.transform(KINDS[kind](X)).shape == (30, 4)


@kinds
def test_constrained_codes_start_from_class_means_and_a_is_that_of_eq_19(kind):
    X, Y, H, V, _ = make_data(1)
    parts = ConstrainedNMF(4, init=(H, V), solver="mu", max_iter=1, tol=0).fit(KINDS[kind](X), Y)
    A, Y_tied = liu_wu_parts(X, Y)
    tied = (A[:3].sum(axis=0)) > 0
    means = Y_tied.T @ H[tied] / np.maximum(Y_tied.sum(axis=0), 1)[:, None]
    P = np.concatenate([means, H[~tied]])
    expected = np.linalg.norm(X - A.T @ P @ V.T) ** 2
    assert_allclose(parts.loss_curve_[0], expected, rtol=1e-10)


@pytest.mark.parametrize("estimator", [SemiSupervisedNMF, ConstrainedNMF])
def test_the_units_of_x_do_not_matter(estimator):
    """Lee's labels are scaled to weigh like the labeled samples, so lam has no units."""
    X, Y, *_ = make_data(0, n=30, d=12)
    y = one_label(Y)
    one, other = (estimator(4, max_iter=20, random_state=0).fit(c * X, y) for c in (1, 1024))
    assert_allclose(one.components_, other.components_, rtol=1e-8)
    assert_allclose(1024**2 * one.loss_curve_, other.loss_curve_, rtol=1e-8)


def test_sparse_and_dense_data_give_the_same_parts():
    X, Y, *_ = make_data(0, n=30, d=12)
    for estimator in (SemiSupervisedNMF, ConstrainedNMF):
        dense, sparse = (
            estimator(4, max_iter=20, random_state=0).fit(store(X), Y).components_
            for store in (np.asarray, sp.csr_array)
        )
        assert_allclose(dense, sparse, rtol=1e-8)


@pytest.mark.parametrize("size", [1.0, 1e-20, 1e-38, 1e-43])
def test_factors_that_all_but_vanish_stay_finite(size):
    """A row of V that fades (a word only class sums have) must not end in 0 x infinity."""
    rng = np.random.default_rng(0)
    X = rng.random((9, 6)).astype(np.float32)
    P, V = rng.random((9, 3)).astype(np.float32), rng.random((6, 3)).astype(np.float32)
    V[2] *= np.float32(size)
    V[2, 1] = 0
    problem = LiuWu2010Problem(X, np.eye(2, dtype=np.float32) * 4, squared_norm(X))
    for block in ("V", "P"):
        assert np.isfinite(problem.update({"V": V, "P": P}, block).factor).all()
