"""The way back: JSON and arrays to the value. Whatever does not fit raises."""

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginparts.app.model_file._registry import PLAIN, class_named
from marginparts.app.model_file._tables import TABLES
from marginparts.app.preparation import TextPreparation
from marginparts.files.archive import SCALARS
from marginparts.files.compressed import check_compressed
from marginparts.files.invariants import Scope

#: Parameters that had another name, by class: files written before still load.
_RENAMED = {"NMFAlpha": {"C": "direction_C"}}

#: Keys other than texts can be chosen so that all collide, and a dict of them takes hours.
_MOST_KEYS = 10_000

#: Matrices may share arrays, which are checked each time; in all no more than this many times.
_TIMES = 4

_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def decode(tree: Any, arrays: dict[str, NDArray[Any]]) -> Any:
    """Turn JSON and arrays by name back into the value.

    An `UnknownClassError` says that a class is not registered; any other exception, that the tree
    does not come from `encode`.

    Examples
    --------
    >>> from marginparts.app.model_file._decode import decode
    >>> decode({"tuple": [1, {"float": "inf"}]}, {})
    (1, inf)
    """
    return _Decoder(arrays).decode(tree)


class _Decoder:
    def __init__(self, arrays: dict[str, NDArray[Any]]) -> None:
        self._left = _TIMES * sum(array.size for array in arrays.values())
        self._odd_keys = 0
        self._readers: dict[str, Callable[[Any], Any]] = {
            "float": _NOT_FINITE.__getitem__,
            "tuple": lambda items: tuple(self.decode(item) for item in items),
            "dict": self._dict,
            "scalar": self._scalar,
            "type": SCALARS.__getitem__,
            "array": arrays.__getitem__,
            "objects": self._objects,
            "csr": self._csr,
            "member": lambda found: class_named(found["class"], "member")[found["name"]],
            "object": self._object,
            "estimator": self._estimator,
        }

    def decode(self, tree: Any) -> Any:
        if type(tree) in PLAIN:
            return tree
        if type(tree) is list:
            return [self.decode(item) for item in tree]
        ((tag, content),) = tree.items()
        return self._readers[tag](content)

    def _dict(self, pairs: list[Any]) -> dict[Any, Any]:
        self._odd_keys += sum(type(key) is not str for key, _ in pairs)
        if self._odd_keys > _MOST_KEYS:
            raise ValueError("too many keys that are no text")
        return {self.decode(key): self.decode(value) for key, value in pairs}

    def _named(self, trees: dict[str, Any]) -> dict[str, Any]:
        return {name: self.decode(tree) for name, tree in trees.items()}

    def _scalar(self, content: list[Any]) -> Any:
        name, tree = content
        value = self.decode(tree)
        if type(value) not in PLAIN:
            raise ValueError("a scalar that is none")
        return SCALARS[name](value)

    def _objects(self, content: dict[str, Any]) -> NDArray[Any]:
        array = np.empty(len(content["values"]), dtype=object)
        array[:] = self.decode(content["values"])
        return array.reshape(content["shape"])

    def _csr(self, content: dict[str, Any]) -> Any:
        data, indices, indptr = (self.decode(content[k]) for k in ("data", "indices", "indptr"))
        if not {indices.dtype.name, indptr.dtype.name} <= {"int32", "int64"}:
            raise ValueError("arrays of other types than a matrix has")
        rows, columns = content["shape"]
        # scipy's loops trust the indices, so those of a file are checked, up to a bound on the work
        self._left -= len(data) + len(indptr)
        if self._left < 0:
            raise ValueError("the same arrays in too many matrices")
        check_compressed(data, indices, indptr, (rows, columns))
        make = sp.csr_matrix if content["matrix"] else sp.csr_array
        found = make((data, indices, indptr), shape=(rows, columns))
        found.data, found.indices, found.indptr = data, indices, indptr  # scipy may have cast them
        return found

    def _object(self, content: dict[str, Any]) -> Any:
        cls = class_named(content["class"], "object")
        fields = self._named(content["fields"])
        if cls is TextPreparation:  # it makes a dict of its words at once
            Scope().check(TABLES["TextPreparation"][:1], fields)
        return cls(**fields)

    def _estimator(self, content: dict[str, Any]) -> Any:
        cls = class_named(content["class"], "estimator")
        renamed = _RENAMED.get(content["class"], {})
        given = self._named(content["parameters"])
        given = {renamed.get(name, name): value for name, value in given.items()}
        if isinstance(given.get("pseudo"), bool):  # of a stream: once a yes or no
            given["pseudo"] = "pa" if given["pseudo"] else None
        model = cls(**given)
        attributes = self._named(content["attributes"])
        for name in attributes:
            known = inspect.getattr_static(cls, name, None)
            if callable(known) or hasattr(known, "__get__"):
                raise ValueError(f"{name} is a method, and no fitted attribute")
        vars(model).update(attributes)
        return model
