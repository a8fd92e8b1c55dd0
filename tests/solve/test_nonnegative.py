"""Codes of samples in known parts: the optimum is one, and no map is worse than an easy one."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import nnls

from marginparts import SemiNMFAlpha
from marginparts.backends import get_backend
from marginparts.backends.semi import least_squares
from marginparts.solve.nonnegative import are_nearly_dependent, bring_to_optimum, inverse_gram
from marginparts.solve.semi import semi_codes

DTYPES = pytest.mark.parametrize("dtype", [np.float64, np.float32])


def of_length_one(V):
    lengths = np.linalg.norm(V, axis=0)
    return V / np.where(lengths > 0, lengths, 1)


def with_offset(offset, n=200, d=16):
    """Data whose columns have a mean in common that is large beside all else."""
    rng = np.random.default_rng(0)
    X = offset + 5 * rng.normal(size=(n, d))
    X[:, : d // 2] += 8 * rng.normal(size=(n, 1))
    return X


def parts_of(kind, d=16, r=6):
    """Parts (d, r) that have much in common, or depend on one another."""
    rng = np.random.default_rng(1)
    V, first = rng.normal(size=(d, r)), rng.normal(size=(d, 1))
    if kind == "a common offset":
        V += 100
    elif kind == "collinear":
        V = first + 1e-5 * V
    elif kind == "opposite":
        V = first * np.array([1, -1] * (r // 2)) + 1e-4 * V
    elif kind == "copies":
        V[:, 2] = V[:, 3] = V[:, 4]
    elif kind == "a dead one":
        V[:, 1] = 0
    elif kind == "more than columns":
        V = rng.normal(size=(d, 2 * d))
    return of_length_one(V)


KINDS = ["a common offset", "collinear", "opposite", "copies", "a dead one", "more than columns"]


def missed(X, H, V):
    """The error of each row, in float64."""
    return np.linalg.norm(X.astype(np.float64) - H @ V.T.astype(np.float64), axis=1)


def least(X, V):
    return np.array([nnls(V.astype(float), x, maxiter=9999)[1] for x in X.astype(float)])


@DTYPES
@pytest.mark.parametrize("offset", [0, 100, 300])
@pytest.mark.parametrize("map_iter", [40, None])
def test_codes_of_data_with_an_offset_are_nonnegative_least_squares(map_iter, offset, dtype):
    X = with_offset(offset).astype(dtype)
    model = SemiNMFAlpha(4, output="coefficients", max_iter=60, tol=0, random_state=0).fit(X)
    V = np.ascontiguousarray(model.components_.T)
    found = missed(X, model.set_params(map_iter=map_iter).transform(X), V)
    best = least(X, V)
    assert_allclose(np.linalg.norm(found), np.linalg.norm(best), rtol=1e-6 if offset else 1e-3)


@DTYPES
@pytest.mark.parametrize("kind", KINDS)
def test_the_optimum_is_one(kind, dtype):
    X, V = with_offset(3, n=60).astype(dtype), parts_of(kind).astype(dtype)
    H = semi_codes(X, V, None)
    assert H.dtype == dtype
    assert H.min() >= 0
    assert not H[:, ~V.any(axis=0)].any()
    best, size = least(X, V), np.linalg.norm(X, axis=1)
    rounding = (1e-9 if dtype == np.float64 else 1e-5) * size
    assert np.all(missed(X, H, V) <= best * (1 + 1e-6) + rounding)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("begin", ["zero", "anywhere"])
def test_at_the_optimum_no_entry_can_lower_the_loss(kind, begin):
    X, V = with_offset(3, n=60), parts_of(kind)
    H = np.random.default_rng(2).random((60, V.shape[1])) * (begin == "anywhere")
    bring_to_optimum(X, V, H)
    gram, wanted = V.T @ V, X @ V
    pull, terms = wanted - H @ gram, np.abs(wanted) + H @ np.abs(gram)  # large, where V is singular
    assert H.min() >= 0
    assert np.all(pull <= 1e-12 * terms)
    assert np.all(np.abs(pull[H > 0]) <= 1e-12 * terms[H > 0])


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_rows_are_brought_to_their_optimum_one_by_one(form):
    X, V = with_offset(30), parts_of("a common offset")
    whole = semi_codes(form(X), V, None)
    assert_allclose(semi_codes(form(X)[[7]], V, None), whole[[7]], rtol=1e-7)
    assert semi_codes(form(X)[:0], V, None).shape == (0, V.shape[1])


@DTYPES
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("map_iter", [1, 40])
def test_no_map_is_worse_than_nothing_or_than_least_squares_cut_at_zero(map_iter, kind, dtype):
    X, V = with_offset(3, n=60).astype(dtype), parts_of(kind).astype(dtype)
    H, cut = semi_codes(X, V, map_iter), np.maximum(X @ V @ inverse_gram(V), 0)
    size = np.linalg.norm(X, axis=1)
    rounding = 10 * np.finfo(dtype).eps * (size + H.sum(axis=1))
    assert np.all(missed(X, H, V) <= np.minimum(size, missed(X, cut, V)) + rounding)


def test_sweeps_begin_where_no_multiple_is_better():
    X, V = with_offset(1), parts_of("a common offset")
    H = least_squares(X @ V, V.T @ V, inverse_gram(V))
    assert H.min() >= 0
    some = H.any(axis=1)
    residual = X - H @ V.T
    assert some.any()
    assert_allclose(np.sum(residual * (H @ V.T), axis=1)[some], 0, atol=1e-8)
    assert np.all(missed(X, H, V) <= np.linalg.norm(X, axis=1))


@pytest.mark.parametrize(("dtype", "unit"), [(np.float64, 1e200), (np.float64, 1e-200),
                                             (np.float32, 1e30), (np.float32, 1e-30)])  # fmt: skip
@pytest.mark.parametrize("map_iter", [40, None])
def test_the_unit_of_new_samples_is_that_of_their_codes(map_iter, unit, dtype):
    X, V = with_offset(3).astype(dtype), parts_of("a dead one").astype(dtype)
    expected = semi_codes(X, V, map_iter)
    found = semi_codes((X * dtype(unit)).astype(dtype), V, map_iter)
    atol = 1e-4 * expected.max()
    assert_allclose(found.astype(np.float64) / unit, expected, rtol=1e-3, atol=atol)


def test_sweeps_creep_where_parts_are_nearly_dependent():
    assert not are_nearly_dependent(np.zeros((3, 2)))
    assert not are_nearly_dependent(np.diag([1.0, 1e-9, 0.0]))  # by direction, not by length
    assert are_nearly_dependent(parts_of("collinear"))
    assert are_nearly_dependent(parts_of("copies"))


def test_mixed_codes_are_of_sweeps_from_zero():
    X = with_offset(100)
    model = SemiNMFAlpha(4, output="mixed", max_iter=20, tol=0, random_state=0).fit(X)
    V = np.ascontiguousarray(model.components_.T)
    H = get_backend("numba").semi().codes(X, V, 40)
    shares = H / H.sum(axis=1, keepdims=True)
    assert_array_equal(model.transform(X)[:, 4:], 0.5 * np.sqrt(shares))
