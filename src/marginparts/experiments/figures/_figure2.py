"""Figure 2: the parts for several lam, and a digit rebuilt from some of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from marginparts._types import Array
from marginparts.experiments.bases import Bases, Panel
from marginparts.plots._look import RED, WIDTH, drawing

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@drawing
def figure2(bases: Bases) -> Figure:
    """Draw a digit, and the parts for each lam with frames around those that rebuild it."""
    from matplotlib.figure import Figure

    n = len(bases.panels)
    if not n:
        raise ValueError("There are no parts to draw: the bases have no panel.")
    left = 1 / (n + 1.0)  # of a panel's width: as many pictures above each other as fit its height
    figure = Figure(figsize=(WIDTH, WIDTH / (n + left) + 0.2), layout="constrained")
    grid = figure.add_gridspec(n + 1, n + 1, width_ratios=[left, *[1] * n])
    pictures = [bases.digit, *(panel.rebuilt for panel in bases.panels)]
    titles = [f"a test {bases.name}", *(f"λ = {panel.lam:g}" for panel in bases.panels)]
    for row, (picture, title) in enumerate(zip(pictures, titles, strict=True)):
        axis = figure.add_subplot(grid[row, 0])
        axis.imshow(_square(picture), cmap="gray_r", vmin=0, vmax=max(bases.digit.max(), 1e-9))
        axis.set_title(title, fontsize=7, pad=2)
        _frame(axis)
    for column, panel in enumerate(bases.panels, start=1):
        _draw_parts(figure.add_subplot(grid[:, column]), panel)
    return figure


def _draw_parts(axis: Any, panel: Panel) -> None:
    """Draw parts in rows, each up to its own largest pixel, and frame the used ones."""
    from matplotlib.patches import Rectangle

    pictures = [_square(part) for part in panel.parts.astype(np.float32)]
    side, gap = pictures[0].shape[0], 2
    step, across = side + gap, int(np.ceil(np.sqrt(len(pictures))))
    places = [divmod(k, across) for k in range(len(pictures))]
    sheet = np.zeros((step * (places[-1][0] + 1) + gap, step * across + gap), np.float32)
    for picture, (i, j) in zip(pictures, places, strict=True):
        top, left = gap + step * i, gap + step * j
        sheet[top : top + side, left : left + side] = picture / max(picture.max(), 1e-9)
    axis.imshow(sheet, cmap="gray_r", vmin=0, vmax=1)
    for k in panel.used:
        i, j = places[k]
        # around the middle of the gap; pixels have their middle at whole numbers
        corner = (step * j + gap / 2 - 0.5, step * i + gap / 2 - 0.5)
        axis.add_patch(
            Rectangle(corner, step, step, fill=False, edgecolor=RED, linewidth=1.2, gid="used")
        )
    axis.set_title(f"λ = {panel.lam:g}", pad=4)
    _frame(axis)


def _square(picture: Array) -> Array:
    side = round(np.sqrt(picture.size))
    return picture.reshape(side, side)


def _frame(axis: Any) -> None:
    """Leave nothing but a thin frame."""
    axis.set_xticks([])
    axis.set_yticks([])
    axis.spines[:].set(color="0.7", linewidth=0.5)
