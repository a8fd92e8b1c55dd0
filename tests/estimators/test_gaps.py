"""Gaps: against a transcription, never a rise, and nothing but what is known matters."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits
from sklearn.utils import get_tags

from marginparts import NMFAlpha, NMFAlphaClassifier, load, save
from marginparts.backends import get_backend
from marginparts.backends.blocked import BlockedBackend
from marginparts.files.atomic import FileProblemError
from marginparts.losses.nmf_alpha import Penalty, Steering
from marginparts.solve.factorize import factorize
from marginparts.solve.gaps import Blocks, Listed, Zeros, found_gaps
from oracle import BACKENDS, KINDS

R = 3
NONE = Penalty()
SHORT = {"solver": "mu", "max_iter": 6, "tol": 0.0, "random_state": 0}


def case(seed=0, n=11, d=9, share=0.3):
    """Data, which of it is known (something of each row and column), and a start."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, d)) * (rng.random((n, d)) > 0.3)
    K = rng.random((n, d)) >= share
    K[np.arange(n), np.arange(n) % d] = K[np.arange(d) % n, np.arange(d)] = True
    X[np.arange(n), np.arange(n) % d] += 0.1
    X[np.arange(d) % n, np.arange(d)] += 0.1
    return X, K, (rng.random((n, R)) + 0.1, rng.random((d, R)) + 0.1)


def with_nan(X, K, form=np.asarray):
    return form(np.where(K, X, np.nan))


def divergence(x, f):
    return (x * np.log(x / f) if x > 0 else 0.0) - x + f


def root(a, u, penalty):
    """The minimum of ``(u + l1) t + l2 / 2 t**2 - a log t``."""
    half = (u + penalty.l1) / 2
    return a / (half + np.sqrt(half**2 + penalty.l2 * a))


