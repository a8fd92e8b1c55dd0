"""Blocks of rows: however the rows are cut, the factorization is the same."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from marginparts import nmf_alpha
from marginparts.backends import get_backend
from marginparts.backends.blocked import BlockedBackend

N, D, R = 40, 23, 4


def problem(seed=0, dense=False):
    rng = np.random.default_rng(seed)
    X = rng.poisson(0.6, (N, D)) * rng.random((N, D))
    X[[0, 7, 8, 9, N - 1]] = 0  # empty rows, at both ends as well
    X[:, 3] = 0
    S = np.zeros((N, 4))
    S[1:7] = rng.random((6, 4))  # few labeled rows: most blocks have none
    return X if dense else sp.csr_array(X), sp.csr_array(S)


def fitted(X, backend, S=None, solver="mu", r=R, **options):
    options = {"random_state": 1, "max_iter": 15, "tol": 0, **options}
    return nmf_alpha(X, r, S=S, lam=2.0, solver=solver, backend=backend, **options)


def assert_equal_runs(result, expected, rtol=1e-10):
    assert_allclose(result.V, expected.V, rtol=rtol, atol=1e-13)
    assert_allclose(result.H, expected.H, rtol=rtol, atol=1e-13)
    assert_allclose(result.losses, expected.losses, rtol=1e-11)
    residuals = [[check.residual for check in run.history[1:]] for run in (result, expected)]
    assert_allclose(*residuals, rtol=1e-8)
    assert [check.nonzeros for check in result.history] == [
        check.nonzeros for check in expected.history
    ]


cuts = st.sets(st.integers(1, N - 1), max_size=8).map(lambda inner: [0, *sorted(inner), N])


@settings(max_examples=25, deadline=None)
@given(
    bounds=cuts,
    seed=st.integers(0, 5),
    labeled=st.booleans(),
    solver=st.sampled_from(["mu", "mue"]),
)
def test_any_cut_of_the_rows_gives_the_same_run(bounds, seed, labeled, solver):
    X, S = problem(seed)
    S = S if labeled else None
    blocked = BlockedBackend(get_backend("numba"), cut=bounds)
    assert_equal_runs(fitted(X, blocked, S, solver), fitted(X, "numba", S, solver))


@pytest.mark.parametrize("inner", ["numba", "reference"])
@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("cut", [N, 1, 7, [0, 0, 7, 10, 10, N]])
def test_every_inner_backend_can_be_cut(inner, dense, cut):
    X, S = problem(dense=dense)
    blocked = BlockedBackend(get_backend(inner), cut=cut)
    assert_equal_runs(fitted(X, blocked, S), fitted(X, inner, S))


def test_single_precision_is_kept():
    X, S = problem()
    X, S = X.astype(np.float32), S.astype(np.float32)
    result = fitted(X, BlockedBackend(get_backend("numba"), cut=9), S)
    assert result.V.dtype == result.H.dtype == np.float32
    assert_allclose(result.V, fitted(X, "numba", S).V, rtol=1e-4, atol=1e-6)


@pytest.mark.extra
def test_torch_tensors_can_be_cut():
    torch_gpu = pytest.importorskip("marginparts.backends.gpu.backend")
    X, S = problem()
    blocked = BlockedBackend(torch_gpu.TorchBackend("cpu"), cut=15)
    assert_equal_runs(
        fitted(X, blocked, S, max_iter=2), fitted(X, "reference", S, max_iter=2), rtol=1e-9
    )


def test_the_kernels_of_blocks_add_up():
    X, _ = problem()
    rng = np.random.default_rng(0)
    H, V = rng.random((N, R)), rng.random((D, R))
    oracle = get_backend("reference")
    blocked = BlockedBackend(oracle, cut=7)
    P = blocked.prepare(X)
    cut_H = blocked.factor(H, rows_of=P)
    assert_allclose(blocked.divergence(P, cut_H, V), oracle.divergence(X, H, V), rtol=1e-13)
    assert_allclose(blocked.ratio_matmul(P.T, V, cut_H), oracle.ratio_matmul(X.T, V, H), rtol=1e-12)
    rows = blocked.release(blocked.ratio_matmul(P, cut_H, V), R)
    assert_array_equal(rows, oracle.ratio_matmul(X, H, V))
    assert_allclose(blocked.column_sums(cut_H), H.sum(axis=0), rtol=1e-13)
    assert P.shape == X.shape
    assert P.T.shape == X.shape[::-1]
    assert [s.stop - s.start for s in P.spans] == [b - a for a, b in pairwise(P.bounds)]


def test_sweeps_over_blocks_become_extrapolated_updates():
    X, _ = problem()
    assert fitted(X, BlockedBackend(get_backend("numba")), solver="cd").solver == "mue"
