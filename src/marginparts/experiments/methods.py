"""The methods of the paper's section 3: each turns a trial into scored settings.

What helps NMF-alpha and is not its point, its rivals get too: those that use labels start from
them, every factorization has its mapping updates tuned, every method its own C, and whatever weight
a method has is sought until validation scores stop rising.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.preprocessing import normalize
from sklearn.utils.extmath import row_norms

from marginparts._types import Array
from marginparts.directions import DirectionSpec, find_directions
from marginparts.estimators import ConstrainedNMF, SemiSupervisedNMF
from marginparts.experiments.climbing import COSTS, best_of, climb
from marginparts.experiments.protocol import Codes, Scored, Trial, scores
from marginparts.experiments.scoring import Board, Parts, Search, score_all
from marginparts.labels import Labels
from marginparts.solve.factorize import factorize, factorize_path, map_rows, parts_of, start_from
from marginparts.solve.geometry import gram_root
from marginparts.svm.transductive import transductive_weights

#: What may be tried for the weight of the labels in NMF-alpha, and with S in its own units.
LAMS = tuple(float(f"{factor}e{power}") for power in range(-3, 5) for factor in (1, 3))
LITERAL_LAMS = tuple(3.0 * 10.0**power for power in range(-4, 8))

#: The weights of a path: the first from the start, each further one from the model before it.
LADDER = (100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03)

#: What may be tried for the costs of the SVMs behind the margin components, for the weight of the
#: labels of Lee et al., and for the shrinkage of LDA's covariances.
DIRECTION_COSTS = (1e-4, 1e-3, 0.01, 0.1, 1.0, 10.0, 100.0, 1e3)
LEE_LAMS = (1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1e3, 1e4, 1e5)
SHRINKAGES = (1e-4, 1e-3, 0.01, 0.1, 0.3, 0.6, 0.9, 0.99)

#: Above the first rank a factorization with the squared loss gets fewer updates, in proportion, but
#: no fewer than those of the second.
_MANY_PARTS, _MOST_PARTS = 128, 320


#: Of the decomposition behind principal components: columns beyond those wanted, and iterations.
_OVERSAMPLING, _SUBSPACE_ITERATIONS = 20, 4


class Grid(NamedTuple):
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


#: ``run(trial, fractions, ranks, grid)`` yields one dictionary a setting.
Run = Callable[[Trial, tuple[float, ...], tuple[int, ...], Grid], Scored]


@dataclass(frozen=True)
class Method:
    """A method, and what one go of it covers.

    Attributes
    ----------
    title : str
    run : Run
    settings : tuple of str
        The entries of the grid that it uses: what else is in a grid is not its business.
    labels : bool
        It learns from labels, so each share of them is work of its own; what it learns serves
        all shares otherwise.
    ranks : {"each", "all", "none"}
        Each rank is work of its own, one go serves all of them, or it has none.
    source : str
        The code of a method from outside, so that an edited one is not taken for done.
    """

    title: str
    run: Run
    settings: tuple[str, ...]
    labels: bool = True
    ranks: str = "each"
    source: str = ""


def raw_svm(
    trial: Trial, fractions: tuple[float, ...], ranks: tuple[int, ...], grid: Grid
) -> Scored:
    """A linear SVM on the inputs."""
    codes = Codes({}, trial.X_train, trial.X_validation, trial.X_test)
    yield from score_all(trial, fractions, [codes], Search(grid.raw_C, grid.steps))


def raw_tsvm(
    trial: Trial,
    fractions: tuple[float, ...],
    ranks: tuple[int, ...],
    grid: Grid,
    *,
    shares: tuple[float | None, ...] = (None,),
) -> Scored:
    """A transductive SVM on the inputs; with all labels it is the SVM.

    ``shares`` of positives among the unlabeled rows are tried; None is that of the labels.
    """
    for fraction in fractions:
        if fraction == 1:
            yield from raw_svm(trial, (fraction,), ranks, grid)
            continue
        rows = (trial.X_train, trial.X_validation, trial.X_test)
        # rows that have length one already need not be tried twice
        lengths = row_norms(trial.X_train)
        same = np.allclose(lengths[lengths > 0], 1)
        every = [
            Codes({"normalize": each}, *(normalize(X) if each else X for X in rows))
            for each in ((True,) if same else (True, False))
        ]
        yield from score_transductive(trial, fraction, every, grid, shares)


def score_transductive(
    trial: Trial,
    fraction: float,
    every: Iterable[Codes],
    grid: Grid,
    shares: tuple[float | None, ...],
) -> Scored:
    """Train transductive SVMs on the codes of all training rows: codes and share first, then C."""
    labels, records = trial.labels(fraction), []

    def score(codes: Codes, share: float | None, C: float) -> float:
        train, validation, test = (_with_ones(rows) for rows in codes[1:])
        given = None if share is None else (share,)
        W = transductive_weights(train, labels, C, shares=given, seed=trial.seed)
        found = scores(trial, validation @ W.T, test @ W.T)
        records.append({"fraction": fraction, **codes.setting, "C": C, "share": share, **found})
        return found["validation"]

    best: tuple[float, Codes, float | None] | None = None
    for codes in every:
        for share in shares:
            found = score(codes, share, grid.tsvm_C)
            if best is None or found > best[0]:
                best = found, codes, share
    assert best is not None
    known, codes, share = best
    climb(
        COSTS, grid.tsvm_C,
        lambda C: known if grid.tsvm_C == C else score(codes, share, C), grid.steps,
    )  # fmt: skip
    yield from records


def _with_ones(rows: Any) -> sp.csr_array:
    """Append a constant column, for the intercept."""
    return sp.hstack([sp.csr_array(rows), np.ones((rows.shape[0], 1))], format="csr")


def pca(trial: Trial, fractions: tuple[float, ...], ranks: tuple[int, ...], grid: Grid) -> Scored:
    """Principal components of the training rows: the first ones serve the smaller ranks.

    With all components it is the raw SVM.
    """
    Z = _principal(trial, max(ranks))
    for rank in ranks:
        codes = Codes({"rank": rank}, *(rows[:, :rank] for rows in Z))
        yield from score_all(trial, fractions, [codes], Search(grid.raw_C, grid.steps))


def _principal(trial: Trial, rank: int) -> list[Array]:
    """Return the principal components of training, validation and test rows."""
    X = trial.X_train
    rank = min(rank, min(X.shape) - 1)
    mean = np.asarray(X.mean(axis=0)).ravel().astype(X.dtype)
    axes = leading_axes(X, rank, trial.seed, mean)
    return [
        np.asarray(rows @ axes.T - mean @ axes.T) for rows in (X, trial.X_validation, trial.X_test)
    ]


def leading_axes(X: Any, rank: int, seed: int, mean: Array | None = None) -> Array:
    """Return the leading right singular vectors (rank, d) of X, or of X without its mean row.

    By iterations of a random subspace that is a little larger (Halko et al. 2011): a sparse X is
    never made dense.
    """

    def times(A: Any) -> Any:
        return X @ A if mean is None else X @ A - mean @ A

    def transposed_times(A: Any) -> Any:
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


def lda(trial: Trial, fractions: tuple[float, ...], ranks: tuple[int, ...], grid: Grid) -> Scored:
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

            def score(shrinkage: float, rows: list[Array] = rows, n: int = n) -> float:
                return board.enter(_discriminated(rows, labels, n, shrinkage))  # noqa: B023

            climb(SHRINKAGES, 0.1, score, grid.steps)
        yield from board.finish()


def _discriminated(rows: list[Array], labels: Labels, inputs: int, shrinkage: float) -> Codes:
    maps = [part.transform for part in _discriminants(rows[0], labels, shrinkage)]
    found = [np.hstack([apply(X) for apply in maps]) for X in rows]
    setting = {"inputs": inputs, "shrinkage": shrinkage, "dimensions": found[0].shape[1]}
    return Codes(setting, *found)


def _discriminants(Z: Array, labels: Labels, shrinkage: float) -> Iterator[Any]:
    """Fit LDA to the classes, or to each label that some samples have and some have not."""
    targets = labels.codes.T if labels.multilabel else [labels.codes]
    for y in targets:
        if len(np.unique(y)) > 1:
            yield LinearDiscriminantAnalysis(solver="eigen", shrinkage=shrinkage).fit(Z, y)


def nmf(trial: Trial, fractions: tuple[float, ...], ranks: tuple[int, ...], grid: Grid) -> Scored:
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
    trial: Trial,
    fractions: tuple[float, ...],
    ranks: tuple[int, ...],
    grid: Grid,
    *,
    way: Way = _USUAL_WAY,
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
                    C = _best_directions(grid, found[lam], lambda C: score(lam, C))  # noqa: B023
            yield from board.finish()


def _best_directions(grid: Grid, known: float, score: Callable[[float], float]) -> float:
    """Return the directions' C with the best score; that of the first is known."""

    def seek(C: float) -> float:
        return known if grid.direction_C == C else score(C)

    return best_of(climb(DIRECTION_COSTS, grid.direction_C, seek, grid.direction_steps))


