"""The parts along a path over lam."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from marginparts._types import Array, Data, PathStep, Samples
from marginparts.app.explanation import distinctive, top_features
from marginparts.app.model import Model
from marginparts.plots._fitted import Fitted, names_in, parts_in, short
from marginparts.plots._look import WIDTH, drawing, new_figure
from marginparts.plots._parts import pictures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Weights that show the way from plain parts to parts that are all margin.
LAMS = (0.0, 1.0, 10.0, 100.0)


@drawing
def plot_path(
    estimator: Fitted,
    X: Samples | None = None,
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

    Examples
    --------
    >>> from marginparts import NMFAlpha, plot_path
    >>> from marginparts.datasets import load_digits_49
    >>> digits = load_digits_49()
    >>> parts = NMFAlpha(4, tol=0, max_iter=10, random_state=0).fit(digits.data, digits.target)
    >>> figure = plot_path(parts, digits.data, lams=[0, 10], shape=(8, 8))
    """
    steps: list[PathStep] = []
    if X is not None:
        steps = list(parts_in(estimator).path(X, lams))
    elif isinstance(estimator, Model):
        steps = estimator.path
    if not steps:
        raise ValueError(
            "plot_path needs the X of the fit, or a model that was fitted with --path."
        )
    if shape is None and isinstance(estimator, Model):
        shape = estimator.layout.image_shape
    if shape is not None:
        groups = [
            (f"\N{GREEK SMALL LETTER LAMDA} = {step.lam:g}", _dense(step.components)[:n_parts])
            for step in steps
        ]
        return pictures(groups, shape)
    d = steps[0].components.shape[1]
    return _words_along(steps, names_in(estimator, names, d), min(n_parts, 10))


def _dense(components: Data) -> Array:
    return np.asarray(components.toarray() if hasattr(components, "toarray") else components)


def _words_along(steps: list[PathStep], names: Sequence[str], n_parts: int) -> Figure:
    """Draw a table of top words: a row a part, a column a weight."""
    figure = new_figure(WIDTH, 0.4 + 0.75 * n_parts)
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
            words = [short(word, 16) for word, _ in top_features(telling[k], names, 4)]
            axis.text(column, k + 0.1, "\n".join(words), va="top", fontsize=7)
    for k in range(n_parts):
        axis.axhline(k, color="0.85", linewidth=0.5)
    return figure
