"""What y means: every rule at the head of `marginparts.labels`."""

import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.exceptions import DataConversionWarning

from marginparts import (
    ConstrainedNMF,
    NMFAlpha,
    NMFAlphaClassifier,
    SemiSupervisedNMF,
    TransductiveSVM,
    load,
    save,
)
from marginparts.app.report._payload import _question_names
from marginparts.labels import Labels, encode_labels

NAN = float("nan")

# name: (y, classes, codes)
ONE_LABEL = {
    "integers": ([7, 3, -1, 7], [3, 7], [1, 0, -1, 1]),
    "a tuple": ((0, 1, -1), [0, 1], [0, 1, -1]),
    "integer array": (np.array([0, 1, -1]), [0, 1], [0, 1, -1]),
    "unsigned array": (np.array([0, 255], np.uint8), [0, 255], [0, 1]),
    "a masked array": (np.ma.array([7, 3, 9, 7], mask=[0, 0, 1, 0]), [3, 7], [1, 0, -1, 1]),
    "masked strings": (np.ma.array(["b", "c", "a"], mask=[0, 1, 0]), ["a", "b"], [1, -1, 0]),
    "floats": (np.array([2.0, 1.0, -1.0, NAN]), [1.0, 2.0], [1, 0, -1, -1]),
    "None among integers": ([4, None, 9], [4, 9], [0, -1, 1]),
    "None among floats": ([4.0, None, 9.0], [4.0, 9.0], [0, -1, 1]),
    "None and -1 together": ([4, None, 9, -1], [4, 9], [0, -1, 1, -1]),
    "booleans": (np.array([True, False]), [False, True], [1, 0]),
    "booleans with None": ([True, None, False], [False, True], [1, -1, 0]),
    "strings": (np.array(["b", "a", "b"]), ["a", "b"], [1, 0, 1]),
    "strings with None": (["b", None, "a"], ["a", "b"], [1, -1, 0]),
    "strings with NaN": (["b", NAN, "a"], ["a", "b"], [1, -1, 0]),
    "strings with pandas' NA": (["b", pd.NA, "a"], ["a", "b"], [1, -1, 0]),
    "strings with -1": (["b", -1, "a", -1.0], ["a", "b"], [1, -1, 0, -1]),
    "object array": (np.array(["b", None, "a", NAN], object), ["a", "b"], [1, -1, 0, -1]),
    "pandas strings": (pd.Series(["b", None, "a"]), ["a", "b"], [1, -1, 0]),
    "pandas categories": (pd.Series(["b", None, "a"], dtype="category"), ["a", "b"], [1, -1, 0]),
    "pandas Int64": (pd.Series([9, None, 4], dtype="Int64"), [4, 9], [1, -1, 0]),
    "polars strings": (pl.Series(["b", None, "a"]), ["a", "b"], [1, -1, 0]),
    "-1 and 1 with a third label": ([-1, 1, 0], [0, 1], [-1, 1, 0]),
    "one class": ([5, 5, -1], [5], [0, 0, -1]),
    "nothing but -1": ([-1, -1], [], [-1, -1]),
    "nothing but None": ([None, None], [], [-1, -1]),
    "a string that looks like -1": (["-1", "a"], ["-1", "a"], [0, 1]),
}


@pytest.mark.parametrize("name", ONE_LABEL)
def test_one_label_a_sample(name):
    y, classes, codes = ONE_LABEL[name]
    labels = encode_labels(y)
    assert labels.classes.tolist() == classes
    assert_array_equal(labels.codes, codes)
    assert_array_equal(labels.labeled, np.array(codes) >= 0)
    assert not labels.multilabel


# name: (y, codes)
INDICATORS = {
    "lists": ([[1, 0], [-1, 1]], [[1, 0], [-1, 1]]),
    "integer array": (np.array([[1, 0], [-1, -1]]), [[1, 0], [-1, -1]]),
    "booleans": (np.array([[True, False], [False, True]]), [[1, 0], [0, 1]]),
    "masked entries": (np.ma.array([[1, 1], [0, 1]], mask=[[0, 1], [0, 0]]), [[1, -1], [0, 1]]),
    "NaN entries": (np.array([[1, NAN], [0, 1]]), [[1, -1], [0, 1]]),
    "None entries": ([[1, None], [0, 1]], [[1, -1], [0, 1]]),
    "sparse": (sp.csr_array([[0, 1], [1, 0]]), [[0, 1], [1, 0]]),
    "pandas": (pd.DataFrame([[1, -1], [0, 1]]), [[1, -1], [0, 1]]),
    "only -1 and 1": ([[1, -1], [-1, 1]], [[1, -1], [-1, 1]]),
}


