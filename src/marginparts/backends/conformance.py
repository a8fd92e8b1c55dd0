"""What every backend must do, checked against the reference: for whoever writes a new one."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.testing import assert_allclose
from numpy.typing import DTypeLike

from marginparts._types import Array, Data, Step
from marginparts.backends.base import Also, Backend, Plus
from marginparts.backends.reference import ReferenceBackend

_LAM = 0.7


class _Case(NamedTuple):
    """Data X (n, d), its margin components, factors A (n, r) and B (d, r), HS and T (2p, r)."""

    X: Data
    S: Data
    XS: Data
    A: Array
    B: Array
    HS: Array
    T: Array


def check_backend(backend: Backend) -> None:
    """Hold a backend against the reference, kernel by kernel.

    On dense and sparse data of either type, on odd shapes, with empty rows and columns, and with a
    feature that no part explains.

    Parameters
    ----------
    backend : Backend

    Raises
    ------
    AssertionError
        Something differs by more than rounding; the message says what, and on which data.

    Examples
    --------
    >>> from marginparts.backends import get_backend
    >>> check_backend(get_backend("numba"))
    """
    types, shapes = ((np.float64, 1e-10), (np.float32, 5e-4)), ((1, 1), (1, 9), (13, 1), (13, 11))
    for (dtype, rtol), sparse, shape in product(types, (False, True), shapes):
        where = f"{'sparse' if sparse else 'dense'} {np.dtype(dtype)} data of shape {shape}"
        where = f"backend {backend.name!r}, {where}"
        _Comparison(backend, _case(shape, dtype, sparse), rtol, where).run()


def _case(shape: tuple[int, int], dtype: DTypeLike, sparse: bool, r: int = 3) -> _Case:
    rng, (n, d) = np.random.default_rng(0), shape
    X = rng.random(shape) * (rng.random(shape) < 0.6)
    X[0, 0] = 0.5
    S = rng.random((n, 4)) * (np.arange(n) % 3 == 0)[:, None]
    if min(shape) > 1:
        X[1], X[:, 2] = 0, 0
    XS = S.T @ X
    factors = (rng.random((m, r)) + 0.1 for m in (n, d, 4, 4))
    X, XS, A, B, HS, T = (M.astype(dtype) for M in (X, XS, *factors))
    kind = sp.csr_array if sparse else np.ascontiguousarray
    return _Case(kind(X), sp.csr_array(S.astype(dtype)), kind(XS), A, B, HS, T)


class _Comparison:
    """A backend and the reference on the same case."""

    def __init__(self, backend: Backend, case: _Case, rtol: float, where: str) -> None:
        self.backend, self.case, self.rtol, self.where = backend, case, rtol, where
        self.P = backend.prepare(case.X)
        self.A, self.B = backend.factor(case.A, rows_of=self.P), backend.factor(case.B)

    def run(self) -> None:
        assert self.P.shape == self.case.X.shape, f"{self.where}: shape of a prepared matrix"
        self._same("release", self.A, self.case.A)
        self._check_kernels()
        self._check_updates()
        self._check_feature_without_fit()

    def _same(self, what: str, found: Array, expected: Array) -> None:
        found = self.backend.release(found, self.case.A.shape[1])
        assert found.dtype == self.case.A.dtype, f"{self.where}: type of {what}"
        self._close(what, found, expected)

    def _close(self, what: str, found: Array | float, expected: Array | float) -> None:
        message = f"{self.where}: {what}"
        assert_allclose(found, expected, rtol=self.rtol, atol=1e-30, err_msg=message)

    def _same_step(self, block: str, found: Step, expected: Step) -> None:
        self._same(f"half_step of {block}", found.factor, expected.factor)
        self._close(f"violation of {block}", found.violation or 0.0, expected.violation or 0.0)

    def _check_kernels(self) -> None:
        backend, oracle, (X, _, _, A, B, _, _) = self.backend, ReferenceBackend(), self.case
        ratio = backend.ratio_matmul(self.P, self.A, self.B)
        self._same("ratio_matmul of X", ratio, oracle.ratio_matmul(X, A, B))
        ratio = backend.ratio_matmul(self.P.T, self.B, self.A)
        self._same("ratio_matmul of X.T", ratio, oracle.ratio_matmul(X.T, B, A))
        divergence = backend.divergence(self.P, self.A, self.B)
        self._close("divergence", divergence, oracle.divergence(X, A, B))

    def _check_updates(self) -> None:
        """The update of V with its margin term (eq. 15), and that of H with its own (eq. 16)."""
        backend, oracle, (X, S, XS, A, B, HS, T) = self.backend, ReferenceBackend(), self.case
        s, sums = S @ np.ones(4), oracle.column_sums
        P2 = backend.prepare(XS, like=self.P).T
        step = backend.half_step(
            self.P.T, self.B, self.A, backend.column_sums(self.A), gauge=True,
            also=Also(P2, backend.factor(HS), _LAM),
        )  # fmt: skip
        known = oracle.half_step(X.T, B, A, sums(A), also=Also(XS.T, HS, _LAM), gauge=True)
        self._same_step("V", step, known)
        C = backend.coefficients(S, rows_of=self.P)
        step = backend.half_step(
            self.P, self.A, self.B, backend.column_sums(self.B), gauge=True,
            weight=1 + _LAM * (C @ np.ones(4)), plus=Plus(C, backend.factor(T), _LAM),
        )  # fmt: skip
        known = oracle.half_step(
            X, A, B, sums(B), weight=1 + _LAM * s, plus=Plus(S, T, _LAM), gauge=True
        )
        self._same_step("H", step, known)
        ahead = backend.ahead(step.factor, self.A, 0.5, 0.1)
        known_ahead = oracle.ahead(known.factor, A, 0.5, 0.1)
        self._same("ahead", ahead, known_ahead)
        if backend.can_shrink:
            ahead, total = backend.ahead_and_sums(step.factor, ahead, 0.5, 0.1)
            known_ahead = oracle.ahead(known.factor, known_ahead, 0.5, 0.1)
            self._same("ahead_and_sums", ahead, known_ahead)
            self._close("sums ahead", total[: A.shape[1]], sums(known_ahead))  # maybe padded

    def _check_feature_without_fit(self) -> None:
        """Where a.b is 0 an entry of X counts for nothing in an update; the loss is infinite."""
        backend, (X, _, _, A, B, _, _) = self.backend, self.case
        B = B.copy()
        B[0] = 0  # X[0, 0] is positive
        known = ReferenceBackend().ratio_matmul(X, A, B)
        A, B = backend.factor(A, rows_of=self.P), backend.factor(B)
        self._same("ratio_matmul with a.b = 0", backend.ratio_matmul(self.P, A, B), known)
        infinite = backend.divergence(self.P, A, B) == np.inf
        assert infinite, f"{self.where}: the divergence must be infinite where a.b = 0 and x > 0"
