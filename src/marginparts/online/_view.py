"""What a stream has to say at one moment: parts, codes, and the SVM on them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from marginparts._types import Array, Data
from marginparts.backends import Backend
from marginparts.labels import Labels
from marginparts.recipe import HeadSpec
from marginparts.selection.folds import folds_of
from marginparts.solve.map import gram_root, map_rows
from marginparts.svm.head import Head, fit_head

#: Labeled rows on which lengths of codes are compared, at most, and the folds.
_COMPARED, _FOLDS = 1000, 2


@dataclass(frozen=True, eq=False)
class View:
    """Parts, and labeled rows to learn the last SVM from."""

    V: Array  # (d, r), each column sums to one
    X: sp.csr_array  # (m, d): the labeled rows at hand, in the units of the stream's user
    labels: Labels
    map_iter: int | None
    spec: HeadSpec  # ``normalize`` is None for what predicts hidden labels better
    backend: str | Backend

    @cached_property
    def gram_root(self) -> Array:
        """Turns H into Z (eq. 5), (r, r)."""
        return gram_root(self.V)

    @cached_property
    def head(self) -> Head:
        """The SVM on the present codes: parts move, so it is trained when it is asked for."""
        return fit_head(self.codes(self.X), self.labels, self.spec.C, normalize=self.normalized)

    @cached_property
    def normalized(self) -> bool:
        """Whether the SVM sees each code with length 1, or all codes scaled alike."""
        if self.spec.normalize is not None:
            return self.spec.normalize
        m = self.X.shape[0]
        some = np.linspace(0, m - 1, min(m, _COMPARED)).astype(int)  # of all times
        folds = folds_of(self.labels.take(some), seed=0, n_splits=_FOLDS)
        if not folds:
            return True
        Z = self.codes(self.X[some])
        each, alike = (
            np.mean([fold.score(Z, self.spec.C, normalize=choice) for fold in folds])
            for choice in (True, False)
        )
        return bool(each >= alike)

    def codes(self, X: Data) -> Array:
        """Return Z (n, r) of checked data."""
        H = map_rows(X.astype(self.V.dtype, copy=False), self.V, self.map_iter, self.backend)
        return np.asarray(H @ self.gram_root, dtype=X.dtype)
