"""Streams: what a step is, what is forgotten, what is kept, and that all of it can be resumed."""

import pickle
from dataclasses import replace
from itertools import pairwise

import numba
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal, assert_array_less
from sklearn.exceptions import NotFittedError
from threadpoolctl import threadpool_limits

from marginparts import (
    NMFAlpha,
    NMFAlphaClassifier,
    OnlineNMFAlphaClassifier,
    load,
    save,
    topic_view,
)
from marginparts.backends import get_backend
from marginparts.datasets import load_docstrings
from marginparts.labels import Labels
from marginparts.losses.nmf_alpha import NMFAlphaProblem
from marginparts.losses.stream import StreamProblem
from marginparts.online import Rows, Stream, StreamSpec
from marginparts.online._learner import directions_of, learn, signs_of
from marginparts.online._past import scaled_margins, statistics
from marginparts.recipe import HeadSpec, MapSpec
from marginparts.solve.factorize import factorize, parts_of
from marginparts.solve.loop import minimize
from marginparts.solve.map import map_rows
from marginparts.solve.start import start_from
from marginparts.svm._perceptrons import online_duals
from marginparts.weighting import hellinger

BACKENDS = ["reference", "numba"]
D = 12


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Keep to one thread: on small data several only wait for each other."""
    threads = numba.get_num_threads()
    numba.set_num_threads(1)
    with threadpool_limits(1):
        yield
    numba.set_num_threads(threads)


def counts(n, classes=2, seed=0, d=D, strength=5.0):
    """Return counts in which each class favors its own words, and the classes."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(classes, size=n)
    own = truth[:, None] == np.arange(d) * classes // d
    return rng.poisson(np.where(own, strength, 1.0)).astype(float), truth


def make(**options):
    given = {"n_components": 4, "batch_size": 50, "memory": 80, "random_state": 0}
    return OnlineNMFAlphaClassifier(**{**given, **options})


def hide(y, every=3):
    """Return labels of which only some are known."""
    return np.where(np.arange(len(y)) % every == 0, y, -1)


def settings(**options):
    given = {
        "n_components": 4, "lam": 1.0, "map": MapSpec(5), "head": HeadSpec(1.0), "pseudo": None,
        "half_life": None, "batch_size": 50, "memory": 80, "n_iter": 3, "backend": "reference",
    }  # fmt: skip
    return StreamSpec(**{**given, **options})


def in_batches(model, X, y, sizes):
    start = 0
    for size in sizes:
        rows = slice(start, start + size)
        model.partial_fit(X[rows], None if y is None else y[rows])
        start += size
    assert start == X.shape[0]
    return model


def problems(seed=0, lam=0.7, backend="reference"):
    """Return a step with a past and labels, and what it is made of."""
    rng = np.random.default_rng(seed)
    n, d, r, p = 15, 9, 3, 2
    X, S = rng.random((n, d)), sp.csr_array(rng.random((n, 2 * p)) * (rng.random((n, 1)) < 0.5))
    A, B = rng.random((d, r)) * 4, rng.random(r) * 20
    XS_past, HS_past = rng.random((2 * p, d)), rng.random((2 * p, r))
    V, H = rng.random((d, r)), rng.random((n, r))
    kernels = get_backend(backend)
    problem = StreamProblem(
        kernels, X=kernels.prepare(sp.csr_array(X)), S=kernels.coefficients(S),
        XS=kernels.prepare(sp.csr_array(S.T @ X + XS_past)), lam=lam, A=kernels.factor(A),
        B=kernels.factor(B[None]), HS_past=kernels.factor(HS_past),
    )  # fmt: skip
    state = {"V": kernels.factor(V), "H": kernels.factor(H)}
    return problem, state, (X, S, A, B, XS_past, HS_past, V, H)


# --- the mathematics of a step


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_past_is_nothing_but_r_more_samples(backend):
    """V's update is that of plain NMF on the rows X, lam * XS and A', with their codes stacked."""
    problem, state, (X, S, A, B, XS_past, HS_past, V, H) = problems(backend=backend)
    rows = np.vstack([X, 0.7 * (S.T @ X + XS_past), A.T])
    codes = np.vstack([H, 0.7 * (S.T @ H + HS_past), np.diag(B)])
    reference = get_backend("reference")
    plain = NMFAlphaProblem(reference, X=rows)
    expected = plain.update({"V": V, "H": codes}, "V").factor
    new = problem.backend.release(problem.update(state, "V").factor, 3)
    assert_allclose(new, expected, rtol=1e-10)
    assert_allclose(problem.loss(state), plain.loss({"V": V, "H": codes}), rtol=1e-10)


@pytest.mark.extra
def test_the_gpu_backend_takes_the_same_step():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("triton", reason="triton is not installed")
    from marginparts.backends.gpu.backend import TorchBackend

    gpu = TorchBackend("cuda" if torch.cuda.is_available() else "cpu")
    found = []
    for backend in ("reference", gpu):
        problem, state, _ = problems(backend=backend)
        state = minimize(problem, state, solver="mu", max_iter=1, watch=False).state
        found.append([problem.backend.release(state[block], 3) for block in ("V", "H")])
    for expected, factor in zip(*found, strict=True):
        assert_allclose(factor, expected, rtol=1e-10)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("lam", [0.0, 0.3, 30.0])