def _alpha_parts(
    trial: Trial,
    fraction: float,
    rank: int,
    lams: tuple[float, ...],
    direction_C: float,
    grid: Grid,
    way: Way,
) -> Iterator[Parts]:
    """Yield the parts of NMF-alpha for one weight, or for those of a path."""
    labels = trial.labels(fraction)
    spec = DirectionSpec(
        way.source, way.multiclass, way.features, way.pseudo, direction_C, way.scale
    )
    S = find_directions(trial.X_train, labels, spec, trial.seed).S
    H, V = start_from(way.init, trial.X_train, rank, trial.seed, labels)
    path = factorize_path(
        trial.X_train, H, V, S=S, lams=lams, max_iter=grid.max_iter, warm_iter=grid.warm_iter,
        backend=trial.backend,
    )  # fmt: skip
    for lam, found in path:
        setting = {"rank": rank, "lam": lam, "direction_C": direction_C}
        yield mapped(trial, (fraction,), found.V, setting, gram=way.gram)


def mapped(
    trial: Trial,
    fractions: tuple[float, ...],
    V: Array,
    setting: dict[str, Any],
    *,
    gram: bool = True,
) -> Parts:
    """Return parts whose codes are Z (eq. 5), or H without ``gram``."""
    V = parts_of(V).T.copy()
    root = gram_root(V).astype(V.dtype) if gram else np.eye(V.shape[1], dtype=V.dtype)
    known = trial.X_train[: trial.n_labeled(max(fractions))]

    @lru_cache(1)  # the shares of labels have the same codes
    def codes(map_iter: int) -> Codes:
        rows = (known, trial.X_validation, trial.X_test)
        maps = (map_rows(X, V, map_iter, trial.backend) for X in rows)
        return Codes({**setting, "map_iter": map_iter}, *(H @ root for H in maps))

    return Parts(setting, codes)


