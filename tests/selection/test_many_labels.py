"""What many labels decide: the number of parts, and which of equal candidates is taken."""

import numpy as np
import pytest
import scipy.sparse as sp

from marginparts import NMFAlphaClassifier
from marginparts.estimators._plan import ranks_of
from marginparts.labels import encode_labels
from marginparts.selection import Setting
from marginparts.selection._taught import _simplest_of


@pytest.mark.parametrize(
    ("n_labels", "columns", "parts"), [(999, 400, 64), (1000, 400, 128), (1000, 150, 75)]
)
def test_many_labels_of_dense_data_pay_for_more_parts(n_labels, columns, parts):
    y = np.where(np.arange(2500) < n_labels, np.arange(2500) % 2, -1)
    X = np.ones((2500, columns))
    assert ranks_of("auto", encode_labels(y), X, several=False, taught=True) == (parts,)


def test_texts_have_the_usual_number_of_parts():
    y, X = np.arange(2500) % 2, sp.csr_array(sp.eye_array(2500, 400))
    assert ranks_of("auto", encode_labels(y), X, several=False, taught=True) == (64,)


@pytest.mark.parametrize(("hidden", "cost"), [(1_000, 0.25), (1_000_000, 4.0)])
def test_of_candidates_that_cannot_be_told_apart_the_smallest_cost_wins(hidden, cost):
    scores = {
        Setting(64, 10.0, 40, True, C): [score, score]
        for C, score in ((0.0625, 0.80), (0.25, 0.88), (4.0, 0.882), (16.0, 0.882))
    }
    assert cost == _simplest_of(scores, hidden).C


@pytest.mark.parametrize(("hidden", "lam"), [(1_000, 10.0), (100_000, 100.0)])
def test_the_margin_counts_more_where_that_is_clearly_better(hidden, lam):
    scores = {
        Setting(64, lam, 40, True, C): [score, score]
        for lam, C, score in ((10.0, 0.25, 0.876), (100.0, 0.0625, 0.88), (100.0, 4.0, 0.86))
    }
    assert _simplest_of(scores, hidden).lam == lam


@pytest.mark.parametrize(("labels", "tried"), [(240, {10.0}), (1198, {10.0, 100.0})])
def test_many_labels_of_texts_choose_what_the_margin_counts(labels, tried):
    rng = np.random.default_rng(0)
    y = np.arange(1200) % 4
    words = (rng.random((1200, 12)) ** 2 * 100).astype(int) + 100 * (y[:, None] * 3 // 4)
    X = np.zeros((1200, 400), dtype=np.float32)
    np.add.at(X, (np.arange(1200)[:, None], words), 1)
    known = np.where(np.arange(1200) < labels, y, -1)
    model = NMFAlphaClassifier(8, max_iter=5, random_state=0).fit(sp.csr_array(X), known)
    assert {setting.lam for setting in model.selection_} == tried
    assert model.lam_ in tried
    # the fold that follows the first one tries the better weight alone
    n_folds = len(model.choice_.honest_scores)
    whole = {setting.lam for setting, own in model.selection_.items() if len(own) == n_folds}
    assert whole == {model.lam_}
