"""The GPU backend against the reference: on a GPU where there is one, else through the interpreter.

Triton's interpreter runs the very kernels on a CPU, slowly; so the shapes are small and odd.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from marginparts import (
    ConstrainedNMF,
    NMFAlpha,
    NMFAlphaClassifier,
    SemiSupervisedNMF,
    margin_directions,
    nmf_alpha,
    nmf_alpha_path,
)
from marginparts.backends import Also, Plus, get_backend
from marginparts.backends.reference import ReferenceBackend

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("triton", reason="triton is not installed")
torch_gpu = pytest.importorskip("marginparts.backends.gpu.backend")
torch_dense = pytest.importorskip("marginparts.backends.gpu.dense")
torch_sparse = pytest.importorskip("marginparts.backends.gpu.sparse")
torch_streams = pytest.importorskip("marginparts.backends.gpu.streams")

pytestmark = pytest.mark.extra

HAS_GPU = torch.cuda.is_available()
REFERENCE = ReferenceBackend()
LAM = 0.7

dtypes = pytest.mark.parametrize(("dtype", "rtol"), [(np.float64, 1e-12), (np.float32, 1e-4)])
ranks = pytest.mark.parametrize("r", [1, 3, 41, 200])  # 1 of a tile of 16, and 200 of 256
kinds = pytest.mark.parametrize("kind", ["sparse", "dense"])


@pytest.fixture
def backend(monkeypatch):
    monkeypatch.setattr(torch_sparse, "_SHORTEST", 4)  # so that rows are cut
    monkeypatch.setattr(torch_dense, "_BLOCK", 20)
    return torch_gpu.TorchBackend("cuda" if HAS_GPU else "cpu")


class Case:
    """Awkward data: an empty row, an empty column, a row with all nonzeros."""

    def __init__(self, r, dtype, kind, n=5, d=7):
        rng = np.random.default_rng(r)
        X = rng.random((n, d)) * (rng.random((n, d)) < 0.5)
        X[1], X[:, 2], X[3] = 0, 0, rng.random(d) + 0.1
        S = sp.csr_array(rng.random((n, 4)) * (rng.random((n, 4)) < 0.5)).astype(dtype)
        self.X = X.astype(dtype) if kind == "dense" else sp.csr_array(X).astype(dtype)
        self.S, self.r = S, r
        self.XS = S.T @ self.X if kind == "dense" else sp.csr_array(S.T @ self.X)
        self.H, self.V = (rng.random((size, r)).astype(dtype) + dtype(0.1) for size in (n, d))

    def on(self, backend):
        """The same on the device."""
        X = backend.prepare(self.X, like=None)
        if not sp.issparse(self.X):  # small dense data has many zeros, and would be kept sparse
            X = torch_dense.DenseMatrix(torch.from_numpy(self.X).to(backend.device))
        XS = (
            backend.prepare(np.ascontiguousarray(self.XS), like=X)
            if isinstance(X, torch_dense.DenseMatrix)
            else backend.prepare(self.XS, like=X)
        )
        return X, XS, backend.coefficients(self.S), backend.factor(self.H), backend.factor(self.V)


@dtypes
@ranks
@kinds
def test_kernels_are_their_formulas(backend, kind, r, dtype, rtol):
    case = Case(r, dtype, kind)
    X, _, _, H, V = case.on(backend)
    found = backend.release(backend.ratio_matmul(X, H, V), r)
    assert found.dtype == dtype
    assert_allclose(found, REFERENCE.ratio_matmul(case.X, case.H, case.V), rtol=rtol)
    found = backend.release(backend.ratio_matmul(X.T, V, H), r)
    assert_allclose(found, REFERENCE.ratio_matmul(case.X.T, case.V, case.H), rtol=rtol)
    assert_allclose(
        backend.divergence(X, H, V), REFERENCE.divergence(case.X, case.H, case.V), rtol=rtol
    )
    sums = backend.column_sums(V).cpu().numpy()[:r]
    assert_allclose(sums, case.V.sum(axis=0, dtype=np.float64), rtol=1e-12)


@dtypes
@ranks
@kinds
def test_half_steps_with_margin_components_are_those_of_the_reference(
    backend, kind, r, dtype, rtol
):
    case = Case(r, dtype, kind)
    X, XS, S, H, V = case.on(backend)
    HS, HS_host = S.T @ H, np.asarray(case.S.T @ case.H)
    den = backend.column_sums(H) + LAM * backend.column_sums(HS)
    step = backend.half_step(X.T, V, H, den, also=Also(XS.T, HS, LAM), gauge=True)
    expected = REFERENCE.half_step(
        case.X.T, case.V, case.H, case.H.sum(0) + LAM * HS_host.sum(0),
        also=Also(case.XS.T, HS_host, LAM), gauge=True,
    )  # fmt: skip
    assert_allclose(backend.release(step.factor, r), expected.factor, rtol=rtol)
    assert_allclose(step.violation, expected.violation, rtol=100 * rtol)

    s = S @ np.ones(4)
    T = backend.ratio_matmul(XS, HS, V)
    options = {"weight": 1 + LAM * s, "plus": Plus(S, T, LAM)}
    step = backend.half_step(X, H, V, backend.column_sums(V), gauge=True, **options)
    T_host = REFERENCE.ratio_matmul(case.XS, HS_host, case.V)
    expected = REFERENCE.half_step(
        case.X, case.H, case.V, case.V.sum(0, dtype=np.float64), gauge=True,
        weight=1 + LAM * np.asarray(case.S.sum(axis=1)).ravel(), plus=Plus(case.S, T_host, LAM),
    )  # fmt: skip
    assert_allclose(backend.release(step.factor, r), expected.factor, rtol=rtol)
    assert_allclose(step.violation, expected.violation, rtol=100 * rtol)


def test_a_dead_part_and_an_entry_without_a_fit_stay_zero(backend):
    case = Case(3, np.float32, "sparse")
    case.V[:, 1] = 0
    case.H[3] = 0
    X, _, _, H, V = case.on(backend)
    for step in (
        backend.half_step(X, H, V, backend.column_sums(V)).factor,
        backend.half_step(X.T, V, H, backend.column_sums(H)).factor,
    ):
        assert np.isfinite(backend.release(step, 3)).all()
    assert backend.divergence(X, H, V) == np.inf


def test_padded_columns_stay_zero(backend):
    case = Case(3, np.float32, "sparse")
    X, _, _, H, V = case.on(backend)
    assert H.shape[1] == 4
    new = backend.half_step(X, H, V, backend.column_sums(V)).factor
    assert_array_equal(new[:, 3].cpu().numpy(), 0)


def test_rows_are_cut_into_pieces_that_cover_them(monkeypatch):
    monkeypatch.setattr(torch_sparse, "_SHORTEST", 4)
    indptr = np.array([0, 0, 3, 13, 17, 26])
    row, start, stop, slot, long_row, first_slot, n_slots = torch_sparse.cut_rows(
        indptr, np.arange(26)
    )
    covered = sorted((int(r), p) for r, a, b in zip(row, start, stop, strict=True)
                     for p in range(a, b))  # fmt: skip
    assert covered == [(r, p) for r in range(5) for p in range(indptr[r], indptr[r + 1])]
    assert_array_equal(long_row, [2, 4])
    assert_array_equal(first_slot, [0, 3, 6])
    assert n_slots == 6
    assert sorted(slot[slot >= 0]) == list(range(6))
    assert set(row[slot < 0]) == {0, 1, 3}


@pytest.mark.parametrize("r", [3, 41])
def test_updates_with_gathered_rows_of_half_the_width_are_good_to_eight_bits(backend, r):
    half = torch_gpu.TorchBackend(backend.device.type, half=True)
    case = Case(r, np.float32, "sparse")
    X, _, _, H, V = case.on(half)
    found = half.release(half.half_step(X, H, V, half.column_sums(V)).factor, r)
    expected = REFERENCE.half_step(case.X, case.H, case.V, case.V.sum(0, dtype=np.float64)).factor
    assert found.dtype == np.float32
    assert_allclose(found, expected, rtol=2**-7)
    assert_allclose(half.divergence(X, H, V), REFERENCE.divergence(case.X, case.H, case.V), 1e-5)


@pytest.mark.parametrize("H_stays", [True, False])
@pytest.mark.parametrize("solver", ["mu", "mue"])
@kinds
def test_data_larger_than_the_card_is_factorized_all_the_same(
    backend, kind, solver, H_stays, monkeypatch
):
    monkeypatch.setattr(torch_streams, "_FOR_H", 1e9 if H_stays else 0)
    X, y = blocks(n=9)
    X = sp.csr_array(X) if kind == "sparse" else X + 0.1
    S = margin_directions(X, y)
    small = torch_gpu.TorchBackend(backend.device.type, memory=200)
    options = {"S": S, "lam": 0.5, "solver": solver, "max_iter": 5, "tol": 0, "random_state": 0}
    expected = nmf_alpha(X, 3, backend="reference", **options)
    found = nmf_alpha(X, 3, backend=small, **options)
    assert_allclose(found.V, expected.V, rtol=1e-10)
    assert_allclose(found.H, expected.H, rtol=1e-10)
    prepared = small.suited_to(X, 3).prepare(X)
    assert len(prepared.bounds) > 2, "the data was in one block"


def blocks(n=6, d=4):
    rng = np.random.default_rng(0)
    truth = np.arange(n) % 2
    X = rng.random((n, d)) * (rng.random((n, d)) < 0.7)
    X[truth == 0, : d // 2] += 0.5
    X[truth == 1, d // 2 :] += 0.5
    return X, np.where(np.arange(n) < 4, truth, -1)


@pytest.mark.parametrize(("solver", "kind"), [("mu", "sparse"), ("mue", "sparse"), ("mu", "dense")])
def test_a_trajectory_is_that_of_the_cpu(backend, solver, kind):
    X, y = blocks()
    S = margin_directions(X, y)
    if kind == "sparse":
        X = sp.csr_array(X)
    options = {"S": S, "lam": 2.0, "solver": solver, "tol": 0, "random_state": 0}
    options["max_iter"] = 50 if HAS_GPU or solver == "mu" else 12
    ours = nmf_alpha(X, 2, backend=backend, **options)
    cpu = nmf_alpha(X, 2, backend="numba", **options)
    assert_allclose(ours.H @ ours.V.T, cpu.H @ cpu.V.T, rtol=1e-7, atol=1e-10)
    assert_allclose(ours.losses, cpu.losses, rtol=1e-9)
    assert ours.n_iter == cpu.n_iter


def test_a_path_and_a_map_are_those_of_the_cpu(backend):
    X, y = blocks()
    X = sp.csr_array(X)
    S = margin_directions(X, y)
    options = {"S": S, "lams": (0.5, 5.0), "max_iter": 8, "warm_iter": 4, "random_state": 0}
    for ours, cpu in zip(
        nmf_alpha_path(X, 3, backend=backend, solver="mu", **options),
        nmf_alpha_path(X, 3, backend="numba", solver="mu", **options),
        strict=True,
    ):
        assert_allclose(ours.V, cpu.V, rtol=1e-9, atol=1e-12)
    parts = NMFAlpha(3, max_iter=5, map_iter=4, solver="mu", random_state=0).fit(X, y)
    on_cpu = parts.transform(X)
    parts.set_params(backend=backend)
    assert_allclose(parts.transform(X), on_cpu, rtol=1e-9, atol=1e-12)


def test_the_classifier_and_the_baselines_run_on_it(backend):
    X, y = blocks()
    options = {"backend": backend, "random_state": 0, "max_iter": 3}
    model = NMFAlphaClassifier(2, lam=1.0, map_iter=2, normalize=True, C=1.0, **options)
    assert model.fit(X, y).score(X, y) > 0.7
    for estimator in (SemiSupervisedNMF, ConstrainedNMF):
        ours = estimator(2, map_iter=3, **options).fit(X, y)
        cpu = estimator(2, map_iter=3, **{**options, "backend": "numba"}).fit(X, y)
        assert_allclose(ours.components_, cpu.components_, rtol=1e-7, atol=1e-10)


def test_the_same_seed_gives_the_same_bits(backend):
    X, y = blocks()
    X = sp.csr_array(X).astype(np.float32)
    S = margin_directions(X, y)
    one, two = (
        nmf_alpha(X, 3, S=S, lam=1.0, max_iter=4, random_state=0, backend=backend) for _ in range(2)
    )
    assert_array_equal(one.V, two.V)
    assert_array_equal(one.H, two.H)


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")  # torch's own
@pytest.mark.parametrize("device", ["cpu", *(["cuda"] if HAS_GPU else [])])
def test_tensors_may_go_in(device):
    X, y = blocks(12, 8)
    options = {"lam": 1.0, "map_iter": 3, "normalize": True, "C": 1.0, "random_state": 0}
    expected = NMFAlphaClassifier(2, **options).fit(X, y).decision_function(X)
    dense = torch.from_numpy(X).to(device)
    for tensor in (dense, dense.to_sparse_csr()):
        found = NMFAlphaClassifier(2, **options).fit(tensor, y).decision_function(tensor)
        assert_allclose(found, expected, rtol=1e-9)
        assert nmf_alpha(tensor, 2, random_state=0, max_iter=3).V.shape == (8, 2)


@pytest.mark.skipif(HAS_GPU, reason="there is a GPU")
def test_without_a_gpu_there_is_one_sentence():
    with pytest.raises(ValueError, match="needs a GPU"):
        get_backend("torch")
    assert get_backend("auto", work=10**12).name == "numba"


def test_a_small_problem_stays_on_the_cpu():
    assert get_backend("auto", work=10**5).name == "numba"


@pytest.mark.gpu
@pytest.mark.skipif(not HAS_GPU, reason="there is no GPU")
@pytest.mark.parametrize("r", [48, 96, 200])
def test_real_sizes_on_the_hardware(r):
    rng = np.random.default_rng(0)
    X = sp.random_array(
        (2000, 3000), density=0.02, random_state=rng, format="csr", dtype=np.float32
    )
    ours = nmf_alpha(X, r, backend="torch", solver="mu", max_iter=50, tol=0, random_state=0)
    cpu = nmf_alpha(X, r, backend="numba", solver="mu", max_iter=50, tol=0, random_state=0)
    assert_allclose(ours.losses, cpu.losses, rtol=1e-4)
    again = nmf_alpha(X, r, backend="torch", solver="mu", max_iter=50, tol=0, random_state=0)
    assert_array_equal(ours.V, again.V)


@pytest.mark.gpu
@pytest.mark.skipif(not HAS_GPU, reason="there is no GPU")
@pytest.mark.parametrize("solver", ["mu", "mue"])
def test_replayed_updates_give_the_bits_of_plain_ones(monkeypatch, solver):
    rng = np.random.default_rng(0)
    X = sp.random_array((300, 400), density=0.05, random_state=rng, format="csr", dtype=np.float32)
    y = np.where(np.arange(300) < 60, np.arange(300) % 3, -1)
    S = margin_directions(X, y)
    options = {"S": S, "lam": 1.0, "solver": solver, "max_iter": 60, "tol": 0, "random_state": 0}
    replayed = nmf_alpha(X, 20, backend="torch", **options)
    monkeypatch.setattr(torch_gpu.TorchBackend, "adapted", lambda self, problem: problem)
    plain = nmf_alpha(X, 20, backend="torch", **options)
    assert_array_equal(replayed.V, plain.V)
    assert_array_equal(replayed.H, plain.H)
    assert replayed.losses == plain.losses
