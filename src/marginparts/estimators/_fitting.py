"""How both classifiers are fitted: candidates, the race between them, and the model that won."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from marginparts._types import Array, Samples, Targets
from marginparts.estimators._inputs import Counted, FitInputs, prepared
from marginparts.estimators._plan import TEACHABLE, Plan, plan_of, settings_of
from marginparts.estimators._repeats import Copies
from marginparts.estimators.consensus import fit_agreed
from marginparts.estimators.nmf_alpha import NMFAlpha
from marginparts.estimators.semi import SemiNMFAlpha
from marginparts.labels import Labels
from marginparts.recipe import Recipe, blocks_of
from marginparts.selection import Choice, Classroom, Setting, choose, choose_taught
from marginparts.selection.folds import renumbered
from marginparts.svm.calibration import ENOUGH, Calibration, calibrate
from marginparts.svm.head import Head, fit_head
from marginparts.svm.thresholds import choose_thresholds

if TYPE_CHECKING:
    from marginparts.estimators.classifier import NMFAlphaClassifier


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
    cv: Any = None,
) -> Fitted:
    """Choose what is left to choose, find the parts, train the SVM.

    With ``several`` a parameter may be a sequence of candidates, and the number of parts is chosen
    too. ``cv`` is the number of folds, None for as many as suit the labels, or folds.
    """
    plan = plan_of(model, X, y, sample_weight, several=several, cv=cv)
    labels, recipe, grid, classroom = plan.labels, plan.recipe, plan.grid, None
    rank, settings = max(grid.n_components), settings_of(model, plan)
    with prepared(model, plan.X, labels, rank, settings) as ready:
        if plan.taught:
            classroom = Classroom.of(
                ready.X, labels, recipe, plan.comparison, ready.seed, plan.seeds
            )
            grid = classroom.left_open(plan.given, grid)
            choice = choose_taught(
                classroom, grid, recipe, plan.comparison, ready.seed, model.callback
            )
        else:
            choice = choose(
                ready.X, labels, grid, recipe, plan.comparison, ready.seed,
                callback=model.callback, logbook=ready.logbook,
            )  # fmt: skip
        best = choice.best
        recipe = recipe.tuned(
            direction_C=best.direction_C, map_iter=best.map_iter, C=best.C,
            normalize=best.normalize,
        )  # fmt: skip
        if classroom is None:
            fitted, head = _fit_plain(model, best, recipe, labels, ready)
        else:
            fitted, head = _fit_taught(model, best, recipe, labels, ready, classroom)
    found = _found(model, plan, choice, fitted, head, classroom)
    if plan.same is not None:
        found = _of_counted_rows(found, plan.same, plan.counted)
    return found if plan.counted.rows is None else _of_given_rows(found, plan.counted, plan.n)


def _of_counted_rows(found: Fitted, same: Copies, counted: Counted) -> Fitted:
    """Turn row numbers and coefficients of copies of rows into those of the rows."""
    for parts in filter(None, (found.parts, found.beside)):
        parts.sample_weight_ = counted.weights
        if parts.directions_ is not None:
            parts.directions_ = same.gathered(parts.directions_, counted.X.shape[0])
    return _renumbered(found, same.rows)


def _of_given_rows(found: Fitted, counted: Counted, n: int) -> Fitted:
    """Turn row numbers and coefficients of the rows that count into those of all n rows."""
    assert counted.rows is not None
    for parts in filter(None, (found.parts, found.beside)):
        parts._spread_over(counted.rows, n)
    return _renumbered(found, counted.rows)


def _renumbered(found: Fitted, rows: NDArray[np.intp]) -> Fitted:
    """Give known and hidden samples the numbers that their rows have elsewhere."""
    if (held_out := found.choice.held_out) is None:
        return found
    held_out = held_out._replace(rows=rows[held_out.rows])
    folds = renumbered(found.choice.folds, rows)
    return found._replace(choice=found.choice._replace(held_out=held_out, folds=folds))


def is_calibrated(estimator: NMFAlphaClassifier) -> bool:
    """Whether there were labels enough for probabilities; if not, say why there are none."""
    if getattr(estimator, "calibration_", None) is not None:
        return True
    check_is_fitted(estimator)
    held_out = estimator.choice_.held_out
    if held_out is None and not estimator.rehearse:
        why = "no labels were hidden and predicted; fit with rehearse=True"
    else:
        n = 0 if held_out is None else len(held_out.rows)
        why = (
            f"{n} labels could be hidden and predicted, and {ENOUGH} with a few of each side are "
            "needed; label more samples"
        )
    raise AttributeError(f"There are no probabilities: {why}.")


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
    classroom: Classroom,
) -> tuple[list[Any], Head]:  # fmt: skip
    """Fit what was chosen to all samples, with known labels and those that teachers guessed.

    Each block of columns, without signs and with them, has parts of its own.
    """
    if ready.X.shape[0] > TEACHABLE:
        _return_freed_memory()
    found = classroom.all_directions(ready.X, recipe, ready.seed, labels.weights)
    start = classroom.start(classroom.lesson, best.n_components, ready.X.shape[0])
    blocks, fitted, codes = blocks_of(ready.X, recipe.embedded), [], []
    for k, (X, seen) in enumerate(zip(blocks, classroom.blocks(recipe), strict=True)):
        signed = bool(recipe.embedded) and k == len(blocks) - 1
        own = replace(recipe, embedded=X.shape[1] if signed else 0)
        kind: Any = SemiNMFAlpha if signed else NMFAlpha
        parts = kind._of(
            own, best.n_components, best.lam, random_state=ready.seed, callback=model.callback
        )
        _fit_of(model, parts)(
            X, start, own, ready.seed, logbook=None if k else ready.logbook,  # it keeps one run
            found=found.beside if k else found, weights=labels.weights,
        )  # fmt: skip
        parts.classes_ = labels.classes
        parts._project(None if signed else classroom.weights)
        fitted.append(parts)
        codes.append(parts._codes(seen))
    (head,) = classroom.heads(
        np.hstack(codes), classroom.lesson, [recipe.head.C], normalize=bool(recipe.head.normalize),
        class_weight=recipe.head.class_weight,
    )  # fmt: skip
    return fitted, head


def _return_freed_memory() -> None:
    """Let the system have what was freed: glibc keeps it, hundreds of megabytes after a choice."""
    if sys.platform == "linux" and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)):
        trim(0)


def _found(
    model: NMFAlphaClassifier, plan: Plan, choice: Choice, fitted: list[Any], head: Head,
    classroom: Classroom | None,
) -> Fitted:  # fmt: skip
    """Return what a fit has found, with thresholds and probabilities where labels were hidden."""
    thresholds: Array = np.zeros(len(head.intercept))
    labels, calibration = plan.labels, None
    if choice.held_out is not None:
        rows, values = choice.held_out
        truth = labels.take(rows)
        if labels.multilabel and model.thresholds is not None:
            trust = 1.0 if classroom is None else classroom.trust
            thresholds = trust * choose_thresholds(values, truth, model.scoring)
            # the hyperplanes are moved by the thresholds, so that a value above 0 is a yes
            head = head._replace(intercept=head.intercept - thresholds)
        calibration = calibrate(values - thresholds, truth)
    teachers = {} if classroom is None else classroom.lesson.teachers
    parts, beside = fitted[0], fitted[1] if len(fitted) > 1 else None
    return Fitted(
        choice, parts, head, thresholds, calibration, int(labels.labeled.sum()), teachers,
        plan.filler, beside,
    )  # fmt: skip