def transcription(X, K, H, V, n_iter, S=None, lam=0.0, XS=None, penalty=NONE):
    """The updates of the loss over known entries, index by index, and the loss after them."""
    (n, d), H, V = X.shape, H.copy(), V.copy()
    S = np.zeros((n, 0)) if S is None else S
    XS = S.T @ X if XS is None else XS
    lines = range(S.shape[1])
    for _ in range(n_iter):
        F, HS = H @ V.T, S.T @ H
        G, new = HS @ V.T, np.zeros_like(V)
        for j in range(d):
            for k in range(R):
                u = sum(H[i, k] for i in range(n) if K[i, j]) + lam * sum(HS[m, k] for m in lines)
                a = sum(H[i, k] * X[i, j] / F[i, j] for i in range(n) if K[i, j] and X[i, j] > 0)
                a += lam * sum(HS[m, k] * XS[m, j] / G[m, j] for m in lines if XS[m, j] > 0)
                new[j, k] = root(V[j, k] * a, u, penalty)
        V = new
        F, HS, G, new = H @ V.T, S.T @ H, S.T @ H @ V.T, np.zeros_like(H)
        for i in range(n):
            for k in range(R):
                u = sum(V[j, k] for j in range(d) if K[i, j]) + lam * S[i].sum() * V[:, k].sum()
                a = sum(V[j, k] * X[i, j] / F[i, j] for j in range(d) if K[i, j] and X[i, j] > 0)
                for m in lines:
                    a += (
                        lam
                        * S[i, m]
                        * sum(V[j, k] * XS[m, j] / G[m, j] for j in range(d) if XS[m, j] > 0)
                    )
                new[i, k] = root(H[i, k] * a, u, penalty)
        H = new
    F, G = H @ V.T, S.T @ H @ V.T
    loss = sum(divergence(X[i, j], F[i, j]) for i, j in zip(*np.nonzero(K), strict=True))
    loss += lam * sum(divergence(XS[m, j], G[m, j]) for m in lines for j in range(d))
    return H, V, loss


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("form", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("missing", ["nan", "zeros"])
def test_fit_is_that_of_a_transcription(backend, form, missing):
    X, K, start = case()
    K = K if missing == "nan" else X > 0
    data = with_nan(X, K, form) if missing == "nan" else form(X)
    model = NMFAlpha(R, missing=missing, init=start, backend=backend, **SHORT).fit(data)
    _, V, loss = transcription(X, K, *start, 6)
    assert_allclose(model.components_, V.T / V.sum(axis=0)[:, None], rtol=1e-10)
    assert_allclose(model.loss_curve_[-1], loss, rtol=1e-10)
    assert_allclose(model.reconstruction_err_, np.sqrt(2 * loss), rtol=1e-10)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("form", KINDS.values(), ids=KINDS)
def test_margin_components_are_whole(backend, form):
    X, K, start = case(1)
    y = np.resize([0, 1, -1], len(X))
    model = NMFAlpha(R, missing="nan", lam=2.0, init=start, backend=backend, **SHORT)
    model.fit(with_nan(X, K, form), y)
    S, means = model.directions_.toarray(), (X * K).sum(axis=0) / K.sum(axis=0)
    XS = S.T @ np.where(K, X, means)
    H, V, loss = transcription(X, K, *start, 6, S, 2.0, XS)
    found = model.margin_components_
    assert_allclose(found.toarray() if sp.issparse(found) else found, XS, rtol=1e-10)
    assert_allclose(model.components_, V.T / V.sum(axis=0)[:, None], rtol=1e-10)
    assert_allclose(model.margin_codes_, S.T @ H * V.sum(axis=0), rtol=1e-10)
    assert_allclose(model.loss_curve_[-1], loss, rtol=1e-10)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    share=st.sampled_from([0.05, 0.5, 0.95]),
    missing=st.sampled_from(["nan", "zeros"]),
    form=st.sampled_from(list(KINDS.values())),
    options=st.sampled_from(
        [{}, {"alpha_W": 0.01}, {"alpha_W": 0.01, "l1_ratio": 1.0}, {"fixed": np.eye(1, 9) + 0.1}]
    ),
    solver=st.sampled_from(["mu", "mue", "cd"]),
    labeled=st.booleans(),
    weighted=st.booleans(),
    single=st.booleans(),
)
def test_loss_never_rises(
    seed, share, missing, form, options, solver, labeled, weighted, single
):  # fmt: skip
    X, K, _ = case(seed, share=share)
    X = X.astype(np.float32) if single else X
    data = form(X) if missing == "zeros" else with_nan(X, K, form)
    y = np.resize([0, 1, -1], len(X)) if labeled and missing == "nan" else None
    if weighted:
        options = {**options, "feature_weight": np.linspace(0.1, 3, X.shape[1])}
    model = NMFAlpha(R, missing=missing, solver=solver, max_iter=25, tol=0, random_state=0)
    model.set_params(**options).fit(data, y, np.linspace(0.5, 2, len(X)) if weighted else None)
    losses = model.loss_curve_
    # in float32, rounding of the sum of all terms
    slack = (1e-6 if single else 1e-12) * np.nansum(np.where(K, X, 0)) * 3
    assert np.isfinite(losses).all()
    assert (np.diff(losses) <= slack).all()


@pytest.mark.parametrize("form", KINDS.values(), ids=KINDS)
def test_data_without_gaps_is_fitted_as_ever(form):
    X, _, _ = case()
    options = {"n_components": R, "max_iter": 40, "solver": "mue", "random_state": 0}
    y = np.resize([0, 1, -1], len(X))
    plain = NMFAlpha(**options).fit(form(X), y)
    model = NMFAlpha(missing="nan", **options).fit(form(X), y)
    assert_allclose(model.components_, plain.components_, rtol=1e-8, atol=1e-12)
    assert_allclose(model.transform(X), plain.transform(X), rtol=1e-8, atol=1e-12)


