"""The kernels of semi-NMF on a CPU against their definition; those of a GPU are with torch's."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_blobs

from marginparts import SemiNMFAlpha
from marginparts.backends import get_backend
from marginparts.backends.reference import ReferenceBackend
from marginparts.backends.semi import batches, semi_kernels_of
from marginparts.solve.nonnegative import inverse_gram

REFERENCE = semi_kernels_of(get_backend("reference"))


def make_case(n, d, r, dtype=np.float64):
    rng = np.random.default_rng(n)
    X, V, H = rng.normal(size=(n, d)), rng.normal(size=(d, r)), rng.random((n, r))
    V[:, r // 2] = 0 if r > 2 else 1  # a dead part
    return X.astype(dtype), V.astype(dtype), H.astype(dtype)


@pytest.mark.parametrize(("dtype", "atol"), [(np.float64, 1e-12), (np.float32, 2e-5)])
@pytest.mark.parametrize(("n", "r"), [(1, 1), (37, 5), (129, 3)])  # a tile is 32 rows, or 64
def test_sweeps_are_those_of_the_definition(n, r, dtype, atol):
    X, V, H = make_case(n, 6, r, dtype)
    kernels, XV, gram = get_backend("numba").semi(), X @ V, V.T @ V
    expected = REFERENCE.swept(H, XV, gram, gauge=True)
    found = kernels.swept(H, XV, gram, gauge=True)
    assert found.factor.dtype == dtype
    assert_allclose(found.factor, expected.factor, atol=atol)
    assert_allclose(found.violation, expected.violation, rtol=1e-5)
    in_place = H.copy()
    assert kernels.swept(in_place, XV, gram, out=in_place).factor is in_place
    assert_allclose(in_place, expected.factor, atol=atol)
    for sweeps in (5, 1000):
        codes = REFERENCE.codes(X, V, sweeps)
        assert_allclose(kernels.codes(X, V, sweeps), codes, atol=10 * atol)
        assert_allclose(kernels.codes(sp.csr_array(X), V, sweeps), codes, atol=10 * atol)
    inverse = inverse_gram(V)
    codes = REFERENCE.codes(X, V, 3, inverse)
    assert_allclose(kernels.codes(X, V, 3, inverse), codes, atol=10 * atol)
    assert np.any(np.abs(codes - REFERENCE.codes(X, V, 3)) > 1e-3) or r == 1


def test_a_sample_s_codes_do_not_depend_on_its_neighbors():
    X, V, _ = make_case(80, 6, 4)
    kernels = get_backend("numba").semi()
    whole = kernels.codes(X, V, 1000)
    assert_allclose(kernels.codes(X[70:], V, 1000), whole[70:], rtol=1e-12, atol=1e-14)
    assert kernels.codes(X[:0], V, 5).shape == (0, 4)


def test_batches_cover_all_rows():
    rows = np.zeros((103, 5))
    slices = list(batches(rows, 47, 4))
    assert np.array_equal(np.concatenate([np.arange(103)[each] for each in slices]), range(103))
    assert all(each.start % 4 == 0 for each in slices)


def test_a_backend_of_two_methods_has_them_too():
    class Plain(ReferenceBackend):
        name = "plain"

    X, y = make_blobs(60, 5, centers=2, random_state=0)
    models = [
        SemiNMFAlpha(3, max_iter=5, backend=backend, random_state=0).fit(X, y)
        for backend in (Plain(), "reference")
    ]
    assert_array_equal(*(model.components_ for model in models))


def test_samples_are_worked_on_few_at_a_time_if_they_are_wide():
    wide, narrow = (np.broadcast_to(np.float32(1), (90_000, d)) for d in (1 << 23, 100))
    assert REFERENCE.rows_at_once(wide, 2) == 1
    assert REFERENCE.rows_at_once(narrow, 200) == (1 << 23) // 200
