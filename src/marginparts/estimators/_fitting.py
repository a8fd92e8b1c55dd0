"""How both classifiers are fitted: candidates, the race between them, and the model that won."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from marginparts._types import Array, Data, Samples, Targets
from marginparts.directions import DirectionSpec
from marginparts.estimators._inputs import (
    Counted,
    FitInputs,
    check_training_data,
    column_names,
    embedded_columns,
    prepared,
)
from marginparts.estimators.nmf_alpha import NMFAlpha
from marginparts.estimators.semi import SemiNMFAlpha
from marginparts.labels import Labels, check_class_weight
from marginparts.recipe import HeadSpec, MapSpec, Recipe, RunSpec, blocks_of
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
    Choice,
    Classroom,
    Comparison,
    choose,
    choose_taught,
    usual_ranks,
)
from marginparts.solve.run_spec import check_parts
from marginparts.solve.start import check_init
from marginparts.svm.calibration import Calibration, calibrate
from marginparts.svm.head import Head, fit_head
from marginparts.svm.thresholds import choose_thresholds
from marginparts.validation import (
    check_count,
    check_nonnegative,
    check_option,
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

#: With so many labels, samples of dense data are told apart better by twice the parts.
_MANY_LABELS = 2_000

#: Parts that fill gaps, at most: more of them learn the noise of what is known.
_FILLING = 16

#: How a value of each parameter that may be chosen is checked.
_CHECKS: dict[str, Callable[[Any, str], Any]] = {
    "lam": check_nonnegative,
    "map_iter": lambda value, name: None if value is None else check_count(value, name),
    "normalize": lambda value, name: bool(value),
    "C": check_positive,
    "direction_C": check_positive,
}


class Fitted(NamedTuple):
    """What a fit has found."""

    choice: Choice
    parts: Any  # NMFAlpha, or SemiNMFAlpha where all columns may have either sign
    head: Head
    thresholds: Array
    calibration: Calibration | None
    n_labeled: int
    teachers: dict[str, float]
    filler: NMFAlpha | None = None
    beside: SemiNMFAlpha | None = None


def fit_classifier(
    model: NMFAlphaClassifier,
    X: Samples,
    y: Targets | None,
    sample_weight: ArrayLike | None = None,
    *,
    several: bool,
    n_splits: int | None = None,
) -> Fitted:
    """Choose what is left to choose, find the parts, train the SVM.

    With ``several`` a parameter may be a sequence of candidates, and the number of parts is chosen
    too. ``n_splits`` is the number of folds, None for as many as suit the labels.
    """
    # wrong parameters are refused before the data is read
    given = _given(model, several=several)
    comparison = Comparison(model.scoring, model.thresholds, model.rehearse, n_splits)
    _recipe(model, taught=model.pseudo == "teachers")
    X = check_training_data(model, X)
    embedded = embedded_columns(model, X.shape[1])
    if embedded:
        _check_embedded(model)
    counted = Counted.of(X, y, sample_weight, None if embedded else type(model).__name__)
    counted, filler = _filled(model, counted)
    X, seeds = counted.X, _seeds(model, counted.X.shape[1])
    labels = model._check_labels(counted.y, X.shape[0], seeds)
    labels = replace(labels, weights=counted.weights)
    taught = _is_taught(model, labels, X.shape[1])
    recipe = _recipe(model, taught=taught, elsewhere=isinstance(X, Elsewhere))
    recipe = replace(recipe, embedded=embedded)
    check_class_weight(model.class_weight, labels)
    check_scoring(model.scoring, labels)
    ranks = _ranks(model.n_components, labels, X, several=several, taught=taught)
    grid = _grid(given, ranks, labels, scale=model.scale, taught=taught)
    recipe = replace(recipe, run=_run(model, counted, recipe, ranks))
    told = _settings(model, recipe, grid, seeds)
    with prepared(model, X, labels, max(ranks), {**told, "cv": n_splits}) as ready:
        room = None
        if taught:
            room = Classroom.of(ready.X, labels, recipe, comparison, ready.seed, seeds)
            grid = room.left_open(given, grid)
            choice = choose_taught(room, grid, recipe, comparison, ready.seed, model.callback)
        else:
            choice = choose(
                ready.X, labels, grid, recipe, comparison, ready.seed, callback=model.callback,
                logbook=ready.logbook,
            )  # fmt: skip
        return _fit_best(model, choice, recipe, labels, ready, room)._replace(filler=filler)


def _settings(
    model: NMFAlphaClassifier, recipe: Recipe, grid: CandidateGrid, seeds: Seeds | None
) -> dict[str, Any]:
    """Return all that decides what a fit finds, besides the data: a checkpoint is of one fit."""
    told = {
        **recipe.parameters(), **grid._asdict(),
        **{name: getattr(model, name) for name in ("scoring", "thresholds", "rehearse")},
    }  # fmt: skip
    if recipe.embedded:
        told["embedded"] = recipe.embedded
    if seeds is not None:
        told["seeds"] = [seeds.classes.tolist(), seeds.strengths]
    return told


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
        check_option(run.init, "init", ("auto", "random"))
        return run
    for rank in ranks:
        check_init(run.init, counted.X, rank)
    return check_parts(run, counted.X, min(ranks), column_names(model))


def _seeds(model: NMFAlphaClassifier, d: int) -> Seeds | None:
    """Return the seeds by column, if there are any."""
    if model.seeds is None:
        return None
    return seeds_of(model.seeds, getattr(model, "feature_names_in_", None), d)


def _is_taught(model: NMFAlphaClassifier, labels: Labels, d: int) -> bool:
    """Whether teachers label what is unlabeled, if anything is: when asked to, or when they can.

    That decides the rest of the recipe too: with all labels there is nobody to teach.
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


