"""Teachers: what is believed of unlabeled rows, and what is made of it."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.datasets import load_digits, make_blobs
from sklearn.preprocessing import normalize

from marginparts import NMFAlpha, NMFAlphaClassifier
from marginparts.app.explanation import contributions
from marginparts.datasets import load_digits_49, load_docstrings
from marginparts.directions import DirectionSpec, find_directions
from marginparts.labels import UNKNOWN, Labels, encode_labels
from marginparts.scores import quality
from marginparts.solve.map import projection
from marginparts.teaching import lessons_of, lessons_of_several, views_of
from marginparts.teaching.lesson import TAUGHT_WEIGHT
from marginparts.teaching.several import Answers, Opinion, best_cut, with_shares
from marginparts.teaching.transduction import (
    Balance,
    balanced,
    class_shares,
    least_squares_values,
    logistic_values,
)
from marginparts.teaching.values import all_values
from marginparts.teaching.views import _by_eigenvectors, _neighbor_graph, joint_views
from marginparts.teaching.weighing import agreed, confident, weighed
from marginparts.weighting import idf_of, l2_log, log, usual_weights, weighted_rows


def _clouds(n=300, seed=0):
    Z, y = make_blobs(n, 6, centers=3, cluster_std=1.0, random_state=seed)
    return Z - Z.min(), y


def _few(y, k, seed=0):
    """Keep k labels of each class."""
    codes = np.full(len(y), -1)
    rng = np.random.default_rng(seed)
    for c in np.unique(y):
        rows = rng.permutation(np.flatnonzero(y == c))[:k]
        codes[rows] = c
    return codes


@pytest.fixture(scope="module")
def texts():
    docs = load_docstrings()
    keep = np.isin(docs.target, (0, 2, 12, 15))
    y = np.unique(docs.target[keep], return_inverse=True)[1]
    return sp.csr_array(docs.data)[np.flatnonzero(keep)].astype(float), y


def test_counts_are_weighted_and_images_are_not(texts):
    counts, _ = texts
    for rows in (counts, log(counts), l2_log(counts)):
        np.testing.assert_allclose(usual_weights(rows), idf_of(counts))
    weighted = weighted_rows(log(counts), idf_of(counts))
    assert np.all(usual_weights(weighted) == 1)
    assert usual_weights(load_digits_49().data) is None


def test_weights_do_not_depend_on_how_rows_are_stored(texts):
    rows = l2_log(texts[0])
    np.testing.assert_array_equal(usual_weights(rows), usual_weights(rows.toarray()))


def test_teachers_see_the_same_whether_rows_were_weighted_or_not(texts):
    rows = log(texts[0])
    given = weighted_rows(rows, idf_of(rows))
    one, other = (views_of(X, usual_weights(X), 0, latent=False) for X in (rows, given))
    for name in ("inputs", "counts"):
        a, b = getattr(one, name), getattr(other, name)
        np.testing.assert_allclose((a - b).data, 0, atol=1e-9)


def test_a_column_of_small_weight_is_no_unit(texts):
    """The weight of one column is that of the column, and not one of all others."""
    rows, _ = texts
    often = int(np.argmax(np.bincount(rows.indices, minlength=rows.shape[1])))
    others = np.delete(np.arange(rows.shape[1]), often)

    def counts(weight):
        own = np.ones(rows.shape[1])
        own[often] = weight
        X = sp.csr_array(rows @ sp.diags_array(own))
        found = views_of(X, usual_weights(X), 0, latent=False).counts
        return found.toarray()[np.diff(rows.indptr) > 1]

    for weight in (0.1, 1e-3, 1e-300):
        assert_allclose(counts(weight)[:, others], counts(1.0)[:, others], rtol=1e-6)


def test_naive_bayes_does_not_see_what_stands_beside_words(texts):
    # not the first: these are of one class in some versions of the libraries
    some = np.random.default_rng(0).permutation(len(texts[1]))[:200]
    X, y = texts[0][some], texts[1][some]
    words = views_of(X, usual_weights(X), 0, neighbors=False)
    vectors = np.random.default_rng(0).standard_normal((200, 6))
    both = joint_views(words, views_of(vectors, None, 0, neighbors=False), 0)
    known, names = encode_labels(_few(y, 5)), ["naive Bayes", "weighted Bayes"]
    alone, beside = (all_values(views, known, names) for views in (words, both))
    for name in names:
        np.testing.assert_array_equal(beside[name], alone[name])


def test_teachers_hear_words_and_vectors_alone_and_both(texts):
    some = np.random.default_rng(0).permutation(len(texts[1]))[:200]
    X, y = texts[0][some], texts[1][some]
    words = views_of(X, usual_weights(X), 0)
    rng = np.random.default_rng(0)
    vectors = views_of(np.eye(3)[y % 3] + 0.01 * rng.standard_normal((200, 3)), None, 0)
    known = encode_labels(_few(y, 5))
    said, *apart = (all_values(v, known) for v in (joint_views(words, vectors, 0), words, vectors))
    for ending, alone in zip(("", ", vectors"), apart, strict=True):
        for name, values in alone.items():
            np.testing.assert_array_equal(said[name + ending], values)
    others = {name for own in apart for name in own} - {"spectral"}
    assert {f"{name}, both" for name in others if "Bayes" not in name} <= said.keys()
    # who hears of the vectors, which all but say the class, is right more often
    for name in ("svm", "latent"):
        hits = [np.mean(said[own].argmax(axis=1) == y) for own in (f"{name}, both", name)]
        assert hits[0] > hits[1]


def test_the_view_is_believed_more_that_tells_more():
    y = np.random.default_rng(0).integers(0, 4, 400)
    hidden = np.arange(40)

    def shares(by_words, by_vectors):
        """Let so many answers be right, the others be any."""
        rng, said = np.random.default_rng(1), {}
        for name, right in (("svm", by_words), ("svm, vectors", by_vectors)):
            answers = np.where(rng.random(400) < right, y, rng.integers(0, 4, 400))
            said[name] = np.where(np.arange(4) == answers[:, None], 0.0, -1.0)
        said["svm, both"] = said["svm"]
        hits = {name: [own[hidden].argmax(axis=1) == y[hidden]] for name, own in said.items()}
        found = agreed(said, hits, sparse=True)
        np.testing.assert_allclose(found.Q.sum(axis=1), 1)
        return found.shares

    level, better, worse = (shares(0.7, right) for right in (0.7, 0.95, 0.1))
    for found in (level, better, worse):
        assert sum(found.values()) == pytest.approx(1)
        assert found["svm"] == pytest.approx(found["svm, both"])  # they say the same
    assert worse["svm, vectors"] < level["svm, vectors"] < better["svm, vectors"]
    assert better["svm, vectors"] > better["svm"]
    assert worse["svm, vectors"] < worse["svm"]


def test_one_teacher_of_each_panel_is_ahead_and_none_who_learns_from_seeds():
    said = dict.fromkeys(("least squares", "least squares, seeds", "logistic"), np.eye(3) - 1)
    hits = {name: [np.ones(20, bool)] for name in said}
    shares = agreed(said, hits, sparse=True).shares
    assert shares["least squares"] > shares["logistic"] == shares["least squares, seeds"]


@pytest.mark.parametrize("weights", [None, np.array([1.0, 2.0, 0.5, 3.0, 1.0])])
def test_a_hyperplane_in_the_span_is_kept_exactly(weights):
    rng = np.random.default_rng(0)
    V, X = rng.random((5, 3)), rng.random((20, 5))
    scale = np.ones(5) if weights is None else weights
    P = projection(V, weights)
    w = scale * (V @ rng.normal(size=3))  # in the span of the weighted parts
    basis = P / scale[:, None]
    np.testing.assert_allclose(basis.T @ basis, np.eye(3), atol=1e-12)
    np.testing.assert_allclose((X @ P) @ (basis.T @ w), (X * scale) @ w, rtol=1e-10)


def test_what_is_lost_is_bounded_by_what_lies_outside():
    rng = np.random.default_rng(1)
    V, X, w = rng.random((6, 2)), rng.random((30, 6)), rng.normal(size=6)
    P = projection(V)
    lost = np.abs(X @ w - (X @ P) @ (P.T @ w))
    assert np.all(lost <= np.linalg.norm(w - P @ (P.T @ w)) * np.linalg.norm(X, axis=1) + 1e-12)


def test_dependent_parts_span_the_same_space():
    rng = np.random.default_rng(2)
    V, X = rng.random((5, 2)), rng.random((4, 5))
    both = np.hstack([V, V[:, :1]])
    Z, W = X @ projection(V), X @ projection(both)
    np.testing.assert_allclose(Z @ Z.T, W @ W.T, atol=1e-9)


def test_a_projection_is_linear_and_can_be_turned_back():
    X, y = load_digits_49().data, load_digits_49().target
    parts = NMFAlpha(8, output="projection", max_iter=20, random_state=0).fit(X, y)
    Z = parts.transform(X[:10])
    np.testing.assert_allclose(
        parts.transform(2 * X[:10] + X[10:20]), 2 * Z + parts.transform(X[10:20])
    )
    inside = parts.components_[:3] * 5
    np.testing.assert_allclose(parts.inverse_transform(parts.transform(inside)), inside, atol=1e-8)


def test_the_share_of_a_hyperplane_that_the_parts_keep():
    X, y = load_digits_49().data, load_digits_49().target
    free, kept, all_of_it = (
        NMFAlpha(r, lam=lam, max_iter=60, random_state=0).fit(X, y).margin_kept_
        for r, lam in ((4, 0.0), (4, 30.0), (64, 30.0))
    )
    assert free.shape == kept.shape == (1,)
    assert 0 <= free[0] < kept[0] <= 1
    assert all_of_it[0] > 0.99


def test_mixed_codes_do_not_know_the_size_of_a_sample():
    X, y = load_digits_49().data, load_digits_49().target
    parts = NMFAlpha(6, output="mixed", max_iter=20, random_state=0).fit(X, y)
    Z = parts.transform(X[:20])
    assert Z.shape == (20, 12)
    assert parts.get_feature_names_out().shape == (12,)
    np.testing.assert_allclose(np.linalg.norm(Z[:, :6], axis=1), 1)
    np.testing.assert_allclose(np.linalg.norm(Z[:, 6:], axis=1), 0.5)
    np.testing.assert_allclose(parts.transform(7 * X[:20]), Z, atol=1e-8)
    with pytest.raises(ValueError, match="lost the size"):
        parts.inverse_transform(Z)


def test_shares_come_from_labels_unless_these_were_drawn_class_by_class():
    assert class_shares(np.repeat([0, 1, 2], 5), 3) is None
    shares = class_shares(np.array([0] * 8 + [1] * 2), 2)
    assert shares.sum() == pytest.approx(1)
    assert shares[0] > 3 * shares[1]


def test_balanced_answers_have_the_shares_on_average():
    Q = np.random.default_rng(0).dirichlet(np.ones(3), 500)
    shares = np.array([0.6, 0.3, 0.1])
    B = balanced(Q, shares)
    np.testing.assert_allclose(B.mean(axis=0), shares, atol=1e-3)
    np.testing.assert_allclose(B.sum(axis=1), 1)


@pytest.mark.parametrize(
    ("labels", "first", "dense", "after"),
    [
        (4, 0.4, True, 0.5),  # with four labels a class that may be chance
        (100, 0.4, True, 0.4),  # with a hundred it is not
        (4, 0.1, True, 0.1),
        (4, 0.4, False, 0.4),  # texts have little in common, and first answers are less biased
    ],
)
def test_equal_shares_are_taken_for_dense_rows_unless_first_answers_deny_them(
    labels, first, dense, after
):
    Q = np.where(np.arange(1000)[:, None] < 1000 * first, [0.9, 0.1], [0.1, 0.9])
    balance = Balance(np.repeat([0, 1], labels), 2, dense=dense)
    assert balance(Q).mean(axis=0)[0] == pytest.approx(after, abs=0.01)


@pytest.mark.parametrize("values", [least_squares_values, logistic_values])
def test_unlabeled_clouds_are_found(values):
    Z, y = _clouds()
    answers = values(Z / np.linalg.norm(Z, axis=1, keepdims=True), _few(y, 2), 3).argmax(axis=1)
    assert np.mean(answers == y) > 0.97


@pytest.mark.parametrize("sparse", [True, False])
def test_empty_rows_have_no_neighbors_and_change_nothing_for_others(sparse):
    Z = normalize(_clouds(80)[0])
    empty = np.isin(np.arange(86), [0, 7, 8, 20, 84, 85])
    rows = np.zeros((86, 6))
    rows[~empty] = Z
    alone, beside = (_neighbor_graph(each, sparse=sparse) for each in (Z, rows))
    assert not beside.toarray()[empty].any()
    assert not beside.toarray()[:, empty].any()
    inner = beside.toarray()[np.ix_(~empty, ~empty)]
    np.testing.assert_array_equal(inner, alone.toarray())
    one, other = (_by_eigenvectors(graph, 0) for graph in (alone, beside))
    # eigenvectors of one eigenvalue can be turned
    np.testing.assert_allclose(other[~empty] @ other[~empty].T, one @ one.T, atol=1e-6)
    assert not other[empty].any()


@pytest.mark.parametrize("sparse", [True, False])
def test_teachers_do_not_know_the_label_of_an_empty_row_from_others(sparse):
    X, y = _clouds(90)
    rows = np.where(np.arange(90)[:, None] % 10 == 9, 0, X * (X.mean(axis=0) < X) if sparse else X)
    if sparse:
        rows = sp.csr_array(rows)
    labels = encode_labels(_few(np.where(np.arange(90) % 10 == 9, -1, y), 5))
    values = all_values(views_of(rows, np.ones(6) if sparse else None, 0), labels)
    for name, said in values.items():
        assert np.isfinite(said).all(), name
    assert not values["spreading"][9::10].any()  # all classes alike


@pytest.mark.parametrize("weights", [None, np.ones(3)])
@pytest.mark.parametrize("full", [0, 1, 2, 3])
@pytest.mark.parametrize("n", [1, 3, 60])
def test_few_rows_have_as_many_neighbors_as_there_are(n, full, weights):
    rows = np.zeros((n, 3))
    rows[:full] = np.random.default_rng(0).random((3, 3))[: len(rows[:full])] + 0.1
    words = views_of(sp.csr_array(rows), weights, 0)
    for views in (words, joint_views(words, views_of(rows, None, 0), 0)):
        near = np.diff(views.graph.indptr)
        full = min(full, n)
        assert np.all(near == np.where(np.arange(n) < full, full - 1, 0))
        assert np.isfinite(views.latent).all()
        assert np.isfinite(views.spectral).all()
        assert np.isfinite(views.flowed(np.ones((n, 1)), 0.9)).all()


def test_images_are_known_by_their_neighbors():
    X, y = load_digits(return_X_y=True)
    labels = Labels(np.arange(10), _few(y, 5))
    right = {
        name: np.mean(values.argmax(axis=1) == y)
        for name, values in all_values(views_of(X, None, 0), labels).items()
    }
    assert min(right["spectral"], right["spreading"]) > max(right["latent"], right["svm"]) + 0.03


def test_probabilities_are_as_confident_as_the_teacher_is_right():
    values = np.random.default_rng(0).normal(size=(400, 3))
    values -= values.max(axis=1, keepdims=True)
    for accuracy in (0.5, 0.7, 0.9):
        assert confident(values, accuracy).max(axis=1).mean() == pytest.approx(accuracy, abs=1e-6)


def test_a_class_without_a_label_is_never_predicted(texts):
    X, y = texts
    codes = _few(y, 5)
    codes[codes == 2] = -1
    labels = Labels(np.arange(4), codes)
    rows = l2_log(X)
    for name, values in all_values(views_of(rows, usual_weights(rows), 0), labels).items():
        assert not np.any(values.argmax(axis=1) == 2), name


@pytest.mark.parametrize("sparse", [False, True])
def test_where_one_class_has_labels_all_teachers_say_so(texts, sparse):
    rows, _ = texts
    codes = np.where(np.arange(rows.shape[0]) < 5, 1, UNKNOWN)
    views = views_of(rows, np.ones(rows.shape[1]) if sparse else None, 0)
    for name, values in all_values(views, Labels(np.arange(2), codes)).items():
        assert (values[:, 1] == 0).all(), name
        assert (values[:, 0] == -np.inf).all(), name


def test_known_labels_are_kept_and_count_most(texts):
    X, y = texts
    labels = encode_labels(_few(y, 5))
    rows = l2_log(X)
    hidden = [np.flatnonzero(labels.labeled)[::3]]
    lesson, (without,) = lessons_of(views_of(rows, usual_weights(rows), 0), labels, hidden)
    known = labels.labeled
    np.testing.assert_array_equal(lesson.labels.codes[known], labels.codes[known])
    assert np.all(lesson.weights[known] == 1)
    assert np.all(lesson.weights[~known] <= TAUGHT_WEIGHT)
    assert np.all(without.weights[hidden[0]] <= TAUGHT_WEIGHT)
    assert sum(lesson.teachers.values()) == pytest.approx(1)
    assert np.mean(lesson.labels.codes == y) > 0.7


def test_with_few_labels_teachers_of_images_learn_from_each_other():
    digits = load_digits()
    rows = digits.data / np.linalg.norm(digits.data, axis=1, keepdims=True)
    views = views_of(rows, None, 0)
    hits = {True: [], False: []}
    for draw in range(4):
        labels = encode_labels(_few(digits.target, 2, seed=draw))
        unknown = ~labels.labeled
        lesson, _ = lessons_of(views, labels, [])
        nothing = {name: [] for name in lesson.teachers}
        Q, _, _ = weighed(all_values(views, labels), nothing, sparse=False)
        for learned, said in ((True, lesson.labels.codes), (False, Q.argmax(axis=1))):
            hits[learned].append(np.mean(said[unknown] == digits.target[unknown]))
        np.testing.assert_array_equal(lesson.labels.codes[~unknown], labels.codes[~unknown])
    assert np.mean(hits[True]) > np.mean(hits[False]) + 0.005


def test_vectors_beside_words_help_if_they_tell_and_cost_little_if_not(texts):
    rng = np.random.default_rng(0)
    some = rng.permutation(len(texts[1]))[:250]
    rows, y = l2_log(texts[0][some]), texts[1][some]
    words = views_of(rows, usual_weights(rows), 0)
    noise = rng.standard_normal((len(y), 20))
    telling = noise + 4 * rng.standard_normal((4, 20))[y]

    def accuracy(vectors, draw):
        views = words if vectors is None else joint_views(words, views_of(vectors, None, 0), 0)
        labels = encode_labels(_few(y, 3, seed=draw))
        hidden = [np.flatnonzero(labels.labeled)[k::3] for k in range(3)]
        lesson, _ = lessons_of(views, labels, hidden)
        assert sum(lesson.teachers.values()) == pytest.approx(1)
        return np.mean(lesson.labels.codes == y)

    alone, misled, helped = (
        np.mean([accuracy(vectors, draw) for draw in range(2)])
        for vectors in (None, noise, telling)
    )
    assert helped > alone + 0.02
    assert misled > alone - 0.05


def test_hidden_labels_have_no_part_in_what_is_said_without_them(texts):
    X, y = texts
    codes = _few(y, 4)
    labels = encode_labels(codes)
    rows = l2_log(X)
    views = views_of(rows, usual_weights(rows), 0)
    hidden = np.flatnonzero(codes >= 0)[:4]
    wrong = codes.copy()
    wrong[hidden] = (wrong[hidden] + 1) % 4
    (one,), (other,) = (
        lessons_of(views, each, [hidden])[1] for each in (labels, encode_labels(wrong))
    )
    np.testing.assert_array_equal(one.labels.codes, other.labels.codes)
    np.testing.assert_array_equal(one.weights, other.weights)


def test_few_labels_are_taught_and_all_labels_need_no_teacher():
    digits = load_digits_49()
    few = np.where(np.arange(len(digits.target)) < 20, digits.target, -1)
    model = NMFAlphaClassifier(8, max_iter=20, random_state=0, rehearse=False).fit(digits.data, few)
    assert model.teachers_
    assert model.parts_.output == "mixed"
    full = NMFAlphaClassifier(8, max_iter=10, rehearse=False).fit(digits.data, digits.target)
    assert not full.teachers_
    assert full.parts_.output == "mixed"


def test_the_cost_is_chosen_where_labels_can_tell():
    docs = load_docstrings()
    rows, y = l2_log(sp.csr_array(docs.data)[:900].astype(float)), docs.target[:900]
    few = NMFAlphaClassifier(8, max_iter=5, random_state=0).fit(rows, _few(y, 5))
    many = NMFAlphaClassifier(8, max_iter=5, random_state=0).fit(rows, y)
    assert len({setting.C for setting in few.selection_}) == 1
    tried = {setting.C: float(np.mean(own)) for setting, own in many.selection_.items()}
    assert len(tried) > 1
    assert tried[many.C_] > max(tried.values()) - 0.02


def test_teachers_beat_labels_alone(texts):
    X, y = texts
    rows = l2_log(X)
    scores = {
        pseudo: np.mean([
            NMFAlphaClassifier(16, pseudo=pseudo, random_state=0, max_iter=20, rehearse=False,
                               lam=10.0, map_iter=40, C=4.0, normalize=True)
            .fit(rows, _few(y, 3, seed=draw)).score(rows, y)
            for draw in range(3)
        ])
        for pseudo in ("teachers", None)
    }  # fmt: skip
    assert scores["teachers"] > scores[None] + 0.05


def test_explanations_add_up_to_the_decision_values(texts):
    X, y = texts
    rows = sp.csr_array(l2_log(X))
    for output in ("mixed", "projection", "coefficients"):
        model = NMFAlphaClassifier(
            8, output=output, pseudo="teachers", max_iter=10, rehearse=False, random_state=0
        ).fit(rows, _few(y, 5))
        some = rows[:12]
        said = contributions(model, some, np.zeros(12, dtype=int)).sum(axis=1)
        expected = model.decision_function(some)[:, 0] - model.intercept_[0]
        np.testing.assert_allclose(np.asarray(said).ravel(), expected, atol=1e-6)


def test_the_same_fit_from_sparse_and_dense_rows():
    digits = load_digits_49()
    y = np.where(np.arange(len(digits.target)) < 20, digits.target, -1)
    dense, sparse = (
        NMFAlphaClassifier(8, max_iter=15, random_state=0, rehearse=False).fit(X, y)
        for X in (digits.data, sp.csr_array(digits.data))
    )
    np.testing.assert_array_equal(dense.predict(digits.data), sparse.predict(digits.data))


@pytest.fixture(scope="module")
def tagged(texts):
    """Texts with a label for each of four topics, and two for pairs of topics; 24 are labeled."""
    X, topic = texts
    y = np.column_stack([topic[:, None] == np.arange(4), topic < 2, topic % 2 == 0]).astype(int)
    codes = np.full_like(y, -1)
    rows = np.random.default_rng(0).permutation(len(y))[:24]
    codes[rows] = y[rows]
    return l2_log(X), y, codes


def test_labels_keep_their_shares():
    rng = np.random.default_rng(0)
    values, shares = rng.normal(size=(200, 3)) * (1, 5, 20), np.array([0.02, 0.3, 0.9])
    P = with_shares(values, shares)
    np.testing.assert_allclose(P.mean(axis=0), shares, atol=1e-6)
    for own, p in zip(values.T, P.T, strict=True):
        assert np.all(np.diff(p[np.argsort(own)]) >= 0)


def test_the_cut_has_the_largest_expected_f():
    P = np.random.default_rng(0).random(40) ** 3
    expected = {cut: 2 * P[cut <= P].sum() / (np.sum(cut <= P) + P.sum()) for cut in P}
    cut = best_cut(P)
    assert cut == max(expected, key=expected.get)
    # the rule of Lewis: give what is more probable than half the best F
    assert np.array_equal(cut <= P, expected[cut] / 2 < P)


def test_a_teacher_that_guesses_counts_less():
    rng = np.random.default_rng(0)
    truth = (rng.random((300, 5)) < 0.3).astype(np.int64)
    values = rng.normal(size=(300, 5, 4))
    values[..., 1:] += 2 * truth[..., None]
    prior = np.zeros(5)
    opinion = Opinion.learned([Answers(values, prior)], [truth])
    assert opinion.shares[0] < 0.5 * opinion.shares[1:].min()
    assert opinion.shares.sum() == pytest.approx(1)
    np.testing.assert_allclose(Opinion.learned([], []).shares, 0.25)


def test_known_entries_of_several_labels_are_kept(tagged):
    rows, _, codes = tagged
    labels = encode_labels(np.where(np.arange(6) == 5, -1, codes))  # of one label nothing is known
    codes = labels.codes.copy()
    codes[np.flatnonzero(labels.labeled)[:5], 0] = -1  # and some single entries
    labels = Labels(labels.classes, codes)
    hidden = [np.flatnonzero(labels.labeled)[k::2] for k in range(2)]
    views = views_of(rows, usual_weights(rows), 0)
    lesson, without = lessons_of_several(views, labels, hidden)
    for each, left in zip((lesson, *without), (labels, *map(labels.hide, hidden)), strict=True):
        known = left.codes >= 0
        np.testing.assert_array_equal(each.labels.codes[known], left.codes[known])
        assert np.all(each.weights[known] == 1)
        assert np.all((each.weights[~known] > 0) & (each.weights[~known] <= TAUGHT_WEIGHT))
        assert each.labels.complete.all()
        assert not each.labels.codes[:, 5].any()


def test_hidden_entries_have_no_part_in_what_is_said_without_them(tagged):
    rows, _, codes = tagged
    hidden = np.flatnonzero(codes[:, 0] >= 0)[:8]
    wrong = codes.copy()
    wrong[hidden] = 1 - wrong[hidden]
    views = views_of(rows, usual_weights(rows), 0)
    (one,), (other,) = (
        lessons_of_several(views, encode_labels(each), [hidden])[1] for each in (codes, wrong)
    )
    np.testing.assert_array_equal(one.labels.codes, other.labels.codes)
    np.testing.assert_array_equal(one.weights, other.weights)


def test_teachers_beat_labels_alone_where_samples_have_several(tagged):
    rows, y, codes = tagged
    given = {"lam": 10.0, "map_iter": 40, "C": 4.0, "normalize": True, "rehearse": False}
    models = [
        NMFAlphaClassifier(16, pseudo=pseudo, random_state=0, max_iter=30, **given)
        for pseudo in ("auto", None)
    ]
    values = [model.fit(rows, codes).decision_function(rows) for model in models]
    taught, alone = (quality(each, encode_labels(y), "f1_micro") for each in values)
    assert models[0].teachers_
    assert not models[1].teachers_
    assert taught > alone + 0.05


def test_weights_of_entries_are_those_of_rows_where_all_are_alike(tagged):
    rows, y, _ = tagged
    labels, rng = encode_labels(y), np.random.default_rng(0)
    weights = rng.random(len(y)) + 0.1
    spec = DirectionSpec()
    one, other = (
        find_directions(rows, labels, spec, weights=each).S
        for each in (weights, np.repeat(weights[:, None], 6, axis=1))
    )
    np.testing.assert_array_equal(one.toarray(), other.toarray())
    S = find_directions(rows, labels, spec, by_mass=True).S
    assert (S.T @ rows.sum(axis=1)).sum() == pytest.approx(rows.sum())
