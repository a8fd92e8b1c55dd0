"""NMF-alpha: the I-divergence of the data plus that of its margin components (eqs. 2-4, 14-16).

    loss = D(X, H V') + lam * D(XS, HS V')        with XS = S' X and HS = S' H

The rows of XS are the nonnegative components w+ and w- of the hyperplanes, and since
``lam * D(a, b) = D(lam * a, lam * b)`` they act as 2p more samples of weight lam. With ``lam = 0``
or without S this is plain NMF. Letters and shapes: ``docs/notation.md``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp

from marginparts._types import Array, Matrix, Operator, Problem, State, Step
from marginparts.backends import Also, Backend, Plus, Shared
from marginparts.backends.base import full_denominator


class Penalty(NamedTuple):
    """``l1 * sum_ik A_ik + sum_i l2_i / 2 * sum_k A_ik**2``; l2 is a number, or (n,) numbers."""

    l1: float = 0.0
    l2: Any = 0.0

    @property
    def is_square(self) -> bool:
        """Whether it has a second term."""
        return bool(np.any(self.l2))

    @property
    def is_none(self) -> bool:
        """Whether nothing is penalized."""
        return self.l1 == 0 and not self.is_square

    def scaled(self, size: float, loss: float) -> Penalty:
        """Return the same for a factor divided by ``size`` and a loss divided by ``loss``."""
        return Penalty(self.l1 * size / loss, self.l2 * size / loss * size)


class Prior(NamedTuple):
    """Samples that one part each explains: the rows of A' with the codes ``diag(B)``."""

    A: Array  # (d, r)
    B: Array  # (r,)


class Apart(NamedTuple):
    """The charge of ``exclusivity``: for features that parts share, with their sums near one.

    It is ``sum_j rows_j * sum_{k<l} V_jk V_jl``, and ``D(mass, scale * s)`` for each column sum s:
    parts could evade the charge by being small.
    """

    rows: Array  # (d,)
    mass: float
    scale: float

    def asked_with(self, penalty: Penalty, sums: Array) -> Shared:
        """Return what the step of a V with these column sums is asked, its penalty included."""
        return Shared(self.rows, self.mass, sums, self.scale + penalty.l1, penalty.l2)

    def charge(self, backend: Backend, V: Array) -> float:
        """Return what this adds to the loss."""
        fits = self.scale * backend.column_sums(V)
        fits = fits[fits > 0]
        held = np.sum(fits - self.mass * (1 + np.log(fits / self.mass)))
        return backend.overlap(V, self.rows) + float(held)


class Steering(NamedTuple):
    """What is asked of a run: penalties, columns of V that stay, gaps, a prior, parts apart.

    With ``masked`` zeros of V stay zeros. Sweeps bring zeros back, so there are none then.
    """

    H: Penalty = Penalty()
    V: Penalty = Penalty()
    fixed: int = 0
    masked: bool = False
    gaps: Any = None  # of `solve.gaps`
    prior: Prior | None = None
    apart: Apart | None = None

    def charge(self, backend: Backend, H: Array, V: Array) -> float:
        """Return what the penalties and the prior add to the loss."""
        loss = 0.0
        if self.prior is not None:
            parts = backend.release(V, len(self.prior.B))
            loss += backend.entry_divergence(self.prior.A, parts, self.prior.B)
        if self.apart is not None:
            loss += self.apart.charge(backend, V)
        for factor, penalty in ((V, self.V), (H, self.H)):
            if penalty.l1:
                loss += penalty.l1 * float(backend.column_sums(factor).sum())
            if penalty.is_square:
                loss += backend.half_squares(factor, penalty.l2)
        return loss

    def scaled(self, h: float, v: float, loss: float) -> Steering:
        """Return the same for factors divided by h and v, and a loss divided by ``loss``."""
        prior, apart = self.prior, self.apart
        if prior is not None:
            prior = Prior(prior.A / loss, prior.B * (v / loss))
        if apart is not None:
            apart = Apart(apart.rows * (v**2 / loss), apart.mass / loss, apart.scale * (v / loss))
        H, V = self.H.scaled(h, loss), self.V.scaled(v, loss)
        return self._replace(H=H, V=V, prior=prior, apart=apart)

    @property
    def is_straight(self) -> bool:
        """Whether nothing is asked."""
        free = self.prior is None and self.apart is None and self.gaps is None
        free = free and not self.fixed and not self.masked
        return free and self.H.is_none and self.V.is_none

    def needs_shrinking(self, supervised: bool) -> bool:
        """Whether denominators alone cannot carry the penalties."""
        square = self.H.is_square or self.V.is_square or self.apart is not None
        return square or (supervised and self.H.l1 > 0)