def _check_embedded(model: NMFAlphaClassifier) -> None:
    """Refuse what columns of either sign cannot have: they take the teachers' recipe alone."""
    if model.pseudo not in ("auto", "teachers"):
        raise ValueError(f"embedded columns need teachers, and pseudo={model.pseudo!r} has none.")
    unset = {"seeds": None, "prior": None, "missing": None, "exclusivity": 0}
    for name, value in unset.items():
        if getattr(model, name) is not None and np.any(getattr(model, name) != value):
            raise ValueError(f"{name} needs data without embedded columns; drop one of them.")


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
            strength=model.strength, exclusivity=model.exclusivity,
        ),
        MapSpec(output=output),
        HeadSpec(class_weight=model.class_weight),
    )  # fmt: skip


def _given(model: NMFAlphaClassifier, *, several: bool) -> dict[str, tuple[Any, ...]]:
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


def _ranks(
    value: Any, labels: Labels, X: Data | Elsewhere, *, several: bool, taught: bool
) -> tuple[int, ...]:
    """Return the numbers of parts to try."""
    if isinstance(value, str):
        if value != "auto":
            raise ValueError(f"n_components={value!r} is unknown; give a number or 'auto'.")
        if several and not taught:
            value = usual_ranks(labels, X.shape)
        else:
            value = _usual_rank(labels, X)
            if several:
                value = max(2, min(value, min(X.shape) // 2))
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


def _grid(
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


def _taught_parts(
    model: NMFAlphaClassifier, recipe: Recipe, setting: tuple[int, float], labels: Labels,
    ready: FitInputs, room: Classroom,
) -> list[Any]:  # fmt: skip
    """Return the fitted parts of each block of columns, with what teachers say of the rows."""
    found = room.all_directions(ready.X, recipe, ready.seed, labels.weights)
    blocks, fitted = blocks_of(ready.X, recipe.embedded), []
    for k, X in enumerate(blocks):
        signed = bool(recipe.embedded) and k == len(blocks) - 1
        own = replace(recipe, embedded=X.shape[1] if signed else 0)
        kind: Any = SemiNMFAlpha if signed else NMFAlpha
        parts = kind._of(own, *setting, random_state=ready.seed, callback=model.callback)
        logbook = None if k else ready.logbook  # it keeps the position of one run
        start = room.start(room.lesson, ready.X.shape[0])
        parts._fit_trusted(X, start, own, ready.seed, logbook, found, labels.weights)
        parts.classes_ = labels.classes
        parts._project(None if signed else room.weights)
        fitted.append(parts)
    return fitted


def _fit_best(
    model: NMFAlphaClassifier,
    choice: Choice,
    recipe: Recipe,
    labels: Labels,
    ready: FitInputs,
    room: Classroom | None,
) -> Fitted:
    """Fit what was chosen to all samples, with what teachers say of them where there are any."""
    n_components, lam, map_iter, normalize, C, direction_C = choice.best
    recipe = recipe.tuned(direction_C=direction_C, map_iter=map_iter, C=C, normalize=normalize)
    how: Any = {
        "normalize": bool(recipe.head.normalize), "class_weight": recipe.head.class_weight
    }  # fmt: skip
    known, beside = np.flatnonzero(labels.labeled), None
    if room is None:
        parts = NMFAlpha._of(
            recipe, n_components, lam, random_state=ready.seed, callback=model.callback
        )
        parts._fit_trusted(
            ready.X, labels, recipe, ready.seed, ready.logbook, weights=labels.weights
        )
        codes = parts._codes(ready.X[known])
        head = fit_head(codes, labels.take(known), recipe.head.C, **how)
    else:
        fitted = _taught_parts(model, recipe, (n_components, lam), labels, ready, room)
        parts, beside = fitted[0], fitted[1] if len(fitted) > 1 else None
        Z = np.hstack([own._codes(X) for own, X in zip(fitted, room.blocks(recipe), strict=True)])
        head = room.head(Z, room.lesson, recipe.head.C, **how)
    thresholds: Array = np.zeros(len(head.intercept))
    calibration = None
    if choice.held_out is not None:
        # thresholds and probabilities are learned from what was said of hidden labels
        rows, values = choice.held_out
        truth = labels.take(rows)
        if labels.multilabel and model.thresholds is not None:
            trust = 1.0 if room is None else room.trust
            thresholds = trust * choose_thresholds(values, truth, model.scoring)
            # the hyperplanes are moved by the thresholds, so that a value above 0 is a yes
            head = head._replace(intercept=head.intercept - thresholds)
        calibration = calibrate(values - thresholds, truth)
    teachers = {} if room is None else room.lesson.teachers
    return Fitted(choice, parts, head, thresholds, calibration, len(known), teachers, beside=beside)
