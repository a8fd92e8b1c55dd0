"""Factorizations: NMF, NMF-alpha, its two predecessors, and any transformer of your own.

What helps NMF-alpha and is not its point, its rivals get too: those that use labels start from
them, every factorization has its mapping updates tuned, every method its own C, and whatever weight
a method has is sought until validation scores stop rising.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from marginparts._types import Array
from marginparts.directions import DirectionSpec, find_directions
from marginparts.estimators import ConstrainedNMF, SemiSupervisedNMF
from marginparts.experiments.climbing import best_of, climb
from marginparts.experiments.grid import Ranks, SearchGrid, Shares
from marginparts.experiments.protocol import Codes, Scored, Trial
from marginparts.experiments.scoring import Board, Parts, Search, score_all
from marginparts.solve.factorize import factorize, factorize_path, parts_of
from marginparts.solve.map import gram_root, map_rows
from marginparts.solve.start import start_from

#: What may be tried for the weight of the labels in NMF-alpha, and with S in its own units.
LAMS = tuple(float(f"{factor}e{power}") for power in range(-3, 5) for factor in (1, 3))
LITERAL_LAMS = tuple(3.0 * 10.0**power for power in range(-4, 8))

#: What may be tried for the costs of the SVMs behind the margin components, and for the weight of
#: the labels of Lee et al.
DIRECTION_COSTS = (1e-4, 1e-3, 0.01, 0.1, 1.0, 10.0, 100.0, 1e3)
LEE_LAMS = (1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1e3, 1e4, 1e5)

#: Above the first rank a factorization with the squared loss gets fewer updates, in proportion, but
#: no fewer than those of the second.
_MANY_PARTS, _MOST_PARTS = 128, 320


def nmf(trial: Trial, fractions: Shares, ranks: Ranks, grid: SearchGrid) -> Scored:
    """NMF with the I-divergence (eqs. 2-4)."""
    for rank in ranks:
        H, V = start_from("random", trial.X_train, rank, trial.seed)
        found = factorize(
            trial.X_train, H, V, solver="mue", max_iter=grid.max_iter, backend=trial.backend
        )  # fmt: skip
        parts = mapped(trial, fractions, found.V, {"rank": rank})
        yield from score_all(trial, fractions, [parts], grid.search)


class Way(NamedTuple):
    """How NMF-alpha is done: as in the paper, but with scaled S and a start from the labels."""

    source: str = "svm"
    multiclass: str = "ovo"
    features: str | None = None
    pseudo: str | None = None
    init: str = "auto"
    scale: bool = True
    gram: bool = True
    anneal: bool = False


_USUAL_WAY = Way()


def nmf_alpha(
    trial: Trial, fractions: Shares, ranks: Ranks, grid: SearchGrid, *, way: Way = _USUAL_WAY
) -> Scored:
    """NMF-alpha (eqs. 14-17), each weight from the same start.

    The weight is sought at every rank, from the best of the rank before it; the cost of the SVMs
    behind the directions at the first rank.
    """
    ladder = LAMS if way.scale else LITERAL_LAMS
    for fraction in fractions:
        lam, C = grid.lam if way.scale else grid.literal_lam, grid.direction_C
        for rank in ranks:
            board = Board(trial, (fraction,), grid.search)

            def score(lam: float, C: float, board: Board = board, rank: int = rank) -> float:
                found = _alpha_parts(trial, fraction, rank, (lam,), C, grid, way)  # noqa: B023
                return max(map(board.enter, found))

            if way.anneal:
                for parts in _alpha_parts(trial, fraction, rank, grid.lams, C, grid, way):
                    board.enter(parts)
            else:
                found = climb(ladder, lam, lambda lam: score(lam, C), grid.steps)  # noqa: B023
                lam = best_of(found)
                if rank == ranks[0]:
                    best = partial(score, lam)
                    C = best_of(climb(DIRECTION_COSTS, C, best, grid.direction_steps, found[lam]))
            yield from board.finish()


def _alpha_parts(
    trial: Trial, fraction: float, rank: int, lams: tuple[float, ...], direction_C: float,
    grid: SearchGrid, way: Way,
) -> Iterator[Parts]:  # fmt: skip
    """Yield the parts of NMF-alpha for one weight, or for those of a path."""
    labels = trial.labels(fraction)
    spec = DirectionSpec(
        way.source, way.multiclass, way.features, way.pseudo, direction_C, way.scale
    )
    S = find_directions(trial.X_train, labels, spec, trial.seed).S
    H, V = start_from(way.init, trial.X_train, rank, trial.seed, labels)
    path = factorize_path(
        trial.X_train, (H, V), S=S, lams=lams, max_iter=grid.max_iter, warm_iter=grid.warm_iter,
        backend=trial.backend,
    )  # fmt: skip
    for lam, found in path:
        setting = {"rank": rank, "lam": lam, "direction_C": direction_C}
        yield mapped(trial, (fraction,), found.V, setting, gram=way.gram)


def mapped(
    trial: Trial, fractions: Shares, V: Array, setting: dict[str, Any], *, gram: bool = True
) -> Parts:
    """Return parts whose codes are Z (eq. 5), or H without ``gram``."""
    V = parts_of(V).T.copy()
    root = gram_root(V).astype(V.dtype) if gram else np.eye(V.shape[1], dtype=V.dtype)
    known = trial.X_train[: trial.n_labeled(max(fractions))]

    @lru_cache(1)  # the shares of labels have the same codes
    def codes(map_iter: int) -> Codes:
        maps = (map_rows(X, V, map_iter, trial.backend) for X in (known, *trial.rows[1:]))
        return Codes({**setting, "map_iter": map_iter}, *(H @ root for H in maps))

    return Parts(setting, codes)


def lee2010(trial: Trial, fractions: Shares, ranks: Ranks, grid: SearchGrid) -> Scored:
    """Semi-supervised NMF of Lee, Yoo & Choi (eq. 18); its weight is sought at the first rank."""
    for fraction in fractions:
        lam = grid.lee_lam
        for rank in ranks:
            board = Board(trial, (fraction,), grid.search)

            def score(lam: float, board: Board = board, rank: int = rank) -> float:
                model, setting = SemiSupervisedNMF(lam=lam), {"lam": lam}
                parts = _squared_loss_parts(model, setting, trial, fraction, rank, grid)  # noqa: B023
                return board.enter(parts)

            steps = grid.steps if rank == ranks[0] else 0
            lam = best_of(climb(LEE_LAMS, lam, score, steps))
            yield from board.finish()


def liu_wu2010(trial: Trial, fractions: Shares, ranks: Ranks, grid: SearchGrid) -> Scored:
    """Constrained NMF of Liu & Wu (eqs. 19-20)."""
    for fraction, rank in product(fractions, ranks):
        parts = _squared_loss_parts(ConstrainedNMF(), {}, trial, fraction, rank, grid)
        yield from score_all(trial, (fraction,), [parts], grid.search)


def _squared_loss_parts(
    model: Any, setting: dict[str, Any], trial: Trial, fraction: float, rank: int, grid: SearchGrid
) -> Parts:
    """Fit an estimator whose map has any number of updates."""
    max_iter = round(grid.squared_iter * min(1.0, _MANY_PARTS / min(rank, _MOST_PARTS)))
    model.set_params(max_iter=max_iter, backend=trial.backend)
    _fit(model, trial, fraction, rank)
    setting = {**setting, "rank": rank}

    def codes(map_iter: int) -> Codes:
        model.set_params(map_iter=map_iter)
        return _transformed(model, trial, fraction, {**setting, "map_iter": map_iter})

    return Parts(setting, codes)


def _fit(model: Any, trial: Trial, fraction: float, rank: int) -> None:
    """Fit a transformer to all training rows, with -1 for unknown labels."""
    given, allowed = {"n_components": rank, "random_state": trial.seed}, model.get_params()
    model.set_params(**{name: given[name] for name in given if name in allowed})
    model.fit(trial.X_train, trial.labels(fraction).codes)


def _transformed(model: Any, trial: Trial, fraction: float, setting: dict[str, Any]) -> Codes:
    rows = (trial.X_train[: trial.n_labeled(fraction)], *trial.rows[1:])
    found = (model.transform(X) for X in rows)
    return Codes(setting, *(sp.csr_array(Z) if sp.issparse(Z) else np.asarray(Z) for Z in found))


def own_method(
    trial: Trial, fractions: Shares, ranks: Ranks, grid: SearchGrid, *, make: Callable[..., Any]
) -> Scored:
    """Any scikit-learn transformer: it sees all training rows, with -1 for unknown labels."""
    for fraction, rank in product(fractions, ranks):
        model = make()
        _fit(model, trial, fraction, rank)
        found = _transformed(model, trial, fraction, {"rank": rank})
        yield from score_all(trial, (fraction,), [found], Search(grid.C, grid.steps))
