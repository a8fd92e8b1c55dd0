"""What a worker keeps of a fit: its blocks of rows, with their rows of S and H.

A call comes with the number of calls before it, the *clock*. A block that has seen another number
(its worker died, it was taken elsewhere, a call was repeated) is never used: the worker says that
it lacks blocks, and the client calls again with what it takes to find their rows of H. So no block
is updated twice, or from old numbers, and the client knows of every row that was lost.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np

from marginparts._types import Array, Data
from marginparts.backends import Backend, get_backend
from marginparts.backends.base import inverse_or_zero
from marginparts.rows.dask._lost_rows import Known, LostRows, margin_term, recovered

#: What workers keep, by the worker's address and the fit.
_shards: dict[tuple[str, str], Shard] = {}

#: Threads of a process take turns: the kernels use all of its cores themselves.
_turn = threading.RLock()


class LackingBlocksError(RuntimeError):
    """A worker was called for blocks that it does not have, or not as they should be."""


class Spec(NamedTuple):
    """What is constant in a fit."""

    fit: str
    backend: str
    work: int
    r: int
    dtype: np.dtype[Any]
    scale: float


class Share(NamedTuple):
    """The blocks that one call is about."""

    numbers: Sequence[int]
    first_rows: Sequence[int]
    data: Sequence[Data]


class News(NamedTuple):
    """Something that all workers should have, by its version; None for a value they have."""

    version: int
    value: Any


#: The clock and the factors of a block that moves to another worker.
Given = tuple[int, dict[int, Array]]

#: V (d, r), S (n, 2p) and the rows of H to start from, each by its letter or name.
Shared = dict[str, News]


class Order(NamedTuple):
    """What is to be done."""

    clock: int  # the number of orders before it
    live: tuple[int, ...]  # the factors that a block must have
    steps: tuple[tuple[Any, ...], ...]  # methods of `Block` with their arguments
    known: Known | None = None  # what it takes to compute blocks again that were lost


class Block:
    """Some rows of the data, and of every factor that goes with them."""

    def __init__(self, shard: Shard, X: Data, S: Data | None, rows: slice, clock: int) -> None:
        spec, inner = shard.spec, shard.inner
        X = X if spec.scale == 1 else X * X.dtype.type(spec.scale)
        self.shard, self.inner, self.rows, self.clock = shard, inner, rows, clock
        self.part = inner.prepare(X)
        self.S: Any = None if S is None else inner.coefficients(S)
        self.factors: dict[int, Any] = {}

    def rebuild(self, live: Sequence[int], known: Known) -> None:
        """Find H again, about as close to its best value for the V at hand as it was."""
        V, r = self.shard.V, self.shard.spec.r
        flat = inverse_or_zero(self.shard.sums(V), self.shard.spec.dtype)
        rows = LostRows(self.inner, self.part, self.S, r, known.margin)
        H = recovered(rows, V, flat, known.updates)
        self.factors = {name: deepcopy(H) for name in live}

    def begin(self, name: int) -> None:
        """Take the rows of H to start from."""
        rows = np.asarray(self.shard.shared("start")[self.rows], self.shard.spec.dtype)
        self.factors[name] = self.inner.factor(rows)

    def copy(self, name: int, to: int) -> None:
        """Copy a factor."""
        self.factors[to] = deepcopy(self.factors[name])

    def ahead(self, now: int, before: int, b: float, least: float) -> None:
        """Write the point ahead over the value before."""
        factors = self.factors
        factors[before] = self.inner.ahead(factors[now], factors[before], b, least)

    def sums(self, name: int) -> Array:
        """Return the column sums (r,) of H."""
        return self.shard.sums(self.factors[name])

    def margin_codes(self, name: int) -> Array | None:
        """Return ``S.T @ H`` (2p, r)."""
        if self.S is None:
            return None
        found = self.inner.release(self.S.T @ self.factors[name], self.shard.spec.r)
        return found.astype(np.float64)

    def step(
        self, name: int, to: int, lam: float, T: Array | None, gauge: bool, numerators: bool
    ) -> tuple[Any, ...]:
        """Update H (eqs. 4 and 16); return its sums, its mass and its violation.

        The last thing returned are the numerators of V with the new H, if they are wanted.
        """
        inner, V = self.inner, self.shard.V
        options: dict[str, Any] = {}
        if T is not None:
            options = margin_term(inner, self.S, lam, T)
        H = self.factors[name]
        done = inner.half_step(
            self.part, H, V, inner.column_sums(V), out=H if name == to else None, gauge=gauge,
            **options,
        )  # fmt: skip
        self.factors[to] = done.factor
        following = self.numerators(to) if numerators else None
        worst = done.mass * (done.violation or 0.0)
        return self.sums(to), self.margin_codes(to), done.mass, worst, following

    def numerators(self, name: int) -> Array:
        """Return these rows' share in the numerator of V (d, r)."""
        found = self.inner.ratio_matmul(self.part.T, self.shard.V, self.factors[name])
        return self.inner.release(found, self.shard.spec.r)

    def divergence(self, name: int) -> tuple[float, int]:
        """Return the I-divergence of these rows, and how many entries of H are not 0."""
        divergence = self.inner.divergence(self.part, self.factors[name], self.shard.V)
        return divergence, self.nonzeros(name)

    def nonzeros(self, name: int) -> int:
        """Count the entries of H that are not 0."""
        return int(np.count_nonzero(self.released(name)))

    def released(self, name: int) -> Array:
        """Return H (n, r)."""
        return self.inner.release(self.factors[name], self.shard.spec.r)


