"""The compiled sweep of `losses.semi`: nonnegative least squares, an entry of a row at a time."""

from __future__ import annotations

from numba import prange

from marginparts._compiled import FAST_SUMS, compiled

#: The change of a row, beside its largest entry, that ends its sweeps.
SETTLED = 1e-7


@compiled(fastmath=FAST_SUMS, parallel=True)
def sweep_rows(slopes, gram, H, sweeps):  # type: ignore[no-untyped-def]
    """Move each entry of H (n, r) to ``max(0, h - slope / G)``, in place.

    Slopes (n, r), ``H gram - X V``, follow each move; with gram (r, r) they are all that is needed
    of data and basis. Entries of a part of length 0 become zero. A row that a sweep leaves all but
    unchanged is done.
    """
    n, r = H.shape
    zero, settled = H.dtype.type(0), H.dtype.type(SETTLED)
    for i in prange(n):
        h, slope = H[i], slopes[i]
        for _ in range(sweeps):
            largest, moved = zero, zero
            for k in range(r):
                row = gram[k]
                new = max(h[k] - slope[k] / row[k], zero) if row[k] > zero else zero
                change = new - h[k]
                if change != zero:
                    for j in range(r):
                        slope[j] += change * row[j]
                    h[k] = new
                    moved = max(moved, abs(change))
                largest = max(largest, new)
            if moved <= settled * largest:
                break
