"""Parts of several fits: matched as well as brute force can, and medians of what agrees."""

from itertools import permutations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from marginparts import match_parts
from marginparts.matching import matched_runs, median_parts


def parts(seed, *shape):
    found = np.random.default_rng(seed).gamma(0.3, size=shape) + 1e-6
    return found / found.sum(axis=-1, keepdims=True)


def likeness(a, b):
    """The cosine of the square roots of two parts that sum to one."""
    return float(np.sqrt(a) @ np.sqrt(b))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31))
def test_no_other_match_has_a_larger_sum(seed):
    A, B = parts(seed, 4, 6), parts(seed + 1, 4, 6)
    order, cosine = match_parts(A, B)
    total = sum(likeness(a, B[k]) for a, k in zip(A, order, strict=True))
    best = max(
        sum(likeness(a, B[k]) for a, k in zip(A, p, strict=True)) for p in permutations(range(4))
    )
    assert_allclose(total, best)
    for a, k, found in zip(A, order, cosine, strict=True):
        assert_allclose(found, a @ B[k] / np.sqrt((a @ a) * (B[k] @ B[k])))


def test_a_part_without_a_match_says_so():
    A = parts(0, 3, 8)
    order, cosine = match_parts(A, 5 * A[[2, 0]])  # the size of a part does not matter
    assert_array_equal(order, [1, -1, 0])
    assert_allclose(cosine, [1, 0, 1])


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31))
def test_shuffled_parts_are_put_together_again(seed):
    rng = np.random.default_rng(seed)
    planted = np.kron(np.eye(4), np.ones(3)) / 3
    orders = np.array([rng.permutation(4) for _ in range(5)])
    runs = np.stack([planted[order] + 0.01 * rng.random((4, 12)) for order in orders])
    found = matched_runs(runs)
    groups = np.take_along_axis(orders, found, axis=1)
    assert_array_equal(groups, np.tile(groups[0], (5, 1)))
    assert sorted(groups[0]) == [0, 1, 2, 3]


def test_groups_of_three_runs_are_as_good_as_any():
    runs = parts(3, 3, 3, 5)

    def total(orders):
        pairs = ((0, 1), (0, 2), (1, 2))
        return sum(
            likeness(runs[i][orders[i][k]], runs[j][orders[j][k]])
            for i, j in pairs for k in range(3)
        )  # fmt: skip

    every = permutations(range(3))
    best = max(total([(0, 1, 2), p, q]) for p in every for q in permutations(range(3)))
    assert_allclose(total(matched_runs(runs)), best)


def test_a_part_unlike_the_others_does_not_move_their_median():
    group = np.array([[6.0, 4, 0, 0], [5, 5, 0, 0], [4, 6, 0, 0], [0, 0, 9, 1]])[:, None] / 10
    assert_allclose(median_parts(group), [[0.5, 0.5, 0, 0]])
    # two that have nothing in common: both stay, and no part vanishes
    assert_allclose(median_parts(group[[0, 3]] * [1.0, 1, 1, 1]).sum(), 1)
    apart = np.eye(4)[:, None]
    assert_allclose(median_parts(apart).sum(), 1)
