"""One sweep of coordinate descent over the rows of a factor, each row worked on in the cache.

A row's entries are updated one after the other, each by a step that lies between the
multiplicative one and the optimum (``docs/math.md``, section 7), so that the loss cannot rise. The
fit of the row's nonzeros follows every step. Entries that are zero and should stay so cost next to
nothing: one multiplicative pass over the row finds out which they are.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from marginparts._compiled import IN_ORDER, compiled
from marginparts.backends.cpu import _vectors as vec
from marginparts.backends.cpu._emit import LINE_BYTES
from marginparts.backends.cpu._tiles import move, move_and_sum, transpose
from marginparts.backends.cpu.kernels import AHEAD, sum_plus

#: A row with this many times more moving entries than nonzeros takes multiplicative steps, which
#: move all entries at once, and this many of them: far cheaper than as many coordinate steps.
_MANY, _STEPS = 4, 8


@compiled(inline="always")
def _padded(m, width):  # type: ignore[no-untyped-def]
    return (m + width - 1) // width * width


@compiled(inline="always")
def _longest(first, last, indptr, ptr2, width):  # type: ignore[no-untyped-def]
    """Return the entries that the longest of some rows has, with those of the second matrix."""
    longest = 0
    for i in range(first, last):
        m = _padded(indptr[i + 1] - indptr[i], width)
        if len(ptr2) > 0:
            m += _padded(ptr2[i + 1] - ptr2[i], width)
        longest = max(longest, m)
    return longest


@compiled(fastmath=IN_ORDER, inline="always")
def _read_row(lines, sums, lo, hi, indices, data, A, i, B, weight, floor, x, fit, at):  # type: ignore[no-untyped-def]
    """Add a row's ratios to sums; write its values and fits to ``x`` and ``fit`` from ``at`` on.

    Both are padded to whole lines with twins of the last nonzero that have no weight. Returns the
    smallest value that has a fit.
    """
    smallest = A.dtype.type(np.inf)
    m, last = hi - lo, len(indices) - 1
    zero, one = A.dtype.type(0), A.dtype.type(1)
    for p in range(m):
        vec.prefetch(lines, B, indices[min(lo + p + AHEAD, last)])
        j = indices[lo + p]
        fitted = vec.dot(lines, A, i, B, j)
        if fitted > floor:
            x[at + p], fit[at + p] = weight * data[lo + p], fitted
            smallest = min(smallest, x[at + p])
            vec.add_scaled(lines, sums, weight * data[lo + p] / fitted, B, j)
        else:  # cannot be explained: counts for nothing
            x[at + p], fit[at + p] = zero, one
    for p in range(m, _padded(m, LINE_BYTES // A.itemsize)):
        x[at + p], fit[at + p] = zero, fit[at + m - 1]
    return smallest


@compiled(fastmath=IN_ORDER, inline="always")
def _add_row(lines, sums, lo, hi, indices, x, at, row, B, floor):  # type: ignore[no-untyped-def]
    """Add the ratios of nonzeros that were read already to sums."""
    for p in range(hi - lo):
        fitted = vec.dot(lines, row, 0, B, indices[lo + p])
        if fitted > floor:
            vec.add_scaled(lines, sums, x[at + p] / fitted, B, indices[lo + p])


@compiled(inline="always")
def _read_columns(lo, hi, indices, B, line, tile, stride, at):  # type: ignore[no-untyped-def]
    """Copy one line of the row's rows of B to the tile, by columns, from ``at`` on."""
    width = LINE_BYTES // B.itemsize
    for p in range(0, hi - lo, width):
        transpose(tile, stride, at + p, B, line, indices, lo - at, hi - 1)


@compiled(fastmath=IN_ORDER, inline="always")
def _step(t, u, g, h, pull, least):  # type: ignore[no-untyped-def]
    """Return the new value of one entry, see ``docs/math.md``, section 7.

    ``g`` and ``h`` are the sums of x z and x z^2, ``pull`` is C / t for a term -C log t, and
    entries that would fall below ``least`` become 0.
    """
    g += pull
    th = t * h + pull
    if g >= u:
        if pull > 0:
            h += pull / t
        new = t + (g / h) * ((g - u) / u)
    else:
        new = t * th / (th + (u - g))
        if new < least and pull == 0:
            new = u - u
    return new if new >= 0 and new < np.inf else t


