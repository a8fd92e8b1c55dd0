"""NMF-alpha against the paper, scikit-learn and its own theory (eqs. 2-4, 14-16)."""

import json
import os
import subprocess
import sys
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.decomposition import NMF

from marginparts import Stop, nmf_alpha
from marginparts.backends import get_backend
from marginparts.losses.nmf_alpha import NMFAlphaProblem
from marginparts.solve.map import gram_root
from oracle import BACKENDS, KINDS, eq_14, make_case, paper_updates
from problems import problem_of

backends = pytest.mark.parametrize("backend", BACKENDS)
kinds = pytest.mark.parametrize("kind", KINDS)
seeds = pytest.mark.parametrize("seed", range(3))


def run(case, X=None, *, lam=0.7, **options):
    """Plain updates from the case's own start."""
    options = {"solver": "mu", "max_iter": 5, "tol": 0, **options}
    X = case.X if X is None else X
    return nmf_alpha(X, case.V.shape[1], S=case.S, lam=lam, init=(case.H, case.V), **options)


# --- The updates are the paper's -----------------------------------------------------------------


@backends
@kinds
@seeds
@pytest.mark.parametrize("lam", [1e-3, 1.0, 1e3])
def test_mu_is_eqs_15_and_16_index_by_index(backend, kind, seed, lam):
    case = make_case(seed, density=0.7)
    H, V = paper_updates(case, lam, n_iter=3)
    result = run(case, KINDS[kind](case.X), lam=lam, max_iter=3, backend=backend)
    assert_allclose(result.V, V, rtol=1e-10)
    assert_allclose(result.H, H, rtol=1e-10)


@backends
@kinds
@seeds
def test_lam_zero_is_scikit_learns_nmf_on_the_transpose(backend, kind, seed):
    case = make_case(seed, n=20, d=15, density=1.0)
    X = case.X + 0.1  # no zeros: scikit-learn clips where the fit is small
    theirs = NMF(
        3, solver="mu", beta_loss="kullback-leibler", init="custom", tol=0, max_iter=25
    )  # fmt: skip
    V = theirs.fit_transform(X.T, W=case.V.copy(), H=case.H.T.copy())  # its W is our V
    ours = run(case, KINDS[kind](X), lam=0, max_iter=25, backend=backend)
    assert_allclose(ours.V, V, rtol=1e-10)
    assert_allclose(ours.H, theirs.components_.T, rtol=1e-10)


@backends
@seeds
def test_v_update_is_plain_nmf_with_margin_components_as_further_samples(backend, seed):
    case, lam = make_case(seed), 2.5
    supervised = problem_of(case.X, case.S, lam, backend)
    rows = np.vstack([case.X, lam * case.S.T @ case.X])
    codes = np.vstack([case.H, lam * case.S.T @ case.H])
    plain = NMFAlphaProblem(get_backend(backend), X=get_backend(backend).prepare(rows))
    assert_allclose(
        supervised.update({"V": case.V, "H": case.H}, "V").factor,
        plain.update({"V": case.V, "H": codes}, "V").factor,
        rtol=1e-12,
    )


@backends
@seeds
def test_only_the_product_of_lam_and_s_matters(backend, seed):
    case = make_case(seed)
    one = run(case, lam=2.0, backend=backend)
    other = run(case._replace(S=case.S * 8), lam=0.25, backend=backend)
    assert_allclose(one.V, other.V, rtol=1e-12)
    assert_allclose(one.losses, other.losses, rtol=1e-12)


@backends
@kinds
@pytest.mark.parametrize("nothing", ["no S", "lam = 0", "S = 0", "S without columns"])
def test_without_margin_components_it_is_plain_nmf(backend, kind, nothing):
    case = make_case(0)
    X = KINDS[kind](case.X)
    options = {"init": (case.H, case.V), "solver": "mu", "max_iter": 4, "tol": 0}
    plain = nmf_alpha(X, 3, backend=backend, **options)
    S = {"no S": None, "S = 0": 0 * case.S, "S without columns": case.S[:, :0]}.get(nothing, case.S)
    lam = 0.0 if nothing == "lam = 0" else 5.0
    result = nmf_alpha(X, 3, S=S, lam=lam, backend=backend, **options)
    assert_allclose(result.V, plain.V, rtol=1e-13)
    assert_allclose(result.H, plain.H, rtol=1e-13)


