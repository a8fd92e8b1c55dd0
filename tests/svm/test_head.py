"""The last SVM: exactly LIBLINEAR's problem, solved to the end."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.svm import LinearSVC

from marginparts.labels import Labels, encode_labels
from marginparts.svm import head as linear_head
from marginparts.svm.head import Heads, fit_head
from marginparts.svm.newton import SquaredHinge


def problem(n, q, seed, noise=0.5):
    rng = np.random.default_rng(seed)
    Z = rng.random((n, q))
    y = np.where((Z - 0.5) @ rng.standard_normal(q) + noise * rng.standard_normal(n) > 0, 1.0, -1.0)
    return Z, y


@pytest.mark.parametrize("C", [1e-4, 0.1, 1.0, 100.0, 1e6])
@pytest.mark.parametrize(("n", "q"), [(60, 3), (200, 17), (20, 40), (2, 5)])
def test_the_optimum_is_stationary(n, q, C):
    """The loss is convex, so a gradient of zero is the optimum."""
    Z, y = problem(n, q, seed=n + q)
    y[:2] = -1, 1
    assert_stationary(Z, y, C, SquaredHinge(Z, y).at(C))


def assert_stationary(Z, y, C, w):
    slack = np.maximum(0, 1 - y * (Z @ w))
    gradient = w - 2 * C * ((y * slack) @ Z)
    assert np.linalg.norm(gradient) < 1e-5 * np.linalg.norm(2 * C * (y @ Z))


@pytest.mark.parametrize(("n", "q"), [(60, 3), (200, 17), (20, 40)])
def test_so_is_that_of_each_cost_after_another(n, q):
    """Whatever entered or left the margin on the way."""
    Z, y = problem(n, q, seed=n + q)
    question = SquaredHinge(Z, y)
    for C in (1.0, 100.0, 1e-4, 3.0, 3.0, 1e6, 0.1):
        assert_stationary(Z, y, C, question.at(C))


def labels_of(kind, n, rng):
    if kind in ("several", "gaps"):
        Y = rng.integers(2, size=(n, 4)).astype(float)
        Y[:, 3] = 1
        if kind == "gaps":
            Y[::3, 1] = np.nan
        return encode_labels(Y)
    labels = encode_labels(rng.integers(2 if kind == "two" else 5, size=n))
    if kind == "absent":  # a class that no row has
        return replace(labels, classes=np.arange(6))
    return labels


@pytest.mark.parametrize("kind", ["two", "many", "absent", "several", "gaps"])
@pytest.mark.parametrize("normalize", [True, False])
def test_the_costs_before_do_not_matter(kind, normalize):
    rng = np.random.default_rng(0)
    labels = labels_of(kind, 80, rng)
    Z = rng.random((80, 7)) + (labels.codes.reshape(80, -1)[:, :1] == 1)
    counts = rng.random(80)
    for rows, atol in ((Z, 1e-4), (sp.csr_array(Z), 0)):
        heads = Heads(rows, labels, normalize=normalize, weights=counts)
        for C in (1.0, 3.0, 0.1, 1000.0):
            alone = fit_head(rows, labels, C, normalize=normalize, weights=counts)
            assert_allclose(heads.at(C).values(rows), alone.values(rows), atol=atol, rtol=1e-4)


def test_the_loss_is_below_that_of_liblinear():
    Z, y = problem(300, 10, seed=0)
    svm = LinearSVC(C=10.0, dual=False, fit_intercept=False, tol=1e-6).fit(Z, y)
    w = SquaredHinge(Z, y).at(10.0)

    def loss(w):
        return w @ w / 2 + 10 * np.sum(np.maximum(0, 1 - y * (Z @ w)) ** 2)

    assert loss(w) <= loss(svm.coef_[0]) * (1 + 1e-9)
    assert_allclose(w, svm.coef_[0], rtol=1e-3)


@pytest.mark.parametrize("classes", [2, 4])
def test_the_head_is_liblinear_on_unit_rows(classes):
    rng = np.random.default_rng(classes)
    codes = rng.integers(classes, size=150)
    Z = rng.random((150, 6)) + 2 * np.eye(6)[codes]
    head = fit_head(Z, encode_labels(codes), 2.0)
    rows = Z / np.linalg.norm(Z, axis=1, keepdims=True)
    svm = LinearSVC(C=2.0, dual=False, tol=1e-8).fit(rows, codes)
    assert_allclose(head.coef, svm.coef_, rtol=1e-4, atol=1e-4)
    assert_allclose(head.intercept, svm.intercept_, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("classes", [2, 3])
def test_what_all_rows_have_in_common_does_not_matter(classes):
    rng = np.random.default_rng(classes)
    codes = rng.integers(classes, size=120)
    Z = rng.random((120, 5)) + np.eye(5)[codes]
    moved = 7 * Z + 100 * rng.random(5)
    weights = rng.integers(1, 4, size=120)
    labels = Labels(np.arange(classes), codes, weights.astype(float))
    how = {"normalize": False, "center": True}
    values = fit_head(Z, labels, 2.0, **how).values(Z)
    assert_allclose(fit_head(moved, labels, 2.0, **how).values(moved), values, atol=1e-6)
    # and a row that counts twice is two rows
    twice = np.repeat(np.arange(120), weights)
    plain = Labels(np.arange(classes), codes[twice])
    assert_allclose(fit_head(Z[twice], plain, 2.0, **how).values(Z), values, atol=1e-6)


def test_sparse_rows_and_many_columns_give_the_same_head(monkeypatch):
    rng = np.random.default_rng(3)
    codes = rng.integers(3, size=90)
    Z = rng.poisson(0.5, (90, 8)) + 3.0 * np.eye(8)[codes]
    labels = encode_labels(codes)
    for normalize in (True, False):
        exact = fit_head(Z, labels, 1.0, normalize=normalize).values(Z)
        sparse = fit_head(sp.csr_array(Z), labels, 1.0, normalize=normalize)
        assert_allclose(sparse.values(sp.csr_array(Z)), exact, atol=0.1)
        with monkeypatch.context() as patch:
            patch.setattr(linear_head, "_FEW_COLUMNS", 1)
            many = fit_head(Z, labels, 1.0, normalize=normalize)
        assert_allclose(many.values(Z), exact, atol=0.1)


def test_a_class_without_rows_is_never_predicted():
    Z, y = problem(40, 4, seed=1)
    head = fit_head(Z, Labels(np.array(["a", "b", "c"]), np.where(y > 0, 2, 0)), 1.0)
    assert set(head.values(Z).argmax(axis=1)) <= {0, 2}
    two = fit_head(Z, encode_labels(np.where(y > 0, 1, 0)), 1.0)
    assert_array_equal(head.values(Z).argmax(axis=1) == 2, two.values(Z)[:, 0] > 0)


def test_an_empty_row_does_no_harm():
    Z, y = problem(40, 4, seed=2)
    Z[3] = 0
    head = fit_head(Z, encode_labels(np.where(y > 0, 1, 0)), 1.0)
    assert np.isfinite(head.values(Z)).all()


@pytest.mark.parametrize(("k", "classes"), [(0, 2), (1, 2), (0, 3), (2, 3)])
def test_one_known_class_is_always_predicted(k, classes):
    Z = np.random.default_rng(0).random((5, 3))
    head = fit_head(Z, Labels(np.arange(classes), np.full(5, k)), 1.0)
    values = head.values(Z)
    assert_array_equal(values[:, 0] > 0 if classes == 2 else values.argmax(axis=1), k)


def test_equal_columns_and_a_huge_cost():
    Z, y = problem(40, 4, seed=5)
    w = SquaredHinge(np.hstack([Z, Z]), y).at(1e14)
    assert np.isfinite(w).all()
