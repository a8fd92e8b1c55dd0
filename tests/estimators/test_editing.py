"""Parts merged, deleted and frozen."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from marginparts import NMFAlpha, edit_parts
from marginparts.datasets import load_docstrings

X = sp.csr_array(load_docstrings().data[:200])


@pytest.fixture(scope="module")
def model():
    return NMFAlpha(6, random_state=0, max_iter=40, output="coefficients").fit(X)


def near(part, expected):
    """A hundredth of the mean part is in every part, so that no word is left without any."""
    return np.abs(part / part.sum() - expected / expected.sum()).sum() < 0.021


def test_what_is_left_is_in_its_place(model):
    edited = edit_parts(model, X, merge=[(4, 1)], delete=[3], freeze=[5])
    parts, (H, V) = model.components_, edited.init
    assert edited.n_components == V.shape[1] == H.shape[1] == 4
    assert_array_equal(edited.fixed, parts[[5]])
    mass = model.transform(X).sum(axis=0)
    merged = mass[1] * parts[1] + mass[4] * parts[4]
    for k, expected in enumerate((parts[5], parts[0], merged, parts[2])):
        assert near(V[:, k], expected)


def test_the_fit_goes_on_without_a_word_that_nobody_explains(model):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        edited = edit_parts(model, X, delete=[0, 1], freeze=[2]).set_params(max_iter=20, tol=0)
        again = edited.fit(X)
    assert np.isfinite(again.loss_curve_).all()
    assert again.loss_curve_[-1] < again.loss_curve_[0]
    assert_array_equal(again.components_[0], model.components_[2])


def test_nothing_edited_goes_on_where_the_fit_was(model):
    again = edit_parts(model, X).set_params(max_iter=1, tol=0).fit(X)
    assert again.loss_curve_[0] < 1.02 * model.loss_curve_[-1]


def test_what_was_fixed_or_allowed_follows_its_part(model):
    allowed = np.ones((5, X.shape[1]), dtype=bool)
    allowed[2, :9] = allowed[4, 5:20] = False
    fixed = model.components_[:2]
    first = NMFAlpha(5, fixed=fixed, allowed=allowed, random_state=0, max_iter=5, tol=0).fit(X)
    edited = edit_parts(first, X, merge=[(2, 4)], delete=[0])
    assert_array_equal(edited.fixed, fixed[[1]])
    assert_array_equal(edited.allowed, [allowed[1], allowed[2] | allowed[4], allowed[3]])
    assert_allclose(edited.fit(X).components_[0], fixed[1])


@pytest.mark.parametrize(
    ("edits", "message"),
    [
        ({"delete": [6]}, "no part 6"),
        ({"merge": [(0, 1)], "freeze": [1]}, "named 2 times"),
        ({"delete": range(6)}, "No part is left"),
    ],
)
def test_what_makes_no_sense_is_refused(model, edits, message):
    with pytest.raises(ValueError, match=message):
        edit_parts(model, X, **edits)
