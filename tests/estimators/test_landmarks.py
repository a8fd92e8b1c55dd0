"""Kernels by landmarks: equal to scikit-learn's kernels, and what they are for."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_circles
from sklearn.metrics.pairwise import chi2_kernel, rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from marginparts import Landmarks, NMFAlphaClassifier

KERNELS = {"rbf": rbf_kernel, "chi2": chi2_kernel, "hellinger": rbf_kernel}


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).random((60, 5))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("kernel", KERNELS)
def test_features_are_kernels(kernel, form, X, monkeypatch):
    monkeypatch.setattr("marginparts.estimators.landmarks._AT_ONCE", 50)  # blocks of a few rows
    landmarks = Landmarks(kernel, n_landmarks=7, random_state=0).fit(form(X))
    rows = np.sqrt(X / X.sum(axis=1, keepdims=True)) if kernel == "hellinger" else X
    expected = KERNELS[kernel](rows, landmarks.landmarks_, gamma=landmarks.gamma_)
    assert_allclose(landmarks.transform(form(X)), expected, atol=1e-12)


def test_units_do_not_matter(X):
    ours = [Landmarks(n_landmarks=7, random_state=0).fit_transform(c * X) for c in (1, 1024)]
    assert_allclose(*ours)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("kernel", ["rbf", "chi2"])
def test_units_whose_squares_leave_float32_do_not_matter(kernel, form, X):
    X = X.astype(np.float32)
    ours = [
        Landmarks(kernel, n_landmarks=7, random_state=0).fit_transform(form(np.float32(c) * X))
        for c in (1, 2.0**-66, 2.0**-90)
    ]
    assert ours[0].max() > 0.5
    for other in ours[1:]:
        assert_allclose(other, ours[0], rtol=1e-6, atol=1e-30)


def far_from_zero(X):
    return X + 1e6


def far_in_one_column(X):
    """Few entries elsewhere, as where a column of ones has a large unit."""
    return np.hstack([X[:, :1] + 1e6, X[:, 1:] * (X[:, 1:] > 0.95)])


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("moved", [far_from_zero, far_in_one_column])
def test_what_all_rows_have_in_common_costs_no_digits(moved, form, X):
    far = moved(X)
    landmarks = Landmarks(n_landmarks=7, random_state=0).fit(form(far))
    squares = ((far[:, None] - landmarks.landmarks_) ** 2).sum(axis=2)
    assert_allclose(landmarks.gamma_, 6 / np.median(squares))
    features = landmarks.transform(form(far))
    assert_allclose(features, np.exp(-landmarks.gamma_ * squares), atol=1e-12)
    alone = np.vstack([landmarks.transform(form(row[None])) for row in far])
    assert_allclose(alone, features, atol=1e-12)


def test_what_nearly_all_rows_have_in_common_costs_no_digits(X):
    far = far_in_one_column(X)
    far[::3, 0] = 0  # these are far away
    landmarks = Landmarks(n_landmarks=5, random_state=0).fit(far[far[:, 0] > 0])
    squares = ((far[:, None] - landmarks.landmarks_) ** 2).sum(axis=2)
    features = landmarks.transform(sp.csr_array(far))
    assert_allclose(features, np.exp(-landmarks.gamma_ * squares), atol=1e-12)
    assert not features[::3].any()


def test_sparse_rows_are_measured_as_such(monkeypatch):
    """Columns that few have stay sparse, and rows as they were given."""
    from marginparts.estimators import landmarks as module

    measured, dense = module.euclidean_distances, []

    def seen(rows, *given, **options):
        dense.append(0 if sp.issparse(rows) else rows.size)
        return measured(rows, *given, **options)

    monkeypatch.setattr(module, "euclidean_distances", seen)
    X = sp.random_array((80, 1000), density=0.01, random_state=0, format="csr")
    X = sp.hstack([X, sp.csr_array(np.ones((80, 2)))], format="csr")
    given = X.copy()
    Landmarks(n_landmarks=4, random_state=0).fit(X).transform(X)
    assert max(dense) == 160  # the two columns that all have
    assert_array_equal(X.indices, given.indices)
    assert_array_equal(X.data, given.data)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", KERNELS)
def test_rows_that_differ_by_rounding_are_near_to_each_other(kernel, dtype, form, X):
    sizes = X[:, :1] if kernel == "hellinger" else np.ones((60, 1))
    rows = (sizes * X[:1]).astype(dtype)
    rows *= 1 + np.finfo(dtype).eps * (X > 0.5).astype(dtype)
    features = Landmarks(kernel, n_landmarks=7, random_state=0).fit_transform(form(rows))
    assert_allclose(features, 1, rtol=1e-6)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("unit", [1e-7, 1e-30, 1e30])
def test_shares_do_not_depend_on_the_size_of_a_row(unit, dtype, form, X):
    X = X.astype(dtype)
    landmarks = Landmarks("hellinger", n_landmarks=7, random_state=0).fit(form(X))
    small = form(dtype(unit) * X)
    atol = 1e-5 if dtype is np.float32 else 1e-12
    assert_allclose(landmarks.transform(small), landmarks.transform(form(X)), atol=atol)


def test_an_empty_row_has_no_shares(X):
    landmarks = Landmarks("hellinger", n_landmarks=7, random_state=0).fit(X)
    expected = np.exp(-landmarks.gamma_ * (landmarks.landmarks_**2).sum(axis=1))
    assert_allclose(landmarks.transform(np.zeros((1, 5)))[0], expected, atol=1e-12)


@pytest.mark.wide
@pytest.mark.parametrize("kernel", ["rbf", "chi2"])
def test_every_check_passes(kernel):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(Landmarks(kernel, n_landmarks=5, random_state=0), on_skip=None)


@pytest.mark.parametrize("kernel", KERNELS)
def test_few_rows_are_dense_at_once(kernel, monkeypatch):
    from marginparts.estimators import landmarks as module

    monkeypatch.setattr(module, "_AT_ONCE", 600)
    name = "additive_chi2_kernel" if kernel == "chi2" else "euclidean_distances"
    measured, sizes = getattr(module, name), []

    def seen(rows, *given, **options):
        sizes.append(np.prod(rows.shape))
        return measured(rows, *given, **options)

    monkeypatch.setattr(module, name, seen)
    X = sp.random_array((80, 100), density=0.05, random_state=0, format="csr")
    Landmarks(kernel, n_landmarks=4, random_state=0).fit(X).transform(X)
    assert sizes
    assert max(sizes) <= 600


def test_curved_classes_become_linear():
    X, target = make_circles(200, noise=0.05, factor=0.5, random_state=0)
    y = np.where(np.arange(200) < 40, target, -1)
    model = make_pipeline(
        Landmarks(n_landmarks=50, random_state=0),
        NMFAlphaClassifier(10, max_iter=30, rehearse=False, random_state=0),
    )
    assert model.fit(X, y).score(X, target) > 0.97


def test_negative_entries_need_the_rbf(X):
    with pytest.raises(ValueError, match="Negative values in data passed to Landmarks"):
        Landmarks("chi2").fit(-X)


def test_sparse_rows_with_long_indices():
    X = sp.random_array((60, 20), density=0.2, format="csr", rng=np.random.default_rng(0))
    short = Landmarks(n_landmarks=5, random_state=0).fit(X).transform(X)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    assert_array_equal(Landmarks(n_landmarks=5, random_state=0).fit(X).transform(X), short)
