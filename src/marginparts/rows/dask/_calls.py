"""Calling the workers of a fit, and going on without those that die.

Blocks are shared out by the work that they are: their nonzeros plus their rows. Each call sends one
task to each worker and adds up what they say as a tree; a task is bound to its worker, so that
Dask moves nothing by itself. When a worker is gone its blocks go to the others, which compute
them again; when one joins it is given some.
"""

from __future__ import annotations

import logging
import time
import uuid
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import reduce
from itertools import count
from typing import TYPE_CHECKING, Any

from marginparts.rows.dask import _shard
from marginparts.rows.dask._lost_rows import Known, Margin
from marginparts.rows.dask._shard import LackingBlocksError, News, Order, Share, Shared, Spec

if TYPE_CHECKING:
    from distributed import Client, Future

logger = logging.getLogger("marginparts")

#: Seconds between checks of who is there, while a call is waited for and otherwise.
_WAITING, _ADMITTING = 0.5, 2.0

#: Seconds in which a client learns that its scheduler is gone.
_LEARNING = 5.0

#: How often the same blocks may be lost in one call.
_TRIES = 20

#: The share of a worker's work that a move must save it, for blocks are large.
_WORTH_A_MOVE = 0.05


class ClusterError(RuntimeError):
    """The cluster is gone, or has no workers."""


