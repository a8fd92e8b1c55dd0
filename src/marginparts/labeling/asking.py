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

#: Labels before which samples are chosen as at the beginning, and labels a class before which half
#: of them are.
_COLD, _HALF = 10, 3

#: The most candidates that are compared with each other, and how much likeness to a sample that
#: was chosen counts.
_CANDIDATES, _UNLIKE = 400, 1.0

#: How much density counts beside doubt.
_DENSITY = 0.5


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


def doubtful(beliefs: Beliefs, density: Array, several: bool) -> Array:
    """Return what a label of each row would teach (n,): doubt, disagreement, where it is dense."""
    P = beliefs.P
    if several:
        doubt = (1 - 2 * np.abs(P - 0.5)).max(axis=1)
    else:
        top = np.partition(P, -2, axis=1)[:, -2:] if P.shape[1] > 1 else np.hstack([0 * P, P])
        doubt = 1 - (top[:, 1] - top[:, 0])
    apart = beliefs.apart / max(float(beliefs.apart.max()), 1e-9)
    return np.asarray((doubt + 0.5 * apart) * np.maximum(density, 1e-3) ** _DENSITY)


def unlike(worth: Array, latent: Array, open_rows: Mask, n: int) -> Rows:
    """Return the rows that are worth most, none much like those before it."""
    candidates = np.flatnonzero(open_rows)
    best = candidates[np.argsort(-worth[candidates], kind="stable")[: max(_CANDIDATES, n)]]
    left, Z = worth[best].astype(np.float64), latent[best]
    like = np.zeros(len(best))
    chosen: list[int] = []
    while len(chosen) < min(n, len(best)):
        k = int((left * (1 - _UNLIKE * like)).argmax())
        chosen.append(int(best[k]))
        like = np.maximum(like, np.clip(Z @ Z[k], 0, 1))
        left[k] = -np.inf
        like[k] = 0.0
    return np.array(chosen, dtype=np.intp)


def to_ask(
    beliefs: Beliefs | None, parts: Array, density: Array, latent: Array, masks: tuple[Mask, Mask],
    several: bool, n: int = 40,
) -> Rows:  # fmt: skip
    """Return the next rows to ask about, the best first; masks say what is open and known."""
    open_rows, labeled = masks
    first = typical(parts, density, open_rows, labeled, n)
    count = int(labeled.sum())
    if beliefs is None or count < _COLD:
        return first
    chosen = unlike(doubtful(beliefs, density, several), latent, open_rows, n)
    if count < _HALF * len(beliefs.names):
        both = np.array([each for pair in zip(first, chosen, strict=False) for each in pair])
        _, where = np.unique(both, return_index=True)
        return both[np.sort(where)]
    return chosen
