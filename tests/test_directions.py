"""From labels to S: whose coefficients, in which order, in which units (eqs. 6-9, 13, 17)."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.stats import norm

from marginparts import margin_directions
from marginparts.directions import SOURCES, DirectionSpec, find_directions
from marginparts.labels import encode_labels
from marginparts.svm._perceptrons import confident_duals, online_duals
from marginparts.svm.duals import DualProblem, solve_duals
from oracle import KINDS, primal_svm

kinds = pytest.mark.parametrize("kind", KINDS)
seeds = pytest.mark.parametrize("seed", range(3))


def data(classes=2, seed=0, n=60, d=40):
    """Nonnegative samples that only nearly separate; every third is unlabeled."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    X = rng.random((n, d)) * (rng.random((n, d)) < 0.3)
    X[:, :classes] += 0.5 * (y[:, None] == np.arange(classes))
    return X, np.where(np.arange(n) % 3 == 2, -1, y)


def directions(X, y, **options):
    """S as a dense array, from a fixed seed."""
    S = margin_directions(X, y, **{"random_state": 0, **options})
    assert isinstance(S, sp.csr_array)
    return S.toarray()


def weights(X, S):
    """``w = w+ - w-`` of each classifier, one a column (eqs. 7-10)."""
    p = S.shape[1] // 2
    return X.T @ (S[:, :p] - S[:, p:])


def questions(y, multiclass):
    """Rows and signs of the two-class questions, in the order of eq. 17."""
    c = y.max() + 1
    if c == 2 or multiclass == "ovo":
        pairs = [(a, b) for a in range(c) for b in range(a + 1, c)]
        return [(np.flatnonzero((y == a) | (y == b)), b) for a, b in pairs]
    return [(np.flatnonzero(y >= 0), k) for k in range(c)]


# --- The SVM -------------------------------------------------------------------------------------


@kinds
@pytest.mark.parametrize(("classes", "multiclass"), [(2, "ovr"), (4, "ovr"), (4, "ovo")])
def test_unscaled_s_gives_the_weight_vectors_of_the_dual_solver(kind, classes, multiclass):
    X, y = data(classes)
    S = directions(KINDS[kind](X), y, scale=False, multiclass=multiclass)
    tasks = questions(y, multiclass)
    problems = [DualProblem(i, np.where(y[i] == k, 1.0, -1.0), np.ones(len(i))) for i, k in tasks]
    solved = solve_duals(X, problems, tol=1e-4, seed=0)
    assert S.shape == (60, 2 * len(tasks))
    assert_allclose(weights(X, S), np.stack([s.w for s in solved], axis=1), rtol=1e-8, atol=1e-10)


@kinds
@seeds
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_unscaled_s_gives_the_weight_vector_of_linear_svc(kind, seed, C):
    X, y = data(seed=seed)
    S = directions(KINDS[kind](X), y, scale=False, C=C)
    expected = primal_svm(X[y >= 0], y[y >= 0], C)
    error = np.linalg.norm(weights(X, S)[:, 0] - expected)
    assert error <= 1e-4 * np.linalg.norm(expected)


def test_a_hard_problem_is_solved_to_the_end():
    """Noise as labels and a large cost: some thousand passes, a few hundredths of a second."""
    rng = np.random.default_rng(0)
    X = sp.csr_array(sp.random_array((60, 40), density=0.3, random_state=rng).toarray())
    y = rng.integers(0, 2, 60)
    w = weights(X.toarray(), directions(X, y, scale=False, C=100.0))[:, 0]
    expected = primal_svm(X, y, 100.0)
    assert np.linalg.norm(w - expected) <= 1e-4 * np.linalg.norm(expected)


@kinds
@pytest.mark.parametrize("multiclass", ["ovr", "ovo"])
def test_columns_are_all_plus_then_all_minus(kind, multiclass):
    """Eq. 17: column t holds positives of classifier t alone, column p + t its negatives."""
    X, y = data(4)
    S = directions(KINDS[kind](X), y, directions="class", scale=False, multiclass=multiclass)
    tasks = questions(y, multiclass)
    p = len(tasks)
    for t, (rows, k) in enumerate(tasks):
        negative = np.setdiff1d(rows, np.flatnonzero(y == k))
        assert_array_equal(np.flatnonzero(S[:, t]), np.flatnonzero(y == k))
        assert_array_equal(np.flatnonzero(S[:, p + t]), negative)


