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

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from marginparts._types import Array, State, Step
from marginparts.backends import Also
from marginparts.backends.base import least_entry
from marginparts.losses.nmf_alpha import NMFAlphaProblem


@dataclass
class StreamProblem(NMFAlphaProblem):
    """What is constant in one step of a stream: a problem for the rows at hand, and a past.

    XS (2p, d) covers rows that are gone, too.
    """

    A: Array | None = None  # (d, r); None without a past
    B: Array | None = None  # (1, r)
    HS_past: Array | None = None  # (2p, r); None where no labeled row is gone

    @property
    def can_sweep(self) -> bool:
        """There is no coordinate descent on a past."""
        return False

    def margin_codes(self, H: Array) -> Array:
        """Return HS (2p, r), rows that are gone included."""
        HS = super().margin_codes(H)
        return HS if self.HS_past is None else HS + self.HS_past

    def update(
        self, state: State, block: str, out: Array | None = None, gauge: bool = False,
        step: Callable[..., Step] | None = None,
    ) -> Step:  # fmt: skip
        """Return the new H, or the new V = (A + V * numerator) / (B + denominator).

        The violation of a V with a past is not computed.
        """
        if block == "H" or self.A is None or self.B is None:
            return super().update(state, block, out, gauge)
        V, H, sums, also = state["V"], state["H"], self.backend.column_sums, None
        den = sums(self.B) + sums(H)
        if self.XS is not None and self.supervised:
            HS = self.margin_codes(H)
            den = den + self.lam * sums(HS)
            also = Also(self.XS.T, HS, self.lam)
        V = self.backend.half_step(self.X.T, V, H, den, also=also, out=out).factor
        V += self.A / (den + (den == 0))  # 0 / 0 is 0, as everywhere
        return Step(V)

    def loss(self, state: State) -> float:
        """Return the loss at the head of this module."""
        loss = super().loss(state)
        if self.A is None or self.B is None:
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
