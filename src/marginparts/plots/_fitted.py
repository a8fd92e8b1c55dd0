"""What the pictures of fitted estimators share: where the parts are, and what things are called."""

from collections.abc import Sequence
from typing import Any, TypeAlias

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from marginparts.app.explanation import part_weights
from marginparts.app.model import Model

#: A fitted estimator, or a model with one in it.
Fitted: TypeAlias = BaseEstimator | Model


def parts_in(estimator: Fitted) -> Any:
    """Return the transformer with the parts in an estimator or model."""
    estimator = estimator.classifier if isinstance(estimator, Model) else estimator
    check_is_fitted(estimator)
    parts = getattr(estimator, "parts_", getattr(estimator, "estimator_", estimator))
    if not hasattr(parts, "components_"):
        raise TypeError(f"A {type(estimator).__name__} has no parts to show.")
    return parts


def classifier_in(estimator: Fitted) -> Any | None:
    """Return the classifier in an estimator or model, or None."""
    estimator = estimator.classifier if isinstance(estimator, Model) else estimator
    return estimator if hasattr(estimator, "parts_") else None


def shares_in(estimator: Fitted) -> list[float] | None:
    """Return how much of the data each part explains, where that is known."""
    return (estimator.card.shares or None) if isinstance(estimator, Model) else None


def names_in(estimator: Fitted, names: Sequence[str] | None, d: int) -> Sequence[str]:
    """Return what the features are called: as given, as in the model, as in the data frame."""
    if names is None and isinstance(estimator, Model):
        names = estimator.feature_names
    for each in (parts_in(estimator), classifier_in(estimator)):
        if names is None:
            names = getattr(each, "feature_names_in_", None)
    if names is None:
        return [f"column {j + 1}" for j in range(d)]
    if len(names) != d:
        raise ValueError(f"There are {len(names)} names and {d} features; they must be equal.")
    return names


def spoken_for(estimator: Fitted) -> list[str] | None:
    """Return the class that each part speaks for most."""
    classifier = classifier_in(estimator)
    if classifier is None:
        return None
    names = estimator.class_names if isinstance(estimator, Model) else classifier.classes_
    return [str(names[c]) for c in part_weights(classifier).argmax(axis=1)]


def short(word: str, most: int = 18) -> str:
    """Return a word that is not too long."""
    return word if len(word) <= most else word[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"
