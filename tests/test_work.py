"""How much work is done, counted and not timed: passes, copies, allocations, iterations."""

import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import marginparts
from marginparts import margin_directions, nmf_alpha, nmf_alpha_path
from marginparts.backends.cpu import storage
from marginparts.backends.cpu.backend import NumbaBackend
from marginparts.datasets import load_digits_49, load_docstrings
from marginparts.solve.factorize import margin_components
from marginparts.solve.map import map_rows
from oracle import BACKENDS

pytestmark = pytest.mark.skipif("numba" not in BACKENDS, reason="numba is not under test")


class Counting(NumbaBackend):
    """Counts the nonzeros that its kernels go over."""

    def __init__(self):
        self.updates = self.looks = 0

    def half_step(self, X, *args, also=None, **options):
        self.updates += X.nnz + (0 if also is None else also.X.nnz)
        return super().half_step(X, *args, also=also, **options)

    def sweep(self, X, *args, also=None, **options):
        self.updates += X.nnz + (0 if also is None else also.X.nnz)
        return super().sweep(X, *args, also=also, **options)

    def ratio_matmul(self, X, *args):
        self.updates += X.nnz
        return super().ratio_matmul(X, *args)

    def divergence(self, X, *args):
        self.looks += X.nnz
        return super().divergence(X, *args)


@pytest.fixture(scope="module")
def documents():
    data = load_docstrings()
    X = sp.csr_array(data.data, dtype=np.float32)
    y = np.where(np.arange(X.shape[0]) % 5 == 0, data.target, -1)
    return X, y, sp.csr_array(margin_directions(X, y, random_state=0))


@pytest.mark.parametrize("solver", ["mu", "mue", "cd"])
@pytest.mark.parametrize("supervised", [False, True])
def test_an_iteration_goes_over_the_data_once_for_each_factor(
    documents, solver, supervised, monkeypatch
):
    X, _, S = documents
    monkeypatch.setattr("marginparts.solve.loop._SMALL", 100_000)  # these factors are larger
    backend = Counting()
    result = nmf_alpha(
        X, 16, S=S if supervised else None, solver=solver, random_state=0, max_iter=20, tol=0,
        backend=backend,
    )  # fmt: skip
    assert result.n_iter == 20
    nonzeros = X.nnz + (margin_components(S, X).nnz if supervised else 0)
    assert backend.updates == 20 * 2 * nonzeros
    # large enough to be looked at every tenth iteration, or fifth for sweeps, and at the start
    assert backend.looks == (5 if solver == "cd" else 3) * nonzeros


def test_a_map_goes_over_the_data_once_for_each_update(documents):
    X, _, _ = documents
    V = np.random.default_rng(0).random((X.shape[1], 16), dtype=np.float32)
    backend = Counting()
    map_rows(X, V, 7, backend)
    assert (backend.updates, backend.looks) == (7 * X.nnz, 0)
    backend = Counting()
    map_rows(X, V, None, backend)
    assert (backend.updates, backend.looks) == (7 * X.nnz, 0)


def test_a_path_makes_transposes_and_margin_components_once(documents, monkeypatch):
    X, _, S = documents
    cuts, products = [], []

    def counted_tasks(indptr):
        cuts.append(len(indptr))
        return row_tasks(indptr)

    def counted_components(S, X):
        products.append(S.shape)
        return margin_components(S, X)

    row_tasks = storage.row_tasks
    monkeypatch.setattr(storage, "row_tasks", counted_tasks)
    monkeypatch.setattr("marginparts.solve.factorize.margin_components", counted_components)
    path = nmf_alpha_path(X, 8, S=S, lams=(0.3, 1, 3, 10), random_state=0, max_iter=3, tol=0)
    assert len(path) == 4
    assert len(products) == 1
    # X, XS and S, each by rows and by columns: each is cut into tasks once
    shapes = (X.shape, S.shape, (S.shape[1], X.shape[1]))
    assert sorted(cuts) == sorted(m + 1 for shape in shapes for m in shape)


@pytest.mark.wide
def test_a_path_costs_less_than_its_fits_apart(documents):
    X, _, S = documents
    lams, options = (0.3, 1.0, 3.0, 10.0), {"S": S, "random_state": 0, "solver": "cd"}
    path = nmf_alpha_path(X, 16, lams=lams, **options)
    alone = [nmf_alpha(X, 16, lam=lam, **options) for lam in lams]
    # a path of four costs about two fits, and is about as good
    assert sum(result.n_iter for result in path) < 0.6 * sum(result.n_iter for result in alone)
    for warm, cold in zip(path, alone, strict=True):
        assert warm.losses[-1] < 1.02 * cold.losses[-1]


@pytest.mark.parametrize("solver", ["mu", "mue", "cd"])
def test_iterations_allocate_no_further_factors(solver):
    """After the first few, updates are written over what is no longer needed."""
    n, d, r = 24_000, 32_000, 16  # as many columns as a kernel has that others need as well
    X = sp.random_array((n, d), density=0.0002, format="csr", dtype=np.float32,
                        random_state=np.random.default_rng(0))  # fmt: skip
    grown = []

    def measure(progress):
        current, peak = tracemalloc.get_traced_memory()
        grown.append(peak - current)
        tracemalloc.reset_peak()

    # kernels are compiled first: to trace a compiler takes minutes
    nmf_alpha(X[:200], r, solver=solver, random_state=0, max_iter=5, tol=0)
    tracemalloc.start()
    try:
        nmf_alpha(X, r, solver=solver, random_state=0, max_iter=40, tol=0, callback=measure)
    finally:
        tracemalloc.stop()
    assert len(grown) >= 4
    assert max(grown[1:]) < 0.3 * 4 * r * min(n, d)


@pytest.mark.parametrize(("solver", "most"), [("mu", 70), ("mue", 45), ("cd", 15)])
def test_iterations_to_a_fixed_gap(documents, solver, most):
    X, _, _ = documents
    losses = nmf_alpha(X, 16, solver=solver, random_state=0, max_iter=100, tol=0).history
    best = nmf_alpha(X, 16, solver="mu", random_state=0, max_iter=100, tol=0).losses[-1]
    reached = next(check.iteration for check in losses if check.loss <= 1.005 * best)
    assert reached <= most


def test_a_fit_and_a_prediction_are_at_most_twelve_frames_deep():
    """What a reader has to follow: frames of this package, callers of others left out."""
    package = str(Path(marginparts.__file__).parent)
    depth = deepest = 0

    def hook(frame, event, _):
        nonlocal depth, deepest
        if frame.f_code.co_filename.startswith(package) and frame.f_code.co_name != "<module>":
            depth += {"call": 1, "return": -1}.get(event, 0)
            deepest = max(deepest, depth)

    digits = load_digits_49()
    y = np.where(np.arange(len(digits.target)) < 40, digits.target, -1)
    model = marginparts.NMFAlphaClassifier(8, random_state=0).fit(digits.data, y)  # compiles
    for call in (lambda: model.fit(digits.data, y), lambda: model.predict(digits.data)):
        depth = deepest = 0
        sys.setprofile(hook)
        try:
            call()
        finally:
            sys.setprofile(None)
        assert deepest <= 12
