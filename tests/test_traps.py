"""The table of traps (algorithms.md, section 2): each row has a test here, by its name."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from marginparts import (
    ConstrainedNMF,
    NMFAlpha,
    SemiSupervisedNMF,
    TransductiveSVM,
    class_start,
    margin_directions,
    nmf_alpha,
)
from marginparts.backends import get_backend
from marginparts.solve import map as mapping
from marginparts.solve.map import map_rows
from marginparts.svm.duals import DualProblem, solve_duals
from oracle import BACKENDS, KINDS, eq_14, make_case, paper_updates

backends = pytest.mark.parametrize("backend", BACKENDS)
kinds = pytest.mark.parametrize("kind", KINDS)
solvers = pytest.mark.parametrize("solver", ["mu", "mue"])
transformers = pytest.mark.parametrize(
    "transformer", [NMFAlpha, SemiSupervisedNMF, ConstrainedNMF], ids=lambda cls: cls.__name__
)


def labeled_data(seed=0, n=30, d=12, classes=2):
    """Nonnegative data with zeros; the first half is labeled."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    X = rng.random((n, d)) * (rng.random((n, d)) < 0.6)
    X[:, :classes] += y[:, None] == np.arange(classes)
    return X, np.where(np.arange(n) < n // 2, y, -1)


# --- Zeros of X ----------------------------------------------------------------------------------


@backends
@kinds
def test_zeros_of_x_count_in_the_loss_through_the_fit_alone(backend, kind):
    """Only nonzeros are touched, yet the sum of V H covers all entries."""
    case = make_case(0, density=0.2)
    assert (case.X == 0).mean() > 0.5
    result = nmf_alpha(
        KINDS[kind](case.X), 3, S=case.S, lam=0.5, init=(case.H, case.V), max_iter=1, tol=0,
        solver="mu", backend=backend,
    )  # fmt: skip
    assert_allclose(result.losses[0], eq_14(case.X.T, case.V, case.H.T, case.S, 0.5), rtol=1e-12)


@backends
def test_zeros_of_x_that_are_stored_are_like_those_that_are_not(backend):
    X, _ = labeled_data()
    stored = sp.csr_array(X)
    full = sp.csr_array(np.ones_like(X))
    full.data[:] = X.ravel()
    options = {"random_state": 0, "max_iter": 5, "solver": "mu", "backend": backend}
    assert_array_equal(nmf_alpha(stored, 3, **options).V, nmf_alpha(full, 3, **options).V)


# --- A word that never occurs in the training rows -----------------------------------------------


@backends
@kinds
@solvers
def test_a_word_that_never_occurs_has_a_zero_row_in_v(backend, kind, solver):
    X, _ = labeled_data()
    X[:, 5] = 0
    result = nmf_alpha(
        KINDS[kind](X), 3, random_state=0, max_iter=8, tol=0, solver=solver, backend=backend
    )
    assert_array_equal(result.V[5], 0)
    assert np.isfinite(result.losses).all()


@kinds
@transformers
def test_a_word_that_never_occurs_does_not_move_the_code_of_a_test_row(transformer, kind):
    X, y = labeled_data()
    X[:, 5] = 0
    parts = transformer(3, random_state=0, max_iter=20).fit(KINDS[kind](X), y)
    new = X[:4].copy()
    new[:, 5] = [1.0, 100.0, 1e-3, 0.0]
    assert_array_equal(parts.components_[:, 5], 0)
    assert_allclose(
        parts.transform(KINDS[kind](new)), parts.transform(KINDS[kind](X[:4])), rtol=1e-10
    )


@kinds
@transformers
def test_a_row_of_nothing_but_unknown_words_maps_to_zero(transformer, kind):
    X, y = labeled_data()
    X[:, 5] = 0
    parts = transformer(3, random_state=0, max_iter=20).fit(KINDS[kind](X), y)
    only = np.zeros((1, X.shape[1]))
    only[0, 5] = 7
    assert_array_equal(parts.transform(KINDS[kind](only)), 0)


# --- An empty sample -----------------------------------------------------------------------------


@backends
@kinds
def test_an_empty_sample_has_a_zero_row_in_h_after_one_step(backend, kind):
    X, _ = labeled_data()
    X[4] = 0
    result = nmf_alpha(KINDS[kind](X), 3, random_state=0, max_iter=1, backend=backend)
    assert_array_equal(result.H[4], 0)
    assert (result.H[5] > 0).all()


@kinds
@pytest.mark.parametrize("source", ["svm", "perceptron", "pa", "class"])
def test_an_empty_sample_has_a_zero_row_in_s(kind, source):
    X, y = labeled_data()
    X[4] = 0
    assert y[4] >= 0
    S = margin_directions(KINDS[kind](X), y, directions=source, random_state=0).toarray()
    assert_array_equal(S[4], 0)
    assert np.isfinite(S).all()
    assert S.any()


@backends
@kinds
def test_an_empty_sample_with_coefficients_is_taken_literally_by_nmf_alpha(backend, kind):
    case = make_case(0)
    case.X[2] = 0
    assert case.S[2].any()
    H, V = paper_updates(case, 0.7, n_iter=3)
    result = nmf_alpha(
        KINDS[kind](case.X), 3, S=case.S, lam=0.7, init=(case.H, case.V), max_iter=3, tol=0,
        solver="mu", backend=backend,
    )  # fmt: skip
    assert_allclose(result.H, H, rtol=1e-10)
    assert_allclose(result.V, V, rtol=1e-10)


@kinds
@transformers
@pytest.mark.parametrize("output", ["gram", "coefficients"])
def test_an_empty_sample_is_transformed_to_zeros(transformer, kind, output):
    X, y = labeled_data()
    X[[4, 20]] = 0  # one labeled, one not
    parts = transformer(3, random_state=0, max_iter=20, output=output)
    Z = parts.fit(KINDS[kind](X), y).transform(KINDS[kind](X))
    assert np.isfinite(Z).all()
    assert_array_equal(Z[[4, 20]], 0)
    assert (np.abs(np.delete(Z, [4, 20], axis=0)).sum(axis=1) > 0).all()


# --- Flooring ------------------------------------------------------------------------------------


@backends
@kinds
def test_flooring_is_not_in_mu(backend, kind):
    """Two separate blocks: foreign entries die out far below any epsilon, as the paper's do."""
    X = sp.block_diag([np.ones((4, 3)), 2 * np.ones((4, 3))]).toarray()
    X[0, 0] = 3
    rng = np.random.default_rng(0)
    case = make_case(0)._replace(
        X=X, S=np.zeros((8, 2)), H=np.repeat(np.eye(2), 4, axis=0) + 0.1 * rng.random((8, 2)),
        V=np.repeat(np.eye(2), 3, axis=0) + 0.1 * rng.random((6, 2)),
    )  # fmt: skip
    H, V = paper_updates(case, 0, n_iter=25)
    result = nmf_alpha(
        KINDS[kind](X), 2, init=(case.H, case.V), max_iter=25, tol=0, solver="mu", backend=backend
    )
    assert V.min() < 1e-25
    assert_allclose(result.V, V, rtol=1e-9)  # relative: small entries count as much
    assert_allclose(result.H, H, rtol=1e-9)


@backends
@kinds
def test_flooring_a_row_of_v_would_change_the_code_of_a_sample(backend, kind):
    """The trap's own example: what a floor of 1e-12 does to the map of an unknown word."""
    rng = np.random.default_rng(0)
    V = rng.random((6, 3))
    V[5] = 0
    x = np.array([[1.0, 2.0, 0.5, 1.0, 0.0, 3.0]])
    floored = np.maximum(V, 1e-12)
    skipped = map_rows(KINDS[kind](x), V, 200, backend)
    assert_allclose(skipped, map_rows(KINDS[kind](x[:, :5]), V[:5].copy(), 200, backend), rtol=1e-9)
    assert np.abs(map_rows(KINDS[kind](x), floored, 200, backend) - skipped).max() > 0.1


# --- A dead component ----------------------------------------------------------------------------


@backends
@kinds
@solvers
@pytest.mark.parametrize("dead", ["V", "H", "V and H"])
def test_a_dead_component_stays_dead_and_harms_no_other(backend, kind, solver, dead):
    case = make_case(0)
    H, V = case.H.copy(), case.V.copy()
    V[:, 1] *= "V" not in dead
    H[:, 1] *= "H" not in dead
    options = {"S": case.S, "solver": solver, "max_iter": 6, "tol": 0, "backend": backend}
    X, keep = KINDS[kind](case.X), [0, 2]
    result = nmf_alpha(X, 3, init=(H, V), **options)
    without = nmf_alpha(X, 2, init=(H[:, keep], V[:, keep]), **options)
    assert_allclose(result.V[:, keep], without.V, rtol=1e-10)
    assert_allclose(result.H[:, keep], without.H, rtol=1e-10)
    assert_array_equal(result.H[:, 1] * result.V[:, 1].sum(), 0)
    assert np.isfinite(result.losses).all()


@backends
@kinds
@pytest.mark.parametrize(("dtype", "size"), [(np.float32, 1e-42), (np.float64, 1e-312)])
def test_a_dying_component_passes_through_the_smallest_numbers_without_a_nan(
    backend, kind, dtype, size
):
    """On its way to zero a column's sum has an inverse that is too large for its type."""
    case = make_case(0)
    H, V = case.H.astype(dtype), case.V.astype(dtype)
    H[:, 1] = size
    result = nmf_alpha(
        KINDS[kind](case.X.astype(dtype)), 3, init=(H, V), solver="mu", max_iter=3, tol=0,
        backend=backend,
    )  # fmt: skip
    assert np.isfinite(result.V).all()
    assert np.isfinite(result.H).all()
    assert (np.diff(result.losses) <= 0).all()


@transformers
def test_a_dead_component_does_no_harm_to_the_map(transformer):
    X, y = labeled_data()
    H, V = np.ones((30, 3)), np.random.default_rng(0).random((12, 3))
    V[:, 1] = 0
    parts = transformer(3, init=(H, V), max_iter=10).fit(X, y)
    assert_array_equal(parts.components_[1], 0)
    assert np.isfinite(parts.transform(X)).all()
    assert np.isfinite(parts.inverse_transform(parts.transform(X))).all()


# --- A column of XS with no mass -----------------------------------------------------------------


@kinds
@pytest.mark.parametrize("scale", [True, False])
def test_a_column_of_xs_with_no_mass_is_left_out_and_said(kind, scale):
    """The only labeled samples of class 2 are empty."""
    X, y = labeled_data(classes=3)
    X[y == 2] = 0
    with pytest.warns(UserWarning, match="Left out 1 of 3 classifiers.*: 2"):
        S = margin_directions(KINDS[kind](X), y, scale=scale, random_state=0).toarray()
    assert S.shape == (30, 4)
    assert ((S.T @ X).sum(axis=1) > 0).all()
    if scale:
        assert_allclose((S.T @ X).sum(axis=1), X.sum() / 4, rtol=1e-10)


def test_a_column_of_xs_with_no_mass_because_of_its_coefficients_is_left_out_too():
    X, y = labeled_data(classes=3)

    def source(features, signs):
        # nothing to say about the negatives of the first class
        first = np.array_equal(signs > 0, y[: len(signs)] == 0)
        return np.where((signs < 0) & first, 0.0, 1.0)

    with pytest.warns(UserWarning, match="Left out 1 of 3 classifiers.*: 0"):
        S = margin_directions(X, y, directions=source)
    assert S.shape == (30, 4)
    assert np.isfinite(S.data).all()


@backends
@kinds
def test_a_column_of_xs_with_no_mass_given_to_nmf_alpha_changes_nothing(backend, kind):
    case = make_case(0)
    options = {"init": (case.H, case.V), "solver": "mu", "max_iter": 4, "backend": backend}
    X = KINDS[kind](case.X)
    with_empty = np.insert(case.S, 1, 0, axis=1)
    assert_allclose(
        nmf_alpha(X, 3, S=with_empty, **options).V, nmf_alpha(X, 3, S=case.S, **options).V
    )


# --- The map of a row ----------------------------------------------------------------------------


@kinds
@transformers
def test_the_map_of_a_row_depends_on_that_row_alone(transformer, kind):
    X, y = labeled_data(n=60)
    X[40:] *= 1000  # other rows of another size
    X[:20, 4:] = 0  # and of another density
    parts = transformer(4, random_state=0, max_iter=20).fit(X, y)
    store = KINDS[kind]
    Z = parts.transform(store(X))
    assert_allclose(parts.transform(store(X[:5])), Z[:5], rtol=1e-9)
    assert_allclose(parts.transform(store(X[::-1])), Z[::-1], rtol=1e-9)
    one_by_one = np.vstack([parts.transform(store(X[[i]])) for i in range(60)])
    assert_allclose(one_by_one, Z, rtol=1e-9)


def test_the_map_of_a_row_is_bitwise_its_own_on_sparse_data():
    X, y = labeled_data(n=60)
    rows = sp.csr_array(X.astype(np.float32))
    parts = NMFAlpha(4, random_state=0, max_iter=20, output="coefficients").fit(rows, y)
    assert_array_equal(parts.transform(rows[:5]), parts.transform(rows)[:5])


@backends
@kinds
def test_the_map_of_a_row_is_the_same_in_chunks(backend, kind, monkeypatch):
    X, _ = labeled_data(n=50)
    V = np.random.default_rng(0).random((12, 3))
    whole = map_rows(KINDS[kind](X), V, 7, backend)
    monkeypatch.setattr(mapping, "_CHUNK", 3 * 7)  # seven rows at a time
    assert_allclose(map_rows(KINDS[kind](X), V, 7, backend), whole, rtol=1e-12)


@backends
@kinds
def test_the_map_of_a_row_is_eq_4_with_v_frozen(backend, kind):
    X, _ = labeled_data()
    V = np.random.default_rng(0).random((12, 3))
    H = np.ones((30, 3)) / V.sum(axis=0)
    for _ in range(6):
        H = H * ((X / (H @ V.T)) @ V) / V.sum(axis=0)
    assert_allclose(map_rows(KINDS[kind](X), V, 6, backend), H, rtol=1e-10)


# --- NNDSVD zeros --------------------------------------------------------------------------------


@kinds
@pytest.mark.parametrize("init", ["nndsvda", "nndsvdar"])
def test_nndsvd_zeros_are_filled_so_that_the_loss_is_finite_and_honest(kind, init):
    """Not a single entry with x > 0 may be skipped, at the start or later."""
    X, _ = labeled_data()
    result = nmf_alpha(KINDS[kind](X), 4, init=init, random_state=0, max_iter=10, tol=0)
    fitted = result.H @ result.V.T
    assert (fitted[X > 0] > 0).all()
    zeros = np.zeros((30, 2))
    assert_allclose(
        result.losses[-1], eq_14(X.T, result.V, result.H.T, zeros, 0.0), rtol=1e-9
    )  # fmt: skip


# --- One class only, or a class without labels ---------------------------------------------------


@kinds
@pytest.mark.parametrize("multiclass", ["ovr", "ovo"])
@pytest.mark.parametrize("labels", ["one class", "none"])
def test_one_class_only_is_said_and_leaves_an_empty_s(kind, multiclass, labels):
    X, y = labeled_data()
    y = np.where(y == 0, 0 if labels == "one class" else -1, -1)
    with pytest.warns(UserWarning, match="no margin to keep and this is plain NMF"):
        S = margin_directions(KINDS[kind](X), y, multiclass=multiclass)
    assert S.shape == (30, 0)


def test_one_class_only_is_plain_nmf():
    X, y = labeled_data()
    options = {"init": "random", "random_state": 0, "max_iter": 10}
    plain = NMFAlpha(3, **options).fit(X)
    with pytest.warns(UserWarning, match="plain NMF"):
        same = NMFAlpha(3, **options).fit(X, np.where(y == 0, 0, -1))
    assert_array_equal(same.components_, plain.components_)


@pytest.mark.parametrize("pseudo", ["svm", "tsvm"])
@pytest.mark.parametrize("labels", ["one class", "none"])
def test_one_class_only_leaves_pseudo_labels_without_a_say(pseudo, labels):
    X, y = labeled_data()
    y = np.where(y == 0, 0 if labels == "one class" else -1, -1)
    with pytest.warns(UserWarning, match="plain NMF"):
        assert margin_directions(X, y, pseudo=pseudo).shape == (30, 0)


@pytest.mark.parametrize("known", [0, 1, -1], ids=["nobody's", "everybody's", "unknown"])
def test_a_class_without_labels_is_skipped_and_said(known):
    X, y = labeled_data()
    Y = np.stack([y, np.where(y >= 0, known, -1)], axis=1)
    with pytest.warns(UserWarning, match="Left out 1 of 2 classifiers.*: 1"):
        S = margin_directions(X, Y, random_state=0)
    alone = margin_directions(X, y, random_state=0)
    assert_allclose(S.toarray(), alone.toarray(), rtol=1e-6, atol=1e-9)


# --- Duplicate samples ---------------------------------------------------------------------------


@kinds
def test_duplicate_samples_have_equal_coefficients_whatever_the_seed(kind):
    X, y = labeled_data()
    X, y = np.vstack([X, X]), np.concatenate([y, y])
    S = [margin_directions(KINDS[kind](X), y, random_state=s).toarray() for s in range(3)]
    size = S[0].max()
    assert_allclose(S[0][:30], S[0][30:], atol=2e-3 * size)
    for other in S[1:]:
        assert_allclose(other, S[0], atol=2e-3 * size)


# --- The SVM saw x / |x| -------------------------------------------------------------------------


@kinds
def test_the_svm_saw_x_over_its_length_so_its_coefficients_are_divided_by_it(kind):
    X, y = labeled_data()
    X *= np.random.default_rng(0).uniform(0.1, 10, (30, 1))
    lengths = np.linalg.norm(X, axis=1)
    seen = X / lengths[:, None]
    S = margin_directions(
        KINDS[kind](X), y, features=KINDS[kind](seen), scale=False, random_state=0
    ).toarray()
    rows = np.flatnonzero(y >= 0)
    problem = DualProblem(rows, np.where(y[rows] == 1, 1.0, -1.0), np.ones(len(rows)))
    solution = solve_duals(seen, [problem], tol=1e-4, seed=0)[0]
    assert_allclose(S[rows].sum(axis=1), solution.alpha / lengths[rows], rtol=1e-9)
    assert_allclose(X.T @ (S[:, 0] - S[:, 1]), solution.w, rtol=1e-8, atol=1e-10)


# --- float32 -------------------------------------------------------------------------------------


@backends
@kinds
def test_float32_sums_over_many_samples_keep_their_digits(backend, kind):
    """A feature that 300,000 samples share: each adds a little to a large sum."""
    n = 300_000
    X, A, B = np.full((n, 2), 0.1, np.float32), np.ones((n, 1), np.float32), np.ones((2, 1), "f4")
    kernels = get_backend(backend)
    P = kernels.prepare(KINDS[kind](X))
    step = kernels.half_step(P.T, B, A, np.array([float(n)])).factor
    assert_allclose(step, 0.1, rtol=1e-4)


@backends
@kinds
def test_float32_losses_are_summed_in_float64(backend, kind):
    rng = np.random.default_rng(0)
    X = rng.random((2000, 60), dtype=np.float32)
    H, V = rng.random((2000, 4), dtype=np.float32), rng.random((60, 4), dtype=np.float32)
    kernels = get_backend(backend)
    single = kernels.divergence(kernels.prepare(KINDS[kind](X)), H, V)
    double = kernels.divergence(
        kernels.prepare(KINDS[kind](X.astype(float))), H.astype(float), V.astype(float)
    )
    assert_allclose(single, double, rtol=2e-7)


@kinds
@transformers
@pytest.mark.parametrize("power", [-100, 100])  # 1e-30 and 1e30
def test_float32_survives_extreme_scales(transformer, kind, power):
    """A power of two changes no digit, so the parts must be the same, and the codes too."""
    X, y = labeled_data()
    X, scale = X.astype(np.float32), np.float32(2.0**power)
    ordinary = transformer(4, random_state=0, max_iter=20).fit(KINDS[kind](X), y)
    extreme = transformer(4, random_state=0, max_iter=20).fit(KINDS[kind](X * scale), y)
    assert extreme.components_.dtype == np.float32
    assert_allclose(extreme.components_, ordinary.components_, rtol=1e-3, atol=1e-6)
    Z, expected = extreme.transform(KINDS[kind](X * scale)), ordinary.transform(KINDS[kind](X))
    assert Z.dtype == np.float32
    assert_allclose(Z / scale, expected, rtol=1e-3, atol=1e-5)


@kinds
@pytest.mark.parametrize("power", [-100, 100])
@pytest.mark.parametrize("features", [None, "hellinger"])
@pytest.mark.parametrize("source", ["svm", "pa"])
def test_float32_survives_extreme_scales_in_the_directions(kind, power, features, source):
    X, y = labeled_data()
    X, scale = X.astype(np.float32), np.float32(2.0**power)
    options = {"features": features, "directions": source, "random_state": 0}
    ordinary = margin_directions(KINDS[kind](X), y, **options).toarray()
    extreme = margin_directions(KINDS[kind](X * scale), y, **options).toarray()
    assert_allclose(extreme, ordinary, rtol=1e-3, atol=1e-6)


@kinds
@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_float32_survives_extreme_rows_among_ordinary_ones_in_the_map(kind, scale):
    X, y = labeled_data()
    parts = NMFAlpha(4, random_state=0, max_iter=20).fit(X.astype(np.float32), y)
    mixed = X.astype(np.float32)
    mixed[:5] *= np.float32(scale)
    Z = parts.transform(KINDS[kind](mixed)).astype(float)
    expected = parts.transform(KINDS[kind](X.astype(np.float32)))
    assert_allclose(Z[:5] / scale, expected[:5], rtol=1e-3, atol=1e-5)
    assert_allclose(Z[5:], expected[5:], rtol=1e-4, atol=1e-6)


# --- Numbers at the edge of what can be counted --------------------------------------------------


def test_empty_rows_of_a_class_leave_no_negative_part():
    """K-means gives roundings of either sign as the center of empty rows."""
    X = np.random.default_rng(0).random((40, 30))
    X[20:32] = 0
    y = [0] * 20 + [1] * 20
    assert class_start(X, y, 4, random_state=0)[1].min() > 0
    for estimator in (NMFAlpha, SemiSupervisedNMF, ConstrainedNMF):
        assert estimator(4, random_state=0).fit(X, y).components_.min() >= 0
    weighted = NMFAlpha(6, random_state=0).fit(X, y, sample_weight=np.linspace(1, 2, 40))
    assert weighted.components_.min() >= 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_divergence_is_never_below_zero(dtype):
    """An exact factorization has a loss of zero, up to rounding of either sign."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = np.outer(rng.integers(1, 5, 12), rng.integers(1, 5, 9)).astype(dtype)
        assert min(nmf_alpha(X, 3, random_state=seed, tol=0, max_iter=100).losses) >= 0


def test_entries_that_vanish_beside_huge_ones_leave_a_finite_loss():
    rng = np.random.default_rng(1)
    X = rng.random((15, 8)) * 10.0 ** rng.choice([-300, 0, 300], size=(15, 8))
    X = sp.csr_array(X * (rng.random(X.shape) < 0.4))
    assert np.isfinite(nmf_alpha(X, 3, random_state=0).losses).all()


def test_numbers_out_of_range_are_refused_in_one_sentence():
    X, y = labeled_data()
    for call in (
        lambda X: nmf_alpha(X, 3), lambda X: margin_directions(X, y),
        lambda X: NMFAlpha(3).fit(X, y),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="too large to be summed; divide X"):
            call(X * (1e308 / X.max()))
    for estimator in (SemiSupervisedNMF, ConstrainedNMF, TransductiveSVM):
        with pytest.raises(ValueError, match="too large to be squared; divide X"):
            estimator().fit(X * 1e200, y)
    with pytest.raises(ValueError, match="too small for float32; multiply X"):
        NMFAlpha(3).fit((X / X.max() * 1e-40).astype(np.float32), y)


def test_a_transductive_svm_on_long_rows_ends_with_a_warning():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 9, (60, 5)) * 1e150, np.where(np.arange(60) < 30, 0, -1)
    y[:30] = rng.integers(0, 3, 30)
    with pytest.warns(ConvergenceWarning, match="did not converge; divide the rows"):
        model = TransductiveSVM(random_state=0).fit(X, y)
    assert np.isfinite(model.coef_).all()
