"""What can be chosen, and what is taken unless something else is clearly better."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from marginparts.labels import Labels

#: What is tried for each parameter left to choose.
LAM_GRID = (0.3, 1.0, 3.0, 10.0)
#: Where samples have several labels, many are rare, and the components of rare labels are noisy.
LAM_GRID_SEVERAL = (0.1, 0.3, 1.0, 3.0)
MAP_GRID = (5, 15, 40, 100)
NORMALIZE_GRID = (True, False)
C_GRID = (0.1, 0.5, 2.0, 10.0)
#: In the units of the data (``scale=False``), of which nothing is known beforehand: weights, and
#: costs of the SVMs behind the directions and of the last one.
LAM_GRID_UNSCALED = (0.1, 1.0, 10.0, 100.0, 1e3, 1e4)
DIRECTION_GRID_UNSCALED = (1e-4, 0.01, 1.0, 100.0)
C_GRID_UNSCALED = (0.01, 0.1, 1.0, 10.0, 100.0)

#: The codes that run against each other: n_components, lam, map_iter, direction_C.
Candidate = tuple[int, float, int | None, float]


class Setting(NamedTuple):
    """One candidate: codes (n_components, lam, map_iter, direction_C) and an SVM on them."""

    n_components: int
    lam: float
    map_iter: int | None
    normalize: bool
    C: float
    direction_C: float = 1.0  # noqa: N815 - as the parameter is called

    @property
    def codes(self) -> Candidate:
        """What the codes depend on."""
        return self.n_components, self.lam, self.map_iter, self.direction_C

    @property
    def svm(self) -> tuple[bool, float]:
        """The SVM on them: normalize and C."""
        return self.normalize, self.C

    @classmethod
    def of(cls, codes: Candidate, svm: tuple[bool, float]) -> Setting:
        """Return codes with an SVM on them."""
        return cls(*codes[:3], *svm, codes[3])


DEFAULT = Setting(n_components=32, lam=3.0, map_iter=40, normalize=True, C=2.0)


def default_for(labels: Labels) -> Setting:
    """Return the setting that is taken unless another is clearly better."""
    return DEFAULT._replace(lam=0.3) if labels.multilabel else DEFAULT


class Grid(NamedTuple):
    """Candidates for each parameter; a single entry fixes it."""

    n_components: tuple[int, ...] = (DEFAULT.n_components,)
    lam: tuple[float, ...] = LAM_GRID
    map_iter: tuple[int | None, ...] = MAP_GRID
    normalize: tuple[bool, ...] = NORMALIZE_GRID
    C: tuple[float, ...] = C_GRID
    direction_C: tuple[float, ...] = (DEFAULT.direction_C,)  # noqa: N815

    def fallback(self, default: Setting = DEFAULT) -> Setting:
        """Return the candidates nearest the defaults."""
        pairs: Any = zip(self, default, strict=True)
        values: list[Any] = [min(g, key=partial(ratio, default=d)) for g, d in pairs]
        return Setting(*values)


def ratio(value: Any, default: Any) -> float:
    """Return how far a value of a parameter is from another: the logarithm of their ratio.

    A map to the optimum is as one of very many updates.
    """
    sizes = [(1000.0 if each is None else float(each)) + 1e-3 for each in (value, default)]
    return float(abs(np.log(sizes[0] / sizes[1])))


def usual_ranks(labels: Labels, shape: tuple[int, int]) -> tuple[int, ...]:
    """Return the numbers of parts to try: the classes' number (8 at least), its double, ...

    Up to 128, or twice the classes, and up to half the samples or columns where that is more than
    the first number. With few labels not many more than these: they could not tell the difference.
    """
    base = max(8, len(labels.classes))
    few_labels = max(2 * int(labels.labeled.sum()), base)
    most = min(max(128, 2 * base), max(min(shape) // 2, 1), few_labels)
    ranks = tuple(base * 2**k for k in range(5) if base * 2**k <= most)
    return ranks or (min(base, *shape),)