def test_within_a_step_the_loss_never_rises(backend, lam):
    problem, state, _ = problems(lam=lam, backend=backend)
    losses = [problem.loss(state)]
    for _ in range(20):
        for block in ("V", "H"):
            state = {**state, block: problem.update(state, block).factor}
            losses.append(problem.loss(state))
    assert losses[-1] < 0.9 * losses[0]
    assert all(b <= a * (1 + 1e-12) for a, b in pairwise(losses))


def test_without_a_past_a_step_is_the_batch_method():
    """One batch, nothing forgotten: the paper's updates from the same start, and no others."""
    X, truth = counts(40)
    codes = hide(truth, 2)
    rows = Rows.arrived(sp.csr_array(X), codes, 2)
    how = settings()
    stream = Stream.begun(rows.X, codes, 2, seed=3).step(rows, how)

    rng = np.random.default_rng([3, 0])
    rng.random(40)  # the lots
    duals, W = learn(rows, np.zeros((2, D)), rng.permutation(40))
    S = directions_of(replace(rows, duals=duals), W, pseudo=False)
    XS_mass = S.T @ X.sum(axis=1)
    S = S @ sp.diags_array(X.sum() / (4 * XS_mass))  # all components together have X's mass
    _, V = start_from("auto", rows.X, 4, 3, Labels(np.arange(2), codes))
    V = np.ascontiguousarray(parts_of(V).T)
    result = factorize(
        rows.X, map_rows(rows.X, V, 5, "reference"), V, S=sp.csr_array(S), lam=1.0, solver="mu",
        max_iter=4 * how.n_iter, tol=0, backend="reference",
    )  # fmt: skip
    assert_allclose(stream.V, parts_of(result.V).T, rtol=1e-9, atol=1e-15)


def test_what_leaves_the_memory_counts_as_before():
    """At the codes that rows had, the past takes their place in the update of V exactly."""
    rng = np.random.default_rng(0)
    X, H, V = rng.random((20, 6)), rng.random((20, 3)), rng.random((6, 3))
    kernels = get_backend("reference")
    A, B = statistics(X[:8], V, H[:8], kernels)
    later = StreamProblem(kernels, X=X[8:], A=A, B=B[None])
    whole = NMFAlphaProblem(kernels, X=X)
    assert_allclose(
        later.update({"V": V, "H": H[8:]}, "V").factor,
        whole.update({"V": V, "H": H}, "V").factor,
        rtol=1e-12,
    )


def test_the_factors_stay_nonnegative_and_parts_sum_to_one():
    X, truth = counts(300, 3)
    model = in_batches(make(half_life=100.0), X, hide(truth), [100, 100, 100])
    stream = model.stream_
    for array in (stream.V, stream.past.A, stream.past.B, stream.past.XS.data):
        assert (array >= 0).all()
        assert np.isfinite(array).all()
    assert_allclose(model.components_.sum(axis=1), 1, rtol=1e-6)


def test_lam_is_the_ratio_of_the_margins_mass_to_the_streams():
    X, truth = counts(200)
    stream = make().partial_fit(X, truth).stream_
    rows = stream.memory
    S = directions_of(rows, stream.W, pseudo=False)
    S, XS, XS_past = scaled_margins(S, rows.X, stream.past)
    assert stream.past.XS.nnz > 0  # labeled rows have left
    assert_allclose(stream.past.mass + rows.X.sum(), X.sum(), rtol=1e-9)
    assert_allclose(XS.sum(axis=1), X.sum() / 4, rtol=1e-9)
    assert_allclose((S.T @ rows.X + XS_past).toarray(), XS.toarray(), rtol=1e-9)


# --- the learner


def test_margin_components_are_those_of_the_learner():
    """In what the learner sees, w+ - w- is its weight vector, over all of the stream."""
    X, truth = counts(60, 3)
    rows = Rows.arrived(sp.csr_array(X), truth, 3)
    W = np.zeros((3, D))
    weights = []
    for part in (slice(0, 20), slice(20, 60)):
        duals, W = learn(rows.take(part), W, np.arange(part.stop - part.start))
        weights.append(duals)
    signed = np.concatenate(weights) * signs_of(truth, 3)
    assert_allclose(W, signed.T @ hellinger(rows.X).toarray(), atol=1e-12)
    # one pass over all of it is the same learner
    seen = hellinger(rows.X)
    w = np.zeros(D)
    online_duals(
        seen.indptr, seen.indices, seen.data, np.where(truth == 1, 1.0, -1.0), np.arange(60), True,
        False, np.ones(60), w,
    )  # fmt: skip
    assert_allclose(W[1], w, atol=1e-12)


