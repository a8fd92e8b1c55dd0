"""What a classifier's fit is to do: parameters, rows and labels, checked against each other."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from marginparts._types import Data, Samples, Targets
from marginparts.directions import DirectionSpec
from marginparts.estimators._inputs import (
    Counted,
    check_training_rows,
    column_names,
    embedded_columns,
)
from marginparts.estimators._repeats import Copies, copies
from marginparts.estimators.nmf_alpha import NMFAlpha
from marginparts.labels import Labels
from marginparts.recipe import HeadSpec, MapSpec, Recipe, RunSpec
from marginparts.rows.base import Elsewhere
from marginparts.scores import check_scoring
from marginparts.seeds import Seeds, seeds_of
from marginparts.selection import (
    C_GRID_UNSCALED,
    DIRECTION_GRID_UNSCALED,
    LAM_GRID,
    LAM_GRID_SEVERAL,
    LAM_GRID_UNSCALED,
    TAUGHT_DEFAULT,
    CandidateGrid,
    Comparison,
    usual_ranks,
)
from marginparts.solve.run_spec import check_parts
from marginparts.solve.start import check_init
from marginparts.svm.class_weights import check_class_weight
from marginparts.validation import (
    check_count,
    check_nonnegative,
    check_positive,
    check_rank,
)
from marginparts.weighting import are_counts

if TYPE_CHECKING:
    from marginparts.estimators.classifier import NMFAlphaClassifier

#: Teachers see all labeled samples, and no more than this many.
TEACHABLE = 20_000

#: With fewer columns than these, and all labels, the size of a sample may be half of the
#: information: the code Z has it, the mixed one does not.
_FEW_COLUMNS = 16

#: Entries of several labels that teachers keep in memory, each for each fold.
_ENTRIES = 8_000_000

#: Parts that fill gaps, at most: more of them learn the noise of what is known.
_FILLING = 16

#: With so many labels, samples of dense data are told apart better by twice the parts.
_MANY_LABELS = 2_000

#: How a value of each parameter that may be chosen is checked.
_CHECKS: dict[str, Callable[[Any, str], Any]] = {
    "lam": check_nonnegative,
    "map_iter": lambda value, name: None if value is None else check_count(value, name),
    "normalize": lambda value, name: bool(value),
    "C": check_positive,
    "direction_C": check_positive,
}


class Plan(NamedTuple):
    """What a fit is asked, checked: rows and labels, how a model is made, what is to be chosen.

    ``counted`` are the rows that count, of ``n`` that were given. Where they are mostly repeats, X
    and the labels are of ``same``: each row as often as it counts.
    """

    X: Any
    labels: Labels
    recipe: Recipe
    taught: bool
    given: dict[str, tuple[Any, ...]]
    grid: CandidateGrid
    comparison: Comparison
    seeds: Seeds | None
    counted: Counted
    n: int
    same: Copies | None
    filler: NMFAlpha | None


def plan_of(
    model: NMFAlphaClassifier, X: Samples, y: Targets | None, sample_weight: ArrayLike | None, *,
    several: bool, cv: Any,
) -> Plan:  # fmt: skip
    """Check parameters, data and labels against each other: the boundary of both classifiers."""
    # wrong parameters are refused before the data is read
    given = _given_candidates(model, several=several)
    comparison = Comparison(
        model.scoring, model.thresholds, model.rehearse, None if _has_folds(cv) else cv
    )
    _recipe(model, taught=model.pseudo == "teachers")
    _most_unlabeled(model)
    if model.embedded != 0:
        _check_embedded(model)
    X = check_training_rows(model, X)
    embedded = embedded_columns(model, X.shape[1])
    _check_consensus(model, X)
    folds = _fold_numbers(cv, X, y) if _has_folds(cv) else None
    n, seeds = X.shape[0], _seeds(model, X.shape[1])
    counted = Counted.of(X, y, sample_weight, type(model).__name__, embedded)
    labels = model._check_labels(counted.y, counted.X.shape[0], seeds)
    labels = replace(labels, weights=counted.weights, folds=counted.of_rows(folds))
    counted, labels = counted.drawn(labels, _most_unlabeled(model))
    counted, filler = _filled(model, counted.in_form())
    X = counted.X
    repeats = counted.may_repeat and isinstance(model.init, str)
    same = copies(X, labels) if repeats else None
    if same is not None:
        X, labels = same.data(X), same.labels(labels)
    taught = _is_taught(model, labels, X.shape[1])
    recipe = _recipe(model, taught=taught, elsewhere=isinstance(X, Elsewhere))
    recipe = replace(recipe, embedded=embedded)
    check_class_weight(model.class_weight, labels)
    check_scoring(model.scoring, labels)
    ranks = ranks_of(model.n_components, labels, X, several=several, taught=taught)
    grid = _grid_of(given, ranks, labels, scale=model.scale, taught=taught)
    recipe = replace(recipe, run=_run(model, counted._replace(X=X), recipe, ranks))
    return Plan(X, labels, recipe, taught, given, grid, comparison, seeds, counted, n, same, filler)


def settings_of(model: NMFAlphaClassifier, plan: Plan) -> dict[str, Any]:
    """Return all that decides what a fit finds, besides the data: a checkpoint is of one fit."""
    told = {
        **plan.recipe.parameters(), **plan.grid._asdict(),
        **{name: getattr(model, name) for name in ("scoring", "thresholds", "rehearse")},
        "cv": plan.comparison.n_splits,
    }  # fmt: skip
    if plan.recipe.embedded:
        told["embedded"] = plan.recipe.embedded
    if plan.counted.rows is not None:
        told["rows"] = plan.n
    if model.consensus:
        told["consensus"] = model.consensus
    if plan.seeds is not None:
        told["seeds"] = [plan.seeds.classes.tolist(), plan.seeds.strengths]
    return told


def _has_folds(cv: Any) -> bool:
    """Whether folds are given, and not their number."""
    return not (cv is None or isinstance(cv, Integral | float | str))


def _fold_numbers(cv: Any, X: Any, y: Any) -> NDArray[np.intp]:
    """Return the fold of each row (n,), -1 for none, of a splitter or of pairs of rows."""
    n = X.shape[0]
    pairs = cv.split(X, y) if hasattr(cv, "split") else cv
    folds = np.full(n, -1, dtype=np.intp)
    try:
        for k, (_, hidden) in enumerate(pairs):
            if (folds[np.asarray(hidden)] >= 0).any():
                raise ValueError
            folds[np.asarray(hidden)] = k
    except (TypeError, ValueError, IndexError) as error:
        raise ValueError(
            f"cv={cv!r} must be a number of folds, 2 or larger, or a splitter or pairs (others, "
            "hidden) of row numbers in which no row is hidden twice."
        ) from error
    return folds


def _most_unlabeled(model: NMFAlphaClassifier) -> int | None:
    """Return how many unlabeled samples are learned from at most."""
    most = model.max_unlabeled
    return None if most is None else check_count(most, "max_unlabeled")


def _check_embedded(model: NMFAlphaClassifier) -> None:
    """Refuse what columns of either sign cannot have: they take the teachers' recipe alone."""
    if model.pseudo not in ("auto", "teachers"):
        raise ValueError(f"embedded columns need teachers, and pseudo={model.pseudo!r} has none.")
    unset = {
        "seeds": None, "prior": None, "missing": None, "exclusivity": 0, "alpha_W": 0,
        "fixed": None, "allowed": None, "consensus": 0,
    }  # fmt: skip
    penalty = model.alpha_H if model.alpha_H != "same" else 0.0
    given = {**{name: getattr(model, name) for name in unset}, "alpha_H": penalty}
    for name, value in given.items():
        if value is not None and np.any(value != unset.get(name, 0.0)):
            raise ValueError(f"{name} needs data without embedded columns; drop one of them.")
    if not isinstance(model.init, str) or model.init not in ("auto", "random"):
        told = repr(model.init) if isinstance(model.init, str) else "a pair (H, V)"
        raise ValueError(
            f"With embedded columns init must be 'auto' or 'random', and it is {told}."
        )


