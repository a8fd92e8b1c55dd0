"""What a person would try today: naive Bayes with EM, latent semantic analysis, self-training,
label spreading. Each is tuned on validation rows by the same rule as everything else.

Those for texts have their own way to prepare the rows, so they begin with the counts.
"""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import numpy as np
from sklearn.preprocessing import normalize

from marginparts._types import Array, Data
from marginparts.experiments.climbing import COSTS, best_of, climb
from marginparts.experiments.grid import Ranks, SearchGrid, Shares
from marginparts.experiments.linear import leading_axes, score_leading
from marginparts.experiments.preprocessing import preprocess
from marginparts.experiments.protocol import Records, Scored, Trial
from marginparts.rivals.contest import taught_heads
from marginparts.rivals.label_spreading import Neighbors, find_neighbors, spread_values
from marginparts.teaching.naive_bayes import naive_bayes_values

#: What an unlabeled row may count for naive Bayes, and what is added to every count.
EM_WEIGHTS = (0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
SMOOTHING = (1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)

#: The share of each predicted class that a teacher may label, round by round.
TAUGHT = (0.0, 0.25, 0.5, 0.75, 1.0)

#: Neighbors in the graph (a row is its own first neighbor), and how much comes from them.
NEIGHBORS = (2, 3, 5, 10, 20, 40, 80, 160)
SPREADING = (0.001, 0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99)


def nb_em(trial: Trial, fractions: Shares, ranks: Ranks, grid: SearchGrid) -> Scored:
    """Multinomial naive Bayes with EM, on the counts and on the prepared rows.

    The weight of unlabeled rows is sought first, then what is added to every count.
    """
    each = {"counts": trial.counts}
    if trial.counts[0] is not trial.X_train:
        each["prepared"] = trial.rows
    for fraction, (name, rows) in product(fractions, each.items()):
        yield from _nb_em_on(trial, fraction, name, rows, grid)


def _nb_em_on(
    trial: Trial, fraction: float, name: str, rows: tuple[Data, ...], grid: SearchGrid
) -> Scored:
    train, *others = rows
    labels, records = trial.labels(fraction), Records(trial)

    def score(weight: float, alpha: float) -> float:
        values = naive_bayes_values(train, labels, others, weight=weight, alpha=alpha)
        return records.enter(fraction, {"rows": name, "weight": weight, "alpha": alpha}, *values)

    alpha, weight = 0.1, 0.0
    if fraction < 1:
        weight = best_of(climb(EM_WEIGHTS, 0.1, lambda w: score(w, alpha), grid.steps))
    climb(SMOOTHING, alpha, lambda a: score(weight, a), grid.steps)
    yield from records


def lsa(trial: Trial, fractions: Shares, ranks: Ranks, grid: SearchGrid) -> Scored:
    """Latent semantic analysis: the leading singular vectors of tf-idf rows, and a linear SVM."""
    yield from score_leading(trial, fractions, ranks, grid, semantic_rows(trial, max(ranks)))


def semantic_rows(trial: Trial, rank: int) -> list[Array]:
    """Return training, validation and test rows in the latent space of the tf-idf rows."""
    rows = preprocess("tf-idf", *trial.counts)
    axes = leading_axes(rows[0], min(rank, min(rows[0].shape) - 1), trial.seed)
    return [np.asarray(X @ axes.T) for X in rows]


def self_training(trial: Trial, fractions: Shares, ranks: Ranks, grid: SearchGrid) -> Scored:
    """A linear SVM on the inputs that labels the rows it is surest of, more of them each round."""
    rows = [normalize(X) for X in trial.rows]
    records = Records(trial)
    for fraction in fractions:
        climb(COSTS, grid.raw_C, partial(_taught, records, fraction, rows), grid.steps)
    yield from records


def _taught(records: Records, fraction: float, rows: list[Data], C: float) -> float:
    """Enter a record for each round, and return the best score."""
    train, *others = rows
    shares = TAUGHT if fraction < 1 else TAUGHT[:1]
    heads = taught_heads(train, records.trial.labels(fraction), C, shares)
    return max(
        records.enter(fraction, {"taught": share, "C": C}, *map(head.values, others))
        for share, head in zip(shares, heads, strict=True)
    )


def label_spreading(trial: Trial, fractions: Shares, ranks: Ranks, grid: SearchGrid) -> Scored:
    """Label spreading on nearest neighbors: by the angle, of texts in their latent space.

    ``ranks`` are numbers of dimensions, none for the inputs themselves. The number of neighbors is
    sought first, then how much comes from them.
    """
    Z = semantic_rows(trial, max(ranks)) if ranks else trial.rows
    for rank in ranks or (None,):
        train, *others = (normalize(each if rank is None else each[:, :rank]) for each in Z)
        neighbors = find_neighbors(train, others, max(NEIGHBORS))
        for fraction in fractions:
            yield from _spread(
                trial, fraction, neighbors, {} if rank is None else {"rank": rank}, grid
            )


def _spread(
    trial: Trial, fraction: float, neighbors: Neighbors, setting: dict[str, Any], grid: SearchGrid
) -> Scored:
    labels, records = trial.labels(fraction), Records(trial)

    def score(k: float, alpha: float) -> float:
        values = spread_values(neighbors, labels, k=int(k), alpha=alpha)
        tried = {**setting, "neighbors": int(k), "spread": alpha}
        return records.enter(fraction, tried, *values)

    k = best_of(climb(NEIGHBORS, 10, lambda k: score(k, 0.5), grid.steps))
    climb(SPREADING, 0.5, lambda alpha: score(k, alpha), grid.steps)
    yield from records
