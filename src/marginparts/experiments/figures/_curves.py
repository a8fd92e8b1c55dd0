"""Figures 3 to 5: scores against the number of parts, and NMF-alpha against others, by points."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import cycle, groupby
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from marginparts.datasets import PAPER_DATA
from marginparts.experiments.plan import STUDIES
from marginparts.experiments.registry import title_of
from marginparts.experiments.tables import Cell, Curves, Point, chosen
from marginparts.plots import _look
from marginparts.plots._look import WIDTH, drawing, legend_outside, small_ticks

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: A title and a color for each data set.
_DATA = {
    "mnist": ("MNIST 4 v 9", _look.BLUE),
    "news": ("20 Newsgroups", _look.RED),
    "aviation": ("Aviation", _look.PURPLE),
    "aviation-500": ("Aviation, 500 words", _look.GREEN),
    "aviation-counts": ("Aviation, counts", _look.ORANGE),
}

Style: TypeAlias = dict[str, Any]

#: How methods are drawn; those that are not here take turns.
_KNOWN: dict[str, Style] = {
    "nmf_alpha": {"color": _look.BLUE, "marker": "o"},
    "svm": {"color": _look.RED, "linestyle": "--"},
    "tsvm": {"color": _look.GREEN, "linestyle": "-."},
}
_OTHERS: list[Style] = [
    {"color": _look.PURPLE, "marker": "^"},
    {"color": _look.ORANGE, "marker": "D"},
    {"color": _look.SKY, "marker": "v"},
    {"color": "0.4", "marker": "P"},
]
_SQUARE: Style = {
    "marker": "s", "markersize": 8, "markerfacecolor": "none", "color": "black", "linestyle": "",
    "markeredgewidth": 1.1, "zorder": 5, "label": "chosen on validation",
}  # fmt: skip

#: Shapes for the shares of labels.
_SHAPES = {"few labels": "s", "some labels": "^", "all labels": "o"}

#: How many times wider than high a panel may get.
_WIDEST = 1.5


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
    styles = _styles(wanted)
    for (data, cells), row in zip(rows.items(), axes, strict=True):
        points = [p for cell in cells for some in shown[cell].values() for p in some]
        ranks = sorted({point.rank for point in points if point.rank is not None})
        for axis, cell in zip(row, cells, strict=False):
            _draw_curves(axis, shown[cell], styles)
            axis.set_title(f"{cell.share} of labels", pad=3)
            _finish(axis, ranks)
        for axis in row[len(cells) :]:
            axis.remove()
        row[0].set_ylabel(f"{title_and_color(data)[0]}\n{_score_name(data)}")
    for column in axes.T:
        drawn = [axis for axis in column if axis.figure is not None]
        drawn[-1].set_xlabel("number of parts")
    legend_outside(figure, _handles(figure), "lower")
    return figure


def _styles(methods: Iterable[str]) -> dict[str, Style]:
    """Return a color, a marker and a dash for each method, for known ones always the same."""
    others = cycle(_OTHERS)
    usual = {"linewidth": 1.3, "markersize": 3.5}
    return {method: {**usual, **(_KNOWN.get(method) or next(others))} for method in methods}


def _draw_curves(axis: Any, methods: dict[str, list[Point]], styles: dict[str, Style]) -> None:
    """Draw a curve for each method with ranks, and a line for each without."""
    for method, points in methods.items():
        style = {**styles[method], "label": method_title(method)}
        if points[0].rank is None:
            axis.axhline(points[0].test, **{"linestyle": ":", **style, "marker": None})
            continue
        ranks, tests, stds = np.array([(p.rank, p.test, p.std) for p in points]).T
        axis.plot(ranks, tests, **style)
        axis.fill_between(
            ranks, tests - stds, tests + stds, color=style["color"], alpha=0.18, linewidth=0
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


@drawing
def figure4(curves: Curves, preprocessing: dict[str, str]) -> Figure:
    """Draw NMF-alpha against NMF and PCA, which use no labels.

    Each point is one rank on one data set, with the preparation given for it and one share of
    labels; both scores are relative to the SVM on the inputs. Points left of the axes, where
    NMF-alpha is much better, are counted in a note.
    """
    return _compare(curves, preprocessing, ("nmf", "pca"))


@drawing
def figure5(curves: Curves, preprocessing: dict[str, str]) -> Figure:
    """Draw NMF-alpha against the other semi-supervised factorizations, as in `figure4`."""
    return _compare(curves, preprocessing, ("lee2010", "liu_wu2010"))


Limits: TypeAlias = tuple[float, float]


class _Pair(NamedTuple):
    """Both scores of one rank in one cell, relative to the SVM on the inputs."""

    data: str
    share: str
    rival: float
    ours: float


def _compare(curves: Curves, preprocessing: dict[str, str], rivals: tuple[str, ...]) -> Figure:
    from matplotlib.figure import Figure

    cells = cells_of(curves, preprocessing)
    found = {rival: [p for c in cells for p in _pairs(c, curves, rival)] for rival in rivals}
    found = {rival: pairs for rival, pairs in found.items() if pairs}
    pairs = [pair for pairs in found.values() for pair in pairs]
    if not pairs:
        raise ValueError(
            "There is nothing to draw: no data set has records of svm, nmf_alpha and any of "
            f"{', '.join(rivals)} with the same ranks and labels."
        )
    across, up = _limits(list(found.values()))
    width = WIDTH / len(rivals)
    height = (width - 0.5) * (up[1] - up[0]) / (across[1] - across[0])
    figure = Figure(figsize=(len(found) * width, height + 0.95), layout="constrained")
    axes = figure.subplots(1, len(found), squeeze=False)[0]
    for axis, (rival, some) in zip(axes, found.items(), strict=True):
        _draw_pairs(axis, some, (across, up))
        axis.set_xlabel(f"{method_title(rival)} relative to raw SVM")
        axis.set_ylabel(f"{method_title('nmf_alpha')} relative to raw SVM")
    _legends(figure, pairs)
    return figure


def _limits(panels: list[list[_Pair]]) -> tuple[Limits, Limits]:
    """Return the limits of both axes, the same for all panels.

    All of NMF-alpha's scores are inside, and all of the others' that are higher. So what is left
    out lies above the diagonal, far to the left: as in the paper, where it would crowd all else
    into a corner.
    """
    ours = [0.0, *(pair.ours for pairs in panels for pair in pairs)]
    rivals = [sorted(pair.rival for pair in pairs) for pairs in panels]
    low, high = min(ours), max(*ours, *(scores[-1] for scores in rivals))
    span = max(high - low, 1.0)
    farthest = min(scores[0] for scores in rivals)
    edge = high - _WIDEST * span
    spare = (high - edge) / 4  # too little to leave anything out for
    left = min(low, farthest if farthest > edge - spare else edge)
    bottom = min(low, high - (high - left) / _WIDEST)
    pad = 0.06 * max(high - bottom, 1.0)
    return (left - pad, high + pad), (bottom - pad, high + pad)


def _pairs(cell: Cell, curves: Curves, rival: str) -> Iterator[_Pair]:
    methods = curves[cell]
    if not {"svm", "nmf_alpha", rival} <= set(methods):
        return
    raw = chosen(methods["svm"]).test
    theirs = {point.rank: point.test for point in methods[rival]}
    share = _share_in_words(cell, curves)
    for point in methods["nmf_alpha"]:
        if point.rank in theirs:
            yield _Pair(cell.data, share, theirs[point.rank] - raw, point.test - raw)


def _share_in_words(cell: Cell, curves: Curves) -> str:
    """Tell the smallest share of labels, all labels, and what is between."""
    if cell.fraction == 1:
        return "all labels"
    # records may be partial: what was planned tells which share is the smallest
    shares = [min(study.fractions) for study in STUDIES.values() if study.data == cell.data]
    shares += [other.fraction for other in curves if other.data == cell.data]
    return "few labels" if cell.fraction == min(shares) else "some labels"


def _draw_pairs(axis: Any, pairs: list[_Pair], limits: tuple[Limits, Limits]) -> None:
    from matplotlib.ticker import MaxNLocator, MultipleLocator

    across, up = limits
    axis.axhline(0, color="0.6", linewidth=0.7, zorder=1)
    axis.axvline(0, color="0.6", linewidth=0.7, zorder=1)
    axis.plot(across, across, color="0.3", linewidth=0.9, zorder=1)
    inside = [pair for pair in pairs if pair.rival >= across[0]]
    for data, share in dict.fromkeys((pair.data, pair.share) for pair in inside):
        points = [(p.rival, p.ours) for p in inside if (p.data, p.share) == (data, share)]
        axis.scatter(
            *zip(*points, strict=True), s=26, marker=_SHAPES[share], color=title_and_color(data)[1],
            alpha=0.85, edgecolor="white", linewidth=0.4, zorder=2, clip_on=False,
        )  # fmt: skip
    axis.set(xlim=across, ylim=up, aspect="equal")
    first, second, *_ = MaxNLocator(8, steps=[1, 2, 5, 10]).tick_values(*across)
    for direction in (axis.xaxis, axis.yaxis):
        direction.set_major_locator(MultipleLocator(second - first))
    small_ticks(axis)
    left_out = len(pairs) - len(inside)
    if left_out:
        note = f"{left_out} {'points' if left_out > 1 else 'point'} further left"
        axis.text(
            0.98, 0.03, note, ha="right", va="bottom", fontsize=7, color="0.3",
            transform=axis.transAxes,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
        )  # fmt: skip


def _legends(figure: Figure, pairs: list[_Pair]) -> None:
    """Put the shapes above the panels and the colors below."""
    from matplotlib.lines import Line2D

    def mark(marker: str, color: str, label: str) -> Line2D:
        return Line2D([], [], linestyle="", markersize=5, marker=marker, color=color, label=label)

    shares = {pair.share for pair in pairs}
    shapes = [mark(shape, "0.4", share) for share, shape in _SHAPES.items() if share in shares]
    data = map(title_and_color, dict.fromkeys(pair.data for pair in pairs))
    colors = [mark("o", color, title) for title, color in data]
    legend_outside(figure, shapes, "upper")
    legend_outside(figure, colors, "lower", most=2 * len(figure.axes))


def cells_of(curves: Curves, preprocessing: dict[str, str]) -> list[Cell]:
    """Return the cells to show: data sets in the catalog's order, then by share of labels."""
    shown = [cell for cell in curves if preprocessing.get(cell.data) == cell.preprocessing]
    order = [*PAPER_DATA, *sorted({cell.data for cell in shown} - {*PAPER_DATA})]
    return sorted(shown, key=lambda cell: (order.index(cell.data), cell.fraction))


def method_title(method: str) -> str:
    """Return how a method is named in a figure."""
    return title_of(method).replace("alpha", "\N{GREEK SMALL LETTER ALPHA}")


def title_and_color(data: str) -> tuple[str, str]:
    """Return how a data set is named and drawn."""
    return _DATA.get(data, (data, _look.SKY))
