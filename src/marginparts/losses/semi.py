"""Semi-NMF-alpha: data of any sign, ``X ~ H V'`` with H >= 0 and V free (Ding, Li & Jordan 2010).

    loss = |X - H V'|^2 + lam * |XS - U V'|^2       with XS = S' X

The margin components are further samples of weight lam, with codes U >= 0 of their own. So the
whole is the factorization of one matrix, X over sqrt(lam) * XS, and here U is the end of H. The
matrix is never formed: X may be mapped from a file, and half as large as memory.
``docs/math.md``, section 22, has the updates and why none raises the loss.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.utils import gen_batches

from marginparts._types import Array, Data, Problem, State, Step
from marginparts.backends.base import gauged, moved_ahead, safe_ratio

#: What ties V to its last value, beside the squares of the codes; more where rounding is coarser.
_TIE, _COARSE = 1e-11, 10.0

#: Entries of H that are updated at a time.
_AT_ONCE = 1 << 18


def lean_squares(X: Data) -> float:
    """Return ``|X|^2`` in float64, without a copy of the data."""
    values = X if isinstance(X, np.ndarray) else X.data[:, None]
    return float(np.einsum("ij,ij->", values, values, dtype=np.float64))


@dataclass
class SemiProblem(Problem):
    """What is constant in a run: all samples, margin components included, and their squares."""

    X: Data  # (n, d)
    x_squared: float = 0.0  # |X|^2, with that of ``more``
    more: Data | None = None  # (2p, d), weighted
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
        return self._by_blocks(state, out, _multiplied, gauge=gauge)

    def sweep(
        self, state: State, block: str, out: Array | None = None, gauge: bool = False,
        bold: bool = False,
    ) -> Step:  # fmt: skip
        """Return the best V, or H with each entry of a row in turn at its optimum."""
        if block == "V":
            return self._best_basis(state)
        return self._by_blocks(state, out, _swept, gauge=gauge)

    def _by_blocks(
        self, state: State, out: Array | None, step: Callable[..., Array], *, gauge: bool
    ) -> Step:
        """Return H after a step of each row, some rows at a time: they stay in the cache.

        The violation is how far the codes move, relative to their size; an entry counts by the
        length of its part.
        """
        H, (XV, gram) = state["H"], self.products(state["V"])
        new = np.empty_like(H) if out is None else out
        lengths, mass, moved = np.sqrt(np.diag(gram)), 0.0, 0.0
        for rows in gen_batches(len(H), max(1, _AT_ONCE // H.shape[1])):
            found = step(H[rows], XV[rows], gram)
            if gauge:
                mass += float((found @ lengths).sum(dtype=np.float64))
                moved += float((np.abs(found - H[rows]) @ lengths).sum(dtype=np.float64))
            new[rows] = found
        return gauged(new, mass, min(moved, mass)) if gauge else Step(new)

    def _best_basis(self, state: State) -> Step:
        """Return ``V = X'H (H'H)^-1``, tied a little to the last V, for where H is singular.

        It is the minimum of the loss and ``tie * |V - V_now|^2``, so the loss does not rise.
        """
        V, H = state["V"], state["H"]
        gram = (H.T @ H).astype(np.float64)
        share = max(_TIE, _COARSE * float(np.finfo(V.dtype).eps))
        tie = share * float(np.trace(gram)) or 1.0
        gram[np.diag_indices_from(gram)] += tie
        n = self.X.shape[0]
        right = np.asarray(self.X.T @ H[:n], dtype=np.float64) + tie * V
        if self.more is not None:
            right += self.more.T @ H[n:]
        new = cho_solve(cho_factor(gram, overwrite_a=True), right.T).T
        return Step(np.ascontiguousarray(new, dtype=V.dtype), 0.0)

    def products(self, V: Array) -> tuple[Array, Array]:
        """Return ``X V`` and ``V'V``, which an update of H and the loss after it share."""
        kept = self._products
        if kept is None or not np.array_equal(kept[0], V):
            kept = self._products = None  # its memory
            n, more = self.X.shape[0], 0 if self.more is None else self.more.shape[0]
            XV = np.empty((n + more, V.shape[1]), V.dtype)
            for rows, X in ((slice(n), self.X), (slice(n, None), self.more)):
                if isinstance(X, np.ndarray):
                    np.matmul(X, V, out=XV[rows])
                elif X is not None:
                    XV[rows] = X @ V
            self._products = kept = (V.copy(), XV, V.T @ V)
        return kept[1], kept[2]

    def ahead(self, block: str, now: Array, before: Array, b: float, least: float) -> Array:
        """Return a point ahead of a factor, for extrapolation, written over ``before``."""
        for rows in gen_batches(len(now), max(1, _AT_ONCE // now.shape[1])):
            before[rows] = moved_ahead(now[rows], before[rows], b, least)
        return before

    def loss(self, state: State) -> float:
        """Return ``|X|^2 - 2 <X V, H> + <V'V, H'H>``."""
        H, (XV, gram) = state["H"], self.products(state["V"])
        cross = np.einsum("ik,ik->", XV, H, dtype=np.float64)
        fitted = np.sum(gram.astype(np.float64) * (H.T @ H))
        return max(self.x_squared - 2 * float(cross) + float(fitted), 0.0)


def _multiplied(H: Array, XV: Array, gram: Array) -> Array:
    """Return rows of H times the root of what pulls them up over what pulls them down."""
    zero = H.dtype.type(0)
    up, down, part = H @ np.maximum(-gram, zero), H @ np.maximum(gram, zero), np.maximum(XV, zero)
    up += part
    part -= XV  # what is left are the negative entries, as positive ones
    down += part
    return H * np.sqrt(safe_ratio(up, down))


def _swept(H: Array, XV: Array, gram: Array) -> Array:
    """Return rows of H after a sweep of coordinate descent."""
    # compiled when it is first needed
    from marginparts._compiled import check_threads
    from marginparts.losses._semi_cd import sweep_rows

    check_threads()
    new, slopes = H.copy(), H @ gram
    slopes -= XV
    sweep_rows(slopes, gram, new, 1)
    return new
