"""Past the paper: NMF-alpha with all that helps, against the best linear classifiers on the inputs.

The paper's method learns from the margin of the labeled samples. Two things carry it further:
labels that a classifier guessed for the samples it is surest of, and a transductive SVM as the
last one, which looks for a gap between the codes of all samples. Everything is chosen on
validation rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
from sklearn.preprocessing import normalize

from marginparts.directions import DirectionSpec, find_directions
from marginparts.experiments.factorizations import mapped
from marginparts.experiments.grid import Ranks, SearchGrid, Shares
from marginparts.experiments.linear import score_transductive
from marginparts.experiments.preprocessing import idf_weighting
from marginparts.experiments.protocol import Codes, Scored, Trial
from marginparts.experiments.scoring import Board, Parts, Search, score_all
from marginparts.labels import Labels
from marginparts.solve.factorize import factorize, factorize_path
from marginparts.solve.start import start_from
from marginparts.svm.head import fit_head
from marginparts.svm.pseudo_labels import with_surest

#: The share of each predicted class that is taken for labeled, round by round: the first teacher
#: is a linear SVM on the inputs, the later ones are the rounds before.
SUREST = (0.5, 0.6, 0.7)

#: Factorizations from different starts whose codes are put side by side.
STARTS = 3

#: Shares of positives among the unlabeled samples that a transductive SVM may assume.
SHARES = (0.47, 0.5, 0.53)


def pseudo_parts(trial: Trial, fractions: Shares, ranks: Ranks, grid: SearchGrid) -> Scored:
    """Class sums over labeled and confidently guessed samples, in rounds."""
    # of rows of log counts with length one, these are the tf-idf rows
    features = idf_weighting(trial.X_train)(trial.X_train)
    for fraction, rank in product(fractions, ranks):
        labels, m = trial.labels(fraction), trial.n_labeled(fraction)
        known = labels.take(np.arange(m))
        values = fit_head(features[:m], known, 1.0).values(features)
        for turn, share in enumerate(SUREST if fraction < 1 else (0.0,)):
            taught = with_surest(labels, values, share)
            board = Board(trial, (fraction,), grid.search)
            for parts in _class_sum_parts(trial, taught, rank, grid):
                board.enter(parts)
            found = board.finish()
            yield from ({**record, "round": turn + 1, "dimensions": rank} for record in found)
            best = max(found, key=lambda record: record["validation"])
            _, codes = board.best[fraction]
            head = fit_head(codes.train[:m], known, best["C"], normalize=best["normalize"])
            values = head.values(codes.train)


def _class_sum_parts(trial: Trial, labels: Labels, rank: int, grid: SearchGrid) -> Iterator[Parts]:
    S = find_directions(trial.X_train, labels, DirectionSpec("class"), trial.seed).S
    H, V = start_from("auto", trial.X_train, rank, trial.seed, labels)
    path = factorize_path(
        trial.X_train, (H, V), S=S, lams=grid.lams, max_iter=grid.max_iter,
        warm_iter=grid.warm_iter, backend=trial.backend,
    )  # fmt: skip
    for lam, found in path:
        yield mapped(trial, (1.0,), found.V, {"rank": rank, "lam": lam})


def transductive_parts(trial: Trial, fractions: Shares, ranks: Ranks, grid: SearchGrid) -> Scored:
    """Codes of several factorizations side by side, and a transductive SVM on them.

    With all labels the last SVM is the usual one.
    """
    for fraction, rank, lam in product(fractions, ranks, grid.lams):
        labels, C = trial.labels(fraction), grid.direction_C
        S = find_directions(trial.X_train, labels, DirectionSpec(C=C), trial.seed).S
        each = []
        for start in range(STARTS):
            H, V = start_from("auto", trial.X_train, rank, STARTS * trial.seed + start, labels)
            V = factorize(
                trial.X_train, H, V, S=S, lam=lam, max_iter=grid.max_iter, backend=trial.backend
            ).V
            setting = {"rank": rank, "lam": lam, "direction_C": C, "dimensions": STARTS * rank}
            parts = mapped(trial, (1.0,), V, setting)
            each.append([parts.codes(n) for n in grid.map_iters or (grid.map_iter,)])
        every = [_side_by_side(same_map) for same_map in zip(*each, strict=True)]
        if fraction == 1:
            yield from score_all(trial, (1.0,), every, Search(grid.C, grid.steps))
        else:
            unit = [Codes(codes[0], *(normalize(rows) for rows in codes[1:])) for codes in every]
            yield from score_transductive(trial, fraction, unit, grid, SHARES)


def _side_by_side(several: tuple[Codes, ...]) -> Codes:
    """Put the codes of several factorizations beside each other, each with rows of length 1."""
    rows = zip(*(codes[1:] for codes in several), strict=True)
    return Codes(several[0].setting, *(np.hstack([normalize(X) for X in side]) for side in rows))