@pytest.mark.parametrize("name", INDICATORS)
def test_several_labels_a_sample(name):
    y, codes = INDICATORS[name]
    labels = encode_labels(y)
    assert labels.multilabel
    assert_array_equal(labels.classes, [0, 1])
    assert_array_equal(labels.codes, codes)


TABLES = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
}


@pytest.mark.parametrize("table", TABLES)
def test_the_columns_of_a_table_name_the_classes(table):
    labels = encode_labels(TABLES[table]({"tea": [1, 0], "milk": [None, 1], "no": [0, 1]}))
    assert_array_equal(labels.classes, ["tea", "milk", "no"])
    assert_array_equal(labels.codes, [[1, -1, 0], [0, 1, 1]])
    assert [task.name for task in labels.tasks()] == ["tea", "milk", "no"]


def test_columns_may_be_named_by_numbers_and_by_pairs():
    years = pd.DataFrame([[1, 0], [0, 1]], columns=[2001, 2000])
    assert_array_equal(encode_labels(years).classes, [2001, 2000])
    years.columns = pd.MultiIndex.from_tuples([("a", 1), ("a", 2)])
    assert_array_equal(encode_labels(years).classes, ["('a', 1)", "('a', 2)"])


# name: (columns of y or None, classes of the fit, columns of y in their order)
ORDERS = {
    "the same": (["a", "b", "c"], ["a", "b", "c"], [0, 1, 2]),
    "another order": (["c", "a", "b"], ["a", "b", "c"], [1, 2, 0]),
    "numbers in another order": ([2, 0, 1], [0, 1, 2], [1, 2, 0]),
    "an array": (None, ["b", "a", "c"], [0, 1, 2]),
    "a fit on an array": (["c", "a", "b"], [0, 1, 2], [0, 1, 2]),
    "years after a fit on an array": ([2002, 2001, 2000], [0, 1, 2], [0, 1, 2]),
}


@pytest.mark.parametrize("name", ORDERS)
def test_columns_are_put_into_the_order_of_the_fit_by_their_names(name):
    columns, classes, order = ORDERS[name]
    codes = np.array([[1, 0, 0], [0, 1, 0], [-1, 1, 1]])
    y = codes if columns is None else pd.DataFrame(codes, columns=columns)
    labels = encode_labels(y, classes=np.array(classes))
    assert_array_equal(labels.classes, classes)
    assert_array_equal(labels.codes, codes[:, order])


@pytest.mark.parametrize("columns", [["a", "x"], ["a"] * 2, ["a", "b", "c"]])
def test_columns_of_other_names_are_refused(columns):
    y = pd.DataFrame(np.eye(3, len(columns), dtype=int), columns=columns)
    with pytest.raises(ValueError, match=r"the same ones, in any order|name of its own"):
        encode_labels(y, classes=np.array(["a", "b"]))


def test_a_sparse_indicator_with_most_rows_empty_is_doubted():
    y = np.zeros((5, 3), int)
    y[:2, 1] = 1
    with pytest.warns(UserWarning, match="3 of 5 rows of the sparse y have no entry.*to -1"):
        labels = encode_labels(sp.csr_array(y))
    assert_array_equal(labels.codes, y)  # and yet they are labeled: no label applies
    assert labels.complete.all()
    encode_labels(y)  # who writes zeros means them; a warning would be an error
    encode_labels(sp.csr_array(y[:4]))  # half
    y[2:] = -1
    assert_array_equal(encode_labels(sp.csr_array(y)).labeled, [True, True, False, False, False])


@pytest.mark.parametrize("y", [[-1, 1, 1], np.array([-1.0, 1.0, 1.0])], ids=["list", "floats"])
def test_exactly_minus_one_and_one_are_two_classes_and_say_so(y):
    with pytest.warns(UserWarning, match="two classes.*None or NaN"):
        labels = encode_labels(y)
    assert_array_equal(labels.classes, [-1, 1])
    assert_array_equal(labels.codes, [0, 1, 1])


def test_minus_one_is_unlabeled_when_the_known_classes_lack_it():
    labels = encode_labels([-1, 1, 1], classes=[0, 1])  # a warning would be an error
    assert_array_equal(labels.labeled, [False, True, True])