#: Nothing is asked of the factors.
STRAIGHT = Steering()

#: The share of its row's mass to which an entry of H is lifted from next to nothing.
_LIFT = 1e-6


class Pull(NamedTuple):
    """A prior as the updates want it."""

    A: Any  # (d, r), a factor
    B: Any  # (r,), like column sums
    rows: Operator  # the identity (d, d)

    @classmethod
    def of(cls, prior: Prior, backend: Backend, dtype: Any) -> Pull:
        """Make a prior ready."""
        A, B = (backend.factor(np.ascontiguousarray(each, dtype)) for each in
                (prior.A, prior.B[None]))  # fmt: skip
        identity = sp.eye_array(len(prior.A), dtype=dtype, format="csr")
        return cls(A, backend.column_sums(B), backend.coefficients(identity))


@dataclass
class NMFAlphaProblem(Problem):
    """What is constant in a run of NMF-alpha.

    S are nonnegative dual coefficients, a zero row for every unlabeled sample, or what
    `Backend.coefficients` makes of them; XS are the margin components as further samples.
    """

    backend: Backend
    X: Matrix  # (n, d), prepared
    S: Operator | None = None  # (n, 2p), sparse
    XS: Matrix | None = None  # (2p, d), S.T @ X, prepared
    lam: float = 0.0
    sweeps: int = 1  # how often a `sweep` goes over each row
    settled: float = 0.0  # when it may stop early
    steering: Steering = STRAIGHT
    kept: Any = None  # (d, k), the columns of V that are fixed
    pull: Pull | None = None  # the prior of V, prepared
    _row_weights: dict[float, Array] = field(default_factory=dict, repr=False)
    _ahead: tuple[Any, Any] = field(default=(None, None), repr=False)  # a point, its column sums

    blocks: ClassVar[tuple[str, ...]] = ("V", "H")

    @property
    def supervised(self) -> bool:
        """Whether the margin components have any weight."""
        return self.S is not None and self.lam > 0

    @cached_property
    def s(self) -> Array:
        """Row sums of S (n,)."""
        assert self.S is not None
        return self.S @ np.ones(self.S.shape[1])

    @property
    def row_weight(self) -> Array:
        """``1 + lam * s`` (n,): the row part of eq. 16's denominator, made once for each lam."""
        if self.lam not in self._row_weights:
            self._row_weights[self.lam] = 1 + self.lam * self.s
        return self._row_weights[self.lam]

    @property
    def default_solver(self) -> str:
        """``"cd"`` for plain NMF, ``"mue"`` with margin components.

        Sweeps lower either loss faster. But parts that follow the margin components so closely
        are sparser and make no better features on the whole: on six collections between 1 point
        of accuracy more and 4 less (``docs/math.md``, section 7).
        """
        return "mue" if self.supervised else "cd"

    @property
    def recovered(self) -> int:
        """How often rows of H were lost and computed again; only a cluster loses any."""
        return self.backend.recovered

    @property
    def can_sweep(self) -> bool:
        """Whether the backend has coordinate descent for this data, and what is asked allows it."""
        steering = self.steering
        if steering.fixed or steering.masked or steering.needs_shrinking(self.supervised):
            return False
        return self.backend.can_sweep(self.X)

    def update(
        self, state: State, block: str, out: Array | None = None, gauge: bool = False,
        step: Callable[..., Step] | None = None,
    ) -> Step:  # fmt: skip
        """Return the new V (eqs. 3 and 15) or the new H (eqs. 4 and 16).

        ``step`` lowers the loss over one factor: by default the backend's `half_step`.
        """
        plain = step is None and not gauge
        step = step or self.backend.half_step
        penalty = self.steering.V if block == "V" else self.steering.H
        if block == "V" and self.steering.apart is not None:  # never with sweeps or gaps
            asked = self.steering.apart.asked_with(penalty, self._sums_at(state["V"]))
            step = partial(self.backend.half_step_apart, asked=asked)
            plain = False
        elif not penalty.is_none:
            step = partial(_penalized, self.backend, penalty, step)
        if block == "V" and self.pull is not None:
            plain = plain and penalty.is_none
            step = partial(_pulled, self.backend, self.pull, step, plain)
        found = self._updated(state, block, partial(step, out=out, gauge=gauge))
        if block == "V" and self.steering.fixed:
            found.factor[:, : self.steering.fixed] = self.kept
        return found

    def _updated(self, state: State, block: str, step: Callable[..., Step]) -> Step:
        X, V, H, sums = self.X, state["V"], state["H"], self.backend.column_sums
        if self.S is None or self.XS is None or not self.supervised:
            if block == "V":
                return step(X.T, V, H, self.mass(H))  # eq. 3
            return step(X, H, V, self.mass(V))  # eq. 4
        HS = self.margin_codes(H)
        if block == "V":
            den = self.mass(H) + self.lam * sums(HS)
            return step(X.T, V, H, den, also=Also(self.XS.T, HS, self.lam))  # eq. 15
        T = self.backend.ratio_matmul(self.XS, HS, V)
        plus = Plus(self.S, T, self.lam)
        return step(X, H, V, sums(V), weight=self.row_weight, plus=plus)  # eq. 16

    def _sums_at(self, V: Array) -> Array:
        """Return the column sums of V; those of a point ahead are known, and asked for once."""
        (point, sums), self._ahead = self._ahead, (None, None)
        return sums if point is V else self.backend.column_sums(V)

    def mass(self, B: Array) -> Array:
        """Return the sums (r,) of a factor: what the data has in a denominator."""
        return self.backend.column_sums(B)

    def sweep(
        self, state: State, block: str, out: Array | None = None, gauge: bool = False,
        bold: bool = False,
    ) -> Step:  # fmt: skip
        """Return V or H after coordinate descent on the same bounds.

        A ``bold`` one also lifts entries of H that the margin components ask for from next to
        nothing, from where the bounds would let them grow only slowly, or not at all from zero.
        """
        lift = _LIFT if bold and block == "H" else 0.0
        step = partial(self.backend.sweep, sweeps=self.sweeps, settled=self.settled, lift=lift)
        return self.update(state, block, out, gauge, step)

    def margin_codes(self, H: Array) -> Array:
        """Return HS (2p, r): the codes of the margin components."""
        assert self.S is not None
        return self.S.T @ H

    def ahead(self, block: str, now: Array, before: Array, b: float, least: float) -> Array:
        """Return a point ahead of a factor, for extrapolation."""
        if block == "V" and self.steering.apart is not None:
            point, sums = self.backend.ahead_and_sums(now, before, b, least)
            self._ahead = point, sums  # for the update of V that follows
            return point
        return self.backend.ahead(now, before, b, least)

    def loss(self, state: State) -> float:
        """Return ``D(X, H V') + lam * D(XS, HS V')`` (eq. 14)."""
        V, H = state["V"], state["H"]
        loss = self.data_loss(H, V)  # eq. 2
        if self.XS is not None and self.supervised:
            loss += self.lam * self.backend.divergence(self.XS, self.margin_codes(H), V)
        return loss + self.steering.charge(self.backend, H, V)

    def data_loss(self, H: Array, V: Array) -> float:
        """Return ``D(X, H V')``."""
        return self.backend.divergence(self.X, H, V)


