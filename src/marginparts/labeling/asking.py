"""What to ask: typical samples of all parts to begin with, then those that would teach most.

Every fifth sample is drawn at random, whatever is believed of it: by these the accuracy is known
without bias. They are the first of an order of all samples that is fixed by their names alone; one
that was asked for another reason counts among them as soon as the order has come to it.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from marginparts._types import Array
from marginparts.labeling.learning import Beliefs

Rows = NDArray[np.intp]
Mask = NDArray[np.bool_]

#: One in so many is drawn at random.
EVERY = 5

#: Labels before which samples are chosen by the parts.
_COLD = 10

#: Candidates that are compared with each other, and rows, at most, whose doubt they may settle.
_CANDIDATES, _OTHERS = 3000, 3000

#: How much disagreement counts beside doubt.
_APART = 0.5


def random_order(ids: list[str], seed: int = 0) -> Rows:
    """Return all rows in an order that others that come or go do not change."""
    keys = [hashlib.sha256(f"{seed}/{name}".encode()).digest() for name in ids]
    return np.array(sorted(range(len(ids)), key=keys.__getitem__), dtype=np.intp)


def typical(parts: Array, density: Array, open_rows: Mask, labeled: Mask, n: int) -> Rows:
    """Return rows to begin with: the most typical of each part, of that with fewest labels first.

    Parameters
    ----------
    parts : (n, r) array
        H, or any nonnegative codes.
    density : (n,) array
    open_rows, labeled : (n,) masks
        What may be asked, and what is known.
    """
    sums = parts.sum(axis=1, keepdims=True)
    shares = np.divide(parts, sums, out=np.zeros(parts.shape), where=sums > 0)
    home = shares.argmax(axis=1)
    worth = density * shares.max(axis=1)
    r = parts.shape[1]
    mass = shares.sum(axis=0)
    queues = []
    for k in range(r):
        own = np.flatnonzero((home == k) & open_rows)
        queues.append(own[np.argsort(-worth[own], kind="stable")].tolist())
    had = np.bincount(home[labeled], minlength=r).astype(np.float64)
    chosen: list[int] = []
    while len(chosen) < n and any(queues):
        need = np.where([bool(queue) for queue in queues], mass / (1 + had) ** 2, -1.0)
        k = int(need.argmax())
        chosen.append(queues[k].pop(0))
        had[k] += 1
    return np.array(chosen, dtype=np.intp)


def doubtful(beliefs: Beliefs, several: bool) -> Array:
    """Return how much is in doubt of each row (n,): no label leads, or the teachers differ."""
    P = beliefs.P
    if several:
        doubt = (1 - 2 * np.abs(P - 0.5)).max(axis=1)
    else:
        top = np.partition(P, -2, axis=1)[:, -2:]
        doubt = 1 - (top[:, 1] - top[:, 0])
    return np.asarray(doubt + _APART * beliefs.apart)


def covering(doubt: Array, density: Array, latent: Array, masks: tuple[Mask, Mask], n: int) -> Rows:
    """Return the rows whose labels would settle most doubt, together: the best first.

    A label settles the doubt of like rows, in proportion to the square of the cosine, as far as no
    labeled row, and none that was chosen before, is more like them. So what is chosen is doubtful
    itself, stands for many, and is unlike the rest.
    """
    open_rows, labeled = masks
    every = max(1, len(doubt) // _OTHERS)  # some rows speak for all
    others = np.arange(0, len(doubt), every)
    Z = latent.astype(np.float32)

    def likeness(rows: Rows) -> Array:
        return np.asarray(np.maximum(Z[rows] @ Z[others].T, 0) ** 2)

    candidates = np.flatnonzero(open_rows)
    worth = (doubt * np.maximum(density, 1e-3))[candidates]
    candidates = candidates[np.argsort(-worth, kind="stable")[: max(_CANDIDATES, n)]]
    like, weights = likeness(candidates), doubt[others].astype(np.float32)
    settled = np.zeros(len(others), dtype=np.float32)
    if labeled.any():
        settled = likeness(np.flatnonzero(labeled)).max(axis=0)
    chosen: list[int] = []
    gains = np.maximum(like - settled, 0) @ weights
    # gains only ever fall: the best of old ones that is still the best when it is new is the best
    while len(chosen) < min(n, len(candidates)):
        k = int(gains.argmax())
        gains[k] = np.maximum(like[k] - settled, 0) @ weights
        if k == gains.argmax():
            chosen.append(k)
            settled = np.maximum(settled, like[k])
            gains[k] = -1
    return np.asarray(candidates[chosen], dtype=np.intp)


def to_ask(
    beliefs: Beliefs | None, parts: Array, density: Array, latent: Array, masks: tuple[Mask, Mask],
    several: bool, n: int = 30,
) -> Rows:  # fmt: skip
    """Return the next rows to ask about, the best first; masks say what is open and known."""
    open_rows, labeled = masks
    if beliefs is None or int(labeled.sum()) < _COLD:
        return typical(parts, density, open_rows, labeled, n)
    return covering(doubtful(beliefs, several), density, latent, masks, n)
