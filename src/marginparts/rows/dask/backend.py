"""Blocks of rows on the workers of a Dask cluster: H stays with its data, V is sent around.

A backend whose H and S are names for what the workers keep. An iteration is two calls to them:

    update of V    each worker sums the numerators of its blocks (d, r), and their sums come back
                   as a tree
    update of H    V goes out, and ``T`` (2p, r); each block updates its rows, and what comes back
                   are the column sums of H (r,) and ``S.T @ H`` (2p, r), for the next update of V

It is one call where updates of V begin at the V that the workers have, as without extrapolation:
then the next numerators come back with an update of H.

Whatever is not about blocks (V, the margin components) is done here, by a local backend.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from types import EllipsisType
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast

import numpy as np
import scipy.sparse as sp

from marginparts._types import Array, Data, Matrix, Problem, State, Step
from marginparts.backends import Also, Backend, Plus
from marginparts.backends.base import gauged
from marginparts.losses.nmf_alpha import NMFAlphaProblem
from marginparts.rows.base import OutOfCore, RowsOnDemand
from marginparts.rows.dask._calls import Workers
from marginparts.rows.dask._lost_rows import Margin

T = TypeVar("T")


class SharedFactor:
    """V (d, r), here and on all workers; it is sent when they need it and it has changed."""

    def __init__(self, array: Array) -> None:
        self.array, self.shape, self.has_changed = array, array.shape, True

    def count_nonzero(self) -> int:
        """Count the entries that are not 0."""
        return int(np.count_nonzero(self.array))

    def __deepcopy__(self, memo: dict[int, object]) -> SharedFactor:
        return SharedFactor(deepcopy(self.array))

    def __setitem__(self, where: EllipsisType, other: SharedFactor) -> None:
        self.array[where] = other.array
        self.has_changed = True


@dataclass
class Told:
    """What the workers said of H in answer to other calls, so that they need not be asked."""

    rebuilt: int  # how often blocks had been computed again by then
    sums: Array | None = None  # of the columns (r,)
    margin_codes: Array | None = None  # S.T @ H (2p, r)
    numerators: tuple[SharedFactor, Array] | None = None  # a V, and those of its update (d, r)
    nonzeros: int | None = None


class RemoteFactor:
    """H (n, r), a name for blocks of rows on the workers, with what is known of it here."""

    def __init__(self, backend: DaskBackend, shape: tuple[int, int]) -> None:
        self.caller, self.backend, self.shape = backend.caller, backend, shape
        self.name = next(backend.names)
        self.caller.live.add(self.name)
        self.changed()

    def changed(self) -> None:
        """Forget what was told."""
        self._told = Told(self.caller.rebuilt)

    @property
    def told(self) -> Told:
        """What is known of it; nothing, if blocks were lost since."""
        if self._told.rebuilt != self.caller.rebuilt:
            self.changed()
        return self._told

    def ask(self, what: str) -> Any:
        """Return one of the attributes of `Told`; mostly it is known."""
        if getattr(self.told, what) is None:
            found = self.caller.call(what, self.name)
            setattr(self.told, what, found)
        return getattr(self.told, what)

    def count_nonzero(self) -> int:
        """Count the entries that are not 0."""
        return int(self.ask("nonzeros"))

    def __deepcopy__(self, memo: dict[int, object]) -> RemoteFactor:
        copied = RemoteFactor(self.backend, self.shape)
        copied[...] = self
        return copied

    def __setitem__(self, where: EllipsisType, other: RemoteFactor) -> None:
        self.caller.later("copy", other.name, self.name)
        self._told = replace(other.told)


class RemoteMatrix(NamedTuple):
    """The data on the workers, or its transpose; ``kind`` is a prepared matrix of its kind."""

    shape: tuple[int, int]
    kind: Matrix

    @property
    def T(self) -> RemoteMatrix:
        """The transpose."""
        return RemoteMatrix(self.shape[::-1], self.kind)


class RemoteCoefficients:
    """S (n, 2p): the workers have it by blocks."""

    def __init__(self, S: sp.csr_array, backend: DaskBackend, transposed: bool = False) -> None:
        self.S, self.backend, self.transposed = S, backend, transposed
        self.shape = S.shape[::-1] if transposed else S.shape

    @property
    def T(self) -> RemoteCoefficients:
        """The transpose, which gathers the rows of a factor."""
        return RemoteCoefficients(self.S, self.backend, not self.transposed)

    def __matmul__(self, B: Array | RemoteFactor) -> Any:
        """Return ``S.T @ H`` (2p, r), or the product of S with a vector."""
        if not isinstance(B, RemoteFactor):
            return self.S @ B
        self.backend.codes = B.ask("margin_codes")
        return self.backend.inner.factor(self.backend.codes)


class RowsLostError(RuntimeError):
    """Rows of H were lost in the middle of some work."""


class Unbroken:
    """A problem whose work is done with the same rows of H from beginning to end.

    The update of V and the loss ask the workers more than once. Where rows are lost in between and
    computed again, the first answers are about other rows than the last: the work is begun again.
    An update of H is a single call, so all that is known of the new H is about the same rows.
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


