"""What rows that are gone have left behind: the sums of ``losses/stream.py``, and their margins."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginparts._types import Array
from marginparts.backends import Backend
from marginparts.backends.base import column_sums
from marginparts.online._learner import own_directions
from marginparts.online._rows import Rows
from marginparts.solve.map import map_rows

#: Updates that map a past into other parts.
_RECODE = 20


@dataclass(frozen=True, eq=False)
class Past:
    """Sums over rows that are gone."""

    A: Array  # (d, r): V * ratio_matmul(X.T, V, H)
    B: Array  # (r,): H.sum(0)
    XS: sp.csr_array  # (2c, d): S.T @ X with the learners' own coefficients, not scaled

    @classmethod
    def none(cls, d: int, r: int, c: int) -> Past:
        """Return an empty past."""
        return cls(np.zeros((d, r)), np.zeros(r), sp.csr_array((2 * c, d), dtype=np.float64))

    @property
    def mass(self) -> float:
        """The mass of the data that is gone."""
        return float(self.A.sum())

    def faded(self, rho: float) -> Past:
        """Return a share rho of it."""
        return self if rho == 1 else Past(rho * self.A, rho * self.B, self.XS * rho)

    def rescaled(self, sums: Array) -> Past:
        """Return it for parts divided by their sums (r,): codes grow, and A stays as it is."""
        return replace(self, B=self.B * sums)

    def with_classes(self, places: NDArray[np.intp], c: int) -> Past:
        """Return it with class k of before at ``places[k]`` of c classes."""
        rows = np.concatenate([places, c + places])
        # row i of before where it belongs, an empty row elsewhere
        source = np.full(2 * c, len(rows))
        source[rows] = np.arange(len(rows))
        empty = sp.csr_array((1, self.XS.shape[1]), dtype=np.float64)
        return replace(self, XS=sp.csr_array(sp.vstack([self.XS, empty], format="csr")[source]))

    def recoded(self, V: Array, backend: Backend) -> Past:
        """Return it in other parts: it is r samples, and they are mapped like any others."""
        rows = sp.csr_array(self.A.T.astype(V.dtype))
        H = map_rows(rows, V, _RECODE, backend)
        return Past(*statistics(rows, V, H, backend), self.XS)

    def joined_by(self, gone: Rows, V: Array, H: Array, backend: Backend) -> Past:
        """Return it with rows that leave, coded by H (m, r)."""
        if not len(gone):
            return self
        A, B = statistics(gone.weighted, V, H, backend)
        XS = self.XS + own_directions(gone).T @ gone.weighted.astype(np.float64)
        return Past(self.A + A, self.B + B, sp.csr_array(XS))


def statistics(X: sp.csr_array, V: Array, H: Array, backend: Backend) -> tuple[Array, Array]:
    """Return A (d, r) and B (r,) of rows X (m, d) with codes H (m, r), in float64."""
    factor = backend.factor(V)
    A = factor * backend.ratio_matmul(backend.prepare(X).T, factor, backend.factor(H))
    return backend.release(A, V.shape[1]).astype(np.float64), column_sums(H)


def scaled_margins(S: sp.csr_array, X: sp.csr_array, past: Past) -> tuple[sp.csr_array, ...]:
    """Scale the margin components to the mass of all data, so that lam is a ratio of masses.

    From S (m, 2c) and X (m, d) to S (m, l), XS and XS_past (l, d) of the l components that have
    mass. XS is that of rows at hand and past together.
    """
    XS = sp.csr_array(S.T @ X.astype(np.float64) + past.XS)
    XS.sum_duplicates()
    masses = np.asarray(XS.sum(axis=1)).ravel()
    there = np.flatnonzero(masses > 0)
    mass = past.mass + float(X.sum(dtype=np.float64))
    scale = sp.diags_array(mass / (len(there) * masses[there]))
    XS, XS_past = (sp.csr_array(scale @ each[there]) for each in (XS, past.XS))
    return sp.csr_array(S[:, there] @ scale), XS, XS_past