@pytest.mark.parametrize(
    ("classes", "multiclass", "p"), [(2, "ovr", 1), (2, "ovo", 1), (5, "ovr", 5), (5, "ovo", 10)]
)
def test_how_many_classifiers(classes, multiclass, p):
    X, y = data(classes)
    assert directions(X, y, multiclass=multiclass).shape == (60, 2 * p)


def test_every_label_of_multilabel_data_has_its_own_classifier_over_its_known_entries():
    X, y = data(3)
    Y = (y[:, None] == np.arange(3)).astype(int)
    Y[y == -1] = -1
    Y[0] = [1, -1, 0]  # one entry unknown
    S = directions(X, Y, directions="class", scale=False)
    plus, minus = S[:, :3], S[:, 3:]
    assert_array_equal(plus, Y == 1)
    assert_array_equal(minus, Y == 0)


def test_unlabeled_rows_are_zero_and_all_entries_nonnegative():
    X, y = data(3)
    S = directions(X, y)
    assert_array_equal(S[y == -1], 0)
    assert S.min() == 0
    assert (S[y >= 0].sum(axis=1) > 0).any()


# --- Units ---------------------------------------------------------------------------------------


@kinds
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("multiclass", ["ovr", "ovo"])
def test_scaled_columns_share_the_mass_of_x(kind, source, multiclass):
    X, y = data(3)
    S = directions(KINDS[kind](X), y, directions=source, multiclass=multiclass)
    assert_allclose((S.T @ X).sum(axis=1), X.sum() / S.shape[1], rtol=1e-10)


@kinds
def test_scaled_s_does_not_depend_on_the_units_of_x(kind):
    X, y = data()
    assert_allclose(
        directions(KINDS[kind](X), y), directions(KINDS[kind](1024 * X), y), rtol=1e-9, atol=1e-12
    )


def test_scaling_changes_the_columns_sizes_alone_when_rows_have_length_one():
    """Then the classifiers see the same data."""
    X, y = data()
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    raw, scaled = directions(X, y, scale=False), directions(X, y)
    assert_allclose(scaled / scaled.sum(axis=0), raw / raw.sum(axis=0), rtol=1e-6, atol=1e-9)
    assert not np.allclose(raw, scaled)


def test_s_has_the_type_of_x():
    X, y = data()
    assert margin_directions(X.astype(np.float32), y).dtype == np.float32
    assert margin_directions(X, y).dtype == np.float64


def test_same_seed_same_s():
    X, y = data(3)
    for source in ("svm", "perceptron"):
        one, two = (directions(X, y, directions=source, random_state=5) for _ in range(2))
        assert_array_equal(one, two)


# --- Other sources -------------------------------------------------------------------------------


def online_by_hand(X, y, order, how, C=1.0):
    """The learners as they are told: with a weight vector, one sample at a time."""
    w, w_sum = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for i in order:
        margin = y[i] * (w @ X[i])
        if how == "pa":
            w = w + min(C, max(0, 1 - margin) / (X[i] @ X[i])) * y[i] * X[i]
        elif margin <= 0:
            w = w + y[i] * X[i]
        w_sum += w
    return w_sum / len(order) if how == "averaged" else w


@seeds
@pytest.mark.parametrize("how", ["perceptron", "averaged", "pa"])
def test_online_duals_are_those_of_the_learner_with_a_weight_vector(how, seed):
    X, y = data(seed=seed)
    X, y = X[y >= 0], np.where(y[y >= 0] == 1, 1.0, -1.0)
    order = np.random.default_rng(seed).integers(0, len(y), 200)
    rows = sp.csr_array(X)
    w = np.zeros(X.shape[1])
    alpha = online_duals(
        rows.indptr, rows.indices, rows.data, y, order, how == "pa", how == "averaged",
        np.full(len(y), 0.3), w,
    )  # fmt: skip
    assert (alpha >= 0).all()
    if how != "averaged":
        assert_allclose(w, X.T @ (alpha * y), atol=1e-12)
    assert_allclose(X.T @ (alpha * y), online_by_hand(X, y, order, how, 0.3), atol=1e-12)
    if how == "perceptron":
        assert_array_equal(alpha, np.round(alpha))


def test_perceptron_coefficients_are_mistake_counts_of_a_separating_hyperplane():
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    X = rng.random((40, 6)) + 3 * (y[:, None] == np.arange(6) % 2)
    S = directions(X, y, directions="perceptron", scale=False)
    assert_array_equal(S, np.round(S))
    assert S.sum() >= 2
    assert_array_equal(X @ weights(X, S)[:, 0] > 0, y == 1)  # no mistakes are left


