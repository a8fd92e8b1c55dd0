"""Starts: what they depend on, that they scale with the data and hold no zeros."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from marginparts import class_start, nmf_alpha
from marginparts.solve.start import mean_entry, nndsvd_start, random_start, uniform_rows
from marginparts.validation import seed_of
from oracle import KINDS, make_case

kinds = pytest.mark.parametrize("kind", KINDS)
seeds = pytest.mark.parametrize("seed", [0, 1, 12345])


@seeds
def test_a_random_row_depends_on_the_seed_the_stream_and_its_index_alone(seed):
    few, many = uniform_rows(seed, 0, (5, 3)), uniform_rows(seed, 0, (50, 3))
    assert_array_equal(few, many[:5])
    assert not np.array_equal(few, uniform_rows(seed, 1, (5, 3)))
    assert not np.array_equal(few, uniform_rows(seed + 1, 0, (5, 3)))
    assert (many >= 0.5).all()
    assert (many < 1.5).all()


@kinds
@seeds
def test_more_samples_leave_the_random_start_of_the_others_up_to_the_mean(kind, seed):
    X = make_case(0, n=30, d=8).X
    (H, V), (H2, V2) = (random_start(KINDS[kind](M), 4, seed) for M in (X, X[:10]))
    ratio = np.sqrt(X[:10].mean() / X.mean())
    assert_allclose(H2, ratio * H[:10], rtol=1e-12)
    assert_allclose(V2, ratio * V, rtol=1e-12)


@kinds
def test_a_random_start_has_the_mean_and_the_type_of_the_data(kind):
    X = 1000 * np.random.default_rng(0).random((200, 100)).astype(np.float32)
    H, V = random_start(KINDS[kind](X), 10, 0)
    assert H.dtype == V.dtype == np.float32
    assert_allclose((H @ V.T).mean(), X.mean(), rtol=0.05)


def test_the_mean_counts_zeros():
    X = sp.csr_array(np.array([[1.0, 0.0], [0.0, 2.0]]))
    assert mean_entry(X) == 0.75


def test_every_way_to_give_a_seed():
    assert seed_of(7) == seed_of(np.int64(7)) == 7
    for make in (np.random.RandomState, np.random.default_rng):
        assert seed_of(make(3)) == seed_of(make(3))
        assert seed_of(make(3)) != seed_of(make(4))
        twice = make(3)
        assert seed_of(twice) != seed_of(twice)  # a generator moves on
    assert isinstance(seed_of(None), int)


def test_large_seeds_are_seeds_of_their_own():
    found = [seed_of(seed) for seed in (0, 2**32 - 1, 2**32, 2**40, 2**40 + 1, 2**200)]
    assert found[:2] == [0, 2**32 - 1]  # what fits is left as it is
    assert len(set(found)) == len(found)
    assert all(0 <= seed < 2**32 for seed in found)
    with pytest.raises(ValueError, match="random_state=-1 must be 0 or larger"):
        seed_of(-1)


@kinds
@pytest.mark.parametrize("variant", ["nndsvda", "nndsvdar"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nndsvd_starts_have_no_zeros(kind, variant, dtype):
    blocks = sp.block_diag([np.ones((6, 4)), 2 * np.ones((5, 7))]).toarray().astype(dtype)
    H, V = nndsvd_start(KINDS[kind](blocks), 4, 0, variant)  # two components beyond the rank
    assert H.dtype == V.dtype == dtype
    assert (H > 0).all()
    assert (V > 0).all()


@kinds
@pytest.mark.parametrize("variant", ["nndsvda", "nndsvdar"])
def test_nndsvd_finds_the_blocks(kind, variant):
    blocks = sp.block_diag([np.ones((6, 4)), 2 * np.ones((5, 7))]).toarray()
    H, V = nndsvd_start(KINDS[kind](blocks), 2, 0, variant)
    assert_allclose(H @ V.T, blocks, atol=0.1)
    # the sign and size of the leading component: it is the larger block
    assert_array_equal(V.argmax(axis=1), [1] * 4 + [0] * 7)


@pytest.mark.parametrize("init", ["random", "nndsvda", "nndsvdar"])
def test_no_start_makes_the_loss_infinite(init):
    X = make_case(0, density=0.3).X
    losses = nmf_alpha(X, 3, init=init, random_state=0, max_iter=5).losses
    assert np.isfinite(losses).all()


# --- From labels ---------------------------------------------------------------------------------


def labeled(seed=0, classes=3, each=12, d=12):
    """Samples of a class share the features they use; every fourth is unlabeled."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(classes), each)
    X = rng.random((len(y), d)) * (1 + 20 * (np.arange(d) % classes == y[:, None]))
    return X, np.where(np.arange(len(y)) % 4 == 3, -1, y)