@compiled(inline="always")
def _find_moving(line, row, G, den, w, floor, first, moving):  # type: ignore[no-untyped-def]
    """Write which entries of one line move to ``moving``, and return how many.

    Those at zero only do in the ``first`` sweep, and only where the loss would fall.
    """
    width, n = len(moving), 0
    for k in range(line * width, (line + 1) * width):
        u = w * den[0, k]
        if u > floor and (row[0, k] > 0 or (first and G[0, k] > u)):
            moving[n] = k
            n += 1
        else:
            row[0, k] = u - u
    return n


@compiled(fastmath=IN_ORDER, inline="always")
def _descend(line, moving, n, x, fit, tile, m, row, A, i, den, w, pull, least):  # type: ignore[no-untyped-def]
    """Step along the n moving entries of one line, and return the most mass that moved.

    The row was ``A[i]`` when its ``pull`` was found. C is the product of the two, which can be too
    large a number; C / t is not.
    """
    first = line * len(moving)
    most = least - least
    moved, delta = (moving[0] - first) * m, most
    for q in range(n):
        k = moving[q]
        b, u = (k - first) * m, w * den[0, k]
        g, h = move_and_sum(x, fit, tile, b, moved, delta, m)
        t = row[0, k]
        asked = pull[0, k] * (A[i, k] / t) if t > 0 else t
        new = _step(t, u, g, h, asked, least / u)
        moved, delta = b, new - row[0, k]
        most = max(most, abs(delta) * u)
        row[0, k] = new
    move(fit, tile, moved, delta, m)
    return most


@compiled(fastmath=IN_ORDER, inline="always")
def _multiply(row, A, i, G, pull, inverse, w):  # type: ignore[no-untyped-def]
    """Take a multiplicative step with the whole row, but with no entry beyond all numbers."""
    for k in range(row.shape[1]):
        own, asked = G[0, k] * inverse[0, k] / w, pull[0, k] * inverse[0, k] / w
        new = row[0, k] * own + A[i, k] * asked
        if new < np.inf:
            row[0, k] = new


@compiled(fastmath=IN_ORDER, inline="always")
def _begin_row(row, A, i, G, pull, den, w, floor, is_lifted, lift, lifted):  # type: ignore[no-untyped-def]
    """Copy ``A[i]`` to the row and take the pull out of its numerators G; return how many move.

    ``lifted`` becomes the value of mass ``lift`` for entries that are smaller and should grow, and
    0 for all others.
    """
    n_moving = 0
    for k in range(row.shape[1]):
        u = w * den[0, k]
        row[0, k], lifted[0, k] = A[i, k], u - u
        if is_lifted and u > floor and G[0, k] > u and row[0, k] * u < lift:
            lifted[0, k] = lift / u
        n_moving += row[0, k] > 0
        G[0, k] -= pull[0, k]
    return n_moving


@compiled(fastmath=IN_ORDER, inline="always")
def _write_row(row, pull, lifted, den, w, least, out, i):  # type: ignore[no-untyped-def]
    """Write a row to ``out[i]``, with 0 for entries of less than the mass ``least``."""
    for k in range(row.shape[1]):
        small = row[0, k] * w * den[0, k] < least and pull[0, k] == 0
        out[i, k] = max(w - w if small else row[0, k], lifted[0, k])


@compiled(fastmath=IN_ORDER, inline="always")
def _multiply_often(  # type: ignore[no-untyped-def]
    lines, sums, row, A, i, G, pull, inverse, w, floor, x, lo, hi, indices, B, m1, lo2, hi2, idx2,
    B2,
):  # fmt: skip
    """Take `_STEPS` multiplicative steps with the whole row, whose first numerators are in G."""
    for _ in range(_STEPS - 1):
        _multiply(row, A, i, G, pull, inverse, w)
        vec.clear(lines, sums)
        _add_row(lines, sums, lo, hi, indices, x, 0, row, B, floor)
        _add_row(lines, sums, lo2, hi2, idx2, x, m1, row, B2, floor)
        vec.write(lines, sums, G, 0)
    _multiply(row, A, i, G, pull, inverse, w)


