"""A model whose parts somebody has looked at, and the fit going on: ``marginparts edit``."""

import os
from collections.abc import Iterable, Mapping
from copy import copy
from typing import Any

import numpy as np

from marginparts._types import Array, Callback
from marginparts.app.fitting import OnStage, Prepared, counting, fit_model, weights_in
from marginparts.app.model import Model
from marginparts.app.options import Options
from marginparts.app.preparation import PreparationError, as_counted
from marginparts.app.readers import open_source, read_all, targets
from marginparts.estimators.editing import edit_parts

#: The parts that a fit goes on from have seen every label, the hidden ones too.
_FLATTERED = (
    "The parts that the fit went on from had seen all labels, also those that were hidden for the "
    "score: it flatters."
)


def edit_file(
    model: Model,
    path: str | os.PathLike[str],
    *,
    merge: Iterable[Iterable[int]] = (),
    delete: Iterable[int] = (),
    freeze: Iterable[int] = (),
    forbid: Mapping[int, Iterable[str]] | None = None,
    weight: str | None = None,
    encoding: str = "utf-8",
    labels: str | os.PathLike[str] | None = None,
    random_state: int = 0,
    callback: Callback | None = None,
    on_stage: OnStage = lambda stage: None,
) -> Model:
    """Merge, delete or freeze parts of a model, and fit on from there.

    Parameters
    ----------
    model : Model
        It is left as it is.
    path, labels, encoding
        Samples and labels, in a file like that of the model; see `fit_file`.
    merge, delete, freeze
        Parts, counted from 1 as everywhere where people see them; see `edit_parts`.
    forbid : dict or None
        Words that may not enter a part, by its number.
    weight : str or None
        The column of a table of texts that says how much each counts, as for `fit_file`.
    random_state : int
    callback, on_stage
        As for `fit_file`.

    Returns
    -------
    Model
        Fitted to the samples, with the words, the weight of the labels and what else was asked of
        the old one; frozen parts come first.

    Raises
    ------
    FileProblemError, PreparationError
        With one sentence on what is wrong.
    """
    if model.layout.vectors:
        raise PreparationError("Parts of vectors cannot be edited; fit without vectors.")
    on_stage("reading")
    source = open_source(path, encoding=encoding, like=model.layout, labels=labels)
    batch = read_all(source, keep_columns=weight is not None)
    weights = None if weight is None else weights_in(batch.columns, weight, source)
    if weights is not None:
        batch, weights = counting(batch, weights > 0), weights[weights > 0]
    old, seeds = model.classifier, _seed_words(model)
    y, names = targets(batch.labels, source, seeds or ())
    on_stage("preparing")
    X = model.preparation.apply(batch.samples)
    looked_at = copy(old.parts_)
    looked_at.allowed = _allowed(model, forbid or {})
    groups = [[_place(k) for k in group] for group in merge]
    gone, kept = ([_place(k) for k in named] for named in (delete, freeze))
    try:
        edited = edit_parts(looked_at, old._whole(X), merge=groups, delete=gone, freeze=kept)
    except ValueError as error:
        raise PreparationError(_from_one(str(error))) from error
    options = Options(
        edited.n_components, old.lam_, class_weight=old.class_weight, scoring=old.scoring,
        max_iter=old.max_iter, backend=str(old.backend), random_state=random_state, seeds=seeds,
        exclusivity=old.exclusivity, alpha_W=old.alpha_W, alpha_H=old.alpha_H,
        l1_ratio=old.l1_ratio, missing=old.missing,
    )  # fmt: skip
    data = Prepared(X, y, names, model.preparation, model.layout, source.path.name, weights)
    found = fit_model(
        data, options, callback=callback, on_stage=on_stage, init=edited.init, fixed=edited.fixed,
        allowed=edited.allowed,
    )  # fmt: skip
    found.card.doubt = " ".join(filter(None, [found.card.doubt, _FLATTERED]))
    return found


def _place(k: int) -> int:
    """Return the place, from 0, of a part that people count from 1."""
    if k < 1:
        raise PreparationError(f"There is no part {k}; they are counted from 1.")
    return k - 1


def _from_one(sentence: str) -> str:
    """Reword an error about a part that is counted from 0 for users, who count from 1."""
    if sentence.startswith("There is no part"):
        return "A part is named that is not there; marginparts topics shows their numbers."
    if " is named " in sentence:
        return "A part is named twice; merge, delete or freeze it once."
    return sentence


def _seed_words(model: Model) -> dict[str, dict[str, float]] | None:
    """Return the words of the seeds that a model was made with, by class."""
    seeds = model.classifier.seeds
    if not seeds:
        return None
    names = model.feature_names
    return {
        model.class_names[int(key)] if model.multilabel else str(key): {
            names[int(column)]: float(strength) for column, strength in own.items()
        }
        for key, own in seeds.items()
    }


def _allowed(model: Model, forbid: Mapping[int, Iterable[str]]) -> Array | None:
    """Return which words may enter which part (r, d), None for all of them."""
    if not forbid:
        return None
    places: dict[Any, int] = {name: j for j, name in enumerate(model.feature_names)}
    counted = as_counted if model.layout.kind == "text" else str
    allowed = np.ones((model.n_parts, len(places)), dtype=bool)
    for k, words in forbid.items():
        if not 1 <= k <= model.n_parts:
            raise PreparationError(f"There is no part {k}; the model has {model.n_parts}.")
        for word in words:
            if (j := places.get(counted(word))) is None:
                raise PreparationError(f"The model knows no word {word!r}.")
            allowed[k - 1, j] = False
    return allowed
