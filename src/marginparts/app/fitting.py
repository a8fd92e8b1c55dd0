"""From a file with a few labels to a `Model`: what ``marginparts fit`` does."""

import os
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import compress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from marginparts._types import Array, Callback, Data, PathStep, Stop
from marginparts.app import preparation
from marginparts.app.encoders import encoded, settled
from marginparts.app.evaluation import compare
from marginparts.app.explanation import distinctive
from marginparts.app.model import Card, Model, largest_entries
from marginparts.app.model_file import load
from marginparts.app.number_of_parts import OtherParts, check_most
from marginparts.app.options import Options, check_alone, check_missing, check_vectors
from marginparts.app.preparation import (
    EstimatorError,
    Preparation,
    PreparationError,
    as_counted,
)
from marginparts.app.readers import (
    Layout,
    SampleSource,
    open_source,
    read_all,
    read_feature_weights,
    read_seeds,
    targets,
)
from marginparts.checkpoint import Checkpoint
from marginparts.estimators import NMFAlphaCV
from marginparts.files.atomic import FileProblemError
from marginparts.files.columns import check_column
from marginparts.files.layout import Batch
from marginparts.labels import Labels, encode_labels
from marginparts.seeds import seed_columns
from marginparts.solve.prior import carried_parts
from marginparts.validation import check_weights, seed_of

#: The weights of a path: from plain NMF to parts that are all margin.
PATH = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)

#: Entries of a part that a path keeps, where parts are lists of words.
_PATH_ENTRIES = 12

#: How a warning begins that speaks of arrays; a file's cells were read before.
_OF_ARRAYS = "y has the label"

#: Told what comes next: reading, preparing, encoding, choosing, comparing, following lam; behind
#: a colon, with whom it is compared.
OnStage = Callable[[str], None]


class Prepared(NamedTuple):
    """Samples as a matrix, their labels, and how they came about."""

    X: Data
    y: NDArray[Any]
    class_names: list[str]
    preparation: Preparation
    layout: Layout
    source: str
    weights: Array | None = None


def fit_file(
    path: str | os.PathLike[str],
    *,
    text: str | None = None,
    label: str | None = None,
    label_sep: str | None = None,
    labels: str | os.PathLike[str] | None = None,
    words: str | os.PathLike[str] | None = None,
    encoding: str = "utf-8",
    callback: Callback | None = None,
    on_stage: OnStage = lambda stage: None,
    **options: Any,
) -> Model:
    r"""Learn parts from a file in which a few samples have labels.

    Reads and prepares the samples, chooses the settings by cross-validation over the labeled ones,
    fits, and compares with other methods: what ``marginparts fit`` does.

    Parameters
    ----------
    path, text, label, label_sep, labels, words, encoding
        The file, where its texts and labels are, and what its columns are called: see
        `marginparts.app.readers.open_source`. A table of texts needs ``text``, and ``label`` or
        the option ``seeds``.
    callback : callable or None
        Called with a `Progress` at each evaluation of the loss; a true answer ends the stage under
        way, and the best so far is kept.
    on_stage : callable
        Called with a word when a stage begins.
    **options
        The fields of `marginparts.app.options.Options`: ``n_components``, ``lam``, ``C``,
        ``class_weight``, ``scoring``, ``max_iter``, ``backend``, ``random_state``, ``keep_path``,
        ``checkpoint``; for texts ``min_df``, ``max_df``, ``stop_words``, ``ngrams``, ``weight``;
        and ``weighting``, ``seeds``, ``prior``, ``strength``, ``exclusivity``, ``alpha_W``,
        ``alpha_H``, ``l1_ratio``, ``fixed``, ``consensus``, ``missing``, ``feature_weight``,
        ``embeddings`` and ``embed``. None need be given.

    Returns
    -------
    Model
        Takes samples as they are in the file; `marginparts.save` writes it.

    Raises
    ------
    FileProblemError, PreparationError
        With one sentence on what is wrong with a file or an option, and what to do.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from marginparts import fit_file
    >>> pets = ["cats purr and sleep,cat", "dogs bark and run,dog", "a cat may purr,", "dogs run,"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "pets.csv")
    ...     _ = file.write_text("\n".join(["says,kind", *pets * 5]))
    ...     model = fit_file(file, text="says", label="kind", n_components=2)
    >>> model
    Model('pets.csv', 2 parts, 2 labels, 10 of 20 samples labeled)
    >>> model.predict(["purr purr", "run run"])
    ['cat', 'dog']
    """
    wanted = Options(**options)
    check_alone(wanted)
    if isinstance(wanted.seeds, str | os.PathLike):
        wanted = wanted._replace(seeds=read_seeds(Path(wanted.seeds), encoding))
    for name in ("prior", "fixed"):
        if isinstance(given := getattr(wanted, name), str | os.PathLike):
            wanted = wanted._replace(**{name: load(given)})
    if isinstance(wanted.feature_weight, str | os.PathLike):
        weights = read_feature_weights(Path(wanted.feature_weight), encoding)
        wanted = wanted._replace(feature_weight=weights)
    on_stage("reading")
    source = open_source(
        path, text=text, label=label, label_sep=label_sep, labels=labels, words=words,
        encoding=encoding, gaps=wanted.missing is not None, embeddings=wanted.embeddings,
    )  # fmt: skip
    check_missing(wanted, source)
    check_vectors(wanted, source)
    prepared = _prepared(source, wanted, on_stage)
    return fit_model(prepared, wanted, callback=callback, on_stage=on_stage)