def test_the_surest_unlabeled_rows_take_part_and_the_others_do_not():
    X, truth = counts(80)
    rows = Rows.arrived(sp.csr_array(X), hide(truth, 4), 2)
    duals, W = learn(rows, np.zeros((2, D)), np.arange(80))
    rows = replace(rows, duals=duals)
    plain, more = (directions_of(rows, W, pseudo=pseudo).toarray() for pseudo in (False, True))
    assert_array_equal(plain[rows.labeled], more[rows.labeled])
    assert not plain[~rows.labeled].any()
    taken = more[~rows.labeled].any(axis=1)
    assert 0 < taken.sum() <= 31  # about half of sixty
    assert (more >= 0).all()


# --- predictions at all times


def test_it_predicts_from_the_first_labeled_batch_on():
    X, truth = counts(200, strength=8.0)
    model = make()
    model.partial_fit(X[:10])
    assert model.transform(X[:3]).shape == (3, 4)
    with pytest.raises(NotFittedError, match="no labeled sample yet"):
        model.predict(X)
    model.partial_fit(X[10:30], truth[10:30])  # a batch is not full yet
    assert model.score(X[100:], truth[100:]) > 0.9
    model.partial_fit(X[30:100])
    assert model.score(X[100:], truth[100:]) > 0.9


@pytest.mark.parametrize("backend", BACKENDS)
def test_without_labels_it_is_plain_nmf(backend):
    """All at hand and one batch: the updates of eqs. 3 and 4 from the same start."""
    X, _ = counts(50)
    model = make(batch_size=50, memory=50, n_iter=5, backend=backend).fit(X)
    _, V = start_from("auto", X, 4, 0)
    V = V / V.sum(axis=0)
    H = np.tile(1 / V.sum(axis=0), (50, 1))
    for _ in range(10):
        H = H * ((X / (H @ V.T)) @ V) / V.sum(axis=0)
    for _ in range(4 * 5):
        V = V * ((X / (H @ V.T)).T @ H) / H.sum(axis=0)
        H = H * ((X / (H @ V.T)) @ V) / V.sum(axis=0)
    assert_allclose(model.components_, V.T / V.sum(axis=0)[:, None], rtol=1e-9)


@pytest.mark.wide
def test_without_labels_lam_says_nothing_and_parts_are_not_far_from_a_fit():
    X = load_docstrings().data
    X = X[np.random.default_rng(0).permutation(X.shape[0])[:400]]
    losses = []
    for memory in (400, 100):
        model = make(n_components=8, batch_size=100, memory=memory).fit(X)
        other = make(n_components=8, batch_size=100, memory=memory, lam=100.0)
        for start in range(0, 400, 80):
            other.partial_fit(X[start : start + 80], np.full(80, -1) if start else None)
        assert_array_equal(other.components_, model.components_)
        losses.append(_divergence(X, model.components_))
    whole = NMFAlpha(8, max_iter=50, tol=0, random_state=0).fit(X).components_
    assert_array_less(losses, 1.15 * _divergence(X, whole))
    view = topic_view(model, X[:20])
    assert_allclose(view.proportions.sum(axis=1), 1)
    rebuilt = model.inverse_transform(model.transform(X[:20]))
    assert_allclose(rebuilt.sum(axis=1), X[:20].sum(axis=1), rtol=1e-3)


def _divergence(X, parts):
    H = map_rows(X, np.ascontiguousarray(parts.T), 100)
    return get_backend("reference").divergence(X, H, np.ascontiguousarray(parts.T))


def test_predictions_change_nothing():
    X, truth = counts(170, 3)
    y = hide(truth)
    quiet, asked = make(), make()
    for rows in np.array_split(np.arange(170), 5):
        quiet.partial_fit(X[rows], y[rows])
        asked.partial_fit(X[rows], y[rows]).predict(X)
    assert_array_equal(quiet.components_, asked.components_)


def test_one_class_only_is_always_predicted():
    X, _ = counts(40)
    model = make().partial_fit(X, np.zeros(40, int))
    assert_array_equal(model.predict(X), 0)
    model = make().partial_fit(X, np.ones(40, int), classes=[0, 1, 2])
    assert_array_equal(model.predict(X), 1)


def test_labels_that_come_late_are_used():
    X, truth = counts(700, 3, strength=8.0)
    model = make(memory=60).partial_fit(X[:500])
    assert model.stream_.past.mass > 5 * model.stream_.memory.X.sum()
    model.partial_fit(X[500:600], truth[500:600])
    assert model.score(X[600:], truth[600:]) > 0.9


@pytest.mark.parametrize("normalize", [True, False, "auto"])
def test_several_labels_a_sample(normalize):
    X, truth = counts(240, 3, strength=8.0)
    y = np.column_stack([truth == 0, truth != 0, truth == 2]).astype(int)
    partly = y.copy()
    partly[::3] = -1
    partly[1, 2] = -1
    model = in_batches(make(normalize=normalize), X[:200], partly[:200], [30, 170])
    assert (model.predict(X[200:]) == y[200:]).mean() > 0.9
    model.partial_fit(X[:20])  # without labels


