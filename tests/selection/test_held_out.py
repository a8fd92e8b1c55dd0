"""How many parts: hidden entries are predicted best with as many as there are."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import xlogy

from marginparts import PartsChoice, how_many_parts
from marginparts.losses.nmf_alpha import Steering
from marginparts.selection.held_out import _predicted
from marginparts.solve.factorize import factorize
from marginparts.solve.gaps import Blocks, Listed
from marginparts.solve.run_spec import RunSpec
from marginparts.solve.start import random_start


def planted(seed, n, d, r, mean=2.0):
    rng = np.random.default_rng(seed)
    M = rng.gamma(0.3, 1.0, (n, r)) @ rng.gamma(0.3, 1.0, (r, d))
    return rng.poisson(M * mean / M.mean()).astype(float)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_the_planted_number_of_parts_is_found(form):
    found = how_many_parts(form(planted(0, 90, 70, 4)), [2, 3, 4, 5, 6], random_state=0, tol=1e-3)
    assert found.best == found.least == 4
    assert found.losses.shape == (5, 30)
    assert_array_equal(found.ranks, [2, 3, 4, 5, 6])


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_hidden_entries_are_scored_as_by_hand(form):
    X, gaps = planted(1, 20, 15, 2), Blocks(np.arange(20) % 3, np.arange(15) % 3, 2, 3)
    run = RunSpec(solver="mue", max_iter=9, tol=0.0)
    found = _predicted(form(X), gaps, 2, run, 0, None)
    hidden = (gaps.rows[:, None] + gaps.columns) % 3 == 2
    known = X * ~hidden
    fit = factorize(
        known, *random_start(known, 2, 0), solver="mue", max_iter=9, tol=0,
        steering=Steering(gaps=Listed(sp.csr_array(hidden))),
    )  # fmt: skip
    rows, columns = known.sum(axis=1), known.sum(axis=0)
    margins = np.outer(rows + 0.01 * rows.mean(), columns + 0.01 * columns.mean()) / known.sum()
    F = 0.99 * fit.H @ fit.V.T + 0.01 * margins
    terms = xlogy(X, X / F) - X + F
    for group in range(3):
        mine = hidden & (gaps.rows == group)[:, None]
        assert_allclose(found[group], terms[mine].mean(), rtol=1e-10)


def test_columns_that_are_hidden_as_a_whole_cost_no_infinity():
    X = sp.csr_array(np.eye(30))
    assert np.isfinite(how_many_parts(X, [1, 2], random_state=0, max_iter=5).losses).all()


def test_the_fewest_parts_within_one_standard_error_are_best():
    noise = np.array([0.1, -0.1, 0.05, -0.05])
    found = PartsChoice(np.array([2, 3, 4]), np.array([2 + noise, 1 + noise[::-1], 0.99 + noise]))
    assert (found.least, found.best) == (4, 3)
    assert found.error[2] == 0


def test_sparse_data_stays_sparse():
    rng = np.random.default_rng(0)
    n = d = 20_000
    X = sp.csr_array((rng.random(3000), rng.integers(0, n, (2, 3000))), shape=(n, d))
    tracemalloc.start()
    how_many_parts(X, [2], folds=1, max_iter=2, random_state=0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < n * d / 10


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"share": 0.6}, "at most 0.5"),
        ({"share": 0.01}, "too few to hide"),
        ({"folds": 11}, "more than all entries"),
        ({"ranks": []}, "no number of parts"),
        ({"ranks": [0]}, "ranks=0"),
    ],
)
def test_what_makes_no_sense_is_refused(options, what):
    with pytest.raises(ValueError, match=what):
        how_many_parts(**{"X": np.ones((20, 15)), "ranks": [1], **options})
