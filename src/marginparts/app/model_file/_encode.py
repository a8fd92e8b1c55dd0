"""The way in: a value to JSON and arrays.

None, bool, int, float, str and list are JSON's own. Everything else is an object with one key that
says what it is: ``{"tuple": [...]}``, ``{"array": "components_"}``. Arrays go beside the JSON,
under names that say where they were. Of classes only the name is written, and only registered ones
are known.
"""

import inspect
import math
import re
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from marginparts.app.model_file._registry import PLAIN, is_registered, tag_of
from marginparts.files.archive import SCALARS, is_kept, scalar_name

#: Where a value is, for the names of arrays and for messages.
Path = tuple[str, ...]

_LONGEST_NAME = 80

#: Fields that are of use beside the data of the fit only.
_LEFT_OUT = {("Choice", "folds")}


class CannotKeepError(ValueError):
    """A value has no place in a model file; the message says which and why."""


class Encoded(NamedTuple):
    """A value as JSON, and its arrays by name."""

    tree: Any
    arrays: dict[str, NDArray[Any]]


def encode(value: Any) -> Encoded:
    """Turn a value into JSON and arrays; an array that occurs twice in it is kept once.

    A `CannotKeepError` says what in it is not encodable, or is an estimator that is not fitted.

    Examples
    --------
    >>> from marginparts.app.model_file._encode import encode
    >>> encode({"shape": (2, 3), "loss": float("nan")}).tree
    {'dict': [['shape', {'tuple': [2, 3]}], ['loss', {'float': 'nan'}]]}
    """
    encoder = _Encoder()
    try:
        return Encoded(encoder.encode(value, ()), encoder.arrays)
    except RecursionError as error:
        raise CannotKeepError("The model is nested too deeply, or holds itself.") from error


class _Encoder:
    def __init__(self) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}
        self._taken: set[str] = set()
        # arrays by identity, held so that no other can take their place in memory
        self._seen: dict[int, tuple[Any, str]] = {}

    def encode(self, value: Any, path: Path) -> Any:
        kind = type(value)
        if kind is float and not math.isfinite(value):
            return {"float": repr(value)}
        if kind in PLAIN:
            return value
        if kind is list:
            return self._items(value, path)
        if kind is tuple:
            return {"tuple": self._items(value, path)}
        if kind is dict:
            return {"dict": self._pairs(value, path)}
        if is_registered(value):
            return self._registered(value, path)
        if kind in (np.ndarray, np.memmap):
            return (self._objects if value.dtype == object else self._array)(value, path)
        if kind in (sp.csr_array, sp.csr_matrix) and value.ndim == 2:
            return self._csr(value, path)
        if isinstance(value, np.generic) and (name := scalar_name(value.dtype)):
            return {"scalar": [name, self.encode(value.item(), path)]}
        if isinstance(value, type) and value in SCALARS.values():
            return {"type": next(name for name, scalar in SCALARS.items() if scalar is value)}
        raise CannotKeepError(f"{_refused(path)} of type {kind.__name__}, and no code is kept.")

    def _items(self, values: Any, path: Path) -> list[Any]:
        return [self.encode(value, (*path, str(i))) for i, value in enumerate(values)]

    def _pairs(self, values: dict[Any, Any], path: Path) -> list[Any]:
        pairs = []
        for i, (key, value) in enumerate(values.items()):
            inner = (*path, key if isinstance(key, str) else str(i))
            pairs.append([self.encode(key, inner), self.encode(value, inner)])
        return pairs

    def _array(self, value: Any, path: Path) -> dict[str, str]:
        if not is_kept(value.dtype):
            raise CannotKeepError(f"{_refused(path)} an array of type {value.dtype}.")
        if id(value) not in self._seen:
            name = self._name(path)
            self._seen[id(value)] = (value, name)
            array = np.asarray(value)
            if not (array.flags.c_contiguous or array.flags.f_contiguous):
                array = array.copy(order="K")  # the order of the axes decides how BLAS rounds
            self.arrays[name] = array
        return {"array": self._seen[id(value)][1]}

    def _name(self, path: Path) -> str:
        """Return a file name that no other array has, even where case does not count."""
        stem = re.sub(r"[^A-Za-z0-9_.-]+", "_", ".".join(path))[:_LONGEST_NAME] or "array"
        name, count = stem, 1
        while name.casefold() in self._taken:
            count += 1
            name = f"{stem}-{count}"
        self._taken.add(name.casefold())
        return name

    def _objects(self, value: Any, path: Path) -> dict[str, Any]:
        items = value.ravel().tolist()
        if not all(type(item) in PLAIN or isinstance(item, np.generic) for item in items):
            raise CannotKeepError(f"{_refused(path)} an array of other things than values.")
        return {"objects": {"shape": list(value.shape), "values": self._items(items, path)}}

    def _csr(self, value: Any, path: Path) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name in ("data", "indices", "indptr"):
            found[name] = self._array(getattr(value, name), (*path, name))
        found["shape"] = [int(n) for n in value.shape]
        return {"csr": {**found, "matrix": isinstance(value, sp.csr_matrix)}}

    def _registered(self, value: Any, path: Path) -> dict[str, Any]:
        cls = type(value)
        tag = tag_of(cls)
        if tag == "estimator":
            return self._estimator(value, path)
        if tag == "member":
            return {"member": {"class": cls.__name__, "name": value.name}}
        names = getattr(cls, "_fields", None) or [each.name for each in fields(cls)]
        kept = [name for name in names if (cls.__name__, name) not in _LEFT_OUT]
        found = {name: self.encode(getattr(value, name), (*path, name)) for name in kept}
        return {"object": {"class": cls.__name__, "fields": found}}

    def _estimator(self, model: Any, path: Path, *, fitted: bool = True) -> dict[str, Any]:
        name = type(model).__name__
        if fitted:
            try:
                check_is_fitted(model)
            except NotFittedError as error:
                raise CannotKeepError(
                    f"{_refused(path)} a {name} that is not fitted; call fit first."
                ) from error
        given = model.get_params(deep=False)
        found = {k: value for k, value in vars(model).items() if k not in given}
        parameters = {k: self._parameter(model, k, given[k], path) for k in sorted(given)}
        attributes = {k: self.encode(found[k], (*path, k)) for k in sorted(found)}
        return {"estimator": {"class": name, "parameters": parameters, "attributes": attributes}}

    def _parameter(self, model: Any, name: str, value: Any, path: Path) -> Any:
        """Encode a parameter; what cannot be kept is refused with the call that resets it."""
        seed = name != "random_state" or isinstance(value, int | np.integer)
        if name in ("callback", "checkpoint") or not seed:
            return None  # of use to a fit only: code, a file of its own, a generator that moved on
        try:
            if isinstance(value, BaseEstimator) and is_registered(value):
                return self._estimator(value, (*path, name), fitted=False)
            return self.encode(value, (*path, name))
        except CannotKeepError as error:
            default = inspect.signature(type(model)).parameters[name].default
            raise CannotKeepError(
                f"{str(error).rstrip('.')}; to save the rest, first call "
                f"{_where(path)}.set_params({name}={default!r})."
            ) from error


def _where(path: Path) -> str:
    return ".".join(("model", *path))


def _refused(path: Path) -> str:
    return f"{_where(path)} cannot be saved: it is"