def test_s_may_be_dense_or_sparse():
    case = make_case(1)
    dense, sparse = run(case), run(case._replace(S=sp.coo_array(case.S)))
    assert_array_equal(dense.V, sparse.V)


# --- The loss ------------------------------------------------------------------------------------


@backends
@kinds
@seeds
def test_losses_are_eq_14(backend, kind, seed):
    case, lam = make_case(seed, density=0.6), 0.7
    losses = run(case, KINDS[kind](case.X), lam=lam, max_iter=4, backend=backend).losses
    naive = []
    for n_iter in range(5):
        H, V = paper_updates(case, lam, n_iter)
        naive.append(eq_14(case.X.T, V, H.T, case.S, lam))
    assert_allclose(losses, naive, rtol=1e-10)


@settings(derandomize=True, deadline=None, max_examples=60, database=None)
@given(
    seed=st.integers(0, 2**16),
    n=st.integers(1, 12),
    d=st.integers(1, 12),
    r=st.integers(1, 5),
    density=st.sampled_from([0.2, 0.6, 1.0]),
    log_lam=st.floats(-3, 3),
    kind=st.sampled_from(list(KINDS)),
    backend=st.sampled_from(BACKENDS),
)
def test_the_loss_falls_at_every_half_step(seed, n, d, r, density, log_lam, kind, backend):
    case = make_case(seed, n, d, r, columns=2, density=density)
    problem = problem_of(KINDS[kind](case.X), case.S, 10**log_lam, backend)
    # rounding of the sums, not of their difference
    slack = 1e-13 * (case.X.sum() + problem.lam * (case.S.T @ case.X).sum())
    state = {"V": case.V, "H": case.H}
    loss = first = problem.loss(state)
    for _ in range(4):
        for block in ("V", "H"):
            state = {**state, block: problem.update(state, block).factor}
            before, loss = loss, problem.loss(state)
            assert loss <= before + slack
            assert loss >= -slack  # a divergence
    assert loss < first


def test_updating_both_factors_from_the_old_values_is_not_a_descent():
    """Why V comes first and H sees the new V; also shows that the test above can fail."""
    rises = 0
    for seed in range(10):
        case = make_case(seed)
        problem = problem_of(case.X, case.S, 1.0)
        state = {"V": case.V / 3, "H": case.H / 3}  # each update alone makes up for the scale
        both = {block: problem.update(state, block).factor for block in ("V", "H")}
        rises += problem.loss(both) > problem.loss(state)
    assert rises > 0


@kinds
@seeds
@pytest.mark.parametrize("lam", [0.0, 1.0, 100.0])
def test_losses_of_mue_never_rise_and_end_below_those_of_mu(kind, seed, lam):
    case = make_case(seed, n=40, d=30, r=5, density=0.5)
    options = {"lam": lam, "max_iter": 100}
    plain = run(case, KINDS[kind](case.X), **options)
    fast = run(case, KINDS[kind](case.X), solver="mue", **options)
    losses = np.array(fast.losses)
    assert (np.diff(losses) <= 1e-13 * losses[:-1]).all()
    assert losses[-1] < plain.losses[-1]


@seeds
@pytest.mark.parametrize("lam", [0.0, 1.0, 100.0])
def test_losses_of_cd_never_rise(seed, lam):
    case = make_case(seed, n=40, d=30, r=5, density=0.5)
    losses = run(case, sp.csr_array(case.X), solver="cd", lam=lam, max_iter=100).losses
    assert (np.diff(losses) <= 0).all()
    assert len(losses) > 20


@kinds
@pytest.mark.parametrize(
    ("backend", "lam", "solver"),
    [("numba", 0.0, "cd"), ("numba", 1.0, "mue"), ("reference", 0.0, "mue")],
)
def test_auto_says_what_it_took(kind, backend, lam, solver):
    case = make_case(0, n=30, d=20)
    options = {"X": KINDS[kind](case.X), "lam": lam, "max_iter": 12, "backend": backend}
    result = run(case, solver="auto", **options)
    assert result.solver == solver
    assert_array_equal(result.V, run(case, solver=solver, **options).V)