@pytest.mark.parametrize("y", [[-1, 1], [1, 1], [-1, -1]])
def test_minus_one_is_a_label_when_the_known_classes_have_it(y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        labels = encode_labels(y, classes=[-1, 1])
    assert_array_equal(labels.classes[labels.codes], y)
    assert labels.labeled.all()


@pytest.mark.parametrize("missing", [NAN, None])
def test_who_marks_unlabeled_rows_properly_needs_no_advice_about_minus_one(missing):
    labels = encode_labels([-1, 1, missing])  # a warning would be an error
    assert_array_equal(labels.classes, [-1, 1])
    assert_array_equal(labels.codes, [0, 1, -1])


def test_one_label_for_each_of_many_classes_is_no_cause_for_alarm():
    labels = encode_labels([*range(30), None, None])  # a warning would be an error
    assert len(labels.classes) == 30


@pytest.mark.parametrize("make", [np.array, sp.csr_array], ids=["dense", "sparse"])
def test_a_column_is_taken_as_one_label_a_sample(make):
    with pytest.warns(DataConversionWarning, match="column-vector y"):
        labels = encode_labels(make([[0], [1], [1]]))
    assert_array_equal(labels.codes, [0, 1, 1])


@pytest.mark.parametrize(
    ("y", "words"),
    [
        ([0.5, 1.5, 2.25], "continuous"),
        ([0.5, None, 2.25], "continuous"),
        ([0.0, float("inf"), 1.0], "infinity"),
        ([0, float("-inf"), None], "infinity"),
        (["a", 1, "b"], "strings and numbers"),
        ([[2, 0], [0, 1]], "indicator of 0 and 1"),
        ([[0.5, 0], [0, 1]], "indicator of 0 and 1"),
        ([["a", "b"], ["c", "d"]], "indicator of 0 and 1"),
        ([["a"], ["b", "c"]], "MultiLabelBinarizer"),
        ([("a",), ("b", "c")], "MultiLabelBinarizer"),
        ([{"a"}, {"b", "c"}, None], "MultiLabelBinarizer"),
        (pd.Series([["a"], ["b", "c"]]), "MultiLabelBinarizer"),
        (pd.Series([["a", "b"], ["b", "c"]]), "MultiLabelBinarizer"),
        (np.array([1, 0, 2], complex), "complex"),
        (np.zeros((2, 2, 2)), "1d array or a 2d indicator"),
        (3, "1d array or a 2d indicator"),
    ],
)
def test_what_cannot_be_labels_is_refused(y, words):
    with pytest.raises(ValueError, match=words):
        encode_labels(y)


@pytest.mark.parametrize(
    "y", [np.array(["b", NAN]), ["b", "", "a", None], pd.Series(["a", "None"])]
)
def test_a_string_that_looks_like_nothing_is_doubted(y):
    with pytest.warns(UserWarning, match=r"the label '(nan||None)', which is read as a class"):
        encode_labels(y)


def test_classes_of_a_fit_are_doubted_no_second_time():
    encode_labels(["", "a"], classes=["", "a"])


@pytest.mark.parametrize("y", [[0, 1], [[0, 1], [1, 0]]])
def test_the_number_of_labels_must_be_that_of_the_samples(y):
    with pytest.raises(ValueError, match="3 samples and y has 2"):
        encode_labels(y, 3)


@pytest.mark.parametrize("y", [np.array([2, -1, 0]), np.array([2.0, NAN]), np.array([[1, -1]])])
def test_y_is_not_changed(y):
    before = y.copy()
    encode_labels(y)
    assert_array_equal(y, before)


def test_a_row_is_labeled_by_one_known_entry_and_complete_by_all():
    labels = encode_labels([[1, 0], [-1, 1], [-1, -1]])
    assert_array_equal(labels.labeled, [True, True, False])
    assert_array_equal(labels.complete, [True, False, False])
    assert_array_equal(labels.members(1), [1])


def test_hiding_rows_leaves_the_original_and_the_classes():
    labels = encode_labels([0, 1, 2])
    hidden = labels.hide(np.array([0, 2]))
    assert_array_equal(hidden.codes, [-1, 1, -1])
    assert_array_equal(hidden.classes, labels.classes)
    assert_array_equal(labels.codes, [0, 1, 2])


def test_taking_rows_keeps_the_classes():
    labels = encode_labels([0, 1, 2]).take(np.array([2, 1]))
    assert_array_equal(labels.codes, [2, 1])
    assert_array_equal(labels.classes, [0, 1, 2])


def tasks(labels: Labels, multiclass: str) -> dict[str, tuple[list[int], list[float]]]:
    return {t.name: (t.rows.tolist(), t.signs.tolist()) for t in labels.tasks(multiclass)}


@pytest.mark.parametrize("multiclass", ["ovr", "ovo"])
def test_two_classes_make_one_task_with_the_later_one_positive(multiclass):
    labels = encode_labels(["cat", None, "dog"])
    assert tasks(labels, multiclass) == {"dog v cat": ([0, 2], [-1, 1])}


def test_one_task_a_class_sees_all_labeled_rows():
    labels = encode_labels([0, 1, -1, 2])
    assert tasks(labels, "ovr") == {
        "0": ([0, 1, 3], [1, -1, -1]),
        "1": ([0, 1, 3], [-1, 1, -1]),
        "2": ([0, 1, 3], [-1, -1, 1]),
    }


def test_one_task_a_pair_sees_the_rows_of_that_pair():
    labels = encode_labels([0, 1, -1, 2])
    assert tasks(labels, "ovo") == {
        "1 v 0": ([0, 1], [-1, 1]),
        "2 v 0": ([0, 3], [-1, 1]),
        "2 v 1": ([1, 3], [-1, 1]),
    }


@pytest.mark.parametrize("multiclass", ["ovr", "ovo"])
def test_each_of_several_labels_is_a_task_over_its_known_entries(multiclass):
    labels = encode_labels([[1, 0], [-1, 1], [0, -1]])
    assert tasks(labels, multiclass) == {"0": ([0, 2], [1, -1]), "1": ([0, 1], [-1, 1])}


# --- in the estimators


def drinks(n=40):
    """Return counts and three labels a sample by name, some of them unknown."""
    rng = np.random.default_rng(0)
    y = pd.DataFrame(rng.integers(2, size=(n, 3)), columns=["tea", "milk", "jam"])
    X = rng.poisson(1 + 6 * y.to_numpy().repeat(2, axis=1)).astype(float)
    known = y.copy()
    known[::4] = -1
    return X, y, known


def classifier():
    return NMFAlphaClassifier(
        3, lam=1.0, C=1.0, map_iter=5, normalize=True, max_iter=5, random_state=0
    )


@pytest.mark.parametrize("estimator", [NMFAlpha, SemiSupervisedNMF, ConstrainedNMF])
def test_transformers_keep_the_names_of_columns(estimator):
    X, _, known = drinks()
    model = estimator(3, max_iter=3, random_state=0).fit(X, known)
    assert_array_equal(model.classes_, known.columns)
    if estimator is NMFAlpha:
        assert_array_equal(model.margin_names_, known.columns)


@pytest.mark.parametrize("make", [classifier, TransductiveSVM])
def test_classifiers_keep_the_names_of_columns_and_score_by_them(make, tmp_path):
    X, y, known = drinks()
    model = make().fit(X, known)
    assert_array_equal(model.classes_, ["tea", "milk", "jam"])
    turned = y[["jam", "tea", "milk"]]
    assert model.score(X, turned) == model.score(X, y) == model.score(X, y.to_numpy())
    assert model.score(X, y) > model.score(X, turned.to_numpy())  # an array's have no names
    assert model.score(X, pl.DataFrame(turned.to_dict("list"))) == model.score(X, y)
    for wrong in (y.rename(columns={"jam": "honey"}), y[["tea", "milk"]]):
        with pytest.raises(ValueError, match="the same ones, in any order"):
            model.score(X, wrong)
    with pytest.raises(ValueError, match=r"shape \(40, 2\), but the fit had an indicator with 3"):
        model.score(X, y.to_numpy()[:, :2])
    save(model, tmp_path / "drinks.model")
    assert_array_equal(load(tmp_path / "drinks.model").classes_, model.classes_)


def test_a_page_names_the_questions_of_named_and_of_numbered_columns():
    for classes in (["tea", "milk"], [0, 1]):
        parts = SimpleNamespace(margin_names_=np.array(classes[::-1], dtype=str))
        classifier = SimpleNamespace(parts_=parts, classes_=np.array(classes))
        model = SimpleNamespace(classifier=classifier, multilabel=True, class_names=["a", "b"])
        assert _question_names(model) == ["b", "a"]
