"""Figures: of a fitted estimator, and those of the paper from its records.

Each function returns a matplotlib ``Figure`` (`top_words` a data frame). The paper's figures draw
what there is: data sets, methods and shares of labels that the records lack are left out.
"""

from marginparts.plots._figure2 import figure2
from marginparts.plots._figure3 import figure3
from marginparts.plots._figures45 import figure4, figure5
from marginparts.plots._fits import plot_choice, plot_loss
from marginparts.plots._look import save_figure
from marginparts.plots._parts import plot_components, top_words
from marginparts.plots._path import plot_path

__all__ = [
    "figure2",
    "figure3",
    "figure4",
    "figure5",
    "plot_choice",
    "plot_components",
    "plot_loss",
    "plot_path",
    "save_figure",
    "top_words",
]