#: H is on the workers, V here and there, and what belongs to the margin components here alone.
Factor: TypeAlias = Array | SharedFactor | RemoteFactor


class DaskBackend(Backend):
    """A backend over the workers of a cluster, for ``sparse`` data or not.

    ``inner`` works on V and on the margin components, here; its factors may be wider than r.
    """

    name = "dask"

    def __init__(self, caller: Workers, inner: Backend, sparse: bool, r: int) -> None:
        self.caller, self.inner, self.sparse, self.r = caller, inner, sparse, r
        self.names = count()
        self.is_supervised = False
        self.sent: SharedFactor | None = None  # the V that the workers have
        self.codes: Array | None = None  # the last HS (2p, r) that is known
        self.unbroken_since = 0  # what the caller had rebuilt when the present work began
        # Whether V will be updated where it is. A guess from its last update; where it is wrong,
        # numerators were made in vain
        self.numerators_follow = False

    @property
    def recovered(self) -> int:
        """How often rows of H were lost and computed again."""
        return self.caller.rebuilt

    def adapted(self, problem: NMFAlphaProblem) -> Unbroken:
        """Return the problem with work that is begun again where rows of H are lost."""
        self.caller.margin = partial(self._margin, problem)
        return Unbroken(problem, self)

    def _margin(self, problem: NMFAlphaProblem) -> Margin | None:
        """Return lam, HS and T (eq. 16): by them lost rows are recovered with their margin."""
        if not problem.supervised or problem.XS is None or self.codes is None or self.sent is None:
            return None
        T = self.inner.ratio_matmul(problem.XS, self.inner.factor(self.codes), self.sent.array)
        return Margin(problem.lam, self.codes, self._plain(T))

    def check_unbroken(self) -> None:
        """Refuse to go on with numbers of which some are from before a loss of rows."""
        if self.caller.rebuilt != self.unbroken_since:
            raise RowsLostError("rows of H were lost and computed again")

    def prepare(self, X: Data | OutOfCore, like: Matrix | None = None) -> Any:
        """Take the data as it is on the workers; what is like it stays here."""
        if not isinstance(X, OutOfCore):
            return self.inner.prepare(X, like=cast(RemoteMatrix, like).kind)
        # a matrix without rows settles the kind of the margin components
        empty = np.empty((0, X.shape[1]), X.dtype)
        kind = self.inner.prepare(sp.csr_array(empty) if self.sparse else empty)
        return RemoteMatrix(X.shape, kind)

    def coefficients(self, S: Data, rows_of: Matrix | None = None) -> Any:
        """Send S to the workers."""
        if rows_of is None:
            return self.inner.coefficients(S)
        S = sp.csr_array(S)
        self.caller.share(S=S)
        self.is_supervised = True
        return RemoteCoefficients(S, self)

    def factor(self, A: Array | RowsOnDemand, rows_of: Matrix | None = None) -> Any:
        """Start H on the workers; V stays here and is sent when it is needed."""
        if rows_of is None:
            return SharedFactor(self.inner.factor(cast(Array, A)))
        if not isinstance(A, RowsOnDemand):
            A = np.asarray(A)
        self.caller.share(start=A)
        H = RemoteFactor(self, A.shape)
        self.caller.call("begin", H.name)
        self.caller.share(start=None)
        return H

    def release(self, A: Factor, r: int) -> Any:
        """Return V as an array, and H as a Dask array."""
        if not isinstance(A, RemoteFactor):
            return self.inner.release(_array(A), r)
        import dask.array as da

        dtype, sizes = self.caller.spec.dtype, np.diff([*self.caller.first_rows, A.shape[0]])
        blocks = zip(self.caller.released(A.name), sizes, strict=True)
        return da.concatenate([da.from_delayed(rows, (int(n), r), dtype) for rows, n in blocks])

    def column_sums(self, A: Factor) -> Any:
        """Return the sums over rows in float64."""
        if isinstance(A, RemoteFactor):
            like = np.zeros((1, self.r), self.caller.spec.dtype)  # how wide a row is depends on it
            sums = np.zeros(self.inner.factor(like).shape[1])
            sums[: self.r] = A.ask("sums")
            return sums
        return self.inner.column_sums(_array(A))

    def ahead(self, now: Factor, before: Factor, b: float, least: float) -> Any:
        """Write the point ahead over ``before``."""
        if isinstance(now, RemoteFactor) and isinstance(before, RemoteFactor):
            self.caller.later("ahead", now.name, before.name, b, least)
            before.changed()
            if self.is_supervised:  # its update asks for them, after the next call
                then = partial(setattr, before.told, "margin_codes")
                self.caller.later("margin_codes", before.name, then=then)
            return before
        return SharedFactor(self.inner.ahead(_array(now), _array(before), b, least))

    def ratio_matmul(self, X: Matrix, A: Factor, B: Factor) -> Any:
        """Return ``(X / (A @ B.T)) @ B`` for the margin components."""
        return self.inner.ratio_matmul(X, _array(A), _array(B))

    def divergence(self, X: Matrix, A: Factor, B: Factor) -> float:
        """Return the I-divergence (eq. 2), the sum of those of the blocks."""
        if not isinstance(A, RemoteFactor):
            return self.inner.divergence(X, _array(A), _array(B))
        self._send(cast(SharedFactor, B))
        divergence, nonzeros = self.caller.call("divergence", A.name)
        A.told.nonzeros = nonzeros  # whoever evaluates the loss asks for them next
        return float(divergence)

    def half_step(
        self, X: Matrix, A: Factor, B: Factor, den: Array, *, weight: Array | None = None,
        also: Also | None = None, plus: Plus | None = None, out: Factor | None = None,
        gauge: bool = False,
    ) -> Step:  # fmt: skip
        """Return the update of H on the workers, or that of V from what they say."""
        if isinstance(A, SharedFactor):
            V_out = cast("SharedFactor | None", out)
            return self._update_V(A, cast(RemoteFactor, B), den, also, V_out, gauge)
        A, B = cast(RemoteFactor, A), cast(SharedFactor, B)
        self._send(B)
        new = RemoteFactor(self, A.shape) if out is None else cast(RemoteFactor, out)
        lam, T = (0.0, None) if plus is None else (plus.weight, self._plain(plus.T))
        sums, codes, mass, worst, numerators = self.caller.call(
            "step", A.name, new.name, lam, T, gauge, self.numerators_follow
        )
        new.changed()
        new.told.sums, new.told.margin_codes = sums, codes
        self.codes = codes
        new.told.numerators = None if numerators is None else (B, numerators)
        return gauged(new, mass, worst) if gauge else Step(new)

    def _update_V(
        self, V: SharedFactor, H: RemoteFactor, den: Array, also: Also | None,
        out: SharedFactor | None, gauge: bool,
    ) -> Step:  # fmt: skip
        numerator = self.inner.factor(self._numerators(V, H))
        self.check_unbroken()  # the denominator was found before the numerators
        if also is not None:
            numerator += also.weight * self.inner.ratio_matmul(also.X, V.array, also.B)
        buffer = None if out is None else out.array
        step = self.inner.finish(V.array, numerator, den, buffer, gauge)
        return step._replace(factor=SharedFactor(step.factor))

    def _numerators(self, V: SharedFactor, H: RemoteFactor) -> Array:
        """Return the numerators of V (d, r), which may have come with the last update of H."""
        self.numerators_follow = self._is_sent(V)
        at, numerators = H.told.numerators or (None, None)
        if numerators is None or at is not V or V.has_changed:
            self._send(V)
            numerators = self.caller.call("numerators", H.name)
        return numerators

    def _send(self, V: SharedFactor) -> None:
        """Let the workers have V."""
        if not self._is_sent(V):
            self.caller.share(V=self._plain(V.array))
            self.sent, V.has_changed = V, False

    def _is_sent(self, V: SharedFactor) -> bool:
        return V is self.sent and not V.has_changed

    def _plain(self, A: Array) -> Array:
        """Return a factor without the columns that the kernels have added."""
        return np.ascontiguousarray(self.inner.release(A, self.r))


def _array(A: Factor) -> Array:
    """Return a factor that is here as the inner backend knows it."""
    return A.array if isinstance(A, SharedFactor) else cast(Array, A)
