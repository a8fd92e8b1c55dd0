"""Parts on which several starts agree, and the fit that goes on from them."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from marginparts import (
    NMFAlpha,
    NMFAlphaClassifier,
    NMFAlphaConsensus,
    SemiNMFAlpha,
    load,
    match_parts,
    save,
)
from marginparts.datasets import load_digits_49

DIGITS = load_digits_49()
X, Y = DIGITS.data, np.where(np.arange(len(DIGITS.target)) < 60, DIGITS.target, -1)
FEW = {"n_runs": 3, "run_iter": 15, "random_state": 0}


def planted(n=80):
    """Counts of four parts with words of their own."""
    rng = np.random.default_rng(0)
    V = np.kron(np.eye(4), np.ones(6)) + 0.02
    return (
        rng.poisson(100 * rng.dirichlet(np.full(4, 0.3), n) @ (V / V.sum(1, keepdims=True))) * 1.0
    )


def test_planted_parts_are_stable_and_the_same_for_every_seed():
    data = sp.csr_array(planted())
    one, two = (
        NMFAlphaConsensus(NMFAlpha(4), **{**FEW, "random_state": seed}).fit(data) for seed in (0, 1)
    )
    assert one.stability_.min() > 0.95
    assert match_parts(one.components_, two.components_).cosine.min() > 0.999
    more = NMFAlphaConsensus(NMFAlpha(8), **FEW).fit(data)  # four that are not there
    assert more.total_stability_ < one.total_stability_


def test_the_numbers_are_the_cosines_with_the_short_runs(monkeypatch):
    runs, fit = [], NMFAlpha._fit
    monkeypatch.setattr(NMFAlpha, "_fit", lambda self, *a: runs.append(fit(self, *a)) or runs[-1])
    found = NMFAlphaConsensus(NMFAlpha(5), strength=0, **FEW).fit(X)
    *short, last = runs
    assert [run.n_iter_ for run in short] == [15] * 3
    assert last is found.estimator_
    assert last.init == "auto"
    for run, agreement in zip(short, found.agreement_, strict=True):
        assert_allclose(agreement, match_parts(last.components_, run.components_).cosine)
    assert_allclose(found.stability_, found.agreement_.mean(axis=0))
    assert_allclose(found.total_stability_, found.stability_.mean())
    # it goes on from where the runs came to
    assert last.loss_curve_[-1] <= min(run.loss_curve_[-1] for run in short)


def test_the_same_seed_gives_the_same_bits():
    one, two = (NMFAlphaConsensus(NMFAlpha(4), **FEW).fit(X, Y) for _ in range(2))
    assert_array_equal(one.components_, two.components_)
    assert_array_equal(one.transform(X), one.estimator_.transform(X))


def test_directions_are_found_once():
    calls = []

    def sums(rows, signs):
        calls.append(rows.shape)
        return np.ones(len(signs))

    weights = np.where(np.arange(len(X)) % 7, 1.0, 0.0)  # some rows are left out
    found = NMFAlphaConsensus(NMFAlpha(4, directions=sums), **FEW).fit(X, Y, sample_weight=weights)
    assert len(calls) == 1
    assert found.estimator_.directions_.shape[0] == len(X)


def test_parts_with_a_place_of_their_own_keep_it():
    fixed = NMFAlpha(3, random_state=5).fit(X).components_[:2]
    found = NMFAlphaConsensus(NMFAlpha(5, fixed=fixed), **FEW).fit(X)
    assert_array_equal(found.components_[:2], fixed)
    allowed = np.ones((4, 64), dtype=bool)
    allowed[0, :32] = allowed[3, 32:] = False
    found = NMFAlphaConsensus(NMFAlpha(4, allowed=allowed), **FEW).fit(X)
    assert not found.components_[~allowed].any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_runs": 1}, "n_runs"),
        ({"run_iter": 0}, "run_iter"),
        ({"estimator": NMFAlpha(3, init="nndsvda")}, "init of the estimator"),
        ({"estimator": SemiNMFAlpha(3)}, "must be an NMFAlpha, and it is a SemiNMFAlpha"),
    ],
)
def test_what_makes_no_sense_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        NMFAlphaConsensus(**options).fit(X)


@pytest.mark.parametrize("strength", [0, 0.3])
@pytest.mark.parametrize("y", [None, Y], ids=["no labels", "labels"])
def test_directions_that_move_with_the_parts_of_a_run_are_refused_before_any_run(y, strength):
    told = []
    joint = NMFAlpha(3, directions="joint", max_iter=5, callback=told.append)
    with pytest.raises(ValueError, match="NMFAlphaConsensus finds the directions once"):
        NMFAlphaConsensus(joint, strength=strength, **FEW).fit(X, y)
    assert not told


def test_it_can_be_kept_in_a_file(tmp_path):
    found = NMFAlphaConsensus(NMFAlpha(4), **FEW).fit(X)
    save(found, tmp_path / "model.zip")
    again = load(tmp_path / "model.zip")
    assert_array_equal(again.transform(X), found.transform(X))
    assert_array_equal(again.stability_, found.stability_)


def test_its_parts_start_a_classifier():
    found = NMFAlphaConsensus(NMFAlpha(8, output="coefficients"), **FEW).fit(X)
    start = found.transform(X), found.components_.T.copy()
    options = {"lam": 3.0, "map_iter": 5, "C": 1.0, "normalize": True, "random_state": 0}
    model = NMFAlphaClassifier(8, init=start, **options).fit(X, Y)
    assert model.score(X, DIGITS.target) > 0.9


def test_a_classifier_begins_where_short_runs_agree():
    how = {"lam": 1.0, "C": 1.0, "map_iter": 5, "rehearse": False, "random_state": 0}
    one = NMFAlphaClassifier(5, consensus=3, **how).fit(X, Y)
    plain = NMFAlphaClassifier(5, **how).fit(X, Y)
    assert one.parts_.stability_.shape == (5,)
    assert not hasattr(plain.parts_, "stability_")
    # the margin components do not depend on where the runs begin
    assert_allclose(one.parts_.margin_components_, plain.parts_.margin_components_)
    assert one.score(X, DIGITS.target) > 0.9
    for wrong, said in ((1, "2 or larger"), (-1, "0 or larger")):
        with pytest.raises(ValueError, match=said):
            NMFAlphaClassifier(5, consensus=wrong).fit(X, Y)
    with pytest.raises(ValueError, match="starts that differ"):
        NMFAlphaClassifier(5, consensus=2, init="nndsvda").fit(X, Y)


def test_a_classifier_keeps_parts_fixed_and_words_out():
    how = {"lam": 1.0, "C": 1.0, "map_iter": 5, "random_state": 0}
    fixed = NMFAlpha(2, random_state=0).fit(X).components_
    allowed = np.ones((5, X.shape[1]), dtype=bool)
    allowed[3, :32] = False
    found = NMFAlphaClassifier(5, fixed=fixed, allowed=allowed, **how).fit(X, Y)
    assert_array_equal(found.parts_.components_[:2], fixed)
    assert not found.parts_.components_[3, :32].any()
    assert found.score(X, DIGITS.target) > 0.85
    assert found.honest_score_ > 0.7


def test_the_last_fit_stays_as_near_the_means_as_is_asked():
    fits = [NMFAlphaConsensus(NMFAlpha(5), strength=s, **FEW).fit(X) for s in (0, 0.3, 1e4)]
    free, near, held = (fit.estimator_ for fit in fits)
    # what is nearer to the means of all starts explains the data less well
    assert free.reconstruction_err_ < near.reconstruction_err_ < held.reconstruction_err_
    apart = [
        1 - match_parts(held.components_, fit.components_).cosine.mean() for fit in (free, near)
    ]
    assert apart[1] < apart[0]
    assert near.prior is None
    assert near.strength == 1.0


def test_gaps_or_a_prior_of_ones_own_leave_no_room_for_another():
    parts = NMFAlpha(5, random_state=1).fit(X).components_
    for model in (NMFAlpha(5, missing="nan"), NMFAlpha(5, prior=parts)):
        one, two = (NMFAlphaConsensus(model, strength=s, **FEW).fit(X) for s in (0, 0.3))
        assert_array_equal(one.components_, two.components_)
