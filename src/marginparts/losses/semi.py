"""Semi-NMF-alpha: data of any sign, ``X ~ H V'`` with H >= 0 and V free (Ding, Li & Jordan 2010).

    loss = |X - H V'|^2 + lam * |XS - U V'|^2       with XS = S' X

The margin components are further samples of weight lam, with codes U >= 0 of their own. So the
whole is the factorization of one matrix, X over sqrt(lam) * XS, and here U is the end of H.
``docs/math.md``, section 22, has the updates and why none raises the loss.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from marginparts._types import Array, Data, Problem, State, Step
from marginparts.backends.base import gauged, moved_ahead, safe_ratio

#: What ties V to its last value, beside the squares of the codes; more where rounding is coarser.
_TIE, _COARSE = 1e-11, 10.0


@dataclass
class SemiProblem(Problem):
    """What is constant in a run: all samples, margin components included, and their squares."""

    X: Data  # (n + 2p, d)
    x_squared: float = 0.0  # |X|^2
    _products: tuple[Array, Array, Array] | None = field(default=None, repr=False)

    blocks: ClassVar[tuple[str, ...]] = ("V", "H")

    @property
    def default_solver(self) -> str:
        """Sweeps lower the loss faster and cost no more."""
        return "cd"

    @property
    def can_sweep(self) -> bool:
        """There is coordinate descent for all data."""
        return True

    def update(
        self, state: State, block: str, out: Array | None = None, gauge: bool = False
    ) -> Step:
        """Return the best V, or H by the multiplicative step of Ding, Li & Jordan."""
        if block == "V":
            return self._best_basis(state)
        H = state["H"]
        numerator, denominator = self._ratio(state)
        new = H * np.sqrt(safe_ratio(numerator, denominator))
        return self._told(H, new, state["V"]) if gauge else Step(new)

    def sweep(
        self, state: State, block: str, out: Array | None = None, gauge: bool = False,
        bold: bool = False,
    ) -> Step:  # fmt: skip
        """Return the best V, or H with each entry of a row in turn at its optimum."""
        if block == "V":
            return self._best_basis(state)
        # compiled when it is first needed
        from marginparts._compiled import check_threads
        from marginparts.losses._semi_cd import sweep_rows

        check_threads()
        H, (XV, gram) = state["H"], self.products(state["V"])
        new, slopes = H.copy(), H @ gram
        slopes -= XV
        sweep_rows(slopes, gram, new, 1)
        return self._told(H, new, state["V"]) if gauge else Step(new)

    def _told(self, H: Array, new: Array, V: Array) -> Step:
        """Return a step with the length by which rows move along parts, a share of their own."""
        lengths = np.sqrt(np.diag(self.products(V)[1]))
        mass = float((new @ lengths).sum(dtype=np.float64))
        moved = float((np.abs(new - H) @ lengths).sum(dtype=np.float64))
        return gauged(new, mass, min(moved, mass))

    def _best_basis(self, state: State) -> Step:
        """Return ``V = X'H (H'H)^-1``, all but freely: a little tie keeps it where H is singular.

        It is the minimum of the loss and ``tie * |V - V_now|^2``, so the loss does not rise.
        """
        V, H = state["V"], state["H"]
        gram = (H.T @ H).astype(np.float64)
        share = max(_TIE, _COARSE * float(np.finfo(V.dtype).eps))
        tie = share * float(np.trace(gram)) or 1.0
        gram[np.diag_indices_from(gram)] += tie
        right = np.asarray(self.X.T @ H, dtype=np.float64) + tie * V
        new = cho_solve(cho_factor(gram, overwrite_a=True), right.T).T
        return Step(np.ascontiguousarray(new, dtype=V.dtype), 0.0)

    def _ratio(self, state: State) -> tuple[Array, Array]:
        """Return what pulls the entries of H up, and what pulls them down."""
        XV, gram = self.products(state["V"])
        H, zero = state["H"], XV.dtype.type(0)
        up, down, part = H @ np.maximum(-gram, zero), H @ np.maximum(gram, zero), np.maximum(XV, 0)
        up += part
        part -= XV  # what is left are the negative entries, as positive ones
        down += part
        return up, down

    def products(self, V: Array) -> tuple[Array, Array]:
        """Return ``X V`` and ``V'V``, which an update of H and the loss after it share."""
        kept = self._products
        if kept is None or not np.array_equal(kept[0], V):
            kept = (V.copy(), np.asarray(self.X @ V), V.T @ V)
            self._products = kept
        return kept[1], kept[2]

    def ahead(self, now: Array, before: Array, b: float, least: float) -> Array:
        """Return a point ahead of a factor, for extrapolation."""
        return moved_ahead(now, before, b, least)

    def loss(self, state: State) -> float:
        """Return ``|X|^2 - 2 <X V, H> + <V'V, H'H>``."""
        H, (XV, gram) = state["H"], self.products(state["V"])
        cross = np.einsum("ik,ik->", XV, H, dtype=np.float64)
        fitted = np.sum(gram.astype(np.float64) * (H.T @ H))
        return max(self.x_squared - 2 * float(cross) + float(fitted), 0.0)
