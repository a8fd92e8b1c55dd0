"""The compiled sweep of semi-NMF: nonnegative least squares of many samples at a time.

An entry can move only when the ones before it have, so one sample by itself would leave a vector
unit idle. A tile of samples is turned over, parts as rows, and each sample has a lane of its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import prange

from marginparts._compiled import IN_ORDER, compiled
from marginparts.backends.cpu._emit import Emit, Stored, Value, vector
from marginparts.backends.cpu._vectors import add_scaled, clear, new_sums

#: Lines (of 64 bytes) of a row of a tile: so many sums run side by side that none waits.
_LINES = 4
LINES = np.empty(0, f"S{_LINES}")


def lanes(dtype: np.dtype[Any]) -> int:
    """Return the samples of a tile."""
    return 64 * _LINES // dtype.itemsize


@vector()
def to_minimum(
    emit: Emit, lines: int, pull: Value, h: Stored, XV: Stored, k: Value, inverse: Value,
    going: Stored, moved: Stored, largest: Stored, zeroth: Value,
) -> None:  # fmt: skip
    """Move ``h[k]`` to ``max(0, h + (XV - pull) / G)`` in the lanes that are still going."""
    zero, scale = emit.constant(0), emit.splat(inverse)
    rows = [emit.row(h, k, lines), emit.row(XV, k, lines), emit.held(pull, lines)]
    rows += [emit.row(each, zeroth, lines) for each in (going, moved, largest)]
    for places in zip(*rows, strict=True):
        old, wanted, pulled, goes, far, most = map(emit.load, places)
        fall = emit.builder.fsub(wanted, pulled)
        new = emit.larger(emit.add(old, emit.mul(fall, scale)), zero)
        new = emit.builder.select(emit.builder.fcmp_ordered(">", goes, zero), new, old)
        change = emit.builder.fsub(new, old)
        change = emit.larger(change, emit.builder.fsub(zero, change))
        emit.store(new, places[0])
        emit.store(emit.larger(far, change), places[4])
        emit.store(emit.larger(most, new), places[5])


@compiled(fastmath=IN_ORDER)
def _sweep_tile(h, XV, gram, sweeps, settled, lines):  # type: ignore[no-untyped-def]
    """Sweep over a tile: parts h (r, lanes) and ``X V`` alike, until every lane is settled."""
    r, zero = len(h), h.dtype.type(0)
    going, moved, largest = np.ones_like(h[:1]), np.zeros_like(h[:1]), np.zeros_like(h[:1])
    pull = new_sums(lines, h)
    for _ in range(sweeps):
        moved[:], largest[:] = zero, zero
        for k in range(r):
            row = gram[k]
            if not row[k] > zero:
                h[k] = zero
                continue
            clear(lines, pull)
            for j in range(r):
                add_scaled(lines, pull, row[j], h, j)
            inverse = h.dtype.type(1) / row[k]
            to_minimum(lines, pull, h, XV, k, inverse, going, moved, largest, 0)
        left = 0
        for lane in range(h.shape[1]):
            if moved[0, lane] <= settled * largest[0, lane]:
                going[0, lane] = zero
            else:
                left += 1
        if left == 0:
            break


@compiled(fastmath=IN_ORDER, parallel=True)
def sweep_rows(H, XV, gram, sweeps, settled, lines, lanes, out, told):  # type: ignore[no-untyped-def]
    """Sweep over the entries of each row of H (n, r), and write what comes of it to ``out``.

    Entry k goes to ``max(0, h - slope / G)``, where the slope is entry k of ``H gram - X V``;
    entries of a part of length 0 become zero. A row that a sweep leaves all but unchanged is done.
    ``told`` (n / lanes, 2) is for how much there is, and how much of it moved; it may be empty.
    """
    n, r = H.shape
    for tile in prange((n + lanes - 1) // lanes):
        first = tile * lanes
        last = min(first + lanes, n)
        h, wanted = np.zeros((r, lanes), H.dtype), np.zeros((r, lanes), H.dtype)
        for i in range(first, last):
            for k in range(r):
                h[k, i - first] = H[i, k]
                wanted[k, i - first] = XV[i, k]
        _sweep_tile(h, wanted, gram, sweeps, settled, lines)
        if len(told):
            for k in range(r):
                length, mass, moved = np.sqrt(np.float64(gram[k, k])), 0.0, 0.0
                for i in range(first, last):
                    new = h[k, i - first]
                    mass += new
                    moved += abs(new - H[i, k])
                told[tile, 0] += length * mass
                told[tile, 1] += length * moved
        for i in range(first, last):
            for k in range(r):
                out[i, k] = h[k, i - first]
