"""Fits on a Dask cluster: equal to those in memory, whatever the cut, and whoever dies."""

import itertools
import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from marginparts import (
    Checkpoint,
    NMFAlpha,
    NMFAlphaClassifier,
    SemiSupervisedNMF,
    margin_directions,
    nmf_alpha,
)
from marginparts.backends import get_backend
from marginparts.backends.cpu.backend import NumbaBackend
from marginparts.rows.dask._calls import ClusterError, Workers
from marginparts.rows.dask._lost_rows import LostRows, Margin, recovered
from marginparts.rows.dask._shard import Spec
from realdata import REAL, real_data

da = pytest.importorskip("dask.array", reason="dask is not installed")
distributed = pytest.importorskip("distributed", reason="distributed is not installed")

# dask's own: a graph that carries small test data, and sockets that are closed late
pytestmark = [
    pytest.mark.wide,  # every test has a cluster of its own, or shares one that takes seconds
    pytest.mark.filterwarnings("ignore:Sending large graph"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

QUIET = {"distributed.worker.memory.terminate": False, "logging.distributed": "critical"}
R = 3


@contextmanager
def local_cluster():
    """Two processes with one thread each, and a client."""
    import dask

    with (
        dask.config.set(QUIET),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0",
            silence_logs="CRITICAL",
        ) as cluster,
        distributed.Client(cluster) as client,
    ):  # fmt: skip
        yield cluster, client


@pytest.fixture(scope="module")
def client():
    with local_cluster() as (_, client):
        yield client


def data(n=60, d=20, seed=0):
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % 2
    X = rng.random((n, d)) * (rng.random((n, d)) < 0.4)
    X[truth == 0, : d // 2] *= 3
    X[5], X[:, 7] = 0, 0
    return X, np.where(np.arange(n) < 20, truth, -1)


def on_cluster(X, cuts):
    """A Dask array with blocks of these rows, sparse ones if X is."""
    if not sp.issparse(X):
        return da.from_array(X, chunks=(tuple(np.diff([0, *cuts, len(X)])), -1))
    from dask import delayed

    bounds = [0, *cuts, X.shape[0]]
    return da.concatenate([
        da.from_delayed(delayed(X[a:b]), (b - a, X.shape[1]), X.dtype, meta=sp.csr_array((0, 0)))
        for a, b in itertools.pairwise(bounds)
    ])  # fmt: skip


@pytest.mark.parametrize("solver", ["mu", "mue"])
@pytest.mark.parametrize("kind", ["sparse", "dense"])
@pytest.mark.parametrize("cuts", [[10, 11, 40]])
def test_a_fit_on_a_cluster_is_the_one_in_memory(client, kind, solver, cuts):
    X, y = data()
    X = sp.csr_array(X) if kind == "sparse" else X
    S = margin_directions(X, y)
    options = {"solver": solver, "max_iter": 6, "tol": 0, "random_state": 0}
    for more in ({}, {"S": S, "lam": 2.0}):
        here = nmf_alpha(X, R, **options, **more)
        there = nmf_alpha(on_cluster(X, cuts), R, **options, **more)
        assert_allclose(there.V, here.V, rtol=1e-10)
        assert_allclose(np.asarray(there.H), here.H, rtol=1e-10)
        assert_allclose(there.losses, here.losses, rtol=1e-12)
        assert [check.nonzeros for check in there.history] == [
            check.nonzeros for check in here.history
        ]


@pytest.mark.parametrize(
    "supervised", [pytest.param(False, marks=REAL), pytest.param(True, marks=REAL)]
)
def test_news_on_a_cluster_is_news_in_memory(client, supervised):
    news = real_data("news")
    X = sp.csr_array(news.X_train, dtype=np.float64)
    some = np.random.default_rng(0).permutation(X.shape[0])[:600]
    y = np.full(X.shape[0], -1)
    y[some] = news.y_train[some]
    options = {"solver": "mu", "max_iter": 40, "tol": 0, "random_state": 0}
    here, there = (
        NMFAlpha(20, **options).fit(Z, y if supervised else None).components_
        for Z in (X, on_cluster(X, [2000, 4000, 7000]))
    )
    assert_allclose(there, here, rtol=1e-6, atol=1e-12 * here.max())


def test_float32_stays_float32(client):
    dense, y = data()
    X = sp.csr_array(dense).astype(np.float32)
    for S in (None, margin_directions(X, y)):
        here, there = (
            nmf_alpha(D, R, S=S, solver="mu", max_iter=4, random_state=0)
            for D in (X, on_cluster(X, [30]))
        )
        assert there.V.dtype == np.float32
        assert_allclose(there.V, here.V, rtol=1e-4)


@pytest.mark.parametrize(("solver", "calls"), [("mu", 1), ("mue", 2)])
def test_round_trips_of_an_iteration(client, monkeypatch, solver, calls):
    X, y = data()
    X = np.tile(X, (1, 4000))  # so large that most iterations are not looked at
    made, at_looks = [], []
    call = Workers.call
    monkeypatch.setattr(Workers, "call", lambda self, *step: made.append(step) or call(self, *step))
    nmf_alpha(
        on_cluster(X, [30]), R, S=margin_directions(X, y), lam=1.0, solver=solver, max_iter=30,
        tol=0, random_state=0, callback=lambda progress: at_looks.append(len(made)),
    )  # fmt: skip
    look = 1
    assert np.diff(at_looks).tolist() == [10 * calls + look] * 2


def test_extreme_data_is_scaled_there_as_here(client):
    X = data()[0] * 1e-30
    here, there = (
        nmf_alpha(D, R, solver="mu", max_iter=4, random_state=0) for D in (X, on_cluster(X, [30]))
    )
    assert_allclose(there.V, here.V, rtol=1e-10)


def test_estimators_learn_there_and_map_lazily(client):
    X, y = data()
    D = on_cluster(X, [10, 40])
    here, there = (NMFAlpha(R, lam=1.0, random_state=0, max_iter=20).fit(Z, y) for Z in (X, D))
    assert_allclose(there.components_, here.components_, rtol=1e-8)
    assert_allclose(there.margin_codes_, here.margin_codes_, rtol=1e-8)
    codes = there.transform(D)
    assert isinstance(codes, da.Array)
    assert codes.shape == (60, R)
    assert_allclose(codes.compute(), here.transform(X), rtol=1e-6)


def test_a_classifier_learns_there_and_predicts_lazily(client):
    X, y = data()
    D, truth = on_cluster(X, [10, 40]), np.arange(60) % 2
    options = {"lam": 1.0, "map_iter": 5, "C": 1.0, "normalize": True, "pseudo": None}
    here, there = (
        NMFAlphaClassifier(R, random_state=0, max_iter=20, **options).fit(Z, labels)
        for Z, labels in ((X, y), (D, da.from_array(y, chunks=30)))
    )
    predicted = there.predict(D)
    assert isinstance(predicted, da.Array)
    assert predicted.shape == (60,)
    assert_array_equal(predicted.compute(), here.predict(X))
    assert_allclose(there.decision_function(D).compute(), here.decision_function(X), rtol=1e-5)
    assert there.score(D, truth) == here.score(X, truth)


def test_a_data_frame_and_estimators_that_need_all_rows(client):
    X, y = data()
    frame = pytest.importorskip("dask.dataframe").from_pandas(
        pytest.importorskip("pandas").DataFrame(X), npartitions=3
    )
    options = {"solver": "mu", "max_iter": 5, "random_state": 0}
    assert_allclose(nmf_alpha(frame, R, **options).V, nmf_alpha(X, R, **options).V, rtol=1e-10)
    gathered = SemiSupervisedNMF(R, random_state=0, max_iter=5).fit(on_cluster(X, [30]), y)
    expected = SemiSupervisedNMF(R, random_state=0, max_iter=5).fit(X, y)
    assert_allclose(gathered.components_, expected.components_)


def test_columns_in_pieces_are_put_together_with_a_warning(client):
    X = data()[0]
    with pytest.warns(UserWarning, match="2 pieces along its features"):
        found = nmf_alpha(da.from_array(X, chunks=(30, 10)), R, max_iter=3, random_state=0)
    assert_allclose(found.V, nmf_alpha(X, R, max_iter=3, random_state=0, solver="mue").V, 1e-10)


def test_bad_blocks_are_refused_in_one_sentence(client):
    X = data()[0]
    with pytest.raises(ValueError, match=r"^Block 1 of X: Negative values"):
        nmf_alpha(on_cluster(np.where(np.arange(60)[:, None] > 40, X - 1, X), [30]), R)
    with pytest.raises(ValueError, match="all are zero"):
        nmf_alpha(on_cluster(X * 0, [30]), R)
    model = NMFAlpha(R, random_state=0, max_iter=3).fit(X)
    with pytest.raises(ValueError, match="19 features, but NMFAlpha is expecting 20"):
        model.transform(on_cluster(X[:, 1:], [30]))


def test_a_map_can_become_a_data_frame():
    X = data()[0]
    model = NMFAlpha(R, random_state=0, max_iter=3).fit(X).set_output(transform="pandas")
    found = model.transform(da.from_array(X, chunks=(30, X.shape[1])))
    assert_allclose(found, model.transform(X), rtol=1e-12)


def test_a_map_on_a_cluster_is_not_written_to_a_file(tmp_path):
    X = data()[0]
    model = NMFAlpha(R, random_state=0, max_iter=3).fit(X)
    with pytest.raises(ValueError, match="to_npy_stack"):
        model.transform(da.from_array(X, chunks=(30, X.shape[1])), out=tmp_path / "Z.npy")


def test_a_fit_without_a_cluster_says_what_it_needs(monkeypatch):
    def none():
        raise ValueError("No global client found")

    monkeypatch.setattr(distributed, "get_client", none)
    with pytest.raises(ClusterError, match=r"make a dask\.distributed\.Client first"):
        nmf_alpha(da.from_array(data()[0], chunks=(30, -1)), R)


def test_workers_forget_a_fit_that_is_over(client):
    nmf_alpha(on_cluster(data()[0], [30]), R, max_iter=3, random_state=0)
    assert set(client.run(_shards_kept).values()) == {0}


def _shards_kept():
    from marginparts.rows.dask import _shard

    return len(_shard._shards)


def test_a_checkpointed_fit_goes_on_where_it_broke_off(client, tmp_path):
    X, seen = data()[0], []
    D, options = on_cluster(X, [10, 40]), {"max_iter": 12, "tol": 0, "random_state": 0}
    checkpoint = Checkpoint(tmp_path / "fit.ckpt", every_iterations=1)

    def break_off(progress):
        if progress.iteration == 6:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        nmf_alpha(D, R, callback=break_off, checkpoint=checkpoint, **options)
    found = nmf_alpha(
        D, R, callback=lambda at: seen.append(at.iteration), checkpoint=checkpoint, **options
    )
    assert seen[0] == 6
    assert_allclose(found.V, nmf_alpha(X, R, solver="mue", **options).V, rtol=1e-10)


@contextmanager
def cluster_of_processes(folder):
    """A scheduler and a worker in processes of their own; gives the scheduler."""
    where = ["--scheduler-file", str(folder / "scheduler.json"), "--no-dashboard"]
    commands = [
        ["distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", *where],
        ["distributed.cli.dask_worker", "--nthreads", "1", "--no-nanny", *where],
    ]
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    processes = [subprocess.Popen([sys.executable, "-m", *c], **silent) for c in commands]
    try:
        with distributed.Client(scheduler_file=where[1], timeout=60):
            yield processes[0]
    finally:
        for process in processes:
            process.kill()
            process.wait()


@pytest.mark.wide
def test_a_scheduler_is_killed_and_the_checkpoint_goes_on_elsewhere(client, tmp_path):
    X, _ = data()
    D, checkpoint = on_cluster(X, [30]), Checkpoint(tmp_path / "fit.ckpt", every_iterations=2)
    options = {"max_iter": 30, "tol": 0, "random_state": 0, "checkpoint": checkpoint}
    with cluster_of_processes(tmp_path) as scheduler:

        def end(progress):
            if progress.iteration == 10:
                scheduler.kill()

        with pytest.raises(ClusterError, match=r"^The Dask scheduler is gone"):
            nmf_alpha(D, R, callback=end, **options)
    seen = []
    found = nmf_alpha(D, R, callback=lambda at: seen.append(at.iteration), **options)
    assert seen[0] == 9  # the eighth was the last that was kept
    calm = nmf_alpha(X, R, solver="mue", max_iter=30, tol=0, random_state=0)
    assert_allclose(found.V, calm.V, rtol=1e-10)


def topics(n, d, r, seed):
    """Counts with parts behind them, so that there is one best factorization; a tenth labeled."""
    rng = np.random.default_rng(seed)
    parts, shares = rng.dirichlet(np.full(d, 0.1), r), rng.dirichlet(np.full(r, 0.3), n)
    X = sp.csr_array(rng.poisson(100 * shares @ parts), dtype=float)
    return X, np.where(rng.random(n) < 0.1, shares.argmax(axis=1), -1)


def whole_loss(X, S, lam, H, V):
    """The loss as the formula has it (eq. 14)."""
    divergence = get_backend("reference").divergence
    return divergence(X, H, V) + (lam and lam * divergence(S.T @ X, S.T @ H, V))


def test_lost_rows_are_found_again_with_their_margin_components():
    lam, r = 1.0, 5
    X, y = topics(600, 60, r, 0)
    S = sp.csr_array(margin_directions(X, y))
    fit = nmf_alpha(X, r, S=S, lam=lam, solver="mue", max_iter=300, tol=0, random_state=0)
    numba, flat = get_backend("numba"), 1 / fit.V.sum(axis=0)
    V, HS = numba.factor(fit.V), S.T @ fit.H
    T = numba.release(numba.ratio_matmul(numba.prepare(S.T @ X), numba.factor(HS), V), r)
    part, some = numba.prepare(X[:300]), numba.coefficients(S[:300])
    before, worse = whole_loss(X, S, lam, fit.H, fit.V), {}
    for margin in (Margin(lam, HS, T), None):
        H = fit.H.copy()
        found = recovered(LostRows(numba, part, some, r, margin), V, flat, 300)
        H[:300] = numba.release(found, r)
        worse[margin is not None] = whole_loss(X, S, lam, H, fit.V) / before - 1
        assert ((H @ fit.V.T)[X.nonzero()] > 0).all()  # whatever there is, it is explained
    assert worse[True] < 1e-5 < worse[False]


class Workerless:
    """A client whose workers only say that they are there; the first has all blocks."""

    def nthreads(self):
        return {"a": 1, "b": 1}

    def who_has(self, blocks):
        return {block.key: ["a"] for block in blocks}


def test_blocks_are_shared_out_by_nonzeros_and_rows():
    spec = Spec("", "numba", 0, R, np.float64, 1.0)

    def loads(work):
        blocks = [SimpleNamespace(key=str(i)) for i in range(len(work))]
        placed = Workers(Workerless(), blocks, range(len(work)), work, spec)
        return {worker: placed._load(worker) for worker in "ab"}

    assert loads([40, 30, 20, 10]) == {"a": 50, "b": 50}
    assert sorted(loads([100, 10, 10, 10, 10, 10]).values()) == [50, 100]
    assert sorted(loads([100]).values()) == [0, 100]


def _lose_blocks():
    from marginparts.rows.dask import _shard

    for shard in _shard._shards.values():
        for number in list(shard.blocks)[:1]:
            del shard.blocks[number]


@pytest.mark.parametrize("supervised", [False, True])
def test_rows_lost_inside_the_call_for_numerators(client, monkeypatch, supervised):
    X, y = data()
    S, lam = (margin_directions(X, y), 2.0) if supervised else (None, 0.0)
    calls, denominators, expected, call = itertools.count(), [], [], Workers.call

    def losing(self, *step):
        """Lose a block of each worker when numerators are called for; ask for sums after it."""
        if step[0] != "numerators":
            return call(self, *step)
        lose = next(calls) == 2
        if lose:
            client.run(_lose_blocks)
        said = call(self, *step)
        sums = call(self, "sums", step[1])
        if supervised:
            sums = sums + lam * call(self, "margin_codes", step[1]).sum(axis=0)
        expected.append(sums)
        return said

    finish = NumbaBackend.finish

    def watched(self, A, numerator, den, *more):
        denominators.append((len(expected) - 1, den[:R].copy()))
        return finish(self, A, numerator, den, *more)

    monkeypatch.setattr(Workers, "call", losing)
    monkeypatch.setattr(NumbaBackend, "finish", watched)
    found = nmf_alpha(
        on_cluster(X, [10, 40]), R, S=S, lam=lam, solver="mue", max_iter=4, tol=0, random_state=0
    )
    assert len(denominators) == 4
    for i, den in denominators:  # of the same rows as the numerators
        assert_allclose(den, expected[i], rtol=1e-12)
    assert len(expected) == 5  # one was asked for again
    loss = whole_loss(X, S, lam, np.asarray(found.H), found.V)
    assert_allclose(found.losses[-1], loss, rtol=1e-9)


def losses(seed, lam, max_iter, done=0):
    """Fit here and on a cluster of which a worker is killed and another added on the way.

    Both happen at a random iteration of the first two thirds, a random moment after the look at its
    loss. The rest is so long that a fit settles: it is not a race. ``done`` iterations are not
    disturbed, and done before.
    """
    r = 3
    X, y = topics(500, 40, r, seed)
    S = sp.csr_array(margin_directions(X, y)) if lam else None
    options = {"S": S, "lam": lam, "solver": "mue", "tol": 0, "random_state": seed}
    if done:
        begun = nmf_alpha(X, r, max_iter=done, **options)
        options["init"] = begun.H, begun.V
    options["max_iter"] = max_iter
    calm = nmf_alpha(X, r, **options).losses[-1]
    rng = np.random.default_rng(1000 + seed)
    kill_at, add_at = rng.integers(1, 2 * max_iter // 3, 2)
    moment = rng.random() * 0.05
    with local_cluster() as (cluster, client):
        pids = client.run(os.getpid)
        timer = threading.Timer(moment, os.kill, (pids[sorted(pids)[seed % 2]], signal.SIGKILL))

        def disturb(progress):
            if progress.iteration == kill_at:
                timer.start()
            if progress.iteration == add_at:
                cluster.scale(3)

        found = nmf_alpha(on_cluster(X, [150, 200, 400]), r, callback=disturb, **options)
        timer.join()
        loss = whole_loss(X, S, lam, np.asarray(found.H), found.V)
    assert_allclose(found.losses[-1], loss, rtol=1e-9)  # the one that it says it has
    return loss, calm, (kill_at, moment, add_at)


@pytest.mark.wide
def test_a_worker_is_killed_and_another_joins():
    found, calm, _ = losses(0, lam=1.0, max_iter=20, done=200)
    assert found <= calm * (1 + 1e-4)


@pytest.mark.slow
def test_twenty_kills():
    """The campaign: a worker dies at a random moment of a fit, and another joins."""
    log = os.environ.get("MARGINPARTS_KILLS_LOG", os.devnull)
    with open(log, "w") as file:
        file.write("seed,lam,killed_at,seconds_later,added_at,loss,undisturbed,relative\n")
        for seed, lam in enumerate([1.0] * 20 + [0.0] * 2):  # with labels, and some without
            found, calm, (kill_at, moment, add_at) = losses(seed, lam, max_iter=240)
            worse = found / calm - 1
            when = f"{kill_at},{moment:.3f},{add_at}"
            file.write(f"{seed},{lam:g},{when},{found:.10g},{calm:.10g},{worse:.2e}\n")
            file.flush()
            assert worse <= 1e-4, seed
