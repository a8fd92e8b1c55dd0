"""How data sets and methods are named in the paper's figures, and in which order they come."""

from __future__ import annotations

from marginparts.datasets import PAPER_DATA
from marginparts.experiments.registry import title_of
from marginparts.experiments.tables import Cell, Curves
from marginparts.plots._look import BLUE, GREEN, ORANGE, PURPLE, RED, SKY

#: A title and a color for each data set.
_DATA = {
    "mnist": ("MNIST 4 v 9", BLUE),
    "news": ("20 Newsgroups", RED),
    "aviation": ("Aviation", PURPLE),
    "aviation-500": ("Aviation, 500 words", GREEN),
    "aviation-counts": ("Aviation, counts", ORANGE),
}


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
