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
    """What is tried on the validation rows, and where a search begins.

    A search (`climb`) begins at ``lam`` for the weight of the labels in NMF-alpha, at
    ``literal_lam`` with S in its own units, at ``direction_C`` for the SVMs behind the margin
    components (``direction_steps`` either way), at ``lee_lam`` for the weight in the method of Lee
    et al., at ``map_iter`` for the mapping updates of every factorization (unless ``map_iters``
    says which to try), at ``C`` for SVMs on codes, at ``raw_C`` on the inputs and on principal
    components, at ``tsvm_C`` for transductive SVMs; it may go ``steps`` steps either way. ``lams``
    are the weights of a path. ``max_iter``, ``warm_iter`` and ``squared_iter`` are the iterations
    of a fit, of a step of a path, and of a fit with the squared loss. LDA sees the data through
    ``lda_inputs`` principal components.
    """

    lam: float = 3.0
    literal_lam: float = 30.0
    lams: tuple[float, ...] = LADDER
    direction_C: float = 1.0  # noqa: N815
    direction_steps: int = 10
    lee_lam: float = 10.0
    map_iter: int = 15
    map_iters: tuple[int, ...] = ()
    C: float = 10.0
    raw_C: float = 1.0  # noqa: N815
    tsvm_C: float = 1.0  # noqa: N815
    lda_inputs: tuple[int, ...] = (100, 300)
    max_iter: int = 150
    warm_iter: int = 40
    squared_iter: int = 100
    steps: int = 10

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