def test_kinds_of_gaps_agree():
    """All but a list, what is not zero, and blocks, of the same entries."""
    rng = np.random.default_rng(0)
    X, (n, d) = rng.random((14, 10)) + 0.1, (14, 10)
    blocks = Blocks(np.arange(n) % 3, rng.permutation(d) % 3, 1, 3)
    K = (blocks.rows[:, None] + blocks.columns) % 3 != 1
    assert_array_equal(blocks.known(X), X * K)
    assert_array_equal(blocks.hidden(sp.csr_array(X)).toarray(), X * ~K)
    start = rng.random((n, R)) + 0.1, rng.random((d, R)) + 0.1
    _, V, loss = transcription(X, K, *start, 5)
    listed = Listed(sp.csr_array(~K).astype(np.int8))
    for gaps, data in ((blocks, X), (listed, X), (Zeros(), X * K)):
        for backend in BACKENDS:
            for form in KINDS.values():
                found = factorize(
                    form(data), *start, solver="mu", max_iter=5, tol=0, backend=backend,
                    steering=Steering(gaps=gaps),
                )  # fmt: skip
                assert_allclose(found.V, V, rtol=1e-10)
                assert_allclose(found.losses[-1], loss, rtol=1e-10)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 40), st.sampled_from([0.0, 0.05, 0.5, 1.0]))
