"""What must be true of an object that comes from a file, as a table, and one function to check it.

Checksums say that a file is as it was written, not by whom: anyone can compute them. Compiled loops
trust shapes, so whatever is loaded is compared with its table before it is used. A letter in a
shape stands for one number throughout an object and its parts; the first that has it sets it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

#: A number, a letter, a multiple of one ("2p"), or one of several of these.
Size: TypeAlias = "int | str | tuple[int | str, ...]"

LARGEST = float(np.finfo(np.float64).max)

#: A longer text is none that was meant to be read.
_LONGEST = 2**20

#: Entries that stay in a cache.
_PIECE = 2**16

#: Types of arrays by the letter of their kind. Loops are compiled for two types of real numbers.
_KINDS: dict[str, Callable[[np.dtype[Any]], bool]] = {
    "f": lambda dtype: dtype in (np.float32, np.float64),
    "i": lambda dtype: dtype in (np.int32, np.int64),
    "labels": lambda dtype: dtype.kind in "biufUO",
    "any": lambda dtype: dtype.kind in "biufU",
}

#: Plain values by the name of their kind.
_PLAIN: dict[str, tuple[type, ...]] = {
    "int": (int, np.integer),
    "float": (int, float, np.integer, np.floating),
    "bool": (bool, np.bool_),
    "str": (str, np.str_),
}


class InvariantError(ValueError):
    """What is wrong with a loaded object: the name of a field, and what is wrong with it."""


@dataclass(frozen=True)
class Field:
    """An array, dense or CSR, between two numbers; ``optional`` ones may be None or missing."""

    name: str
    shape: tuple[Size, ...] | None
    kind: str = "f"
    least: float = -LARGEST
    most: float = LARGEST
    nan: bool = False
    unique: bool = False
    optional: bool = False

    def check(self, value: Any, scope: Scope) -> None:
        """Compare an array."""
        array = value.data if isinstance(value, sp.csr_array | sp.csr_matrix) else value
        if not isinstance(array, np.ndarray) or not _KINDS[self.kind](array.dtype):
            raise InvariantError("is no array of the type that it must have")
        if self.shape is not None:
            scope.fit(value.shape, self.shape)
        if array.dtype.kind == "O":
            _check_objects(array)
        elif array.dtype.kind in "iuf" and array.size:
            scope.within(array, self.least, self.most, nan=self.nan)
        if self.unique and len(set(array.tolist())) < array.size:
            raise InvariantError("has an entry twice")


@dataclass(frozen=True)
class Value:
    """A plain value; an int may be the size that a letter stands for."""

    name: str
    kind: str
    least: float = -np.inf
    most: float = np.inf
    nan: bool = False
    letter: str | None = None
    options: tuple[Any, ...] | None = None
    optional: bool = False
    word: bool = False  # whether it may also be a word such as "auto"

    def check(self, value: Any, scope: Scope) -> None:
        """Compare a value."""
        if self.word and isinstance(value, str) and self.kind != "str":
            return
        known = isinstance(value, _PLAIN[self.kind])
        if not known or (isinstance(value, bool) and self.kind != "bool"):
            raise InvariantError(f"is no {self.kind}")
        if self.options is not None and value not in self.options:
            raise InvariantError(f"is none of {', '.join(map(str, self.options))}")
        if isinstance(value, str):
            if len(value) > _LONGEST:
                raise InvariantError("is too long")
        elif not (self.least <= value <= self.most) and not (self.nan and value != value):
            raise InvariantError(f"is not between {self.least:g} and {self.most:g}")
        if self.letter is not None:
            scope.fit((value,), (self.letter,))


@dataclass(frozen=True)
class Items:
    """A list or tuple of values, or of objects that have tables of their own."""

    name: str
    each: Value | Part
    length: Size | None = None
    unique: bool = False
    optional: bool = False

    def check(self, value: Any, scope: Scope) -> None:
        """Compare a list and what is in it."""
        if not isinstance(value, list | tuple):
            raise InvariantError("is no list")
        if self.length is not None:
            scope.fit((len(value),), (self.length,))
        for item in value:
            self.each.check(item, scope)
        if self.unique and len(set(value)) < len(value):
            raise InvariantError("has an entry twice")


@dataclass(frozen=True)
class Part:
    """An object of one of some classes, which is checked by its own table."""

    name: str
    classes: tuple[str, ...]
    own: str = ""  # letters that mean something else in it
    optional: bool = False

    def check(self, value: Any, scope: Scope) -> None:
        """Compare an object."""
        name = type(value).__name__
        if name not in self.classes:
            raise InvariantError(f"is no {' or '.join(self.classes)}")
        outside = {letter: scope.sizes.pop(letter) for letter in self.own if letter in scope.sizes}
        scope.check(scope.tables[name], fields_of(value), self.name)
        for letter in self.own:
            scope.sizes.pop(letter, None)
        scope.sizes |= outside


@dataclass(frozen=True)
class Letter:
    """A size that follows from the fields before it."""

    name: str
    size: Callable[[Mapping[str, Any], dict[str, int]], int]


@dataclass(frozen=True)
class Rule:
    """What else must be true of a field, given all fields and the sizes."""

    name: str
    holds: Callable[[Mapping[str, Any], dict[str, int]], bool]
    says: str = "does not fit the rest"


Line: TypeAlias = Field | Value | Items | Part | Letter | Rule
Table: TypeAlias = tuple[Line, ...]


class Scope:
    """One check of a loaded object: tables by class, the sizes so far, and arrays already seen."""

    def __init__(self, tables: Mapping[str, Table] | None = None) -> None:
        self.tables = tables or {}
        self.sizes: dict[str, int] = {}
        self._extremes: dict[int, tuple[Any, float, float]] = {}

    def check(self, table: Table, fields: Mapping[str, Any], where: str = "") -> None:
        """Compare fields by name with a table, and name the first that does not fit."""
        for line in table:
            name = f"{where}.{line.name}" if where else line.name
            try:
                if isinstance(line, Letter):
                    self.sizes[line.name] = line.size(fields, self.sizes)
                elif isinstance(line, Rule):
                    if not line.holds(fields, self.sizes):
                        raise InvariantError(line.says)
                elif fields.get(line.name) is not None:
                    line.check(fields[line.name], self)
                elif not line.optional:
                    raise InvariantError("is missing")
            except InvariantError as error:
                said = str(error)
                inner = isinstance(line, Part) and said.startswith(f"{line.name}.")
                place = name.removesuffix(line.name) if inner else f"{name} "
                raise InvariantError(f"{place}{said}") from None

    def fit(self, found: tuple[int, ...], shape: tuple[Size, ...]) -> None:
        """Compare a shape, and take note of sizes that were not known."""
        fits = len(found) == len(shape)
        if not fits or not all(map(self._fits, found, shape)):
            wanted = ", ".join(map(self._shown, shape))
            raise InvariantError(f"has the size {tuple(map(int, found))}, not ({wanted})")

    def _fits(self, n: int, size: Size) -> bool:
        if isinstance(size, tuple):
            return any(self._fits(n, each) for each in size)
        if isinstance(size, int):
            return n == size
        times, letter = _parsed(size)
        if n % times:
            return False
        return self.sizes.setdefault(letter, int(n) // times) * times == n

    def _shown(self, size: Size) -> str:
        if isinstance(size, tuple):
            return " or ".join(map(self._shown, size))
        times, letter = _parsed(str(size)) if isinstance(size, str) else (1, "")
        return str(times * self.sizes[letter]) if letter in self.sizes else str(size)

    def within(self, array: Any, least: float, most: float, *, nan: bool) -> None:
        """Compare the smallest and the largest entry; an array that occurs twice is read once."""
        if nan:
            array = array[~np.isnan(array)]
            extremes = float(array.min(initial=np.inf)), float(array.max(initial=-np.inf))
        else:
            if id(array) not in self._extremes:
                self._extremes[id(array)] = (array, *extremes_of(array))
            extremes = self._extremes[id(array)][1:]
        if array.size and not (least <= extremes[0] and extremes[1] <= most):
            raise InvariantError("has an entry that is not finite, or out of range")


def extremes_of(array: Any) -> tuple[float, float]:
    """Return the smallest and the largest entry; both are NaN where one entry is.

    Both are sought in pieces that stay in the cache, so that the array is read once.
    """
    flat = array.ravel(order="K")
    pieces = [flat[first : first + _PIECE] for first in range(0, flat.size, _PIECE)]
    smallest, largest = zip(*((piece.min(), piece.max()) for piece in pieces), strict=True)
    return float(np.min(smallest)), float(np.max(largest))


def fields_of(value: Any) -> dict[str, Any]:
    """Return the fields of an object by name."""
    named = getattr(value, "_asdict", None)
    return vars(value) if named is None else named()


def _parsed(size: str) -> tuple[int, str]:
    """Return the factor and the letter of "2p"."""
    times, letter = re.fullmatch(r"(\d*)(\w+)", size).groups()  # type: ignore[union-attr]
    return int(times or 1), letter


def _check_objects(array: Any) -> None:
    """Labels of one kind: large ints could be chosen so that a set of them takes hours."""
    kinds = {type(item) for item in array.ravel().tolist()}
    if not (kinds <= {str} or kinds <= {int, float, bool}) or array.size > 10_000:
        raise InvariantError("mixes texts and numbers, or has too many")
