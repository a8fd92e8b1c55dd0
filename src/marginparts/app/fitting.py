"""From samples and a few labels to a `Model`: what ``marginparts fit`` does."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from marginparts._types import Array, Callback, PathStep, Stop
from marginparts.app.evaluation import compare
from marginparts.app.explanation import distinctive
from marginparts.app.model import Card, Model, largest_entries
from marginparts.app.preparation import Preparation
from marginparts.app.readers import Layout
from marginparts.checkpoint import Checkpoint
from marginparts.estimators import NMFAlphaCV
from marginparts.labels import encode_labels
from marginparts.svm.class_weights import ClassWeight
from marginparts.validation import seed_of

#: The weights of a path: from plain NMF to parts that are all margin.
PATH = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)

#: Entries of a part that a path keeps, where parts are lists of words.
_PATH_ENTRIES = 12


class Options(NamedTuple):
    """What can be said about a fit; everything else is chosen."""

    n_components: Any = "auto"
    lam: Any = "auto"
    C: Any = "auto"
    class_weight: ClassWeight = None
    scoring: str | None = None
    max_iter: int = 100
    backend: str = "auto"
    seed: int = 0
    path: bool = False
    checkpoint: Path | None = None


class Prepared(NamedTuple):
    """Samples as a matrix, their labels, and how they came about."""

    X: Any
    y: Any
    class_names: list[str]
    preparation: Preparation
    layout: Layout
    source: str


def fit_model(
    data: Prepared,
    options: Options,
    *,
    callback: Callback | None = None,
    on_stage: Callable[[str], None] = lambda stage: None,
) -> Model:
    """Choose, fit, and compare with the obvious alternatives.

    Parameters
    ----------
    data : Prepared
    options : Options
        With a checkpoint the choice and the fit survive a kill. The file stays: remove it when
        the model is safe.
    callback : callable or None
        See `NMFAlphaCV`.
    on_stage : callable
        Told in a few words what comes next.

    Returns
    -------
    Model
    """
    began = time.perf_counter()
    on_stage("choosing")
    classifier = NMFAlphaCV(
        options.n_components, lam=options.lam, C=options.C,
        class_weight=options.class_weight, scoring=options.scoring,
        max_iter=options.max_iter, backend=options.backend, random_state=options.seed,
        callback=callback,
        checkpoint=options.checkpoint and Checkpoint(options.checkpoint, keep_finished=True),
    )  # fmt: skip
    with warnings.catch_warnings():
        # labels with a single example are what this is for, and the card says what they lack
        warnings.filterwarnings("ignore", "Left out", UserWarning)
        # the card says that a fit ended early
        warnings.filterwarnings("ignore", "Interrupted", UserWarning)
        # and the number of parts was asked for
        warnings.filterwarnings("ignore", "n_components=", UserWarning)
        classifier.fit(data.X, data.y)
    for each in (classifier, classifier.parts_):
        each.set_params(callback=None, checkpoint=None)  # they belong to this run, not to the model
    labels = encode_labels(data.y, data.X.shape[0])
    on_stage("comparing")
    rated = compare(
        data.X, labels, classifier.choice_, class_weight=options.class_weight,
        scoring=options.scoring, backend=options.backend, seed=seed_of(options.seed),
        callback=_in_stage(callback, "comparing"),
    )  # fmt: skip
    path = []
    if options.path:
        on_stage("following lam")
        whole = data.layout.image_shape is not None
        path = [
            PathStep(step.lam, _kept(step.components, whole))
            for step in classifier.parts_.path(
                data.X, PATH, callback=_in_stage(callback, "following lam")
            )
        ]
    card = Card(
        source=data.source, n_samples=data.X.shape[0], n_labeled=int(labels.labeled.sum()),
        label_counts=[len(labels.members(k)) for k in range(len(labels.classes))],
        rated=rated, doubt=classifier.doubt_, shares=_shares(classifier, data.X),
        seconds=time.perf_counter() - began,
        stopped=classifier.parts_.stop_ in (Stop.CALLBACK, Stop.INTERRUPTED),
    )  # fmt: skip
    return Model(classifier, data.preparation, data.layout, data.class_names, card, path)


def _in_stage(callback: Callback | None, stage: str) -> Callback | None:
    """Return a callback that is told in which stage of the whole a run is."""
    if callback is None:
        return None
    return lambda progress: callback(progress._replace(stage=stage))


def _shares(classifier: NMFAlphaCV, X: Any, most: int = 20_000) -> list[float]:
    """Return the share of the data's mass that each part explains, from as many rows as needed."""
    rows = np.random.default_rng(0).permutation(X.shape[0])[:most]
    mass = classifier.parts_._coefficients(X[np.sort(rows)]).sum(axis=0, dtype=np.float64)
    return [float(share) for share in mass / max(mass.sum(), 1e-300)]


def _kept(components: Array, whole: bool) -> Any:
    return components if whole else largest_entries(distinctive(components), _PATH_ENTRIES)
