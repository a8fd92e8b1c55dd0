"""The experiments as data: what is run for each data set, cut into units of work.

A unit is one go of one method: all its ranks for one share of labels, or one rank for all shares. A
killed run starts again at the unfinished unit.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from typing import Any

from marginparts.experiments.grid import SearchGrid
from marginparts.experiments.registry import method_named

USUAL_GRID = SearchGrid()

#: Splits of training and validation rows in the paper.
SPLITS = (0, 1, 2, 3, 4)

#: Every method of Table 2 in the paper and of Figures 3 to 5.
PAPER_METHODS = ("svm", "tsvm", "pca", "lda", "nmf", "lee2010", "liu_wu2010", "nmf_alpha")

#: What a person would try today beside them: any data, and texts.
RIVALS = ("self_training", "label_spreading")
TEXT_RIVALS = (*RIVALS, "nb_em", "lsa")

#: NMF-alpha as in the paper (but for scaled S and the start from labels), and with one
#: thing changed at a time; last, all that the classifier changes by default.
ABLATION_METHODS = (
    "nmf_alpha", "nmf_alpha_annealed", "nmf_alpha_ovr", "nmf_alpha_hellinger", "nmf_alpha_pseudo",
    "nmf_alpha_class", "nmf_alpha_perceptron", "nmf_alpha_pa", "nmf_alpha_h", "nmf_alpha_literal",
    "nmf_alpha_random", "nmf_alpha_defaults",
)  # fmt: skip


@dataclass(frozen=True)
class Study:
    """A data set, how it is prepared, and what is tried on it; its name is that of its records.

    ``own_ranks`` are for methods that need other ranks than the others: how many parts help differs
    by more than the number of classes. What a method seeks once, it seeks at the first of them.
    """

    name: str
    data: str
    preprocessing: str
    fractions: tuple[float, ...]
    ranks: tuple[int, ...]
    methods: tuple[str, ...] = PAPER_METHODS
    splits: tuple[int, ...] = SPLITS
    grid: SearchGrid = USUAL_GRID
    own_ranks: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def units(self) -> Iterator[Unit]:
        """Cut the study into units, the longest first: none is left running alone at the end."""
        found = []
        for split, name in product(self.splits, self.methods):
            method, own = method_named(name), self.own_ranks.get(name, self.ranks)
            shares = zip(self.fractions) if method.labels else [self.fractions]
            ranks = {"each": zip(own), "all": [own], "none": [()]}[method.ranks]
            found += [
                Unit(self.data, self.preprocessing, name, split, fractions, some, self.grid)
                for fractions, some in product(shares, ranks)
            ]
        yield from sorted(found, key=lambda unit: -unit.weight)


@dataclass(frozen=True)
class Unit:
    """One go of one method on one split."""

    data: str
    preprocessing: str
    method: str
    split: int
    fractions: tuple[float, ...]
    ranks: tuple[int, ...]
    grid: SearchGrid

    @property
    def key(self) -> str:
        """A digest of what is done, with all that matters for it in the grid."""
        method = method_named(self.method)
        said: dict[str, Any] = asdict(self)
        said["grid"] = {name: getattr(self.grid, name) for name in method.settings}
        said["source"] = method.source
        return hashlib.sha1(json.dumps(said).encode(), usedforsecurity=False).hexdigest()[:12]

    @property
    def weight(self) -> float:
        """About how long it takes, in any unit: for the order of work and the time left."""
        size = (10 + sum(self.ranks)) * (1 + 2 * sum(self.fractions))
        return _COST.get(self.method, 0.3) * size


#: Rough cost of a unit for its ranks and labels.
_COST = {
    "svm": 0.4, "tsvm": 8.0, "tsvm_shares": 8.0, "self_training": 2.5, "nb_em": 0.3,
    "label_spreading": 0.01, "lsa": 0.015, "pca": 0.017, "lda": 2.4, "nmf": 0.04, "lee2010": 0.11,
    "liu_wu2010": 0.08,
}  # fmt: skip


_NEWS_GRID = SearchGrid(lam=1.0, map_iter=5, lda_inputs=(300, 1000))
_NEWS_MANY = (64, 128, 256)
_NEWS_RANKS = {
    "nmf_alpha": (20, 12, 32, 64), "pca": (32, 64, 128, 256, 512), "nmf": (64, 128, 256, 512),
    "lsa": (100, 200, 300, 512), "label_spreading": (50, 100, 200, 400),
}  # fmt: skip
_AVIATION_GRID = SearchGrid(lam=0.3, map_iter=5)

#: The paper's own third data set, for those who have it.
AVIATION = Study(
    "aviation", "aviation", "l2-log", (0.05, 0.1, 1.0), (44, 22, 88, 176),
    methods=(*PAPER_METHODS, *TEXT_RIVALS), grid=_AVIATION_GRID,
    own_ranks={
        "lsa": (50, 100, 200, 300), "label_spreading": (50, 100, 200, 400),
        "nmf_alpha": (22, 11, 44, 88), "pca": (22, 44, 88, 176, 352),
    },
)  # fmt: skip

#: Table 2 and Figures 3 to 5.
TABLE_2 = (
    Study(
        "mnist", "mnist", "counts", (0.02, 0.1, 1.0), (64, 32, 128, 256),
        methods=(*PAPER_METHODS, *RIVALS), grid=SearchGrid(lam=10.0, direction_C=10.0),
        own_ranks={
            "pca": (8, 16, 32, 64, 128, 256, 512), "nmf_alpha": (64, 32, 128, 256, 512),
            "liu_wu2010": (32, 64, 128, 256, 512), "label_spreading": (),
        },
    ),
    Study(
        "news", "news", "l2-log", (0.2, 0.4, 1.0), _NEWS_MANY,
        methods=(*PAPER_METHODS, *TEXT_RIVALS), grid=_NEWS_GRID, own_ranks=_NEWS_RANKS,
    ),
    replace(
        AVIATION, name="aviation-500", data="aviation-500", preprocessing="counts",
        grid=_AVIATION_GRID._replace(tsvm_C=0.1, lda_inputs=(300, 499)),
    ),
    replace(
        AVIATION, name="aviation-counts", data="aviation-counts",
        grid=_AVIATION_GRID._replace(lda_inputs=(100, 300, 600)),
    ),
)  # fmt: skip

#: Reported beside Table 2: another preparation. (LSA has its own rows, so it is the same there.)
BESIDE = (
    Study("news-tf-idf", "news", "tf-idf", (0.2, 0.4, 1.0), (64, 256),
          methods=("svm", "tsvm", "self_training", "nb_em", "pca", "nmf", "nmf_alpha"),
          grid=_NEWS_GRID, own_ranks={"nmf_alpha": (32, 20, 64), "pca": (256, 512)}),
)  # fmt: skip

#: What each choice in NMF-alpha is worth.
ABLATIONS = (
    Study("ablation-mnist", "mnist", "counts", (0.02,), (128,), methods=ABLATION_METHODS,
          grid=SearchGrid(map_iters=(2, 5, 15, 60), direction_C=10.0, direction_steps=0, lam=10.0)),
    Study("ablation-news", "news", "l2-log", (0.2,), (32,), methods=ABLATION_METHODS,
          grid=SearchGrid(map_iter=5, map_iters=(1, 2, 5, 15, 60), direction_steps=0, lam=1.0)),
)  # fmt: skip

#: How far it goes past the paper, with at most 64 parts on News.
OPEN_GOAL = (
    Study("open-news", "news", "l2-log", (0.2, 0.4, 1.0), (20, 40), methods=("pseudo_parts",),
          grid=SearchGrid(lams=(1000.0, 100.0, 10.0, 1.0), map_iter=5, max_iter=80)),
    Study("open-mnist", "mnist", "counts", (0.02, 0.1, 1.0), (64, 128),
          methods=("transductive_parts",),
          grid=SearchGrid(lams=(10.0,), direction_C=10.0, map_iters=(15, 60), tsvm_C=10.0)),
    Study("open-mnist-raw", "mnist", "counts", (0.02, 0.1, 1.0), (), methods=("tsvm_shares",),
          grid=SearchGrid(tsvm_C=1.0)),
    Study("open-mnist-all", "mnist", "counts", (1.0,), (256,), methods=("transductive_parts",),
          grid=SearchGrid(lams=(10.0,), direction_C=10.0, map_iters=(15, 60))),
)  # fmt: skip

STUDIES = {study.name: study for study in (*TABLE_2, AVIATION, *BESIDE, *ABLATIONS, *OPEN_GOAL)}

#: A small grid for a first try, in minutes.
QUICK_GRID = SearchGrid(
    lams=(10.0, 1.0), lda_inputs=(100,), max_iter=40, warm_iter=10, steps=1, direction_steps=0
)


def quick(study: Study) -> Study:
    """Return a small version of a study: one split, the smallest ranks, few settings."""
    few = {name: tuple(sorted(ranks)[:2]) for name, ranks in study.own_ranks.items()}
    return replace(
        study, ranks=tuple(sorted(study.ranks)[:2]), splits=study.splits[:1], grid=QUICK_GRID,
        own_ranks=few,
    )  # fmt: skip


def with_methods(study: Study, names: Iterable[str]) -> Study:
    """Return a study with more methods, if all of the paper's take part in it."""
    if not set(PAPER_METHODS) <= set(study.methods):
        return study
    return replace(study, methods=tuple(dict.fromkeys((*study.methods, *names))))
