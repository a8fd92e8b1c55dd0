"""A factorization of data of which not all is known: masks, NaN, and what fills the gaps."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from marginparts._types import Array, Data, Samples, Targets
from marginparts.estimators._base import PartsTransformer
from marginparts.labels import Labels
from marginparts.rows.base import Elsewhere
from marginparts.solve.gaps import AllBut, Missing, filled, masked
from marginparts.validation import check_mass


class GapsTransformer(PartsTransformer):
    """A `PartsTransformer` whose samples may have gaps.

    A subclass has a `_coefficients` that takes what is missing.
    """

    missing: str | None

    def _coefficients(self, X: Data, missing: Missing = None) -> Array:
        """Return H (n, r) for trusted data, from what is known of it."""
        raise NotImplementedError

    def _masked(self, X: Any, mask: Any) -> tuple[Any, Missing]:
        """Return data, and what is missing of it by a mask or by the parameter."""
        if mask is None:
            return X, self.missing
        if isinstance(X, Elsewhere):
            raise ValueError("mask needs X in memory, and not rows on disk or on a cluster.")
        X, missing = masked(X, mask, self.missing)
        check_mass(X, type(self).__name__)
        return X, missing

    def _check_missing(self, X: Data | Elsewhere, labels: Labels | None, missing: Missing) -> None:
        """Refuse what does not go with data of which not all is known."""
        if missing is None:
            return
        if isinstance(X, Elsewhere):
            raise ValueError("missing needs X in memory, and not rows on disk or on a cluster.")
        if self.output in ("projection", "mixed"):
            raise ValueError(
                f"output={self.output!r} needs whole rows; where some of them is missing use "
                '"gram" or "coefficients".'
            )
        if missing != "nan" and labels is not None and labels.labeled.any():
            raise ValueError(
                'The classifiers behind the directions need whole rows, and missing="zeros" or a '
                'sparse mask leaves too little of them; fit without y, or use missing="nan".'
            )

    def transform(
        self, X: Samples, *, mask: Any = None, out: str | os.PathLike[str] | None = None
    ) -> Array:
        """Express samples in the learned parts; labels never enter.

        Parameters
        ----------
        X : (n, d) array or sparse matrix, RowBlocks or Dask array
            Rows on disk are mapped a block at a time; a Dask array gives a lazy one.
        mask : (n, d) array or sparse array of bool, or None
            True where an entry is known, as for `fit`; for X in memory.
        out : path or None
            An ``.npy`` file to write the codes to.

        Returns
        -------
        (n, r) array
            Z (eq. 5) with ``output="gram"``, H with ``output="coefficients"``, the weighted row in
            a basis of the parts' span with ``output="projection"``; with ``output="mixed"`` (n, 2r)
            that, of length 1, beside the roots of the parts' shares. A row depends on its own
            sample alone. With ``out`` it is a memory map of that file.
        """
        if mask is None:
            return super().transform(X, out=out)
        if out is not None:
            raise ValueError("mask and out do not go together.")
        check_is_fitted(self)
        X, missing = self._masked(self._check_data(X, reset=False), mask)
        self._check_missing(X, None, missing)
        return self._codes(X, missing=missing)

    def fit_transform(self, X: Samples, y: Targets | None = None, **fit_params: Any) -> Array:
        """Fit and map the same samples, exactly as `fit` and `transform`, both with the mask."""
        return self.fit(X, y, **fit_params).transform(X, mask=fit_params.get("mask"))

    def fill(self, X: Samples, *, mask: Any = None) -> Data:
        """Return samples with their gaps filled from the parts; sparse X stays sparse.

        Parameters
        ----------
        X : (n, d) array or sparse matrix
            With NaN in the gaps, where ``missing="nan"``.
        mask : (n, d) array of bool or None
            True where an entry is known.

        Returns
        -------
        (n, d) array or CSR array

        Examples
        --------
        >>> import numpy as np
        >>> from marginparts import NMFAlpha
        >>> X = np.outer([1.0, 2.0, 3.0], [1.0, 2.0, 4.0])
        >>> X[2, 2] = np.nan
        >>> parts = NMFAlpha(1, missing="nan", map_iter=None, random_state=0).fit(X)
        >>> round(float(parts.fill(X)[2, 2]), 1)
        12.0
        """
        check_is_fitted(self)
        X, missing = self._masked(self._check_data(X, reset=False), mask)
        if missing == "zeros" or isinstance(missing, AllBut) or isinstance(X, Elsewhere):
            raise ValueError(
                "fill needs X in memory, of which most is known; otherwise "
                "inverse_transform(transform(X)) has all of it, as a dense array."
            )
        if not np.isnan(X.data if sp.issparse(X) else X).any():
            return X
        return filled(X, self._coefficients(X, missing), self.components_)
