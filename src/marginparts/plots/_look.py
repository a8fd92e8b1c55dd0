"""What the figures share: the look, the names, the order of things, and the file."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

from marginparts.datasets import PAPER_DATA
from marginparts.experiments.registry import title_of
from marginparts.experiments.tables import Cell, Curves

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Colors that color-blind readers can tell apart (Okabe & Ito).
BLUE, ORANGE, GREEN, RED = "#0072B2", "#E69F00", "#009E73", "#D55E00"
SKY, PURPLE = "#56B4E9", "#CC79A7"

#: Width of a page in inches.
WIDTH = 7.2

_STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans", "font.size": 8, "axes.titlesize": 8, "axes.labelsize": 8,
    "legend.fontsize": 8, "axes.linewidth": 0.6, "figure.facecolor": "white",
    "figure.constrained_layout.h_pad": 0.06,
}  # fmt: skip

#: A title and a color for each data set.
_DATA = {
    "mnist": ("MNIST 4 v 9", BLUE),
    "news": ("20 Newsgroups", RED),
    "aviation": ("Aviation", PURPLE),
    "aviation-500": ("Aviation, 500 words", GREEN),
    "aviation-counts": ("Aviation, counts", ORANGE),
}


def drawing(draw: Callable[..., Figure]) -> Callable[..., Figure]:
    """Make a function draw with this look, and say what to install if it cannot."""

    @wraps(draw)
    def drawn(*args: Any, **options: Any) -> Figure:
        try:
            import matplotlib
        except ImportError as error:
            raise ImportError(
                "Figures need matplotlib: install it with pip install 'marginparts[report]'."
            ) from error
        with matplotlib.rc_context(_STYLE):
            return draw(*args, **options)

    return drawn


def save_figure(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure as PNG, without a date or a version in it.

    Parameters
    ----------
    figure : Figure
    path : path
        Its folder is made where needed.
    """
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=200, format="png", metadata={"Software": None})


def cells_of(curves: Curves, preprocessing: dict[str, str]) -> list[Cell]:
    """Return the cells to show: data sets in the catalog's order, then by share of labels."""
    shown = [cell for cell in curves if preprocessing.get(cell.data) == cell.preprocessing]
    order = [*PAPER_DATA, *sorted({cell.data for cell in shown} - {*PAPER_DATA})]
    return sorted(shown, key=lambda cell: (order.index(cell.data), cell.fraction))


def method_title(method: str) -> str:
    """Return how a method is named in a figure."""
    return title_of(method).replace("alpha", "\N{GREEK SMALL LETTER ALPHA}")


def data_title(data: str) -> str:
    """Return how a data set is named in print."""
    return _DATA.get(data, (data, SKY))[0]


def data_color(data: str) -> str:
    """Return the color of a data set."""
    return _DATA.get(data, (data, SKY))[1]


def legend_outside(figure: Any, handles: list[Any], edge: str, most: int = 5) -> None:
    """Put a legend in rows above or below all panels."""
    rows = math.ceil(len(handles) / most)
    figure.legend(
        handles=handles, loc=f"outside {edge} center", ncols=math.ceil(len(handles) / rows),
        frameon=False,
    )  # fmt: skip


def small_ticks(axis: Any) -> None:
    """Make ticks thin and their labels small, also those that are made later."""
    axis.tick_params(labelsize=7, width=0.6)
