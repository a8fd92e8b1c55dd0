"""The parts of a fitted estimator: as a table of words, as bars, as pictures."""

from __future__ import annotations

import importlib
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from marginparts._types import Array
from marginparts.app.explanation import distinctive, top_columns, top_features
from marginparts.app.model import Model
from marginparts.estimators import NMFAlphaConsensus
from marginparts.plots._fitted import Fitted, names_in, parts_in, shares_in, short, spoken_for
from marginparts.plots._look import BLUE, SKY, WIDTH, drawing, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def top_words(
    estimator: Fitted, names: Sequence[str] | None = None, *, n: int = 10, frame: str = "pandas"
) -> Any:
    """Return the most telling features of each part as a table.

    Parameters
    ----------
    estimator : fitted estimator or Model
        Whose parts are listed.
    names : sequence of d str, or None
        What the features are called; None takes the names of the model or the data frame.
    n : int
        How many features are listed for each part.
    frame : {"pandas", "polars"}
        The library whose DataFrame is returned.

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
    components = np.asarray(parts_in(estimator).components_)
    names = names_in(estimator, names, components.shape[1])
    telling = distinctive(components, shares_in(estimator))
    labels = spoken_for(estimator)
    rows = []
    for k in range(len(components)):
        for rank, j in enumerate(top_columns(telling[k], n), start=1):
            row = {"part": k + 1, "rank": rank, "word": str(names[j])}
            row["weight"] = float(components[k, j])
            rows.append(row if labels is None else {**row, "label": labels[k]})
    return _frame(rows, frame)


def _frame(rows: list[dict[str, Any]], frame: str) -> Any:
    if frame not in ("pandas", "polars"):
        raise ValueError(f"frame={frame!r} is unknown; choose pandas or polars.")
    try:
        return importlib.import_module(frame).DataFrame(rows)
    except ImportError as error:
        raise ImportError(
            f"This table needs {frame}: install it with pip install {frame}."
        ) from error


@drawing
def plot_components(
    estimator: Fitted,
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
        Whose parts are drawn.
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

    Examples
    --------
    >>> from marginparts import NMFAlpha, plot_components
    >>> from marginparts.datasets import load_digits_49
    >>> digits = load_digits_49()
    >>> parts = NMFAlpha(4, tol=0, max_iter=10, random_state=0).fit(digits.data, digits.target)
    >>> figure = plot_components(parts, shape=(8, 8))
    >>> figure.savefig("parts.png")  # doctest: +SKIP
    """
    components = np.asarray(parts_in(estimator).components_)
    if shape is None and isinstance(estimator, Model):
        shape = estimator.layout.image_shape
    if shape is not None:
        if math.prod(shape) != components.shape[1]:
            raise ValueError(f"shape={shape} does not fit parts of {components.shape[1]} features.")
        return pictures([("", components[:n_parts])], shape)
    return bars(
        components, names_in(estimator, names, components.shape[1]), n=n_words,
        shares=shares_in(estimator), labels=spoken_for(estimator),
        order=np.arange(min(n_parts, len(components))),
    )  # fmt: skip


def bars(
    components: Array,
    names: Sequence[str],
    *,
    shares: Sequence[float] | Array | None,
    labels: Sequence[str] | None,
    order: NDArray[np.intp],
    n: int,
) -> Figure:
    """Draw some of the parts (r, d), in an order, as bars of their n most telling features."""
    across = min(4, len(order))
    down = math.ceil(len(order) / across)
    figure = new_figure(WIDTH, 0.5 + down * (0.35 + 0.14 * n))
    telling = distinctive(components, shares)
    for place_of_part, k in enumerate(order.tolist(), start=1):
        axis = figure.add_subplot(down, across, place_of_part)
        words = top_features(telling[k], names, n)
        values = [value for _, value in words]
        axis.barh(range(len(words)), values, color=SKY, alpha=0.5)
        for place, (word, _) in enumerate(words):
            axis.text(0, place, f" {short(word, 24)}", va="center", fontsize=7)
        axis.invert_yaxis()
        axis.set_xticks([])
        axis.set_yticks([])
        axis.spines[:].set_visible(False)
        title = f"part {k + 1}" + (f": {short(labels[k], 15)}" if labels else "")
        axis.set_title(title, loc="left", fontweight="bold", pad=2)
    return figure


@drawing
def plot_stability(consensus: NMFAlphaConsensus) -> Figure:
    """Draw how stable the parts are over starts, the most stable first.

    Parameters
    ----------
    consensus : fitted NMFAlphaConsensus
        Whose runs are compared.

    Returns
    -------
    Figure
        A bar for the stability of each part, and a dot for its cosine with its match in each run.

    Examples
    --------
    >>> from marginparts import NMFAlpha, NMFAlphaConsensus, plot_stability
    >>> from marginparts.datasets import load_digits_49
    >>> consensus = NMFAlphaConsensus(NMFAlpha(4), n_runs=3, random_state=0)
    >>> figure = plot_stability(consensus.fit(load_digits_49().data))
    """
    check_is_fitted(consensus)
    order = np.argsort(-consensus.stability_, kind="stable")
    places = np.arange(len(order))
    figure = new_figure(max(0.5 * WIDTH, min(WIDTH, 0.22 * len(order))), 2.4)
    axis = figure.add_subplot()
    axis.bar(places, consensus.stability_[order], color=SKY, alpha=0.5)
    for run in consensus.agreement_:
        axis.scatter(places, run[order], s=4, color=BLUE, linewidths=0)
    axis.set_xticks(places, [str(k + 1) for k in order], rotation=90 if len(order) > 20 else 0)
    axis.set_xlabel("part")
    axis.set_ylabel("cosine with other starts")
    axis.set_title(f"{consensus.total_stability_:.2f} on average", loc="left", color="0.4")
    axis.spines[["top", "right"]].set_visible(False)
    return figure


def pictures(groups: list[tuple[str, Array]], shape: tuple[int, int]) -> Figure:
    """Draw groups of pictures beside each other, each picture up to its own largest pixel."""
    height, width = shape
    count = len(groups[0][1])
    across = math.ceil(math.sqrt(count * height / width))
    down = math.ceil(count / across)
    side = WIDTH / len(groups) if len(groups) > 1 else 0.6 * WIDTH
    tall = side * (down * height) / (across * width) + 0.3
    figure = new_figure(side * len(groups), tall)
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
