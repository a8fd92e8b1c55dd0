"""The experiments as data: what is run for each data set, cut into units of work.

A unit is one go of one method: one warm path over lam, which serves every number of mapping updates
and every C. A killed run starts again at the unfinished unit.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from marginparts.experiments.methods import Grid
from marginparts.experiments.registry import method_named

USUAL_GRID = Grid()

#: Splits of training and validation rows in the paper.
SPLITS = (0, 1, 2, 3, 4)

#: Every method of Table 2 and Figures 3 to 5.
PAPER_METHODS = ("svm", "tsvm", "pca", "lda", "nmf", "lee2010", "liu_wu2010", "nmf_alpha")

#: NMF-alpha as in the paper, and with one thing changed at a time.
ABLATION_METHODS = (
    "nmf_alpha", "nmf_alpha_ovr", "nmf_alpha_class", "nmf_alpha_perceptron", "nmf_alpha_pa",
    "nmf_alpha_h", "nmf_alpha_literal", "nmf_alpha_random",
)  # fmt: skip


@dataclass(frozen=True)
class Study:
    """A data set, how it is prepared, and what is tried on it; its name is that of its records."""

    name: str
    data: str
    preprocessing: str
    fractions: tuple[float, ...]
    ranks: tuple[int, ...]
    methods: tuple[str, ...] = PAPER_METHODS
    splits: tuple[int, ...] = SPLITS
    grid: Grid = USUAL_GRID

    @property
    def compares(self) -> bool:
        """Whether all methods of the paper take part, and so may others."""
        return set(PAPER_METHODS) <= set(self.methods)

    def units(self) -> Iterator[Unit]:
        """Cut the study into units, the longest first within a split."""
        for split in self.splits:
            found = [unit for name in self.methods for unit in self._units_of(name, split)]
            yield from sorted(found, key=lambda unit: -unit.weight)

    def _units_of(self, name: str, split: int) -> Iterator[Unit]:
        method = method_named(name)
        shares: list[tuple[float, ...]]
        shares = [(f,) for f in self.fractions] if method.labels else [self.fractions]
        ranks: dict[str, list[tuple[int, ...]]]
        ranks = {"each": [(r,) for r in self.ranks], "all": [self.ranks], "none": [()]}
        for fractions in shares:
            for some in ranks[method.ranks]:
                yield Unit(self.data, self.preprocessing, name, split, fractions, some, self.grid)


@dataclass(frozen=True)
class Unit:
    """One go of one method on one split."""

    data: str
    preprocessing: str
    method: str
    split: int
    fractions: tuple[float, ...]
    ranks: tuple[int, ...]
    grid: Grid

    @property
    def key(self) -> str:
        """A digest of what is done, with all that matters for it in the grid."""
        method = method_named(self.method)
        said: dict[str, Any] = asdict(self)
        said["grid"] = {name: getattr(self.grid, name) for name in method.settings}
        said["source"] = method.source
        return hashlib.sha1(json.dumps(said).encode()).hexdigest()[:12]

    @property
    def weight(self) -> float:
        """About how long it takes, in any unit: for the order of work and the time left."""
        grid = self.grid
        tried = len(grid.lams) * len(grid.direction_costs) * len(grid.map_iters) * len(grid.costs)
        size = (10 + sum(self.ranks)) * (1 + 2 * sum(self.fractions))
        return _COST.get(self.method, 1.0) * size * (tried + 10)


#: Rough cost of a unit beside NMF-alpha's, for its rank and labels.
_COST = {"svm": 0.05, "tsvm": 5.0, "pca": 0.05, "lda": 0.5, "nmf": 0.3, "liu_wu2010": 0.3}


#: Which weights help depends on how much the labels can be trusted.
_NEWS_GRID = Grid(lams=(0.1, 1.0, 10.0, 30.0), map_iters=(2, 5, 20), tsvm_costs=(0.1, 1.0, 10.0))
_AVIATION_GRID = Grid(
    lams=(0.03, 0.3, 3.0, 30.0), map_iters=(5, 20), costs=(1.0, 10.0, 100.0), tsvm_costs=(0.1, 1.0)
)

#: Table 2 and Figures 3 to 5.
TABLE_2 = (
    Study(
        "mnist", "mnist", "counts", (0.02, 0.1, 1.0), (16, 32, 64, 128, 256),
        grid=Grid(lams=(1.0, 3.0, 10.0, 30.0), direction_costs=(1.0, 10.0)),
    ),
    Study("news", "news", "l2-log", (0.2, 0.4, 1.0), (20, 32, 64), grid=_NEWS_GRID),
    Study(
        "aviation-500", "aviation-500", "counts", (0.05, 0.1, 1.0), (22, 44),
        grid=Grid(
            lams=(0.03, 0.3, 3.0), lee_lams=(1.0, 30.0), map_iters=(5, 20), costs=(10.0, 100.0),
            raw_costs=(0.3, 1.0, 3.0, 10.0, 30.0), tsvm_costs=(0.1,), shrinkages=(0.1, 0.5),
        ),
    ),
    Study(
        "aviation-counts", "aviation-counts", "l2-log", (0.05, 0.1, 1.0), (22, 44, 88),
        grid=_AVIATION_GRID,
    ),
)  # fmt: skip

#: The paper's own third data set, for those who have it.
AVIATION = Study(
    "aviation", "aviation", "l2-log", (0.05, 0.1, 1.0), (22, 44, 88), grid=_AVIATION_GRID
)

#: Reported beside Table 2: another preparation.
BESIDE = (
    Study("news-tf-idf", "news", "tf-idf", (0.2, 0.4, 1.0), (32,),
          methods=("svm", "tsvm", "nmf", "nmf_alpha"),
          grid=_NEWS_GRID._replace(tsvm_costs=(0.3, 1.0))),
)  # fmt: skip

#: What each choice in NMF-alpha is worth.
ABLATIONS = (
    Study("ablation-mnist", "mnist", "counts", (0.02,), (128,), methods=ABLATION_METHODS,
          grid=Grid(map_iters=(2, 5, 15, 60))),
    Study("ablation-news", "news", "l2-log", (0.2,), (32,), methods=ABLATION_METHODS,
          grid=Grid(map_iters=(2, 5, 15, 60))),
)  # fmt: skip

#: How far it goes past the paper, with at most 64 parts on News.
OPEN_GOAL = (
    Study("open-news", "news", "l2-log", (0.2, 0.4, 1.0), (20, 40), methods=("pseudo_parts",),
          grid=Grid(lams=(10.0, 100.0), map_iters=(2, 3, 5, 10), costs=(3.0, 10.0, 30.0),
                    max_iter=80)),
    Study("open-mnist", "mnist", "counts", (0.02, 0.1, 1.0), (64, 128),
          methods=("transductive_parts",),
          grid=Grid(lams=(10.0,), direction_costs=(10.0,), map_iters=(15, 60), costs=(10.0, 30.0),
                    tsvm_costs=(10.0,))),
    Study("open-mnist-raw", "mnist", "counts", (0.02, 0.1, 1.0), (), methods=("tsvm_shares",),
          grid=Grid(tsvm_costs=(1.0, 10.0))),
    Study("open-mnist-all", "mnist", "counts", (1.0,), (256,), methods=("transductive_parts",),
          grid=Grid(lams=(10.0,), direction_costs=(10.0,), map_iters=(15, 60), costs=(10.0, 30.0))),
)  # fmt: skip

STUDIES = {study.name: study for study in (*TABLE_2, AVIATION, *BESIDE, *ABLATIONS, *OPEN_GOAL)}

#: A small grid for a first look, in minutes.
QUICK_GRID = Grid(
    lams=(10.0,), lee_lams=(3.0,), map_iters=(5, 15), costs=(1.0, 10.0), raw_costs=(0.1, 1.0),
    tsvm_costs=(1.0,), lda_inputs=(100,), shrinkages=(0.1,), max_iter=60,
)  # fmt: skip


def quick(study: Study) -> Study:
    """Return a small version of a study: one split, the smallest ranks, few settings."""
    return replace(study, ranks=study.ranks[:2], splits=study.splits[:1], grid=QUICK_GRID)


def with_methods(study: Study, names: Iterable[str]) -> Study:
    """Return a study with more methods, if it is one that compares them."""
    if not study.compares:
        return study
    return replace(study, methods=tuple(dict.fromkeys((*study.methods, *names))))
