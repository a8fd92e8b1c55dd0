"""What many labels decide: the number of parts, and which of equal candidates is taken."""

import numpy as np
import pytest
import scipy.sparse as sp

from marginparts.estimators._plan import ranks_of
from marginparts.labels import encode_labels
from marginparts.selection import Setting
from marginparts.selection._taught import _simplest_of


@pytest.mark.parametrize(
    ("n_labels", "columns", "parts"), [(1999, 400, 64), (2000, 400, 128), (2000, 150, 75)]
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
