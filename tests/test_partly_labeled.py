"""Splitting and wrapping for partly labeled data."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from packaging.version import Version
from sklearn import config_context
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError, UnsetMetadataPassedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from marginparts import LabeledKFold, LabeledOnly, NMFAlpha
from marginparts.datasets import load_digits_49

Y = np.array([0, 1, -1, 0, 1, -1, 0, 1, -1, 0, 1, -1])


@pytest.fixture
def data():
    """Two classes of points, every third one unlabeled."""
    X = np.random.default_rng(0).normal(size=(60, 3))
    truth = (X[:, 0] + X[:, 1] > 0).astype(int)
    return X, truth, np.where(np.arange(60) % 3 == 2, -1, truth)


def parts(y, n_splits=2, **options):
    return list(LabeledKFold(n_splits, **options).split(np.zeros((len(y), 1)), y))


# --- LabeledKFold


def test_every_labeled_row_is_tested_once_and_no_unlabeled_row_ever():
    tested = np.concatenate([test for _, test in parts(Y, 4)])
    assert_array_equal(np.sort(tested), np.flatnonzero(Y != -1))


def test_a_training_part_is_everything_but_its_test_part():
    for train, test in parts(Y, 4):
        assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(len(Y)))
        assert_array_equal(np.intersect1d(train, np.flatnonzero(Y == -1)), [2, 5, 8, 11])


def test_folds_are_stratified_by_class():
    y = np.sort(Y)
    for _, test in parts(y, 4):
        assert_array_equal(y[test], [0, 1])


@pytest.mark.parametrize(
    "y",
    [
        np.array(["a", None, "b", "a", "b"], object),
        ["a", None, "b", "a", "b"],
        np.array([0, np.nan, 1, 0, 1]),
        pd.Series(["a", None, "b", "a", "b"]),
    ],
    ids=["objects", "list", "floats", "pandas"],
)
def test_any_way_to_mark_unlabeled_rows_will_do(y):
    for train, test in parts(y):
        assert 1 in train
        assert 1 not in test


def test_multilabel_rows_with_any_known_entry_are_split():
    y = np.array([[1, 0], [-1, 1], [-1, -1], [0, 1]])
    folds = parts(y, 3)
    assert_array_equal(np.sort(np.concatenate([test for _, test in folds])), [0, 1, 3])
    assert all(2 in train for train, _ in folds)


def test_shuffling_follows_the_seed():
    def tests(**options):
        return [test.tolist() for _, test in parts(Y, 2, **options)]

    assert tests(shuffle=True, random_state=1) == tests(shuffle=True, random_state=1)
    assert tests(shuffle=True, random_state=1) != tests()


def test_too_few_labels_for_the_folds_are_refused():
    with pytest.raises(ValueError, match="2 labeled samples and 3 folds"):
        parts([0, 1, -1, -1, -1], 3)


def test_the_number_of_folds_is_known_beforehand():
    assert LabeledKFold(7).get_n_splits() == 7


def test_cross_val_score_trains_on_unlabeled_rows_too_and_tests_on_labeled_ones(data):
    X, _, y = data
    folds = LabeledKFold(4)
    model = LabeledOnly(LinearSVC(random_state=0))
    by_hand = [
        clone(model).fit(X[train], y[train]).score(X[test], y[test]) for train, test in parts(y, 4)
    ]
    assert_allclose(cross_val_score(model, X, y, cv=folds), by_hand)


# --- LabeledOnly


def test_it_is_the_estimator_fitted_on_the_labeled_rows(data):
    X, _, y = data
    known = y != -1
    model = LabeledOnly(LinearSVC(random_state=0)).fit(X, y)
    alone = LinearSVC(random_state=0).fit(X[known], y[known])
    assert_allclose(model.decision_function(X), alone.decision_function(X))
    assert_array_equal(model.predict(X), alone.predict(X))
    assert_array_equal(model.classes_, [0, 1])
    assert model.n_features_in_ == 3


@pytest.mark.parametrize("wrap", [sp.csr_array, pd.DataFrame], ids=["sparse", "pandas"])
def test_sparse_data_and_tables_pass_through(data, wrap):
    X, _, y = data
    X = wrap(X)
    known = np.flatnonzero(y != -1)
    rows = X.iloc[known] if hasattr(X, "iloc") else X[known]
    model = LabeledOnly(LinearSVC(random_state=0)).fit(X, y)
    alone = LinearSVC(random_state=0).fit(rows, y[known])
    assert_array_equal(model.predict(X), alone.predict(X))


def test_predictions_are_in_the_users_own_labels(data):
    X, truth, y = data
    names = np.array(["no", "yes"])
    words = np.where(y == -1, None, names[y])
    model = LabeledOnly(LinearSVC(random_state=0)).fit(X, words)
    assert_array_equal(model.classes_, names)
    assert model.score(X, names[truth]) > 0.9


def test_score_ignores_unlabeled_rows(data):
    X, _, y = data
    known = y != -1
    model = LabeledOnly(LinearSVC(C=0.01, random_state=0)).fit(X, y)
    assert model.score(X, y) == model.estimator_.score(X[known], y[known])


def test_minus_one_is_unlabeled_in_a_score_as_it_was_in_the_fit(data):
    X, truth, y = data
    model = LabeledOnly(LinearSVC(C=0.01, random_state=0)).fit(X, y)
    only_ones = np.where(truth == 1, 1, -1)  # no zero left to tell that -1 is no class
    assert model.score(X, only_ones) == model.score(X[truth == 1], truth[truth == 1])


def test_minus_one_is_a_class_in_a_score_as_it_was_in_the_fit(data):
    X, truth, _ = data
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LabeledOnly(LinearSVC(random_state=0)).fit(X, 2 * truth - 1)
        score = model.score(X[truth == 0], np.full((truth == 0).sum(), -1))
    assert score > 0.9


def test_multilabel_training_uses_the_rows_that_are_known_completely(data):
    X, truth, _ = data
    y = np.column_stack([truth, 1 - truth])
    y[::3], y[1, 0] = -1, -1
    known = (y != -1).all(axis=1)
    model = LabeledOnly(DecisionTreeClassifier(random_state=0)).fit(X, y)
    alone = DecisionTreeClassifier(random_state=0).fit(X[known], y[known])
    assert_array_equal(model.predict(X), alone.predict(X))


def test_sample_weights_belong_to_all_rows(data):
    X, _, y = data
    weights = np.random.default_rng(1).random(len(y))
    known = y != -1
    model = LabeledOnly(LinearSVC(random_state=0)).fit(X, y, sample_weight=weights)
    alone = LinearSVC(random_state=0).fit(X[known], y[known], sample_weight=weights[known])
    assert_allclose(model.decision_function(X), alone.decision_function(X))


def test_weights_count_in_a_score_too(data):
    X, _, y = data
    weights = np.random.default_rng(1).random(len(y))
    known = y != -1
    model = LabeledOnly(LinearSVC(C=0.01, random_state=0)).fit(X, y)
    expected = model.estimator_.score(X[known], y[known], sample_weight=weights[known])
    assert expected != model.score(X, y)
    assert model.score(X, y, sample_weight=weights) == expected


def test_the_names_of_the_features_are_kept(data):
    X, _, y = data
    model = LabeledOnly(LinearSVC()).fit(pd.DataFrame(X, columns=["a", "b", "c"]), y)
    assert_array_equal(model.feature_names_in_, ["a", "b", "c"])
    assert not hasattr(LabeledOnly(LinearSVC()).fit(X, y), "feature_names_in_")


@pytest.mark.parametrize("table", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_multilabel_columns_keep_their_names(data, table):
    X, truth, _ = data
    y = {"yes": np.where(np.arange(60) % 3 == 2, -1, truth), "no": 1 - truth, "x": X[:, 2] > 0}
    model = LabeledOnly(OneVsRestClassifier(LinearSVC(C=0.01))).fit(X, table(y))
    assert_array_equal(model.classes_, ["yes", "no", "x"])
    turned = table({name: y[name] for name in ("x", "yes", "no")})
    assert model.score(X, turned) == model.score(X, table(y)) > 0.5
    with pytest.raises(ValueError, match="the same ones, in any order"):
        model.score(X, table({**y, "z": y["x"]}))


def test_large_seeds_shuffle_too():
    def tests(seed):
        return [test.tolist() for _, test in parts(Y, 2, shuffle=True, random_state=seed)]

    assert tests(2**40) == tests(2**40) != tests(0)


# --- metadata routing


@pytest.fixture
def routing():
    with config_context(enable_metadata_routing=True):
        yield


def test_weights_go_through_a_pipeline(data, routing):
    X, _, y = data
    X, known = np.abs(X), y != -1
    weights = np.random.default_rng(1).random(len(y))
    svm = LinearSVC(random_state=0).set_fit_request(sample_weight=True)
    svm.set_score_request(sample_weight=True)
    # it takes weights too, and has to say whether it wants them
    parts = NMFAlpha(2, max_iter=5, random_state=0).set_fit_request(sample_weight=False)
    model = make_pipeline(parts, LabeledOnly(svm)).fit(X, y, sample_weight=weights)
    Z = model[0].transform(X)
    alone = LinearSVC(random_state=0).fit(Z[known], y[known], sample_weight=weights[known])
    assert_allclose(model.decision_function(X), alone.decision_function(Z))
    weighted = alone.score(Z[known], y[known], sample_weight=weights[known])
    assert model.score(X, y, sample_weight=weights) == weighted
    assert weighted != model.score(X, y)


@pytest.mark.skipif(
    Version(sklearn.__version__) < Version("1.7"),
    reason="scikit-learn before 1.7 does not route metadata to the score of a meta-estimator",
)
def test_weights_go_through_cross_validation(data, routing):
    X, _, y = data
    weights = np.random.default_rng(1).random(len(y))
    svm = LinearSVC(random_state=0).set_fit_request(sample_weight=True)
    model = LabeledOnly(svm.set_score_request(sample_weight=True))
    found = cross_val_score(model, X, y, cv=LabeledKFold(3), params={"sample_weight": weights})
    by_hand = [
        clone(model)
        .fit(X[train], y[train], sample_weight=weights[train])
        .score(X[test], y[test], sample_weight=weights[test])
        for train, test in parts(y, 3)
    ]
    assert_allclose(found, by_hand)


def test_metadata_that_nobody_asked_for_is_refused(data, routing):
    X, _, y = data
    with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
        LabeledOnly(LinearSVC()).fit(X, y, sample_weight=np.ones(60))
    quiet = LabeledOnly(LinearSVC().set_fit_request(sample_weight=False))
    with pytest.raises(TypeError, match="sample_weight"):
        quiet.fit(X, y, sample_weight=np.ones(60))


def test_what_a_prediction_needs_is_passed_on(data):
    X, _, y = data
    model = LabeledOnly(GaussianProcessRegressor()).fit(X, y)
    mean, deviation = model.predict(X, return_std=True)
    assert mean.shape == deviation.shape == (60,)
    with config_context(enable_metadata_routing=True):
        inner = GaussianProcessRegressor().set_predict_request(return_std=True)
        found = LabeledOnly(inner).fit(X, y).predict(X, return_std=True)
    assert_allclose(found[1], deviation)


def test_methods_are_those_of_the_estimator(data):
    X, _, y = data
    assert not hasattr(LabeledOnly(LinearSVC()), "predict_proba")
    assert not hasattr(LabeledOnly(LinearSVC()), "transform")
    model = LabeledOnly(LogisticRegression()).fit(X, y)
    assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    scaler = LabeledOnly(MinMaxScaler()).fit(X, y)
    assert_allclose(scaler.transform(X[y != -1]).max(axis=0), 1)
    assert not hasattr(scaler, "predict")


def test_it_says_what_kind_of_estimator_it_holds():
    assert is_classifier(LabeledOnly(LinearSVC()))
    assert is_regressor(LabeledOnly(Ridge()))


def test_the_given_estimator_stays_unfitted_and_can_be_tuned(data):
    X, _, y = data
    inner = LinearSVC(C=3.0)
    model = LabeledOnly(inner).fit(X, y)
    assert not hasattr(inner, "coef_")
    assert clone(model).set_params(estimator__C=5.0).estimator.C == 5.0
    assert inner.C == 3.0


def test_before_the_fit_it_says_so(data):
    with pytest.raises(NotFittedError):
        LabeledOnly(LinearSVC()).predict(data[0])


def test_nothing_labeled_is_refused(data):
    with pytest.raises(ValueError, match="no labeled samples"):
        LabeledOnly(LinearSVC()).fit(data[0], np.full(60, -1))


@pytest.mark.parametrize("n", [40, 80])
def test_as_many_labels_as_samples_are_needed(data, n):
    X, _, y = data
    model = LabeledOnly(LinearSVC(random_state=0)).fit(X, y)
    with pytest.raises(ValueError, match="samples"):
        LabeledOnly(LinearSVC()).fit(X, np.resize(y, n))
    with pytest.raises(ValueError, match="samples"):
        model.score(X, np.resize(y, n))


# --- together


def test_grid_search_over_a_pipeline_of_parts_and_svm():
    digits = load_digits_49()
    y = np.where(np.arange(361) < 40, digits.target, -1)
    pipeline = make_pipeline(NMFAlpha(8, max_iter=30, random_state=0), LabeledOnly(LinearSVC()))
    grid = {"nmfalpha__lam": [0.0, 10.0], "labeledonly__estimator__C": [1.0, 10.0]}
    search = GridSearchCV(pipeline, grid, cv=LabeledKFold(4), error_score="raise")
    search.fit(digits.data, y)
    assert set(search.best_params_) == set(grid)
    assert search.best_score_ > 0.85
    assert search.score(digits.data[40:], digits.target[40:]) > 0.9
