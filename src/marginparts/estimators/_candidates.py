"""What a classifier is to try: candidates that were given, and the usual ones for the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from marginparts._types import Data
from marginparts.labels import Labels
from marginparts.rows.base import Elsewhere
from marginparts.selection import (
    C_GRID_UNSCALED,
    DIRECTION_GRID_UNSCALED,
    LAM_GRID,
    LAM_GRID_SEVERAL,
    LAM_GRID_UNSCALED,
    TAUGHT_DEFAULT,
    CandidateGrid,
    usual_ranks,
)
from marginparts.validation import check_count, check_nonnegative, check_positive, check_rank
from marginparts.weighting import are_counts

if TYPE_CHECKING:
    from marginparts.estimators.classifier import NMFAlphaClassifier

#: With so many labels, samples of dense data are told apart better by twice the parts.
_MANY_LABELS = 2_000

#: How a value of each parameter that may be chosen is checked.
_CHECKS: dict[str, Callable[[Any, str], Any]] = {
    "lam": check_nonnegative,
    "map_iter": lambda value, name: None if value is None else check_count(value, name),
    "normalize": lambda value, name: bool(value),
    "C": check_positive,
    "direction_C": check_positive,
}


def given_candidates(model: NMFAlphaClassifier, *, several: bool) -> dict[str, tuple[Any, ...]]:
    """Return the candidates of each parameter that may be chosen, but those left open."""
    found = {}
    for name, check in _CHECKS.items():
        value: Any = getattr(model, name)
        if isinstance(value, str):
            if value != "auto":
                raise ValueError(f"{name}={value!r} is unknown; give a number or 'auto'.")
        elif several and isinstance(value, Iterable):
            found[name] = _distinct(name, [check(each, name) for each in value])
        else:
            found[name] = (check(value, name),)
    return found


def ranks_of(
    value: Any, labels: Labels, X: Data | Elsewhere, *, several: bool, taught: bool
) -> tuple[int, ...]:
    """Return the numbers of parts to try."""
    if isinstance(value, str):
        if value != "auto":
            raise ValueError(f"n_components={value!r} is unknown; give an integer or 'auto'.")
        if several and not taught:
            value = usual_ranks(labels, X.shape)
        elif several:
            value = max(2, min(_usual_rank(labels, X), min(X.shape) // 2))
        else:
            value = _usual_rank(labels, X)
    values = value if several and isinstance(value, Iterable) else (value,)
    return _distinct("n_components", [check_rank(rank, X.shape) for rank in values])


def _usual_rank(labels: Labels, X: Data | Elsewhere) -> int:
    """Return the number of parts that is good on average; labels in number pay for more."""
    usual = TAUGHT_DEFAULT.n_components
    if labels.labeled.sum() < _MANY_LABELS or isinstance(X, Elsewhere) or are_counts(X):
        return usual
    return max(usual, min(2 * usual, X.shape[1] // 2))


def _distinct(name: str, values: list[Any]) -> tuple[Any, ...]:
    if not values:
        raise ValueError(f"{name} has no candidate; give at least one, or 'auto'.")
    return tuple(dict.fromkeys(values))


def grid_of(
    given: dict[str, tuple[Any, ...]],
    ranks: tuple[int, ...],
    labels: Labels,
    *,
    scale: bool,
    taught: bool,
) -> CandidateGrid:
    """Return the candidates given, and the usual ones for what is left open."""
    usual: dict[str, Any] = {}
    if taught:  # few labels, few choices
        usual = {name: (value,) for name, value in TAUGHT_DEFAULT._asdict().items()}
        del usual["n_components"]
    elif scale:
        usual["lam"] = LAM_GRID_SEVERAL if labels.multilabel else LAM_GRID
    else:  # nothing is known of the units
        usual.update(lam=LAM_GRID_UNSCALED, C=C_GRID_UNSCALED, direction_C=DIRECTION_GRID_UNSCALED)
    return CandidateGrid(**{"n_components": ranks, **usual, **given})
