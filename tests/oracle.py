"""Slow transcriptions of the paper, and the small random cases that the tests share.

The transcriptions keep the paper's orientation (samples are columns: ``X`` is d x n, ``H`` is
r x n) and its sums, index by index. Nothing here is shared with the package.
"""

from __future__ import annotations

import os
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

#: The backends under test are a decision: an absent one is an error, not a silent skip.
BACKENDS = os.environ.get("MARGINPARTS_TEST_BACKENDS", "reference,numba").split(",")

#: How data can be stored.
KINDS = {"dense": np.asarray, "csr": sp.csr_array}


class Case(NamedTuple):
    """Samples in rows: X (n, d), S (n, 2p), H (n, r), V (d, r), all dense float64."""

    X: np.ndarray
    S: np.ndarray
    H: np.ndarray
    V: np.ndarray


def make_case(seed, n=9, d=7, r=3, columns=4, density=0.8) -> Case:
    """A random problem whose rows and columns of X all have mass; half of S's rows are zero."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, d)) * (rng.random((n, d)) < density)
    X[np.arange(n), np.arange(n) % d] += 0.1
    X[np.arange(d) % n, np.arange(d)] += 0.1
    S = rng.random((n, columns)) * (rng.random((n, columns)) < 0.7)
    S[n // 2 :] = 0
    H, V = rng.random((n, r)) + 0.1, rng.random((d, r)) + 0.1
    return Case(X, S, H, V)


def product(A, B):
    """``A @ B`` by its definition."""
    rows, inner, columns = range(A.shape[0]), range(A.shape[1]), range(B.shape[1])
    return np.array([[sum(A[i, k] * B[k, j] for k in inner) for j in columns] for i in rows])


def eq_2(X, F):
    """The I-divergence D(X, F), with 0 log 0 = 0."""
    total = 0.0
    for x, f in zip(np.ravel(X), np.ravel(F), strict=True):
        total += (x * np.log(x / f) if x > 0 else 0.0) - x + f
    return total


def eq_14(X, V, H, S, lam):
    """The loss of NMF-alpha."""
    VH = product(V, H)
    return eq_2(X, VH) + lam * eq_2(product(X, S), product(VH, S))


def eq_15(X, V, H, S, lam):
    """The new V."""
    (d, n), r, L = X.shape, V.shape[1], S.shape[1]
    VH, XS, HS = product(V, H), product(X, S), product(H, S)
    VHS = product(V, HS)
    new = np.empty_like(V)
    for i in range(d):
        for k in range(r):
            data = sum(X[i, j] * H[k, j] / VH[i, j] for j in range(n) if X[i, j] > 0)
            margin = sum(XS[i, m] * HS[k, m] / VHS[i, m] for m in range(L) if XS[i, m] > 0)
            mass = sum(H[k, j] for j in range(n)) + lam * sum(HS[k, m] for m in range(L))
            new[i, k] = V[i, k] * (data + lam * margin) / mass
    return new


def eq_16(X, V, H, S, lam):
    """The new H."""
    (d, n), r, L = X.shape, V.shape[1], S.shape[1]
    VH, XS = product(V, H), product(X, S)
    VHS = product(VH, S)
    new = np.empty_like(H)
    for k in range(r):
        for j in range(n):
            data = sum(X[i, j] * V[i, k] / VH[i, j] for i in range(d) if X[i, j] > 0)
            margin = sum(
                XS[i, m] * V[i, k] * S[j, m] / VHS[i, m]
                for i in range(d)
                for m in range(L)
                if XS[i, m] > 0
            )
            mass = sum(V[i, k] for i in range(d))
            margin_mass = sum(V[i, k] * S[j, m] for i in range(d) for m in range(L))
            new[k, j] = H[k, j] * (data + lam * margin) / (mass + lam * margin_mass)
    return new


def coordinate_sweep(X, A, B, den, weight, also=None, pulls=None):
    """Coordinate descent over the rows of A, entry by entry, on the rows of X and of ``also``.

    ``also`` is (X2, B2, weight2); ``pulls`` (n, r) are weights of further terms -log a.
    """
    A = A.copy()
    for i in range(A.shape[0]):
        rows = [(x, B[j]) for j, x in enumerate(X[i]) if x > 0]
        if also is not None:
            rows += [(also[2] * x, also[1][j]) for j, x in enumerate(also[0][i]) if x > 0]
        for k in range(A.shape[1]):
            a, u = A[i, k], weight[i] * den[k]
            pull = 0.0 if pulls is None else pulls[i, k]
            g = sum(x * b[k] / sum(A[i] * b) for x, b in rows) + pull / a
            h = sum(x * b[k] ** 2 / sum(A[i] * b) ** 2 for x, b in rows) + pull / a**2
            if g >= u:
                A[i, k] = a + (g / h) * (g / u - 1)
            else:
                A[i, k] = a * a * h / (a * h + u - g)
    return A


def paper_updates(case: Case, lam, n_iter):
    """Run eq. 15, then eq. 16, ``n_iter`` times; return H and V with samples in rows."""
    X, S, H, V = case.X.T, case.S, case.H.T, case.V
    for _ in range(n_iter):
        V = eq_15(X, V, H, S, lam)
        H = eq_16(X, V, H, S, lam)
    return H.T, V


def primal_svm(X, y, C, sample_weight=None):
    """The weight vector of scikit-learn's LinearSVC (squared hinge, no bias), solved tightly."""
    from sklearn.svm import LinearSVC

    svm = LinearSVC(C=C, fit_intercept=False, dual=False, tol=1e-10, max_iter=100_000)
    return svm.fit(X, y, sample_weight=sample_weight).coef_[0]
