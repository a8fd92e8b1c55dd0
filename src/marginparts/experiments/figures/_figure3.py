"""Figure 3: scores against the number of parts."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import cycle, groupby
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from marginparts.datasets import PAPER_DATA
from marginparts.experiments.figures._names import cells_of, data_title, method_title
from marginparts.experiments.tables import Curves, Point, chosen
from marginparts.plots import _look
from marginparts.plots._look import WIDTH, drawing, legend_outside, small_ticks

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Look: TypeAlias = dict[str, Any]

#: How methods are drawn; those that are not here take turns.
_KNOWN: dict[str, Look] = {
    "nmf_alpha": {"color": _look.BLUE, "marker": "o"},
    "svm": {"color": _look.RED, "linestyle": "--"},
    "tsvm": {"color": _look.GREEN, "linestyle": "-."},
}
_OTHERS: list[Look] = [
    {"color": _look.PURPLE, "marker": "^"},
    {"color": _look.ORANGE, "marker": "D"},
    {"color": _look.SKY, "marker": "v"},
    {"color": "0.4", "marker": "P"},
]
_SQUARE: Look = {
    "marker": "s", "markersize": 8, "markerfacecolor": "none", "color": "black", "linestyle": "",
    "markeredgewidth": 1.1, "zorder": 5, "label": "chosen on validation",
}  # fmt: skip


@drawing
def figure3(curves: Curves, preprocessing: dict[str, str], also: tuple[str, ...] = ()) -> Figure:
    """Draw the test scores of NMF-alpha against the rank, beside the SVMs on the inputs.

    One row a data set, with the preparation given for it, one column a share of labels. A band is
    one standard deviation over the splits to each side; the hollow square is the rank that is best
    on the validation rows.
    """
    from matplotlib.figure import Figure

    wanted = tuple(dict.fromkeys(("nmf_alpha", "svm", "tsvm", *also)))
    shown = {
        cell: {method: curves[cell][method] for method in wanted if method in curves[cell]}
        for cell in cells_of(curves, preprocessing)
    }
    present = [cell for cell, methods in shown.items() if methods]
    rows = {data: list(some) for data, some in groupby(present, key=lambda cell: cell.data)}
    if not rows:
        raise ValueError(f"There is nothing to draw: no records of {', '.join(wanted)}.")
    figure = Figure(figsize=(WIDTH, 1.75 * len(rows) + 0.4), layout="constrained")
    axes = figure.subplots(len(rows), max(map(len, rows.values())), squeeze=False)
    looks = _looks(wanted)
    for (data, cells), row in zip(rows.items(), axes, strict=True):
        points = [p for cell in cells for some in shown[cell].values() for p in some]
        ranks = sorted({point.rank for point in points if point.rank is not None})
        for axis, cell in zip(row, cells, strict=False):
            _draw_curves(axis, shown[cell], looks)
            axis.set_title(f"{cell.share} of labels", pad=3)
            _finish(axis, ranks)
        for axis in row[len(cells) :]:
            axis.remove()
        row[0].set_ylabel(f"{data_title(data)}\n{_score_name(data)}")
    for column in axes.T:
        drawn = [axis for axis in column if axis.figure is not None]
        drawn[-1].set_xlabel("number of parts")
    legend_outside(figure, _handles(figure), "lower")
    return figure


def _looks(methods: Iterable[str]) -> dict[str, Look]:
    """Return a color, a marker and a dash for each method, for known ones always the same."""
    others = cycle(_OTHERS)
    usual = {"linewidth": 1.3, "markersize": 3.5}
    return {method: {**usual, **(_KNOWN.get(method) or next(others))} for method in methods}


def _draw_curves(axis: Any, methods: dict[str, list[Point]], looks: dict[str, Look]) -> None:
    """Draw a curve for each method with ranks, and a line for each without."""
    for method, points in methods.items():
        look = {**looks[method], "label": method_title(method)}
        if points[0].rank is None:
            axis.axhline(points[0].test, **{"linestyle": ":", **look, "marker": None})
            continue
        ranks, tests, stds = np.array([(p.rank, p.test, p.std) for p in points]).T
        axis.plot(ranks, tests, **look)
        axis.fill_between(
            ranks, tests - stds, tests + stds, color=look["color"], alpha=0.18, linewidth=0
        )
    if "nmf_alpha" in methods:
        best = chosen(methods["nmf_alpha"])
        axis.plot([best.rank], [best.test], **_SQUARE)


def _finish(axis: Any, ranks: list[int]) -> None:
    """Scale the axis by logarithms, with plain numbers at the ranks."""
    from matplotlib.ticker import NullLocator

    axis.set_xscale("log")
    axis.set_xticks(ranks, [str(rank) for rank in ranks])
    axis.xaxis.set_minor_locator(NullLocator())
    if ranks:
        axis.set_xlim(ranks[0] / 1.3, ranks[-1] * 1.3)
    axis.margins(y=0.12)
    axis.locator_params(axis="y", nbins=5)
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(axis="y", color="0.9", linewidth=0.5)
    axis.set_axisbelow(True)
    small_ticks(axis)


def _handles(figure: Figure) -> list[Any]:
    """Return one line of each name, in the order in which they were first drawn."""
    found: dict[str, Any] = {}
    for axis in figure.axes:
        for handle, name in zip(*axis.get_legend_handles_labels(), strict=True):
            found.setdefault(name, handle)
    return list(found.values())


def _score_name(data: str) -> str:
    multilabel = data in PAPER_DATA and PAPER_DATA[data].kind == "multilabel"
    return "F-measure (\N{MULTIPLICATION SIGN}100)" if multilabel else "accuracy (%)"
