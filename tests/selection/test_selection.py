"""Choosing lam, C, the map and the scaling on the labeled samples."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from marginparts import selection
from marginparts.directions import DirectionSpec
from marginparts.labels import encode_labels
from marginparts.recipe import Recipe, RunSpec
from marginparts.selection import DEFAULT, CandidateGrid, Comparison, Setting, folds
from marginparts.selection._notes import _choice_notes, _read_choice
from marginparts.selection._race import Race
from marginparts.selection.folds import labeled_folds

SMALL = CandidateGrid(
    (3,), lam=(1.0, 10.0), map_iter=(5, 15), normalize=(True,), C=(0.1, 1.0, 10.0)
)


def choose(X, labels, grid, recipe=None, comparison=None, **options):
    recipe, comparison = recipe or Recipe(), comparison or Comparison()
    return selection.choose(X, labels, grid, recipe, comparison, **options)


def two_blocks(n=40, labeled=20):
    """Samples whose class is the half of the features that they use more."""
    rng = np.random.default_rng(0)
    truth = np.arange(n) % 2
    X = rng.gamma(1.0, size=(n, 8))
    X[truth == 0, :4] *= 4
    X[truth == 1, 4:] *= 4
    return X, np.where(np.arange(n) < labeled, truth, -1)


# --- folds


def test_folds_hide_every_labeled_row_once():
    labels = encode_labels([0, 1, -1, 0, 1, -1, 0, 1])
    hidden = np.concatenate(list(labeled_folds(labels, 3, seed=0)))
    assert_array_equal(np.sort(hidden), [0, 1, 3, 4, 6, 7])


def test_folds_hold_every_class_in_its_share():
    labels = encode_labels(np.repeat([0, 1, 2], [20, 10, 10]))
    for hidden in labeled_folds(labels, 5, seed=0):
        assert_array_equal(np.bincount(labels.codes[hidden]), [4, 2, 2])


def test_folds_follow_the_seed():
    labels = encode_labels(np.arange(30) % 3)

    def folds(seed):
        return [rows.tolist() for rows in labeled_folds(labels, 5, seed)]

    assert folds(1) == folds(1)
    assert folds(1) != folds(2)


def test_a_fold_that_would_leave_one_class_is_left_out():
    labels = encode_labels([0, 0, 0, 0, 1, -1])
    hidden = np.concatenate(list(labeled_folds(labels, 5, seed=0)))
    assert_array_equal(np.sort(hidden), [0, 1, 2, 3])


def test_one_label_a_class_leaves_no_fold():
    assert list(labeled_folds(encode_labels([0, 1, -1, -1]), 5, seed=0)) == []


def test_multilabel_rows_with_any_known_entry_are_folded():
    labels = encode_labels([[1, 0], [0, 1], [-1, -1], [1, -1], [0, 1], [1, 0]])
    hidden = np.concatenate(list(labeled_folds(labels, 5, seed=0)))
    assert_array_equal(np.sort(hidden), [0, 1, 3, 4, 5])


# --- the choice


def test_all_codes_are_tried_and_all_svms_on_the_codes_chosen():
    X, y = two_blocks()
    best, scores, *_ = choose(X, encode_labels(y), SMALL)
    candidates = set(product((3,), SMALL.lam, SMALL.map_iter, (1.0,)))
    assert {tried.codes for tried in scores} == candidates
    on_best_codes = {tried.svm for tried in scores if tried.codes == best.codes}
    assert on_best_codes == set(product(SMALL.normalize, SMALL.C))
    assert best in scores


def test_every_candidate_tried_has_a_score_a_fold():
    X, y = two_blocks()
    scores = choose(X, encode_labels(y), SMALL).scores
    assert {len(values) for values in scores.values()} == {5}
    assert all(0 <= score <= 1 for values in scores.values() for score in values)


def test_the_choice_follows_the_seed():
    X, y = two_blocks()
    labels = encode_labels(y)
    first, second = (choose(X, labels, SMALL, seed=4) for _ in range(2))
    assert first[:2] == second[:2]
    assert_array_equal(first.held_out.values, second.held_out.values)


def test_one_factorization_serves_every_map_and_every_svm(monkeypatch):
    weights = []

    def counted(self, X, labels, S, rank, lams, seed, **kwargs):
        weights.extend(lams)
        return parts(self, X, labels, S, rank, lams, seed, **kwargs)

    parts = Recipe.parts
    monkeypatch.setattr(Recipe, "parts", counted)
    X, y = two_blocks()
    choose(X, encode_labels(y), SMALL)
    assert sorted(weights) == [1.0] * 5 + [10.0] * 5


def test_hidden_labels_never_reach_the_directions():
    X, y = two_blocks()
    seen = []

    def source(features, signs):
        seen.append(len(signs))
        return np.ones(len(signs))

    choose(X, encode_labels(y), SMALL, Recipe(DirectionSpec(source)))
    assert seen == [16] * 5  # of twenty, each fold hides four


def test_nothing_is_tried_when_nothing_is_left_to_choose(monkeypatch):
    monkeypatch.setattr(Recipe, "parts", lambda *args, **kwargs: pytest.fail("tried"))
    X, y = two_blocks()
    grid = CandidateGrid((5,), lam=(7.0,), map_iter=(9,), normalize=(False,), C=(0.3,))
    choice = choose(X, encode_labels(y), grid, comparison=Comparison(rehearse=False))
    assert choice.best == Setting(5, 7.0, 9, False, 0.3)
    assert choice.held_out is None


def test_hidden_labels_are_predicted_even_when_nothing_is_left_to_choose():
    X, y = two_blocks()
    grid = CandidateGrid((3,), lam=(7.0,), map_iter=(9,), normalize=(False,), C=(0.3,))
    choice = choose(X, encode_labels(y), grid)
    assert choice.best == Setting(3, 7.0, 9, False, 0.3)
    assert_array_equal(np.sort(choice.held_out.rows), np.flatnonzero(y >= 0))
    assert choice.honest_scores == choice.scores[choice.best]  # there was nothing to be vain about


def test_too_few_labels_to_choose_on_give_the_defaults():
    X, y = two_blocks(labeled=2)
    assert choose(X, encode_labels(y), CandidateGrid()).best == DEFAULT


def test_what_is_given_stands_even_when_it_is_no_default():
    X, y = two_blocks(labeled=2)
    best = choose(X, encode_labels(y), CandidateGrid(lam=(100.0,), C=(5.0, 50.0))).best
    assert best == DEFAULT._replace(lam=100.0, C=5.0)


def test_the_defaults_are_candidates():
    assert CandidateGrid().fallback() == DEFAULT


def test_labels_with_an_unknown_entry_in_every_row_can_still_be_chosen_on():
    X, y = two_blocks(labeled=40)
    indicator = np.column_stack([y, 1 - y, y])
    indicator[np.arange(40), np.arange(40) % 3] = -1
    scores = choose(X, encode_labels(indicator), SMALL).scores
    assert max(np.mean(values) for values in scores.values()) > 0.5


# --- the race


def test_of_several_ranks_the_one_that_tells_the_classes_apart_wins():
    X, y = two_blocks(n=80, labeled=40)
    grid = SMALL._replace(n_components=(1, 2), normalize=(False,))
    best, scores, *_ = choose(X, encode_labels(y), grid)
    assert best.n_components == 2
    assert {setting.n_components for setting in scores} == {1, 2}


def test_a_hopeless_rank_is_dropped_and_costs_nothing_more(monkeypatch):
    ranks = []

    def counted(self, X, labels, S, rank, *args, **kwargs):
        ranks.append(rank)
        return parts(self, X, labels, S, rank, *args, **kwargs)

    parts = Recipe.parts
    monkeypatch.setattr(Recipe, "parts", counted)
    X, y = two_blocks(n=200, labeled=160)
    grid = SMALL._replace(n_components=(1, 2))  # unit codes of one part are all alike
    choice = choose(X, encode_labels(y), grid)
    assert ranks.count(2) == 5
    assert ranks.count(1) == 2  # the second fold settles it
    folds = {len(v) for s, v in choice.scores.items() if s.n_components == 1}
    assert folds == {2}
    assert choice.best.n_components == 2


def test_held_out_values_cover_every_labeled_row_once():
    X, y = two_blocks()
    rows, values = choose(X, encode_labels(y), SMALL).held_out
    assert_array_equal(np.sort(rows), np.flatnonzero(y >= 0))
    assert values.shape == (20, 1)
    assert np.mean((values[:, 0] > 0) == y[rows]) > 0.8


def test_a_callback_ends_the_race_with_the_best_so_far():
    X, y = two_blocks()
    seen = []

    def enough(progress):
        seen.append(progress)
        return progress.iteration >= 2

    best, scores, held_out, honest, folds = choose(X, encode_labels(y), SMALL, callback=enough)
    assert {progress.stage for progress in seen} == {"choosing"}
    assert {progress.max_iter for progress in seen} == {5}
    assert max(map(len, scores.values())) == 2
    assert best in scores
    assert len(held_out.rows) == 8
    assert len(honest) == len(folds) == 2


def test_a_race_that_ends_at_once_gives_the_defaults():
    X, y = two_blocks()
    choice = choose(X, encode_labels(y), SMALL, callback=lambda progress: True)
    assert choice.best == SMALL.fallback()
    assert choice.scores == {}


@pytest.mark.parametrize("ends_at", [0, 2, 99])
def test_a_choice_that_was_noted_is_read_as_it_was(ends_at):
    X, y = two_blocks()
    labels = encode_labels(y)
    choice = choose(X, labels, SMALL, callback=lambda progress: progress.iteration >= ends_at)
    race = Race(SMALL, folds.folds_of(labels, 0), None, selection.DEFAULT)
    back = _read_choice(_choice_notes(choice), race)
    assert back.best == choice.best
    assert back.scores == choice.scores
    assert len(back.folds) == len(choice.folds) == min(ends_at, 5)
    for one, other in zip(back.folds, choice.folds, strict=True):
        assert_array_equal(one[0], other[0])
        assert_array_equal(one[1], other[1])


def test_many_unlabeled_rows_are_not_all_needed(monkeypatch):
    monkeypatch.setattr(folds, "_ENOUGH_ROWS", 10)
    X, y = two_blocks(n=60, labeled=20)
    rows = selection.enough_rows(encode_labels(y), seed=0)
    assert len(rows) == 30
    assert set(range(20)) <= set(rows)
    assert choose(X, encode_labels(y), SMALL).score > 0.8


def test_very_many_labels_are_not_all_needed_to_choose(monkeypatch):
    monkeypatch.setattr(folds, "_ENOUGH_LABELS", 24)
    X, y = two_blocks(n=60, labeled=50)
    choice = choose(X, encode_labels(y), SMALL)
    assert len(choice.held_out.rows) == 24
    assert np.all(y[choice.held_out.rows] >= 0)
    assert choice.score > 0.8


@pytest.mark.parametrize(
    ("n_classes", "shape", "ranks"),
    [
        (2, (1000, 784), (8, 16, 32, 64, 128)),
        (22, (944, 3000), (22, 44, 88)),
        (100, (5000, 5000), (100, 200)),
        (2, (40, 30), (8,)),
        (3, (20, 4), (4,)),
    ],
)
def test_usual_ranks_begin_with_the_classes_and_fit_the_data(n_classes, shape, ranks):
    labels = encode_labels(np.arange(max(2 * n_classes, 100)) % n_classes)
    assert selection.usual_ranks(labels, shape) == ranks


def test_few_labels_ask_for_few_ranks():
    labels = encode_labels([0, 1, 0, 1, 0, 1, -1, -1])
    assert selection.usual_ranks(labels, (5000, 5000)) == (8,)


def test_the_only_sample_of_a_class_is_never_hidden():
    labels = encode_labels([0, 0, 0, 1, 1, 2, -1])
    hidden = np.concatenate(list(labeled_folds(labels, 5, seed=0)))
    assert_array_equal(np.sort(hidden), [0, 1, 2, 3, 4])


def test_a_race_that_ends_within_a_fold_compares_what_all_have_finished():
    X, y = two_blocks(n=80, labeled=40)
    grid = SMALL._replace(n_components=(1, 2))  # unit codes of one part tell nothing
    # one fold is done by both ranks, the second by the first rank alone
    best = choose(X, encode_labels(y), grid, callback=lambda p: p.iteration >= 3).best
    assert best.n_components == 2


def test_hidden_labels_change_nothing_that_is_said_of_them():
    X, y = two_blocks(n=60, labeled=30)
    indicator = np.where(y[:, None] >= 0, np.column_stack([y, 1 - y, y]), -1)
    labels = encode_labels(indicator)
    grid = CandidateGrid((3,), lam=(1.0,), map_iter=(5,), normalize=(True,), C=(1.0, 2.0))
    rows, values = choose(X, labels, grid, Recipe(DirectionSpec(pseudo="svm"))).held_out
    first = rows[:6]  # the first of five folds
    flipped = indicator.copy()
    flipped[first] = 1 - flipped[first]
    rows_again, again = choose(
        X, encode_labels(flipped), grid, Recipe(DirectionSpec(pseudo="svm"))
    ).held_out
    assert_array_equal(rows_again[:6], first)
    assert_array_equal(again[:6], values[:6])


def test_several_labels_a_sample_have_a_smaller_weight_by_default():
    X, y = two_blocks(labeled=2)
    labels = encode_labels(np.column_stack([y, np.where(y < 0, -1, 1 - y)]))
    grid = CandidateGrid(lam=selection.LAM_GRID_SEVERAL)
    assert choose(X, labels, grid).best.lam == 0.3
    assert choose(X, encode_labels(y), CandidateGrid()).best.lam == 3.0


# --- trust


def test_a_fold_is_scored_by_what_the_other_folds_choose():
    labels = encode_labels(np.arange(60) % 2)
    three = folds.folds_of(labels, 0, 3)
    signs = [np.where(labels.codes[fold.hidden] == 1, 1.0, -1.0)[:, None] for fold in three]
    # each candidate is right in one fold and wrong in the others
    said = {
        DEFAULT._replace(C=float(c + 1)): [s if k == c else -s for k, s in enumerate(signs)]
        for c in range(3)
    }
    seen = []

    def pick(some):
        seen.append(some)
        return max(said, key=lambda s: max(three[k].quality(said[s][k]) for k in some))

    assert selection.honest_scores(three, pick, lambda s, k: said[s][k]) == [0.0, 0.0, 0.0]
    assert seen == [[1, 2], [0, 2], [0, 1]]
    assert selection.honest_scores(three[:1], pick, lambda s, k: said[s][k]) == []


def test_the_honest_score_of_noise_is_that_of_a_guess():
    best, honest = [], []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.gamma(1.0, size=(60, 10))
        labels = encode_labels(rng.permutation(np.arange(60) % 2))
        choice = choose(X, labels, CandidateGrid((3,)), Recipe(run=RunSpec(max_iter=5)), seed=seed)
        best.append(choice.score)
        honest.append(choice.honest_score)
    assert np.mean(best) > np.mean(honest)
    assert abs(np.mean(honest) - 0.5) < 0.06


def choice_with(scores):
    return selection.Choice(DEFAULT, {DEFAULT: scores})


def test_many_labels_that_agree_leave_no_doubt():
    assert choice_with([0.9, 0.91, 0.89]).doubt(500) is None


def test_few_labels_or_folds_that_disagree_are_said():
    assert "20 labeled" in choice_with([0.9, 0.91, 0.89]).doubt(20)
    assert "off" in choice_with([0.9, 0.5, 0.7]).doubt(500)
    assert "unknown" in selection.Choice(DEFAULT, {}).doubt(2)


# --- the best of several scores


def best_of(**means):
    """Return the choice among settings of C = 0.1, 1 and 10 with these mean scores."""
    C = {"small": 0.1, "default": 1.0, "large": 10.0}
    scores = {DEFAULT._replace(C=C[name]): values for name, values in means.items()}
    return selection.best_of(scores).C


def test_a_clear_winner_wins():
    assert best_of(small=[0.5, 0.5], default=[0.6, 0.6], large=[0.9, 0.9]) == 10.0
    assert best_of(small=[0.9, 0.9], default=[0.6, 0.6], large=[0.5, 0.5]) == 0.1


def test_a_tie_goes_to_the_default():
    assert best_of(small=[0.8, 0.8], default=[0.8, 0.8], large=[0.8, 0.8]) == 1.0


def test_a_lead_within_the_noise_goes_to_the_default():
    assert best_of(default=[0.80, 0.80, 0.80], large=[0.71, 0.91, 0.81]) == 1.0
    assert best_of(default=[0.80, 0.80, 0.80], large=[0.81, 0.81, 0.81]) == 10.0
