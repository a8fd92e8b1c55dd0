"""Semi-NMF on a GPU against the CPU: on a GPU where there is one, else through the interpreter."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from marginparts import Checkpoint, NMFAlphaClassifier, SemiNMFAlpha, load, save
from marginparts.backends import get_backend
from marginparts.backends.semi import SemiKernels
from marginparts.solve.nonnegative import inverse_gram
from marginparts.solve.semi import semi_codes, semi_kernels

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("triton", reason="triton is not installed")
torch_gpu = pytest.importorskip("marginparts.backends.gpu.backend")
torch_semi = pytest.importorskip("marginparts.backends.gpu.semi")

pytestmark = pytest.mark.extra

HAS_GPU = torch.cuda.is_available()
REFERENCE = SemiKernels()
FORMS = pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
SOLVERS = pytest.mark.parametrize("solver", ["mu", "mue", "cd"])


@pytest.fixture
def backend(monkeypatch):
    monkeypatch.setattr(torch_semi, "_RUN", 8)  # so that there are runs, batches and tiles
    monkeypatch.setattr(torch_semi, "_RUNS", 2)
    monkeypatch.setattr(torch_semi, "_MOVED", 40)
    monkeypatch.setattr(torch_semi.TorchSemiKernels, "at_once", 60)
    return torch_gpu.TorchBackend("cuda" if HAS_GPU else "cpu")


def make_data(n=40, d=7):
    rng = np.random.default_rng(0)
    y = np.where(np.arange(n) < 12, np.arange(n) % 3, -1)
    X = rng.normal(size=(n, d)) + 3 * rng.normal(size=(3, d))[np.arange(n) % 3]
    return X * (rng.random((n, d)) < 0.8), y


@FORMS
@pytest.mark.parametrize("r", [1, 5, 20])
@pytest.mark.parametrize(("dtype", "atol"), [(np.float64, 1e-11), (np.float32, 1e-4)])
def test_kernels_are_their_definition(backend, form, r, dtype, atol):
    kernels, rng = backend.semi(), np.random.default_rng(r)
    X, V, H = make_data()[0].astype(dtype), rng.normal(size=(7, r)), rng.random((40, r))
    V, H = V.astype(dtype), H.astype(dtype)
    V[:, r // 2] = 0 if r > 1 else 1  # a dead part
    data, more, rows = kernels.prepare(form(X)), kernels.prepare(form(X[:3])), kernels.factor(H)
    assert_array_equal(kernels.release(rows), H)
    assert_allclose(kernels.inner(data, rows), X.T @ H, atol=atol)
    assert_allclose(kernels.gram(rows), H.T @ H, rtol=1e-5, atol=atol)
    found = kernels.product([data, more], V)
    assert_allclose(kernels.release(found), np.vstack([X, X[:3]]) @ V, atol=atol)
    XV, gram, found = X @ V, V.T @ V, found[:40]
    assert_allclose(kernels.cross(found, rows), np.sum(XV * H), rtol=1e-5)
    for name in ("multiplied", "swept"):
        step = getattr(kernels, name)(rows, found, gram, gauge=True)
        expected = getattr(REFERENCE, name)(H, XV, gram, gauge=True)
        assert_allclose(kernels.release(step.factor), expected.factor, atol=atol)
        assert_allclose(step.violation, expected.violation, rtol=1e-3)
    for sweeps in (2, 30):
        codes = REFERENCE.codes(X, V, sweeps)
        assert_allclose(kernels.codes(form(X), V, sweeps), codes, atol=10 * atol)
    X[3] = 0  # which has no codes
    inverse = inverse_gram(V)
    codes = REFERENCE.codes(X, V, 3, inverse)
    assert_allclose(kernels.codes(form(X), V, 3, inverse), codes, atol=10 * atol)
    before = kernels.factor(H**2)
    assert kernels.ahead(rows, before, 0.5, 0.1) is before
    assert_allclose(kernels.release(before), REFERENCE.ahead(H, H**2, 0.5, 0.1), atol=atol)


@FORMS
@SOLVERS
def test_a_fit_is_that_of_the_cpu(backend, form, solver):
    X, y = make_data()
    options = {"lam": 2.0, "solver": solver, "init": "random", "max_iter": 15, "tol": 0}
    ours, cpu = (
        SemiNMFAlpha(3, backend=each, random_state=0, **options).fit(form(X), y)
        for each in (backend, "numba")
    )
    assert_allclose(ours.components_, cpu.components_, atol=1e-10)
    assert_allclose(ours.loss_curve_, cpu.loss_curve_, rtol=1e-10)
    assert_allclose(ours.transform(form(X)), cpu.transform(form(X)), atol=1e-9)
    assert np.all(np.diff(ours.loss_curve_) <= 0)
    again = SemiNMFAlpha(3, backend=backend, random_state=0, **options).fit(form(X), y)
    assert_array_equal(ours.components_, again.components_)


def test_weights_and_no_labels(backend):
    X, _ = make_data()
    weights = np.random.default_rng(1).random(40) + 0.5
    options = {"init": "random", "max_iter": 10, "tol": 0, "random_state": 0}
    ours, cpu = (
        SemiNMFAlpha(3, backend=each, **options).fit(X, sample_weight=weights)
        for each in (backend, "numba")
    )
    assert_allclose(ours.components_, cpu.components_, atol=1e-10)


@SOLVERS
def test_a_fit_that_was_killed_ends_with_the_same_bits(backend, solver, tmp_path):
    X, y = make_data()
    options = {"solver": solver, "max_iter": 25, "tol": 0, "backend": backend, "random_state": 0}
    checkpoint = Checkpoint(tmp_path / "fit.ckpt", every_iterations=4)

    def kill(progress):
        if progress.iteration == 11:
            raise KeyboardInterrupt

    killed = SemiNMFAlpha(3, checkpoint=checkpoint, callback=kill, **options)
    with pytest.raises(KeyboardInterrupt):
        killed.fit(X, y)
    assert checkpoint.path.exists()
    resumed = SemiNMFAlpha(3, checkpoint=checkpoint, **options).fit(X, y)
    whole = SemiNMFAlpha(3, **options).fit(X, y)
    assert_array_equal(resumed.components_, whole.components_)
    assert_array_equal(resumed.loss_curve_, whole.loss_curve_)


def test_a_classifier_of_words_and_vectors(backend, tmp_path):
    X, y = make_data()
    words = np.random.default_rng(0).poisson(1.0, (40, 12)) + 0.0
    both = np.hstack([words, X])
    options = {"embedded": 7, "max_iter": 5, "map_iter": 3, "rehearse": False, "random_state": 0}
    ours, cpu = (
        NMFAlphaClassifier(3, backend=each, **options).fit(both, y) for each in (backend, "numba")
    )
    assert ours.embedding_parts_.backend is backend
    assert_allclose(ours.embedding_parts_.components_, cpu.embedding_parts_.components_, atol=1e-8)


@pytest.mark.skipif(HAS_GPU, reason="there is a GPU")
@pytest.mark.parametrize("embedded", ["all", 3])
def test_a_model_of_a_gpu_predicts_where_there_is_none(backend, tmp_path, embedded):
    X, y = make_data()
    if embedded != "all":  # words beside vectors
        X[:, :-embedded] = np.abs(X[:, :-embedded])
    options = {"max_iter": 5, "rehearse": False, "random_state": 0}
    model = NMFAlphaClassifier(3, embedded=embedded, backend="numba", **options).fit(X, y)
    expected = model.decision_function(X)
    for each in filter(None, (model, model.parts_, model.embedding_parts_)):
        each.set_params(backend="torch")
    save(model, tmp_path / "model")
    for there in (load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert_array_equal(there.decision_function(X), expected)
    with pytest.raises(ValueError, match="needs a GPU"):
        SemiNMFAlpha(2, backend="torch").fit(X, y)


def test_a_mapped_file_is_sent_in_blocks(backend, tmp_path):
    X, _ = make_data()
    np.save(tmp_path / "vectors.npy", X)
    mapped = np.load(tmp_path / "vectors.npy", mmap_mode="r")
    options = {"init": "random", "max_iter": 5, "backend": backend, "random_state": 0}
    ours, whole = (SemiNMFAlpha(2, **options).fit(each).components_ for each in (mapped, X))
    assert_array_equal(ours, whole)


def test_a_card_that_is_too_small_is_none(backend, monkeypatch):
    X, _ = make_data()
    small = torch_gpu.TorchBackend(backend.device.type, memory=1000)
    assert not small.semi().holds(X, 3)
    assert backend.semi().holds(X, 3)
    for name in ("get_backend", "backend_at_hand"):
        monkeypatch.setattr(
            f"marginparts.solve.semi.{name}",
            lambda name, work=0: small if name == "auto" else get_backend(name, work),
        )
    assert semi_kernels(X, 3, "auto").name == "numba"
    # nor are codes of new samples sent to it
    V = np.random.default_rng(0).normal(size=(X.shape[1], 3)).astype(X.dtype)
    monkeypatch.setattr(small.semi().__class__, "codes", None)
    assert_array_equal(semi_codes(X, V, 5, "auto"), semi_codes(X, V, 5, "numba"))


@pytest.mark.gpu
@pytest.mark.skipif(not HAS_GPU, reason="there is no GPU")
@pytest.mark.parametrize("r", [48, 64, 200])
@SOLVERS
def test_real_sizes_on_the_hardware(r, solver):
    rng = np.random.default_rng(0)
    X = rng.random((30_001, r)) @ rng.normal(size=(r, 256))
    # with noise: a loss near 0 is the difference of large sums, and all rounding
    X = (X + X.std() * rng.normal(size=X.shape)).astype(np.float32)
    y = np.where(np.arange(len(X)) < 300, np.arange(len(X)) % 3, -1)
    options = {"init": "random", "solver": solver, "max_iter": 30, "tol": 0, "random_state": 0}
    ours, again, cpu = (
        SemiNMFAlpha(r, backend=each, **options).fit(X, y) for each in ("torch", "torch", "numba")
    )
    assert_array_equal(ours.components_, again.components_)
    assert_allclose(ours.loss_curve_, cpu.loss_curve_, rtol=1e-3)
    codes = cpu.transform(X[:500])
    assert_allclose(
        cpu.set_params(backend="torch").transform(X[:500]), codes, atol=1e-3 * codes.max()
    )


@pytest.mark.gpu
@pytest.mark.skipif(not HAS_GPU, reason="there is no GPU")
def test_a_run_needs_no_more_of_the_card_than_it_asks_for():
    n, r = 1_000_000, 64
    X = np.random.default_rng(0).standard_normal((n, r), dtype=np.float32)
    options = {"init": "random", "max_iter": 12, "tol": 0, "backend": "torch", "random_state": 0}
    SemiNMFAlpha(r, **options).fit(X[:2000])  # compiles, and takes what a card takes once
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    SemiNMFAlpha(r, **options).fit(X)
    taken = torch.cuda.max_memory_allocated() - before
    assert taken <= X.nbytes + torch_semi._COPIES * n * r * X.dtype.itemsize
