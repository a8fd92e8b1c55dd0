"""NMF-alpha: the I-divergence of the data plus that of its margin components (eqs. 2-4, 14-16).

    loss = D(X, H V') + lam * D(XS, HS V')        with XS = S' X and HS = S' H

The rows of XS are the nonnegative components w+ and w- of the hyperplanes, and since
``lam * D(a, b) = D(lam * a, lam * b)`` they act as 2p more samples of weight lam. With ``lam = 0``
or without S this is plain NMF. Letters and shapes: ``docs/notation.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from marginparts._types import Array, State
from marginparts.backends import Also, Backend, Plus
from marginparts.backends._common import column_sums


@dataclass
class NMFAlphaProblem:
    """What is constant in a run of NMF-alpha.

    Parameters
    ----------
    backend : Backend
        Where the kernels run.
    X : (n, d) prepared matrix
    S : (n, 2p) sparse or None
        Nonnegative dual coefficients, a zero row for every unlabeled sample.
    XS : (2p, d) prepared matrix or None
        ``S.T @ X``: the margin components as further samples.
    lam : float
        Weight of the margin components.
    """

    backend: Backend
    X: Any
    S: Any = None
    XS: Any = None
    lam: float = 0.0

    blocks: ClassVar[tuple[str, ...]] = ("V", "H")

    @property
    def supervised(self) -> bool:
        """Whether the margin components have any weight."""
        return self.S is not None and self.lam > 0

    @cached_property
    def St(self) -> Any:
        """``S.T`` by rows."""
        return self.S.T.tocsr()

    @cached_property
    def row_weight(self) -> Array:
        """``1 + lam * s`` (n,), s the row sums of S: the row part of eq. 16's denominator."""
        return np.asarray(1 + self.lam * np.asarray(self.S.sum(axis=1)).ravel())

    def update(self, state: State, block: str) -> Array:
        """Return the new V (eq. 15) or the new H (eq. 16)."""
        V, H = state["V"], state["H"]
        return self._update_V(V, H) if block == "V" else self._update_H(V, H)

    def _update_V(self, V: Array, H: Array) -> Array:
        if not self.supervised:
            return self.backend.half_step(self.X.T, V, H, column_sums(H))  # eq. 3
        HS = self.St @ H
        den = column_sums(H) + self.lam * column_sums(HS)
        also = Also(self.XS.T, HS, self.lam)
        return self.backend.half_step(self.X.T, V, H, den, also=also)  # eq. 15

    def _update_H(self, V: Array, H: Array) -> Array:
        if not self.supervised:
            return self.backend.half_step(self.X, H, V, column_sums(V))  # eq. 4
        T = self.backend.ratio_matmul(self.XS, self.St @ H, V)
        plus = Plus(self.S, T, self.lam)
        return self.backend.half_step(  # eq. 16
            self.X, H, V, column_sums(V), weight=self.row_weight, plus=plus
        )

    def loss(self, state: State) -> float:
        """Return ``D(X, H V') + lam * D(XS, HS V')`` (eq. 14)."""
        V, H = state["V"], state["H"]
        loss = self.backend.divergence(self.X, H, V)  # eq. 2
        if self.supervised:
            loss += self.lam * self.backend.divergence(self.XS, self.St @ H, V)
        return loss
