"""A weight and a row given several times are the same fit, to the last bit."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import LeaveOneGroupOut

from marginparts import (
    NMFAlpha,
    NMFAlphaClassifier,
    NMFAlphaConsensus,
    NMFAlphaCV,
    OnlineNMFAlphaClassifier,
    SemiNMFAlpha,
)
from marginparts.estimators import _repeats, nmf_alpha
from marginparts.labels import Labels
from marginparts.selection.folds import folds_of

RNG = np.random.default_rng(0)
X = RNG.poisson(RNG.gamma(0.5, 4.0, (24, 3)) @ RNG.gamma(0.5, 1.0, (3, 20))) + 0.5
Y = np.array([0, 1, -1, 1] * 6)
TIMES = np.array([3, 0, 2, 4] * 6)
SHUFFLED = RNG.permutation(24)
FEW = {"n_components": 3, "max_iter": 15, "random_state": 0}


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(
    "estimator",
    [
        NMFAlpha(**FEW, tol=0),
        SemiNMFAlpha(**FEW, tol=0),
        NMFAlphaConsensus(NMFAlpha(3, max_iter=8), n_runs=2, run_iter=4, random_state=0),
        OnlineNMFAlphaClassifier(3, batch_size=60, random_state=0),  # of 54 rows none is too many
        NMFAlphaClassifier(**FEW),
        NMFAlphaClassifier(**FEW, pseudo=None),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_weights_are_repeats_to_the_last_bit(estimator, container):
    one = estimator.fit(
        container(X[SHUFFLED]), Y[SHUFFLED], sample_weight=TIMES[SHUFFLED]
    ).transform(container(X))
    two = estimator.fit(container(X.repeat(TIMES, axis=0)), Y.repeat(TIMES)).transform(container(X))
    assert_array_equal(one, two)


def test_a_stream_of_several_batches_counts_samples_in_their_order_whatever_their_weights():
    """There a weight cannot be a repeat: batches and half-lives count samples."""
    given = OnlineNMFAlphaClassifier(3, batch_size=10, random_state=0)
    weighted = clone(given).fit(X, Y, sample_weight=TIMES)
    repeats = clone(given).fit(X.repeat(TIMES, axis=0), Y.repeat(TIMES))
    assert (weighted.n_samples_seen_, repeats.n_samples_seen_) == (18, 54)
    assert (weighted.stream_.steps, repeats.stream_.steps) == (1, 5)
    stream = repeats.stream_
    rows = np.vstack([each.X.toarray() for each in (stream.memory, stream.pending)])
    assert_array_equal(rows, X.repeat(TIMES, axis=0))


@pytest.mark.parametrize("times", [1, None])
def test_other_fits_are_what_they_were(times, monkeypatch):
    """Rows of which fewer than half are repeats keep their places, and so their starts."""
    data = np.vstack([X, X[:5]])
    weights = None if times is None else np.ones(len(data))
    found = NMFAlpha(**FEW, tol=0).fit(data, sample_weight=weights).components_
    monkeypatch.setattr(nmf_alpha, "together", lambda *_: None)
    assert_array_equal(found, NMFAlpha(**FEW, tol=0).fit(data).components_)


def test_a_start_that_is_given_is_for_the_rows_as_they_are(monkeypatch):
    data = np.vstack([X, X])
    start = RNG.random((48, 3)) + 0.1, RNG.random((20, 3)) + 0.1
    found = NMFAlpha(**FEW, tol=0, init=start).fit(data).components_
    monkeypatch.setattr(nmf_alpha, "together", lambda *_: None)
    assert_array_equal(found, NMFAlpha(**FEW, tol=0, init=start).fit(data).components_)


def test_directions_and_weights_are_those_of_the_rows_as_given():
    data, labels = X.repeat(TIMES, axis=0), Y.repeat(TIMES)
    fit = NMFAlpha(**FEW, tol=0).fit(data, labels)
    assert fit.directions_.shape[0] == len(data)
    assert fit.sample_weight_ is None
    assert_allclose(fit.directions_.T @ data, fit.margin_components_, rtol=1e-12)
    weighed = NMFAlpha(**FEW, tol=0).fit(X, Y, sample_weight=TIMES)
    assert_array_equal(weighed.sample_weight_, TIMES)
    assert_allclose(weighed.directions_.T @ X, fit.margin_components_, rtol=1e-12)
    classifier = NMFAlphaClassifier(**FEW).fit(data, labels)
    parts = classifier.parts_
    assert_allclose(parts.directions_.T @ data, parts.margin_components_, rtol=1e-12)
    assert set(classifier.choice_.held_out.rows) <= set(np.flatnonzero(labels >= 0))


def test_rows_are_told_apart_by_data_and_by_label():
    assert len(_repeats.together(np.vstack([X, X]), None, None).rows) == 24
    two = _repeats.together(np.vstack([X, X]), np.repeat([0, 1], 24), None)
    assert len(two.rows) == 48
    tiny = X.copy()
    tiny[0, 0] = np.nextafter(tiny[0, 0], 9)
    assert len(_repeats.together(np.vstack([X, X, tiny]), None, None).rows) == 25
    halves = _repeats.together(X, None, np.full(24, 0.5))
    assert_array_equal(halves.weights, 0.5)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_the_order_depends_on_what_is_in_rows(container):
    one = _repeats.together(container(X), Y, np.arange(1.0, 25))
    two = _repeats.together(container(X[SHUFFLED]), Y[SHUFFLED], np.arange(1.0, 25)[SHUFFLED])
    assert_array_equal(X[one.rows], X[SHUFFLED][two.rows])
    assert_array_equal(one.weights, two.weights)


def test_copies_are_hidden_together():
    groups = np.repeat(np.arange(8), 3)
    labels = Labels(np.arange(2), np.repeat([0, 1], 12), groups=groups)
    for fold in folds_of(labels, seed=0, n_splits=4):
        assert not set(groups[fold.hidden]) & set(groups[fold.left.labeled])
        assert len(fold.hidden) == 6


@pytest.mark.parametrize("times", [2, 5])
@pytest.mark.parametrize("how", [{}, {"pseudo": None}, {"embedded": "all"}], ids=str)
def test_no_copy_of_a_hidden_row_is_known(times, how):
    found = NMFAlphaClassifier(**FEW, **how).fit(np.tile(X, (times, 1)), np.tile(Y, times))
    assert len(found.choice_.folds) > 1
    for known, hidden in found.choice_.folds:
        assert not set(known % 24) & set(hidden % 24)
        assert set(known % 24) | set(hidden % 24) == set(np.flatnonzero(Y >= 0))


def test_weights_that_are_no_whole_numbers_or_too_large_make_no_copies():
    labels = Labels(np.arange(2), np.abs(Y))
    for weights in (np.full(24, 2.5), np.full(24, 9.0), np.ones(24)):
        assert _repeats.copies(X, Labels(labels.classes, labels.codes, weights)) is None
    found = _repeats.copies(X, Labels(labels.classes, labels.codes, np.full(24, 3.0)))
    assert_array_equal(np.bincount(found.rows), 3)


def test_folds_may_be_given():
    places = np.arange(24) % 3
    pairs = list(LeaveOneGroupOut().split(X, groups=places))
    how = {"lam": 1.0, "map_iter": 5, "C": (0.5, 2.0), "random_state": 0}
    found = NMFAlphaCV((2, 3), cv=pairs, pseudo=None, **how).fit(X, Y)
    assert all(len(scores) <= 3 for scores in found.selection_.values())
    assert_array_equal(np.sort(found.choice_.held_out.rows), np.flatnonzero(Y >= 0))
    for k, rows in enumerate(np.split(found.choice_.held_out.rows, 3)):
        assert_array_equal(places[rows], k)

    class Splitter:
        def split(self, X, y):
            return iter(pairs)

    same = NMFAlphaCV((2, 3), cv=Splitter(), pseudo=None, **how).fit(X, Y)
    assert_array_equal(same.decision_function(X), found.decision_function(X))
    for wrong in ([([0], [1]), ([0], [1])], [(0, [99])], [3]):
        with pytest.raises(ValueError, match="no row is hidden twice"):
            NMFAlphaCV((2, 3), cv=wrong).fit(X, Y)
