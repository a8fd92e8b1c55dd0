"""Linear classifiers in the latent space that also learn from their own answers.

Both begin with the labels, answer for the unlabeled rows, and are trained again with these answers
at a small cost that grows from round to round, as a transductive SVM does. With few dimensions a
round is one small linear system for all classes (least squares), or a few steps of L-BFGS (logistic
regression): a hundred times faster than a transductive SVM on the inputs. The first suits texts,
whose classes are many small clouds; the second suits dense data.

How many rows each class has is taken from the labels when they say it. Labels of which every class
has the same number were drawn class by class, and say nothing: then the answers say it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import softmax

from marginparts._types import Array
from marginparts.labels import UNKNOWN

#: Classes by number, UNKNOWN for rows without a label.
Codes = NDArray[np.int64]

#: Costs of the unlabeled rows: the first and the last share of their final value, in some rounds.
_FIRST, _ROUNDS = 0.01, 8

#: The penalty of the constant, as a share of that of the other coefficients: it is all but free.
_RIDGE_CONSTANT, _LOGISTIC_CONSTANT = 1e-3, 1e-2

#: Steps of balancing the classes, and how firmly answers are believed (a temperature).
_BALANCING, _SHARPNESS = 20, 0.05

#: When at least this share of the classes has as many labels as any, give or take one, they were
#: drawn class by class; and by which factor the classes' shares may then move.
_EQUAL, _FREEDOM = 0.8, 1.3

#: By how much first answers may err in the logarithm of a class's share, with one label a class.
_DOUBT = 1.4


def class_shares(codes: Codes, c: int) -> Array | None:
    """Return the share of rows (c,) that each class is believed to have; None if labels cannot say.

    Codes are those of the labeled rows, of which each class has one.
    """
    counts = np.bincount(codes, minlength=c)
    if counts.max() > 1 and np.mean(counts >= counts.max() - 1) >= _EQUAL:
        return None
    return np.asarray((counts + 0.5) / (counts + 0.5).sum())


class Balance:
    """Keeps the answers for unlabeled rows near the classes' shares.

    Where the labels do not say what these are, those of the first answers are taken, and later ones
    may differ from them by a factor of 1.3: left free, one class can take all. Dense rows have so
    much in common that first answers lean to one class or another by chance. There equal shares are
    taken where first answers from so few labels do not speak against them.
    """

    def __init__(self, codes: Codes, c: int, *, dense: bool = False) -> None:
        self._known, self._first = class_shares(codes, c), np.empty(0)
        self._doubt = _DOUBT * np.sqrt(c / len(codes)) if dense else 0.0

    def __call__(self, Q: Array) -> Array:
        """Return probabilities (n, c) that have the shares on average."""
        if self._known is not None:
            return balanced(Q, self._known)
        counts = np.bincount(Q.argmax(axis=1), minlength=Q.shape[1]) + 0.01 * len(Q)
        shares = counts / counts.sum()
        if not len(self._first):
            self._first, c = shares, len(shares)
            if np.abs(np.log(c * shares)).max() < self._doubt:
                self._known = np.full(c, 1 / c)
                return balanced(Q, self._known)
        shares = np.clip(shares, self._first / _FREEDOM, self._first * _FREEDOM)
        return balanced(Q, shares / shares.sum())


def balanced(Q: Array, shares: Array) -> Array:
    """Scale the columns of probabilities (n, c) until classes have their shares on average."""
    Q = Q + 1e-12
    scale = np.ones(Q.shape[1])
    for _ in range(_BALANCING):
        # the mean over rows of Q * scale / (its sum over classes), without writing that down
        mean = scale * ((1 / (Q @ scale)) @ Q) / len(Q)
        scale *= shares / (mean + 1e-9)
    Q *= scale
    return np.asarray(Q / Q.sum(axis=1, keepdims=True))


def least_squares_values(
    Z: Array, codes: Codes, c: int, ridge: float = 0.1, *, dense: bool = False
) -> Array:
    """Return decision values (n, c) of ridge regression on its own answers.

    Z (n, q) are the rows, codes (n,) their classes where known; each class has a labeled row.
    ``dense`` says whether the rows were dense before they had few dimensions (`Balance`).
    """
    A, known, Y, balance = _begin(Z, codes, c, dense=dense)
    penalty = ridge_penalty(A.shape[1], ridge)
    if known.all():
        return np.asarray(A @ np.linalg.solve(A.T @ A + np.diag(penalty), A.T @ Y))
    B = weighted_ridge(A, known.astype(np.float64), Y, penalty)
    for weights in growing_weights(known):
        Q = softmax(A @ B / _SHARPNESS, axis=1)
        Q[~known] = balance(Q[~known])
        Q[known] = Y[known]
        B = weighted_ridge(A, weights, Q, penalty)
    return np.asarray(A @ B)


def growing_weights(labeled: NDArray[np.bool_]) -> Iterator[Array]:
    """Yield weights of rows (n,) for one fit after the other: unlabeled ones count more and more.

    The fewer rows are labeled, the less the others count in the end.
    """
    last = 0.1 * min(1.0, 10 * np.sqrt(labeled.sum() / max(np.sum(~labeled), 1)))
    for level in np.geomspace(_FIRST, 1, _ROUNDS):
        for _ in range(3):
            yield np.where(labeled, 1.0, level * last)


def with_constant(Z: Array) -> Array:
    """Return rows (n, q) with a last column of ones."""
    return np.hstack([Z, np.ones((len(Z), 1))])


def ridge_penalty(q: int, ridge: float, constant: float = _RIDGE_CONSTANT) -> Array:
    """Return the penalty (q,) of coefficients, of which the last is that of the constant."""
    penalty = np.full(q, ridge)
    penalty[-1] *= constant
    return penalty


def logistic_penalty(q: int, ridge: float) -> Array:
    """Return the penalty (q, 1) of logistic regression for several classes or labels."""
    return ridge_penalty(q, ridge, _LOGISTIC_CONSTANT)[:, None]


def weighted_ridge(A: Array, weights: Array, Q: Array, penalty: Array) -> Array:
    """Return B (q, c) of the least squares fit ``A B`` to Q (n, c), rows weighted, B penalized."""
    gram = A.T @ (weights[:, None] * A)
    gram[np.diag_indices_from(gram)] += penalty
    return np.linalg.solve(gram, A.T @ (weights[:, None] * Q))


def logistic_values(
    Z: Array, codes: Codes, c: int, ridge: float = 0.03, *, rounds: int = 6, dense: bool = False
) -> Array:
    """Return decision values (n, c) of logistic regression on its own, sharpened answers.

    As `least_squares_values`; with no rounds it is logistic regression on the labeled rows.
    """
    A, known, Y, balance = _begin(Z, codes, c, dense=dense)
    B = _logistic_fit(A[known], np.ones(known.sum()), Y[known], ridge, None, 100)
    if known.all():
        return np.asarray(A @ B)
    unlabeled = min(1.0, np.sqrt(known.sum() / np.sum(~known)))
    for level in np.geomspace(_FIRST, 1, rounds):
        for _ in range(2):
            Q = softmax(A @ B, axis=1)
            Q[~known] = balance(Q[~known])
            sharp = np.eye(c)[Q.argmax(axis=1)]
            sharp[known] = Y[known]
            B = _logistic_fit(A, np.where(known, 1.0, level * unlabeled), sharp, ridge, B, 8)
    return np.asarray(A @ B)


def _begin(
    Z: Array, codes: Codes, c: int, *, dense: bool
) -> tuple[Array, NDArray[np.bool_], Array, Balance]:
    """Return the rows with a constant, which are labeled, their classes as 0 and 1, the balance."""
    known = codes != UNKNOWN
    Y = np.zeros((len(codes), c))
    Y[known, codes[known]] = 1
    return with_constant(Z), known, Y, Balance(codes[known], c, dense=dense)


def _logistic_fit(
    A: Array, weights: Array, Q: Array, ridge: float, start: Array | None, steps: int
) -> Array:
    """Fit ``softmax(A B)`` to probabilities Q (n, c) of weighted rows; return B (q, c)."""
    shape = (A.shape[1], Q.shape[1])
    penalty = logistic_penalty(shape[0], ridge)
    w = weights[:, None]
    goal = w * Q

    def loss(b: Array) -> tuple[float, Array]:
        B = b.reshape(shape)
        values = A @ B
        values -= values.max(axis=1, keepdims=True)
        fit = np.sum(goal * values)
        P = np.exp(values, out=values)
        total = P.sum(axis=1, keepdims=True)
        fit -= np.sum(goal.sum(axis=1, keepdims=True) * np.log(total))
        P *= w / total
        gradient = A.T @ (P - goal) + penalty * B
        return float(0.5 * np.sum(penalty * B * B) - fit), gradient.ravel()

    begin = np.zeros(shape) if start is None else start
    found = minimize(loss, begin.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": steps})
    return np.asarray(found.x.reshape(shape))
