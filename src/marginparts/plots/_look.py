"""What all figures share: colors, style, and how one is written."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Colors that color-blind readers can tell apart (Okabe & Ito).
BLUE, ORANGE, GREEN, RED = "#0072B2", "#E69F00", "#009E73", "#D55E00"
SKY, PURPLE = "#56B4E9", "#CC79A7"
COLORS = (BLUE, RED, GREEN, PURPLE, ORANGE, SKY)

#: Width of a page in inches.
WIDTH = 7.2

_STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans", "font.size": 8, "axes.titlesize": 8, "axes.labelsize": 8,
    "legend.fontsize": 8, "axes.linewidth": 0.6, "figure.facecolor": "white",
    "figure.constrained_layout.h_pad": 0.06,
}  # fmt: skip


def drawing(draw: Callable[..., Figure]) -> Callable[..., Figure]:
    """Make a function draw in this style, and say what to install if it cannot."""

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


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of a size in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def save_figure(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure as PNG, without a date or a version in it.

    Parameters
    ----------
    figure : Figure
        What one of the functions here returned.
    path : path
        The file to write; its folder is made if needed.
    """
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=200, format="png", metadata={"Software": None})


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
