"""Choosing the rank, lam, C and the map on the labeled samples: a race over folds."""

from marginparts.selection._choice import (
    C_GRID,
    C_GRID_UNSCALED,
    DEFAULT,
    DIRECTION_GRID_UNSCALED,
    LAM_GRID,
    LAM_GRID_SEVERAL,
    LAM_GRID_UNSCALED,
    MAP_GRID,
    NORMALIZE_GRID,
    CandidateGrid,
    Choice,
    Comparison,
    HeldOut,
    Setting,
    best_of,
    default_for,
    honest_scores,
    standard_error,
    usual_ranks,
)
from marginparts.selection._race import choose
from marginparts.selection._taught import (
    TAUGHT_DEFAULT,
    Classroom,
    choose_taught,
)
from marginparts.selection.folds import enough_rows

__all__ = [
    "C_GRID",
    "C_GRID_UNSCALED",
    "DEFAULT",
    "DIRECTION_GRID_UNSCALED",
    "LAM_GRID",
    "LAM_GRID_SEVERAL",
    "LAM_GRID_UNSCALED",
    "MAP_GRID",
    "NORMALIZE_GRID",
    "TAUGHT_DEFAULT",
    "CandidateGrid",
    "Choice",
    "Classroom",
    "Comparison",
    "HeldOut",
    "Setting",
    "best_of",
    "choose",
    "choose_taught",
    "default_for",
    "enough_rows",
    "honest_scores",
    "standard_error",
    "usual_ranks",
]
