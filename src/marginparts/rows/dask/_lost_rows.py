"""Rows of H that were lost with their worker, recovered from the data and V.

The margin components belong to all rows together. What was lost can still be recovered row by row,
because the client knows what all rows together had come to: HS (2p, r), and with it T (eq. 16). In
a fit that has settled, the lost rows are where eq. 16 with this T leaves them as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from marginparts._types import Array, Matrix, Operator, Problem, State, Step
from marginparts.backends import Backend, Plus
from marginparts.solve.loop import minimize

#: Lost rows get as many updates from a flat start as they had had, within bounds, and as many again
#: with the margin components. With many more, early in a fit, they would follow a V and a T that
#: are not good yet, and stay there.
_FEWEST, _MOST = 20, 200


class Margin(NamedTuple):
    """What is known of the margin components: ``HS = S.T @ H`` and T, both (2p, r)."""

    lam: float
    HS: Array
    T: Array


class Known(NamedTuple):
    """What it takes to recover rows: how many updates they had had, and the margin or None."""

    updates: int
    margin: Margin | None


@dataclass
class LostRows(Problem):
    """The update of some rows of H, with V and what other rows come to as they are."""

    backend: Backend
    X: Matrix  # (n, d), prepared
    S: Operator | None  # (n, 2p), prepared
    r: int
    margin: Margin | None

    blocks: ClassVar[tuple[str, ...]] = ("H",)

    def update(
        self, state: State, block: str, out: Array | None = None, gauge: bool = False
    ) -> Step:
        """Return the new rows of H (eq. 16, or eq. 4 without margin components)."""
        H, V = state["H"], state["V"]
        options: dict[str, Any] = {}
        if self.margin is not None and self.S is not None:
            options = margin_term(self.backend, self.S, self.margin.lam, self._T(self.S, H))
        den = self.backend.column_sums(V)
        return self.backend.half_step(self.X, H, V, den, out=out, gauge=gauge, **options)

    def _T(self, S: Operator, H: Array) -> Array:
        """Return T (2p, r), held down where these rows claim more than all rows had.

        ``HS * T`` is how much of each margin component each part explains. Rows that started far
        off may take no more than that, or they would grow without bound.
        """
        assert self.margin is not None
        _, HS, T = self.margin
        own = self.backend.release(S.T @ H, self.r)
        allowed = np.divide(HS, own, out=np.ones_like(HS), where=own > HS)
        return T * allowed


def recovered(rows: LostRows, V: Array, flat: Array, updates: int) -> Array:
    """Return rows of H about as close to their best value for V as they were.

    First without the margin components: eq. 16 takes small steps where they weigh much, and a flat
    start is far off.
    """
    H: Array = rows.backend.factor(np.repeat(flat[None], rows.X.shape[0], axis=0))
    count = min(max(updates, _FEWEST), _MOST)
    for margin in (None,) if rows.margin is None else (None, rows.margin):
        problem = replace(rows, margin=margin)
        run = minimize(problem, {"V": V, "H": H}, solver="mu", max_iter=count, watch=False)
        H = run.state["H"]
    return H


def margin_term(backend: Backend, S: Operator, lam: float, T: Array) -> dict[str, Any]:
    """Return what eq. 16 has and eq. 4 has not, as options of `Backend.half_step`."""
    s = S @ np.ones(S.shape[1])
    return {"weight": 1 + lam * s, "plus": Plus(S, backend.factor(T), lam)}