class Workers:
    """The workers of one fit, and who has which of the trusted blocks of rows.

    ``first_rows`` has the first row of each block, and ``work`` how much an update of it is: its
    nonzeros and its rows.
    """

    def __init__(
        self, client: Client, blocks: Sequence[Future], first_rows: Sequence[int],
        work: Sequence[int], spec: Spec,
    ) -> None:  # fmt: skip
        self.client, self.blocks, self.first_rows = client, blocks, [int(i) for i in first_rows]
        self.work = [int(amount) for amount in work]
        self.spec = spec._replace(fit=uuid.uuid4().hex)
        self.shared: Shared = {}
        self.seen: dict[str, dict[str, int]] = {}
        self.versions = count()
        self.clock = self.updates = 0
        self.rebuilt = 0  # how often blocks were lost
        #: Returns what is known of the margin components, when blocks are lost; or None.
        self.margin: Callable[[], Margin | None] = lambda: None
        self.live: set[int] = set()
        self.queue: list[tuple[tuple[Any, ...], Callable[[Any], None] | None]] = []
        self.owner: dict[int, str] = {}
        self.results: list[Any] = []
        self._checked_at = 0.0
        self._place()

    def share(self, **values: Any) -> None:
        """Send something to all workers, once; None takes it back."""
        for name, value in values.items():
            self.shared.pop(name, None)
            if value is not None:
                # as the result of a task it can be made again, wherever it was lost
                self.shared[name] = News(next(self.versions), self._submitted(_shard.keep, value))

    def later(self, *step: Any, then: Callable[[Any], None] | None = None) -> None:
        """Do something together with the next call, and tell ``then`` what it came to."""
        self.queue.append((step, then))

    def call(self, *step: Any) -> Any:
        """Call a function on all blocks, and return the sum of the results."""
        self._admit_workers()
        steps = *(before for before, _ in self.queue), step
        order = Order(self.clock, tuple(sorted(self.live)), steps)
        numbers = _grouped(range(len(self.blocks)), self.owner)
        tasks = {self._submit(worker, some, order): some for worker, some in numbers}
        for _ in range(_TRIES):
            last = self._tree(list(tasks))
            lost = self._wait(last, tasks)
            if not lost:
                self.clock += 1
                self.updates += step[0] == "step"
                for some in tasks.values():
                    self._note_seen(self.owner[some[0]])
                *earlier, last_said = reduce(_shard.added, self.results)
                for (_, then), said in zip(self.queue, earlier, strict=True):
                    if then is not None:
                        then(said)
                self.queue.clear()
                return last_said
            tasks = self._resubmitted(tasks, lost, order)
        raise ClusterError("Workers of the cluster died over and over; the fit was given up.")

    def _submit(self, worker: str, numbers: Sequence[int], order: Order) -> Future:
        return self._bound(worker, _shard.call, self._some(numbers), self._news(worker), order)

    def _bound(self, worker: str, function: Callable[..., Any], *args: Any) -> Future:
        """Submit a task to one worker, and to no other."""
        return self._submitted(function, self.spec, *args, workers=[worker])

    def _submitted(self, function: Callable[..., Any], *args: Any, **where: list[str]) -> Future:
        with warnings.catch_warnings():
            # V is as large as it is
            warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
            key = f"marginparts-{uuid.uuid4().hex}"
            return self.client.submit(function, *args, pure=False, key=key, **where)

    def _some(self, numbers: Sequence[int]) -> Share:
        return Share(
            list(numbers), [self.first_rows[i] for i in numbers], [self.blocks[i] for i in numbers]
        )

    def _news(self, worker: str) -> Shared:
        """Return what a worker should have; only the version of what it has already."""
        seen = self.seen.get(worker, {})
        return {
            name: news._replace(value=None) if seen.get(name) == news.version else news
            for name, news in self.shared.items()
        }

    def _note_seen(self, worker: str) -> None:
        self.seen[worker] = {name: news.version for name, news in self.shared.items()}

    def _tree(self, tasks: list[Future]) -> list[Future]:
        """Add up in pairs until there are two results: nobody receives more than that."""
        while len(tasks) > 2:
            pairs = zip(tasks[::2], tasks[1::2], strict=False)
            odd = tasks[len(tasks) - len(tasks) % 2 :]
            tasks = [self.client.submit(_shard.added, a, b, pure=False) for a, b in pairs] + odd
        return tasks

    def _wait(self, last: list[Future], tasks: dict[Future, list[int]]) -> list[Future]:
        """Wait for the last sums; return the tasks that were lost on the way."""
        from distributed import wait

        patience = 2.0
        while True:
            try:
                wait(last, timeout=_WAITING)
            except TimeoutError:
                pass
            except Exception as error:
                self._check_scheduler(error)
                raise
            said = {future.status for future in last}
            if said == {"finished"}:
                # a result may be lost with its worker even now; or it is large, and takes longer
                with suppress(TimeoutError):
                    self.results = [future.result(timeout=patience) for future in last]
                    return []
                patience *= 2
            here = self._present()
            lost = [
                task for task, numbers in tasks.items()
                if self.owner[numbers[0]] not in here or task.status in ("lost", "cancelled")
                or _lacks_blocks(task)
            ]  # fmt: skip
            if lost:
                return lost
            if "error" in said:
                failed = next(f for f in (*tasks, *last) if f.status == "error")
                failed.result()  # raises what went wrong
            if said & {"lost", "cancelled"}:  # a sum, while what it is of is still there
                last[:] = self._tree(list(tasks))

    def _resubmitted(
        self, tasks: dict[Future, list[int]], lost: list[Future], order: Order
    ) -> dict[Future, list[int]]:
        """Let other workers do what was lost; what is done stays done."""
        orphans = [number for task in lost for number in tasks[task]]
        self.rebuilt += 1
        logger.warning(
            "%d blocks of rows were lost with their worker and are computed again", len(orphans)
        )
        for number in orphans:
            self.seen.pop(self.owner[number], None)
        self.client.cancel(lost)
        known = Known(self.updates, self.margin())
        kept = {task: numbers for task, numbers in tasks.items() if task not in lost}
        self._place(orphans)
        for worker, numbers in _grouped(orphans, self.owner):
            kept[self._submit(worker, numbers, order._replace(known=known))] = numbers
        return kept

    def _present(self) -> dict[str, int]:
        """Return the workers that are there, with their threads."""
        try:
            found: dict[str, int] = self.client.nthreads()
        except Exception as error:
            self._check_scheduler(error)
            raise
        self._checked_at = time.monotonic()
        return found

    def _check_scheduler(self, error: BaseException) -> None:
        check_scheduler(self.client, error)

    def _place(self, orphans: Sequence[int] | None = None) -> None:
        """Give blocks to workers: those that have the data already, then those with least work."""
        present = self._present()
        began = time.monotonic()
        while not present:
            if time.monotonic() - began > 60:
                raise ClusterError("The Dask cluster has no workers; start some.")
            time.sleep(_WAITING)
            present = self._present()
        if orphans is None:
            holders = self.client.who_has(list(self.blocks))
            for i, future in enumerate(self.blocks):
                held = [worker for worker in holders.get(future.key, ()) if worker in present]
                if held:
                    self.owner[i] = min(held, key=self._load)
            orphans = [i for i in range(len(self.blocks)) if i not in self.owner]
        for i in orphans:
            self.owner.pop(i, None)
        for i in sorted(orphans, key=self.work.__getitem__, reverse=True):
            self.owner[i] = min(present, key=self._load)
        if not self.clock:
            self._even_out(present)

    def _load(self, worker: str) -> int:
        return sum(self.work[i] for i, owner in self.owner.items() if owner == worker)

    def _admit_workers(self) -> None:
        """Let workers that joined take part."""
        if time.monotonic() - self._checked_at < _ADMITTING:
            return
        present = self._present()
        if any(owner not in present for owner in self.owner.values()):
            return  # the call will find out which blocks are lost
        for number, old in self._even_out(present):
            new = self.owner[number]
            logger.info("block %d moves to worker %s", number, new)
            given = self._bound(old, _shard.give, number)
            taken = self._bound(new, _shard.take, self._some([number]), self._news(new), given)
            arrived = self._is_done(taken, old, new)
            if arrived:
                self._note_seen(new)
            if not arrived or not taken.result():
                logger.info("block %d did not arrive", number)  # the next call finds it lacking

    def _even_out(self, present: Iterable[str]) -> list[tuple[int, str]]:
        """Move blocks from workers with most work to those with least.

        Returns what moved, from where. A move lowers the larger of two loads and raises the smaller
        one, so this comes to an end.
        """
        moved: list[tuple[int, str]] = []
        while True:
            most, least = max(present, key=self._load), min(present, key=self._load)
            gap = self._load(most) - self._load(least)
            saved = {
                i: min(self.work[i], gap - self.work[i])
                for i, owner in self.owner.items() if owner == most
            }  # fmt: skip
            best = max(saved, key=saved.__getitem__, default=None)
            if best is None or saved[best] <= _WORTH_A_MOVE * self._load(most):
                return moved
            self.owner[best] = least
            moved.append((best, most))

    def released(self, name: int) -> list[Future]:
        """Return the rows of a factor as futures that are done."""
        found: dict[int, Any] = {}
        for _ in range(_TRIES):
            # whatever was put off, and blocks that are lost, come first
            self.call("nonzeros", name)
            for i in range(len(self.blocks)):
                if i not in found:
                    found[i] = self._bound(self.owner[i], _shard.released, i, name)
            found = {i: f for i, f in found.items() if self._is_done(f, self.owner[i])}
            if len(found) == len(self.blocks):
                return [found[i] for i in sorted(found)]
        raise ClusterError("Workers of the cluster died over and over; the fit was given up.")

    def _is_done(self, future: Future, *workers: str) -> bool:
        """Wait for a task that needs some workers; say whether it came to something."""
        from distributed import wait

        while future.status == "pending" and self._present().keys() >= set(workers):
            try:
                wait([future], timeout=_WAITING)
            except TimeoutError:
                continue
        return bool(future.status == "finished")

    def close(self) -> None:
        """Let the workers forget the fit."""
        self.shared.clear()
        if self.client.status == "running":
            with suppress(OSError):  # the scheduler goes away just now
                self.client.run(_shard.forget, self.spec.fit, on_error="ignore")


def check_scheduler(client: Any, error: BaseException) -> None:
    """Say so if an error is one because the scheduler is gone."""
    # a connection that broke may be seen before the client knows about it
    until = time.monotonic() + (_LEARNING if isinstance(error, OSError) else 0.0)
    while client.status == "running" and time.monotonic() < until:
        time.sleep(0.05)
    if client.status != "running" and not isinstance(error, ClusterError):
        raise ClusterError(
            "The Dask scheduler is gone, and the fit with it; the same call goes on from the "
            "checkpoint, if there is one."
        ) from error


def _grouped(numbers: Iterable[int], owner: dict[int, str]) -> list[tuple[str, list[int]]]:
    """Return the blocks of each worker."""
    groups: dict[str, list[int]] = {}
    for number in numbers:
        groups.setdefault(owner[number], []).append(number)
    return sorted(groups.items())


def _lacks_blocks(task: Future) -> bool:
    """Say whether a worker that is there does not have what it was called for."""
    return task.status == "error" and isinstance(task.exception(), LackingBlocksError)
