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
from typing import ClassVar

import numpy as np

from marginparts._types import Array, Matrix, Operator, Problem, State, Step
from marginparts.backends import Also, Backend, Plus

#: The share of its row's mass to which an entry of H is lifted from next to nothing.
_LIFT = 1e-6


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
    _row_weights: dict[float, Array] = field(default_factory=dict, repr=False)

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
        """Whether the backend has coordinate descent for this data."""
        return self.backend.can_sweep(self.X)

    def update(
        self, state: State, block: str, out: Array | None = None, gauge: bool = False,
        step: Callable[..., Step] | None = None,
    ) -> Step:  # fmt: skip
        """Return the new V (eqs. 3 and 15) or the new H (eqs. 4 and 16).

        ``step`` lowers the loss over one factor: by default the backend's `half_step`.
        """
        step = partial(step or self.backend.half_step, out=out, gauge=gauge)
        X, V, H, sums = self.X, state["V"], state["H"], self.backend.column_sums
        if self.S is None or self.XS is None or not self.supervised:
            if block == "V":
                return step(X.T, V, H, sums(H))  # eq. 3
            return step(X, H, V, sums(V))  # eq. 4
        HS = self.margin_codes(H)
        if block == "V":
            den = sums(H) + self.lam * sums(HS)
            return step(X.T, V, H, den, also=Also(self.XS.T, HS, self.lam))  # eq. 15
        T = self.backend.ratio_matmul(self.XS, HS, V)
        plus = Plus(self.S, T, self.lam)
        return step(X, H, V, sums(V), weight=self.row_weight, plus=plus)  # eq. 16

    def sweep(
        self, state: State, block: str, out: Array | None = None, gauge: bool = False,
        bold: bool = False,
    ) -> Step:  # fmt: skip
        """Return V or H after coordinate descent on the same bounds.

        A ``bold`` one also lifts entries of H that the margin components ask for from next to
        nothing, from where the bounds would let them grow only slowly, or not at all from zero.
        """
        lift = _LIFT if bold else 0.0
        step = partial(self.backend.sweep, sweeps=self.sweeps, settled=self.settled, lift=lift)
        return self.update(state, block, out, gauge, step)

    def margin_codes(self, H: Array) -> Array:
        """Return HS (2p, r): the codes of the margin components."""
        assert self.S is not None
        return self.S.T @ H

    def ahead(self, now: Array, before: Array, b: float, least: float) -> Array:
        """Return a point ahead of a factor, for extrapolation."""
        return self.backend.ahead(now, before, b, least)

    def loss(self, state: State) -> float:
        """Return ``D(X, H V') + lam * D(XS, HS V')`` (eq. 14)."""
        V, H = state["V"], state["H"]
        loss = self.backend.divergence(self.X, H, V)  # eq. 2
        if self.XS is not None and self.supervised:
            loss += self.lam * self.backend.divergence(self.XS, self.margin_codes(H), V)
        return loss