def test_averaged_mistakes_weigh_less():
    X, y = data()
    counts = directions(X, y, directions="perceptron", scale=False)
    averaged = directions(X, y, directions="averaged-perceptron", scale=False)
    assert_array_equal(counts > 0, averaged > 0)
    assert (averaged <= counts).all()
    assert averaged.sum() < counts.sum()


def test_passive_aggressive_steps_are_bounded_by_c():
    X, y = data()
    S = directions(X, y, directions="pa", scale=False, C=1e-3)
    assert S.max() <= 10 * 1e-3 + 1e-12  # ten passes
    assert S.max() > 0


PHI = norm.ppf(0.9)


def seen_once(weighted, x, sign, C, mu, spread):
    """Mean, variances and coefficient after one sample."""
    row, mu, spread = sp.csr_array(x[None]), mu.copy(), spread.copy()
    seen = row.indptr, row.indices, row.data, np.array([sign]), np.array([0])
    (alpha,) = confident_duals(*seen, weighted, np.array([C]), mu, spread)
    return mu, spread, alpha


def nearest_normal(weighted, x, sign, C, mu, spread):
    """The mean and the whole covariance that the learners ask for, by a general solver.

    Both minimize the divergence from the last normal distribution of the weights, and a price. CW
    pays C for each unit by which the margin falls short of PHI of its standard deviations: in
    factors L of the covariance, ``|L'x|`` is convex. AROW pays half of C for the square of the
    hinge, and as much for the variance of the margin.
    """
    d = len(x)
    lower = np.tril_indices(d)

    def parts(z):
        L = np.zeros((d, d))
        L[lower] = z[d:-1]
        return z[:d], L, z[-1]  # the last is what the margin falls short of

    def price(z):
        m, L, short = parts(z)
        kept = (L**2).sum(axis=1) / spread - 2 * np.log(np.abs(np.diag(L)))
        divergence = (kept + (m - mu) ** 2 / spread).sum() / 2
        return divergence + (C * short if weighted else C / 2 * (short**2 + ((L.T @ x) ** 2).sum()))

    def room(z):
        m, L, short = parts(z)
        return sign * (m @ x) + short - (PHI * np.linalg.norm(L.T @ x) if weighted else 1)

    begun = np.concatenate([mu, np.diag(np.sqrt(spread))[lower], [3.0]])
    needs = [{"type": "ineq", "fun": room}, {"type": "ineq", "fun": lambda z: z[-1]}]
    found = minimize(
        price, begun, method="SLSQP", constraints=needs, options={"ftol": 1e-14, "maxiter": 500}
    )
    m, L, _ = parts(found.x)
    return m, L @ L.T


@seeds
@pytest.mark.parametrize("C", [0.05, 100.0], ids=["a short step", "a long one"])
@pytest.mark.parametrize("along", ["an axis", "no axis"])
@pytest.mark.parametrize("weighted", [True, False], ids=["cw", "arow"])
def test_a_step_of_a_confident_learner_leads_to_the_nearest_normal_distribution(
    weighted, along, C, seed
):
    rng = np.random.default_rng(seed)
    mu, spread, sign = 0.2 * rng.normal(size=2), rng.uniform(0.3, 1, 2), rng.choice([-1.0, 1.0])
    x = np.array([1.5, 0.0]) if along == "an axis" else rng.uniform(0.3, 1.5, 2)
    m, covariance = nearest_normal(weighted, x, sign, C, mu, spread)
    moved, variances, alpha = seen_once(weighted, x, sign, C, mu, spread)
    assert alpha > 0
    assert_allclose(moved, mu + alpha * sign * spread * x)
    assert_allclose(moved, m, atol=2e-5)
    assert_allclose(variances, np.diag(covariance), atol=2e-5)
    # what two features have in common is left out, and along an axis there is nothing
    assert (abs(covariance[0, 1]) < 1e-5) == (along == "an axis")


@seeds
def test_cw_moves_until_the_margin_is_right_with_probability_0_9(seed):
    """As a sample along an axis shows: a bound on the standard deviation, not on the variance."""
    rng = np.random.default_rng(seed)
    mu, spread, x = 0.2 * rng.normal(size=3), rng.uniform(0.3, 1, 3), np.array([0, 2.0, 0])
    m, variances, _ = seen_once(True, x, 1.0, np.inf, mu, spread)
    assert_allclose(norm.cdf(m @ x / np.sqrt(variances @ x**2)), 0.9)
    again = seen_once(True, x, 1.0, np.inf, m, variances)
    assert_allclose(again[0], m, rtol=1e-9)  # it is content