def _pulled(
    backend: Backend, pull: Pull, step: Callable[..., Step], plain: bool, X: Matrix, A: Array,
    B: Array, den: Array, **others: Any,
) -> Step:  # fmt: skip
    """Return the step of V with a prior, whose samples have ratios ``pull.A / A`` where A is now.

    A ``plain`` step comes to the same if it is given their share afterwards, which is cheaper.
    """
    den = den + pull.B
    if plain:
        return Step(backend.added(step(X, A, B, den, **others).factor, pull.A, den))
    plus = Plus(pull.rows, backend.quotient(pull.A, A), 1.0)
    return step(X, A, B, den, plus=plus, **others)


def _penalized(
    backend: Backend, penalty: Penalty, step: Callable[..., Step], X: Matrix, A: Array, B: Array,
    den: Array, *, weight: Array | None = None, gauge: bool = False, **others: Any,
) -> Step:  # fmt: skip
    """Return the step of a penalized factor: the minimum of the same bound and the penalty.

    Where all rows have one denominator, l1 is a part of it. All other penalties shrink the result
    of the step without them.
    """
    l1 = penalty.l1
    if weight is None:
        den, l1 = den + l1, 0.0
    if not l1 and not penalty.is_square:
        return step(X, A, B, den, weight=weight, gauge=gauge, **others)
    before = A.copy() if gauge else None  # the step may be written over it
    new = step(X, A, B, den, weight=weight, **others).factor
    if (known := others.get("known")) is not None:
        den, weight = full_denominator(den, weight, known, B), None
    return backend.shrunk(new, den, weight, l1, penalty.l2, before)