def _prepared(source: SampleSource, options: Options, on_stage: OnStage) -> Prepared:
    """Read samples and labels, and make a matrix of them."""
    batch = read_all(source, keep_columns=options.weight is not None)
    weights = None if options.weight is None else weights_in(batch.columns, options.weight, source)
    if weights is not None:
        batch = counting(batch, weights > 0)
        weights = weights[weights > 0]
    y, class_names = targets(batch.labels, source, options.seeds or ())
    on_stage("preparing")
    how, X = matrix_of(batch, source, options)
    layout, vectors = source.layout, batch.vectors
    if options.embed is not None:
        on_stage("encoding")
        vectors = encoded(options.embed, batch.samples)
        layout = replace(layout, vectors=vectors.shape[1], encoder=settled(options.embed))
    if vectors is not None and not vectors.any():
        raise PreparationError("All vectors are zero; there is nothing to learn from them.")
    X = preparation.beside(X, vectors)
    return Prepared(X, y, class_names, how, layout, source.path.name, weights)


def matrix_of(batch: Batch, source: SampleSource, options: Options) -> tuple[Preparation, Data]:
    """Make a matrix of samples, and say how."""
    how: Preparation
    if source.layout.kind == "text":
        stop_words = preparation.stop_words_from(options.stop_words)
        how, X = preparation.prepare_texts(
            batch.samples, min_df=options.min_df, max_df=options.max_df, stop_words=stop_words,
            ngrams=(1, options.ngrams),
            weighting="l2-log" if options.weighting == "auto" else options.weighting,
        )  # fmt: skip
    else:
        weighting = "counts" if options.missing else options.weighting
        how, X = preparation.prepare_matrix(batch.samples, source.layout.names, weighting)
    if options.feature_weight:
        text = source.layout.kind == "text"
        own = preparation.column_weights(how, options.feature_weight, text=text)
        how = replace(how, feature_weight=own)
        X = how.apply(batch.samples)
    if not (X.nnz if hasattr(X, "nnz") else X.any()):
        raise FileProblemError(
            f"All entries of {source.path} are zero; there is nothing to learn from."
        )
    return how, X


