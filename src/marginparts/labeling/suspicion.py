"""Labels that may be wrong: those that the others speak against.

What is believed of a labeled sample while its own label is hidden is the evidence: how improbable
the label is that was given.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from marginparts._types import Array
from marginparts.labeling.learning import HeldOut
from marginparts.labels import Labels

#: The least probability that is believed.
_LEAST = 1e-6


class Suspect(NamedTuple):
    """A row whose label is doubted: how strongly, and the number of the label that others say."""

    row: int
    evidence: float
    instead: int


def suspects(held: HeldOut, labels: Labels) -> list[Suspect]:
    """Return the labeled rows whose label is less probable than another, the worst first.

    The only sample of a label is never doubted: while it is hidden, nothing can speak for it.
    Where there are several labels, ``instead`` is the one that is given and should not be, or the
    other way round.
    """
    codes = labels.codes[held.rows]
    evidence, instead = evidence_of(held.even, codes)
    order = np.argsort(-evidence, kind="stable")
    firm = evidence > np.log(2)
    if not labels.multilabel:
        firm = held.even[np.arange(len(codes)), instead] > np.exp(-evidence)
        firm &= np.bincount(codes, minlength=len(labels.classes))[codes] > 1
    return [
        Suspect(int(held.rows[k]), float(evidence[k]), int(instead[k])) for k in order if firm[k]
    ]


def evidence_of(P: Array, codes: NDArray[np.int64]) -> tuple[Array, NDArray[np.intp]]:
    """Return how improbable labels are (m,), and which label is more probable, if one is.

    Minus the logarithm of the probability of the label that was given: cleanlab's order, too. Of
    several labels the most improbable one, given or not given, counts.
    """
    P = np.clip(P, _LEAST, 1 - _LEAST)
    rows = np.arange(len(P))
    if codes.ndim == 2:
        said = np.where(codes == 1, P, 1 - P)
        instead = said.argmin(axis=1)
        return -np.log(said[rows, instead]), instead
    others = P.copy()
    others[rows, codes] = -np.inf
    return -np.log(P[rows, codes]), others.argmax(axis=1)
