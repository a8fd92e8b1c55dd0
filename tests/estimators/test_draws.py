"""Very many unlabeled samples: a classifier learns from a draw of them."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from marginparts import NMFAlphaClassifier, NMFAlphaCV, fit_file
from marginparts.app.report import payload_of
from marginparts.datasets import load_digits_49

DIGITS = load_digits_49()
Y = np.where(np.arange(len(DIGITS.target)) % 9 == 0, DIGITS.target, -1)
LABELED = np.flatnonzero(Y >= 0)


def fitted(X=DIGITS.data, y=Y, kind=NMFAlphaClassifier, **options):
    options = {"max_unlabeled": 100, "max_iter": 20, "random_state": 0, **options}
    return kind(8, **options).fit(X, y)


def rows_of(model):
    """Return the samples that have dual coefficients."""
    return np.flatnonzero(np.diff(model.parts_.directions_.indptr))


def test_a_draw_is_a_fit_to_labeled_samples_and_some_others():
    model = fitted()
    used = rows_of(model)
    assert model.parts_.directions_.shape[0] == len(Y)
    assert len(np.setdiff1d(used, LABELED)) <= 100
    drawn = np.random.default_rng(0).choice(np.flatnonzero(Y < 0), 100, replace=False)
    rows = np.union1d(LABELED, drawn)
    assert_array_equal(np.setdiff1d(used, rows), [])
    again = fitted(DIGITS.data[rows], Y[rows], max_unlabeled=None)
    assert_array_equal(again.parts_.components_, model.parts_.components_)
    assert_array_equal(again.coef_, model.coef_)
    assert model.score(DIGITS.data, DIGITS.target) > 0.9


@pytest.mark.parametrize("embedded", [20, "all"])
def test_a_draw_of_embedded_rows(embedded):
    X = DIGITS.data.copy()
    X[:, -20:] -= X[:, -20:].mean(axis=0)
    model = fitted(X, embedded=embedded)
    for parts in filter(None, (model.parts_, model.embedding_parts_)):
        used = np.flatnonzero(np.diff(parts.directions_.indptr))
        assert parts.directions_.shape[0] == len(Y)
        assert len(np.setdiff1d(used, LABELED)) <= 100
    assert model.score(X, DIGITS.target) > 0.8


def test_hidden_samples_have_the_numbers_of_the_given_rows():
    rows = fitted().choice_.held_out.rows
    assert_array_equal(np.setdiff1d(rows, LABELED), [])


def test_few_samples_are_all_taken():
    few, all_of_them = fitted(max_unlabeled=len(Y)), fitted(max_unlabeled=None)
    assert_array_equal(few.parts_.components_, all_of_them.parts_.components_)


def test_samples_of_weight_zero_are_not_drawn():
    weight = np.ones(len(Y))
    weight[: len(Y) // 2] = 0
    model = NMFAlphaClassifier(8, max_unlabeled=60, max_iter=20, random_state=0)
    model.fit(DIGITS.data, Y, sample_weight=weight)
    assert rows_of(model).min() >= len(Y) // 2
    assert model.choice_.held_out.rows.min() >= len(Y) // 2
    assert len(np.setdiff1d(rows_of(model), LABELED)) <= 60


@pytest.mark.parametrize("kind", [NMFAlphaClassifier, NMFAlphaCV])
def test_sparse_data_is_left_as_it_was(kind):
    X = sp.csr_array(DIGITS.data)
    X.indices, X.data = X.indices[::-1].copy(), X.data[::-1].copy()
    X.indptr = (X.nnz - X.indptr[::-1]).astype(X.indptr.dtype)
    before = [array.copy() for array in (X.data, X.indices, X.indptr)]
    fitted(X, Y[::-1], kind)
    for array, was in zip((X.data, X.indices, X.indptr), before, strict=True):
        assert_array_equal(array, was)


@pytest.mark.parametrize("most", [0, -1, 2.5, "all", True])
def test_other_limits_are_refused(most):
    with pytest.raises(ValueError, match="max_unlabeled="):
        fitted(max_unlabeled=most)


def test_a_checkpoint_knows_its_draw(tmp_path):
    path = tmp_path / "run"
    whole = fitted()
    calls = []

    def stop(progress):
        calls.append(progress)
        if len(calls) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fitted(checkpoint=path, callback=stop)
    resumed = fitted(checkpoint=path)
    assert_array_equal(resumed.parts_.components_, whole.parts_.components_)


def test_a_model_says_that_it_learned_from_a_draw(tmp_path):
    lines = [f"word{i % 2} other{i % 7},{'ab'[i % 2] if i < 12 else ''}" for i in range(40)]
    (tmp_path / "docs.csv").write_text("\n".join(["text,label", *lines]))
    model = fit_file(tmp_path / "docs.csv", text="text", label="label", min_df=1)
    assert model.n_learned == 40
    assert "learned from" not in dict(payload_of(model, None)["settings"])
    model.classifier.max_unlabeled = 9  # as after a fit to very many
    assert model.n_learned == 21
    assert dict(payload_of(model, None)["settings"])["learned from"].startswith("21 of the 40")
