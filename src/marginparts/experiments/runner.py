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
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from functools import lru_cache, partial
from typing import Any

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


def run_units(
    units: Iterable[Unit],
    store: Store,
    *,
    data_dir: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    deadline: float | None = None,
    on_unit: OnUnit | None = None,
) -> int:
    """Do the units that are not in the store yet, and append their records as they come.

    Parameters
    ----------
    units : iterable of Unit
    store : Store
    data_dir : path or None
        The folder of the data sets, see `marginparts.datasets.data_folder`.
    n_jobs : int or None
        Processes; None for one a core. One runs everything here.
    deadline : float or None
        No unit is begun when `time.monotonic` is past this.
    on_unit : callable or None
        Called after each unit.

    Returns
    -------
    int
        How many units are left.
    """
    done = store.units()
    open_units = {unit.key: unit for unit in units if unit.key not in done}
    begun = (
        unit
        for unit in list(open_units.values())
        if deadline is None or time.monotonic() < deadline
    )
    work = partial(run_unit, data_dir=None if data_dir is None else os.fspath(data_dir))
    n_jobs = min(n_jobs or _cores(), len(open_units))

    def finish(unit: Unit, records: list[Record]) -> None:
        store.append(unit.key, records)
        del open_units[unit.key]
        if on_unit is not None:
            on_unit(unit, records)

    if n_jobs > 1:
        _in_parallel(begun, work, finish, n_jobs)
    else:
        for unit in begun:
            finish(unit, work(unit))
    return len(open_units)


def _cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _in_parallel(
    units: Iterable[Unit], work: Callable[[Unit], list[Record]], finish: OnUnit, n_jobs: int
) -> None:
    # not forked: threads of numerical libraries do not survive that
    context = multiprocessing.get_context("spawn")
    before = {name: os.environ.get(name) for name in _ONE_THREAD}
    os.environ.update(dict.fromkeys(_ONE_THREAD, "1"))
    pool = ProcessPoolExecutor(n_jobs, mp_context=context, initializer=_end_with_the_parent)
    try:
        running: dict[Future[list[Record]], Unit] = {}
        for unit in units:
            running[pool.submit(work, unit)] = unit
            if len(running) <= n_jobs:  # one more than can run, so that no worker waits
                continue
            _collect(running, finish)
        while running:
            _collect(running, finish)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _collect(running: dict[Future[list[Record]], Unit], finish: OnUnit) -> None:
    """Wait for at least one unit and keep its records."""
    for future in wait(running, return_when=FIRST_COMPLETED).done:
        finish(running.pop(future), future.result())


def _end_with_the_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_leave_after, args=(parent,), daemon=True).start()


def _leave_after(parent: Any) -> None:
    parent.join()
    os._exit(1)


def run_unit(unit: Unit, data_dir: str | None = None) -> list[Record]:
    """Run one unit and return a record for each setting that it tried.

    ``seconds`` of a record are those since the one before it: what the first one of a
    factorization has to wait for is in its own, and the sum is what the unit took.
    """
    trial = _trial(unit.data, unit.preprocessing, unit.split, data_dir)
    method = method_named(unit.method)
    told = {
        "method": unit.method, "data": unit.data, "preprocessing": unit.preprocessing,
        "split": unit.split,
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
def _trial(name: str, preprocessing: str, split: int, data_dir: str | None) -> Trial:
    return draw_trial(_data(name, data_dir), preprocessing, split)