def shares(V):
    return V / V.sum(axis=0)


@kinds
def test_one_column_a_class_is_the_class_mean_with_a_tenth_of_noise(kind):
    X, y = labeled()
    H, V = class_start(KINDS[kind](X), y, 3, random_state=0)
    means = np.stack([X[y == k].mean(axis=0) for k in range(3)], axis=1)
    noise = uniform_rows(0, 1, (12, 3)) / 12
    assert_allclose(V, 0.9 * shares(means) + 0.1 * noise, rtol=1e-10)
    assert H.shape == (36, 3)


@kinds
def test_as_many_columns_as_samples_are_the_samples(kind):
    X, y = labeled(classes=2, each=4)
    y[:] = [0, 0, -1, -1, 1, 1, -1, -1]
    _, V = class_start(KINDS[kind](X), y, 4, random_state=0)
    noise = uniform_rows(0, 1, (12, 4)) / 12
    assert_allclose(V, 0.9 * shares(X[[0, 1, 4, 5]].T) + 0.1 * noise, rtol=1e-10)


@kinds
def test_in_between_are_centroids_of_each_class_and_the_rest_is_random(kind):
    X, y = labeled()
    _, V = class_start(KINDS[kind](X), y, 7, random_state=0)
    owner = np.array([V[np.arange(12) % 3 == k].sum(axis=0) for k in range(3)]).argmax(axis=0)
    assert_array_equal(np.bincount(owner[:6]), [2, 2, 2])
    assert_allclose(V[:, 6], uniform_rows(0, 1, (12, 7))[:, 6] / 12)


def test_with_fewer_columns_than_classes_the_best_known_classes_come_first():
    X, y = labeled()
    y[y == 1] = np.where(np.arange((y == 1).sum()) < 2, 1, -1)  # only two are left of class 1
    _, V = class_start(X, y, 2, random_state=0)
    assert set((np.arange(12) % 3)[V.argmax(axis=0)]) == {0, 2}


@kinds
def test_a_start_from_labels_is_positive_and_has_the_mass_of_each_sample(kind):
    X, y = labeled()
    X[4] = 0
    H, V = class_start(KINDS[kind](X), y, 5, random_state=0)
    assert (H > 0).all()
    assert (V > 0).all()
    full = X.sum(axis=1) > 0
    assert_allclose((H @ V.T).sum(axis=1)[full], X.sum(axis=1)[full], rtol=0.5)


def test_samples_may_have_several_labels():
    X, y = labeled(classes=2)
    Y = np.stack([y == 0, y >= 0], axis=1).astype(int)  # the second label is everybody's
    Y[y == -1] = -1
    _, V = class_start(X, Y, 2, random_state=0)
    means = np.stack([X[y >= 0].mean(axis=0), X[y == 0].mean(axis=0)], axis=1)
    noise = uniform_rows(0, 1, (12, 2)) / 12
    assert_allclose(V, 0.9 * shares(means) + 0.1 * noise, rtol=1e-10)


def test_class_start_keeps_the_type_and_the_seed():
    X, y = labeled()
    single = class_start(X.astype(np.float32), y, 6, random_state=1)
    assert {factor.dtype for factor in single} == {np.dtype(np.float32)}
    again = class_start(X.astype(np.float32), y, 6, random_state=1)
    for one, two in zip(single, again, strict=True):
        assert_array_equal(one, two)


def test_duplicate_samples_of_a_class_need_no_warning_about_clusters():
    X = np.repeat([[1.0, 2.0, 3.0], [3.0, 1.0, 1.0]], 10, axis=0)
    _, V = class_start(X, np.repeat([0, 1], 10), 6, random_state=0)  # warnings are errors
    assert_allclose(shares(V)[:, :3].mean(axis=1), X[0] / X[0].sum(), rtol=0.2)
    assert_allclose(shares(V)[:, 3:].mean(axis=1), X[-1] / X[-1].sum(), rtol=0.2)


def test_the_width_of_sparse_indices_does_not_matter():
    X, y = labeled()
    narrow, wide = sp.csr_array(X), sp.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    for one, two in zip(class_start(narrow, y, 6, 0), class_start(wide, y, 6, 0), strict=True):
        assert_allclose(one, two)
