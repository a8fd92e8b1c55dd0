"""A factorization read as a topic model, against loops and against PLSA's own EM."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from marginparts import NMFAlpha, NMFAlphaConsensus, to_pyldavis, topic_view
from marginparts import topics as module


def corpus(seed=0, n=12, d=9, r=3, size=60):
    rng = np.random.default_rng(seed)
    V = rng.dirichlet(np.full(d, 0.5), r)
    return rng.poisson(size * rng.dirichlet(np.full(r, 0.5), n) @ V).astype(float)


def fitted(X, r=3, **options):
    options = {"random_state": 0, "max_iter": 3000, "tol": 0, "solver": "mu", **options}
    return NMFAlpha(r, **options).fit(X)


def plsa(X, words, n_iter=20000):
    """Return the proportions (n, r) of the most likely mixtures of given topics, by EM."""
    found = np.full((len(X), len(words)), 1 / len(words))
    for _ in range(n_iter):
        found *= (X / np.maximum(found @ words, 1e-300)) @ words.T
        found /= np.maximum(found.sum(axis=1, keepdims=True), 1e-300)
    return found


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_proportions_are_those_of_plsa(form):
    X = corpus() + 1
    model = fitted(X, max_iter=50)
    view = topic_view(model, form(X))
    assert_allclose(view.proportions, plsa(X, view.words), atol=2e-4)
    assert_allclose(view.proportions.sum(axis=1), 1)
    assert_allclose(view.words.sum(axis=1), 1)
    assert_allclose(view.sizes, X.sum(axis=1), rtol=1e-5)
    assert_allclose(view.shares, view.sizes @ view.proportions / X.sum(), rtol=1e-5)


def test_fixed_parts_of_any_size_are_words_too():
    X = corpus() + 1
    view = topic_view(fitted(X, fixed=7 * X[:1], max_iter=50), X)
    assert_allclose(view.words.sum(axis=1), 1)
    assert_allclose(view.sizes, X.sum(axis=1), rtol=1e-4)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**31), st.booleans())
def test_credits_and_errors_are_those_of_loops(seed, weighted):
    X = corpus(seed % 1000) + np.eye(12, 9)
    model = fitted(X, max_iter=20)
    C = np.rint(3 * X) if weighted else X
    view = topic_view(model, X, counts=C)
    H = view.proportions * view.sizes[:, None]
    share = H[:, None, :] * view.words.T[None]
    share /= share.sum(axis=2, keepdims=True)  # (n, d, r)
    N = np.einsum("ij,ijk->kj", C, share)
    assert_allclose(view.counts, N, rtol=1e-8, atol=1e-10)
    rates = (N + 0.5) / N.sum(axis=1, keepdims=True)
    for k in range(3):
        for j in range(9):
            rival = max((m for m in range(3) if m != k), key=lambda m: rates[m, j])
            a, b, c = (
                sum(C[i, j] * share[i, j, p] * share[i, j, q] for i in range(12))
                for p, q in ((k, k), (rival, rival), (k, rival))
            )
            inverse = np.linalg.inv([[a + 0.5, c], [c, b + 0.5]])
            variance = inverse[0, 0] + inverse[1, 1] - 2 * inverse[0, 1]
            assert_allclose(view.log2_fold[k, j], np.log2(rates[k, j] / rates[rival, j]), atol=1e-8)
            assert_allclose(view.log2_fold_error[k, j], np.sqrt(variance) / np.log(2), rtol=1e-7)


def test_the_information_is_the_curvature_of_the_likelihood():
    X = corpus(3, n=30) + 1
    view = topic_view(fitted(X), X)
    H = view.proportions * view.sizes[:, None]

    def likelihood(j, logs):
        rate = H @ np.exp(logs)
        return float(X[:, j] @ np.log(rate) - rate.sum())

    share = H[:, None, :] * view.words.T[None]
    share /= share.sum(axis=2, keepdims=True)
    step = 1e-4 * np.eye(3)
    for j in range(3):
        logs = np.log(view.words[:, j])
        for k in range(3):
            for m in range(3):
                signs = [(s, t) for s in (1, -1) for t in (1, -1)]
                second = sum(
                    s * t * likelihood(j, logs + s * step[k] + t * step[m]) for s, t in signs
                )
                expected = X[:, j] @ (share[:, j, k] * share[:, j, m])
                assert_allclose(-second / 4e-8, expected, rtol=0.01, atol=0.05)


def test_intervals_hold_the_truth_where_the_proportions_are_known(monkeypatch):
    rng = np.random.default_rng(0)
    held = []
    for _ in range(10):
        V = rng.dirichlet(np.full(30, 1.0), 3)
        H = 100 * rng.dirichlet(np.full(3, 0.3), 150)
        X = rng.poisson(H @ V).astype(float)
        words = V.copy()
        for _ in range(300):  # the most likely words for these proportions
            fit = np.maximum(H @ words, 1e-300)
            words *= (H.T @ (X / fit)) / H.sum(axis=0)[:, None]
        monkeypatch.setattr(module, "_codes_and_words", lambda *_, H=H, words=words: (H, words))
        view = topic_view(fitted(X + 1e-9, max_iter=1), X)
        rival = module._largest_other((view.counts + 0.5) / view.counts.sum(1, keepdims=True))
        truth = np.log2(V / np.take_along_axis(V, rival, axis=0))
        common = (view.counts > 20) & (np.take_along_axis(view.counts, rival, axis=0) > 20)
        held += list((np.abs(view.log2_fold - truth) < 1.96 * view.log2_fold_error)[common])
    assert 0.93 < np.mean(held) < 0.98


def test_distinctive_words_are_surely_so():
    X = np.kron(np.eye(2), np.tile([30.0, 20, 1], (5, 1)))
    X = np.hstack([X, np.full((10, 1), 50.0)])  # as frequent in one part as in the other
    names = ["cat", "dog", "cow", "iron", "zinc", "tin", "the"]
    view = topic_view(fitted(X, 2), X, feature_names=names)
    cats, metals = view.proportions[[0, 5]].argmax(axis=1)
    assert [word.word for word in view.distinctive(cats)] == ["cat", "dog"]  # of cows there are few
    assert [word.word for word in view.distinctive(metals, 2)] == ["iron", "zinc"]
    for word in view.distinctive(cats):
        assert 0 < word.low < word.log2_fold < word.high
        j = names.index(word.word)
        assert word.probability == view.words[cats, j]
        assert word.credited == view.counts[cats, j]
    # the more is counted the surer it is
    more = topic_view(fitted(X, 2), X, counts=4 * X, feature_names=names)
    assert (more.log2_fold_error < 0.6 * view.log2_fold_error).any()


def test_every_kind_of_model_can_be_viewed(monkeypatch):
    X = corpus() + 1
    consensus = NMFAlphaConsensus(NMFAlpha(3), n_runs=2, run_iter=5, random_state=0).fit(X)
    view = topic_view(consensus, X)
    assert_allclose(view.words, consensus.components_)
    monkeypatch.setattr(module, "_AT_ONCE", 30)  # a row at a time
    again = topic_view(consensus, X)
    for name in ("proportions", "counts", "log2_fold", "log2_fold_error"):
        assert_allclose(getattr(again, name), getattr(view, name))
    alone = topic_view(fitted(X, 1), X)
    assert alone.distinctive(0) == []


def test_what_does_not_fit_is_refused():
    X = corpus() + 1
    model = fitted(X, max_iter=5)
    with pytest.raises(ValueError, match="counts has shape"):
        topic_view(model, X, counts=X[1:])
    with pytest.raises(ValueError, match="2 names"):
        topic_view(model, X, feature_names=["a", "b"])


def test_what_pyldavis_needs_are_distributions_over_what_was_counted():
    rng = np.random.default_rng(0)
    counts = rng.poisson(1.0, (30, 12)).astype(float)
    counts[4] = 0  # an empty document
    counts[:, 7] = 0  # a word that nobody wrote
    model = NMFAlpha(3, random_state=0, max_iter=20).fit(counts)
    found = to_pyldavis(model, counts, feature_names=[f"w{j}" for j in range(12)])
    assert found["topic_term_dists"].shape == (3, 11)
    assert found["doc_topic_dists"].shape == (29, 3)
    assert found["vocab"] == [f"w{j}" for j in range(12) if j != 7]
    np.testing.assert_allclose(found["topic_term_dists"].sum(axis=1), 1, rtol=1e-9)
    np.testing.assert_allclose(found["doc_topic_dists"].sum(axis=1), 1, rtol=1e-9)
    kept = counts[np.arange(30) != 4]
    np.testing.assert_array_equal(found["doc_lengths"], kept.sum(axis=1))
    np.testing.assert_array_equal(found["term_frequency"], np.delete(counts.sum(axis=0), 7))


def test_what_pyldavis_needs_is_counted_where_the_data_was_weighted():
    rng = np.random.default_rng(0)
    counts = rng.poisson(1.0, (30, 12)).astype(float)
    model = NMFAlpha(3, random_state=0, max_iter=20).fit(np.log1p(counts))
    found = to_pyldavis(model, np.log1p(counts), counts=counts)
    np.testing.assert_array_equal(found["term_frequency"], counts.sum(axis=0))


@pytest.mark.extra
def test_pyldavis_takes_it():
    pyldavis = pytest.importorskip("pyLDAvis")
    rng = np.random.default_rng(0)
    counts = rng.poisson(0.3 + 3 * (np.arange(30)[:, None] % 5 == np.arange(40) % 5)).astype(float)
    model = NMFAlpha(5, random_state=0, max_iter=50).fit(counts)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        page = pyldavis.prepare(**to_pyldavis(model, counts), n_jobs=1, R=10)
    assert len(page.topic_coordinates) == 5
    assert set(page.token_table["Term"]) <= {f"column {j + 1}" for j in range(40)}
