"""Bad input gets one clear sentence, before any work is done."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

import marginparts.svm._dual_cd
from marginparts import (
    ConstrainedNMF,
    NMFAlpha,
    NMFAlphaClassifier,
    OnlineNMFAlphaClassifier,
    SemiSupervisedNMF,
    TransductiveSVM,
    class_start,
    margin_directions,
    nmf_alpha,
)
from marginparts.backends.cpu.backend import NumbaBackend
from marginparts.validation import check_matrix

N, D = 20, 6
X = np.random.default_rng(0).random((N, D)) + 0.1
Y = np.where(np.arange(N) < 10, np.arange(N) % 2, -1)

FACTORIZERS = [NMFAlpha, NMFAlphaClassifier, SemiSupervisedNMF, ConstrainedNMF]
CLASSIFIERS = [NMFAlphaClassifier, TransductiveSVM]


def small(estimator, n_components=3):
    """Return an estimator of few parts that has nothing left to choose."""
    if estimator is TransductiveSVM:
        return estimator()
    if estimator is NMFAlphaClassifier:
        return estimator(n_components, lam=1.0, C=1.0, map_iter=5, normalize=True, random_state=0)
    return estimator(n_components, random_state=0)


@pytest.fixture
def no_work(monkeypatch):
    """Fail as soon as an SVM is trained or a matrix made ready for the kernels."""

    def work(*args, **kwargs):
        pytest.fail("work began before the input was refused")

    monkeypatch.setattr(marginparts.svm._dual_cd, "solve_all", work)
    monkeypatch.setattr(NumbaBackend, "prepare", work)


def spoiled(value):
    bad = X.copy()
    bad[3, 2] = value
    return bad


# name: (X, words of the sentence)
BAD_DATA = {
    "negative": (spoiled(-1), "[Nn]egative"),
    "sparse negative": (sp.csr_array(spoiled(-1)), "[Nn]egative"),
    "NaN": (spoiled(np.nan), "NaN"),
    "sparse NaN": (sp.csr_array(spoiled(np.nan)), "NaN"),
    "infinite": (spoiled(np.inf), "infinity"),
    "zero": (np.zeros((N, D)), "at least one positive"),
    "sparse zero": (sp.csr_array((N, D)), "at least one positive"),
    "1d": (X[0], "2D array"),
    "3d": (X[None], "dim 3|3d"),
    "no samples": (X[:0], "0 sample"),
    "words": (np.array([["a", "b"]] * N), "texts"),
}


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize("name", BAD_DATA)
@pytest.mark.parametrize("estimator", FACTORIZERS)
def test_bad_data_is_refused_in_a_fit(estimator, name):
    bad, words = BAD_DATA[name]
    with pytest.raises(ValueError, match=words):
        estimator(3).fit(bad, Y)


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize("name", BAD_DATA)
@pytest.mark.parametrize(
    "call",
    [lambda X: nmf_alpha(X, 3), lambda X: class_start(X, Y, 3)],
    ids=["nmf_alpha", "class_start"],
)
def test_bad_data_is_refused_by_the_functions(call, name):
    bad, words = BAD_DATA[name]
    with pytest.raises(ValueError, match=words):
        call(bad)


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize("name", ["negative", "NaN", "infinite", "1d", "no samples"])
def test_bad_data_is_refused_by_margin_directions(name):
    bad, words = BAD_DATA[name]
    with pytest.raises(ValueError, match=words):
        margin_directions(bad, Y)


@pytest.mark.parametrize("name", ["NaN", "infinite", "1d", "no samples"])
def test_bad_data_is_refused_by_the_transductive_svm(name):
    bad, words = BAD_DATA[name]
    with pytest.raises(ValueError, match=words):
        TransductiveSVM().fit(bad, Y)


@pytest.mark.parametrize("estimator", [*FACTORIZERS, TransductiveSVM])
def test_other_features_than_in_the_fit_are_refused(estimator):
    model = small(estimator).fit(X, Y)
    use = getattr(model, "transform", None) or model.predict
    for wrong in (X[:, :4], np.hstack([X, X]), sp.csr_array(np.hstack([X, X]))):
        with pytest.raises(ValueError, match="features"):
            use(wrong)


@pytest.mark.parametrize("estimator", FACTORIZERS)
def test_bad_data_is_refused_in_a_transform(estimator):
    model = small(estimator).fit(X, Y)
    for name in ("negative", "NaN", "infinite", "1d"):
        bad, words = BAD_DATA[name]
        with pytest.raises(ValueError, match=words):
            model.transform(bad)


def test_codes_of_another_width_are_refused():
    model = NMFAlpha(3).fit(X, Y)
    with pytest.raises(ValueError, match="5 columns, expected 3"):
        model.inverse_transform(np.ones((2, 5)))


# --- parameters

BAD_PARAMETERS = [
    ("lam", -1, "0 or larger"),
    ("lam", np.nan, "finite number"),
    ("lam", np.inf, "finite number"),
    ("lam", "big", "number"),
    ("lam", None, "finite number"),
    ("lam", True, "finite number"),
    ("C", 0, "larger than 0"),
    ("C", -1.0, "larger than 0"),
    ("C", "big", "number"),
    ("n_components", 0, "1 or larger"),
    ("n_components", 2.5, "integer"),
    ("n_components", "many", "integer"),
    ("n_components", True, "integer"),
    ("map_iter", 0, "1 or larger"),
    ("map_iter", 2.5, "integer"),
    ("max_iter", 0, "1 or larger"),
    ("max_iter", 10.0, "integer"),
    ("tol", -1e-3, "0 or larger"),
    ("tol", "small", "finite number"),
    ("solver", "newton", "mu, mue"),
    ("solver", None, "mu, mue"),
    ("output", "codes", "gram, coefficients"),
    ("multiclass", "one", "ovr, ovo"),
    ("directions", "forest", "svm, perceptron"),
    ("directions", 3, "svm, perceptron"),
    ("features", "sift", "hellinger"),
    ("features", 3, "hellinger"),
    ("pseudo", "all", "svm, tsvm"),
    ("pseudo", True, "svm, tsvm"),
    ("init", "zeros", "random, nndsvda"),
    ("init", None, "pair"),
    ("init", 3, "pair"),
    ("init", (np.ones((N, 3)),), "pair"),
    ("init", (np.ones((N, 2)), np.ones((D, 3))), r"H of init.*\(20, 3\)"),
    ("init", (np.ones((N, 3)), np.ones((3, D))), r"V of init.*\(6, 3\)"),
    ("init", (np.ones((N, 3)), -np.ones((D, 3))), "V of init.*negative"),
    ("init", (np.full((N, 3), np.nan), np.ones((D, 3))), "NaN"),
    ("backend", "abacus", "'torch-half' or 'reference'"),
    ("random_state", "lucky", "must be an int, 0 or larger"),
]


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize(
    ("estimator", "name", "value", "words"),
    [(e, *case) for e in FACTORIZERS for case in BAD_PARAMETERS if case[0] in e().get_params()],
)
def test_a_bad_parameter_is_refused_in_a_fit(estimator, name, value, words):
    model = estimator(3).set_params(**{name: value})
    with pytest.raises(ValueError, match=words):
        model.fit(X, Y)


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        *(
            case
            for case in BAD_PARAMETERS
            if case[0] in ("lam", "n_components", "max_iter", "tol", "solver", "init", "backend")
        ),
        ("S", -np.ones((N, 2)), "negative"),
        ("S", sp.csr_array(-np.ones((N, 2))), "negative"),
        ("S", np.ones((3, 2)), "3 rows and X has 20"),
        ("S", np.full((N, 2), np.nan), "NaN"),
        ("S", np.ones(N), "2D array"),
    ],
)
def test_a_bad_argument_of_nmf_alpha_is_refused(name, value, words):
    arguments = {"n_components": 3, "S": np.ones((N, 2)), "init": "nndsvda", name: value}
    with pytest.raises(ValueError, match=words):
        nmf_alpha(X, **arguments)


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("directions", "forest", "svm, perceptron"),
        ("multiclass", "one", "ovr, ovo"),
        ("C", 0, "larger than 0"),
        ("pseudo", "all", "svm, tsvm"),
        ("features", "sift", "hellinger"),
        ("features", np.ones((3, 2)), "3 rows and X has 20"),
        ("features", np.full((N, 2), np.nan), "NaN"),
    ],
)
def test_a_bad_argument_of_margin_directions_is_refused(name, value, words):
    with pytest.raises(ValueError, match=words):
        margin_directions(X, Y, **{name: value})


@pytest.mark.parametrize(("name", "value"), [("C", 0), ("C", "auto"), ("tol", 0), ("tol", -1)])
def test_a_bad_parameter_of_the_transductive_svm_is_refused(name, value):
    with pytest.raises(ValueError, match=f"{name}=.*larger than 0"):
        TransductiveSVM(**{name: value}).fit(X, Y)


# --- labels


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize("estimator", [*FACTORIZERS, TransductiveSVM])
@pytest.mark.parametrize(
    ("y", "words"),
    [
        (Y[:5], "20 samples and y has 5"),
        (np.linspace(0, 1, N), "continuous"),
        (np.where(Y == 0, np.inf, Y), "infinity"),
        (np.full((N, 2), 7), "indicator"),
    ],
    ids=["length", "continuous", "infinity", "indicator"],
)
def test_bad_labels_are_refused(estimator, y, words):
    with pytest.raises(ValueError, match=words):
        small(estimator).fit(X, y)


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize("classifier", CLASSIFIERS)
@pytest.mark.parametrize(
    ("y", "words"),
    [
        (None, "requires y"),
        (np.full(N, -1), "needs labeled samples"),
        ([None] * N, "needs labeled samples"),
        (np.full((N, 2), -1), "needs labeled samples"),
        (np.full(N, 3), "one class"),
        (np.where(Y == 0, 0, -1), "one class"),
    ],
)
def test_classifiers_need_two_classes(classifier, y, words):
    with pytest.raises(ValueError, match=words):
        small(classifier).fit(X, y)


@pytest.mark.parametrize("y", [np.full(N, -1), np.full(N, 3)], ids=["no labels", "one class"])
def test_without_two_classes_nmf_alpha_says_that_it_is_plain_nmf(y):
    model = NMFAlpha(3, init="random", random_state=0)
    with pytest.warns(UserWarning, match="plain NMF"):
        components = model.fit(X, y).components_
    assert_array_equal(components, model.fit(X).components_)


def test_a_class_that_cannot_be_told_apart_is_left_out_and_named():
    data = X.copy()
    data[[4, 8]] = 0  # the only samples of class 2 are empty
    y = np.where(np.isin(np.arange(N), (4, 8)), 2, Y)
    with pytest.warns(UserWarning, match=r"Left out 1 of 3 classifiers.*: 2\."):
        S = margin_directions(data, y)
    assert S.shape == (N, 4)


@pytest.mark.parametrize("estimator", FACTORIZERS)
@pytest.mark.parametrize("shape", [(N, 2), (7, D)], ids=["features", "samples"])
def test_more_components_than_samples_or_features_is_a_warning(estimator, shape):
    model = small(estimator, 8)
    with pytest.warns(UserWarning, match="n_components=8 is larger"):
        model.fit(X[: shape[0], : shape[1]], Y[: shape[0]])
    assert model.transform(X[: shape[0], : shape[1]]).shape == (shape[0], 8)


def test_more_components_than_features_is_a_warning_of_nmf_alpha_too():
    with pytest.warns(UserWarning, match="n_components=8 is larger"):
        assert nmf_alpha(X, 8).V.shape == (D, 8)


# --- what is made of good data


@pytest.mark.parametrize(
    ("given", "made"),
    [(np.float64, np.float64), (np.float32, np.float32), (np.int64, np.float64), (bool, float)],
)
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array, sp.coo_array, sp.csc_array])
def test_float32_and_float64_are_kept_and_all_else_is_float64(container, given, made):
    assert check_matrix(container(X.astype(given)), "test").dtype == made


def test_duplicates_are_merged_and_stored_zeros_dropped_in_a_copy():
    entries = ([1.0, 2.0, 0.0], ([0, 0, 1], [1, 1, 0]))
    given = sp.csr_array(
        (np.array(entries[0]), np.array([1, 1, 0], np.int32), np.array([0, 2, 3], np.int32)),
        shape=(2, 2),
    )
    made = check_matrix(given, "test")
    assert_array_equal(made.toarray(), [[0, 3], [0, 0]])
    assert made.nnz == 1
    assert given.nnz == 3


@pytest.mark.parametrize("estimator", FACTORIZERS)
@pytest.mark.parametrize("container", [np.array, sp.csr_array])
def test_a_fit_leaves_its_data_and_labels_alone(estimator, container):
    data, y = container(X), Y.copy()
    small(estimator).fit(data, y).transform(data)
    assert_array_equal(data.toarray() if sp.issparse(data) else data, X)
    assert_array_equal(y, Y)


TEXTS = ["one text", "another text"] * 3


@pytest.mark.parametrize(
    "X", [TEXTS, np.array(TEXTS), np.array(TEXTS, dtype=object), np.array(TEXTS)[:, None]],
    ids=["list", "array", "objects", "column"],
)  # fmt: skip
@pytest.mark.parametrize(
    "estimator",
    [NMFAlpha(2), NMFAlphaClassifier(2), TransductiveSVM(), OnlineNMFAlphaClassifier(2)],
    ids=lambda estimator: type(estimator).__name__,
)
def test_texts_are_refused_with_a_way_out(estimator, X):
    with pytest.raises(ValueError, match=r"CountVectorizer .*fit_file"):
        estimator.fit(X, [0, 1] * 3)


def test_missing_values_are_refused_with_a_way_out_of_our_own():
    with pytest.raises(ValueError, match=r"contains NaN.*SimpleImputer") as error:
        NMFAlpha(2).fit(spoiled(np.nan))
    assert "HistGradientBoosting" not in str(error.value)