def lee2010(
    trial: Trial, fractions: tuple[float, ...], ranks: tuple[int, ...], grid: Grid
) -> Scored:
    """Semi-supervised NMF of Lee, Yoo & Choi (eq. 18); its weight is sought at the first rank."""
    for fraction in fractions:
        lam = grid.lee_lam
        for rank in ranks:
            board = Board(trial, (fraction,), grid.search)

            def score(lam: float, board: Board = board, rank: int = rank) -> float:
                make = partial(SemiSupervisedNMF, lam=lam)
                return board.enter(
                    _squared_loss_parts(make, {"lam": lam}, trial, fraction, rank, grid)  # noqa: B023
                )

            steps = grid.steps if rank == ranks[0] else 0
            lam = best_of(climb(LEE_LAMS, lam, score, steps))
            yield from board.finish()


def liu_wu2010(
    trial: Trial, fractions: tuple[float, ...], ranks: tuple[int, ...], grid: Grid
) -> Scored:
    """Constrained NMF of Liu & Wu (eqs. 19-20)."""
    for fraction in fractions:
        for rank in ranks:
            parts = _squared_loss_parts(ConstrainedNMF, {}, trial, fraction, rank, grid)
            yield from score_all(trial, (fraction,), [parts], grid.search)


def _squared_loss_parts(
    make: Callable[..., Any],
    setting: dict[str, Any],
    trial: Trial,
    fraction: float,
    rank: int,
    grid: Grid,
) -> Parts:
    """Fit an estimator whose map has any number of updates."""
    y, m = trial.labels(fraction).codes, trial.n_labeled(fraction)
    max_iter = round(grid.squared_iter * min(1.0, _MANY_PARTS / min(rank, _MOST_PARTS)))
    model = make(rank, max_iter=max_iter, random_state=trial.seed, backend=trial.backend)
    model.fit(trial.X_train, y)
    setting = {**setting, "rank": rank}

    def codes(map_iter: int) -> Codes:
        model.set_params(map_iter=map_iter)
        return _transformed(model, trial, m, {**setting, "map_iter": map_iter})

    return Parts(setting, codes)


def _transformed(model: Any, trial: Trial, m: int, setting: dict[str, Any]) -> Codes:
    rows = (trial.X_train[:m], trial.X_validation, trial.X_test)
    found = (model.transform(X) for X in rows)
    return Codes(setting, *(sp.csr_array(Z) if sp.issparse(Z) else np.asarray(Z) for Z in found))


def own_method(
    trial: Trial,
    fractions: tuple[float, ...],
    ranks: tuple[int, ...],
    grid: Grid,
    *,
    make: Callable[..., Any],
) -> Scored:
    """Any scikit-learn transformer: it sees all training rows, with -1 for unknown labels."""
    for fraction in fractions:
        y, m = trial.labels(fraction).codes, trial.n_labeled(fraction)
        for rank in ranks:
            model = make()
            given = {"n_components": rank, "random_state": trial.seed}
            allowed = model.get_params()
            model.set_params(**{name: given[name] for name in given if name in allowed})
            model.fit(trial.X_train, y)
            found = _transformed(model, trial, m, {"rank": rank})
            yield from score_all(trial, (fraction,), [found], Search(grid.C, grid.steps))