# --- the result depends on the samples and their order, not on how they are cut


@pytest.mark.parametrize("declared", [True, False])
def test_the_cut_into_calls_makes_no_difference(declared):
    X, truth = counts(230, 3)
    X, y = X[np.argsort(truth == 2, kind="stable")], np.sort(truth == 2) * 2
    y = np.where(np.arange(230) < 40, 0, np.where(y == 2, 2, truth[np.argsort(truth == 2)]))
    one, many = make(), make()
    one.partial_fit(X, y, classes=[0, 1, 2] if declared else None)
    in_batches(many, X, y, [1, 7, 42, 60, 120])  # a class after the other comes up
    assert_array_equal(one.components_, many.components_)
    assert_array_equal(one.decision_function(X), many.decision_function(X))
    assert_array_equal(one.classes_, many.classes_)


def repeated(n=300, d=6, seed=0):
    """Return rows most of which come several times, at all times, and labels that change sides."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (n, d)).astype(float)
    X[:, 0] += 0.01
    side = (X[:, 1] > X[:, 2]).astype(int)
    return X, np.where(np.arange(n) < n // 2, 1 - side, side)


@pytest.mark.parametrize("half_life", [None, 40.0])
@pytest.mark.parametrize("weights", [None, np.full(300, 2.0), np.resize([3.0, 0.5, 1.0], 300)])
@pytest.mark.parametrize("n", [300, 40])
def test_a_fit_is_one_pass_in_the_order_of_the_samples(n, weights, half_life):
    """Also where rows repeat or have weights, and where they wait for their first batch."""
    X, y = (each[:n] for each in repeated())
    w = None if weights is None else weights[:n]
    whole, cut = make(half_life=half_life), make(half_life=half_life)
    whole.fit(X, y, sample_weight=w)
    for rows in np.array_split(np.arange(n), 7):
        cut.partial_fit(X[rows], y[rows], sample_weight=None if w is None else w[rows])
    assert whole.n_samples_seen_ == n
    assert len(whole.stream_.pending) == n % 50
    assert_array_equal(whole.components_, cut.components_)
    assert_array_equal(whole.decision_function(X), cut.decision_function(X))
    for each in (whole, cut):
        each.partial_fit(X[:70], y[:70])
    assert_array_equal(whole.components_, cut.components_)


@pytest.mark.parametrize("weights", [None, np.full(1200, 2.0)])
def test_a_fit_follows_a_world_that_has_changed(weights):
    X, y = repeated(1200)
    model = make(half_life=100.0).fit(X, y, sample_weight=weights)
    assert model.score(X[600:], y[600:]) > 0.95


@pytest.mark.parametrize("weights", [None, np.resize([3.0, 0.5, 1.0], 40)])
def test_repeats_before_the_first_full_batch_show_the_same_whatever_was_declared(weights):
    X, y = repeated(40, d=3)
    declared, found = make().partial_fit(X, 2 * y + 1, [0, 1, 2, 3], weights), make()
    found.partial_fit(X, 2 * y + 1, sample_weight=weights)
    assert_array_equal(declared.components_, found.components_)
    assert len(found.stream_.pending) == 40


@pytest.mark.parametrize("labeled", [False, True])
def test_before_the_first_full_batch_a_weight_is_a_sample_given_so_often_in_any_order(labeled):
    X, truth = counts(20)
    y = hide(truth, 2) if labeled else np.full(20, -1)
    often, shuffled = np.resize([1, 2, 4], 20), np.random.default_rng(0).permutation(20)
    repeats = np.random.default_rng(1).permutation(np.arange(20).repeat(often))
    models = [make(batch_size=50).partial_fit(X[repeats], y[repeats])]
    models += [
        make(batch_size=50).partial_fit(X[rows], y[rows], sample_weight=often[rows])
        for rows in (np.arange(20), shuffled)
    ]
    for model in models[1:]:
        assert_array_equal(model.components_, models[0].components_)
        if labeled:
            assert_array_equal(model.decision_function(X), models[0].decision_function(X))
    assert [len(model.stream_.pending) for model in models] == [45, 20, 20]


def test_dense_and_sparse_batches_are_the_same():
    X, truth = counts(150)
    y = hide(truth)
    dense = in_batches(make(), X, y, [70, 80])
    mixed = make().partial_fit(sp.csr_array(X[:70]), y[:70])
    mixed.partial_fit(X[70:].astype(np.float32), y[70:])  # counts are exact in float32
    assert_array_equal(dense.components_, mixed.components_)


def test_the_type_of_the_first_batch_is_kept():
    X, truth = counts(120)
    model = in_batches(make(), X.astype(np.float32), truth, [60, 60])
    assert model.components_.dtype == np.float32
    model.partial_fit(X)
    assert model.components_.dtype == np.float32
    assert model.transform(X.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_extreme_units_make_no_difference(scale):
    X, truth = counts(150)
    y = hide(truth)
    usual = in_batches(make(), X, y, [75, 75])
    extreme = in_batches(make(), (X * scale).astype(np.float32), y, [75, 75])
    assert np.isfinite(extreme.components_).all()
    agree = extreme.predict((X * scale).astype(np.float32)) == usual.predict(X)
    assert agree.mean() > 0.97


# --- stopped and resumed


@pytest.mark.parametrize("half_life", [None, 80.0])
@pytest.mark.parametrize("stop", [20, 100, 130])
def test_a_stream_stopped_saved_and_resumed_gives_the_same_bits(tmp_path, stop, half_life):
    X, truth = counts(260, 3)
    X, y = sp.csr_array(X), hide(truth)
    whole = make(half_life=half_life).partial_fit(X, y)
    model = make(half_life=half_life).partial_fit(X[:stop], y[:stop])
    save(model, tmp_path / "stream.model")
    model = load(tmp_path / "stream.model").partial_fit(X[stop:], y[stop:])
    assert_array_equal(model.components_, whole.components_)
    assert_array_equal(model.decision_function(X), whole.decision_function(X))
    assert model.n_samples_seen_ == whole.n_samples_seen_ == 260


def test_a_seed_from_a_generator_is_kept_with_the_stream(tmp_path):
    X, truth = counts(200)
    model = make(random_state=np.random.RandomState(5)).partial_fit(X[:100], truth[:100])
    save(model, tmp_path / "model")
    back = load(tmp_path / "model")
    again = pickle.loads(pickle.dumps(model))
    for other in (back, again, model):
        other.partial_fit(X[100:], truth[100:])
    assert_array_equal(back.components_, model.components_)
    assert_array_equal(again.components_, model.components_)


def interrupted(*args, **options):
    raise KeyboardInterrupt


#: Where a call may be interrupted: within a batch, or when all is learned and has to be said.
MOMENTS = ["marginparts.online._stream.minimize", "marginparts.estimators.online.spoken"]


def named(X):
    return pd.DataFrame(X, columns=[f"word {j}" for j in range(D)])


def begun():
    X, truth = counts(100)
    return make().partial_fit(named(X), truth)


def assert_as_it_was(model, before):
    assert list(vars(model)) == list(before)
    assert all(vars(model)[name] is value for name, value in before.items())


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("call", ["fit", "partial_fit"])
@pytest.mark.parametrize("first", [make, begun])
def test_an_interrupted_call_leaves_the_model_as_it_was(monkeypatch, first, call, moment):
    X, truth = counts(200)
    data = X[:, :7] if call == "fit" else named(X)
    model, same = first(), first()
    before = dict(vars(model))
    with monkeypatch.context() as patched:
        patched.setattr(moment, interrupted)
        with pytest.raises(KeyboardInterrupt):
            getattr(model, call)(data, truth + 5)
    assert_as_it_was(model, before)
    for each in (model, same):  # and it goes on as if nothing had been
        getattr(each, call)(data, truth)
    assert_array_equal(model.components_, same.components_)


@pytest.mark.parametrize("first", [make, begun])
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_a_refused_call_leaves_the_model_as_it_was(first):
    X, truth = counts(60)
    model = first()
    for call, sentence in [
        (lambda: model.fit(np.zeros((3, 7))), "at least one positive entry"),
        (lambda: model.fit(X[:, :7], truth[:5]), "60 samples and y has 5"),
        (lambda: model.fit(X[:, :7], truth * 0), "one class only"),
        (lambda: model.fit(X[:, :7], truth, np.zeros(60)), "sample_weight"),
        (lambda: model.fit(-X[:, :7], truth), "Negative values"),
        (lambda: model.partial_fit(-X, truth), "Negative values"),
        (lambda: model.partial_fit(X, truth, classes=[]), "classes"),
        (lambda: model.partial_fit(X, truth[:5]), "60 samples and y has 5"),
        (lambda: model.partial_fit(X, truth, sample_weight=np.zeros(60)), "sample_weight"),
    ]:
        before = dict(vars(model))
        with pytest.raises(ValueError, match=sentence):
            call()
        assert_as_it_was(model, before)
    model.set_params(verbose="much")
    before = dict(vars(model))
    for learn_from in (model.fit, model.partial_fit):
        with pytest.raises(ValueError, match="verbose='much'"):
            learn_from(X, truth)
        assert_as_it_was(model, before)


@pytest.mark.parametrize("call", ["fit", "partial_fit"])
def test_an_unfitted_model_that_was_interrupted_is_not_fitted(monkeypatch, call):
    X, truth = counts(60)
    model = make()
    monkeypatch.setattr("marginparts.online._stream.minimize", interrupted)
    with pytest.raises(KeyboardInterrupt):
        getattr(model, call)(X, truth)
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        model.predict(X)


# --- what is kept


def test_memory_does_not_grow_with_the_stream():
    X, truth = counts(1030, 3)
    y = hide(truth)
    sizes = []
    for n in (230, 1030):
        stream = make().partial_fit(X[:n], y[:n]).stream_
        assert len(stream.memory) == 80
        assert len(stream.pending) == 30
        arrays = (stream.V, stream.W, stream.past.A, stream.past.B, stream.past.XS.toarray())
        sizes.append(sum(array.nbytes for array in arrays))
    assert sizes[0] == sizes[1]


def test_unlabeled_rows_leave_first_and_no_class_is_lost():
    codes = np.array([1, -1, 0, 0, 0, -1, 0, 0, -1])
    lots = np.array([0.0, 0.9, 0.3, 0.2, 0.4, 0.1, 0.6, 0.5, 0.7])
    rows = replace(Rows.arrived(sp.csr_array(np.eye(9)), codes, 2), lots=lots)
    left = [set(np.flatnonzero(rows.staying(most))) for most in range(9, 0, -1)]
    gone = [(a - b).pop() for a, b in pairwise(left)]
    assert gone == [5, 8, 1, 3, 2, 4, 7, 0]  # of class 1 there is only one


def test_the_memory_is_a_sample_of_all_times():
    """Whatever the order: the mean age of what stays is that of a fair sample."""
    X = np.random.default_rng(0).random((2000, 3)) + 1
    X[:, 0] = np.arange(2000)
    model = make(memory=300, n_components=2).partial_fit(X)
    came = model.stream_.memory.X[:, [0]].toarray().ravel() * model.stream_.scale
    assert len(came) == 300
    error = 2000 / np.sqrt(12 * 300)
    assert abs(came.mean() - 1000) < 4 * error


def test_rows_leave_the_earlier_the_less_they_count():
    weights = np.where(np.arange(4000) < 2000, 0.25, 1.0)
    lots = np.random.default_rng(0).random(4000)
    rows = Rows.arrived(sp.csr_array((4000, 1)), np.full(4000, -1), 0)
    stays = replace(rows, weights=weights, lots=lots).staying(400)
    # among few, the chances are as the weights: one to four
    assert 0.15 < stays[:2000].sum() / stays[2000:].sum() < 0.4


@pytest.mark.parametrize("half_life", [30.0, 1.0, 0.01])
def test_labels_are_forgotten_too(half_life):
    """The learners' weights fade with the samples, down to nothing at all."""
    X, truth = counts(200, 3)
    X = X.astype(np.float32)
    stream = make(half_life=half_life).partial_fit(X, truth).stream_
    for array in (stream.W, stream.V, stream.past.A, stream.past.XS.data, stream.memory.duals):
        assert np.isfinite(array).all()
    rows = stream.memory
    assert (rows.duals <= 1 + 1e-9).all()
    # no more than what the weights of the last batches add up to
    most = 1 / (1 - 0.5 ** (50 / half_life))
    assert np.abs(stream.W).sum(axis=1).max() <= 50 * most * np.sqrt(D)


