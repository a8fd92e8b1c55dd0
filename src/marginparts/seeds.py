"""Seeds: a few words that indicate a class, and the classes they give to rows.

``{"hockey": ["nhl", "puck"]}`` names columns by number or by name; ``{"hockey": {"nhl": 2.0,
"game": 0.5, "inning": -1.0}}`` gives each a strength, which is 1 otherwise; a negative one speaks
against the class. Seeds are no labels: a row in which they say something may well be of another
class, so what they say is only where `marginparts.teaching` begins.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from reprlib import repr as _shown  # words of a file may be as long as a book
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginparts._types import Array
from marginparts.labels import UNKNOWN, Labels

#: Names in a sentence at most.
_MOST_NAMES = 10


@dataclass(frozen=True)
class Seeds:
    """Checked seeds.

    Attributes
    ----------
    classes : (c,) array
        Sorted.
    strengths : (d, c) CSR array
        How much each column speaks for each class, or against it.
    """

    classes: NDArray[Any]
    strengths: sp.csr_array

    @property
    def columns(self) -> NDArray[np.intp]:
        """The columns that are a seed of any class."""
        return np.unique(self.strengths.nonzero()[0])

    def places(self, classes: NDArray[Any]) -> NDArray[np.int64]:
        """Return the place (c + 1,) of each class among more classes; the last one is UNKNOWN."""
        return np.append(np.searchsorted(classes, self.classes), UNKNOWN)

    def codes(self, rows: sp.csr_array) -> tuple[NDArray[np.int64], Array]:
        """Return the class (n,) that seeds give to each row, and its lead over the next.

        Rows (n, d) have length 1. One without a seed that speaks for a class, or in which two
        classes are as good, is unknown.
        """
        scores = self._scores(rows)
        best = scores.argmax(axis=1)
        top = scores[np.arange(len(best)), best]
        scores[np.arange(len(best)), best] = 0.0  # a class that nothing speaks for has 0
        lead = top - scores.max(axis=1)
        return np.where(lead > 1e-6, best, UNKNOWN).astype(np.int64), lead

    def values(self, rows: sp.csr_array, classes: NDArray[Any]) -> Array:
        """Return how much seeds speak for each of some classes (n, c) in each row."""
        place = {name: k for k, name in enumerate(classes.tolist())}
        found = np.zeros((rows.shape[0], len(classes)))
        found[:, [place[name] for name in self.classes.tolist()]] = self._scores(rows)
        return found

    def _scores(self, rows: sp.csr_array) -> Array:
        return np.asarray((rows @ self.strengths).todense(), dtype=np.float64)


def seed_columns(
    seeds: Mapping[Any, Any], names: Sequence[str] | NDArray[Any]
) -> dict[Any, dict[int, float]]:
    """Find the columns of seed words; words that are no column are left out with a warning.

    Parameters
    ----------
    seeds : dict
        For each class its words, or a dict of words and their strengths (1 is usual, a negative one
        speaks against the class).
    names : sequence of str
        The names of the columns, as ``vectorizer.get_feature_names_out()`` has them.

    Returns
    -------
    dict
        What ``NMFAlphaClassifier(seeds=...)`` takes for a matrix whose columns have no names.

    Examples
    --------
    >>> from marginparts import seed_columns
    >>> seed_columns({"cat": ["purr"], "dog": {"bark": 2, "purr": -1}}, ["bark", "purr"])
    {'cat': {1: 1.0}, 'dog': {0: 2.0, 1: -1.0}}
    """
    number = {str(name): k for k, name in enumerate(names)}
    found: dict[Any, dict[int, float]] = {}
    unknown: dict[str, None] = {}
    for name, words in _checked(seeds).items():
        found[name] = {}
        for word, strength in words.items():
            column = int(word) if isinstance(word, Integral) else number.get(str(word))
            if column is None:
                unknown[str(word)] = None
            else:
                found[name][column] = strength
    if unknown:
        warnings.warn(
            f"Seeds that are no column of the data are left out: {_listed(unknown)}.",
            UserWarning,
            stacklevel=2,
        )
    return found


def seeds_of(given: Any, names: Sequence[str] | NDArray[Any] | None, d: int) -> Seeds:
    """Return seeds for data with d columns, which may have names, or refuse them."""
    seeds = _checked(given)
    if names is not None:
        seeds = seed_columns(seeds, names)
    for name, words in seeds.items():
        for word in words:
            if not isinstance(word, Integral):
                raise ValueError(
                    f"seeds has the word {_shown(word)}, and the columns of X have no names; fit a "
                    "DataFrame, or give seeds=seed_columns(seeds, names)."
                )
            if not 0 <= int(word) < d:
                raise ValueError(f"seeds has column {word}, and X has the columns 0 to {d - 1}.")
        if not any(strength > 0 for strength in words.values()):
            raise ValueError(
                f"seeds has no known word that speaks for {_shown(name)}; give it another one."
            )
    classes = sorted_classes(list(seeds))
    S = sp.lil_array((d, len(classes)))
    for k, name in enumerate(classes.tolist()):
        for word, strength in seeds[name].items():
            S[int(word), k] = strength
    return Seeds(classes, sp.csr_array(S))


def _checked(given: Any) -> dict[Any, dict[Any, float]]:
    """Return the strength of every word of every class."""
    if not isinstance(given, Mapping) or len(given) < 2:
        raise ValueError("seeds must be a dict with the words of at least two classes.")
    found = {}
    for name, words in given.items():
        if isinstance(words, str | bytes) or not isinstance(words, Iterable):
            raise ValueError(
                f"seeds of {_shown(name)} is {_shown(words)}; give a list or a dict of words."
            )
        each = dict(words) if isinstance(words, Mapping) else dict.fromkeys(words, 1.0)
        for word, strength in each.items():
            if not isinstance(strength, Real) or not np.isfinite(float(strength)):
                raise ValueError(
                    f"seeds: the strength of {_shown(word)} is {_shown(strength)}; use a number."
                )
        found[name] = {word: float(strength) for word, strength in each.items()}
    return found


def with_classes(labels: Labels, classes: NDArray[Any]) -> Labels:
    """Return the same labels with classes added that no row need have; several labels have theirs.

    Several labels a row must have the classes, and a row that is labeled: how many labels a row
    has, and how sure words are, is learned from these.
    """
    if labels.multilabel:
        other = set(classes.tolist()) - set(labels.classes.tolist())
        if other or not labels.labeled.any():
            raise ValueError(
                "seeds of several labels a sample need labeled samples beside them, and a column "
                f"of y for each of their labels{f', not {_shown(min(other))}' if other else ''}."
            )
        return labels
    both = sorted_classes([*labels.classes.tolist(), *classes.tolist()])
    codes = labels.codes.copy()
    known = codes != UNKNOWN
    codes[known] = np.searchsorted(both, labels.classes)[codes[known]]
    return Labels(both, codes)


def sorted_classes(names: list[Any]) -> NDArray[Any]:
    """Return the distinct names of classes, all strings or all numbers."""
    if len({isinstance(name, str) for name in names}) > 1:
        raise ValueError("Classes are strings in one place and numbers in another; use one kind.")
    return np.unique(np.array(names))


def _listed(names: Iterable[str]) -> str:
    names = list(names)
    rest = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(name[:40] for name in names[:_MOST_NAMES]) + rest
