"""The compiled loop of the perceptrons and of the passive-aggressive learner."""

from __future__ import annotations

import numpy as np

from marginparts._compiled import compiled


@compiled()
def online_duals(indptr, indices, data, y, order, passive_aggressive, averaged, C, w):  # type: ignore[no-untyped-def]
    """Return the dual coefficients of one pass of a perceptron or PA-I over ``order``.

    The perceptron counts its mistakes on each sample. Averaged, a mistake counts for the share of
    the time that was left when it was made, which gives the duals of the averaged weight vector.
    PA-I moves each sample by ``min(C, loss / |x|^2)`` at a time.

    Parameters
    ----------
    indptr, indices, data
        The rows of a CSR matrix with as many rows as y.
    y : (m,) array of -1 and 1
    order : (t,) int array
        Samples in the order in which they are seen, with repetitions.
    passive_aggressive, averaged : bool
    C : (m,) array
        The longest step of PA-I for each sample.
    w : (d,) array
        Where the learner begins, zeros for a new one; it is moved on, for the next samples.

    Returns
    -------
    (m,) array
    """
    alpha = np.zeros(len(y))
    for t in range(len(order)):
        i = order[t]
        dot, norm = 0.0, 0.0
        for p in range(indptr[i], indptr[i + 1]):
            dot += w[indices[p]] * data[p]
            norm += data[p] * data[p]
        margin = y[i] * dot
        if passive_aggressive:
            step = min(C[i], max(0.0, 1 - margin) / norm) if norm > 0 else 0.0
        else:
            step = 1.0 if margin <= 0 else 0.0
        if step > 0:
            alpha[i] += step * ((len(order) - t) / len(order) if averaged else 1.0)
            for p in range(indptr[i], indptr[i + 1]):
                w[indices[p]] += step * y[i] * data[p]
    return alpha
