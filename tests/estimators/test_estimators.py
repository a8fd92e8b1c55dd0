"""The three transformers as scikit-learn users know them."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from marginparts import (
    ConstrainedNMF,
    NMFAlpha,
    NMFAlphaClassifier,
    OnlineNMFAlphaClassifier,
    SemiSupervisedNMF,
    Stop,
    TransductiveSVM,
    margin_directions,
    nmf_alpha,
)
from marginparts.directions import SOURCES

TRANSFORMERS = [NMFAlpha, SemiSupervisedNMF, ConstrainedNMF]
N, D, R = 60, 12, 4


def counts(dtype=np.float64):
    """Return counts in which each of three classes favors four of twelve words."""
    rng = np.random.default_rng(0)
    own = np.arange(N)[:, None] % 3 == np.arange(D) // 4
    return rng.poisson(np.where(own, 4.0, 1.0)).astype(dtype)


TRUTH = np.arange(N) % 3
Y = np.where(np.arange(N) < 30, TRUTH, -1)
X = counts()


def make(estimator, **options):
    return estimator(R, **{"max_iter": 30, "random_state": 0, **options})


# --- fit and transform

KINDS = {
    "dense float64": (np.asarray, np.float64, 1e-9),
    "dense float32": (np.asarray, np.float32, 1e-4),
    "sparse float64": (sp.csr_array, np.float64, 1e-9),
    "sparse float32": (sp.csr_array, np.float32, 1e-4),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("estimator", TRANSFORMERS)
def test_fit_transform_is_fit_then_transform(estimator, kind):
    container, dtype, rtol = KINDS[kind]
    data = container(counts(dtype))
    together = make(estimator).fit_transform(data, Y)
    assert_allclose(together, make(estimator).fit(data, Y).transform(data), rtol=rtol)
    assert together.shape == (N, R)
    assert together.dtype == dtype


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("estimator", TRANSFORMERS)
def test_the_map_of_a_row_depends_on_that_row_alone(estimator, kind):
    container, dtype, rtol = KINDS[kind]
    data = container(counts(dtype))
    model = make(estimator).fit(data, Y)
    codes = model.transform(data)
    size = rtol * np.abs(codes).max()
    assert_allclose(model.transform(data[:5]), codes[:5], rtol=rtol, atol=size)
    assert_allclose(model.transform(data[[7]]), codes[[7]], rtol=rtol, atol=size)
    assert_allclose(model.transform(data[::-1]), codes[::-1], rtol=rtol, atol=size)


@pytest.mark.parametrize("estimator", TRANSFORMERS)
def test_dense_and_sparse_data_give_the_same_parts(estimator):
    dense, sparse = make(estimator).fit(X, Y), make(estimator).fit(sp.csr_array(X), Y)
    assert_allclose(sparse.components_, dense.components_, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("container", [sp.csc_array, sp.coo_array, sp.csr_matrix])
def test_any_sparse_format_will_do(container):
    expected = make(NMFAlpha).fit_transform(sp.csr_array(X), Y)
    assert_allclose(make(NMFAlpha).fit_transform(container(X), Y), expected)


@pytest.mark.parametrize("estimator", TRANSFORMERS)
def test_labels_never_enter_the_map(estimator):
    twice = np.concatenate([X, X])
    half_labeled = np.concatenate([TRUTH, np.full(N, -1)])
    codes = make(estimator).fit_transform(twice, half_labeled)
    assert_allclose(codes[:N], codes[N:], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("estimator", TRANSFORMERS)
def test_the_map_does_not_depend_on_the_type_of_the_new_data(estimator):
    model = make(estimator).fit(X, Y)
    codes = model.transform(X)
    assert_allclose(model.transform(X.astype(int)), codes)
    assert_allclose(model.transform(sp.csr_array(X)), codes, atol=1e-9)
    single = model.transform(X.astype(np.float32))
    assert single.dtype == np.float32
    assert_allclose(single, codes, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("estimator", TRANSFORMERS)
def test_an_empty_sample_has_an_empty_code(estimator):
    data = X.copy()
    data[[3, 40]] = 0
    codes = make(estimator).fit_transform(data, Y)
    assert_array_equal(codes[[3, 40]], 0)
    assert np.isfinite(codes).all()


@pytest.mark.parametrize("estimator", TRANSFORMERS)
def test_a_word_unseen_in_the_fit_does_no_harm(estimator):
    train = X.copy()
    train[:, 5] = 0
    model = make(estimator).fit(train, Y)
    assert_array_equal(model.components_[:, 5], 0)
    assert_allclose(model.transform(X), model.transform(train), atol=1e-12)


@pytest.mark.parametrize("estimator", TRANSFORMERS)
def test_before_the_fit_there_is_no_map(estimator):
    with pytest.raises(NotFittedError):
        estimator().transform(X)


# --- the two outputs and the way back


@pytest.mark.parametrize("estimator", TRANSFORMERS)
def test_coefficients_are_nonnegative_and_codes_keep_their_inner_products(estimator):
    coefficients = make(estimator, output="coefficients").fit(X, Y)
    H, Z = coefficients.transform(X), make(estimator).fit_transform(X, Y)
    rebuilt = H @ coefficients.components_
    assert H.min() >= 0
    assert_allclose(Z @ Z.T, rebuilt @ rebuilt.T)


@pytest.mark.parametrize("output", ["gram", "coefficients"])
@pytest.mark.parametrize("estimator", TRANSFORMERS)
def test_the_way_back_leads_to_the_factorization(estimator, output):
    model = make(estimator, output=output).fit(X, Y)
    H = clone(model).set_params(output="coefficients").fit_transform(X, Y)
    assert_allclose(model.inverse_transform(model.transform(X)), H @ model.components_)


@pytest.mark.parametrize("estimator", TRANSFORMERS)
def test_enough_parts_rebuild_the_data(estimator):
    exact = np.random.default_rng(1).random((N, 2)) @ X[:2]
    model = estimator(2, max_iter=2000, tol=0, map_iter=2000, random_state=0).fit(exact)
    assert_allclose(model.inverse_transform(model.transform(exact)), exact, rtol=0.01, atol=0.01)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("estimator", TRANSFORMERS)
def test_the_type_of_the_data_is_kept_all_the_way(estimator, dtype):
    data = counts(dtype)
    model = make(estimator).fit(data, Y)
    assert model.components_.dtype == dtype
    assert model.inverse_transform(model.transform(data)).dtype == dtype


# --- what the fit leaves behind


@pytest.mark.parametrize("estimator", TRANSFORMERS)
def test_parts_are_nonnegative_and_sum_to_one(estimator):
    parts = make(estimator).fit(X, Y).components_
    assert parts.shape == (R, D)
    assert parts.min() >= 0
    assert_allclose(parts.sum(axis=1), 1)


@pytest.mark.parametrize("estimator", TRANSFORMERS)
def test_a_fit_tells_how_it_went(estimator):
    model = make(estimator, tol=0).fit(X, Y)
    assert model.n_iter_ == 30
    assert model.stop_ is Stop.MAX_ITER
    assert str(model.stop_).endswith(".")
    assert model.n_features_in_ == D
    assert_array_equal(model.classes_, [0, 1, 2])
    assert (np.diff(model.loss_curve_) <= 0).all()
    assert model.loss_curve_[-1] < model.loss_curve_[0]


@pytest.mark.parametrize("estimator", TRANSFORMERS)
def test_a_tolerance_ends_the_fit_early(estimator):
    model = make(estimator, max_iter=500, tol=0.05).fit(X, Y)
    assert model.stop_ in (Stop.CONVERGED, Stop.STATIONARY)
    assert model.n_iter_ < 500


@pytest.mark.parametrize("estimator", TRANSFORMERS)
def test_a_callback_sees_the_loss_and_can_end_the_fit(estimator):
    seen = []

    def third_look(progress):
        seen.append(progress)
        return len(seen) == 3

    model = make(estimator, callback=third_look).fit(X, Y)
    assert model.stop_ is Stop.CALLBACK
    assert len(seen) == 3
    assert seen[-1].max_iter == 30
    assert seen[-1].loss == model.loss_curve_[-1]


@pytest.mark.parametrize("estimator", TRANSFORMERS)
def test_a_second_fit_forgets_the_first(estimator):
    model = make(estimator).fit(X, Y).fit(X)
    fresh = make(estimator).fit(X)
    assert_array_equal(model.components_, fresh.components_)
    assert len(getattr(model, "classes_", ())) == 0


@pytest.mark.parametrize("estimator", TRANSFORMERS)
def test_the_seed_decides(estimator):
    one, two, other = (make(estimator, random_state=seed).fit(X, Y) for seed in (1, 1, 2))
    assert_array_equal(one.components_, two.components_)
    assert np.abs(one.components_ - other.components_).max() > 1e-6


LARGE_SEEDS = {
    "from labels": NMFAlpha(6),  # two parts a class, from k-means
    "from an SVD": NMFAlpha(6, init="nndsvdar"),
    "regression": SemiSupervisedNMF(6),
    "constraints": ConstrainedNMF(6),
    "classifier": NMFAlphaClassifier(6, lam=1.0, C=1.0, map_iter=3, normalize=True),
    "stream": OnlineNMFAlphaClassifier(6),
}


@pytest.mark.parametrize("name", LARGE_SEEDS)
def test_a_seed_may_be_of_any_size(name):
    model = clone(LARGE_SEEDS[name])
    if "max_iter" in model.get_params():
        model.set_params(max_iter=3)
    codes = [model.set_params(random_state=seed).fit(X, Y).transform(X) for seed in (0, 2**40)]
    assert np.abs(codes[0] - codes[1]).max() > 1e-6
    assert_array_equal(codes[1], model.fit(X, Y).transform(X))


def test_the_seed_of_a_transductive_svm_may_be_of_any_size():
    one, two = (TransductiveSVM(random_state=2**70).fit(X, Y) for _ in range(2))
    assert_array_equal(one.decision_function(X), two.decision_function(X))


@pytest.mark.parametrize("estimator", TRANSFORMERS)
def test_the_given_start_is_the_start(estimator):
    H, V = np.ones((N, R)), np.random.default_rng(0).random((D, R)) + 0.5
    models = [make(estimator, init=(H, V), random_state=seed).fit(X) for seed in (1, 2)]
    assert_array_equal(models[0].components_, models[1].components_)
    assert_array_equal(H, 1)


# --- labels


def test_directions_are_those_of_the_labeled_rows():
    model = make(NMFAlpha).fit(X, Y)
    expected = margin_directions(X, Y, random_state=0)
    assert model.directions_.shape == (N, 6)
    assert_allclose(model.directions_.toarray(), expected.toarray())
    assert_array_equal(model.directions_.toarray()[Y == -1], 0)


def test_one_direction_a_pair_is_an_option():
    assert make(NMFAlpha, multiclass="ovo").fit(X, Y).directions_.shape == (N, 6)
    four = np.where(Y == 2, np.where(np.arange(N) % 2, 2, 3), Y)
    assert make(NMFAlpha, multiclass="ovo").fit(X, four).directions_.shape == (N, 12)
    assert make(NMFAlpha).fit(X, four).directions_.shape == (N, 8)


@pytest.mark.parametrize("source", SOURCES)
def test_directions_come_from_the_source_asked_for(source):
    model = make(NMFAlpha, directions=source).fit(X, Y)
    expected = margin_directions(X, Y, directions=source, random_state=0)
    assert_allclose(model.directions_.toarray(), expected.toarray())


def test_directions_can_be_your_own():
    own = make(NMFAlpha, directions=lambda rows, signs: np.ones(len(signs))).fit(X, Y)
    assert_allclose(own.components_, make(NMFAlpha, directions="class").fit(X, Y).components_)


@pytest.mark.parametrize("option", [{"pseudo": "svm"}, {"pseudo": "tsvm"}, {"scale": False}])
def test_options_of_the_directions_are_passed_on(option):
    model = make(NMFAlpha, **option).fit(X, Y)
    expected = margin_directions(X, Y, random_state=0, **option)
    assert_allclose(model.directions_.toarray(), expected.toarray())


@pytest.mark.parametrize("estimator", TRANSFORMERS)
def test_several_labels_a_sample_with_unknown_entries(estimator):
    indicator = np.column_stack([TRUTH == 0, TRUTH != 1, np.arange(N) % 2]).astype(int)
    indicator[40:], indicator[5, 1] = -1, -1
    model = make(estimator).fit(X, indicator)
    assert_array_equal(model.classes_, [0, 1, 2])
    assert np.isfinite(model.transform(X)).all()


@pytest.mark.parametrize("estimator", [NMFAlpha, SemiSupervisedNMF])
def test_without_weight_labels_do_not_enter_the_factorization(estimator):
    model = make(estimator, lam=0.0, init="random")
    with_labels, without = clone(model).fit(X, Y), clone(model).fit(X)
    assert_allclose(with_labels.components_, without.components_)


@pytest.mark.parametrize("estimator", TRANSFORMERS)
def test_labels_enter_the_factorization(estimator):
    model = make(estimator, init="random")
    with_labels, without = clone(model).fit(X, Y), clone(model).fit(X)
    assert np.abs(with_labels.components_ - without.components_).max() > 1e-3


def test_without_labels_it_is_plain_nmf():
    model = make(NMFAlpha).fit(X)
    result = nmf_alpha(X, R, max_iter=30, random_state=0)
    assert model.directions_ is None
    assert_allclose(model.components_, (result.V / result.V.sum(axis=0)).T)
    assert_allclose(model.loss_curve_, result.losses)


@pytest.mark.parametrize("estimator", TRANSFORMERS)
@pytest.mark.parametrize(
    "y",
    [
        np.where(Y == -1, np.nan, Y),
        [None if label == -1 else f"class {label}" for label in Y],
        pd.Series(np.where(Y == -1, None, Y)),
    ],
    ids=["NaN", "strings and None", "pandas"],
)
def test_names_of_labels_and_marks_of_unlabeled_rows_do_not_matter(estimator, y):
    renamed, plain = make(estimator).fit(X, y), make(estimator).fit(X, Y)
    assert_array_equal(renamed.components_, plain.components_)


@pytest.mark.parametrize("init", ["random", "auto"])
@pytest.mark.parametrize("classes", [2, 3])
def test_the_order_of_label_names_does_not_matter(init, classes):
    y = np.where(np.isin(Y, range(classes)), Y, -1)
    reversed_names = np.where(y == -1, -1, 9 - y)
    model = make(NMFAlpha, init=init)
    one, two = clone(model).fit(X, y), clone(model).fit(X, reversed_names)
    assert_allclose(two.components_, one.components_, rtol=1e-2, atol=1e-4)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("estimator", TRANSFORMERS)
def test_the_unit_of_the_data_does_not_matter(estimator, container):
    model = make(estimator)
    one, two = clone(model).fit(container(X), Y), clone(model).fit(container(1024 * X), Y)
    assert_allclose(two.components_, one.components_, rtol=1e-9, atol=1e-12)
    assert_allclose(two.transform(1024 * X), 1024 * one.transform(X), rtol=1e-9, atol=1e-9)


def test_the_reference_backend_agrees():
    fast, slow = (make(NMFAlpha, solver="mue", backend=b).fit(X, Y) for b in ("numba", "reference"))
    assert_allclose(fast.components_, slow.components_, rtol=1e-7, atol=1e-12)
    assert_allclose(fast.transform(X), slow.transform(X), rtol=1e-7, atol=1e-9)


# --- scikit-learn's manners

WITH_MANNERS = [*TRANSFORMERS, NMFAlphaClassifier]


def mannered(estimator):
    if estimator is NMFAlphaClassifier:
        return make(estimator, lam=1.0, C=1.0, map_iter=5, normalize=True)
    return make(estimator)


@pytest.mark.parametrize("estimator", WITH_MANNERS)
def test_columns_are_named_after_the_estimator(estimator):
    model = mannered(estimator).fit(X, Y)
    prefix = estimator.__name__.lower()
    assert model.get_feature_names_out().tolist() == [f"{prefix}{k}" for k in range(R)]


@pytest.mark.parametrize("estimator", WITH_MANNERS)
def test_tables_out_of_pandas(estimator):
    names, index = [f"word {j}" for j in range(D)], np.arange(N) + 100
    frame = pd.DataFrame(X, columns=names, index=index)
    model = mannered(estimator).set_output(transform="pandas").fit(frame, Y)
    table = model.transform(frame)
    assert isinstance(table, pd.DataFrame)
    assert table.columns.tolist() == model.get_feature_names_out().tolist()
    assert_array_equal(table.index, index)
    assert_array_equal(model.feature_names_in_, names)
    assert_allclose(table, mannered(estimator).fit(X, Y).transform(X))
    assert isinstance(model.fit_transform(frame, Y), pd.DataFrame)


@pytest.mark.parametrize("estimator", WITH_MANNERS)
def test_tables_out_of_polars(estimator):
    frame = pl.DataFrame(X, schema=[f"word {j}" for j in range(D)])
    model = mannered(estimator).set_output(transform="polars").fit(frame, Y)
    table = model.transform(frame)
    assert isinstance(table, pl.DataFrame)
    assert table.columns == model.get_feature_names_out().tolist()
    assert_allclose(table.to_numpy(), mannered(estimator).fit(X, Y).transform(X))


def test_columns_in_another_order_are_refused():
    frame = pd.DataFrame(X, columns=[f"word {j}" for j in range(D)])
    model = make(NMFAlpha).fit(frame, Y)
    with pytest.raises(ValueError, match="feature names"):
        model.transform(frame[frame.columns[::-1]])


@pytest.mark.parametrize("estimator", WITH_MANNERS)
def test_a_clone_has_the_parameters_and_nothing_else(estimator):
    model = mannered(estimator).fit(X, Y)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        copy.transform(X)


@pytest.mark.parametrize("estimator", WITH_MANNERS)
def test_a_fit_leaves_the_parameters_alone(estimator):
    model = mannered(estimator)
    before = model.get_params()
    assert model.fit(X, Y).get_params() == before


@pytest.mark.parametrize("estimator", WITH_MANNERS)
def test_a_pickled_model_maps_as_before(estimator):
    model = mannered(estimator).fit(X, Y)
    copy = pickle.loads(pickle.dumps(model))
    assert_array_equal(copy.transform(X), model.transform(X))


@pytest.mark.parametrize("output", ["projection", "mixed"])
@pytest.mark.parametrize("estimator", TRANSFORMERS)
def test_a_later_fit_has_what_a_fresh_one_has(estimator, output):
    model = make(estimator, output=output).fit(X, Y)
    model.set_params(output="gram").fit(X[::2], Y[::2])
    fresh = clone(model).fit(X[::2], Y[::2])
    assert vars(model).keys() == vars(fresh).keys()
