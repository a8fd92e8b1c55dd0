"""The two kernels of every backend against their formulas, on odd shapes and awkward data."""

import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from marginparts.backends import Also, Plus, get_backend
from marginparts.backends.base import column_sums, inverse_or_zero, safe_ratio
from marginparts.backends.blocked import BlockedBackend
from marginparts.backends.conformance import check_backend
from marginparts.backends.cpu.storage import row_tasks
from marginparts.backends.reference import ReferenceBackend
from oracle import BACKENDS, KINDS, eq_2, make_case

backends = pytest.mark.parametrize("backend", BACKENDS)
kinds = pytest.mark.parametrize("kind", [*KINDS, "blas"])
#: The last is larger than one dense block of the numba backend, in both orientations.
shapes = pytest.mark.parametrize("shape", [(1, 1), (1, 41), (41, 1), (41, 401), (1400, 401)])
dtypes = pytest.mark.parametrize(("dtype", "rtol"), [(np.float64, 1e-12), (np.float32, 2e-4)])


def data(shape, r=5, density=0.6, seed=0):
    """X (n, d) with zeros, and positive factors A (n, r), B (d, r)."""
    rng = np.random.default_rng(seed)
    X = rng.random(shape) * (rng.random(shape) < density)
    X[0, 0] = 0.5
    return X, rng.random((shape[0], r)) + 0.1, rng.random((shape[1], r)) + 0.1


def prepared(backend, kind, X):
    """A backend and its form of X; "blas" is what the numba backend does with large dense data."""
    kernels = get_backend(backend)
    if kind == "blas":
        return kernels, np.ascontiguousarray(X)
    return kernels, kernels.prepare(KINDS[kind](X))


@backends
def test_every_backend_and_its_blocks_of_rows_conform(backend):
    check_backend(get_backend(backend))
    check_backend(BlockedBackend(get_backend(backend), cut=4))


def test_a_wrong_kernel_does_not_conform():
    class Floored(ReferenceBackend):
        name = "floored"

        def ratio_matmul(self, X, A, B):
            return super().ratio_matmul(X, A, B + 1e-6)

    with pytest.raises(AssertionError, match=r"'floored', dense float64 .*: ratio_matmul of X"):
        check_backend(Floored())


@backends
@kinds
@shapes
@dtypes
def test_ratio_matmul_is_its_formula_on_both_sides(backend, kind, shape, dtype, rtol):
    X, A, B = (M.astype(dtype) for M in data(shape))
    kernels, P = prepared(backend, kind, X)
    ratio = X.astype(np.float64) / (A.astype(np.float64) @ B.T.astype(np.float64))
    rows, columns = kernels.ratio_matmul(P, A, B), kernels.ratio_matmul(P.T, B, A)
    assert rows.dtype == columns.dtype == dtype
    assert_allclose(rows, ratio @ B, rtol=rtol, atol=1e-30)
    assert_allclose(columns, ratio.T @ A, rtol=rtol, atol=1e-30)


@backends
@kinds
@shapes
@dtypes
def test_divergence_is_eq_2(backend, kind, shape, dtype, rtol):
    X, A, B = (M.astype(dtype) for M in data(shape))
    kernels, P = prepared(backend, kind, X)
    x, fitted = X.astype(np.float64), A.astype(np.float64) @ B.T.astype(np.float64)
    logs = np.where(x > 0, x * np.log(np.where(x > 0, x, 1) / fitted), 0)
    assert_allclose(kernels.divergence(P, A, B), np.sum(logs - x + fitted), rtol=rtol)
    assert_allclose(kernels.divergence(P.T, B, A), np.sum(logs - x + fitted), rtol=rtol)


@settings(derandomize=True, deadline=None, max_examples=40, database=None)
@given(
    seed=st.integers(0, 2**16),
    n=st.integers(1, 8),
    d=st.integers(1, 8),
    r=st.integers(1, 4),
    kind=st.sampled_from(list(KINDS)),
    backend=st.sampled_from(BACKENDS),
)
def test_divergence_is_positive_and_zero_for_an_exact_fit(seed, n, d, r, kind, backend):
    case = make_case(seed, n, d, r)
    kernels, P = prepared(backend, kind, case.X)
    value = kernels.divergence(P, case.H, case.V)
    assert value > 0
    assert_allclose(value, eq_2(case.X, case.H @ case.V.T), rtol=1e-10, atol=1e-12)
    exact = case.H @ case.V.T
    kernels, P = prepared(backend, kind, exact)
    assert_allclose(kernels.divergence(P, case.H, case.V), 0, atol=1e-13 * exact.sum())