@compiled(fastmath=IN_ORDER, inline="always")
def _sweep_row(  # type: ignore[no-untyped-def]
    row, A, i, G, pull, den, w, floor, least, x, fit, tile, moving, m, lo, hi, indices, B, m1, lo2,
    hi2, idx2, B2, sweeps, enough,
):  # fmt: skip
    """Step along all entries that move, a line at a time, until all of them moved little enough."""
    width = len(moving)
    for s in range(sweeps):
        most = least - least
        for line in range(row.shape[1] // width):
            n = _find_moving(line, row, G, den, w, floor, s == 0, moving)
            if n > 0:
                _read_columns(lo, hi, indices, B, line, tile, m, 0)
                _read_columns(lo2, hi2, idx2, B2, line, tile, m, m1)
                moved = _descend(line, moving, n, x, fit, tile, m, row, A, i, den, w, pull, least)
                most = max(most, moved)
        if most <= enough:
            break


@compiled(fastmath=IN_ORDER, parallel=True)
def sweep(  # type: ignore[no-untyped-def]
    lines, tasks, indptr, indices, data, A, B, den, inverse, weight, also, plus, floor, sweeps,
    settled, lift, out, gauge,
):  # fmt: skip
    """Write the rows of A after at most ``sweeps`` sweeps to ``out`` (n, r), which may be A.

    A row is done when no entry moved by more than the share ``settled`` of the row's mass. In rows
    with a ``plus``, entries that should grow are lifted to the share ``lift`` of the row's mass
    where they are below it. The other arguments are those of `half_step`.
    """
    r = A.shape[1]
    width = LINE_BYTES // A.itemsize
    zero, half, one = A.dtype.type(0), A.dtype.type(0.5), A.dtype.type(1)
    least_share = A.dtype.type(1e-10 if A.itemsize == 4 else 1e-18)
    ptr2, idx2, x2, B2, weight2 = also
    ptr3, idx3, s3, T3, weight3 = plus
    for t in prange(len(tasks) - 1):
        mode = vec.flush_denormals()
        longest = _longest(tasks[t], tasks[t + 1], indptr, ptr2, width)
        x, fit = np.empty(longest, A.dtype), np.empty(longest, A.dtype)
        tile = np.empty(width * longest, A.dtype)
        sums = vec.new_sums(lines, A)
        row, moving = np.empty((1, r), A.dtype), np.empty(width, np.int64)
        G, pull = np.empty((1, r), A.dtype), np.zeros((1, r), A.dtype)
        lifted = np.zeros((1, r), A.dtype)
        for i in range(tasks[t], tasks[t + 1]):
            # the nonzeros of X, then those of the second matrix, each padded to whole lines
            lo, hi, lo2, hi2 = indptr[i], indptr[i + 1], 0, 0
            if len(ptr2) > 0:
                lo2, hi2 = ptr2[i], ptr2[i + 1]
            m1 = _padded(hi - lo, width)
            m = m1 + _padded(hi2 - lo2, width)
            w = one if len(weight) == 0 else weight[i]
            vec.clear(lines, sums)
            if len(ptr3) > 0:
                sum_plus(lines, sums, ptr3[i], ptr3[i + 1], idx3, s3, T3, weight3)
                vec.write(lines, sums, pull, 0)
            smallest = min(
                _read_row(lines, sums, lo, hi, indices, data, A, i, B, one, floor, x, fit, 0),
                _read_row(lines, sums, lo2, hi2, idx2, x2, A, i, B2, weight2, floor, x, fit, m1),
            )
            if len(gauge) > 0:
                row_mass, worst = vec.violation(lines, sums, A, i, den, w)
                gauge[t, 0] += row_mass
                gauge[t, 1] += worst
            vec.write(lines, sums, G, 0)
            mass = vec.dot(lines, A, i, G, 0)
            # no nonzero may lose its last fit, see `docs/math.md`, section 7
            least = min(least_share * mass, smallest * (half / A.dtype.type(r)))
            is_lifted = lift > 0 and len(ptr3) > 0 and ptr3[i] < ptr3[i + 1]
            n_moving = _begin_row(row, A, i, G, pull, den, w, floor, is_lifted, lift * mass, lifted)

            if n_moving > _MANY * (hi - lo + hi2 - lo2):
                _multiply_often(
                    lines, sums, row, A, i, G, pull, inverse, w, floor, x, lo, hi, indices, B, m1,
                    lo2, hi2, idx2, B2,
                )  # fmt: skip
                _write_row(row, pull, lifted, den, w, least, out, i)
            else:
                _sweep_row(
                    row, A, i, G, pull, den, w, floor, least, x, fit, tile, moving, m, lo, hi,
                    indices, B, m1, lo2, hi2, idx2, B2, sweeps, settled * mass,
                )  # fmt: skip
                _write_row(row, pull, lifted, den, w, zero, out, i)
        vec.restore_mode(mode)