def weights_in(columns: dict[str, list[Any]], name: str, source: SampleSource) -> Array:
    """Return the weights (n,) in a column of a table of texts."""
    if source.layout.kind != "text" or name in (source.layout.text, source.layout.label):
        raise FileProblemError(
            f"--weight {name}: only a table of texts can have a column of weights, beside that of "
            "its texts and that of its labels."
        )
    check_column(str(source.path), name, list(columns))
    try:
        found = np.array([float(cell) for cell in columns[name]])
        return check_weights(found, f"The column {name!r} of {source.path}")
    except (TypeError, ValueError) as error:
        raise FileProblemError(
            f"The column {name!r} of {source.path} must hold numbers, 0 or larger and not all "
            "zero, in every row: they are weights."
        ) from error


def counting(batch: Batch, kept: NDArray[np.bool_]) -> Batch:
    """Return the texts that count."""
    vectors = None if batch.vectors is None else batch.vectors[kept]
    samples, labels = (list(compress(each, kept)) for each in (batch.samples, batch.labels))
    return Batch(samples, labels, {}, vectors)


def fit_model(
    data: Prepared,
    options: Options,
    *,
    callback: Callback | None = None,
    on_stage: OnStage = lambda stage: None,
    **given: Any,
) -> Model:
    """Choose, fit, and compare with the obvious alternatives; see `fit_file`.

    What else is given are parameters of the classifier.
    """
    began = time.perf_counter()
    on_stage("choosing")
    classifier = _fitted(data, options, callback, given)
    labels = _labels_of(data)
    counts = [len(labels.members(k)) for k in range(len(labels.classes))]
    if options.seeds is not None and not labels.multilabel:  # classes may have no label
        found = dict(zip(labels.classes.tolist(), counts, strict=True))
        counts = [found.get(name, 0) for name in data.class_names]
    if options.missing:
        data = data._replace(X=classifier._whole(data.X))
    on_stage("comparing")
    rated = compare(
        data.X, labels, classifier.choice_, class_weight=options.class_weight,
        scoring=options.scoring, backend=options.backend, seed=seed_of(options.random_state),
        callback=_in_stage(callback, "comparing"), embedded=data.layout.vectors,
        on_rival=lambda name: on_stage(f"comparing: {name}"),
    )  # fmt: skip
    path, own = [], classifier._without_embedding(data.X)
    if options.keep_path:
        on_stage("following lam")
        path = classifier.parts_.path(own, PATH, callback=_in_stage(callback, "following lam"))
        if data.layout.image_shape is None:
            path = [
                PathStep(step.lam, largest_entries(distinctive(step.components), _PATH_ENTRIES))
                for step in path
            ]
    fixed = classifier.fixed
    for each in (classifier, classifier.parts_):
        # they are in the parts, and a file has no need of them
        each.set_params(prior=None, fixed=None, allowed=None, init="auto")
    card = Card(
        source=data.source, n_samples=data.X.shape[0], n_labeled=int(labels.labeled.sum()),
        label_counts=counts, rated=rated, doubt=classifier.doubt_,
        shares=_shares(classifier, own), seconds=time.perf_counter() - began,
        stopped=classifier.parts_.stop_ in (Stop.CALLBACK, Stop.INTERRUPTED),
        prior=options.prior and options.prior.card.source,
        carried=options.prior.n_parts if options.prior and options.strength else 0,
        n_fixed=0 if fixed is None else np.shape(fixed)[0],
        stability=getattr(classifier.parts_, "stability_", np.empty(0)).tolist(),
    )  # fmt: skip
    return Model(classifier, data.preparation, data.layout, data.class_names, card, path)


