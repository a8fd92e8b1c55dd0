"""What a method of the comparison is, and what it tries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from marginparts.experiments.protocol import Scored, Trial
from marginparts.experiments.scoring import Search

#: The weights of a path: the first from the start, each further one from the model before it.
LADDER = (100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03)


class SearchGrid(NamedTuple):
    """What is tried on the validation rows, and where a search (`climb`) begins."""

    lam: float = 3.0  # the weight of the labels in NMF-alpha
    literal_lam: float = 30.0  # ... with S in its own units
    lams: tuple[float, ...] = LADDER  # ... of a path
    direction_C: float = 1.0  # noqa: N815 - of the SVMs behind the margin components
    direction_steps: int = 10
    lee_lam: float = 10.0  # the weight in the method of Lee et al.
    map_iter: int = 15  # mapping updates of every factorization
    map_iters: tuple[int, ...] = ()  # which of them to try, in the place of a search
    C: float = 10.0  # of SVMs on codes
    raw_C: float = 1.0  # noqa: N815 - of SVMs on the inputs and on principal components
    tsvm_C: float = 1.0  # noqa: N815 - of transductive SVMs
    lda_inputs: tuple[int, ...] = (100, 300)  # principal components through which LDA sees data
    max_iter: int = 150  # iterations of a fit
    warm_iter: int = 40  # ... of a step of a path
    squared_iter: int = 100  # ... of a fit with the squared loss
    steps: int = 10  # how far a search may go either way

    @property
    def search(self) -> Search:
        """How maps and costs are sought for codes."""
        return Search(self.C, self.steps, self.map_iter, self.map_iters)


#: Shares of labels, and numbers of dimensions.
Shares = tuple[float, ...]
Ranks = tuple[int, ...]

#: ``run(trial, fractions, ranks, grid)`` yields one dictionary a setting.
Run = Callable[[Trial, Shares, Ranks, SearchGrid], Scored]


@dataclass(frozen=True)
class Method:
    """A method, and what one unit of its work covers.

    One that learns from ``labels`` has each share of them for work of its own; what others learn
    serves all shares. Of the ``ranks`` "each" is work of its own, or one go serves "all" of them,
    or it has "none".
    """

    title: str
    run: Run
    settings: tuple[str, ...]  # the entries of the grid that it uses
    labels: bool = True
    ranks: str = "each"
    source: str = ""  # the code of one from outside, so that an edited one is not taken for done