@pytest.mark.parametrize("source", ["cw", "arow"])
def test_coefficients_of_confident_learners_are_the_sums_of_their_steps(source):
    X, y = data()
    S = directions(X, y, directions=source, scale=False, C=0.5, random_state=0)
    known = np.flatnonzero(y >= 0)
    mu, spread, expected = np.zeros(X.shape[1]), np.ones(X.shape[1]), np.zeros(len(X))
    rng = np.random.default_rng(0)
    for i in np.concatenate([known[rng.permutation(len(known))] for _ in range(10)]):  # ten passes
        sign = 1.0 if y[i] == 1 else -1.0
        mu, spread, alpha = seen_once(source == "cw", X[i], sign, 0.5, mu, spread)
        expected[i] += alpha
    assert_allclose(S.sum(axis=1), expected, rtol=1e-10, atol=1e-13)


#: The sources that know what a sample costs.
COSTLY = {"svm", "pa", "cw", "arow"}


@pytest.mark.parametrize("source", [*SOURCES, "a function"])
def test_which_sources_know_a_cost(source):
    X, y = data()
    own = (lambda features, signs: np.arange(len(signs))) if source == "a function" else source
    plain = directions(X, y, directions=own, scale=False)
    cheap = directions(X, y, directions=own, scale=False, C=1e-3)
    uneven = directions(X, y, directions=own, scale=False, class_weight={1: 1e-3})
    assert np.array_equal(plain, cheap) == np.array_equal(plain, uneven) == (source not in COSTLY)


@pytest.mark.parametrize("source", [*SOURCES, "a function"])
def test_weight_two_is_a_row_given_twice_to_svms_and_class_sums_alone(source):
    X, y = data()
    own = (lambda features, signs: np.arange(len(signs))) if source == "a function" else source
    spec = DirectionSpec(own, scale=False, C=1e-2)
    w = np.random.default_rng(0).integers(1, 4, len(X))
    weighted = find_directions(X, encode_labels(y), spec, weights=w.astype(float)).S
    repeated = find_directions(X.repeat(w, axis=0), encode_labels(y.repeat(w)), spec).S
    components, expected = weighted.T @ X, repeated.T @ X.repeat(w, axis=0)
    same = np.allclose(components, expected, rtol=0, atol=2e-3 * expected.max())
    assert same == (source in ("svm", "class"))
    costly = [weights(X, find_directions(X, encode_labels(y), spec, weights=each).S.toarray())
              for each in (np.ones(len(X)), np.full(len(X), 2.0))]  # fmt: skip
    if source in COSTLY:  # each weight is a factor of the cost
        twice = replace(spec, C=2 * spec.C)
        expected = weights(X, find_directions(X, encode_labels(y), twice).S.toarray())
        assert_allclose(costly[1], expected, rtol=1e-10, atol=1e-13)
    elif source != "class":
        assert_array_equal(*costly)


def test_class_sums_have_all_coefficients_one():
    X, y = data()
    S = directions(X, y, directions="class", scale=False)
    assert_array_equal(S, np.stack([y == 1, y == 0], axis=1))


def test_your_own_source_sees_the_labeled_rows_and_their_signs():
    X, y = data(3)
    seen = []

    def source(features, signs):
        seen.append((features.toarray(), signs))
        return np.arange(1.0, 1 + len(signs))

    S = directions(X, y, directions=source, scale=False)
    rows = np.flatnonzero(y >= 0)
    assert len(seen) == 3
    for k, (features, signs) in enumerate(seen):
        assert_allclose(features, X[rows])
        assert_array_equal(signs, np.where(y[rows] == k, 1, -1))
        assert_array_equal((S[:, k] + S[:, 3 + k])[rows], np.arange(1, 1 + len(rows)))


@pytest.mark.parametrize(
    "alpha",
    [lambda m: -np.ones(m), lambda m: np.full(m, np.nan), lambda m: np.ones(m + 1), lambda m: 1.0],
    ids=["negative", "nan", "too many", "a scalar"],
)
def test_coefficients_that_cannot_be_are_refused(alpha):
    X, y = data()
    with pytest.raises(ValueError, match="directions must return 40 finite coefficients"):
        margin_directions(X, y, directions=lambda features, signs: alpha(len(signs)))


# --- What the classifiers see --------------------------------------------------------------------


@kinds
@seeds
def test_coefficients_of_rescaled_rows_are_carried_over_exactly(kind, seed):
    """XS refers to X: the hyperplane is that of the features, told in samples of X."""
    X, y = data(seed=seed)
    features = X * np.random.default_rng(seed).uniform(0.2, 5, (len(X), 1))
    S = directions(KINDS[kind](X), y, features=KINDS[kind](features), scale=False)
    expected = primal_svm(features[y >= 0], y[y >= 0], 1.0)
    w = weights(X, S)[:, 0]
    assert np.linalg.norm(w - expected) <= 1e-4 * np.linalg.norm(expected)


