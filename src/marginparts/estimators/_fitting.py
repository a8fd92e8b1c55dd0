"""How both classifiers are fitted: candidates, the race between them, and the model that won."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from marginparts._types import Array, Samples, Targets
from marginparts.directions import DirectionSpec
from marginparts.estimators._candidates import given_candidates, grid_of, ranks_of
from marginparts.estimators._inputs import (
    Counted,
    FitInputs,
    check_consensus,
    check_embedded,
    check_training_data,
    column_names,
    embedded_columns,
    fold_numbers,
    has_folds,
    prepared,
)
from marginparts.estimators._repeats import Copies, copies
from marginparts.estimators.consensus import fit_agreed
from marginparts.estimators.nmf_alpha import NMFAlpha
from marginparts.estimators.semi import SemiNMFAlpha
from marginparts.labels import Labels, check_class_weight
from marginparts.recipe import HeadSpec, MapSpec, Recipe, RunSpec, blocks_of
from marginparts.rows.base import Elsewhere
from marginparts.scores import check_scoring
from marginparts.seeds import Seeds, seeds_of
from marginparts.selection import (
    CandidateGrid,
    Choice,
    Classroom,
    Comparison,
    Setting,
    choose,
    choose_taught,
)
from marginparts.solve.run_spec import check_parts
from marginparts.solve.start import check_init
from marginparts.svm.calibration import Calibration, calibrate
from marginparts.svm.head import Head, fit_head
from marginparts.svm.thresholds import choose_thresholds
from marginparts.validation import (
    check_option,
)

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


class Asked(NamedTuple):
    """What a fit is asked, checked: rows and labels, how a model is made, what is to be chosen.

    ``counted`` are the rows that count. Where they are mostly repeats, X and the labels are of
    ``same``: each row as often as it counts.
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
    same: Copies | None
    filler: NMFAlpha | None


def fit_classifier(
    model: NMFAlphaClassifier,
    X: Samples,
    y: Targets | None,
    sample_weight: ArrayLike | None = None,
    *,
    several: bool,
    cv: Any = None,
) -> Fitted:
    """Choose what is left to choose, find the parts, train the SVM.

    With ``several`` a parameter may be a sequence of candidates, and the number of parts is chosen
    too. ``cv`` is the number of folds, None for as many as suit the labels, or folds.
    """
    asked = _asked(model, X, y, sample_weight, several=several, cv=cv)
    labels, recipe, grid, room = asked.labels, asked.recipe, asked.grid, None
    rank, settings = max(grid.n_components), _settings(model, asked)
    with prepared(model, asked.X, labels, rank, settings) as ready:
        if asked.taught:
            room = Classroom.of(ready.X, labels, recipe, asked.comparison, ready.seed, asked.seeds)
            grid = room.left_open(asked.given, grid)
            choice = choose_taught(room, grid, recipe, asked.comparison, ready.seed, model.callback)
        else:
            choice = choose(
                ready.X, labels, grid, recipe, asked.comparison, ready.seed,
                callback=model.callback, logbook=ready.logbook,
            )  # fmt: skip
        best = choice.best
        recipe = recipe.tuned(
            direction_C=best.direction_C, map_iter=best.map_iter, C=best.C,
            normalize=best.normalize,
        )  # fmt: skip
        if room is None:
            fitted, head = _fit_plain(model, best, recipe, labels, ready)
        else:
            fitted, head = _fit_taught(model, best, recipe, labels, ready, room)
    found = _found(model, asked, choice, fitted, head, room)
    return found if asked.same is None else _of_given_rows(found, asked.same, asked.counted)


def _asked(
    model: NMFAlphaClassifier, X: Samples, y: Targets | None, sample_weight: ArrayLike | None, *,
    several: bool, cv: Any,
) -> Asked:  # fmt: skip
    """Check parameters, data and labels against each other: the boundary of both classifiers."""
    # wrong parameters are refused before the data is read
    given = given_candidates(model, several=several)
    comparison = Comparison(
        model.scoring, model.thresholds, model.rehearse, None if has_folds(cv) else cv
    )
    _recipe(model, taught=model.pseudo == "teachers")
    X = check_training_data(model, X)
    embedded = embedded_columns(model, X.shape[1])
    if embedded:
        check_embedded(model)
    check_consensus(model, X)
    folds = fold_numbers(cv, X, y) if has_folds(cv) else None
    counted = Counted.of(X, y, sample_weight, None if embedded else type(model).__name__)
    counted, filler = _filled(model, counted)
    X, seeds = counted.X, _seeds(model, counted.X.shape[1])
    labels = model._check_labels(counted.y, X.shape[0], seeds)
    labels = replace(labels, weights=counted.weights, folds=counted.of_rows(folds))
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
    grid = grid_of(given, ranks, labels, scale=model.scale, taught=taught)
    recipe = replace(recipe, run=_run(model, counted._replace(X=X), recipe, ranks))
    return Asked(X, labels, recipe, taught, given, grid, comparison, seeds, counted, same, filler)