@pytest.mark.parametrize("half_life", [None, 60.0])
def test_what_the_learner_sees_again_keeps_to_its_duals(half_life):
    """Rows are gone over again with every batch, and ``w+ - w-`` is the weight vector still."""
    X, truth = counts(200, 3)
    stream = make(memory=1000, half_life=half_life).partial_fit(X, truth).stream_
    rows = stream.memory
    assert len(rows) == 200
    signed = rows.duals * rows.weights[:, None] * signs_of(rows.codes, 3)
    assert_allclose(stream.W, signed.T @ hellinger(rows.X).toarray(), rtol=1e-9, atol=1e-12)


def test_rows_that_wait_are_shown_and_change_nothing():
    X, truth = counts(130, 3)
    late = np.argsort(truth == 2, kind="stable")  # the third class comes last
    X, y = X[late], truth[late]
    model, silent = (make(batch_size=50) for _ in range(2))
    for rows in (slice(0, 100), slice(100, 130)):
        model.partial_fit(X[rows], y[rows])
        silent.partial_fit(X[rows], y[rows])
        model.predict(X)
    assert len(model.stream_.pending) == 30
    whole = make(batch_size=50).partial_fit(X[:100], y[:100])
    whole.set_params(batch_size=30).partial_fit(X[100:], y[100:])
    assert_array_equal(model.components_, whole.components_)
    assert_array_equal(model.stream_.V, silent.stream_.V)