@kinds
@pytest.mark.parametrize("scale", [True, False])
def test_hellinger_features_are_roots_of_shares(kind, scale):
    X, y = data()
    roots = np.sqrt(X / X.sum(axis=1, keepdims=True))
    assert_allclose(
        directions(KINDS[kind](X), y, features="hellinger", scale=scale),
        directions(KINDS[kind](X), y, features=roots, scale=scale),
        rtol=1e-9,
        atol=1e-12,
    )


def test_features_may_have_any_sign_and_width():
    X, y = data()
    features = np.random.default_rng(0).standard_normal((60, 7))
    S = directions(X, y, features=features)
    assert S.min() >= 0
    assert_allclose((S.T @ X).sum(axis=1), X.sum() / 2, rtol=1e-10)


def test_columns_beside_others_have_the_coefficients_of_the_same_classifiers():
    X, y = data()
    alone = np.flatnonzero(y >= 0)[:10]
    X[alone] = 0  # these rows have nothing but what stands beside
    beside = np.random.default_rng(1).normal(size=(len(X), 5)) + 3 * (y == 1)[:, None]
    F, labels, spec = np.hstack([X, beside]), encode_labels(y, len(y)), DirectionSpec(scale=False)
    alphas = find_directions(F, labels, spec).S.toarray()
    assert alphas[alone].any()
    found = find_directions(X, labels, spec, features=F, beside=beside)
    assert_allclose(found.S.T @ X, alphas.T @ X, rtol=1e-9, atol=1e-12)
    assert_allclose(found.beside.S.toarray(), alphas, rtol=1e-9)


def test_features_of_other_samples_are_refused():
    X, y = data()
    with pytest.raises(ValueError, match="features has 59 rows and X has 60"):
        margin_directions(X, y, features=X[:-1])


# --- Pseudo-labels -------------------------------------------------------------------------------


def clusters(classes, seed=0, each=20):
    """Far clusters on the axes; the first four samples of each are labeled."""
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(classes), each)
    X = 0.1 * rng.random((len(truth), classes)) + (truth[:, None] == np.arange(classes))
    return X, truth, np.where(np.arange(len(truth)) % each < 4, truth, -1)


@pytest.mark.parametrize("pseudo", ["svm", "tsvm"])
@pytest.mark.parametrize("classes", [2, 3])
def test_the_surest_half_of_each_class_enters_with_its_predicted_label(pseudo, classes):
    X, truth, y = clusters(classes)
    S = directions(X, y, directions="class", scale=False, pseudo=pseudo)
    for k in range(classes):
        positive = S[:, 0 if classes == 2 else k] > 0
        entered = np.flatnonzero(positive & (y == -1))
        if classes == 2 and k == 0:
            entered = np.flatnonzero((S[:, 1] > 0) & (y == -1))
        assert len(entered) == 8  # half of the sixteen that are unlabeled
        assert_array_equal(truth[entered], k)
    plain = directions(X, y, directions="class", scale=False)
    assert_array_equal(S[y >= 0], plain[y >= 0])  # what is known stays


@pytest.mark.parametrize("pseudo", ["svm", "tsvm"])
def test_pseudo_labels_of_multilabel_data_fill_each_label_apart(pseudo):
    X, truth, y = clusters(3)
    Y = (truth[:, None] == np.arange(3)).astype(int)
    Y[y == -1] = -1
    S = directions(X, Y, directions="class", scale=False, pseudo=pseudo)
    for k in range(3):
        entered = (S[:, k] > 0) & (y == -1)
        assert entered.any()
        assert_array_equal(truth[entered], k)


def test_a_label_that_cannot_be_learned_does_not_silence_the_pseudo_labels_of_the_others():
    X, truth, y = clusters(2)
    Y = np.stack([truth == 1, np.zeros(len(truth))], axis=1).astype(int)  # nobody has the second
    Y[y == -1] = -1
    with pytest.warns(UserWarning, match="Left out 1 of 2 classifiers"):
        S = directions(X, Y, directions="class", scale=False, pseudo="svm")
    assert S[y == -1].sum() > 0


def test_with_everything_labeled_pseudo_changes_nothing():
    X, truth, _ = clusters(3)
    assert_array_equal(directions(X, truth, pseudo="svm"), directions(X, truth))
