"""The race in one picture: the mean gain of every entry over the linear SVM, with a dot a cell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from marginparts.experiments.few_labels.collections import COLLECTIONS
from marginparts.experiments.few_labels.race import OURS, Entry, Race
from marginparts.experiments.few_labels.tables import Cell, Scores, cells_of
from marginparts.plots._look import (
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    RED,
    WIDTH,
    drawing,
    legend_outside,
    small_ticks,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Colors of the collections: texts, several labels a sample, images and sound.
_TEXT, _SEVERAL, _OTHER = COLLECTIONS[:5], COLLECTIONS[5:7], COLLECTIONS[7:]
_KINDS = (
    ("texts", _TEXT, BLUE), ("several labels a sample", _SEVERAL, PURPLE),
    ("images and sound", _OTHER, ORANGE),
)  # fmt: skip


def _color(cell: Cell) -> str:
    return next((color for _, names, color in _KINDS if cell.data in names), "0.5")


@drawing
def race_figure(race: Race, scores: Scores) -> Figure:
    """Draw one line an entry: its mean gain, and a dot for each cell."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    gains = {
        entry: {c: g.mean for c in cells_of(race, scores) if (g := scores.gain(entry, c))}
        for entry in scores
        if entry.method != "svm"
    }
    gains = {entry: found for entry, found in gains.items() if found}
    if not gains:
        raise ValueError("There is nothing to draw: no cell has a score of the linear SVM.")
    means = {entry: sum(found.values()) / len(found) for entry, found in gains.items()}
    order = sorted(gains, key=lambda entry: means[entry])
    figure = Figure(figsize=(WIDTH, 0.9 + 0.24 * len(order)), layout="constrained")
    axis = figure.subplots()
    axis.axvline(0, color="0.6", linewidth=0.7, zorder=1)
    for line, entry in enumerate(order):
        _draw_line(axis, line, gains[entry], means[entry])
    axis.set_yticks(range(len(order)), [entry.title for entry in order])
    for label, entry in zip(axis.get_yticklabels(), order, strict=True):
        label.set_fontweight("bold" if entry.method.startswith(OURS) else "normal")
    axis.set_xlabel("points above the linear SVM on the same rows")
    small_ticks(axis)
    shown = {cell.data for found in gains.values() for cell in found}
    handles: list[Any] = [
        Line2D([], [], linestyle="", marker="o", markersize=4, color=color, label=kind)
        for kind, names, color in _KINDS
        if shown & set(names)
    ]
    mean = Line2D([], [], linestyle="", marker="|", markersize=9, color="black", label="mean")
    legend_outside(figure, [*handles, mean], "lower")
    return figure


def _draw_line(axis: Any, line: int, gains: dict[Cell, float], mean: float) -> None:
    colors = [_color(cell) for cell in gains]
    axis.scatter(
        [*gains.values()], [line] * len(gains), s=14, color=colors, alpha=0.7, linewidth=0, zorder=2
    )
    axis.plot([mean], [line], marker="|", markersize=11, markeredgewidth=2, color="black", zorder=3)


#: Colors of the entries of a curve.
_LINES = (RED, BLUE, GREEN, ORANGE, PURPLE)


@drawing
def curve_figure(race: Race, scores: Scores) -> Figure:
    """Draw the score against the number of labels a class, one panel a collection."""
    from matplotlib.figure import Figure

    cells = cells_of(race, scores)
    if not cells:
        raise ValueError("There is nothing to draw: there are no scores.")
    panels = list(dict.fromkeys(cell.data for cell in cells))
    figure = Figure(figsize=(WIDTH, 2.6), layout="constrained")
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    order = sorted(scores, key=lambda entry: entry.method != OURS)
    for axis, data in zip(axes, panels, strict=True):
        for entry, color in zip(order, _LINES, strict=False):
            _draw_curve(axis, scores, entry, [c for c in cells if c.data == data], color)
        axis.set(xscale="log", title=data, xlabel="labels a class")
        ticks = [cell.labels for cell in cells if cell.data == data]
        axis.set_xticks(ticks, [str(tick) for tick in ticks])
        axis.minorticks_off()
        small_ticks(axis)
    axes[0].set_ylabel("test score in %")
    legend_outside(figure, axes[0].get_legend_handles_labels()[0], "lower")
    return figure


def _draw_curve(axis: Any, scores: Scores, entry: Entry, cells: list[Cell], color: str) -> None:
    points = [(cell.labels, m) for cell in cells if (m := scores.mean(entry, cell)) is not None]
    if points:
        axis.plot(
            *zip(*points, strict=True), marker="o", markersize=3, linewidth=1, color=color,
            label=entry.title,
        )  # fmt: skip
