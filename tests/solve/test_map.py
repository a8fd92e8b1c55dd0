"""The map that keeps inner products (eq. 5)."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from marginparts.solve.map import gram_root


@pytest.fixture
def V():
    return np.random.default_rng(0).random((9, 4))


def test_the_root_times_itself_is_the_gram_matrix(V):
    root = gram_root(V)
    assert_allclose(root @ root, V.T @ V)


def test_the_root_is_symmetric_and_has_no_negative_eigenvalues(V):
    root = gram_root(V)
    assert_allclose(root, root.T)
    assert np.linalg.eigvalsh(root).min() > 0


def test_codes_have_the_inner_products_of_the_rebuilt_samples(V):
    H = np.random.default_rng(1).random((6, 4))
    Z, X = H @ gram_root(V), H @ V.T
    assert_allclose(Z @ Z.T, X @ X.T)


def test_orthonormal_parts_leave_the_coefficients_alone():
    assert_allclose(gram_root(np.eye(5, 3)), np.eye(3))


@pytest.mark.parametrize("seed", range(5))
def test_dependent_and_dead_parts_give_no_nan(seed):
    rng = np.random.default_rng(seed)
    V = np.column_stack([rng.random((9, 1)) * rng.random(5), np.zeros(9)])  # of rank one
    root = gram_root(V)
    assert_allclose(root @ root, V.T @ V, atol=1e-12)


def test_float32_parts_are_squared_in_float64(V):
    V = V.astype(np.float32)
    root = gram_root(V)
    assert root.dtype == np.float64
    assert_allclose(root @ root, V.astype(np.float64).T @ V.astype(np.float64), rtol=1e-12)