def _check_consensus(model: NMFAlphaClassifier, X: Any) -> None:
    """Refuse numbers of runs, and starts, that cannot agree on anything."""
    if not check_count(model.consensus, "consensus", least=0):
        return
    if model.consensus == 1:
        raise ValueError("consensus must be 2 or larger, or 0: one run agrees with itself.")
    if not isinstance(model.init, str) or model.init not in ("auto", "random"):
        raise ValueError("consensus needs starts that differ; init must be 'auto' or 'random'.")
    if isinstance(X, Elsewhere):
        raise ValueError("consensus needs X in memory, and not rows on disk or on a cluster.")


def _filled(model: NMFAlphaClassifier, counted: Counted) -> tuple[Counted, NMFAlpha | None]:
    """Return the rows that count with their gaps filled, and what fills those of others."""
    X = counted.X
    if model.missing is None:
        return counted, None
    if model.missing != "nan":
        raise ValueError(
            f"missing={model.missing!r} is nothing that a classifier takes, which needs most of "
            'each row; use missing="nan", or the codes of NMFAlpha(missing="zeros").'
        )
    if isinstance(X, Elsewhere):
        raise ValueError("missing needs X in memory, and not rows on disk or on a cluster.")
    r = max(1, min(_FILLING, min(X.shape) // 2))
    filler = NMFAlpha(
        r, missing="nan", output="coefficients", max_iter=100, tol=1e-4, map_iter=40,
        backend="numba", random_state=0,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # near is near enough
        filler.fit(X, sample_weight=counted.weights)
    return counted._replace(X=filler.fill(X)), filler


def _run(
    model: NMFAlphaClassifier, counted: Counted, recipe: Recipe, ranks: tuple[int, ...]
) -> RunSpec:
    """Return how the rows that count are factorized, checked against the data."""
    run = counted.run(recipe.run)
    if recipe.embedded:
        return run
    names, checked = column_names(model), run
    for rank in sorted(ranks, reverse=True):
        check_init(run.init, counted.X, rank)
        checked = check_parts(run, counted.X, rank, names)
    return checked


def _seeds(model: NMFAlphaClassifier, d: int) -> Seeds | None:
    """Return the seeds by column, if there are any."""
    if model.seeds is None:
        return None
    return seeds_of(model.seeds, getattr(model, "feature_names_in_", None), d)


def _is_taught(model: NMFAlphaClassifier, labels: Labels, d: int) -> bool:
    """Whether teachers label what is unlabeled, if anything is: when asked to, or when they can.

    It also decides the rest of the recipe, which is the same when all labels are known.
    """
    if embedded_columns(model, d):
        return True
    if model.seeds is not None:
        if model.pseudo not in ("auto", "teachers"):
            raise ValueError(f"seeds speak to teachers, and pseudo={model.pseudo!r} has none.")
        return True
    if model.pseudo != "auto":
        return bool(model.pseudo == "teachers")
    seen = min(len(labels.codes), 2 * TEACHABLE)  # all labeled ones and a draw of the others
    if labels.multilabel and seen * len(labels.classes) > _ENTRIES:
        return False
    if labels.complete.all() and d < _FEW_COLUMNS:
        return False
    return int(labels.labeled.sum()) <= TEACHABLE


def _recipe(model: NMFAlphaClassifier, *, taught: bool, elsewhere: bool = False) -> Recipe:
    """Return the parameters as a recipe, or refuse what makes no sense.

    The choice fills in what may be chosen (`Recipe.tuned`). Where there are teachers, they give the
    labels and what the SVMs behind the directions see. One SVM needs all rows in memory to guess.
    """
    features, pseudo, output = model.features, model.pseudo, model.output
    if taught:
        features, pseudo = None, None
    elif pseudo == "auto":
        pseudo = None if elsewhere else "svm"
    if output == "auto":
        output = "mixed" if taught else "gram"
    return Recipe(
        DirectionSpec(
            model.directions, model.multiclass, features, pseudo, scale=model.scale,
            class_weight=model.class_weight,
        ),
        RunSpec(
            model.init, model.solver, model.max_iter, model.tol, model.backend, prior=model.prior,
            strength=model.strength, exclusivity=model.exclusivity, alpha_W=model.alpha_W,
            alpha_H=model.alpha_H, l1_ratio=model.l1_ratio, fixed=model.fixed,
            allowed=model.allowed,
        ),
        MapSpec(output=output),
        HeadSpec(class_weight=model.class_weight),
    )  # fmt: skip


def _given_candidates(model: NMFAlphaClassifier, *, several: bool) -> dict[str, tuple[Any, ...]]:
    """Return the candidates of each parameter that may be chosen, but those left open."""
    found = {}
    for name, check in _CHECKS.items():
        value: Any = getattr(model, name)
        if isinstance(value, str):
            if value != "auto":
                raise ValueError(f"{name}={value!r} is unknown; give a number or 'auto'.")
        elif several and isinstance(value, Iterable):
            found[name] = _distinct(name, [check(each, name) for each in value])
        else:
            found[name] = (check(value, name),)
    return found


def ranks_of(
    value: Any, labels: Labels, X: Data | Elsewhere, *, several: bool, taught: bool
) -> tuple[int, ...]:
    """Return the numbers of parts to try."""
    if isinstance(value, str):
        if value != "auto":
            raise ValueError(f"n_components={value!r} is unknown; give an integer or 'auto'.")
        if several and not taught:
            value = usual_ranks(labels, X.shape)
        elif several:
            value = max(2, min(_usual_rank(labels, X), min(X.shape) // 2))
        else:
            value = _usual_rank(labels, X)
    values = value if several and isinstance(value, Iterable) else (value,)
    return _distinct("n_components", [check_rank(rank, X.shape) for rank in values])


def _usual_rank(labels: Labels, X: Data | Elsewhere) -> int:
    """Return the number of parts that is good on average; labels in number pay for more."""
    usual = TAUGHT_DEFAULT.n_components
    if labels.labeled.sum() < _MANY_LABELS or isinstance(X, Elsewhere) or are_counts(X):
        return usual
    return max(usual, min(2 * usual, X.shape[1] // 2))


def _distinct(name: str, values: list[Any]) -> tuple[Any, ...]:
    if not values:
        raise ValueError(f"{name} has no candidate; give at least one, or 'auto'.")
    return tuple(dict.fromkeys(values))


def _grid_of(
    given: dict[str, tuple[Any, ...]],
    ranks: tuple[int, ...],
    labels: Labels,
    *,
    scale: bool,
    taught: bool,
) -> CandidateGrid:
    """Return the candidates given, and the usual ones for what is left open."""
    usual: dict[str, Any] = {}
    if taught:  # few labels, few choices
        usual = {name: (value,) for name, value in TAUGHT_DEFAULT._asdict().items()}
        del usual["n_components"]
    elif scale:
        usual["lam"] = LAM_GRID_SEVERAL if labels.multilabel else LAM_GRID
    else:  # nothing is known of the units
        usual.update(lam=LAM_GRID_UNSCALED, C=C_GRID_UNSCALED, direction_C=DIRECTION_GRID_UNSCALED)
    return CandidateGrid(**{"n_components": ranks, **usual, **given})
