"""NMFAlphaCV: the classifier that chooses everything."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

from marginparts import NMFAlphaClassifier, NMFAlphaCV
from marginparts.datasets import load_digits_49

DIGITS = load_digits_49()


def partly(n_labeled):
    return np.where(np.arange(len(DIGITS.target)) < n_labeled, DIGITS.target, -1)


@pytest.fixture(scope="module")
def fitted():
    return NMFAlphaCV((2, 8), lam=(1.0, 10.0), random_state=0).fit(DIGITS.data, partly(80))


def test_what_is_chosen_is_among_the_candidates_and_has_the_best_rank(fitted):
    assert fitted.n_components_ in (2, 8)
    assert fitted.lam_ in (1.0, 10.0)
    assert fitted.parts_.components_.shape[0] == fitted.n_components_
    table = fitted.cv_results_
    whole = table["mean_score"][~table["dropped"]]
    ranks = table["n_components"][~table["dropped"]]
    assert ranks[whole.argmax()] == fitted.n_components_


def test_the_table_has_a_row_a_candidate(fitted):
    sizes = {len(column) for column in fitted.cv_results_.values()}
    assert sizes == {len(fitted.selection_)}
    assert fitted.best_params_ == {
        "n_components": fitted.n_components_,
        "lam": fitted.lam_,
        "map_iter": fitted.map_iter_,
        "normalize": fitted.normalize_,
        "C": fitted.C_,
        "direction_C": fitted.direction_C_,
    }
    assert 0.5 < fitted.best_score_ <= 1


def test_it_is_the_classifier_with_those_parameters(fitted):
    chosen = NMFAlphaClassifier(**fitted.best_params_, random_state=0)
    chosen.fit(DIGITS.data, partly(80))
    assert_array_equal(chosen.decision_function(DIGITS.data), fitted.decision_function(DIGITS.data))


def test_few_labels_are_said_to_be_few():
    few = NMFAlphaCV((4,), lam=1.0, C=1.0, random_state=0).fit(DIGITS.data, partly(20))
    assert "20 labeled samples" in few.doubt_
    none = NMFAlphaCV((4, 8), random_state=0).fit(DIGITS.data, partly(2))
    assert "nothing was compared" in none.doubt_
    assert none.cv_results_["mean_score"].shape == (0,)


def test_folds_are_as_many_as_asked_for():
    model = NMFAlphaCV(4, lam=1.0, map_iter=15, C=(1.0, 2.0), cv=3, random_state=0)
    model.fit(DIGITS.data, partly(40))
    assert {len(scores) for scores in model.selection_.values()} == {3}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"n_components": "many"}, "n_components='many'"),
        ({"n_components": ()}, "n_components has no candidate"),
        ({"n_components": (4, 0)}, "n_components=0"),
        ({"lam": (1.0, -1.0)}, "lam=-1.0"),
        ({"C": []}, "C has no candidate"),
        ({"C": "best"}, "C='best'"),
        ({"cv": 1}, "cv=1"),
    ],
)
def test_candidates_that_cannot_be_meant_are_refused(options, sentence):
    with pytest.raises(ValueError, match=sentence.replace("(", r"\(")):
        NMFAlphaCV(**options).fit(DIGITS.data, partly(40))


def test_it_can_be_cloned_with_its_candidates():
    model = clone(NMFAlphaCV((4, 8), lam=(1.0,), cv=4))
    assert model.get_params()["n_components"] == (4, 8)
    assert model.get_params()["cv"] == 4
