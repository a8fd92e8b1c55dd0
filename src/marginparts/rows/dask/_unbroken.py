"""Updates on a cluster that are of one piece, even where rows of H are lost on the way."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from marginparts._types import Array, Problem, State, Step

if TYPE_CHECKING:
    from marginparts.rows.dask.backend import DaskBackend

T = TypeVar("T")


class RowsLostError(RuntimeError):
    """Rows of H were lost in the middle of some work."""


class Unbroken:
    """A problem whose work is done with the same rows of H from beginning to end.

    The update of V and the loss ask the workers more than once. Where rows are lost in between and
    computed again, the first answers are about other rows than the last: the work is begun again.
    An update of H is a single call, so all that is known of the new H is about the same rows.

    Parameters
    ----------
    problem : Problem
    backend : DaskBackend
    """

    def __init__(self, problem: Problem, backend: DaskBackend) -> None:
        self.problem, self.backend = problem, backend

    def __getattr__(self, name: str) -> Any:
        return getattr(self.problem, name)

    def update(
        self, state: State, block: str, out: Array | None = None, gauge: bool = False
    ) -> Step:
        """Return the update of the problem."""
        return self._unbroken(partial(self.problem.update, state, block, out=out, gauge=gauge))

    def loss(self, state: State) -> float:
        """Return the loss of the problem."""

        def loss() -> float:
            found = self.problem.loss(state)
            self.backend.check_unbroken()
            return found

        return self._unbroken(loss)

    def _unbroken(self, work: Callable[[], T]) -> T:
        while True:
            self.backend.unbroken_since = self.backend.caller.rebuilt
            with suppress(RowsLostError):
                return work()
