"""Parts merged, deleted or frozen by somebody who looked at them, and the fit going on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import chain
from operator import index
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from marginparts._types import Samples
from marginparts.estimators.consensus import start_at
from marginparts.estimators.nmf_alpha import NMFAlpha


def edit_parts(
    model: Any,
    X: Samples,
    *,
    merge: Iterable[Iterable[int]] = (),
    delete: Iterable[int] = (),
    freeze: Iterable[int] = (),
) -> NMFAlpha:
    """Return an estimator that goes on from the parts of a fit, as somebody wants them.

    Parameters
    ----------
    model : fitted NMFAlpha, NMFAlphaConsensus or NMFAlphaClassifier
        It is left as it is.
    X : (n, d) array or sparse matrix
        The data of the next fit, in memory; ``fit`` must get the same rows.
    merge : iterable of groups of int
        Parts, counted from 0, that become one each: their mean, weighted by what they explain.
    delete : iterable of int
        Parts that go. What they explained is left to the others.
    freeze : iterable of int
        Parts that stay as they are (``fixed``). Those that were fixed before still are, unless
        they are merged or deleted.

    Returns
    -------
    NMFAlpha
        Not fitted, with ``n_components``, ``init``, ``fixed`` and ``allowed`` for what is left:
        frozen parts first, then all others in their old order, merged ones in the place of the
        first of them.

    Examples
    --------
    >>> from marginparts import NMFAlpha, edit_parts
    >>> from marginparts.datasets import load_digits_49
    >>> X = load_digits_49().data
    >>> model = NMFAlpha(8, random_state=0).fit(X)
    >>> again = edit_parts(model, X, merge=[(2, 5)], delete=[7], freeze=[3]).fit(X)
    >>> again.components_.shape, bool((again.components_[0] == model.components_[3]).all())
    ((6, 64), True)
    """
    check_is_fitted(model)
    fitted = getattr(model, "parts_", getattr(model, "estimator_", model))
    if not isinstance(fitted, NMFAlpha):
        raise TypeError(f"edit_parts is for parts of NMFAlpha, and not of {type(fitted).__name__}.")
    parts = fitted.components_
    merged = [[index(k) for k in group] for group in merge]
    gone, frozen = [index(k) for k in delete], [index(k) for k in freeze]
    taken = [*chain(*merged), *gone]
    _check_named([*taken, *frozen], len(parts))
    frozen = sorted({*frozen, *range(fitted._n_fixed)} - {*taken})
    single = [[k] for k in range(len(parts)) if k not in taken and k not in frozen]
    groups = [[k] for k in frozen] + sorted([*filter(None, merged), *single], key=min)
    if not groups:
        raise ValueError("No part is left; keep one at least.")
    mass = fitted._coefficients(fitted._check_data(X, reset=False)).sum(axis=0)
    mass = np.maximum(mass, np.finfo(mass.dtype).tiny)
    left = np.stack([np.average(parts[g], axis=0, weights=mass[g]) for g in groups])
    allowed = fitted.allowed
    if allowed is not None:
        allowed = np.stack([np.asarray(allowed, dtype=bool)[g].any(axis=0) for g in groups])
    return clone(fitted).set_params(
        n_components=len(groups), init=start_at(fitted, X, left), allowed=allowed,
        fixed=parts[frozen] if frozen else None, checkpoint=None,
    )  # fmt: skip


def _check_named(named: list[int], r: int) -> None:
    """Refuse parts that are not there, or are named twice."""
    for k, times in Counter(named).items():
        if not 0 <= k < r:
            raise ValueError(f"There is no part {k}; they are counted from 0 to {r - 1}.")
        if times > 1:
            raise ValueError(f"Part {k} is named {times} times; merge, delete or freeze it once.")