def test_an_exact_factorization_is_a_fixed_point_of_loss_zero():
    case = make_case(0)
    X = case.H @ case.V.T
    result = run(case._replace(X=X), lam=3.0)
    assert_allclose(result.V, case.V, rtol=1e-12)
    assert_allclose(result.H, case.H, rtol=1e-12)
    assert_allclose(result.losses, 0, atol=1e-12 * X.sum())


# --- Symmetries ----------------------------------------------------------------------------------


@backends
@kinds
@seeds
def test_permuting_samples_features_or_components_permutes_the_result(backend, kind, seed):
    case, store = make_case(seed), KINDS[kind]
    rng = np.random.default_rng(seed)
    i, j, k = (rng.permutation(m) for m in (*case.X.shape, case.V.shape[1]))
    moved = case._replace(
        X=case.X[i][:, j], S=case.S[i][:, ::-1], H=case.H[i][:, k], V=case.V[j][:, k]
    )
    result = run(case, store(case.X), backend=backend)
    permuted = run(moved, store(moved.X), backend=backend)
    assert_allclose(permuted.V, result.V[j][:, k], rtol=1e-11)
    assert_allclose(permuted.H, result.H[i][:, k], rtol=1e-11)
    assert_allclose(permuted.losses, result.losses, rtol=1e-11)


@backends
@kinds
@pytest.mark.parametrize("power", [-40, -3, 5, 60])  # the outer ones are rescaled inside
@pytest.mark.parametrize("solver", ["mu", "mue", "cd"])
def test_scaling_x_by_a_power_of_two_scales_v_and_the_losses_exactly(backend, kind, power, solver):
    case, c = make_case(0), 2.0**power
    options = {"backend": backend, "solver": solver}
    result = run(case, KINDS[kind](case.X), **options)
    scaled = run(case._replace(V=c * case.V), KINDS[kind](c * case.X), **options)
    assert_array_equal(scaled.V, c * result.V)
    assert_array_equal(scaled.H, result.H)
    assert_array_equal(scaled.losses, c * np.array(result.losses))


# --- How a run goes ------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["mu", "mue"])
def test_tol_zero_runs_all_iterations_even_when_nothing_moves(solver):
    case = make_case(0)
    exact = case._replace(X=case.H @ case.V.T)
    result = run(exact, solver=solver, max_iter=37, tol=0)
    assert result.n_iter == 37
    assert result.stop is Stop.MAX_ITER
    if solver == "mu":
        assert len(result.losses) == 38  # losses[0] is the start


def test_a_tolerance_stops_the_run_and_says_so():
    result = run(make_case(0), max_iter=10_000, tol=1e-3)
    assert result.stop is Stop.CONVERGED
    assert 10 <= result.n_iter < 10_000
    assert str(result.stop).endswith(".")
    before, now = result.losses[-11], result.losses[-1]
    assert before - now <= 1e-3 * before
    assert result.losses[-12] - result.losses[-2] > 1e-3 * result.losses[-12]


def test_a_callback_sees_the_losses_and_stops_the_run():
    seen = []

    def callback(progress):
        seen.append(progress)
        return progress.iteration == 4

    result = run(make_case(0), max_iter=50, callback=callback)
    assert result.stop is Stop.CALLBACK
    assert result.n_iter == 4
    assert [p.iteration for p in seen] == [1, 2, 3, 4]
    assert [p.loss for p in seen] == result.losses[1:]
    assert {p.max_iter for p in seen} == {50}


def test_inputs_are_not_written_to():
    case = make_case(0)
    copies = [A.copy() for A in case]
    for kind, solver in product(KINDS.values(), ("mu", "mue", "cd")):
        run(case, kind(case.X), solver=solver)
    for A, copy in zip(case, copies, strict=True):
        assert_array_equal(A, copy)


def test_same_seed_same_result():
    X = sp.csr_array(make_case(0, n=30, d=20).X)
    one, two, other = (nmf_alpha(X, 3, random_state=s, max_iter=5).V for s in (1, 1, 2))
    assert_array_equal(one, two)
    assert not np.array_equal(one, other)


# --- Types, scales, threads ----------------------------------------------------------------------