def test_every_class_is_remembered_in_a_stream_sorted_by_class():
    X, truth = counts(600, 3, strength=8.0)
    order = np.argsort(truth[:500], kind="stable")
    model = make(memory=60).partial_fit(X[order], truth[order])
    assert_array_equal(model.stream_.memory.class_sizes, 20)
    assert model.score(X[500:], truth[500:]) > 0.9


# --- forgetting


def test_a_sample_counts_half_after_half_a_life():
    X = np.ones((400, 5))
    stream = make(half_life=100.0).partial_fit(X).stream_
    ages = np.repeat(np.arange(8)[::-1] * 50, 50)  # all rows of a batch are of one age
    kept = stream.past.mass + stream.memory.weighted.sum()
    assert_allclose(kept, 5 * np.sum(0.5 ** (ages / 100)), rtol=1e-6)
    assert (stream.memory.weights > 1 / 16).all()


def test_forgetting_follows_a_world_that_has_changed():
    X, truth = counts(900, 2, strength=8.0)
    y = np.where(np.arange(900) < 600, truth, 1 - truth)  # words change sides
    accuracy = {}
    for half_life in (None, 40.0):
        model = make(half_life=half_life, memory=400).partial_fit(X[:750], y[:750])
        accuracy[half_life] = model.score(X[750:], y[750:])
    assert accuracy[40.0] > 0.9
    assert accuracy[None] < 0.5


