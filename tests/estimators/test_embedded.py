"""Embeddings in front of scikit-learn's face: `SemiNMFAlpha` and ``embedded`` columns."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.preprocessing import normalize

from marginparts import (
    Checkpoint,
    NMFAlpha,
    NMFAlphaClassifier,
    NMFAlphaCV,
    SemiNMFAlpha,
    load,
    save,
    to_pyldavis,
    topic_view,
)

LITTLE = {"max_iter": 20, "random_state": 0, "rehearse": False}


@pytest.fixture(scope="module")
def blobs():
    """Points around three centers of either sign, of which nine are labeled."""
    X, target = make_blobs(150, 8, centers=3, cluster_std=2.0, random_state=1)
    y = np.full(150, -1)
    known = np.concatenate([np.flatnonzero(target == k)[:3] for k in range(3)])
    y[known] = target[known]
    return X - X.mean(axis=0), y, target


@pytest.fixture(scope="module")
def words(blobs):
    """Counts of words, of which a third speaks for each center."""
    rng, target = np.random.default_rng(0), blobs[2]
    words = rng.poisson(0.2, (150, 60)) + 0.0
    words[np.arange(150), 20 * target + rng.integers(0, 20, 150)] += 2
    return words


@pytest.mark.parametrize("output", ["gram", "coefficients", "projection"])
def test_what_lies_in_the_span_is_rebuilt(output, blobs):
    X, y, _ = blobs
    parts = SemiNMFAlpha(6, output=output, map_iter=None, random_state=0).fit(X, y)
    assert_allclose(np.linalg.norm(parts.components_, axis=1), 1)
    H = np.random.default_rng(0).random((5, 6))
    rows = H @ parts.components_
    assert_allclose(parts.inverse_transform(parts.transform(rows)), rows, atol=1e-3)


def test_hyperplanes_lie_in_the_span(blobs):
    X, y, _ = blobs
    kept = [SemiNMFAlpha(3, lam=lam, random_state=0).fit(X, y).margin_kept_ for lam in (0.0, 1e4)]
    assert kept[1].mean() > kept[0].mean()


def test_sparse_data_gives_what_dense_data_does(blobs):
    X, y, _ = blobs
    X = np.where(np.abs(X) > 3, X, 0)
    ours = [
        SemiNMFAlpha(3, init="random", max_iter=30, tol=0, random_state=0).fit(form(X), y)
        for form in (np.asarray, sp.csr_array)
    ]
    assert_allclose(ours[0].components_, ours[1].components_, atol=1e-6)


def test_a_classifier_of_an_embedding(blobs, tmp_path):
    X, y, target = blobs
    model = NMFAlphaClassifier(4, embedded="all", **LITTLE).fit(X, y)
    assert model.score(X, target) > 0.95
    save(model, tmp_path / "model")
    assert_array_equal(load(tmp_path / "model").decision_function(X), model.decision_function(X))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_a_classifier_of_words_and_an_embedding(form, blobs, words, tmp_path):
    X, y, target = blobs
    both = form(np.hstack([words, X]))
    model = NMFAlphaClassifier(4, embedded=8, **LITTLE).fit(both, y)
    assert model.score(both, target) > 0.95
    assert model.parts_.components_.shape == (4, 60)
    assert model.embedding_parts_.components_.shape == (4, 8)
    assert model.transform(both).shape == (150, 4)
    save(model, tmp_path / "model")
    assert_array_equal(
        load(tmp_path / "model").decision_function(both), model.decision_function(both)
    )


def test_parts_of_vectors_do_not_depend_on_how_long_the_texts_are(blobs, words):
    X, y, _ = blobs
    longer = words * np.random.default_rng(1).integers(1, 9, (150, 1))
    ours, others = (
        NMFAlphaClassifier(4, embedded=8, **LITTLE).fit(np.hstack([each, X]), y).embedding_parts_
        for each in (words, longer)
    )
    assert_allclose(ours.components_, others.components_, atol=1e-6)


@pytest.mark.parametrize("silent", [[0], [0, 1, 2]])
def test_vectors_keep_the_margin_of_a_class_without_words(silent, blobs, words):
    X, y, target = blobs
    some = words * ~np.isin(target, silent)[:, None]
    model = NMFAlphaClassifier(4, embedded=8, **LITTLE).fit(np.hstack([some, X]), y)
    assert list(model.embedding_parts_.margin_names_) == ["0", "1", "2"]
    assert list(model.parts_.margin_names_) == [str(k) for k in range(3) if k not in silent]


def test_the_words_of_a_classifier_with_vectors_are_matched_by_name(blobs):
    pd = pytest.importorskip("pandas")
    X, y, target = blobs
    words = np.random.default_rng(0).poisson(0.2, (150, 9)) + 0.0
    words[np.arange(150), 3 * target] += 2
    names = [*"abcdefghi", *(f"vector {k}" for k in range(8))]
    both = pd.DataFrame(np.hstack([words, X]), columns=names)
    source = NMFAlphaClassifier(3, embedded=8, **LITTLE).fit(both, y)
    after = both[list("ihgfedcba")]
    expected = source.parts_.components_[:, ::-1]
    fixed = NMFAlpha(4, fixed=source, random_state=0, max_iter=5).fit(after)
    assert_array_equal(fixed.components_[:3], expected)
    near = NMFAlpha(4, prior=source, strength=1e6, random_state=0).fit(after)
    assert_allclose(near.components_[:3], expected, atol=1e-3)


def test_signs_are_refused_with_the_way_out(blobs):
    X, y, _ = blobs
    for model in (NMFAlpha(2), NMFAlphaClassifier(2)):
        with pytest.raises(ValueError, match=r"embedded='all'.* or SemiNMFAlpha"):
            model.fit(X, y)


def test_an_embedding_that_does_not_come_last_is_refused(blobs, words):
    X, y, _ = blobs
    with pytest.raises(ValueError, match="only the last 8 may have them, so put the embedding"):
        NMFAlphaClassifier(2, embedded=8).fit(np.hstack([X, words]), y)


@pytest.mark.parametrize(
    "model", [SemiNMFAlpha(2), NMFAlphaClassifier(2, embedded="all")], ids=["parts", "classifier"]
)
def test_gaps_in_an_embedding_can_only_be_filled(model, blobs):
    X, y = blobs[0].copy(), blobs[1]
    X[3, 3] = np.nan
    with pytest.raises(ValueError, match="contains NaN, a value that is missing; fill it"):
        model.fit(X, y)
    if "missing" in model.get_params():
        with pytest.raises(ValueError, match="missing needs data without embedded columns"):
            model.set_params(missing="nan").fit(X, y)


@pytest.mark.parametrize("form", ["coo", "bsr", "csr"])
def test_any_format_of_a_sparse_matrix_is_fitted_and_scored(form, blobs, words):
    X, y, target = blobs
    both = sp.coo_array(np.hstack([words, X])).asformat(form)
    assert NMFAlphaClassifier(3, embedded=8, **LITTLE).fit(both, y).score(both, target) > 0.9


def test_parts_of_words_can_be_read_as_topics_and_those_of_vectors_cannot(blobs, words):
    X, y, _ = blobs
    both = np.hstack([words, X])
    model = NMFAlphaClassifier(3, embedded=8, **LITTLE).fit(both, y)
    ours, alone = topic_view(model, both), topic_view(model.parts_, words)
    assert_array_equal(ours.words, alone.words)
    assert ours.feature_names == alone.feature_names
    assert_array_equal(topic_view(model, words.tolist()).words, alone.words)
    with pytest.raises(ValueError, match="Expected 2D array, got 1D array"):
        topic_view(model, np.ones(5))
    found, given = to_pyldavis(model, both), to_pyldavis(model.parts_, words)
    assert found.keys() == given.keys()
    for name, value in given.items():
        assert_array_equal(found[name], value)


def test_margin_components_have_the_mass_of_all_rows_where_teachers_see_some(
    blobs, words, monkeypatch
):
    X, y, _ = blobs
    both = np.hstack([words, X])

    def masses():
        model = NMFAlphaClassifier(3, embedded=8, **LITTLE).fit(both, y)
        pairs = ((words, model.parts_), (X, model.embedding_parts_))
        return [np.abs(own.directions_.T @ rows).sum() / np.abs(rows).sum() for rows, own in pairs]

    of_all = masses()
    some = np.sort(np.unique([*np.flatnonzero(y != -1), *range(0, len(y), 3)]))
    monkeypatch.setattr("marginparts.selection._taught.enough_rows", lambda *_: some)
    assert len(some) < len(y)
    assert_allclose(masses(), of_all, rtol=0.2)
    with pytest.raises(ValueError, match="these have either sign"):
        topic_view(SemiNMFAlpha(2, random_state=0).fit(X, y), X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_a_unit_of_the_data_changes_nothing_or_is_refused(form, dtype, blobs):
    X, y, _ = blobs
    last, fits, refused = np.finfo(dtype).maxexp - 10, {}, []
    for power in np.linspace(-last, last, 17).astype(int):
        model = SemiNMFAlpha(3, max_iter=3, tol=0, random_state=0)
        try:
            fits[power] = model.fit(form(np.ldexp(X, power).astype(dtype)), y)
        except ValueError as error:
            refused.append(str(error))
    assert all(each.endswith("; divide X by its largest entry.") for each in refused)
    assert 5 <= len(fits) <= 9  # whose squares are within the range
    expected = model.fit(X.astype(dtype), y)
    for power, fit in fits.items():
        assert_allclose(fit.components_, expected.components_, atol=1e-4)
        assert_allclose(fit.margin_kept_, expected.margin_kept_, atol=1e-3)
        error = fit.reconstruction_err_ / 2.0**power
        assert_allclose(error, expected.reconstruction_err_, rtol=1e-4)


@pytest.mark.parametrize("unit", [1e-24, 1e19])
@pytest.mark.parametrize("beside", [False, True])
def test_vectors_out_of_the_range_of_float32_are_refused(beside, unit, blobs, words):
    X, y, target = blobs

    def data(vectors):
        return np.hstack([words, vectors] if beside else [vectors]).astype(np.float32)

    model = NMFAlphaClassifier(6, embedded=8 if beside else "all", C=1, lam=1, **LITTLE)
    small = "embedded columns" if beside else "entries"
    size = f"{small} of X .* too small" if unit < 1 else "entries of X .* too large"
    with pytest.raises(ValueError, match=rf"^The {size} to be squared.* by \w+ largest entry\.$"):
        model.fit(data(unit * X), y)
    some = data(unit * X / np.abs(unit * X).max())
    some[0, -1] = 1e-44  # what is small beside others is harmless
    assert model.fit(some, y).score(some, target) > 0.9


@pytest.mark.parametrize("kind", [SemiNMFAlpha, NMFAlphaClassifier, NMFAlphaCV])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_rows_that_count_are_judged_by_themselves(form, kind, blobs):
    X, y, _ = blobs
    more = {"max_iter": 20} if kind is SemiNMFAlpha else {**LITTLE, "embedded": "all"}
    model = kind(3, **more)
    for unit, says in ((0, "needs at least one entry of X that is not zero"), (1e-24, "too small")):
        rows = np.where(y[:, None] < 0, X, unit * X).astype(np.float32)
        with pytest.raises(ValueError, match=says):
            model.fit(form(rows), y, sample_weight=(y >= 0).astype(float))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"embedded": 9}, "more than the 8 columns"),
        ({"embedded": -1}, "integer, 0 or larger"),
        ({"embedded": "all", "pseudo": "svm"}, "need teachers"),
        ({"embedded": "all", "prior": np.ones((1, 8))}, "prior needs data without"),
        ({"embedded": "all", "init": "nndsvda"}, "init must be 'auto' or 'random', and it is 'nnd"),
        ({"embedded": "all", "init": (np.ones((150, 2)), np.ones((8, 2)))}, "it is a pair"),
        ({"embedded": "ALL"}, "a number of columns, or 'all'"),
        ({"embedded": 3, "alpha_H": 0.1}, "alpha_H needs data without"),
    ],
)
def test_what_makes_no_sense_is_refused(changes, says, blobs):
    X, y, _ = blobs
    with pytest.raises(ValueError, match=says):
        NMFAlphaClassifier(2, **LITTLE, **changes).fit(np.abs(X), y)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_a_weight_is_a_row_given_as_often(form, blobs):
    X, y, _ = blobs
    X, y = X[:60], y[:60]
    counts = 2 * (np.arange(60) % 3)  # two thirds of the rows are repeats
    often = np.random.default_rng(0).permutation(np.repeat(np.arange(60), counts))
    model = SemiNMFAlpha(3, max_iter=10, random_state=0)
    once = clone(model).fit(form(X), y, sample_weight=counts)
    twice = clone(model).fit(form(X[often]), y[often])
    assert_array_equal(once.components_, twice.components_)
    assert once.reconstruction_err_ == twice.reconstruction_err_
    assert once.directions_.shape == (60, once.margin_components_.shape[0])
    assert not once.directions_[counts == 0].count_nonzero()
    # what several rows bear together is what one of them bears that counts as much
    for fit, rows in ((once, X), (twice, X[often])):
        kept = sp.csr_array(fit.margin_components_).toarray()
        assert_allclose(normalize(fit.directions_.T @ rows), normalize(kept), atol=1e-6)


@pytest.mark.parametrize("solver", ["mu", "cd"])
def test_a_fit_that_was_killed_ends_with_the_same_bits(solver, blobs, tmp_path):
    X, y, _ = blobs
    options = {"solver": solver, "max_iter": 20, "tol": 0, "random_state": 0}
    checkpoint = Checkpoint(tmp_path / "fit.ckpt", every_iterations=4)

    def kill(progress):
        if progress.iteration == 11:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        SemiNMFAlpha(3, checkpoint=checkpoint, callback=kill, **options).fit(X, y)
    resumed = SemiNMFAlpha(3, checkpoint=checkpoint, **options).fit(X, y)
    whole = SemiNMFAlpha(3, **options).fit(X, y)
    assert_array_equal(resumed.components_, whole.components_)
    assert_array_equal(resumed.loss_curve_, whole.loss_curve_)


def test_backends_agree_and_unknown_ones_are_refused(blobs):
    X, y, _ = blobs
    options = {"max_iter": 10, "tol": 0, "random_state": 0}
    ours, slow = (
        SemiNMFAlpha(3, backend=each, **options).fit(X, y) for each in ("numba", "reference")
    )
    assert_allclose(ours.components_, slow.components_, atol=1e-10)
    assert_allclose(ours.transform(X), slow.transform(X), atol=1e-9)
    with pytest.raises(ValueError, match="backend='abacus' is unknown"):
        SemiNMFAlpha(3, backend="abacus").fit(X, y)