def _of_given_rows(found: Fitted, same: Copies, counted: Counted) -> Fitted:
    """Let what speaks of copies of rows speak of the rows."""
    held_out, n = found.choice.held_out, counted.X.shape[0]
    if held_out is not None:
        held_out = held_out._replace(rows=same.rows[held_out.rows])
        found = found._replace(choice=found.choice._replace(held_out=held_out))
    for parts in filter(None, (found.parts, found.beside)):
        parts.sample_weight_ = counted.weights
        if parts.directions_ is not None:
            parts.directions_ = same.gathered(parts.directions_, n)
    return found


def _settings(model: NMFAlphaClassifier, asked: Asked) -> dict[str, Any]:
    """Return all that decides what a fit finds, besides the data: a checkpoint is of one fit."""
    told = {
        **asked.recipe.parameters(), **asked.grid._asdict(),
        **{name: getattr(model, name) for name in ("scoring", "thresholds", "rehearse")},
        "cv": asked.comparison.n_splits,
    }  # fmt: skip
    if asked.recipe.embedded:
        told["embedded"] = asked.recipe.embedded
    if model.consensus:
        told["consensus"] = model.consensus
    if asked.seeds is not None:
        told["seeds"] = [asked.seeds.classes.tolist(), asked.seeds.strengths]
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


def _fit_of(model: NMFAlphaClassifier, parts: Any) -> Callable[..., Any]:
    """Return how parts are fitted to trusted data: from one start, or from several that agree."""
    return partial(fit_agreed, parts, model.consensus) if model.consensus else parts._fit_trusted


def _fit_plain(
    model: NMFAlphaClassifier, best: Setting, recipe: Recipe, labels: Labels, ready: FitInputs
) -> tuple[list[Any], Head]:
    """Fit what was chosen to all samples and the labels that are known."""
    parts = NMFAlpha._of(
        recipe, best.n_components, best.lam, random_state=ready.seed, callback=model.callback
    )
    _fit_of(model, parts)(
        ready.X, labels, recipe, ready.seed, logbook=ready.logbook, found=None,
        weights=labels.weights,
    )  # fmt: skip
    known = np.flatnonzero(labels.labeled)
    head = fit_head(
        parts._codes(ready.X[known]), labels.take(known), recipe.head.C,
        normalize=bool(recipe.head.normalize), class_weight=recipe.head.class_weight,
    )  # fmt: skip
    return [parts], head


def _fit_taught(
    model: NMFAlphaClassifier, best: Setting, recipe: Recipe, labels: Labels, ready: FitInputs,
    room: Classroom,
) -> tuple[list[Any], Head]:  # fmt: skip
    """Fit what was chosen to all samples, with what teachers say of them.

    Each block of columns, without signs and with them, has parts of its own.
    """
    found = room.all_directions(ready.X, recipe, ready.seed, labels.weights)
    start = room.start(room.lesson, best.n_components, ready.X.shape[0])
    blocks, fitted, codes = blocks_of(ready.X, recipe.embedded), [], []
    for k, (X, seen) in enumerate(zip(blocks, room.blocks(recipe), strict=True)):
        signed = bool(recipe.embedded) and k == len(blocks) - 1
        own = replace(recipe, embedded=X.shape[1] if signed else 0)
        kind: Any = SemiNMFAlpha if signed else NMFAlpha
        parts = kind._of(
            own, best.n_components, best.lam, random_state=ready.seed, callback=model.callback
        )
        _fit_of(model, parts)(
            X, start, own, ready.seed, logbook=None if k else ready.logbook,  # it keeps one run
            found=found, weights=labels.weights,
        )  # fmt: skip
        parts.classes_ = labels.classes
        parts._project(None if signed else room.weights)
        fitted.append(parts)
        codes.append(parts._codes(seen))
    (head,) = room.heads(
        np.hstack(codes), room.lesson, [recipe.head.C], normalize=bool(recipe.head.normalize),
        class_weight=recipe.head.class_weight,
    )  # fmt: skip
    return fitted, head


def _found(
    model: NMFAlphaClassifier, asked: Asked, choice: Choice, fitted: list[Any], head: Head,
    room: Classroom | None,
) -> Fitted:  # fmt: skip
    """Return what a fit has found, with thresholds and probabilities where labels were hidden."""
    thresholds: Array = np.zeros(len(head.intercept))
    labels, calibration = asked.labels, None
    if choice.held_out is not None:
        rows, values = choice.held_out
        truth = labels.take(rows)
        if labels.multilabel and model.thresholds is not None:
            trust = 1.0 if room is None else room.trust
            thresholds = trust * choose_thresholds(values, truth, model.scoring)
            # the hyperplanes are moved by the thresholds, so that a value above 0 is a yes
            head = head._replace(intercept=head.intercept - thresholds)
        calibration = calibrate(values - thresholds, truth)
    teachers = {} if room is None else room.lesson.teachers
    parts, beside = fitted[0], fitted[1] if len(fitted) > 1 else None
    return Fitted(
        choice, parts, head, thresholds, calibration, int(labels.labeled.sum()), teachers,
        asked.filler, beside,
    )  # fmt: skip
