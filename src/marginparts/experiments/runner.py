"""Running units of work in parallel processes, one thread each, into a store that survives a kill.

Workers compute; this process alone writes. A worker whose parent is gone ends itself.
"""

from __future__ import annotations

import importlib.metadata
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from typing import NamedTuple, Protocol, TypeVar

from joblib import Parallel, cpu_count, delayed, parallel_config
from threadpoolctl import threadpool_limits

from marginparts._version import __version__
from marginparts.experiments.data import load_data
from marginparts.experiments.plan import Unit
from marginparts.experiments.protocol import Trial, draw_trial
from marginparts.experiments.registry import method_named
from marginparts.experiments.store import Record, Store

#: Called with a unit that is done and its records.
OnUnit = Callable[[Unit, list[Record]], None]


class Task(Protocol):
    """Any unit of work: what it is about, and the key of its records."""

    @property
    def key(self) -> str:
        """The key of its records."""

    @property
    def data(self) -> str:
        """The name of its data."""

    @property
    def method(self) -> str:
        """What is tried."""

    @property
    def split(self) -> int:
        """Which draw of the rows it is."""

    @property
    def ranks(self) -> tuple[int, ...]:
        """The numbers of parts, where there are several."""


U = TypeVar("U", bound=Task)
Work = Callable[[U], list[Record]]
#: A unit with its records, or with why there are none: an error need not survive the way here.
Done = tuple[U, list[Record] | str]


class Failure(NamedTuple):
    """A unit that could not be done, and why."""

    unit: Task
    why: str

    def __str__(self) -> str:
        unit = self.unit
        ranks = f", rank {'/'.join(map(str, unit.ranks))}" if unit.ranks else ""
        return f"{unit.method} failed on {unit.data}, split {unit.split}{ranks}: {self.why}"


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

    A unit that fails does not keep the others from being done, and none is begun when
    `time.monotonic` is past the ``deadline``. There are ``n_jobs`` processes, or one a core; a
    single one is this process. On a GPU they share it: while one trains SVMs, the card works for
    the others.
    """
    folder = None if data_dir is None else os.fspath(data_dir)
    work = partial(run_unit, data_dir=folder, backend=backend)
    return run_tasks(units, store, work, n_jobs=n_jobs, deadline=deadline, on_unit=on_unit)


def run_tasks(
    units: Iterable[U],
    store: Store,
    work: Work[U],
    *,
    n_jobs: int | None = None,
    deadline: float | None = None,
    on_unit: Callable[[U, list[Record]], None] | None = None,
) -> Outcome:
    """Do any kind of units that are not in the store yet, see `run_units`."""
    done = store.units()
    open_units = {unit.key: unit for unit in units if unit.key not in done}
    if not open_units:
        return Outcome(0, [])
    queue = list(open_units.values())
    begun = (unit for unit in queue if deadline is None or time.monotonic() < deadline)
    n_jobs = min(n_jobs or cpu_count(), len(open_units))
    here = (_tried(work, unit) for unit in begun)
    failures = []
    with store.writing():
        for unit, records in _in_parallel(begun, work, n_jobs) if n_jobs > 1 else here:
            if isinstance(records, str):
                failures.append(Failure(unit, records))
                continue
            store.append(unit.key, records)
            del open_units[unit.key]
            if on_unit is not None:
                on_unit(unit, records)
    return Outcome(len(open_units), failures)


def _in_parallel(units: Iterable[U], work: Work[U], n_jobs: int) -> Iterator[Done[U]]:
    """Yield units as they are done; one is begun when a process is free, and not before."""
    from joblib.externals.loky import get_reusable_executor

    try:
        with parallel_config("loky", inner_max_num_threads=1):
            pool = Parallel(
                n_jobs, pre_dispatch=n_jobs, batch_size=1, return_as="generator_unordered"
            )
            yield from pool(delayed(_in_worker)(work, unit) for unit in units)
    finally:
        # a later run may be in another folder, which processes that are left would not know of
        get_reusable_executor(reuse=True).shutdown(kill_workers=True)


def _in_worker(work: Work[U], unit: U) -> Done[U]:
    _end_with_the_parent(os.getppid())
    return _tried(work, unit)


def _tried(work: Work[U], unit: U) -> Done[U]:
    try:
        return unit, work(unit)
    except Exception as error:
        first_line = str(error).strip().partition("\n")[0]
        return unit, f"{type(error).__name__}: {first_line}"


@lru_cache(1)
def _end_with_the_parent(parent: int) -> None:
    """Watch the parent: a unit may take an hour, and nobody would get its records."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


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
                {**told, **found, "seed": trial.seed, "seconds": round(now - began, 3), **about()}
            )
            began = now
    return records


@lru_cache(1)
def about() -> Record:
    """Return the versions of what computes."""
    others = ("numpy", "scipy", "scikit-learn", "numba")
    found = (f"{name} {importlib.metadata.version(name)}" for name in others)
    return {"versions": " ".join((f"marginparts {__version__}", *found))}


_data = lru_cache(1)(load_data)


@lru_cache(1)
def _trial(name: str, preprocessing: str, split: int, data_dir: str | None, backend: str) -> Trial:
    return draw_trial(_data(name, data_dir), preprocessing, split, backend)
