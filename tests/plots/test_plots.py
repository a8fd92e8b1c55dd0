"""Pictures and tables of fitted estimators."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from marginparts import (
    NMFAlpha,
    NMFAlphaClassifier,
    NMFAlphaConsensus,
    NMFAlphaCV,
    PartsChoice,
    SemiSupervisedNMF,
    TransductiveSVM,
    plot_choice,
    plot_components,
    plot_loss,
    plot_path,
    plot_ranks,
    plot_stability,
    top_words,
)
from marginparts.datasets import load_digits_49
from marginparts.plots import save_figure

DIGITS = load_digits_49()
Y = np.where(np.arange(len(DIGITS.target)) < 60, DIGITS.target, -1)


@pytest.fixture(scope="module")
def classifier():
    return NMFAlphaCV((4, 8), lam=(1.0, 10.0), random_state=0).fit(DIGITS.data, Y)


@pytest.fixture(scope="module")
def blocks():
    """Eight samples of two blocks of words, and the classifier that tells them apart."""
    X = np.kron(np.eye(2), np.array([[3.0, 2.0, 1.0]] * 4)) + 0.1
    X[:, 5] += 5  # large everywhere, and so telling nothing
    y = np.array([0, 0, -1, -1, 1, 1, -1, -1])
    return NMFAlphaClassifier(
        2, lam=1.0, map_iter=20, normalize=True, C=1.0, max_iter=400, random_state=0
    ).fit(X, y)


NAMES = ["cat", "dog", "cow", "iron", "zinc", "the"]


@pytest.mark.parametrize("frame", ["pandas", "polars"])
def test_top_words_are_those_that_tell_a_part_from_the_others(blocks, frame):
    pytest.importorskip(frame)
    table = top_words(blocks, NAMES, n=2, frame=frame)
    assert type(table).__module__.startswith(frame)
    assert list(table.columns) == ["part", "rank", "word", "weight", "label"]
    by_label = {}
    for label, word in zip(table["label"], table["word"], strict=True):
        by_label.setdefault(label, set()).add(word)
    assert by_label == {"0": {"cat", "dog"}, "1": {"iron", "zinc"}}


def test_weights_are_those_of_the_parts(blocks):
    table = top_words(blocks, NAMES, n=3)
    for row in table.itertuples():
        expected = blocks.parts_.components_[row.part - 1, NAMES.index(row.word)]
        assert_allclose(row.weight, expected)


def test_names_come_from_a_data_frame(blocks):
    pd = pytest.importorskip("pandas")
    pl = pytest.importorskip("polars")
    X = pd.DataFrame(np.kron(np.eye(2), np.ones((4, 3))) + 0.1, columns=NAMES)
    parts = NMFAlpha(2, random_state=0).fit(X)
    assert set(top_words(parts, n=3)["word"]) == set(NAMES)
    # polars in: the same numbers, and out again in the same kind
    parts.set_output(transform="polars")
    Z = parts.fit(pl.from_pandas(X)).transform(pl.from_pandas(X))
    assert isinstance(Z, pl.DataFrame)
    assert set(top_words(parts, n=3, frame="polars")["word"]) == set(NAMES)


def test_labels_in_polars_and_pandas_may_be_missing():
    pd = pytest.importorskip("pandas")
    pl = pytest.importorskip("polars")
    X = np.kron(np.eye(2), np.ones((4, 3))) + 0.1
    names = ["a", "a", None, None, "b", "b", None, None]
    fitted = [
        NMFAlphaClassifier(2, lam=1.0, map_iter=5, normalize=True, C=1.0, random_state=0).fit(X, y)
        for y in (names, pd.Series(names), pl.Series(names))
    ]
    for model in fitted:
        assert_array_equal(model.classes_, ["a", "b"])
        assert_allclose(model.coef_, fitted[0].coef_)


def test_parts_of_every_estimator_can_be_drawn(classifier, blocks):
    plain = NMFAlpha(5, random_state=0).fit(DIGITS.data)
    lee = SemiSupervisedNMF(5, random_state=0).fit(DIGITS.data, Y)
    for estimator in (classifier, plain, lee):
        figure = plot_components(estimator, shape=(8, 8))
        assert len(figure.axes) == 1
    bars = plot_components(blocks, NAMES)
    assert [axis.get_title(loc="left") for axis in bars.axes] == [
        f"part {k + 1}: {label}" for k, label in enumerate(top_words(blocks, NAMES, n=1)["label"])
    ]


def test_the_pixels_drawn_are_those_of_the_parts(classifier):
    sheet = plot_components(classifier, shape=(8, 8)).axes[0].images[0].get_array()
    first = classifier.parts_.components_[0].reshape(8, 8)
    assert_allclose(sheet[1:9, 1:9], first / first.max())


def test_the_loss_drawn_is_that_of_the_fit(classifier):
    (line,) = plot_loss(classifier).axes[0].lines
    assert_array_equal(line.get_ydata(), classifier.parts_.loss_curve_)
    assert np.all(np.diff(line.get_ydata()) <= 0)


def test_the_stability_drawn_is_that_of_the_parts():
    consensus = NMFAlphaConsensus(NMFAlpha(4), n_runs=3, run_iter=8, random_state=0)
    consensus.fit(DIGITS.data)
    axis = plot_stability(consensus).axes[0]
    assert_allclose([bar.get_height() for bar in axis.patches], -np.sort(-consensus.stability_))
    named = [int(label.get_text()) - 1 for label in axis.get_xticklabels()]
    for dots, run in zip(axis.collections, consensus.agreement_, strict=True):
        assert_allclose(dots.get_offsets()[:, 1], run[named])
    # and it is drawn like every other
    (line,) = plot_loss(consensus).axes[0].lines
    assert_array_equal(line.get_ydata(), consensus.estimator_.loss_curve_)


def test_the_choice_shows_every_rank_and_marks_the_chosen(classifier):
    axis = plot_choice(classifier).axes[0]
    legend = [text.get_text() for text in axis.get_legend().get_texts()]
    assert legend == ["4 parts", "8 parts", "chosen"]
    ring = axis.collections[-1].get_offsets()[0]
    assert_allclose(ring, [classifier.lam_, classifier.best_score_])


def test_a_path_begins_with_plain_parts_and_keeps_their_order(classifier):
    lams = (0.0, 1.0, 30.0)
    figure = plot_path(classifier, DIGITS.data, lams, shape=(8, 8))
    assert [axis.get_title() for axis in figure.axes] == ["λ = 0", "λ = 1", "λ = 30"]
    steps = classifier.parts_.path(DIGITS.data, lams)
    for before, after in pairwise(steps):
        cosine = before.components @ after.components.T
        lengths = [np.linalg.norm(step.components, axis=1) for step in (before, after)]
        cosine /= np.outer(*lengths)
        assert np.mean(cosine.argmax(axis=1) == np.arange(len(cosine))) > 0.7


def test_the_larger_lam_is_the_better_the_margin_is_kept(classifier):
    parts = classifier.parts_
    steps = parts.path(DIGITS.data, (0.0, 100.0))
    XS = np.asarray(parts.margin_components_)
    left = []
    for step in steps:
        V = step.components.T
        H = np.linalg.lstsq(V, XS.T, rcond=None)[0]
        left.append(np.linalg.norm(XS.T - V @ H) / np.linalg.norm(XS))
    assert left[1] < left[0]


def test_a_path_of_words_is_a_table(blocks):
    X = np.kron(np.eye(2), np.array([[3.0, 2.0, 1.0]] * 4)) + 0.1
    X[:, 5] += 5
    figure = plot_path(blocks, X, (0.0, 10.0), names=NAMES)
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert "λ = 10" in texts
    assert any("cat" in text for text in texts)


def test_figures_can_be_written(classifier, tmp_path):
    for draw in (plot_loss, plot_choice):
        save_figure(draw(classifier), tmp_path / "figure.png")
        assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda c: plot_components(c, shape=(7, 8)), "does not fit"),
        (lambda c: top_words(c, ["a", "b"]), "2 names and 64 features"),
        (lambda c: top_words(c, frame="excel"), "excel"),
        (lambda c: plot_path(c), "needs the X"),
        (lambda c: plot_path(c, DIGITS.data[:10]), "the X of a fit"),
        (lambda c: plot_choice(c.parts_), "Nothing was tried"),
    ],
)
def test_what_cannot_be_drawn_is_said(classifier, call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call(classifier)


def test_what_has_no_parts_cannot_be_drawn():
    svm = TransductiveSVM(random_state=0).fit(DIGITS.data, Y)
    with pytest.raises(TypeError, match="no parts"):
        plot_components(svm)


def test_ranks_are_drawn_with_a_ring_around_the_chosen_one():
    found = PartsChoice(np.array([2, 4, 8]), np.array([[3.0, 3.1], [1.0, 1.2], [1.1, 1.4]]))
    (axis,) = plot_ranks(found).axes
    assert_allclose(axis.lines[0].get_xydata(), np.transpose([found.ranks, found.mean]))
    ring = axis.collections[-1].get_offsets()
    assert_allclose(ring, [[4, 1.1]])