@backends
@kinds
@pytest.mark.parametrize("solver", ["mu", "mue", "cd"])
def test_float32_in_float32_out(backend, kind, solver):
    case = make_case(0)
    options = {"backend": backend, "solver": solver, "max_iter": 10}
    double = run(case, KINDS[kind](case.X), **options)
    single = run(case, KINDS[kind](case.X.astype(np.float32)), **options)
    assert single.V.dtype == single.H.dtype == np.float32
    assert double.V.dtype == double.H.dtype == np.float64
    assert_allclose(single.V, double.V, rtol=1e-3, atol=1e-5)
    assert_allclose(single.losses, double.losses, rtol=1e-5)


@backends
@kinds
@pytest.mark.parametrize("scale", [1e-30, 1e30])
@pytest.mark.parametrize("init", ["random", "nndsvda"])
def test_extreme_scales_survive_in_float32(backend, kind, scale, init):
    case = make_case(0, n=20, d=15)
    options = {"S": case.S, "init": init, "random_state": 0, "max_iter": 30, "backend": backend}
    X = case.X.astype(np.float32)
    result = nmf_alpha(KINDS[kind](X), 3, **options)
    scaled = nmf_alpha(KINDS[kind](X * np.float32(scale)), 3, **options)
    assert_allclose(np.array(scaled.losses) / scale, result.losses, rtol=1e-4)
    fitted = scaled.H.astype(float) @ scaled.V.T.astype(float) / scale
    assert_allclose(fitted, result.H @ result.V.T, rtol=0.01, atol=0.01)


_ON_THREADS = """
import hashlib, json
import numpy as np, scipy.sparse as sp
from marginparts import NMFAlpha, class_start, margin_directions, nmf_alpha

def digest(*arrays):
    return hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)).hexdigest()

rng = np.random.default_rng(0)
X = sp.random_array((3000, 400), density=0.03, random_state=rng, format="csr")
y = np.where(np.arange(3000) < 1500, rng.integers(0, 2, 3000), -1)
S = margin_directions(X, y, random_state=0)
out = {"margin_directions": digest(S.data, S.indices)}
for dtype in ("float32", "float64"):
    for solver in ("mue", "cd"):
        result = nmf_alpha(X.astype(dtype), 8, S=S, random_state=0, max_iter=20, solver=solver)
        out[solver + ", " + dtype] = digest(result.V, result.H, np.array(result.losses))
parts = NMFAlpha(8, init="random", max_iter=5, random_state=0).fit(X, y)
out["transform"] = digest(parts.transform(X))
out["class_start"] = digest(*class_start(X, y, 8, random_state=0))
print(json.dumps(out))
"""


@pytest.fixture(scope="module")
def digests():
    """What one and two threads make of the same sparse data, every thread pool included."""

    def on(threads):
        pools = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        env = {**os.environ, **dict.fromkeys(pools, str(threads))}
        done = subprocess.run(
            [sys.executable, "-c", _ON_THREADS], env=env, capture_output=True, text=True, check=True
        )
        return json.loads(done.stdout)

    return on(1), on(2)


@pytest.mark.parametrize(
    "what",
    [
        "margin_directions",
        "mue, float32",
        "mue, float64",
        "cd, float32",
        "cd, float64",
        "transform",
        "class_start",
    ],
)
def test_sparse_results_are_bitwise_equal_on_one_and_two_threads(digests, what):
    one, two = digests
    assert one[what] == two[what]


# --- Geometry (eq. 5) ----------------------------------------------------------------------------


@seeds
def test_z_keeps_inner_products(seed):
    case = make_case(seed)
    Z = case.H @ gram_root(case.V)
    X = case.H @ case.V.T
    assert_allclose(Z @ Z.T, X @ X.T, rtol=1e-10)


def test_the_root_of_dependent_parts_is_finite_and_symmetric():
    V = np.repeat(np.random.default_rng(0).random((50, 2)).astype(np.float32), 3, axis=1)
    root = gram_root(V)
    assert root.dtype == np.float64
    assert_allclose(root, root.T, atol=1e-12)
    assert_allclose(root @ root, V.astype(float).T @ V.astype(float), rtol=1e-6)
