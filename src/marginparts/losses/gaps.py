"""Data with gaps: the same loss, over the entries that are known.

    loss = sum_{ij known} D(x_ij, (H V')_ij) + lam * D(XS, HS V')

An entry that is not known is 0 in X, so numerators are as they were. In a denominator stands the
sum of the other factor over the entries that are known, another one for each row (`Known`).
``docs/math.md``, section 20, has the updates.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from marginparts._types import Array, State, Step
from marginparts.backends import Known
from marginparts.losses.nmf_alpha import NMFAlphaProblem


@dataclass
class GappedProblem(NMFAlphaProblem):
    """What is constant in a run on data with gaps; a frozen V needs no columns."""

    rows: Known | None = None
    columns: Known | None = None

    @property
    def can_sweep(self) -> bool:
        """A sweep has one denominator for all rows."""
        return False

    @property
    def row_weight(self) -> Array:
        """``lam * s`` (n,): what the margin components have in the row part of eq. 16."""
        return self.lam * self.s

    def mass(self, B: Array) -> Array:
        """Return 0: what the data has in a denominator is the part of each row."""
        return np.zeros(B.shape[1])

    def update(
        self, state: State, block: str, out: Array | None = None, gauge: bool = False,
        step: Callable[..., Step] | None = None,
    ) -> Step:  # fmt: skip
        """Return the new V or H."""
        return super().update(state, block, out, gauge, self.backend.half_step_over)

    def _updated(self, state: State, block: str, step: Callable[..., Step]) -> Step:
        known = self.columns if block == "V" else self.rows
        return super()._updated(state, block, partial(step, known=known))

    def data_loss(self, H: Array, V: Array) -> float:
        """Return the divergence over what is known."""
        assert self.rows is not None
        fit = np.einsum("ik,ik->", H, self.rows.sums(V), dtype=np.float64)
        return self.backend.log_terms(self.X, H, V) + float(fit)
