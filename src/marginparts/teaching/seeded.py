"""What seed words say of rows, and what two teachers make of it.

A seed is often wrong: "space" does not mean rockets in every text. So rows in which a class leads
by its seeds are labeled with it for a while, the seeds are taken out of all rows, and two teachers
of different kinds learn from the rest and answer for rows that were hidden from them. Where both
say what the seeds say, which they cannot see, the label stays. From these, with all words, they
answer for all rows, and where both say the same they learn from that once more, beside labels where
there are any.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginparts._types import Array, Data
from marginparts.labels import UNKNOWN, Labels
from marginparts.seeds import Seeds
from marginparts.solve.start import thread_pools
from marginparts.teaching.transduction import Codes
from marginparts.teaching.values import all_values
from marginparts.teaching.views import Views, views_of

#: Folds of the rows that seeds have labeled.
_FOLDS = 3

#: Of the rows that seeds give to a class, it keeps this share at least: no class is given up.
_LEAST = 0.1


class Hints(NamedTuple):
    """What seeds say of n rows.

    Attributes
    ----------
    first : (n,) int array
        The class whose seeds lead, UNKNOWN where none does.
    lead : (n,) array
        By how much.
    kept : (n,) int array
        The same where teachers who do not see the seeds agree. Each class has a row.
    """

    first: Codes
    lead: Array
    kept: Codes


def hints_of(
    X: Data,
    views: Views,
    weights: Array | None,
    seeds: Seeds,
    classes: NDArray[Any],
    seed: int,
) -> Hints:
    """Return what the seeds say of rows; no label enters.

    X (n, d) are the rows of the views, and weights (d,) those of their columns. Classes (c,) are
    those of the seeds, and maybe others.
    """
    first, lead = seeds.codes(views.inputs)
    for k, name in enumerate(seeds.classes.tolist()):
        if not (first == k).any():
            raise ValueError(f"No sample has the seeds of {name!r} above those of other classes.")
    first = seeds.places(classes)[first]
    blind = views_of(_without(X, seeds.columns), weights, seed, neighbors=False)
    kept = first.copy()
    rows = np.random.default_rng(seed).permutation(np.flatnonzero(first != UNKNOWN))
    with thread_pools().limit(limits=1, user_api="blas"):
        for fold in range(_FOLDS):
            hidden, left = rows[fold::_FOLDS], first.copy()
            left[hidden] = UNKNOWN
            wrong = _agreed(blind, Labels(classes, left))[hidden] != first[hidden]
            kept[hidden[wrong]] = UNKNOWN
    return Hints(first, lead, _complete(kept, first, lead))


def seeded_values(views: Views, labels: Labels, hints: Hints) -> dict[str, Array]:
    """Return what two teachers say of all rows who also learn from the hints of seeds."""
    known = labels.codes != UNKNOWN
    some = Labels(labels.classes, np.where(known, labels.codes, hints.kept))
    more = _complete(_agreed(views, some), hints.first, hints.lead)
    most = Labels(labels.classes, np.where(known, labels.codes, more))
    said = all_values(views, most, _two(views))
    return {f"{name}, seeds": values for name, values in said.items()}


def _two(views: Views) -> tuple[str, ...]:
    """Return two teachers who learn from their own answers, each in its own way."""
    return ("least squares", "naive Bayes" if views.sparse else "logistic")


def _agreed(views: Views, labels: Labels) -> Codes:
    """Return what both teachers say of all rows, UNKNOWN where they differ."""
    said = all_values(views, labels, _two(views))
    a, b = (values.argmax(axis=1) for values in said.values())
    return np.where(a == b, a, UNKNOWN)


def _complete(codes: Codes, first: Codes, lead: Array) -> Codes:
    """Give a class that has lost its rows those back in which its seeds lead most."""
    codes = codes.copy()
    for k in range(first.max() + 1):
        rows = np.flatnonzero(first == k)
        few = int(np.ceil(_LEAST * len(rows)))
        if np.sum(codes == k) < few:
            codes[rows[np.argsort(-lead[rows], kind="stable")[:few]]] = k
    return codes


def _without(X: Data, columns: NDArray[np.intp]) -> sp.csr_array:
    """Return the rows with zeros in some columns."""
    rows = sp.csr_array(X, copy=True)
    rows.data[np.isin(rows.indices, columns)] = 0
    rows.eliminate_zeros()
    return rows
