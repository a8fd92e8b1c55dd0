"""Choosing the rank, lam, C and the map on the labeled samples: a race over folds."""

from marginparts.selection._choice import (
    Choice,
    HeldOut,
    best_of,
    honest_scores,
    standard_error,
)
from marginparts.selection._choosing import choose, codes_by_map, enough_rows
from marginparts.selection._settings import (
    C_GRID,
    C_GRID_UNSCALED,
    DEFAULT,
    DIRECTION_GRID_UNSCALED,
    LAM_GRID,
    LAM_GRID_SEVERAL,
    LAM_GRID_UNSCALED,
    MAP_GRID,
    NORMALIZE_GRID,
    Grid,
    Setting,
    default_for,
    usual_ranks,
)

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
    "Choice",
    "Grid",
    "HeldOut",
    "Setting",
    "best_of",
    "choose",
    "codes_by_map",
    "default_for",
    "enough_rows",
    "honest_scores",
    "standard_error",
    "usual_ranks",
]
