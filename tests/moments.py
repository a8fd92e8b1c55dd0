"""Bad moments: signals, full disks, vanished files, forks and threads, each tried again and again.

Run as a program, each is tried 20 times at random moments, and a line says how often nothing was
half written and what came out was right:

    python tests/moments.py > benchmarks/results/moments.txt

Fits are small and run in processes that are forked before anything was fitted, so that a moment
takes a tenth of a second and not that of an import.
"""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from marginparts import Checkpoint, NMFAlpha, load, nmf_alpha, save
from marginparts.app.readers import open_source
from marginparts.app.writers import open_table_writer
from marginparts.backends.reference import ReferenceBackend
from marginparts.checkpoint._file import read_checkpoint
from marginparts.files.atomic import FileProblemError, leave
from marginparts.rows.dask._calls import ClusterError

X = np.random.default_rng(0).random((300, 40))
Y = np.where(np.arange(300) < 60, np.arange(300) % 3, -1)

#: Seconds within which a child is hit.
LIFE = 0.6

Moment = Callable[[random.Random, Path], None]


def fit(path: Path | None = None, *, rows: Any = X, **options: Any) -> bytes:
    """Fit, maybe with a checkpoint after every iteration; return the bits of what was found."""
    kept = None if path is None else Checkpoint(path, every_seconds=None, every_iterations=1)
    options |= {"solver": "mue", "max_iter": 60, "tol": 0, "random_state": 0, "checkpoint": kept}
    result = nmf_alpha(rows, 6, **options)
    return np.asarray(result.V).tobytes() + np.asarray(result.H).tobytes()


def parts() -> NMFAlpha:
    return NMFAlpha(4, max_iter=10, tol=0, random_state=0).fit(X, Y)


def in_child(work: Callable[[], bytes | None], hit: Callable[[int], None] | None = None) -> tuple:
    """Run something in a process of its own; return how it ended, and what it returned."""
    out, into = os.pipe()
    child = os.fork()
    if not child:
        status = 0
        try:
            os.close(out)
            found = work() or b""
            with os.fdopen(into, "wb") as pipe:
                pipe.write(found)
        except SystemExit as error:
            status = int(error.code or 0)
        except KeyboardInterrupt:
            status = 130
        except FileProblemError as error:
            with os.fdopen(into, "wb") as pipe:
                pipe.write(b"said " + str(error).encode())
            status = 2
        except BaseException:
            traceback.print_exc()
            status = 99
        os._exit(status)
    os.close(into)
    if hit is not None:
        hit(child)
    with os.fdopen(out, "rb") as pipe:
        found = pipe.read()
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return ended, found


def expected(name: str, work: Callable[[], bytes], known: dict[str, bytes] = {}) -> bytes:  # noqa: B006
    """Return what comes out when nothing happens, found once."""
    if name not in known:
        known[name] = in_child(work)[1]
        assert known[name]
    return known[name]


def no_leftovers(folder: Path) -> None:
    assert not list(folder.glob(".*.part")), "something half written is left"


def hit_by(number: signal.Signals, *, leaves: bool = False) -> Moment:
    """A signal at a random moment of a fit with a checkpoint; the same call goes on from it."""

    def moment(rng: random.Random, folder: Path) -> None:
        path, whole = folder / "fit.ckpt", expected("fit", fit)

        def work() -> bytes:
            signal.signal(signal.SIGTERM, leave)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            return fit(path)

        def hit(child: int) -> None:
            time.sleep(rng.uniform(0, LIFE))
            os.kill(child, number)

        ended, found = in_child(work, hit)
        assert ended in (0, 130, 143, -number), ended
        if ended == 0 and not path.exists():  # else it ended early, with what it had found
            assert found == whole, "other bits, and no checkpoint to go on from"
        if not leaves:
            no_leftovers(folder)
        assert in_child(lambda: fit(path))[1] == whole, "other bits after it went on"

    return moment


def full_disk(rng: random.Random, folder: Path) -> None:
    """A disk that is full at some byte: a sentence, and the model that was there stays."""
    path = folder / "x.model"
    save(MODEL, path)
    before = path.read_bytes()

    def work() -> bytes:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        limit = rng.randrange(1, len(before))
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        save(MODEL, path)
        return b"written"

    ended, said = in_child(work)
    assert ended == 2, (ended, said)
    assert b"cannot be written" in said
    assert path.read_bytes() == before
    no_leftovers(folder)


def read_only(rng: random.Random, folder: Path) -> None:
    """A folder that may not be written to."""
    inner = folder / "locked"
    inner.mkdir()
    folder.chmod(0o755)
    inner.chmod(0o555)

    def work() -> bytes:
        if os.getuid() == 0:
            os.setuid(65534)
        save(MODEL, inner / "x.model")
        return b"written"

    ended, said = in_child(work)
    assert ended == 2, (ended, said)
    assert b"may not be written to" in said
    assert not list(inner.iterdir())