@pytest.mark.parametrize("half_life", [1e-3, 10.0])
@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("unlabeled_first", [0, 400])
@pytest.mark.parametrize("declared", [False, True])
def test_who_has_forgotten_all_labels_says_so(half_life, several, unlabeled_first, declared):
    X, truth = counts(400)
    y = np.eye(2, dtype=int)[truth] if several else truth
    unknown = np.full_like(y, -1)
    model = make(half_life=half_life)
    if unlabeled_first:
        model.partial_fit(X, unknown, classes=[0, 1] if declared or several else None)
    with_classes = {"classes": [0, 1]} if declared else {}
    model.partial_fit(X[:350], y[:350], **with_classes)
    model.partial_fit(X[350:], unknown[350:])
    with pytest.raises(NotFittedError, match="has forgotten all labeled samples") as problem:
        model.predict(X)
    assert "give it new ones, and a longer half_life" in str(problem.value)
    assert "\n" not in str(problem.value)
    model.set_params(half_life=200.0).partial_fit(X[:350], y[:350]).predict(X)  # as it says


def test_who_has_seen_no_label_does_not_speak_of_forgetting():
    X, _ = counts(120)
    for options in ({}, {"half_life": 1e-3}):
        for classes in (None, [0, 1]):
            model = make(**options).partial_fit(X, np.full(120, -1), classes=classes)
            with pytest.raises(NotFittedError, match="no labeled sample yet"):
                model.predict(X)


def test_a_feature_that_comes_up_later_is_learned():
    X, truth = counts(400, 2, d=8)
    X[:200, [0, 4]] = 0  # never seen in the first half
    model = make().partial_fit(X[:200], truth[:200])
    assert not model.components_[:, [0, 4]].any()
    model.partial_fit(X[200:], truth[200:])
    share = model.components_.sum(axis=0) / model.components_.sum()
    assert (share[[0, 4]] > 0.25 * share.mean()).all()


def test_an_even_spread_over_an_unseen_feature_may_be_of_any_size():
    """The past gets the same share of such a feature, however small V was made there."""
    rng = np.random.default_rng(0)
    X, H, V = rng.random((10, 5)), rng.random((10, 3)), rng.random((5, 3))
    shares = []
    for size in (1e-3, 1e-9):
        V[2] = size
        shares.append(statistics(X, V, H, get_backend("reference"))[0][2])
    assert_allclose(shares[0], shares[1], rtol=1e-10)


def test_order_matters_and_the_loss_over_the_stream_may_rise():
    """What is not guaranteed: nobody should rely on it."""
    X, truth = counts(300, 3)
    y = hide(truth)
    forward, backward = make().partial_fit(X, y), make().partial_fit(X[::-1], y[::-1])
    assert not np.allclose(forward.components_, backward.components_)


# --- classes


def test_classes_may_grow_and_be_of_text():
    X, truth = counts(300, 3, strength=8.0)
    names = np.array(["b", "ccc", "aa"])
    y = names[truth]
    first = np.flatnonzero(truth[:100] < 2)
    model = make().partial_fit(X[first], y[first])
    assert_array_equal(model.classes_, ["b", "ccc"])
    model.partial_fit(X[100:250], y[100:250])
    assert_array_equal(model.classes_, ["aa", "b", "ccc"])
    assert model.score(X[250:], y[250:]) > 0.9


def test_minus_one_is_unlabeled_in_a_stream_of_zeros_and_ones():
    X, truth = counts(120)
    model = make().partial_fit(X[:60], truth[:60], classes=[0, 1])
    y = np.where(np.arange(60) % 2, 1, -1)  # a batch that happens to hold nothing else
    model.partial_fit(X[60:], y)
    assert_array_equal(model.classes_, [0, 1])


@pytest.mark.parametrize("unlabeled_first", [False, True])
def test_minus_one_is_unlabeled_in_a_stream_that_begins_with_one_class(unlabeled_first):
    X, truth = counts(300, strength=8.0)
    y = hide(truth)
    y[:40] = np.where(truth[:40] == 1, y[:40], -1)  # nothing but 1 and -1 to begin with
    model = make()
    if unlabeled_first:
        model.partial_fit(X[:5], np.full(5, -1))
    with pytest.warns(UserWarning, match=r"in a stream -1 is unlabeled.*classes=\[-1, 1\]"):
        model.partial_fit(X[:40], y[:40])
    assert_array_equal(model.classes_, [1])
    assert_array_equal(model.predict(X), 1)  # the one class that there is
    model.partial_fit(X[40:200], y[40:200])
    assert_array_equal(model.classes_, [0, 1])
    assert model.score(X[200:], truth[200:]) > 0.9


