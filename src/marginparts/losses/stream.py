"""NMF-alpha with a past: what rows that are gone have left behind enters the update of V.

A sum over all rows of a stream stands in the update of V (eq. 3),

    V = A / B    with    A = V * ratio_matmul(X.T, V, H)   and   B = H.sum(0),

so a row that is gone need not be kept: its share of A (d, r) and of B (r,) is enough, as long as
its code would not change much. Such a past is in turn nothing but r more samples, the rows of A',
with the codes diag(B), and the loss of the whole is

    loss = D(X, H V') + lam * D(XS, HS V') + D(A', diag(B) V')      with HS = S' H + HS_past

where HS_past (2p, r) are codes of the part of XS that came from rows that are gone. Each update
lowers it as those of NMF-alpha do. ``docs/online.md`` has the derivation.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from marginparts._types import Array, State, Step
from marginparts.backends import Also
from marginparts.backends._common import least_entry
from marginparts.losses.nmf_alpha import NMFAlphaProblem


@dataclass
class StreamProblem(NMFAlphaProblem):
    """What is constant in one step of a stream.

    Parameters
    ----------
    backend, X, S, XS, lam
        As in `NMFAlphaProblem`, for the rows at hand; XS (2p, d) covers those that are gone, too.
    A : (d, r) factor, or None without a past
    B : (1, r) factor
    HS_past : (2p, r) factor, or None where no labeled row is gone
    """

    A: Any = None
    B: Any = None
    HS_past: Any = None

    @property
    def can_sweep(self) -> bool:
        """There is no coordinate descent on a past."""
        return False

    @cached_property
    def past_sums(self) -> Any:
        """B (r,) in float64, where the backend keeps its sums."""
        return self.backend.column_sums(self.B)

    def margin_codes(self, H: Array) -> Any:
        """Return HS (2p, r), rows that are gone included."""
        HS = super().margin_codes(H)
        return HS if self.HS_past is None else HS + self.HS_past

    def _step_V(self, step: Any, V: Array, H: Array, **options: Any) -> Any:
        """Return ``(A + V * numerator) / (B + denominator)``; a violation is not told."""
        if self.A is None:
            return super()._step_V(step, V, H, **options)
        column_sums = self.backend.column_sums
        options["gauge"] = False
        den = self.past_sums + column_sums(H)
        if self.supervised:
            HS = self.margin_codes(H)
            den = den + self.lam * column_sums(HS)
            options["also"] = Also(self.XS.T, HS, self.lam)
        V = step(self.X.T, V, H, den, **options).factor
        V += self.A / (den + (den == 0))  # 0 / 0 is 0, as everywhere
        return Step(V)

    def loss(self, state: State) -> float:
        """Return the loss at the head of this module."""
        loss = super().loss(state)
        if self.A is None:
            return loss
        r = self.A.shape[1]
        A, V = (
            self.backend.release(factor, r).astype(np.float64) for factor in (self.A, state["V"])
        )
        fitted = V * np.asarray(self.backend.release(self.B, r), dtype=np.float64)
        seen = fitted > 0
        if np.any(A[~seen] > least_entry(V.dtype)):
            return float("inf")  # an entry that cannot be explained
        seen &= A > 0
        terms = A[seen] * np.log(A[seen] / fitted[seen]) - A[seen]
        return loss + float(terms.sum() + fitted.sum())