class Shard:
    """The blocks of one worker."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.inner: Backend = get_backend(spec.backend, spec.work)
        self.blocks: dict[int, Block] = {}
        self.V: Any = None
        self.had: Shared = {}

    def see(self, shared: Shared) -> None:
        """Take note of what is new: V comes after each of its updates."""
        for name, news in shared.items():
            if news.value is None:
                assert self.had[name].version == news.version, "the client knows what is here"
                continue
            self.had[name] = news
            if name == "V":
                self.V = self.inner.factor(news.value)
        self.had = {name: self.had[name] for name in shared}

    def sums(self, A: Array) -> Array:
        """Return the column sums (r,) of a factor, as an array of NumPy."""
        sums: Array = self.inner.column_sums(A)
        return self.inner.release(sums[None], self.spec.r)[0]

    def shared(self, name: str) -> Any:
        """Return something that all workers have, or None."""
        return self.had[name].value if name in self.had else None

    def block(self, number: int, first: int, X: Data, order: Order) -> Block:
        """Return a block as it should be now."""
        if self.has(number, order):
            return self.blocks[number]
        rows = slice(first, first + X.shape[0])
        S = self.shared("S")
        S = None if S is None else S[rows]
        self.blocks[number] = block = Block(self, X, S, rows, order.clock)
        if self._was_begun(order) and order.known is not None:
            block.rebuild(order.live, order.known)
        return block

    def has(self, number: int, order: Order) -> bool:
        """Say whether a block is here and has seen all orders before this one."""
        return number in self.blocks and self.blocks[number].clock == order.clock

    def check(self, numbers: Sequence[int], order: Order) -> None:
        """Refuse an order for blocks that are lacking, unless it says how to compute them again."""
        lacking = [number for number in numbers if not self.has(number, order)]
        if lacking and self._was_begun(order) and order.known is None:
            raise LackingBlocksError(f"blocks {lacking} are not here")

    def _was_begun(self, order: Order) -> bool:
        """Say whether blocks have rows of H already; the first order of all begins them."""
        return bool(order.live) and self.V is not None


def call(spec: Spec, share: Share, shared: Shared, order: Order) -> list[Any]:
    """Do what is ordered with some blocks, and return the sums of what each of them says."""
    with _here(spec) as shard:
        shard.see(shared)
        shard.check(share.numbers, order)
        totals: Any = None
        for number, first, X in zip(*share, strict=True):
            block = shard.block(number, first, X, order)
            said = [getattr(block, name)(*args) for name, *args in order.steps]
            totals = said if totals is None else added(totals, said)
            block.clock = order.clock + 1
        return _for_the_wire(totals, spec.dtype)


def keep(value: Any) -> Any:
    """Return a value, for other workers to fetch."""
    return value


def give(spec: Spec, number: int) -> Given | None:
    """Hand over the factors of a block that moves to another worker."""
    with _here(spec) as shard:
        block = shard.blocks.pop(number, None)
        if block is None:
            return None
        return block.clock, {name: block.released(name) for name in block.factors}


def take(spec: Spec, share: Share, shared: Shared, given: Given | None) -> bool:
    """Take over a block; if nothing was given it will be made from the data and V."""
    with _here(spec) as shard:
        shard.see(shared)
        if given is None:
            return False
        clock, factors = given
        for number, first, X in zip(*share, strict=True):
            block = shard.block(number, first, X, Order(clock, (), ()))
            block.factors = {name: shard.inner.factor(H) for name, H in factors.items()}
        return True


def released(spec: Spec, number: int, name: int) -> Array:
    """Return the rows of a factor that belong to a block."""
    with _here(spec) as shard:
        return shard.blocks[number].released(name)


def forget(fit: str) -> None:
    """Let go of everything that belongs to a fit."""
    with _turn:
        for key in [key for key in _shards if key[1] == fit]:
            del _shards[key]


def added(a: Any, b: Any) -> Any:
    """Add what blocks say, entry by entry."""
    if isinstance(a, list | tuple):
        return type(a)(added(x, y) for x, y in zip(a, b, strict=True))
    return a if a is None else a + b


def _for_the_wire(said: Any, dtype: np.dtype[Any]) -> Any:
    """Send matrices in the type of the data; sums over rows stay in float64."""
    if isinstance(said, list | tuple):
        return type(said)(_for_the_wire(one, dtype) for one in said)
    is_matrix = isinstance(said, np.ndarray) and said.ndim == 2
    return said.astype(dtype, copy=False) if is_matrix else said


@contextmanager
def _here(spec: Spec) -> Any:
    """Give this worker's shard to one thread at a time, with as many cores as the worker has."""
    from distributed import get_worker

    from marginparts._compiled import cores

    worker = get_worker()
    with _turn, cores(worker.state.nthreads):
        key = worker.address, spec.fit
        if key not in _shards:
            _shards[key] = Shard(spec)
        yield _shards[key]