def vanished(rng: random.Random, folder: Path) -> None:
    """A file that goes away before or while it is read: all of its rows, or a sentence."""
    path = folder / "t.csv"
    path.write_text("body,team\n" + "red green,a\n" * 20_000)
    source_at, at = rng.random() < 0.3, rng.randrange(4)

    def work() -> bytes:
        if source_at:
            path.unlink()
        source = open_source(path, text="body", label="team")
        n = 0
        for k, batch in enumerate(source.batches(4_000)):
            if k == at:
                path.unlink(missing_ok=True)
            n += len(batch.labels)
        return f"{n} rows".encode()

    ended, said = in_child(work)
    assert ended in (0, 2), (ended, said)
    assert said == b"20000 rows" or said.startswith(b"said ")


def two_writers(rng: random.Random, folder: Path) -> None:
    """Two processes write one file: in the end it is that of the one or of the other."""
    path = folder / "out.csv"

    def write(letter: str) -> bytes:
        time.sleep(rng.uniform(0, 0.02))
        with open_table_writer(path) as table:
            for _ in range(20):
                table.write({"a": [letter] * 200})
        return b"done"

    ended = []
    threads = [
        threading.Thread(target=lambda letter=letter: ended.append(in_child(lambda: write(letter))))
        for letter in "xy"
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [each[0] for each in ended] == [0, 0], ended
    lines = path.read_text().split()
    assert len(lines) == 4001
    assert len(set(lines[1:])) == 1, "rows of both"
    no_leftovers(folder)


def jumping_clock(rng: random.Random, folder: Path) -> None:
    """A clock that goes back and forth by years changes no bit, and breaks no checkpoint."""
    real, path, whole = time.time, folder / "fit.ckpt", expected("fit", fit)

    def work() -> bytes:
        jumps = [rng.uniform(-1e9, 1e9) for _ in range(5)]
        with mock.patch("time.time", side_effect=lambda: real() + rng.choice(jumps)):
            return fit(path)

    assert in_child(work) == (0, whole)
    no_leftovers(folder)


def forked(rng: random.Random, folder: Path) -> None:
    """A process that was forked after the import fits as any other."""
    assert in_child(fit) == (0, expected("fit", fit))


def forked_after_a_fit(rng: random.Random, folder: Path) -> None:
    """A process that was forked after a fit fits, or says in a sentence that it cannot."""

    def work() -> bytes:
        fit()

        def inner() -> bytes:
            try:
                return fit()
            except RuntimeError as error:
                return b"said " + str(error).encode()

        ended, found = in_child(inner)
        assert ended == 0, ended
        return found

    ended, found = in_child(work)
    assert ended == 0
    assert found == expected("fit", fit) or b"forked" in found


def four_threads(rng: random.Random, folder: Path) -> None:
    """Four fits at once in one process find what each finds alone."""

    def work() -> bytes:
        found: list[bytes] = []
        threads = [threading.Thread(target=lambda: found.append(fit())) for _ in range(4)]
        for thread in threads:
            thread.start()
            time.sleep(rng.uniform(0, 0.01))
        for thread in threads:
            thread.join()
        assert len(found) == 4
        assert len(set(found)) == 1
        return found[0]

    assert in_child(work) == (0, expected("fit", fit))


def _joblib_fit(_: int) -> bytes:
    return fit()


def around(backend: str) -> Moment:
    """Joblib around fits, which are those of one process."""

    def moment(rng: random.Random, folder: Path) -> None:
        def work() -> bytes:
            from joblib import Parallel, delayed

            found = Parallel(2, backend=backend)(delayed(_joblib_fit)(k) for k in range(2))
            assert len(set(found)) == 1
            return found[0]

        assert in_child(work) == (0, expected("fit", fit))

    return moment


def saved_over(rng: random.Random, folder: Path) -> None:
    """A kill while a model is written over an old one leaves the one or the other."""
    path = folder / "x.model"
    save(MODEL, path)

    def work() -> bytes:
        while True:
            save(MODEL, path)

    def hit(child: int) -> None:
        time.sleep(rng.uniform(0, 0.2))
        os.kill(child, signal.SIGKILL)

    assert in_child(work, hit)[0] == -signal.SIGKILL
    assert load(path).components_.tobytes() == MODEL.components_.tobytes()


class OutOfMemoryError(RuntimeError):
    """What torch raises when a GPU is full, by its name."""


class FullBackend(ReferenceBackend):
    """A backend whose memory is full after some calls of its kernel."""

    def __init__(self, calls: int) -> None:
        self.left = calls

    def ratio_matmul(self, *given: Any) -> Any:
        self.left -= 1
        if not self.left:
            raise OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        return super().ratio_matmul(*given)


def full_gpu(rng: random.Random, folder: Path) -> None:
    """A GPU whose memory is full in mid-fit: a sentence, and the same call goes on later."""
    path = folder / "fit.ckpt"

    def work(calls: int, kept: Path | None) -> bytes:
        try:
            return fit(kept, backend=FullBackend(calls))
        except MemoryError as error:
            return b"said " + str(error).encode()

    whole = expected("full", lambda: work(-1, None))
    ended, said = in_child(lambda: work(rng.randrange(1, 100), path))
    assert ended == 0
    assert said.startswith(b"said The memory of backend='reference' is full;"), said[:200]
    assert said.endswith(b".")
    no_leftovers(folder)
    assert in_child(lambda: work(-1, path)) == (0, whole), "other bits after it went on"


@contextmanager
def cluster(folder: Path, workers: int) -> Iterator[list[subprocess.Popen]]:
    """A scheduler of Dask and its workers, in processes of their own."""
    from distributed import Client

    where = ["--scheduler-file", str(folder / "scheduler.json"), "--no-dashboard"]
    commands = [
        ["distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", *where],
        *[["distributed.cli.dask_worker", "--nthreads", "1", "--no-nanny", *where]] * workers,
    ]
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    processes = [subprocess.Popen([sys.executable, "-m", *c], **silent) for c in commands]
    try:
        with Client(scheduler_file=where[1], timeout=120) as client:
            client.wait_for_workers(workers, timeout=120)
            yield processes
    finally:
        for process in processes:
            process.kill()
            process.wait()


def on_dask(killed: int, rng: random.Random, folder: Path, path: Path | None) -> bytes:
    """Fit on a cluster, of which a process is killed at a random moment; return what was found."""
    import dask.array as da

    at, later = rng.randrange(1, 30), rng.uniform(0, 0.05)
    with cluster(folder, 1 if killed == 0 else 2) as processes:
        timer = threading.Timer(later, processes[killed].kill)

        def disturb(progress: Any) -> None:
            if progress.iteration == at:
                timer.start()

        rows = da.from_array(X, chunks=((100, 100, 100), -1))
        try:
            return fit(path, rows=rows, callback=disturb)
        except ClusterError as error:
            return b"said " + str(error).encode()
        finally:
            timer.join()


def dead_scheduler(rng: random.Random, folder: Path) -> None:
    """A scheduler that dies: all was done before, or a sentence."""
    ended, found = in_child(lambda: on_dask(0, rng, folder, folder / "fit.ckpt"))
    assert ended == 0
    if found.startswith(b"said"):
        assert found.startswith(b"said The Dask scheduler is gone"), found
        # once the other side is gone, the checkpoint is all there is, and must be whole
        kept = folder / "fit.ckpt"
        assert not kept.exists() or read_checkpoint(kept).notes["run"].tree["iteration"] > 0
    else:
        assert loss_of(found) <= 1.01 * loss_of(expected("fit", fit))
    no_leftovers(folder)


def dead_worker(rng: random.Random, folder: Path) -> None:
    """A worker that dies: the other one takes its rows, and the fit ends about as well."""
    ended, found = in_child(lambda: on_dask(1, rng, folder, None))
    assert ended == 0
    assert loss_of(found) <= 1.01 * loss_of(expected("fit", fit))


def loss_of(found: bytes) -> float:
    """Return the loss of factors: rows that were lost are sought anew, so bits differ."""
    numbers = np.frombuffer(found)
    V, H = numbers[: 40 * 6].reshape(40, 6), numbers[40 * 6 :].reshape(300, 6)
    return ReferenceBackend().divergence(X, H, V)


MOMENTS: dict[str, Moment] = {
    "SIGINT in a fit": hit_by(signal.SIGINT),
    "SIGTERM in a fit": hit_by(signal.SIGTERM),
    "SIGKILL in a fit": hit_by(signal.SIGKILL, leaves=True),
    "SIGKILL while a model is written": saved_over,
    "a full disk": full_disk,
    "a read-only folder": read_only,
    "an input that vanishes": vanished,
    "two processes on one output": two_writers,
    "a clock that jumps": jumping_clock,
    "fork after import": forked,
    "fork after a fit": forked_after_a_fit,
    "four threads fitting": four_threads,
    "joblib, threading": around("threading"),
    "joblib, loky": around("loky"),
    "a GPU whose memory is full": full_gpu,
    "a scheduler of Dask that dies": dead_scheduler,
    "a worker of Dask that dies": dead_worker,
}

#: A model that was fitted in another process: this one must not have fitted when it forks.
MODEL: NMFAlpha


def prepare(folder: Path) -> None:
    """Fit what the moments use."""
    global MODEL
    path = folder / "given.model"
    ended, _ = in_child(lambda: save(parts(), path))
    assert ended == 0
    MODEL = load(path)


def tried(name: str, times: int, seed: int) -> tuple[int, list[str]]:
    """Return how often a moment went well, and what was wrong otherwise."""
    well, wrong = 0, []
    for k in range(times):
        with tempfile.TemporaryDirectory() as folder:
            try:
                MOMENTS[name](random.Random(f"{seed} {name} {k}"), Path(folder))
                well += 1
            except Exception as error:
                wrong.append(f"{k}: {type(error).__name__}: {str(error)[:200]}")
    return well, wrong


def main() -> None:
    times = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    names = sys.argv[2:] or list(MOMENTS)
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder))
        for name in names:
            began = time.time()
            well, wrong = tried(name, times, seed=1)
            print(f"{name:34} {well} of {times}  {time.time() - began:5.0f} s", flush=True)
            for line in wrong:
                print(f"    {line}", flush=True)


if __name__ == "__main__":
    main()
