"""The two classifiers: labels of every kind in, the same kind out."""

import pickle
import warnings

import numba
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score
from sklearn.preprocessing import normalize
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from marginparts import (
    NMFAlpha,
    NMFAlphaClassifier,
    NMFAlphaCV,
    TransductiveSVM,
    margin_directions,
    nmf_alpha,
)
from marginparts.datasets import load_digits_49, load_docstrings
from marginparts.selection import (
    C_GRID,
    DIRECTION_GRID_UNSCALED,
    LAM_GRID,
    LAM_GRID_UNSCALED,
    MAP_GRID,
)
from marginparts.solve.map import gram_root, map_rows

CLASSIFIERS = [NMFAlphaClassifier, TransductiveSVM]
GIVEN = {"lam": 2.0, "C": 3.0, "map_iter": 7, "normalize": False}
N, D = 90, 12


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Keep to one thread: on small data several only wait for each other."""
    threads = numba.get_num_threads()
    numba.set_num_threads(1)
    with threadpool_limits(1):
        yield
    numba.set_num_threads(threads)


def counts(classes):
    """Return counts in which each class favors its own words, and the classes."""
    rng = np.random.default_rng(0)
    truth = np.arange(N) % classes
    own = truth[:, None] == np.arange(D) * classes // D
    return rng.poisson(np.where(own, 5.0, 1.0)).astype(float), truth


def make(classifier, **options):
    """Return a small classifier that has nothing left to choose unless told so."""
    if classifier is TransductiveSVM:
        return classifier(random_state=0, **options)
    given = {"n_components": 6, "lam": 1.0, "C": 1.0, "map_iter": 10, "normalize": True}
    return classifier(max_iter=50, random_state=0, **{**given, **options})


def partly(truth, labeled=45):
    return np.where(np.arange(len(truth)) < labeled, truth, -1)


# --- two classes, many classes, many labels


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_two_classes_have_one_decision_value(classifier, container):
    X, truth = counts(2)
    X = container(X)
    model = make(classifier).fit(X, partly(truth))
    values, predicted = model.decision_function(X), model.predict(X)
    assert values.shape == (N,)
    assert_array_equal(predicted, (values > 0).astype(int))
    assert predicted.dtype == truth.dtype
    assert accuracy_score(truth[45:], predicted[45:]) > 0.9


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_many_classes_have_a_decision_value_each(classifier, container):
    X, truth = counts(3)
    X = container(X)
    model = make(classifier).fit(X, partly(truth))
    values, predicted = model.decision_function(X), model.predict(X)
    assert values.shape == (N, 3)
    assert_array_equal(predicted, values.argmax(axis=1))
    assert accuracy_score(truth[45:], predicted[45:]) > 0.8


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_many_labels_with_unknown_entries_and_rows(classifier):
    X, truth = counts(3)
    full = np.column_stack([truth == 0, truth != 0, truth == 2]).astype(int)
    y = full.copy()
    y[45:] = -1
    y[[2, 7], [0, 2]] = -1
    model = make(classifier).fit(X, y)
    predicted = model.predict(X)
    assert model.decision_function(X).shape == (N, 3)
    assert_array_equal(predicted, model.decision_function(X) > 0)
    assert predicted.dtype == np.int64
    assert_array_equal(model.classes_, [0, 1, 2])
    assert (predicted[45:] == full[45:]).mean() > 0.85


@pytest.mark.filterwarnings("ignore:Left out 1 of 3 classifiers")
@pytest.mark.parametrize("constant", [0, 1])
@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_a_label_that_all_or_none_have_is_always_or_never_predicted(classifier, constant):
    X, truth = counts(2)
    y = np.column_stack([truth, np.full(N, constant), 1 - truth])
    y[45:] = -1
    predicted = make(classifier).fit(X, y).predict(X)
    assert_array_equal(predicted[:, 1], constant)
    assert (predicted[45:, 0] == truth[45:]).mean() > 0.85


@pytest.mark.filterwarnings("ignore:Left out 1 of 3 classifiers")
@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_a_label_that_nobody_knows_is_never_predicted(classifier):
    X, truth = counts(2)
    y = np.column_stack([truth, np.full(N, -1), 1 - truth])
    assert_array_equal(make(classifier).fit(X, y).predict(X)[:, 1], 0)


# --- labels come back as they went in

NAMES = np.array(["ant", "bee", "cow"])


@pytest.mark.parametrize("mark", [None, float("nan"), -1], ids=["None", "NaN", "-1"])
@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_strings_come_back_as_strings(classifier, mark):
    X, truth = counts(3)
    y = [NAMES[k] if i < 45 else mark for i, k in enumerate(truth)]
    model = make(classifier).fit(X, y)
    plain = make(classifier).fit(X, partly(truth))
    assert_array_equal(model.classes_, NAMES)
    assert_array_equal(model.predict(X), NAMES[plain.predict(X)])


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_floats_with_nan_come_back_as_floats(classifier):
    X, truth = counts(3)
    y = np.where(np.arange(N) < 45, truth + 0.0, np.nan)
    model = make(classifier).fit(X, y)
    plain = make(classifier).fit(X, partly(truth))
    assert model.predict(X).dtype == np.float64
    assert_array_equal(model.predict(X), plain.predict(X))


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_booleans_come_back_as_booleans(classifier):
    X, truth = counts(2)
    model = make(classifier).fit(X, [bool(k) if i < 45 else None for i, k in enumerate(truth)])
    assert model.predict(X).dtype == bool
    assert model.score(X, truth == 1) > 0.9


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_the_papers_coding_is_read_with_a_warning(classifier):
    X, truth = counts(2)
    with pytest.warns(UserWarning, match="two classes"):
        model = make(classifier).fit(X, 2 * truth - 1)
    assert_array_equal(model.classes_, [-1, 1])
    assert_array_equal(model.predict(X), 2 * make(classifier).fit(X, truth).predict(X) - 1)


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_the_order_of_label_names_does_not_matter(classifier):
    X, truth = counts(2)
    y = partly(truth)
    model = make(classifier).fit(X, y)
    swapped = make(classifier).fit(X, np.where(y == -1, -1, 1 - y))
    size = np.abs(model.decision_function(X)).max()
    assert_allclose(
        swapped.decision_function(X), -model.decision_function(X), rtol=0, atol=0.01 * size
    )


# --- the score


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_score_ignores_unlabeled_rows(classifier):
    X, truth = counts(3)
    y = partly(truth, 30)
    model = make(classifier).fit(X, partly(truth))
    wrong = np.where(y == 2, 0, y)  # so that the score is not simply one
    expected = accuracy_score(wrong[:30], model.predict(X[:30]))
    assert 0 < expected < 1
    assert model.score(X, wrong) == expected
    assert model.score(X, np.where(wrong == -1, np.nan, wrong)) == expected
    assert model.score(sp.csr_array(X), wrong) == expected
    assert model.score(pd.DataFrame(X), wrong) == expected


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_score_of_many_labels_counts_rows_that_are_right_in_all(classifier):
    X, truth = counts(3)
    full = np.column_stack([truth == 0, truth != 0, truth == 2]).astype(int)
    y = full.copy()
    y[60:], y[3, 1] = -1, -1
    model = make(classifier).fit(X, y)
    known = (y != -1).all(axis=1)
    expected = (model.predict(X[known]) == full[known]).all(axis=1).mean()
    assert_allclose(model.score(X, y), expected)


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_score_weighs_samples(classifier):
    X, truth = counts(3)
    model = make(classifier).fit(X, partly(truth))
    right = model.predict(X) == 0
    y = np.where(np.arange(N) < 60, 0, -1)
    weights = np.arange(N, dtype=float)
    expected = np.average(right[:60], weights=weights[:60])
    assert_allclose(model.score(X, y, sample_weight=weights), expected)


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_minus_one_means_in_a_score_what_it_meant_in_the_fit(classifier):
    X, truth = counts(2)
    model = make(classifier).fit(X, partly(truth))
    only_ones = np.where(truth == 1, 1, -1)  # no zero left to tell that -1 is no class
    assert model.score(X, only_ones) == model.score(X[truth == 1], truth[truth == 1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make(classifier).fit(X, 2 * truth - 1)
        score = model.score(X[truth == 0], np.full(45, -1))
    assert score > 0.9


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_score_needs_labels_and_as_many_as_samples(classifier):
    X, truth = counts(2)
    model = make(classifier).fit(X, partly(truth))
    with pytest.raises(ValueError, match="labeled samples"):
        model.score(X, np.full(N, -1))
    for y in (truth[:60], partly(truth)[:60]):
        with pytest.raises(ValueError, match="samples"):
            model.score(X, y)


# --- NMFAlphaClassifier alone


def test_given_parameters_are_used():
    X, truth = counts(3)
    y = partly(truth)
    model = make(NMFAlphaClassifier, **GIVEN, pseudo="svm").fit(X, y)
    assert (model.lam_, model.C_, model.map_iter_, model.normalize_) == (2.0, 3.0, 7, False)
    parts = NMFAlpha(
        6, lam=2.0, map_iter=7, features="hellinger", pseudo="svm", max_iter=50, random_state=0
    )
    assert_allclose(model.transform(X), parts.fit(X, y).transform(X))
    assert_allclose(model.parts_.components_, parts.components_)


@pytest.mark.parametrize("free", [*GIVEN, "all"])
def test_what_is_left_to_choose_comes_from_the_grid(free):
    X, truth = counts(2)
    options = dict.fromkeys(GIVEN, "auto") if free == "all" else {**GIVEN, free: "auto"}
    model = make(NMFAlphaClassifier, **options, pseudo="svm").fit(X, partly(truth, 20))
    grids = {"lam": LAM_GRID, "C": C_GRID, "map_iter": MAP_GRID, "normalize": (True, False)}
    for name, value in options.items():
        chosen = getattr(model, f"{name}_")
        assert chosen in grids[name] if value == "auto" else chosen == value
    chosen = (6, model.lam_, model.map_iter_, model.normalize_, model.C_, model.direction_C_)
    assert chosen in model.selection_


def test_the_svm_is_linear_in_the_codes():
    X, truth = counts(3)
    model = make(NMFAlphaClassifier).fit(X, partly(truth))
    unit = normalize(model.parts_.transform(X))
    assert_allclose(model.decision_function(X), unit @ model.coef_.T + model.intercept_)


def test_the_length_of_a_sample_counts_unless_it_is_normalized_away():
    X, truth = counts(3)
    for normalized, factor in ((True, 1), (False, 2)):
        model = make(NMFAlphaClassifier, normalize=normalized, pseudo="svm").fit(X, partly(truth))
        once, twice = (model.decision_function(data) - model.intercept_ for data in (X, 2 * X))
        assert_allclose(twice, factor * once)


@pytest.mark.parametrize("normalized", [True, False])
def test_the_unit_of_the_data_does_not_matter(normalized):
    X, truth = counts(3)
    y = partly(truth)
    model = make(NMFAlphaClassifier, normalize=normalized)
    one, two = clone(model).fit(X, y), clone(model).fit(1024 * X, y)
    assert_allclose(two.decision_function(1024 * X), one.decision_function(X), rtol=1e-6)
    assert_array_equal(two.predict(1024 * X), one.predict(X))


def test_float32_codes_for_float32_data():
    X, truth = counts(2)
    model = make(NMFAlphaClassifier).fit(X.astype(np.float32), partly(truth))
    assert model.transform(X.astype(np.float32)).dtype == np.float32
    assert model.score(X.astype(np.float32), truth) > 0.9


def test_the_fitted_parts_are_a_transformer_of_their_own():
    X, truth = counts(2)
    model = make(NMFAlphaClassifier).fit(X, partly(truth))
    assert_array_equal(model.parts_.transform(X)[:, :6], model.transform(X))
    assert model.parts_.n_features_in_ == D
    with pytest.raises(ValueError, match="features"):
        model.parts_.transform(X[:, :5])


def test_the_seed_decides():
    X, truth = counts(3)
    y = partly(truth)
    one, two = (NMFAlphaClassifier(6, random_state=3).fit(X, y) for _ in range(2))
    assert_array_equal(one.decision_function(X), two.decision_function(X))


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_a_pickled_classifier_predicts_as_before(classifier):
    X, truth = counts(3)
    model = make(classifier).fit(X, partly(truth))
    copy = pickle.loads(pickle.dumps(model))
    assert_array_equal(copy.decision_function(X), model.decision_function(X))


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_before_the_fit_there_is_no_prediction(classifier):
    with pytest.raises(NotFittedError):
        classifier().predict(counts(2)[0])


# --- with few labels on real data


def draw(truth, per_class, seed):
    """Keep the labels of a few samples of each class."""
    rng = np.random.default_rng(seed)
    y = np.full(len(truth), -1)
    for k in np.unique(truth):
        y[rng.choice(np.flatnonzero(truth == k), per_class, replace=False)] = k
    return y


def test_one_label_a_class_is_enough_to_begin_with():
    digits = load_digits_49()
    scores = []
    for seed in range(5):
        y = draw(digits.target, 1, seed)
        model = NMFAlphaClassifier(16, random_state=0).fit(digits.data, y)
        scores.append(model.score(digits.data, digits.target))
    assert np.mean(scores) > 0.8


@pytest.mark.wide
def test_twenty_labels_are_enough_for_fours_and_nines():
    digits = load_digits_49()
    scores = []
    for seed in range(3):
        y = draw(digits.target, 10, seed)
        unseen = y == -1
        model = NMFAlphaClassifier(32, random_state=0).fit(digits.data, y)
        scores.append(model.score(digits.data[unseen], digits.target[unseen]))
    assert np.mean(scores) > 0.94


@pytest.mark.wide
def test_parts_beat_words_when_labels_are_few():
    docs = load_docstrings()
    X, truth = normalize(docs.data), docs.target
    parts, words = [], []
    for seed in range(2):
        y = draw(truth, 3, seed)
        unseen, known = y == -1, y != -1
        model = make(NMFAlphaClassifier, n_components=32).fit(X, y)
        parts.append(model.score(X[unseen], truth[unseen]))
        words.append(LinearSVC().fit(X[known], y[known]).score(X[unseen], truth[unseen]))
    assert np.mean(parts) > np.mean(words) + 0.04


def test_transduction_beats_induction_when_labels_are_few():
    digits = load_digits_49()
    with_unlabeled, without = [], []
    for seed in range(8):
        y = draw(digits.target, 10, seed)
        unseen, known = y == -1, y != -1
        X, X_unseen, truth = digits.data, digits.data[unseen], digits.target[unseen]
        model = TransductiveSVM(random_state=0)
        with_unlabeled.append(model.fit(X, y).score(X_unseen, truth))
        without.append(clone(model).fit(X[known], y[known]).score(X_unseen, truth))
    assert np.mean(with_unlabeled) > np.mean(without) + 0.01


# --- TransductiveSVM alone


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_with_everything_labeled_it_is_an_ordinary_svm(fit_intercept):
    X, truth = counts(3)
    model = TransductiveSVM(C=0.1, fit_intercept=fit_intercept, tol=1e-6).fit(X, truth)
    svm = LinearSVC(
        C=0.1, fit_intercept=fit_intercept, tol=1e-8, max_iter=100_000, random_state=0
    ).fit(X, truth)
    assert_allclose(model.decision_function(X), svm.decision_function(X), rtol=1e-3, atol=1e-3)


def test_data_may_have_any_sign():
    X, truth = counts(2)
    centered = X - X.mean(axis=0)
    assert TransductiveSVM().fit(centered, partly(truth)).score(centered, truth) > 0.9


# --- the paper's own


def test_the_papers_classifier_is_what_the_papers_equations_give():
    X, truth = samples_of_three()
    y = np.where(np.arange(len(X)) < 45, truth, -1)
    given = {"lam": 3.0, "direction_C": 0.5, "C": 1.0, "max_iter": 30, "rehearse": False}
    model = NMFAlphaClassifier.paper(4, **given, random_state=5).fit(X, y)
    S = margin_directions(X, y, multiclass="ovo", C=0.5, scale=False, random_state=5)
    result = nmf_alpha(X, 4, S=S, lam=3.0, solver="mu", max_iter=30, random_state=5)
    parts = result.V / result.V.sum(axis=0)
    assert_allclose(model.parts_.components_, parts.T, rtol=1e-9)
    H = map_rows(X, parts, None)
    assert_allclose(model.transform(X), H @ gram_root(parts), rtol=1e-6)


def test_the_papers_classifier_tunes_its_weight_and_its_costs():
    X, truth = samples_of_three()
    y = np.where(np.arange(len(X)) < 45, truth, -1)
    model = NMFAlphaCV.paper((3,), max_iter=5, cv=2, random_state=0).fit(X, y)
    assert {setting.lam for setting in model.selection_} == set(LAM_GRID_UNSCALED)
    assert {setting.direction_C for setting in model.selection_} == set(DIRECTION_GRID_UNSCALED)
    assert model.direction_C_ == model.parts_.direction_C
    assert model.map_iter_ is None
    assert model.score(X[45:], truth[45:]) > 0.6


def samples_of_three(n=90):
    """Return samples of three classes, each using its own four of twelve features more."""
    rng = np.random.default_rng(0)
    truth = np.arange(n) % 3
    X = rng.gamma(1.0, size=(n, 12))
    X[np.repeat(np.eye(3, dtype=bool), 4, axis=1)[truth]] *= 3
    return X, truth
