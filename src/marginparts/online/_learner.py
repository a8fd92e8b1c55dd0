"""The online learner behind the directions: one passive-aggressive classifier a class.

It sees the square roots of a sample, in a row of length 1, so that its steps mean the same for any
data and nothing about the stream's units need be known. Its steps are the dual coefficients: of
``w = sum_i alpha_i y_i x_i``, the positive samples give w+ and the others w- (eqs. 6-9).
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginparts._types import Array
from marginparts.labels import UNKNOWN, Labels
from marginparts.online._rows import Rows
from marginparts.solve.map import row_lengths
from marginparts.svm.pseudo_labels import with_surest
from marginparts.weighting import hellinger

#: The longest step of PA-I, and the most that the steps of one row add up to. A row of length 1
#: that is on the wrong side asks for one or more.
_LONGEST = 1.0

#: The share of the unlabeled rows of each predicted class whose predictions are taken for labels.
_SUREST = 0.5


def learn(rows: Rows, W: Array, order: NDArray[np.intp]) -> tuple[Array, Array]:
    """Go once over the labeled rows: those that came before are seen again.

    Otherwise a learner would keep to the classes that came last, and one that begins late would
    never see those that came first. A class's learner begins with the batch that brings its first
    sample, so that it makes no difference whether the class was declared before. Rows come in the
    given order (m,). Returns dual coefficients (m, c) and weight vectors (c, d), one a class,
    moved on from those of the rows and W.
    """
    from marginparts.svm._perceptrons import online_duals

    W, signs = W.copy(), signs_of(rows.codes, len(W))
    seen, duals = hellinger(rows.X), rows.duals.copy()
    order = order[~rows.faint[order]]
    for k in np.flatnonzero(W.any(axis=1) | (signs > 0).any(axis=0)):
        # duals are kept as if all rows counted 1; a faded row takes its share of a step
        longest = rows.heavy * np.maximum(_LONGEST - duals[:, k], 0)
        steps = online_duals(
            seen.indptr, seen.indices, seen.data, np.ascontiguousarray(signs[:, k]),
            order[signs[order, k] != 0], True, False, longest, W[k],
        )  # fmt: skip
        duals[:, k] += np.divide(steps, rows.heavy, out=np.zeros(len(rows)), where=~rows.faint)
    return duals, W


def signs_of(codes: NDArray[np.int64], c: int) -> Array:
    """Return one against the rest (m, c): 1, -1, and 0 where nothing is known."""
    if codes.ndim == 2:
        return np.where(codes == UNKNOWN, 0.0, np.where(codes == 1, 1.0, -1.0))
    signs = np.where(codes[:, None] == np.arange(c), 1.0, -1.0)
    return np.where((codes == UNKNOWN)[:, None], 0.0, signs)


def own_directions(rows: Rows) -> sp.csr_array:
    """Return S (m, 2c) of the labels alone: all plus columns, then all minus columns."""
    return _gathered(rows, signs_of(rows.codes, rows.duals.shape[1]), rows.duals)


def directions_of(rows: Rows, W: Array, *, pseudo: bool) -> sp.csr_array:
    """Return S (m, 2c) of rows that the learners W (c, d) have seen.

    With ``pseudo`` the unlabeled rows of which the learner is surest count, too, by the step that
    it would take for them; it does not take it.
    """
    begun = np.asarray(W.any(axis=1))
    if not pseudo or begun.sum() < 2 or rows.labeled.all():
        return own_directions(rows)
    signs = signs_of(rows.codes, len(W))
    values = np.asarray(hellinger(rows.X) @ W.T)
    filled = signs_of(_surest(rows.codes, values, begun), len(W))
    guessed = np.where((signs == 0) & begun, filled, 0)
    steps = np.clip(1 - guessed * values, 0, _LONGEST)
    return _gathered(rows, signs + guessed, np.where(guessed != 0, steps, rows.duals))


def _gathered(rows: Rows, signs: Array, duals: Array) -> sp.csr_array:
    """Return S from signs (m, c) and dual coefficients (m, c)."""
    lengths = row_lengths(rows.X)
    # the learner saw rows of length 1, and the coefficients are for those of X
    carry = np.divide(1.0, lengths, out=np.zeros(len(lengths)), where=lengths > 0)
    duals = duals * carry[:, None]
    return sp.csr_array(np.hstack([duals * (signs > 0), duals * (signs < 0)]))


def _surest(codes: NDArray[np.int64], values: Array, begun: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the labels with the surest of the unknown ones filled in, by the learners' values."""
    c = len(begun)
    if codes.ndim == 1:
        # classes that nobody has seen are not predicted. There is always one more of them, so that
        # two classes are compared like many: their learners may have begun at different times
        unseen = np.full((len(values), 1), values.min() - 1)
        values, c = np.hstack([np.where(begun, values, unseen), unseen]), c + 1
    return with_surest(Labels(np.arange(c), codes), values, _SUREST).codes
