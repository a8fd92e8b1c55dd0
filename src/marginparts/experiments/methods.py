"""The methods of the paper's section 3: each turns a trial into scored settings.

What helps NMF-alpha and is not its point, its rivals get too: those that use labels start from
them, every factorization has its mapping updates tuned, and every method its own C.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.preprocessing import normalize
from sklearn.utils.extmath import row_norms

from marginparts._types import Array
from marginparts.directions import find_directions
from marginparts.estimators import ConstrainedNMF, SemiSupervisedNMF
from marginparts.experiments.protocol import Codes, Scored, Trial, score_codes, scores
from marginparts.factorization import factorize, factorize_path, map_rows_each, parts_of, start_from
from marginparts.geometry import gram_root
from marginparts.labels import Labels
from marginparts.transduction import transductive_weights


class Grid(NamedTuple):
    """What is tried on the validation rows.

    ``lams`` weigh the labels in NMF-alpha, ``lee_lams`` in the method of Lee et al.;
    ``literal_lams`` those of NMF-alpha with S in its own units;
    ``direction_costs`` are those of the SVMs behind the margin components;
    ``map_iters`` are the mapping updates of every factorization; ``costs`` those of the last SVM
    on codes, ``raw_costs`` on the inputs, ``tsvm_costs`` of the transductive SVM. LDA sees the
    data through ``lda_inputs`` principal components and shrinks covariances by ``shrinkages``.
    """

    lams: tuple[float, ...] = (1.0, 3.0, 10.0, 30.0, 100.0)
    literal_lams: tuple[float, ...] = (0.3, 3.0, 30.0, 300.0, 3e3, 3e4)
    direction_costs: tuple[float, ...] = (1.0,)
    lee_lams: tuple[float, ...] = (1.0, 30.0, 1000.0)
    map_iters: tuple[int, ...] = (5, 15, 60)
    costs: tuple[float, ...] = (0.1, 1.0, 10.0)
    raw_costs: tuple[float, ...] = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
    tsvm_costs: tuple[float, ...] = (0.01, 0.1, 1.0, 10.0)
    lda_inputs: tuple[int, ...] = (100, 300)
    shrinkages: tuple[float, ...] = (0.01, 0.1, 0.5, 0.9)
    max_iter: int = 150
    warm_iter: int = 40


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
    yield from score_codes(trial, fractions, codes, grid.raw_costs)


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
        for normalized in (True,) if same else (True, False):
            codes = Codes({"normalize": normalized}, *(
                normalize(X) if normalized else X for X in rows
            ))  # fmt: skip
            yield from score_transductive(trial, fraction, codes, grid.tsvm_costs, shares)


def score_transductive(
    trial: Trial,
    fraction: float,
    codes: Codes,
    costs: tuple[float, ...],
    shares: tuple[float | None, ...],
) -> Scored:
    """Train a transductive SVM on the codes of all training rows, and score it."""
    labels = trial.labels(fraction)
    train, validation, test = (_with_ones(rows) for rows in codes[1:])
    for C, share in product(costs, shares):
        given = None if share is None else (share,)
        W = transductive_weights(train, labels, C, shares=given, seed=trial.seed)
        yield {
            "fraction": fraction, **codes.setting, "C": C, "share": share,
            **scores(trial, validation @ W.T, test @ W.T),
        }  # fmt: skip


def _with_ones(rows: Any) -> sp.csr_array:
    """Append a constant column, for the intercept."""
    return sp.hstack([sp.csr_array(rows), np.ones((rows.shape[0], 1))], format="csr")


def pca(trial: Trial, fractions: tuple[float, ...], ranks: tuple[int, ...], grid: Grid) -> Scored:
    """Principal components of the training rows: the first ones serve the smaller ranks."""
    Z = _principal(trial, max(ranks))
    for rank in ranks:
        codes = Codes({"rank": rank}, *(rows[:, :rank] for rows in Z))
        yield from score_codes(trial, fractions, codes, grid.costs)


def _principal(trial: Trial, rank: int) -> list[Array]:
    """Return the principal components of training, validation and test rows."""
    rank = min(rank, min(trial.X_train.shape) - 1)
    solver = "arpack" if sp.issparse(trial.X_train) else "auto"
    reduce = PCA(rank, svd_solver=solver, random_state=trial.seed).fit(trial.X_train)
    return [reduce.transform(X) for X in (trial.X_train, trial.X_validation, trial.X_test)]


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
        for n in inputs:
            train, *others = (rows[:, :n] for rows in Z)
            for shrinkage in grid.shrinkages:
                maps = [part.transform for part in _discriminants(train[:m], labels, shrinkage)]
                rows = (np.hstack([apply(X) for apply in maps]) for X in (train[:m], *others))
                found = Codes({"inputs": n, "shrinkage": shrinkage}, *rows)
                found.setting["dimensions"] = found.train.shape[1]
                yield from score_codes(trial, (fraction,), found, grid.costs)


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
        for codes in mapped(trial, fractions, found.V, {"rank": rank}, grid):
            yield from score_codes(trial, fractions, codes, grid.costs)


def nmf_alpha(
    trial: Trial,
    fractions: tuple[float, ...],
    ranks: tuple[int, ...],
    grid: Grid,
    *,
    source: str = "svm",
    multiclass: str = "ovo",
    init: str = "auto",
    scale: bool = True,
    gram: bool = True,
) -> Scored:
    """NMF-alpha (eqs. 14-17), a path over lam; as in the paper unless an option says otherwise."""
    for fraction, C, rank in product(fractions, grid.direction_costs, ranks):
        labels = trial.labels(fraction)
        S = find_directions(
            trial.X_train, labels, source=source, multiclass=multiclass, C=C, scale=scale,
            seed=trial.seed,
        ).S  # fmt: skip
        H, V = start_from(init, trial.X_train, rank, trial.seed, labels)
        path = factorize_path(
            trial.X_train, H, V, S=S, lams=grid.lams if scale else grid.literal_lams,
            max_iter=grid.max_iter, warm_iter=grid.warm_iter, backend=trial.backend,
        )  # fmt: skip
        for lam, found in path:
            setting = {"rank": rank, "lam": lam, "direction_C": C}
            for codes in mapped(trial, (fraction,), found.V, setting, grid, gram=gram):
                yield from score_codes(trial, (fraction,), codes, grid.costs)


def mapped(
    trial: Trial,
    fractions: tuple[float, ...],
    V: Array,
    setting: dict[str, Any],
    grid: Grid,
    *,
    gram: bool = True,
) -> Iterator[Codes]:
    """Yield the codes Z (eq. 5), or H without ``gram``, for each number of mapping updates."""
    V = parts_of(V).T.copy()
    root = gram_root(V).astype(V.dtype) if gram else np.eye(V.shape[1], dtype=V.dtype)
    known = trial.X_train[: trial.n_labeled(max(fractions))]
    maps = [
        map_rows_each(X, V, grid.map_iters, trial.backend)
        for X in (known, trial.X_validation, trial.X_test)
    ]
    for n, *each in zip(grid.map_iters, *maps, strict=True):
        yield Codes({**setting, "map_iter": n}, *(H @ root for H in each))


def lee2010(
    trial: Trial, fractions: tuple[float, ...], ranks: tuple[int, ...], grid: Grid
) -> Scored:
    """Semi-supervised NMF of Lee, Yoo & Choi (eq. 18)."""
    for lam in grid.lee_lams:
        make = partial(SemiSupervisedNMF, lam=lam)
        yield from _squared_loss(make, {"lam": lam}, trial, fractions, ranks, grid)


def liu_wu2010(
    trial: Trial, fractions: tuple[float, ...], ranks: tuple[int, ...], grid: Grid
) -> Scored:
    """Constrained NMF of Liu & Wu (eqs. 19-20)."""
    yield from _squared_loss(ConstrainedNMF, {}, trial, fractions, ranks, grid)


def _squared_loss(
    make: Callable[..., Any],
    setting: dict[str, Any],
    trial: Trial,
    fractions: tuple[float, ...],
    ranks: tuple[int, ...],
    grid: Grid,
) -> Scored:
    """Fit an estimator for each share of labels and rank, and map with each number of updates."""
    for fraction in fractions:
        y, m = trial.labels(fraction).codes, trial.n_labeled(fraction)
        for rank in ranks:
            model = make(
                rank, max_iter=grid.max_iter, random_state=trial.seed, backend=trial.backend
            )
            model.fit(trial.X_train, y)
            for n in grid.map_iters:
                model.set_params(map_iter=n)
                found = _transformed(model, trial, m, {**setting, "rank": rank, "map_iter": n})
                yield from score_codes(trial, (fraction,), found, grid.costs)


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
            yield from score_codes(trial, (fraction,), found, grid.costs)
