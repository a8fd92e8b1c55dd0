"""The paper's Figures 2 to 5, drawn from the records of its experiments.

They draw what there is: data sets, methods and shares of labels that the records lack are left out.
"""

from marginparts.experiments.figures._curves import figure3, figure4, figure5
from marginparts.experiments.figures._figure2 import figure2

__all__ = ["figure2", "figure3", "figure4", "figure5"]
