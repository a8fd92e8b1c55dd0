"""The paper's Figures 2 to 5, drawn from the records of its experiments.

They draw what there is: data sets, methods and shares of labels that the records lack are left out.
"""

from marginparts.experiments.figures._figure2 import figure2
from marginparts.experiments.figures._figure3 import figure3
from marginparts.experiments.figures._figures45 import figure4, figure5

__all__ = ["figure2", "figure3", "figure4", "figure5"]
