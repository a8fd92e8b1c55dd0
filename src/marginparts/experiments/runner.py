"""Running units of work in parallel processes, one thread each, into a store that survives a kill.

Workers compute; this process alone writes. A worker whose parent is gone ends itself.
"""

from __future__ import annotations

import importlib.metadata
import multiprocessing
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import Any, NamedTuple

from threadpoolctl import threadpool_limits

from marginparts._version import __version__
from marginparts.datasets import PaperData
from marginparts.experiments.data import load_data
from marginparts.experiments.plan import Unit
from marginparts.experiments.protocol import Trial, draw_trial
from marginparts.experiments.registry import method_named
from marginparts.experiments.store import Record, Store

#: Called with a unit that is done and its records.
OnUnit = Callable[[Unit, list[Record]], None]

#: Variables that keep libraries from starting threads of their own in a worker.
_ONE_THREAD = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class Failure(NamedTuple):
    """A unit that could not be done, and why."""

    unit: Unit
    error: BaseException

    def __str__(self) -> str:
        unit, said = self.unit, str(self.error).strip().split("\n")[0]
        ranks = f", rank {'/'.join(map(str, unit.ranks))}" if unit.ranks else ""
        return (
            f"{unit.method} failed on {unit.data}, split {unit.split}{ranks}: "
            f"{type(self.error).__name__}: {said}"
        )


class Outcome(NamedTuple):
    """How many units are left to do, and which of them failed."""

    left: int
    failures: list[Failure]


def run_units(
    units: Iterable[Unit],
    store: Store,
    *,
    data_dir: str | os.PathLike[str] | None = None,
    backend: str = "numba",
    n_jobs: int | None = None,
    deadline: float | None = None,
    on_unit: OnUnit | None = None,
) -> Outcome:
    """Do the units that are not in the store yet, and append their records as they come.

    A unit that fails does not keep the others from being done.

    Parameters
    ----------
    units : iterable of Unit
    store : Store
    data_dir : path or None
        The folder of the data sets, see `marginparts.datasets.data_folder`.
    backend : str
        Where the factorizations run. On a GPU the processes share it: while one trains SVMs, the
        card works for the others.
    n_jobs : int or None
        Processes; None for one a core. One runs everything here.
    deadline : float or None
        No unit is begun when `time.monotonic` is past this.
    on_unit : callable or None
        Called after each unit.

    Returns
    -------
    Outcome
    """
    done = store.units()
    open_units = {unit.key: unit for unit in units if unit.key not in done}
    if not open_units:
        return Outcome(0, [])
    begun = (
        unit
        for unit in list(open_units.values())
        if deadline is None or time.monotonic() < deadline
    )
    folder = None if data_dir is None else os.fspath(data_dir)
    work = partial(run_unit, data_dir=folder, backend=backend)
    n_jobs = min(n_jobs or _cores(), len(open_units))
    failures = []
    with store.writing():
        for unit, records in (
            _in_parallel(begun, work, n_jobs) if n_jobs > 1 else _one_by_one(begun, work)
        ):
            if isinstance(records, BaseException):
                failures.append(Failure(unit, records))
                continue
            store.append(unit.key, records)
            del open_units[unit.key]
            if on_unit is not None:
                on_unit(unit, records)
    return Outcome(len(open_units), failures)


def _cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


Work = Callable[[Unit], list[Record]]
Done = Iterator[tuple[Unit, list[Record] | Exception]]


def _one_by_one(units: Iterable[Unit], work: Work) -> Done:
    for unit in units:
        try:
            yield unit, work(unit)
        except Exception as error:
            yield unit, error


def _in_parallel(units: Iterable[Unit], work: Work, n_jobs: int) -> Done:
    # not forked: threads of numerical libraries do not survive that
    context = multiprocessing.get_context("spawn")
    with _one_thread():
        pool = ProcessPoolExecutor(n_jobs, mp_context=context, initializer=_end_with_the_parent)
        try:
            running: dict[Future[list[Record]], Unit] = {}
            for unit in units:
                running[pool.submit(work, unit)] = unit
                if len(running) >= n_jobs:
                    yield from _finished(running)
            while running:
                yield from _finished(running)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Let processes that are started meanwhile use one thread each."""
    before = {name: os.environ.get(name) for name in _ONE_THREAD}
    os.environ.update(dict.fromkeys(_ONE_THREAD, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _finished(running: dict[Future[list[Record]], Unit]) -> Done:
    """Wait for at least one unit."""
    for future in wait(running, return_when=FIRST_COMPLETED).done:
        unit = running.pop(future)
        try:
            yield unit, future.result()
        except BrokenProcessPool:  # no later unit can run either
            raise
        except Exception as error:
            yield unit, error


def _end_with_the_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_leave_after, args=(parent,), daemon=True).start()


def _leave_after(parent: Any) -> None:
    parent.join()
    os._exit(1)


def run_unit(unit: Unit, data_dir: str | None = None, backend: str = "numba") -> list[Record]:
    """Run one unit and return a record for each setting that it tried.

    ``seconds`` of a record are those since the one before it: what the first one of a
    factorization has to wait for is in its own, and the sum is what the unit took.
    """
    trial = _trial(unit.data, unit.preprocessing, unit.split, data_dir, backend)
    method = method_named(unit.method)
    told = {
        "method": unit.method, "data": unit.data, "preprocessing": unit.preprocessing,
        "split": unit.split, **({} if backend == "numba" else {"backend": backend}),
    }  # fmt: skip
    records: list[Record] = []
    # one thread: the sums of some libraries depend on their number
    with threadpool_limits(1), warnings.catch_warnings():
        # classes without a label, and SVMs that a huge C makes slow: the scores show what it costs
        warnings.simplefilter("ignore")
        began = time.perf_counter()
        for found in method.run(trial, unit.fractions, unit.ranks, unit.grid):
            now = time.perf_counter()
            records.append(
                {**told, **found, "seed": trial.seed, "seconds": round(now - began, 3), **_about()}
            )
            began = now
    return records


@lru_cache(1)
def _about() -> Record:
    others = ("numpy", "scipy", "scikit-learn", "numba")
    found = {name: importlib.metadata.version(name) for name in others}
    found = {"marginparts": __version__, **found}
    return {"versions": " ".join(f"{name} {version}" for name, version in found.items())}


@lru_cache(1)
def _data(name: str, data_dir: str | None) -> PaperData:
    return load_data(name, data_dir)


@lru_cache(1)
def _trial(name: str, preprocessing: str, split: int, data_dir: str | None, backend: str) -> Trial:
    return draw_trial(_data(name, data_dir), preprocessing, split, backend)
