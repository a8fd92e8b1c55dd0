"""What the paper's Figure 2 shows: the parts for several weights of the labels, from one start.

With lam = 0 the parts are strokes; the larger lam is, the more they look like whole digits that are
easily confused. One test digit is rebuilt from the parts that it uses most.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from marginparts._types import Array
from marginparts.datasets import load_paper_data
from marginparts.directions import DirectionSpec, find_directions
from marginparts.experiments.protocol import draw_trial
from marginparts.files.atomic import written_beside
from marginparts.solve.factorize import factorize, parts_of
from marginparts.solve.map import map_rows
from marginparts.solve.start import start_from

#: The data, its preparation, the share of labels and the split of the figure.
DATA, PREPROCESSING, FRACTION, SPLIT = "mnist", "counts", 0.02, 0

#: No weight, one of those that classify best, and one at which nothing but the labels counts.
LAMS = (0.0, 30.0, 1000.0)

#: Iterations at most: the larger lam is, the more it takes until the loss settles.
_MAX_ITER, _QUICK_ITER = 2000, 60

#: The share of a digit that its most used parts make up together.
_MOST = 0.9


class Panel(NamedTuple):
    """The parts for one lam, and the digit in them."""

    lam: float
    parts: NDArray[np.float16]  # (r, d), each with sum one
    coefficients: Array  # (r,): how much of the digit each part makes up
    rebuilt: Array  # (d,): the digit from the parts in `used` alone

    @property
    def used(self) -> NDArray[np.intp]:
        """The fewest parts that make up 90 % of the digit, the most used first."""
        return most_used(self.coefficients)


@dataclass(frozen=True, eq=False)
class Bases:
    """A digit of the test set (d,), its class, and one panel a lam, all from one start."""

    digit: Array
    name: str
    panels: tuple[Panel, ...]


def most_used(coefficients: Array, share: float = _MOST) -> NDArray[np.intp]:
    """Return the fewest parts that have a share of the sum, the largest first.

    Examples
    --------
    >>> most_used(np.array([1.0, 6.0, 0.0, 3.0]))
    array([1, 3])
    """
    order = np.argsort(-coefficients, kind="stable")
    sums = np.cumsum(coefficients[order], dtype=np.float64)
    if not len(sums) or sums[-1] <= 0:
        return order[:0]
    # what rounding adds must not cost one part more
    enough = np.searchsorted(sums, (share - 1e-6) * sums[-1])
    return order[: enough + 1]


def find_bases(
    data_dir: str | os.PathLike[str] | None = None,
    lams: Iterable[float] = LAMS,
    rank: int = 64,
    quick: bool = False,
    *,
    digit: int = 0,
) -> Bases:
    """Find the parts of fours and nines for several lam, from one random start.

    ``digit`` says which of the test digits is rebuilt; ``quick`` stops early, for an impression.
    """
    data = load_paper_data(DATA, data_dir)
    trial = draw_trial(data, PREPROCESSING, SPLIT)
    S = find_directions(trial.X_train, trial.labels(FRACTION), DirectionSpec(), trial.seed).S
    H, V = start_from("random", trial.X_train, rank, trial.seed)
    x = trial.X_test[digit : digit + 1]
    panels = []
    for lam in lams:
        found = factorize(
            trial.X_train, H, V, S=S, lam=float(lam), solver="mue",
            max_iter=_QUICK_ITER if quick else _MAX_ITER,
        )  # fmt: skip
        parts = parts_of(found.V)
        h = map_rows(x, parts.T.copy(), None)[0]  # the digit in these parts, as well as they can
        used = most_used(h)
        panels.append(Panel(float(lam), parts.astype(np.float16), h, h[used] @ parts[used]))
    return Bases(x[0], str(data.class_names[data.y_test[digit]]), tuple(panels))


def save_bases(path: str | os.PathLike[str], bases: Bases) -> None:
    """Write bases to an .npz file."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    columns = map(np.stack, zip(*bases.panels, strict=True))
    fields: dict[str, Any] = dict(zip(Panel._fields, columns, strict=True))
    with written_beside(path) as file:
        np.savez_compressed(file, digit=bases.digit, name=bases.name, **fields)


def load_bases(path: str | os.PathLike[str]) -> Bases:
    """Read what `save_bases` wrote."""
    with np.load(path) as file:
        columns = [file[name] for name in Panel._fields]
        panels = [Panel(float(lam), *rest) for lam, *rest in zip(*columns, strict=True)]
        return Bases(file["digit"], str(file["name"]), tuple(panels))
