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
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from marginparts._types import Array, Data, Matrix, Problem, State, Step
from marginparts.backends import get_backend
from marginparts.backends.semi import SemiKernels, semi_kernels_of

#: What ties V to its last value, beside the squares of the codes; more where rounding is coarser.
_TIE, _COARSE = 1e-11, 10.0


def lean_squares(X: Data) -> float:
    """Return ``|X|^2`` in float64, without a copy of the data."""
    values = X if isinstance(X, np.ndarray) else X.data[:, None]
    return float(np.einsum("ij,ij->", values, values, dtype=np.float64))


@dataclass
class SemiProblem(Problem):
    """What is constant in a run: all samples, margin components included, and their squares.

    Data and H are as the kernels like them; V is an array.
    """

    X: Matrix  # (n, d)
    x_squared: float = 0.0  # |X|^2, with that of ``more``
    more: Matrix | None = None  # (2p, d), weighted
    kernels: SemiKernels = field(default_factory=lambda: semi_kernels_of(get_backend("numba")))
    _products: tuple[Array, Any, Array] | None = field(default=None, repr=False)

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
        return self._moved(state, block, self.kernels.multiplied, out, gauge)

    def sweep(
        self, state: State, block: str, out: Array | None = None, gauge: bool = False,
        bold: bool = False,
    ) -> Step:  # fmt: skip
        """Return the best V, or H with each entry of a row in turn at its optimum."""
        return self._moved(state, block, self.kernels.swept, out, gauge)

    def _moved(
        self, state: State, block: str, step: Callable[..., Step], out: Array | None, gauge: bool
    ) -> Step:
        """Return the best V, or H after a step of each row."""
        if block == "V":
            return self._best_basis(state)
        XV, gram = self.products(state["V"])
        return step(state["H"], XV, gram, out, gauge)

    def _best_basis(self, state: State) -> Step:
        """Return ``V = X'H (H'H)^-1``, tied a little to the last V, for where H is singular.

        It is the minimum of the loss and ``tie * |V - V_now|^2``, so the loss does not rise.
        """
        V, H, n = state["V"], state["H"], self.X.shape[0]
        gram = self.kernels.gram(H)
        share = max(_TIE, _COARSE * float(np.finfo(V.dtype).eps))
        tie = share * float(np.trace(gram)) or 1.0
        gram[np.diag_indices_from(gram)] += tie
        right = self.kernels.inner(self.X, H[:n]) + tie * V
        if self.more is not None:
            right += self.kernels.inner(self.more, H[n:])
        if not (np.isfinite(gram).all() and np.isfinite(right).all()):
            raise np.linalg.LinAlgError("codes out of the range of numbers")
        new = cho_solve(cho_factor(gram, overwrite_a=True), right.T).T
        return Step(np.ascontiguousarray(new, dtype=V.dtype), 0.0)

    def products(self, V: Array) -> tuple[Any, Array]:
        """Return ``X V`` and ``V'V``, which an update of H and the loss after it share."""
        kept = self._products
        if kept is None or not np.array_equal(kept[0], V):
            samples = [self.X] if self.more is None else [self.X, self.more]
            XV = self.kernels.product(samples, V, None if kept is None else kept[1])
            self._products = kept = (V.copy(), XV, V.T @ V)
        return kept[1], kept[2]

    def ahead(self, block: str, now: Array, before: Array, b: float, least: float) -> Array:
        """Return a point ahead of H, for extrapolation, maybe written over ``before``."""
        if block == "V":
            return now  # its best value is found exactly
        ahead: Array = self.kernels.ahead(now, before, b, least)
        return ahead

    def loss(self, state: State) -> float:
        """Return ``|X|^2 - 2 <X V, H> + <V'V, H'H>``."""
        H, (XV, gram) = state["H"], self.products(state["V"])
        fitted = np.sum(gram.astype(np.float64) * self.kernels.gram(H))
        return max(self.x_squared - 2 * self.kernels.cross(XV, H) + float(fitted), 0.0)