def test_minus_one_is_a_class_of_a_stream_if_it_is_declared():
    X, truth = counts(200, strength=8.0)
    y = 2 * truth - 1
    model = make().partial_fit(X[:100], y[:100], classes=[-1, 1])  # a warning would be an error
    assert_array_equal(model.classes_, [-1, 1])
    assert model.score(X[100:], y[100:]) > 0.9


def test_ones_and_missing_labels_need_no_advice_about_minus_one():
    X, _ = counts(6)
    model = make().partial_fit(X, [1, None, 1, None, 1, 1])  # a warning would be an error
    assert_array_equal(model.classes_, [1])


def test_columns_of_a_stream_keep_their_names_and_their_order():
    X, truth = counts(120, 3, strength=8.0)
    y = pd.DataFrame({"tea": truth == 0, "milk": truth != 0, "jam": truth == 2}).astype(int)
    turned = y[["jam", "tea", "milk"]]
    straight, mixed = make().partial_fit(X[:60], y[:60]), make().partial_fit(X[:60], y[:60])
    straight.partial_fit(X[60:], y[60:])
    mixed.partial_fit(X[60:], turned[60:])
    assert_array_equal(mixed.classes_, ["tea", "milk", "jam"])
    assert_array_equal(mixed.decision_function(X), straight.decision_function(X))
    assert mixed.score(X, turned) == mixed.score(X, y) == mixed.score(X, y.to_numpy())
    declared = make().partial_fit(X[:60], turned[:60], classes=["tea", "milk", "jam"])
    declared.partial_fit(X[60:], turned.iloc[60:], classes=["tea", "milk", "jam"])
    assert_array_equal(declared.classes_, ["tea", "milk", "jam"])
    assert_array_equal(declared.decision_function(X), straight.decision_function(X))
    with pytest.raises(ValueError, match="the same ones, in any order"):
        mixed.partial_fit(X, y.rename(columns={"jam": "honey"}))


def test_what_cannot_be_meant_is_one_sentence():
    X, truth = counts(60, 3)
    model = make().partial_fit(X, truth, classes=[0, 1, 2])
    for call, sentence in [
        (lambda: model.partial_fit(X, truth + 1), r"labels that were not declared: 3;"),
        (lambda: model.partial_fit(X, truth, classes=[0, 1]), "classes differ from those"),
        (lambda: model.partial_fit(X[:, :5], truth), "5 features"),
        (lambda: model.partial_fit(-X, truth), "Negative values"),
        (lambda: model.partial_fit(X, truth[:5]), "60 samples and y has 5"),
        (lambda: model.partial_fit(X, np.eye(3)[truth]), "this stream began with a 1d y"),
        (lambda: make().partial_fit(X * 0, truth), "at least one positive entry"),
        (lambda: make().partial_fit(X, truth, classes=[]), "classes is empty"),
        (lambda: make(half_life=0).partial_fit(X), "half_life=0"),
        (lambda: make(memory=0).partial_fit(X), "memory=0"),
        (lambda: make(normalize="each").partial_fit(X), "normalize='each'"),
        (lambda: make(backend="abacus").partial_fit(X), "backend='abacus'"),
        (lambda: make().partial_fit(X, list("abc") * 20).partial_fit(X, truth), "strings and num"),
        (lambda: model.set_params(n_components=3).partial_fit(X), "cannot replace the 4 parts"),
    ]:
        with pytest.raises(ValueError, match=sentence) as problem:
            call()
        assert "\n" not in str(problem.value)
    assert model.n_samples_seen_ == 60


def test_batches_without_mass_and_empty_rows_are_harmless():
    X, truth = counts(150)
    X[[3, 70]] = 0
    model = in_batches(make(), X, truth, [75, 75])
    model.partial_fit(np.zeros((60, D)), np.zeros(60, int))
    assert np.isfinite(model.components_).all()
    assert np.isfinite(model.decision_function(X)).all()


# --- how good it is


@pytest.mark.wide
def test_one_pass_is_nearly_as_good_as_the_batch_fit():
    data = load_docstrings()
    order = np.random.default_rng(0).permutation(data.data.shape[0])
    X, truth = data.data[order], data.target[order]
    y = np.where(np.arange(len(truth)) % 5 == 0, truth, -1)
    train, test = slice(0, 1700), slice(1700, None)
    given = {"lam": 1.0, "C": 2.0, "map_iter": 10}
    batch = NMFAlphaClassifier(32, normalize=True, random_state=0, max_iter=60, **given)
    together = batch.fit(X[train], y[train]).score(X[test], truth[test])
    stream = OnlineNMFAlphaClassifier(32, batch_size=200, memory=800, random_state=0, **given)
    for rows in np.array_split(np.arange(1700), 9):
        stream.partial_fit(X[rows], y[rows])
    assert stream.score(X[test], truth[test]) > together - 0.04
