"""What a person would try today: naive Bayes with EM, latent semantic analysis, self-training,
label spreading. Each is tuned on validation rows by the same rule as everything else.

Those for texts have their own way to prepare the rows, so they begin with the counts.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.preprocessing import normalize

from marginparts._types import Array, Data
from marginparts.directions import with_surest
from marginparts.experiments.climbing import COSTS, best_of, climb
from marginparts.experiments.grid import Ranks, SearchGrid, Shares
from marginparts.experiments.linear import leading_axes
from marginparts.experiments.preprocessing import preprocess
from marginparts.experiments.protocol import Codes, Scored, Trial, scores
from marginparts.experiments.scoring import Search, score_all
from marginparts.labels import Labels
from marginparts.rivals.label_spreading import find_neighbors, spread_values
from marginparts.svm.head import fit_head
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
    as_they_are = trial.counts is None or trial.counts[0] is trial.X_train
    for fraction in fractions:
        for rows in ("counts",) if as_they_are else ("counts", "prepared"):
            yield from _nb_em_on(trial, fraction, rows, grid)


def _nb_em_on(trial: Trial, fraction: float, rows: str, grid: SearchGrid) -> Scored:
    prepared = (trial.X_train, trial.X_validation, trial.X_test)
    train, *others = prepared if rows == "prepared" else trial.counts or prepared
    labels, records = trial.labels(fraction), []

    def score(weight: float, alpha: float) -> float:
        values = naive_bayes_values(train, labels, others, weight=weight, alpha=alpha)
        found = scores(trial, *values)
        setting = {"rows": rows, "weight": weight, "alpha": alpha}
        records.append({"fraction": fraction, **setting, **found})
        return found["validation"]

    alpha, weight = 0.1, 0.0
    if fraction < 1:
        weight = best_of(climb(EM_WEIGHTS, 0.1, lambda w: score(w, alpha), grid.steps))
    climb(SMOOTHING, alpha, lambda a: score(weight, a), grid.steps)
    yield from records


def lsa(trial: Trial, fractions: Shares, ranks: Ranks, grid: SearchGrid) -> Scored:
    """Latent semantic analysis: the leading singular vectors of tf-idf rows, and a linear SVM."""
    Z = semantic_rows(trial, max(ranks))
    for rank in ranks:
        codes = Codes({"rank": rank}, *(rows[:, :rank] for rows in Z))
        yield from score_all(trial, fractions, [codes], Search(grid.raw_C, grid.steps))


def semantic_rows(trial: Trial, rank: int) -> list[Array]:
    """Return training, validation and test rows in the latent space of the tf-idf rows."""
    counts = trial.counts or (trial.X_train, trial.X_validation, trial.X_test)
    rows = preprocess("tf-idf", *counts)
    axes = leading_axes(rows[0], min(rank, min(rows[0].shape) - 1), trial.seed)
    return [np.asarray(X @ axes.T) for X in rows]


def self_training(trial: Trial, fractions: Shares, ranks: Ranks, grid: SearchGrid) -> Scored:
    """A linear SVM on the inputs that labels the rows it is surest of, more of them each round."""
    rows = [normalize(X) for X in (trial.X_train, trial.X_validation, trial.X_test)]
    for fraction in fractions:
        records: list[dict[str, Any]] = []

        def score(
            C: float, fraction: float = fraction, records: list[dict[str, Any]] = records
        ) -> float:
            found = list(_taught(trial, fraction, rows, C))
            records += found
            return max(float(record["validation"]) for record in found)

        climb(COSTS, grid.raw_C, score, grid.steps)
        yield from records


def _taught(trial: Trial, fraction: float, rows: list[Data], C: float) -> Scored:
    train, validation, test = rows
    labels = known = trial.labels(fraction)
    values = np.zeros((train.shape[0], 1))
    for share in TAUGHT if fraction < 1 else TAUGHT[:1]:
        if share > 0:
            labels = with_surest(known, values, share)
        given = np.flatnonzero(labels.labeled)
        head = fit_head(train[given], labels.take(given), C)
        values = head.values(train)
        found = scores(trial, head.values(validation), head.values(test))
        yield {"fraction": fraction, "taught": share, "C": C, **found}


def label_spreading(trial: Trial, fractions: Shares, ranks: Ranks, grid: SearchGrid) -> Scored:
    """Label spreading on nearest neighbors: by the angle, of texts in their latent space.

    ``ranks`` are numbers of dimensions, none for the inputs themselves. The number of neighbors is
    sought first, then how much comes from them.
    """
    if not ranks:
        rows = [normalize(X) for X in (trial.X_train, trial.X_validation, trial.X_test)]
        yield from _spread(trial, fractions, rows, {}, grid)
        return
    Z = semantic_rows(trial, max(ranks))
    for rank in ranks:
        rows = [normalize(each[:, :rank]) for each in Z]
        yield from _spread(trial, fractions, rows, {"rank": rank}, grid)


def _spread(
    trial: Trial,
    fractions: Shares,
    rows: list[Data],
    setting: dict[str, Any],
    grid: SearchGrid,
) -> Scored:
    train, *others = rows
    neighbors = find_neighbors(train, others, max(NEIGHBORS))
    for fraction in fractions:
        labels = trial.labels(fraction)
        records: list[dict[str, Any]] = []

        def score(
            k: float, alpha: float, fraction: float = fraction, labels: Labels = labels,
            records: list[dict[str, Any]] = records,
        ) -> float:  # fmt: skip
            values = spread_values(neighbors, labels, k=int(k), alpha=alpha)
            found = scores(trial, *values)
            tried = {**setting, "neighbors": int(k), "spread": alpha}
            records.append({"fraction": fraction, **tried, **found})
            return found["validation"]

        k = best_of(climb(NEIGHBORS, 10, lambda k: score(k, 0.5), grid.steps))
        climb(SPREADING, 0.5, lambda alpha: score(k, alpha), grid.steps)  # noqa: B023
        yield from records