def test_sums_over_what_is_known_keep_their_digits(seed, d, share):
    """A part that lives in the gaps of a row leaves next to nothing, to be known exactly."""
    rng = np.random.default_rng(seed)
    gaps = rng.random((20, d)) < share
    B = 10.0 ** rng.uniform(-14, 0, (d, 2))
    X = np.where(gaps, np.nan, 1.0)
    for backend in map(get_backend, BACKENDS):
        _, found = found_gaps(X, "nan")
        for side, K, factor in zip(
            found.sides(backend, None), (~gaps, ~gaps.T), (B, rng.random((20, 2))), strict=True
        ):
            assert_allclose(side.sums(backend.factor(factor))[:, :2], K @ factor, rtol=1e-13)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("labeled", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_part_that_lives_in_the_gaps_of_a_row_is_updated_exactly(backend, labeled, dtype):
    """Few gaps among many columns: there a backend may subtract, and must not in such rows."""
    rng = np.random.default_rng(0)
    n, d = 40, 120
    X, K = rng.random((n, d)) + 0.1, rng.random((n, d)) > 0.02
    H, V = rng.random((n, R)) + 0.1, rng.random((d, R)) + 0.1
    V[:, 1] *= 1e-9
    V[7, 1] = 1.0  # a part that is all but one column, which a third of the rows do not know
    K[::3, 7] = False
    H[11, 2], K[11, 5:20] = 1e9, False
    X, H, V = (A.astype(dtype) for A in (X, H, V))
    kernels, gaps = get_backend(backend), Listed(sp.csr_array(~K))
    problem = gaps.problem(kernels, kernels.prepare(sp.csr_array(X * K)))
    S = rng.random((n, 2)).astype(dtype) if labeled else np.zeros((n, 0), dtype)
    if labeled:
        problem.S, problem.lam = kernels.coefficients(sp.csr_array(S)), 1e-20
        problem.XS = kernels.prepare(sp.csr_array(S.T @ X), like=problem.X)
    state = {"V": kernels.factor(V), "H": kernels.factor(H)}
    X, H, V, S = (A.astype(np.float64) for A in (X, H, V, S))
    for block, old, B, data, known in (("V", V, H, X.T, K.T), ("H", H, V, X, K)):
        found = problem.update(state, block, gauge=True)
        expected = old * ((known * data / (old @ B.T)) @ B) / (known @ B)
        assert_allclose(
            kernels.release(found.factor, R), expected, rtol=1e-4 if dtype == np.float32 else 1e-8
        )
        assert 0 <= found.violation <= 1
        assert_allclose(found.mass, (known * data).sum(), rtol=1e-4)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("form", KINDS.values(), ids=KINDS)
def test_transform_sees_only_what_is_known(form, backend):
    X, K, _ = case()
    model = NMFAlpha(R, missing="nan", output="coefficients", map_iter=7, random_state=0)
    model.set_params(backend=backend).fit(with_nan(X, K))
    H, V = model.transform(with_nan(X, K, form)), model.components_.T
    for h, x, known in zip(H, X, K, strict=True):
        own, x = V[known], x[known]
        expected = 1 / V.sum(axis=0)
        for _ in range(7):
            expected *= own.T @ (x / (own @ expected)) / own.sum(axis=0)
        assert_allclose(h, expected, rtol=1e-10, atol=1e-300)


def test_gaps_are_filled_by_what_comes_back():
    rng = np.random.default_rng(0)
    M = rng.gamma(0.5, 1, (60, R)) @ rng.gamma(0.5, 1, (R, 40)) + 0.05
    K = rng.random(M.shape) > 0.1
    model = NMFAlpha(R, missing="nan", map_iter=None, max_iter=3000, tol=1e-7, random_state=0)
    data = with_nan(M, K)
    filled = np.where(K, data, model.fit(data).inverse_transform(model.transform(data)))
    assert np.abs(filled - M)[~K].sum() < 0.05 * M[~K].sum()
    ratings = NMFAlpha(R, missing="zeros", map_iter=None, max_iter=3000, tol=1e-7, random_state=0)
    rebuilt = ratings.fit(sp.csr_array(M * K)).inverse_transform(ratings.transform(M * K))
    assert np.abs(rebuilt - M)[~K].sum() < 0.05 * M[~K].sum()


@pytest.mark.parametrize("form", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("labeled", [False, True])
def test_a_mask_is_nan_where_it_is_false(form, labeled):
    X, K, _ = case()
    y, w = np.resize([0, 1, -1], len(X)) if labeled else None, np.resize([1, 1, 0, 2], len(X))
    options = {"n_components": R, "max_iter": 20, "tol": 0, "random_state": 0}
    wanted = NMFAlpha(missing="nan", **options).fit(with_nan(X, K, form), y, w)
    model = NMFAlpha(**options).fit(form(X), y, w, mask=K)
    assert_array_equal(model.components_, wanted.components_)
    codes = wanted.transform(with_nan(X, K, form))
    assert_array_equal(model.transform(form(X), mask=K), codes)
    assert_array_equal(
        NMFAlpha(**options).fit_transform(form(X), y, sample_weight=w, mask=K), codes
    )
    filled = [model.fill(form(X), mask=K), wanted.fill(with_nan(X, K, form))]
    filled = [each.toarray() if sp.issparse(each) else each for each in filled]
    assert_array_equal(*filled)
    rebuilt = wanted.inverse_transform(codes)
    assert_allclose(filled[0], np.where(K, X, rebuilt), rtol=1e-7, atol=1e-9)
    if labeled:
        steps = [wanted.path(with_nan(X, K, form), (1.0,)), model.path(form(X), (1.0,), mask=K)]
        assert_array_equal(*(step.components for (step,) in steps))


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_sparse_mask_lists_what_is_known(backend):
    """Zeros among it count; with a dense X it is the same as any mask, and needs no sparse X."""
    X, K, start = case()
    options = {"n_components": R, "init": start, "backend": backend, **SHORT}
    model = NMFAlpha(**options).fit(sp.csr_array(X), mask=sp.csr_array(K))
    _, V, loss = transcription(X, K, *start, 6)
    assert_allclose(model.components_, V.T / V.sum(axis=0)[:, None], rtol=1e-10)
    assert_allclose(model.loss_curve_[-1], loss, rtol=1e-10)
    dense = NMFAlpha(**options).fit(X, mask=sp.csr_array(K))
    wanted = NMFAlpha(missing="nan", **options).fit(with_nan(X, K))
    assert_array_equal(dense.components_, wanted.components_)
    codes = wanted.transform(with_nan(X, K))
    assert_allclose(model.transform(sp.csr_array(X), mask=sp.csr_array(K)), codes, rtol=1e-8)
    with_holes = X.copy()
    with_holes[0, 0] = np.nan
    both = NMFAlpha(missing="nan", **options).fit(sp.csr_array(with_holes), mask=sp.csr_array(K))
    K[0, 0] = False
    _, V, _ = transcription(X, K, *start, 6)
    assert_allclose(both.components_, V.T / V.sum(axis=0)[:, None], rtol=1e-10)


@pytest.mark.parametrize("form", KINDS.values(), ids=KINDS)
def test_a_classifier_sees_filled_rows(form, tmp_path):
    X, K, _ = case(n=40, share=0.1)
    y, data = np.resize([0, 1, -1], len(X)), with_nan(X, K, form)
    told = {"lam": 1.0, "map_iter": 5, "C": 1.0, "normalize": True, "random_state": 0}
    told |= {"rehearse": False, "max_iter": 20}
    model = NMFAlphaClassifier(R, missing="nan", **told).fit(data, y)
    whole = model.filler_.fill(data)
    by_hand = NMFAlphaClassifier(R, **told).fit(whole, y)
    assert_array_equal(model.decision_function(data), by_hand.decision_function(whole))
    assert_array_equal(model.transform(data), by_hand.transform(whole))
    save(model, tmp_path / "it.model")
    assert_array_equal(load(tmp_path / "it.model").predict(data), model.predict(data))
    del model.filler_
    save(model, tmp_path / "it.model")
    with pytest.raises(FileProblemError, match="filler_"):
        load(tmp_path / "it.model")


@pytest.mark.wide
def test_a_classifier_loses_little_by_gaps():
    """Digits, a tenth of the pixels hidden: nearly as good as whole, and better than zeros."""
    digits, scores = load_digits(), []
    for draw in range(2):
        rng = np.random.default_rng(draw)
        order = rng.permutation(len(digits.data))
        X, truth = digits.data[order], digits.target[order]
        y = np.where(np.arange(len(X)) < 50, truth, -1)[:900]
        hidden = rng.random(X.shape) < 0.1
        options = {"n_components": 32, "rehearse": False, "random_state": 0}
        scores.append([
            NMFAlphaClassifier(missing=missing, **options)
            .fit(data[:900], y).score(data[900:], truth[900:])
            for missing, data in (
                (None, X), ("nan", np.where(hidden, np.nan, X)), (None, np.where(hidden, 0, X))
            )
        ])  # fmt: skip
    whole, filled, zeros = np.mean(scores, axis=0)
    assert filled > whole - 0.025
    assert filled > zeros + 0.02


def test_a_row_or_column_of_which_nothing_is_known_is_zero():
    X, K, _ = case()
    K[3], K[:, 2] = False, False
    model = NMFAlpha(R, missing="nan", output="coefficients", random_state=0).fit(with_nan(X, K))
    assert not model.components_[:, 2].any()
    H = model.transform(with_nan(X, K))
    assert not H[3].any()
    assert H[[0, 1, 2]].any(axis=1).all()


def test_nothing_as_large_as_a_dense_matrix_is_made():
    rng = np.random.default_rng(0)
    n = d = 20_000
    X = sp.csr_array((rng.random(3000), rng.integers(0, n, (2, 3000))), shape=(n, d))
    gaps = X.copy()
    gaps.data[::10] = np.nan
    tracemalloc.start()
    known = sp.csr_array(X.astype(bool) + sp.eye_array(n, dtype=bool))
    for missing, data, mask in (("nan", gaps, None), ("zeros", X, None), (None, X, known)):
        model = NMFAlpha(2, missing=missing, max_iter=2, tol=0, random_state=0).fit(data, mask=mask)
        model.transform(data, mask=mask)
        if missing == "nan":
            assert model.fill(gaps).nnz <= X.nnz
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < n * d / 10


def test_path_and_files_keep_what_is_missing(tmp_path):
    X, K, _ = case()
    data, y = with_nan(X, K), np.resize([0, 1, -1], len(X))
    model = NMFAlpha(R, missing="nan", random_state=0).fit(data, y, np.resize([0, 1], len(X)))
    assert [step.lam for step in model.path(data, (1.0, 3.0))] == [1.0, 3.0]
    save(model, tmp_path / "model.zip")
    assert_array_equal(load(tmp_path / "model.zip").transform(data), model.transform(data))


def test_what_cannot_be_carried_is_refused():
    X, K, start = case()
    data = with_nan(X, K)
    with pytest.raises(ValueError, match="missing='mean' is unknown"):
        NMFAlpha(R, missing="mean").fit(X)
    with pytest.raises(ValueError, match='missing="nan"'):
        NMFAlphaClassifier().fit(data, np.resize([0, 1], len(X)))
    with pytest.raises(ValueError, match="needs most of each row"):
        NMFAlphaClassifier(missing="zeros").fit(X, np.resize([0, 1], len(X)))
    for mask in (K[:-1], K.astype(int)):
        with pytest.raises(ValueError, match="True where an entry is known"):
            NMFAlpha(R).fit(X, mask=mask)
    with pytest.raises(ValueError, match="give one of them"):
        NMFAlpha(R, missing="zeros").fit(X, mask=K)
    with pytest.raises(ValueError, match="at least one positive"):
        NMFAlpha(R).fit(X, mask=X == 0)
    with pytest.raises(ValueError, match="fit without y"):
        NMFAlpha(R).fit(sp.csr_array(X), np.resize([0, 1], len(X)), mask=sp.csr_array(K))
    with pytest.raises(ValueError, match="Negative"):
        NMFAlpha(R, missing="nan").fit(np.where(K, X - 0.5, np.nan))
    with pytest.raises(ValueError, match="infinity"):
        NMFAlpha(R, missing="nan").fit(np.where(K, X, np.inf))
    with pytest.raises(ValueError, match="at least one positive"):
        NMFAlpha(R, missing="nan").fit(np.where(K, 0.0, np.nan))
    with pytest.raises(ValueError, match="fit without y"):
        NMFAlpha(R, missing="zeros").fit(X, np.resize([0, 1], len(X)))
    with pytest.raises(ValueError, match="needs whole rows"):
        NMFAlpha(R, missing="nan", output="projection").fit(data)
    blocked = BlockedBackend(get_backend("reference"), X.nbytes)
    with pytest.raises(ValueError, match="cannot carry gaps"):
        factorize(X, *start, steering=Steering(gaps=Zeros()), backend=blocked)
    assert get_tags(NMFAlpha(missing="nan")).input_tags.allow_nan
    assert not get_tags(NMFAlpha(missing="zeros")).input_tags.allow_nan


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("l1", "l2"), [(0.05, 0.0), (0.05, 0.2)])
@pytest.mark.parametrize("lam", [0.0, 2.0])
def test_penalties_have_the_denominators_of_their_entries(backend, l1, l2, lam):
    X, K, start = case()
    S = np.random.default_rng(0).random((len(X), 4)) * (np.arange(len(X)) < 5)[:, None]
    penalty, gaps = Penalty(l1, l2), Listed(sp.csr_array(~K))
    found = factorize(
        X, *start, S=sp.csr_array(S), lam=lam, solver="mu", max_iter=6, tol=0, backend=backend,
        steering=Steering(penalty, penalty, gaps=gaps),
    )  # fmt: skip
    H, V, loss = transcription(X, K, *start, 6, S, lam, penalty=penalty)
    assert_allclose(found.H, H, rtol=1e-10)
    assert_allclose(found.V, V, rtol=1e-10)
    charge = sum(l1 * A.sum() + l2 / 2 * (A**2).sum() for A in (H, V))
    assert_allclose(found.losses[-1], loss + charge, rtol=1e-10)


@pytest.mark.parametrize("more", [{"exclusivity": 0.1}, {"prior": np.ones((1, 5))}])
def test_what_needs_whole_data_is_refused(more):
    with pytest.raises(ValueError, match="without gaps"):
        NMFAlpha(2, missing="nan", **more).fit(np.ones((6, 5)))
