"""Figures 4 and 5: NMF-alpha against other methods, point by point."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from marginparts.experiments.figures._names import cells_of, data_color, data_title, method_title
from marginparts.experiments.plan import STUDIES
from marginparts.experiments.tables import Cell, Curves, chosen
from marginparts.plots._look import WIDTH, drawing, legend_outside, small_ticks

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Shapes for the shares of labels.
_SHAPES = {"few labels": "s", "some labels": "^", "all labels": "o"}

#: How many times wider than high a panel may get.
_WIDEST = 1.5


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
            *zip(*points, strict=True), s=26, marker=_SHAPES[share], color=data_color(data),
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
    data = dict.fromkeys(pair.data for pair in pairs)
    colors = [mark("o", data_color(name), data_title(name)) for name in data]
    legend_outside(figure, shapes, "upper")
    legend_outside(figure, colors, "lower", most=2 * len(figure.axes))
