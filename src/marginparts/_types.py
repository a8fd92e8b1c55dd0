"""The few values that travel between the layers.

A factorization is described by a *problem* (what is constant in a run), moved forward as a
*state* (the factors, by name) and returned as a `Result`. Why a run ended is a value too: a `Stop`
carries its own sentence, so that logs, warnings and reports all say the same thing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]

#: The factors of a run by their letter: ``{"V": (d, r), "H": (n, r)}`` and, for some models, more.
State = dict[str, Array]


class Stop(Enum):
    """Why a run ended. ``str(stop)`` is a sentence for people."""

    CONVERGED = "The loss no longer falls by more than the tolerance."
    EXACT = "The data is reproduced exactly."
    MAX_ITER = "The largest number of iterations was reached."
    CALLBACK = "The callback asked to stop."

    def __str__(self) -> str:
        return str(self.value)


class Check(NamedTuple):
    """One look at the loss during a run: a row of `Result.history`."""

    iteration: int
    loss: float
    seconds: float


class Progress(NamedTuple):
    """What a callback is told at each look at the loss."""

    iteration: int
    max_iter: int
    loss: float
    seconds: float


#: Called at each look at the loss; a true answer ends the run.
Callback = Callable[[Progress], "bool | None"]


class Problem(Protocol):
    """A loss with an update for each of its factors: all that the solver knows of a model."""

    #: The factors in the order in which one iteration updates them.
    blocks: ClassVar[tuple[str, ...]]

    def update(self, state: State, block: str) -> Array:
        """Return a new value of one factor that does not increase the loss."""
        ...

    def loss(self, state: State) -> float:
        """Return the loss at a state."""
        ...


@dataclass(frozen=True)
class Result:
    """A finished factorization ``X ~ H @ V.T``.

    Attributes
    ----------
    V : (d, r)
        Basis vectors, one a column.
    H : (n, r)
        Coefficients, one row a sample.
    losses : list of float
        The loss at the start and at each look after it; it never rises. Small problems are looked
        at after every iteration, large ones after every tenth: `history` has the iterations.
    n_iter : int
        Iterations done.
    stop : Stop
        Why the run ended; ``str(result.stop)`` is a sentence.
    history : list of Check
        Iteration, loss and seconds of each look.
    """

    V: Array
    H: Array
    losses: list[float]
    n_iter: int
    stop: Stop
    history: list[Check] = field(default_factory=list, repr=False)

    def __repr__(self) -> str:
        return (
            f"Result({self.V.shape[1]} parts, loss {self.losses[-1]:.6g} "
            f"after {self.n_iter} iterations: {self.stop})"
        )