def _labels_of(data: Prepared) -> Labels:
    """Return the labels of a file as codes, with the weights of its rows."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", _OF_ARRAYS, UserWarning)
        return replace(encode_labels(data.y, data.X.shape[0]), weights=data.weights)


def _fitted(
    data: Prepared, options: Options, callback: Callback | None, given: dict[str, Any]
) -> NMFAlphaCV:
    """Return a fitted classifier without what belongs to this run alone."""
    kept = options.checkpoint
    if kept is not None and not isinstance(kept, Checkpoint):
        kept = Checkpoint(Path(kept), keep_finished=True)
    prior, ranks = _other_parts(data, options.prior, "prior"), options.n_components
    fixed = _other_parts(data, options.fixed, "model of fixed parts")
    others = OtherParts(prior, fixed)
    others.check_room(ranks)
    if "init" not in given:
        check_most(ranks, others, data.X.shape, data.layout, data.source)
    asked: dict[str, Any] = {"fixed": fixed} | given
    classifier = NMFAlphaCV(
        others.number if ranks == "auto" else ranks, lam=options.lam,
        C=options.C, prior=prior, strength=options.strength, exclusivity=options.exclusivity,
        alpha_W=options.alpha_W, alpha_H=options.alpha_H, l1_ratio=options.l1_ratio,
        consensus=options.consensus, missing=options.missing, embedded=data.layout.vectors,
        class_weight=options.class_weight, scoring=options.scoring,
        max_iter=options.max_iter, backend=options.backend, random_state=options.random_state,
        callback=callback, checkpoint=kept, seeds=_seed_columns(data, options.seeds), **asked,
    )  # fmt: skip
    with warnings.catch_warnings():
        # labels with a single example are what this is for, the card says what they lack and that
        # a fit ended early, and the number of parts was asked for
        for start in ("Left out", "Interrupted", "n_components=", _OF_ARRAYS):
            warnings.filterwarnings("ignore", start, UserWarning)
        try:
            classifier.fit(data.X, data.y, sample_weight=data.weights)
        except ValueError as error:
            raise EstimatorError(str(error)) from error
    for each in (classifier, classifier.parts_):
        each.set_params(callback=None, checkpoint=None)
    return classifier


def _other_parts(data: Prepared, other: Any, what: str) -> Array | None:
    """Return the parts of another model over the columns of the data."""
    if other is None:
        return None
    if not isinstance(other, Model):
        raise PreparationError(f"The {what} is no model that marginparts fit has written.")
    parts, names = other.classifier.parts_.components_, other.preparation.names
    if names is None or data.preparation.names is None:
        return np.asarray(parts)
    try:
        return carried_parts(parts, names, data.preparation.names)
    except ValueError as error:
        raise PreparationError(str(error)) from error


def _seed_columns(data: Prepared, seeds: Mapping[str, Any] | None) -> dict[Any, Any] | None:
    """Return the columns of seed words, as the classifier takes them."""
    if seeds is None:
        return None
    if data.preparation.names is None:
        raise PreparationError("Seeds need names of columns; give a file of them with --words.")
    counted = as_counted if data.layout.kind == "text" else str
    several = np.ndim(data.y) == 2  # whose labels are known by their places
    words: dict[Any, Any] = {}
    for name, each in seeds.items():
        given = each if isinstance(each, Mapping) else dict.fromkeys(each, 1.0)
        found = {counted(word): strength for word, strength in given.items()}
        words[data.class_names.index(name) if several else name] = found
    try:
        return seed_columns(words, data.preparation.names)
    except ValueError as error:
        raise PreparationError(str(error)) from error


def _in_stage(callback: Callback | None, stage: str) -> Callback | None:
    """Return a callback whose progress counts one stage as a part of the whole fit."""
    if callback is None:
        return None
    return lambda progress: callback(progress._replace(stage=stage))


def _shares(classifier: NMFAlphaCV, X: Data, most: int = 20_000) -> list[float]:
    """Return the share of the data's mass that each part explains, from as many rows as needed."""
    rows = np.random.default_rng(0).permutation(X.shape[0])[:most]
    mass = classifier.parts_._coefficients(X[np.sort(rows)]).sum(axis=0, dtype=np.float64)
    return [float(share) for share in mass / max(mass.sum(), 1e-300)]
