"""The classes that can be kept, by name."""

import dataclasses
from enum import Enum
from typing import Any, TypeVar

from sklearn.base import BaseEstimator

#: The classes that can be kept, by name. `register` adds to them.
CLASSES: dict[str, type] = {}

#: What JSON has its own words for.
PLAIN = (type(None), bool, int, float, str)

_Class = TypeVar("_Class", bound=type)


class UnknownClassError(ValueError):
    """A file names a class that is not registered; the message is its name."""


def register(cls: _Class) -> _Class:
    """Let instances of a class be saved and loaded. Usable as a decorator.

    Parameters
    ----------
    cls : class
        An estimator (its constructor only assigns), a dataclass or NamedTuple (rebuilt by its
        constructor from all its fields), or an Enum. What they hold must be encodable in turn.

    Returns
    -------
    class
        The same.

    Examples
    --------
    >>> from typing import NamedTuple
    >>> from marginparts.app.model_file._decode import decode
    >>> from marginparts.app.model_file._encode import encode
    >>> from marginparts.app.model_file._registry import register
    >>> @register
    ... class Interval(NamedTuple):
    ...     low: float
    ...     high: float
    >>> encoded = encode(Interval(0.0, 1.0))
    >>> encoded.tree
    {'object': {'class': 'Interval', 'fields': {'low': 0.0, 'high': 1.0}}}
    >>> decode(*encoded)
    Interval(low=0.0, high=1.0)
    """
    if tag_of(cls) is None:
        raise TypeError(f"{cls.__name__} is no estimator, dataclass, NamedTuple or Enum.")
    if dataclasses.is_dataclass(cls) and not all(f.init for f in dataclasses.fields(cls)):
        raise TypeError(f"{cls.__name__} has fields that its constructor does not take.")
    known = CLASSES.setdefault(cls.__name__, cls)
    if known is not cls and known.__module__ != cls.__module__:
        raise ValueError(f"Another class named {cls.__name__} is registered; rename one of them.")
    CLASSES[cls.__name__] = cls  # a module that is loaded again brings its class again
    return cls


def is_registered(value: Any) -> bool:
    """Whether a value is of a class that can be kept; one derived from such a class is not."""
    return CLASSES.get(type(value).__name__) is type(value)


def class_named(name: str, tag: str) -> Any:
    """Return a registered class whose instances are written with a tag."""
    if name not in CLASSES:
        raise UnknownClassError(name)
    if tag_of(CLASSES[name]) != tag:
        raise ValueError(f"{name} is no {tag}")
    return CLASSES[name]


def tag_of(cls: type) -> str | None:
    """Return how instances of a class are written."""
    if issubclass(cls, BaseEstimator):
        return "estimator"
    if issubclass(cls, Enum):
        return "member"
    if dataclasses.is_dataclass(cls) or (issubclass(cls, tuple) and hasattr(cls, "_fields")):
        return "object"
    return None
