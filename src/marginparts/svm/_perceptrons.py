"""Learners that see one sample at a time: passes over the samples, and their compiled loops."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from marginparts._compiled import compiled
from marginparts._types import Array

#: Passes over the labeled samples.
_EPOCHS = 10


def duals_of_passes(
    rows: sp.csr_array, signs: Array, source: str, longest: Array, seed: int
) -> Array:
    """Return the dual coefficients (m,) of a learner after some passes over rows (m, d).

    ``source`` names it as `margin_directions` does; ``longest`` (m,) bounds the steps.
    """
    rng = np.random.default_rng(seed)
    order = np.concatenate([rng.permutation(len(signs)) for _ in range(_EPOCHS)])
    rows = sp.csr_array(rows).astype(np.float64)
    pa, averaged = source == "pa", source == "averaged-perceptron"
    w = np.zeros(rows.shape[1])
    seen = (rows.indptr, rows.indices, rows.data, signs, order)
    if source in ("cw", "arow"):
        return np.asarray(confident_duals(*seen, source == "cw", longest, w, np.ones(len(w))))
    return np.asarray(online_duals(*seen, pa, averaged, longest, w))


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


@compiled()
def confident_duals(indptr, indices, data, y, order, weighted, C, w, spread):  # type: ignore[no-untyped-def]
    """Return the dual coefficients of one pass of AROW, or of a confidence-weighted learner.

    Both know how sure they are of each weight: ``spread`` (d,), its variance. Samples move weights
    that are unsure most, and are summed here as they are: ``w`` is that of their scaled rows. AROW
    (Crammer, Kulesza & Dredze 2009) moves by ``loss / (v + 1 / C)`` with v the variance of the
    margin. ``weighted`` is the exact convex learner of Crammer, Dredze & Pereira (2008), which asks
    for a margin that is right with a probability of 0.9: a bound on its standard deviation, where
    the first such learner (Dredze, Crammer & Pereira 2008) bounds the variance in its place. Steps
    of at most C make it SCW-I (Wang, Zhao & Hoi 2012). The rest is as for `online_duals`.
    """
    phi = 1.2815515655446004  # the normal quantile of 0.9
    psi, zeta = 1 + phi * phi / 2, 1 + phi * phi
    alpha = np.zeros(len(y))
    for t in range(len(order)):
        i = order[t]
        dot, v = 0.0, 0.0
        for p in range(indptr[i], indptr[i + 1]):
            j = indices[p]
            dot += w[j] * data[p]
            v += spread[j] * data[p] * data[p]
        margin = y[i] * dot
        if v <= 0:
            continue
        if weighted:
            root = np.sqrt(margin * margin * phi**4 / 4 + v * phi * phi * zeta)
            step = min(C[i], max(0.0, (root - margin * psi) / (v * zeta)))
            pull = step * v * phi
            shrink = step * phi / ((np.sqrt(pull * pull + 4 * v) - pull) / 2 + pull)
        else:
            shrink = 1 / (v + 1 / C[i])
            step = max(0.0, 1 - margin) * shrink
        if step > 0:
            alpha[i] += step
            for p in range(indptr[i], indptr[i + 1]):
                j = indices[p]
                w[j] += step * y[i] * spread[j] * data[p]
                spread[j] -= shrink * (spread[j] * data[p]) ** 2
    return alpha
