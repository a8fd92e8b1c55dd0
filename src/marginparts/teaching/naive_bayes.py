"""Multinomial naive Bayes that also learns from unlabeled rows by EM (Nigam et al. 2000).

A row of counts x is drawn from the words of its class: ``p(x | k) ~ prod_j theta_kj^x_j``. Rows
without a label take part with the probability of each class, which the last model gives them, times
a weight. With ``weight = 0``, or with all labels known, it is multinomial naive Bayes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import logsumexp

from marginparts._types import Data
from marginparts.labels import Labels

Matrix = NDArray[np.float64]

#: Rounds of EM at most, and the rise of the log-likelihood (a share of it) that ends them.
_ROUNDS, _TOL = 30, 1e-5


class NaiveBayes(NamedTuple):
    """Log-probabilities of the classes (c,) and of the words in each (c, d).

    ``curve`` has the log of the posterior density of the parameters after each round of EM, up to
    a constant: it never falls.
    """

    log_prior: Matrix
    log_words: Matrix
    curve: tuple[float, ...] = ()

    def joint(self, X: Data) -> Matrix:
        """Return the log-probability of each row with each class (n, c)."""
        return np.asarray(X @ self.log_words.T) + self.log_prior


def fit_naive_bayes(
    X: Data, Y: Matrix, unlabeled: Data | None = None, *, weight: float = 1.0, alpha: float = 1.0
) -> NaiveBayes:
    """Learn from labeled rows X (m, d), and by EM from unlabeled ones (u, d).

    Y (m, c) has the probability of each class for each labeled row; 0 and 1 for known labels. An
    unlabeled row counts ``weight``, beside 1 for a labeled one, and ``alpha`` is added to the
    count of every word in every class.
    """
    counts, rows = np.asarray((X.T @ Y).T), Y.sum(axis=0)
    model = _model(counts, rows, alpha)
    if unlabeled is None or not unlabeled.shape[0] or weight == 0:
        return model
    curve: list[float] = []
    for _ in range(_ROUNDS):
        joint = model.joint(unlabeled)
        whole = logsumexp(joint, axis=1, keepdims=True)
        fit = np.sum(Y * model.joint(X)) + weight * whole.sum()
        curve.append(float(fit + alpha * model.log_words.sum()))
        if len(curve) > 1 and curve[-1] - curve[-2] <= _TOL * abs(curve[-1]):
            break
        guess = weight * np.exp(joint - whole)
        expected = counts + np.asarray((unlabeled.T @ guess).T)
        model = _model(expected, rows + guess.sum(axis=0), alpha)
    return model._replace(curve=tuple(curve))


def _model(counts: Matrix, rows: Matrix, alpha: float) -> NaiveBayes:
    """Return the most probable parameters for (expected) counts of words and of rows."""
    smooth = counts + alpha
    with np.errstate(divide="ignore"):  # a class without rows is never predicted
        log_prior = np.log(rows / rows.sum())
    return NaiveBayes(log_prior, np.log(smooth) - np.log(smooth.sum(axis=1, keepdims=True)))


def naive_bayes_values(
    X: Data, labels: Labels, others: list[Data], *, weight: float, alpha: float
) -> list[Matrix]:
    """Learn from all rows of X, whose labels are partly known; judge other rows.

    Returns log-odds for two classes (k, 1) and for each label of multilabel data (k, p); else the
    log-probability of each class. See `fit_naive_bayes`.
    """
    X = X.astype(np.float64)
    if labels.multilabel:
        columns = [
            _two_sided(X, labels.codes[:, k], others, weight, alpha)
            for k in range(len(labels.classes))
        ]
        return [np.hstack(each) for each in zip(*columns, strict=True)]
    if len(labels.classes) == 2:
        return _two_sided(X, labels.codes, others, weight, alpha)
    model = _fit_codes(X, labels.codes, len(labels.classes), weight, alpha)
    return [model.joint(rows) for rows in others]


def _two_sided(
    X: Data, codes: NDArray[np.int64], others: list[Data], weight: float, alpha: float
) -> list[Matrix]:
    """Return the log-odds of code 1 against code 0, or the sign of the only one there is."""
    known = codes[codes >= 0]
    if len(np.unique(known)) < 2:
        sign = 1.0 if len(known) and known[0] == 1 else -1.0
        return [np.full((rows.shape[0], 1), sign) for rows in others]
    model = _fit_codes(X, codes, 2, weight, alpha)
    return [np.diff(model.joint(rows), axis=1) for rows in others]


def _fit_codes(
    X: Data, codes: NDArray[np.int64], n_classes: int, weight: float, alpha: float
) -> NaiveBayes:
    known = np.flatnonzero(codes >= 0)
    Y = np.eye(n_classes)[codes[known]]
    unknown = np.flatnonzero(codes < 0)
    rest = X[unknown] if len(unknown) else None
    X = sp.csr_array(X) if sp.issparse(X) else X
    return fit_naive_bayes(X[known], Y, rest, weight=weight, alpha=alpha)
