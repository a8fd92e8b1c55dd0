"""Rows of a stream that are still at hand: samples with their labels, duals and weights."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginparts._types import Array
from marginparts.labels import UNKNOWN
from marginparts.rows.alike import in_order, row_numbers

#: A row that forgetting has brought down to this weight leaves the memory.
_FAINT = 1 / 16


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows in the order in which they came.

    ``lots`` are random numbers between 0 and 1, drawn when a batch is full: they decide which rows
    stay in the memory (weighted reservoir sampling).
    """

    X: sp.csr_array  # (m, d)
    codes: NDArray[np.int64]  # (m,) or (m, c), as in `marginparts.labels.Labels`; -1 is unknown
    duals: Array  # (m, c), of each class's online learner; zero where a label is unknown
    weights: Array  # (m,): what forgetting has left of each row; 1 when it comes
    lots: Array  # (m,)
    sample_weight: Array = None  # type: ignore[assignment] # (m,): what each counts; None for 1

    def __post_init__(self) -> None:
        if self.sample_weight is None:
            object.__setattr__(self, "sample_weight", np.ones(len(self)))

    @classmethod
    def arrived(
        cls, X: sp.csr_array, codes: NDArray[np.int64], c: int, sample_weight: Array | None = None
    ) -> Rows:
        """Return new rows, of which no learner has heard yet."""
        m = X.shape[0]
        found = cls(X, codes, np.zeros((m, c)), np.ones(m), np.ones(m))
        return found if sample_weight is None else replace(found, sample_weight=sample_weight)

    def __len__(self) -> int:
        return int(self.X.shape[0])

    @property
    def labeled(self) -> NDArray[np.bool_]:
        """Mask (m,) of the rows about which anything is known."""
        known = self.codes != UNKNOWN
        return known if known.ndim == 1 else known.any(axis=1)

    @property
    def faint(self) -> NDArray[np.bool_]:
        """Mask (m,) of the rows that count next to nothing any more."""
        return self.weights <= _FAINT

    @property
    def heavy(self) -> Array:
        """What each row counts (m,): what it came with, less what was forgotten."""
        return self.weights * self.sample_weight

    @property
    def class_sizes(self) -> NDArray[np.int64]:
        """The number of rows that are known to belong to each class (c,)."""
        members = self.codes == 1
        if self.codes.ndim == 1:
            members = self.codes[:, None] == np.arange(self.duals.shape[1])
        return members.sum(axis=0)

    @cached_property
    def weighted(self) -> Any:
        """X with each row times its weight: the I-divergence is homogeneous."""
        if (self.heavy == 1).all():
            return self.X
        return sp.csr_array(sp.diags_array(self.heavy.astype(self.X.dtype)) @ self.X)

    def take(self, rows: NDArray[Any] | slice) -> Rows:
        """Return some of the rows."""
        return Rows(*(getattr(self, field.name)[rows] for field in fields(self)))

    def then(self, later: Rows) -> Rows:
        """Return these rows and later ones."""
        X = sp.csr_array(sp.vstack([self.X, later.X], format="csr"))
        others = [field.name for field in fields(self)][1:]
        return Rows(
            X, *(np.concatenate([getattr(self, name), getattr(later, name)]) for name in others)
        )

    def together(self) -> Rows:
        """Return new rows with those that are the same as one, with the sum of their weights.

        As in other fits, that is where rows have weights, or at least half of them repeat others;
        their order then depends on what is in them, and not on where they stand.
        """
        keys = [row_numbers(self.X, stream) for stream in (0, 1)]
        if (self.sample_weight == 1).all() and 2 * len(np.unique(keys[0])) > len(self):
            return self
        # codes, not what they are mixed to: others may come between them, their order stays
        order, firsts = in_order([*np.atleast_2d(self.codes.T), *keys])
        counted = np.bincount(np.cumsum(firsts) - 1, self.sample_weight[order])
        return replace(self.take(order[firsts]), sample_weight=counted.astype(np.float64))

    def faded(self, rho: float) -> Rows:
        """Return the rows with a share rho of their weight."""
        return self if rho == 1 else replace(self, weights=rho * self.weights)

    def with_classes(self, places: NDArray[np.intp], c: int) -> Rows:
        """Return the rows with class k of before at ``places[k]`` of c classes."""
        codes = np.append(places, UNKNOWN)[self.codes]  # -1 finds the last
        duals = np.zeros((len(self), c))
        duals[:, places] = self.duals
        return replace(self, codes=codes, duals=duals)

    def staying(self, most: int) -> NDArray[np.bool_]:
        """Mask (m,) of the rows that stay when at most ``most`` are kept.

        Faint rows leave. Of the others unlabeled ones leave first, then those of the largest class,
        so that no class is lost. Among equals the reservoir priority decides: what stays is a
        random sample of all that came, whatever its order, and light rows are likelier to leave.
        """
        stays = ~self.faint
        surplus = int(stays.sum()) - most
        if surplus > 0:
            rank = np.where(self.labeled, self._better_of_class(stays), 0)
            order = np.lexsort((self._priority, -rank, self.labeled))
            stays[order[stays[order]][:surplus]] = False
        return stays

    @property
    def _priority(self) -> Array:
        """Reservoir priorities (m,): the rows with the k largest are a weighted sample."""
        lots = np.log(np.maximum(self.lots, np.finfo(float).tiny))
        return np.divide(lots, self.heavy, out=np.full(len(self), -np.inf), where=~self.faint)

    def _better_of_class(self, among: NDArray[np.bool_]) -> NDArray[np.intp]:
        """Return how many of some rows have the same class and a higher priority (m,)."""
        group = self.codes if self.codes.ndim == 1 else self.labeled.astype(np.intp)
        order = np.argsort(-self._priority, kind="stable")
        order = order[among[order]]
        better = np.zeros(len(self), dtype=np.intp)
        for k in np.unique(group):
            members = order[group[order] == k]
            better[members] = np.arange(len(members))
        return better
