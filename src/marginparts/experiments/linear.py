"""Linear classifiers on the inputs and on linear projections of them: SVM, TSVM, PCA, LDA."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from itertools import product

import numpy as np
import scipy.sparse as sp
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.preprocessing import normalize

from marginparts._types import Array, Data
from marginparts.experiments.climbing import COSTS, climb
from marginparts.experiments.grid import Ranks, SearchGrid, Shares
from marginparts.experiments.protocol import Codes, Records, Scored, Trial
from marginparts.experiments.scoring import Board, Search, score_all
from marginparts.labels import Labels
from marginparts.svm.transductive import transductive_weights
from marginparts.weighting import has_unit_rows

#: What may be tried for the shrinkage of LDA's covariances.
SHRINKAGES = (1e-4, 1e-3, 0.01, 0.1, 0.3, 0.6, 0.9, 0.99)

#: Of the decomposition behind principal components: columns beyond those wanted, and iterations.
_OVERSAMPLING, _SUBSPACE_ITERATIONS = 20, 4


def raw_svm(trial: Trial, fractions: Shares, ranks: Ranks, grid: SearchGrid) -> Scored:
    """A linear SVM on the inputs."""
    yield from score_all(trial, fractions, [Codes({}, *trial.rows)], Search(grid.raw_C, grid.steps))


def raw_tsvm(
    trial: Trial, fractions: Shares, ranks: Ranks, grid: SearchGrid, *,
    shares: tuple[float | None, ...] = (None,),
) -> Scored:  # fmt: skip
    """A transductive SVM on the inputs; with all labels it is the SVM.

    ``shares`` of positives among the unlabeled rows are tried; None is that of the labels.
    """
    for fraction in fractions:
        if fraction == 1:
            yield from raw_svm(trial, (fraction,), ranks, grid)
            continue
        # rows that have length one already need not be tried twice
        every = [
            Codes({"normalize": each}, *(normalize(X) if each else X for X in trial.rows))
            for each in ((True,) if has_unit_rows(trial.X_train) else (True, False))
        ]
        yield from score_transductive(trial, fraction, every, grid, shares)


def score_transductive(
    trial: Trial, fraction: float, every: Iterable[Codes], grid: SearchGrid,
    shares: tuple[float | None, ...],
) -> Scored:  # fmt: skip
    """Train transductive SVMs on the codes of all training rows: codes and share first, then C."""
    labels, records = trial.labels(fraction), Records(trial)

    def score(codes: Codes, share: float | None, C: float) -> float:
        # with a constant column, for the intercept
        train, validation, test = (
            sp.hstack([sp.csr_array(rows), np.ones((rows.shape[0], 1))], format="csr")
            for rows in codes[1:]
        )
        given = None if share is None else (share,)
        W = transductive_weights(train, labels, C, shares=given, seed=trial.seed)
        setting = {**codes.setting, "C": C, "share": share}
        return records.enter(fraction, setting, validation @ W.T, test @ W.T)

    found = [(score(codes, s, grid.tsvm_C), codes, s) for codes, s in product(every, shares)]
    known, codes, share = max(found, key=lambda each: each[0])
    climb(COSTS, grid.tsvm_C, lambda C: score(codes, share, C), grid.steps, known)
    yield from records


def pca(trial: Trial, fractions: Shares, ranks: Ranks, grid: SearchGrid) -> Scored:
    """Principal components of the training rows: the first ones serve the smaller ranks.

    With all components it is the raw SVM.
    """
    yield from score_leading(trial, fractions, ranks, grid, _principal(trial, max(ranks)))


def score_leading(
    trial: Trial, fractions: Shares, ranks: Ranks, grid: SearchGrid, Z: list[Array]
) -> Scored:
    """Score the first columns of training, validation and test rows, as many as each rank."""
    for rank in ranks:
        codes = Codes({"rank": rank}, *(rows[:, :rank] for rows in Z))
        yield from score_all(trial, fractions, [codes], Search(grid.raw_C, grid.steps))


def _principal(trial: Trial, rank: int) -> list[Array]:
    """Return the principal components of training, validation and test rows."""
    X = trial.X_train
    rank = min(rank, min(X.shape) - 1)
    mean = np.asarray(X.mean(axis=0)).ravel().astype(X.dtype)
    axes = leading_axes(X, rank, trial.seed, mean)
    return [np.asarray(rows @ axes.T - mean @ axes.T) for rows in trial.rows]


def leading_axes(X: Data, rank: int, seed: int, mean: Array | None = None) -> Array:
    """Return the leading right singular vectors (rank, d) of X, or of X without its mean row.

    By iterations of a random subspace that is a little larger (Halko et al. 2011): a sparse X is
    never made dense. (scikit-learn's `randomized_svd` does not center; the rivals of a model's card
    use it, and records of the paper's experiments hang on the rounding of this one.)
    """

    def times(A: Array) -> Array:
        return X @ A if mean is None else X @ A - mean @ A

    def transposed_times(A: Array) -> Array:
        return X.T @ A if mean is None else X.T @ A - np.outer(mean, A.sum(axis=0))

    columns = min(rank + _OVERSAMPLING, *X.shape)
    start = np.random.default_rng(seed).standard_normal((X.shape[1], columns))
    Q = np.linalg.qr(times(start.astype(X.dtype)))[0]
    for _ in range(_SUBSPACE_ITERATIONS):
        Q = np.linalg.qr(times(transposed_times(Q)))[0]
    B = transposed_times(Q)
    values, vectors = np.linalg.eigh((B.T @ B).astype(np.float64))
    top = np.argsort(-values)[:rank]
    # what data of a smaller rank does not have is an axis of zeros, not rounding blown up
    real = values[top] > np.finfo(X.dtype).eps ** 2 * values[top[0]]
    inverse = np.where(real, 1 / np.sqrt(np.where(real, values[top], 1)), 0)
    return np.asarray((B @ (vectors[:, top] * inverse)).T, dtype=X.dtype)


def lda(trial: Trial, fractions: Shares, ranks: Ranks, grid: SearchGrid) -> Scored:
    """Linear discriminants of the labeled rows.

    They need fewer columns than rows, hence principal components first (of all training rows,
    which helps) and shrunk covariances. Each label of multilabel data gives one discriminant.
    """
    inputs = sorted({min(n, min(trial.X_train.shape) - 1) for n in grid.lda_inputs})
    Z = _principal(trial, max(inputs))
    for fraction in fractions:
        m = trial.n_labeled(fraction)
        labels = trial.train.take(np.arange(m))
        board = Board(trial, (fraction,), Search(1.0, grid.steps))
        for n in inputs:
            rows = [each[:, :n] for each in (Z[0][:m], *Z[1:])]
            coded = partial(_discriminated, rows, labels, n)
            climb(SHRINKAGES, 0.1, lambda s: board.enter(coded(s)), grid.steps)  # noqa: B023
        yield from board.finish()


def _discriminated(rows: list[Array], labels: Labels, inputs: int, shrinkage: float) -> Codes:
    """Fit LDA to the classes, or to each label that some samples have and some have not."""
    targets = labels.codes.T if labels.multilabel else [labels.codes]
    fitted = [
        LinearDiscriminantAnalysis(solver="eigen", shrinkage=shrinkage).fit(rows[0], y)
        for y in targets
        if len(np.unique(y)) > 1
    ]
    found = [np.hstack([each.transform(X) for each in fitted]) for X in rows]
    setting = {"inputs": inputs, "shrinkage": shrinkage, "dimensions": found[0].shape[1]}
    return Codes(setting, *found)
