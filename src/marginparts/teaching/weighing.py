"""What several teachers say together: each is weighed by what it says of hidden labels.

A teacher's decision values become probabilities whose mean confidence is its accuracy on hidden
labels: one that is often wrong says little. The logarithms are averaged with weights that fall off
with the distance from the best teacher in standard errors, which are large where labels are few.
Where vectors stand beside words, panels of teachers see words, vectors, or both; what they say is
put together in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import softmax

from marginparts._types import Array
from marginparts.teaching.values import BOTH, OF_WORDS, VECTORS, kind_of

#: How fast a teacher's weight falls with its distance from the best, in standard errors; and that
#: of a panel of teachers.
_DECAY, _PANEL_DECAY = 2.0, 0.5

#: What is added to the accuracy of one teacher of sparse rows and one of dense ones: what these
#: were worth on the development collections beyond what few hidden labels can tell.
_HEAD_START, _FAVORITE = 0.02, {True: "least squares", False: "spectral"}

#: What those who see vectors alone count beside each of the two other panels, before hidden labels
#: are asked: encoders differ, and words are from the texts themselves.
_TRUST_IN_VECTORS = 0.5

#: The least and the largest mean confidence of a teacher.
_CONFIDENCE = (0.3, 0.97)


class Verdict(NamedTuple):
    """What several teachers say together.

    Attributes
    ----------
    Q : (n, c) array
        Probabilities of the classes.
    shares : dict
        What each teacher counts in it.
    accuracies : dict
        What each was worth on hidden labels.
    """

    Q: Array
    shares: dict[str, float]
    accuracies: dict[str, float]

    @property
    def merit(self) -> float:
        """The mean accuracy of the teachers, who count by their shares."""
        return sum(share * self.accuracies[name] for name, share in self.shares.items())


class _Panel(NamedTuple):
    """Teachers who see the rows in the same way; whether what they see has few entries.

    ``trust`` is what they count beside other panels before hidden labels are asked.
    """

    names: list[str]
    sparse: bool
    trust: float = 1.0


def _panels_of(names: Iterable[str], *, sparse: bool) -> list[_Panel]:
    """Return who sees words, vectors, and both; one panel where there is but one view.

    Those who can see nothing but words speak for both views as well.
    """
    names = list(names)
    vectors = [name for name in names if name.endswith(VECTORS)]
    if not vectors:
        return [_Panel(names, sparse)]
    both = [name for name in names if name.endswith(BOTH)]
    words = [name for name in names if name not in {*vectors, *both}]
    both += [name for name in words if name in OF_WORDS]
    return [_Panel(words, sparse), _Panel(vectors, False, _TRUST_IN_VECTORS), _Panel(both, sparse)]


def agreed(said: dict[str, Array], hits: dict[str, list[Array]], *, sparse: bool) -> Verdict:
    """Return what teachers say together; where vectors stand beside words, in several panels.

    ``said`` has values (n, c) of each, and ``hits`` where each was right on hidden labels, fold by
    fold. What panels know is not the same, and each is heard: hidden labels tell the members of a
    panel apart better than the panels.
    """
    panels = _panels_of(said, sparse=sparse)
    found = [
        weighed({name: said[name] for name in panel.names}, hits, sparse=panel.sparse)
        for panel in panels
    ]
    if len(found) == 1:
        return found[0]
    merits = np.array([verdict.merit for verdict in found])
    trust = np.array([panel.trust for panel in panels])
    shares = _shares(merits, _count(hits), _PANEL_DECAY, trust)
    accuracies: dict[str, float] = {}
    teachers = dict.fromkeys(said, 0.0)
    for share, verdict in zip(shares, found, strict=True):
        accuracies.update(verdict.accuracies)
        for name, own in verdict.shares.items():
            teachers[name] += float(share * own)
    return Verdict(_mixed([each.Q for each in found], shares), teachers, accuracies)


def weighed(said: dict[str, Array], hits: dict[str, list[Array]], *, sparse: bool) -> Verdict:
    """Return what the teachers of one panel say together; see `agreed`."""
    right = {name: np.concatenate([np.empty(0, bool), *hits[name]]) for name in said}
    # one right and one wrong answer more: few labels are no proof
    accuracies = {name: (own.sum() + 1) / (len(own) + 2) for name, own in right.items()}
    ahead = {name for name in said if kind_of(name) == _FAVORITE[sparse]}
    merits = np.array([accuracies[name] + _HEAD_START * (name in ahead) for name in said])
    shares = _shares(merits, _count(hits), _DECAY)
    Q = _mixed([confident(said[name], accuracies[name]) for name in said], shares)
    teachers = {name: float(share) for name, share in zip(said, shares, strict=True)}
    return Verdict(Q, teachers, {name: float(own) for name, own in accuracies.items()})


def _count(hits: dict[str, list[Array]]) -> int:
    """Return how many hidden labels there are."""
    return sum(len(fold) for fold in next(iter(hits.values())))


def _shares(merits: Array, n: int, decay: float, trust: Array | float = 1.0) -> Array:
    """Return shares that fall off with the distance from the best merit, in standard errors.

    Merits are accuracies on n labels, and ``trust`` is what is given to those of equal merit.
    """
    best = min(merits.max(), _CONFIDENCE[1])
    error = np.sqrt(max(best * (1 - best), 0.02) / (n + 4))
    return np.asarray(softmax(decay * (merits - merits.max()) / error + np.log(trust)))


def _mixed(answers: list[Array], shares: Array) -> Array:
    """Return probabilities (n, c) whose logarithms are means of several."""
    logs = sum(share * np.log(Q + 1e-4) for share, Q in zip(shares, answers, strict=True))
    return np.asarray(softmax(logs, axis=1))


def confident(values: Array, accuracy: float) -> Array:
    """Return probabilities whose largest ones are the accuracy on average."""
    values = values.astype(np.float64)
    target = np.clip(accuracy, *_CONFIDENCE)

    def excess(log_temperature: float) -> float:
        # the largest value is 0, so the largest probability is one over the sum
        sums = np.exp(values * np.exp(-log_temperature)).sum(axis=1)
        return float(np.mean(1 / sums) - target)

    low, high = -12.0, 12.0
    if excess(low) <= 0:
        best = low
    elif excess(high) >= 0:
        best = high
    else:
        best = brentq(excess, low, high, xtol=1e-9)
    return np.asarray(softmax(values * np.exp(-best), axis=1))
