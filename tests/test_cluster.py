"""Fits on a Dask cluster: equal to those in memory, whatever the cut, and whoever dies."""

import itertools
import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager

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
from marginparts.cluster._calls import ClusterError, Workers
from realdata import REAL, real_data

da = pytest.importorskip("dask.array", reason="dask is not installed")
distributed = pytest.importorskip("distributed", reason="distributed is not installed")

# dask's own: a graph that carries small test data, and sockets that are closed late
pytestmark = [
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
    X = sp.csr_array(data()[0]).astype(np.float32)
    here, there = (
        nmf_alpha(D, R, solver="mu", max_iter=4, random_state=0) for D in (X, on_cluster(X, [30]))
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
    from marginparts.cluster import _shard

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
    """Counts with parts behind them, so that there is one best factorization."""
    rng = np.random.default_rng(seed)
    parts = rng.dirichlet(np.full(d, 0.1), r)
    return sp.csr_array(rng.poisson(100 * rng.dirichlet(np.full(r, 0.3), n) @ parts), dtype=float)


def losses(seed, moments):
    """Fit here and on a cluster of which a worker is killed and another added at these moments.

    Moments are seconds after the first look at the loss.
    """
    X, r = topics(20_000, 150, 10, seed), 10
    # so many that the undisturbed fit has settled: it is not a race
    options = {"solver": "mue", "max_iter": 300, "tol": 0, "random_state": seed}
    calm = nmf_alpha(X, r, **options).losses[-1]
    with local_cluster() as (cluster, client):
        pids = client.run(os.getpid)
        victim = pids[sorted(pids)[seed % 2]]
        timers = [
            threading.Timer(moments[0], os.kill, (victim, signal.SIGKILL)),
            threading.Timer(moments[1], cluster.scale, (3,)),
        ]
        begun = []

        def begin(progress):
            if not begun:
                begun.extend(timer.start() or timer for timer in timers)

        cuts = [4000, 9000, 13_000]
        found = nmf_alpha(on_cluster(X, cuts), r, callback=begin, **options)
        loss = get_backend("reference").divergence(X, np.asarray(found.H), found.V)
        assert_allclose(found.losses[-1], loss, rtol=1e-9)  # the one that it says it has
        killed = timers[0].finished.is_set()
        for timer in timers:
            timer.cancel()
            timer.join()
    return loss, calm, killed


@pytest.mark.wide
def test_a_worker_is_killed_and_another_joins():
    found, calm, killed = losses(0, (0.3, 1.0))
    assert killed
    assert found <= calm * (1 + 1e-4)


@pytest.mark.slow
def test_twenty_kills():
    """The campaign: a worker dies at a random moment of a fit, and another joins."""
    log = os.environ.get("MARGINPARTS_KILLS_LOG", os.devnull)
    with open(log, "w") as file:
        file.write("seed,killed_after,added_after,loss,undisturbed,relative\n")
        for seed in range(20):
            moments = np.random.default_rng(1000 + seed).random(2) * 6
            found, calm, killed = losses(seed, moments)
            when = f"{moments[0]:.2f}" if killed else "too late"
            worse = found / calm - 1
            file.write(f"{seed},{when},{moments[1]:.2f},{found:.10g},{calm:.10g},{worse:.2e}\n")
            file.flush()
            assert worse <= 1e-4, seed
