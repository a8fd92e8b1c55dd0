"""Pictures and tables of a fitted estimator or model: its parts, its loss, its choice, its path.

All take an estimator of the package (a transformer, a classifier, or a `Model` that
``marginparts fit`` wrote) and return a Figure or a data frame; nothing is fitted here except the
path that `plot_path` is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from marginparts._types import Array, PathStep
from marginparts.explanation import distinctive, part_weights, top_features
from marginparts.model import Model
from marginparts.plots._look import BLUE, GREEN, ORANGE, PURPLE, RED, SKY, WIDTH, drawing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Weights that show the way from plain parts to parts that are all margin.
LAMS = (0.0, 1.0, 10.0, 100.0)

_COLORS = (BLUE, RED, GREEN, PURPLE, ORANGE, SKY)


def _parts_of(estimator: Any) -> Any:
    """Return the transformer with the parts in an estimator or model."""
    estimator = estimator.classifier if isinstance(estimator, Model) else estimator
    check_is_fitted(estimator)
    parts = getattr(estimator, "parts_", estimator)
    if not hasattr(parts, "components_"):
        raise TypeError(f"A {type(estimator).__name__} has no parts to show.")
    return parts


def _classifier_of(estimator: Any) -> Any | None:
    """Return the classifier in an estimator or model, or None."""
    estimator = estimator.classifier if isinstance(estimator, Model) else estimator
    return estimator if hasattr(estimator, "parts_") else None


def _names(estimator: Any, names: Sequence[str] | None, d: int) -> Sequence[str]:
    """Return what the features are called: as given, as in the model, as in the data frame."""
    if names is None and isinstance(estimator, Model):
        names = estimator.feature_names
    if names is None:
        names = getattr(_parts_of(estimator), "feature_names_in_", None)
    if names is None:
        names = getattr(_classifier_of(estimator), "feature_names_in_", None)
    if names is None:
        return [f"column {j + 1}" for j in range(d)]
    if len(names) != d:
        raise ValueError(f"There are {len(names)} names and {d} features; they must be equal.")
    return names


def top_words(
    estimator: Any, names: Sequence[str] | None = None, *, n: int = 10, frame: str = "pandas"
) -> Any:
    """Return the most telling features of each part as a table.

    Parameters
    ----------
    estimator : fitted estimator or Model
    names : sequence of d str, or None
        What the features are called; None takes the names of the model or the data frame.
    n : int
        Features a part.
    frame : {"pandas", "polars"}

    Returns
    -------
    DataFrame
        Columns ``part`` (from 1), ``rank``, ``word``, ``weight`` (its share of the part), and for
        classifiers ``label``: the one the part speaks for most. Words are ordered by how much they
        tell the part from all parts together.

    Examples
    --------
    >>> import numpy as np
    >>> from marginparts import NMFAlpha, top_words
    >>> X = np.array([[2., 1., 0., 0.], [4., 2., 0., 0.], [0., 0., 1., 3.]])
    >>> parts = NMFAlpha(2, random_state=0, max_iter=500).fit(X)
    >>> table = top_words(parts, ["cat", "dog", "iron", "zinc"], n=1)
    >>> sorted(table["word"])
    ['cat', 'zinc']
    """
    components = np.asarray(_parts_of(estimator).components_)
    names = _names(estimator, names, components.shape[1])
    telling = distinctive(components)
    labels = _spoken_for(estimator)
    rows = []
    for k in range(len(components)):
        column = {str(name): j for j, name in enumerate(names)}
        for rank, (word, _) in enumerate(top_features(telling[k], names, n), start=1):
            row = {"part": k + 1, "rank": rank, "word": word}
            row["weight"] = float(components[k, column[word]])
            if labels is not None:
                row["label"] = labels[k]
            rows.append(row)
    return _frame(rows, frame)


def _spoken_for(estimator: Any) -> list[str] | None:
    """Return the class that each part speaks for most."""
    classifier = _classifier_of(estimator)
    if classifier is None:
        return None
    names = (
        estimator.class_names if isinstance(estimator, Model) else [*map(str, classifier.classes_)]
    )
    return [names[c] for c in part_weights(classifier).argmax(axis=1)]


def _frame(rows: list[dict[str, Any]], frame: str) -> Any:
    if frame not in ("pandas", "polars"):
        raise ValueError(f"frame={frame!r} is unknown; choose pandas or polars.")
    try:
        if frame == "polars":
            import polars

            return polars.DataFrame(rows)
        import pandas

        return pandas.DataFrame(rows)
    except ImportError as error:
        raise ImportError(
            f"This table needs {frame}: install it with pip install {frame}."
        ) from error


@drawing
def plot_components(
    estimator: Any,
    names: Sequence[str] | None = None,
    *,
    shape: tuple[int, int] | None = None,
    n_parts: int = 24,
    n_words: int = 8,
) -> Figure:
    """Draw the parts: as pictures, or as bars of their most telling features.

    Parameters
    ----------
    estimator : fitted estimator or Model
    names : sequence of d str, or None
        What the features are called, for bars.
    shape : (height, width) or None
        Draw pictures of this shape. A model of images knows its own.
    n_parts : int
        Parts at most.
    n_words : int
        Features a part, for bars.

    Returns
    -------
    Figure
    """
    from matplotlib.figure import Figure

    components = np.asarray(_parts_of(estimator).components_)[:n_parts]
    if shape is None and isinstance(estimator, Model):
        shape = estimator.layout.image_shape
    if shape is not None:
        if math.prod(shape) != components.shape[1]:
            raise ValueError(f"shape={shape} does not fit parts of {components.shape[1]} features.")
        return _pictures([("", components)], shape)
    names = _names(estimator, names, components.shape[1])
    across = min(4, len(components))
    down = math.ceil(len(components) / across)
    figure = Figure(figsize=(WIDTH, 0.5 + down * (0.35 + 0.14 * n_words)), layout="constrained")
    telling, labels = distinctive(components), _spoken_for(estimator)
    for k in range(len(components)):
        axis = figure.add_subplot(down, across, k + 1)
        words = top_features(telling[k], names, n_words)
        values = [value for _, value in words]
        axis.barh(range(len(words)), values, color=SKY, alpha=0.5)
        for place, (word, _) in enumerate(words):
            axis.text(0, place, f" {_short(word, 24)}", va="center", fontsize=7)
        axis.invert_yaxis()
        axis.set_xticks([])
        axis.set_yticks([])
        axis.spines[:].set_visible(False)
        title = f"part {k + 1}" + (f": {_short(labels[k])}" if labels else "")
        axis.set_title(title, loc="left", fontweight="bold", pad=2)
    return figure


def _short(word: str, most: int = 18) -> str:
    return word if len(word) <= most else word[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"


def _pictures(groups: list[tuple[str, Array]], shape: tuple[int, int]) -> Figure:
    """Draw groups of pictures beside each other, each picture up to its own largest pixel."""
    from matplotlib.figure import Figure

    height, width = shape
    count = len(groups[0][1])
    across = math.ceil(math.sqrt(count * height / width))
    down = math.ceil(count / across)
    side = WIDTH / len(groups) if len(groups) > 1 else 0.6 * WIDTH
    tall = side * (down * height) / (across * width) + 0.3
    figure = Figure(figsize=(side * len(groups), tall), layout="constrained")
    for position, (title, parts) in enumerate(groups, start=1):
        sheet = np.zeros((down * (height + 1) + 1, across * (width + 1) + 1))
        for k, part in enumerate(parts):
            i, j = divmod(k, across)
            top, left = 1 + i * (height + 1), 1 + j * (width + 1)
            picture = part.reshape(shape) / max(float(part.max()), 1e-12)
            sheet[top : top + height, left : left + width] = picture
        axis = figure.add_subplot(1, len(groups), position)
        axis.imshow(sheet, cmap="gray_r", vmin=0, vmax=1)
        axis.set_title(title)
        axis.set_xticks([])
        axis.set_yticks([])
        axis.spines[:].set(color="0.7", linewidth=0.5)
    return figure


@drawing
def plot_loss(estimator: Any) -> Figure:
    """Draw the loss against the iterations of the fit.

    Parameters
    ----------
    estimator : fitted estimator or Model

    Returns
    -------
    Figure
    """
    from matplotlib.figure import Figure

    parts = _parts_of(estimator)
    checks = parts.history_
    figure = Figure(figsize=(0.7 * WIDTH, 2.4), layout="constrained")
    axis = figure.add_subplot()
    axis.plot([c.iteration for c in checks], [c.loss for c in checks], color=BLUE, linewidth=1.2)
    axis.set_xlabel("iteration")
    axis.set_ylabel("loss")
    axis.set_title(str(parts.stop_), loc="left", color="0.4")
    axis.spines[["top", "right"]].set_visible(False)
    return figure


@drawing
def plot_choice(estimator: Any) -> Figure:
    """Draw the scores of all candidates that were tried: against lam, one line a rank.

    Parameters
    ----------
    estimator : fitted NMFAlphaClassifier, NMFAlphaCV or Model

    Returns
    -------
    Figure
        Lines join the best candidate for each lam, with its standard error; hollow points were
        dropped early; a ring marks what was chosen.
    """
    from matplotlib.figure import Figure

    classifier = _classifier_of(estimator)
    if classifier is None or not classifier.selection_:
        raise ValueError("Nothing was tried: all parameters were given, or the labels too few.")
    scores, chosen = classifier.selection_, classifier.choice_.best
    most = max(map(len, scores.values()))
    metric = "F-measure" if classifier.multilabel_ else "accuracy"
    figure = Figure(figsize=(0.8 * WIDTH, 2.8), layout="constrained")
    axis = figure.add_subplot()
    ranks = sorted({setting.n_components for setting in scores})
    for rank, color in zip(ranks, _COLORS * (1 + len(ranks) // len(_COLORS)), strict=False):
        best: dict[float, Any] = {}
        for setting, values in scores.items():
            if setting.n_components == rank:
                # what was chosen stands for its lam even where another had a little more luck
                entry = (setting == chosen, len(values), float(np.mean(values)), values)
                best[setting.lam] = max(best.get(setting.lam, (False, 0, -1.0, [])), entry)
        lams = sorted(best)
        means = [best[lam][2] for lam in lams]
        errors = [_error(best[lam][3]) for lam in lams]
        whole = [best[lam][1] == most for lam in lams]
        axis.errorbar(lams, means, errors, color=color, linewidth=1, elinewidth=0.6)
        fills = [color if done else "white" for done in whole]
        axis.scatter(lams, means, c=fills, edgecolors=color, s=18, zorder=3, label=f"{rank} parts")
    axis.scatter(
        chosen.lam, classifier.choice_.score, s=90, facecolors="none", edgecolors="black", zorder=4,
        label="chosen",
    )  # fmt: skip
    axis.set_xscale("symlog", linthresh=0.1)
    ticks = sorted({setting.lam for setting in scores})
    axis.set_xticks(ticks, [f"{lam:g}" for lam in ticks])
    axis.minorticks_off()
    axis.set_xlabel("lam")
    axis.set_ylabel(f"{metric} on hidden labels")
    axis.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    axis.spines[["top", "right"]].set_visible(False)
    return figure


def _error(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


@drawing
def plot_path(
    estimator: Any,
    X: Any = None,
    lams: Iterable[float] = LAMS,
    *,
    names: Sequence[str] | None = None,
    shape: tuple[int, int] | None = None,
    n_parts: int = 36,
) -> Figure:
    """Draw the parts as the weight of the labels grows: from strokes to confusable examples.

    Parameters
    ----------
    estimator : fitted NMFAlpha, NMFAlphaClassifier or Model
        A model that was fitted with ``--path`` brings its own path.
    X : (n, d) array or sparse matrix, or None
        The data of the fit, from which the path is computed.
    lams : iterable of float
        Weights of the margin components.
    names : sequence of d str, or None
        What the features are called.
    shape : (height, width) or None
        Draw pictures of this shape.
    n_parts : int
        Parts at most; of words ten at most are drawn.

    Returns
    -------
    Figure
    """
    steps = _path_of(estimator, X, lams)
    if shape is None and isinstance(estimator, Model):
        shape = estimator.layout.image_shape
    if shape is not None:
        groups = [
            (f"\N{GREEK SMALL LETTER LAMDA} = {step.lam:g}", _dense(step.components)[:n_parts])
            for step in steps
        ]
        return _pictures(groups, shape)
    d = steps[0].components.shape[1]
    return _words_along(steps, _names(estimator, names, d), min(n_parts, 10))


def _path_of(estimator: Any, X: Any, lams: Iterable[float]) -> list[PathStep]:
    if X is not None:
        return list(_parts_of(estimator).path(X, lams))
    if isinstance(estimator, Model) and estimator.path:
        return estimator.path
    raise ValueError("plot_path needs the X of the fit, or a model that was fitted with --path.")


def _dense(components: Any) -> Array:
    return np.asarray(components.toarray() if hasattr(components, "toarray") else components)


def _words_along(steps: list[PathStep], names: Sequence[str], n_parts: int) -> Figure:
    """Draw a table of top words: a row a part, a column a weight."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, 0.4 + 0.75 * n_parts), layout="constrained")
    axis = figure.add_subplot()
    axis.set_axis_off()
    axis.set_xlim(0, len(steps))
    axis.set_ylim(n_parts, -0.4)
    for column, step in enumerate(steps):
        axis.text(column, -0.2, f"\N{GREEK SMALL LETTER LAMDA} = {step.lam:g}", fontweight="bold")
        telling = _dense(step.components)
        if not hasattr(step.components, "toarray"):  # a kept path holds telling weights already
            telling = distinctive(telling)
        for k in range(min(n_parts, len(telling))):
            words = [_short(word, 16) for word, _ in top_features(telling[k], names, 4)]
            axis.text(column, k + 0.1, "\n".join(words), va="top", fontsize=7)
    for k in range(n_parts):
        axis.axhline(k, color="0.85", linewidth=0.5)
    return figure