@backends
@kinds
@pytest.mark.parametrize("with_also", [False, True])
@pytest.mark.parametrize("with_plus", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@dtypes
def test_half_step_is_its_formula(backend, kind, with_also, with_plus, weighted, dtype, rtol):
    X, A, B = data((13, 11))
    rng = np.random.default_rng(1)
    X2, B2 = rng.random((13, 4)), rng.random((4, 5)) + 0.1
    S, T = rng.random((13, 3)) * (rng.random((13, 3)) < 0.5), rng.random((3, 5))
    den, weight = rng.random(5) + 0.1, 1 + rng.random(13)

    numerator = (X / (A @ B.T)) @ B
    if with_also:
        numerator += 0.3 * (X2 / (A @ B2.T)) @ B2
    if with_plus:
        numerator += 0.7 * S @ T
    expected = A * numerator / ((weight[:, None] if weighted else 1) * den)

    X, A, B, X2, B2, S, T = (M.astype(dtype) for M in (X, A, B, X2, B2, S, T))
    kernels, P = prepared(backend, kind, X)
    also = Also(kernels.prepare(X2, like=P), B2, 0.3) if with_also else None
    plus = Plus(sp.csr_array(S), T, 0.7) if with_plus else None
    before = A.copy()
    options = {"weight": weight if weighted else None, "also": also, "plus": plus}
    step = kernels.half_step(P, A, B, den, **options)
    assert step.violation is None  # nobody asked
    assert step.factor.dtype == dtype
    assert_allclose(step.factor, expected, rtol=rtol)
    assert_array_equal(A, before)

    denominator = (weight[:, None] if weighted else 1) * den
    mass = np.sum(before * numerator, axis=1, keepdims=True)
    slope = (denominator - numerator) / np.maximum(denominator, numerator)
    gap = np.abs(np.minimum(before * denominator, mass * slope)).max(axis=1)
    told = kernels.half_step(P, A, B, den, **options, gauge=True, out=A)
    assert_allclose(told.factor, step.factor, rtol=1e-6)  # also when written over A
    assert_allclose(told.violation, gap.sum() / mass.sum(), rtol=rtol)


@backends
def test_any_rank_will_do(backend):
    X, A, B = data((5, 4), r=900)  # more lines than a compiled tuple may have entries
    kernels, P = prepared(backend, "csr", X)
    assert_allclose(kernels.ratio_matmul(P, A, B), (X / (A @ B.T)) @ B, rtol=1e-11)


@pytest.mark.skipif("numba" not in BACKENDS, reason="numba is not under test")
@pytest.mark.parametrize("gauge", [False, True])
@dtypes
def test_a_large_factor_is_gathered_from_in_pieces(monkeypatch, dtype, rtol, gauge):
    from marginparts.backends.cpu import storage

    X, A, B = (M.astype(dtype) for M in data((300, 40), r=7))
    A[::5, 2] = 0
    kernels = get_backend("numba")
    also = Also(kernels.coefficients(X[:40, :6].copy()), B[:6].copy(), 0.3)

    def step():
        P = kernels.prepare(X)
        den = A.sum(axis=0)
        return P, kernels.half_step(P.T, B, A, den, also=also, gauge=gauge)

    whole, expected = step()
    assert not whole.T.pieces(kernels.factor(A))
    monkeypatch.setattr(storage, "_LARGE_BYTES", 0)
    monkeypatch.setattr(storage, "_PIECE_BYTES", 5000)
    pieced, found = step()
    assert len(pieced.T.pieces(kernels.factor(A))) > 3
    assert_allclose(found.factor, expected.factor, rtol=rtol)
    if gauge:
        assert_allclose(found.violation, expected.violation, rtol=rtol)


@backends
@kinds
def test_entries_that_cannot_be_explained_are_skipped_by_updates_and_infinite_in_the_loss(
    backend, kind
):
    """Where a.b = 0 an entry of X counts for nothing in the update; the loss says what it is."""
    X, A, B = data((6, 5), density=1.0)
    B[2] = 0
    kernels, P = prepared(backend, kind, X)
    keep = [0, 1, 3, 4]
    _, without = prepared(backend, kind, X[:, keep])
    assert_allclose(
        kernels.ratio_matmul(P, A, B), kernels.ratio_matmul(without, A, B[keep]), rtol=1e-13
    )
    assert_array_equal(kernels.ratio_matmul(P.T, B, A)[2], 0)
    assert kernels.divergence(P, A, B) == np.inf
    assert kernels.divergence(P.T, B, A) == np.inf
    X[:, 2] = 0  # a word that does not occur needs no fit
    _, unused = prepared(backend, kind, X)
    assert_allclose(
        kernels.divergence(unused, A, B), kernels.divergence(without, A, B[keep]), rtol=1e-13
    )


@backends
@kinds
def test_empty_rows_and_columns_give_zeros(backend, kind):
    X, A, B = data((6, 5), density=1.0)
    X[1], X[:, 3] = 0, 0
    kernels, P = prepared(backend, kind, X)
    assert_array_equal(kernels.ratio_matmul(P, A, B)[1], 0)
    assert_array_equal(kernels.ratio_matmul(P.T, B, A)[3], 0)


@backends
def test_a_prepared_matrix_multiplies_and_transposes(backend):
    X, _, B = data((7, 9))
    for kind in KINDS:
        _, P = prepared(backend, kind, X)
        assert P.shape == (7, 9)
        assert P.T.shape == (9, 7)
        assert_allclose(P @ B, X @ B, rtol=1e-13)
        assert_allclose(P.T @ X, X.T @ X, rtol=1e-13)
        assert_allclose(P.T.T @ B, X @ B, rtol=1e-13)


@pytest.fixture
def large_is_dense(monkeypatch):
    """Let the numba backend treat small dense matrices as it does large ones."""
    from marginparts.backends.cpu import backend as numba_cpu

    monkeypatch.setattr(numba_cpu, "_SMALL_DENSE", 0)


@pytest.mark.skipif("numba" not in BACKENDS, reason="numba is not under test")
def test_numba_keeps_a_dense_matrix_only_if_it_is_large_and_full(large_is_dense, monkeypatch):
    from marginparts.backends.cpu import backend as numba_cpu
    from marginparts.backends.cpu.storage import SparseMatrix

    kernels = get_backend("numba")
    X, _, _ = data((20, 20), density=1.0)
    full, empty = kernels.prepare(X), kernels.prepare(X * (np.arange(20) < 3))
    assert full is X
    assert isinstance(empty, SparseMatrix)
    # matrices that meet in one half-step are of one kind
    assert isinstance(kernels.prepare(X, like=empty), SparseMatrix)
    assert isinstance(kernels.prepare(sp.csr_array(X), like=full), np.ndarray)
    monkeypatch.setattr(numba_cpu, "_SMALL_DENSE", X.size)
    assert isinstance(kernels.prepare(X), SparseMatrix)


KERNELS = ("ratio_matmul", "half_step", "sweep", "log_terms")

_ONE_PASS = """
import hashlib
import numpy as np, scipy.sparse as sp
from marginparts.backends import get_backend
rng = np.random.default_rng(0)
kernels = get_backend("numba")
X = sp.random_array((500, 80), density=0.2, random_state=rng, dtype="f4", format="csr")
X = kernels.prepare(X)
A, B = (rng.random((m, 8), dtype=np.float32) + np.float32(0.1) for m in (500, 80))
sums = kernels.column_sums(B)
for result in (
    kernels.ratio_matmul(X, A, B),
    kernels.half_step(X, A, B, sums).factor,
    kernels.sweep(X, A, B, sums).factor,
    np.float64(kernels.divergence(X, A, B)),
):
    print(hashlib.sha256(result.tobytes()).hexdigest())
"""


@pytest.mark.wide  # compiles every kernel once more
@pytest.mark.skipif("numba" not in BACKENDS, reason="numba is not under test")
def test_numba_gives_the_same_bits_when_it_compiles_and_when_it_loads_its_cache(tmp_path):
    """Or else the first run on a machine could not be repeated by the second."""
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    compiled, loaded = (
        subprocess.run(
            [sys.executable, "-c", _ONE_PASS], env=env, capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    )
    assert {len(list(tmp_path.rglob(f"*.{k}-*.nbc"))) for k in KERNELS} == {1}
    assert compiled == loaded


@pytest.mark.parametrize("seed", range(3))
def test_every_row_belongs_to_one_task_and_tasks_are_even(seed):
    rng = np.random.default_rng(seed)
    counts = rng.poisson(20, size=5000)
    counts[17] = 30_000  # a frequent word
    indptr = np.concatenate([[0], np.cumsum(counts)])
    tasks = row_tasks(indptr)
    assert tasks[0] == 0
    assert tasks[-1] == 5000
    assert (np.diff(tasks) > 0).all()
    work = np.diff(indptr[tasks])
    assert len(work) > 64  # there is something to share out
    assert np.sort(work)[-2] < 3 * np.median(work)  # all but the giant row's own


@pytest.mark.parametrize("counts", [[0], [5], [0, 0, 0], [0, 7, 0]])
def test_tasks_of_tiny_matrices_cover_all_rows(counts):
    tasks = row_tasks(np.concatenate([[0], np.cumsum(counts)]))
    assert_array_equal(np.unique(np.clip(tasks, 0, len(counts))), tasks)
    assert (tasks[0], tasks[-1]) == (0, len(counts))


def test_an_unknown_backend_is_refused_with_the_choices():
    with pytest.raises(ValueError, match="'numba'"):
        get_backend("cupy")


def test_helpers_divide_zero_by_zero_to_zero():
    assert_array_equal(inverse_or_zero(np.array([0.0, 4.0]), np.float64), [0, 0.25])
    assert_array_equal(safe_ratio(np.array([[0.0, 3.0]]), np.array([[0.0, 2.0]])), [[0, 1.5]])


def test_column_sums_are_in_float64():
    A = np.full((100_000, 2), 0.1, np.float32)
    assert column_sums(A).dtype == np.float64
    assert_allclose(column_sums(A), 100_000 * float(np.float32(0.1)), rtol=1e-12)
