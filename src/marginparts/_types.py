"""The few values that travel between the layers.

A factorization is described by a *problem* (what is constant in a run), moved forward as a
*state* (the factors, by name) and returned as a `Result`. Why a run ended is a value too: a `Stop`
carries its own sentence, so that logs, warnings and reports all say the same thing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar, NamedTuple, Protocol, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.floating[Any]]

#: Trusted data in memory, as `validation.check_matrix` returns it: C-ordered, or canonical CSR.
Data: TypeAlias = Array | sp.csr_array

#: Samples, or labels, as people give them: array-likes, DataFrames, sparse matrices, tensors.
Samples: TypeAlias = ArrayLike | sp.sparray | sp.spmatrix
Targets: TypeAlias = ArrayLike | sp.sparray | sp.spmatrix

#: What scikit-learn takes as ``random_state``.
Seed: TypeAlias = int | np.random.RandomState | np.random.Generator | None

#: The name of a start, or one: (H, V).
Init: TypeAlias = str | tuple[Array, Array]

#: The factors of a run by their letter: ``{"V": (d, r), "H": (n, r)}`` and, for some models, more.
State = dict[str, Array]


class Factor(Protocol):
    """A factor as a backend keeps it: an array, a tensor on a GPU, blocks of rows elsewhere."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns; a backend may have added columns of zeros."""
        ...


class Matrix(Protocol):
    """Data made ready by a backend."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""
        ...

    @property
    def T(self) -> Any:
        """The transpose, cheap the second time."""
        ...


class Operator(Matrix, Protocol):
    """A prepared matrix that can be multiplied with a factor."""

    def __matmul__(self, B: Array, /) -> Any: ...


class Stop(Enum):
    """Why a run ended. ``str(stop)`` is a sentence for people.

    Examples
    --------
    >>> from marginparts import Stop
    >>> print(Stop.MAX_ITER)
    The largest number of iterations was reached.
    """

    CONVERGED = "The loss no longer falls by more than the tolerance."
    STATIONARY = "No entry of the factors can lower the loss by more than the tolerance."
    EXACT = "The data is reproduced exactly."
    MAX_ITER = "The largest number of iterations was reached."
    CALLBACK = "The callback asked to stop."
    INTERRUPTED = "The fit was interrupted."

    def __str__(self) -> str:
        return str(self.value)


class Check(NamedTuple):
    """One loss evaluation of a run: a row of `Result.history`.

    ``residual`` says how far the factors were from a stationary point when they were last updated:
    a number between 0 and 1 that does not depend on the data's scale (NaN at the start).
    ``nonzeros`` are those of each factor, by its letter.
    """

    iteration: int
    loss: float
    seconds: float
    residual: float
    nonzeros: dict[str, int]


class Progress(NamedTuple):
    """What a callback receives at each loss evaluation.

    While candidates are tried, ``stage`` is ``"choosing"``, ``iteration`` counts the trials done
    and ``max_iter`` those planned; the loss is that of the trial under way.

    Attributes
    ----------
    iteration, max_iter : int
        Iterations done, and how many there are at most.
    loss : float
    seconds : float
        Since the run began.
    residual : float
        How far the factors are from a stationary point, between 0 and 1.
    stage : str
        ``"parts"``, or ``"choosing"``.

    Examples
    --------
    >>> import numpy as np
    >>> from marginparts import nmf_alpha
    >>> def enough(progress):
    ...     return progress.iteration >= 3
    >>> nmf_alpha(np.eye(4) + 1, 2, callback=enough, random_state=0).stop.name
    'CALLBACK'
    """

    iteration: int
    max_iter: int
    loss: float
    seconds: float
    residual: float
    stage: str = "parts"


#: Called at each loss evaluation; a true answer ends the run.
Callback = Callable[[Progress], "bool | None"]


class Step(NamedTuple):
    """A new value of a factor, and how far from optimal the old one was.

    ``violation`` is a number between 0 and 1, the same for data in any units (``docs/math.md``,
    section 8), or None where it was not asked for. ``mass`` is what it is a share of: the
    violations of blocks of rows count by it.
    """

    factor: Any
    violation: float | None = None
    mass: float = 0.0


#: The weight of the margin components where none is given.
DEFAULT_LAM = 3.0


class PathStep(NamedTuple):
    """The parts (r, d) for one weight of the margin components."""

    lam: float
    components: Any


class Problem(ABC):
    """A loss with an update for each of its factors: all that the solver knows of a model."""

    #: The factors in the order in which one iteration updates them.
    blocks: ClassVar[tuple[str, ...]]

    @property
    def default_solver(self) -> str:
        """What ``solver="auto"`` stands for."""
        return "mue"

    @property
    def can_sweep(self) -> bool:
        """Whether there is a `sweep`."""
        return False

    @property
    def recovered(self) -> int:
        """How often a part of a factor was lost and computed again; most lose nothing."""
        return 0

    @abstractmethod
    def update(
        self, state: State, block: str, out: Array | None = None, gauge: bool = False
    ) -> Step:
        """Return a new value of one factor that does not increase the loss.

        It may be written to ``out``, which may be the factor itself; ``gauge`` asks for the
        violation.
        """

    def sweep(
        self, state: State, block: str, out: Array | None = None, gauge: bool = False,
        bold: bool = False,
    ) -> Step:  # fmt: skip
        """`update` by coordinate descent; a ``bold`` one may do what could raise the loss."""
        raise NotImplementedError(f"{type(self).__name__} has no coordinate descent")

    def ahead(self, block: str, now: Array, before: Array, b: float, least: float) -> Array:
        """Return ``max(now + b * (now - before), least * now)``, maybe written over ``before``."""
        raise NotImplementedError(f"{type(self).__name__} takes plain steps only")

    def loss(self, state: State) -> float:
        """Return the loss at a state."""
        raise NotImplementedError(f"{type(self).__name__} is for runs that are not watched")


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
        The loss at the start and at each evaluation after it; it never rises, unless a cluster lost
        a worker. It is evaluated after every iteration for small problems, after every fifth or
        tenth for large ones: `history` has the iterations.
    n_iter : int
        Iterations done.
    stop : Stop
        Why the run ended; ``str(result.stop)`` is a sentence.
    solver : str
        How the iterations were done; what ``"auto"`` chose.
    history : list of Check
        Iteration, loss, seconds, residual and nonzeros of V and H at each evaluation of the loss.
    XS : (2p, d) array or CSR array, or None without S
        The margin components ``S.T @ X``.
    beside : Result or None
        The factorization of columns that have either sign, where there are such beside others.

    Examples
    --------
    >>> import numpy as np
    >>> from marginparts import nmf_alpha
    >>> result = nmf_alpha(np.eye(6) + 1, 2, max_iter=5, random_state=0)
    >>> result.H.shape, result.V.shape, result.n_iter
    ((6, 2), (6, 2), 5)
    """

    V: Array
    H: Array
    losses: list[float]
    n_iter: int
    stop: Stop
    solver: str = "mu"
    history: list[Check] = field(default_factory=list, repr=False)
    XS: Any = field(default=None, repr=False)
    beside: Result | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        return (
            f"Result({self.V.shape[1]} parts, loss {self.losses[-1]:.6g} "
            f"after {self.n_iter} iterations: {self.stop})"
        )
