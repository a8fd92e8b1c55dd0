"""Figures of a fitted estimator.

Each function returns a matplotlib ``Figure``; `top_words` returns a data frame.
"""

from marginparts.plots._fits import plot_choice, plot_loss, plot_ranks
from marginparts.plots._look import save_figure
from marginparts.plots._parts import plot_components, plot_stability, top_words
from marginparts.plots._path import plot_path

__all__ = [
    "plot_choice",
    "plot_components",
    "plot_loss",
    "plot_path",
    "plot_ranks",
    "plot_stability",
    "save_figure",
    "top_words",
]
