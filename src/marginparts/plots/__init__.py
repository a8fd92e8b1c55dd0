"""The paper's figures: records in, Figure out. Nothing is computed here.

Each function returns a matplotlib ``Figure`` and draws what there is: data sets, methods and shares
of labels that the records lack are left out.
"""

from marginparts.plots._figure2 import figure2
from marginparts.plots._figure3 import figure3
from marginparts.plots._figures45 import figure4, figure5
from marginparts.plots._look import save_figure

__all__ = ["figure2", "figure3", "figure4", "figure5", "save_figure"]
