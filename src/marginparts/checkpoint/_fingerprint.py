"""Which fit it is: its data and parameters, short enough to be kept and compared.

Numbers, words and lists of them are kept as they are, so that a message can name a difference. Of
arrays and labels there is a checksum.
"""

from __future__ import annotations

import dataclasses
import hashlib
from typing import Any

import numpy as np
import scipy.sparse as sp

#: How a checksum begins.
_SUM = "sha256:"

#: A list that is longer is data.
_SHORT = 50

#: Characters of a value in a sentence.
_SHOWN = 100


def told(value: Any) -> Any:
    """Return a value as JSON has it, or what stands for it.

    Values are numbers, strings, None, arrays, CSR matrices, dataclasses, functions, sequences and
    dicts of these; objects with a method ``fingerprint`` are asked for it.

    Examples
    --------
    >>> told((1, 2.5, "svm", None))
    [1, 2.5, 'svm', None]
    >>> is_checksum(told(np.zeros(3)))
    True
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if hasattr(value, "fingerprint"):
        return value.fingerprint()
    if isinstance(value, np.ndarray) or sp.issparse(value) or dataclasses.is_dataclass(value):
        return _checksum(value)
    if isinstance(value, dict):
        return [[told(name), told(each)] for name, each in value.items()]
    if isinstance(value, tuple | list | range):
        parts = [told(each) for each in value]
        whole = len(parts) <= _SHORT and not any(is_checksum(part) for part in parts)
        return parts if whole else _checksum(parts)
    # a function, or a backend of one's own
    name = getattr(value, "__qualname__", None) or type(value).__qualname__
    return f"{getattr(value, '__module__', '')}.{name}"


def is_checksum(what: object) -> bool:
    """Whether something is a checksum, and not a value itself."""
    return isinstance(what, str) and what.startswith(_SUM)


def differences(there: dict[str, Any], here: dict[str, Any]) -> list[str]:
    """Say in a few words each what one fit has and another has not.

    Examples
    --------
    >>> differences({"lam": 1.0, "tol": 0.1}, {"lam": 3.0, "tol": 0.1})
    ['lam=1.0 (here 3.0)']
    """
    found = []
    for name in [*here, *(name for name in there if name not in here)]:
        theirs, ours = there.get(name), here.get(name)
        if theirs != ours or (name in there) != (name in here):
            told_apart = not (is_checksum(theirs) or is_checksum(ours))
            name = _short(name)
            says = f"{name}={_short(repr(theirs))} (here {_short(repr(ours))})"
            found.append(says if told_apart else f"another {name}")
    return found


def _short(text: str) -> str:
    """Return a text of a file for a sentence."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _checksum(value: Any) -> str:
    found = hashlib.sha256()
    _add(found, value)
    return _SUM + found.hexdigest()


def _add(found: Any, value: Any) -> None:
    """Add a value to a checksum, with its type and shape."""
    if sp.issparse(value):
        found.update(f"csr {value.shape}".encode())
        for part in (value.data, value.indices, value.indptr):
            _add(found, part)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            if getattr(value, field.name) is not None:  # what is not said tells nothing apart
                _add(found, getattr(value, field.name))
    elif isinstance(value, np.ndarray) and value.dtype != object:
        found.update(f"{value.dtype.str} {value.shape}".encode())
        found.update(np.ascontiguousarray(value).reshape(-1).view(np.uint8).data)
    elif isinstance(value, np.ndarray):
        found.update(repr(value.tolist()).encode())
    else:
        found.update(repr(value).encode())
