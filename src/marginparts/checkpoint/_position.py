"""The position of a run as notes: plain values and arrays, from which it is rebuilt bit for bit."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np

from marginparts._types import Array, Check, Stop
from marginparts.files.invariants import (
    LARGEST,
    Field,
    InvariantError,
    Items,
    Rule,
    Scope,
    Table,
    Value,
)
from marginparts.solve.loop import Momentum, Position


class Notes(NamedTuple):
    """What is written down of something: a tree as JSON has it, and arrays by name."""

    tree: Any
    arrays: dict[str, Array]


#: The shapes of a run's factors by their letter.
Shapes = Mapping[str, tuple[int, ...]]

_FINITE = np.finfo(float).max


def _is_history(fields: Mapping[str, Any], sizes: dict[str, int]) -> bool:
    """Whether there are rows of iteration, loss, seconds, residual and nonzeros."""
    rows = fields["history"]
    return bool(rows) and all(
        [type(value) for value in row] == [int, float, float, float, dict] for row in rows
    )


_TREE: Table = (
    Value("iteration", "int", 0),
    Value("plain_until", "int", 0),
    Value("begun", "int", 0, optional=True),
    Value("seconds", "float", 0, _FINITE),
    Value("looked", "bool"),
    Value("stop", "str", options=tuple(stop.name for stop in Stop), optional=True),
    Rule("history", _is_history, "has a row that is none"),
    Items("momentum", Value("momentum", "float", -_FINITE, _FINITE), 4, optional=True),
)


def check_notes(notes: Notes, shapes: Shapes, signed: Collection[str] = ()) -> None:
    """Refuse notes of another run's factors, or of factors that no run has.

    Factors that are ``signed`` may have negative entries.
    """
    Scope().check(_TREE, notes.tree)
    known = {f"{group}.{block}" for group in ("state", "before", "good") for block in shapes}
    if strange := sorted(set(notes.arrays) - known):
        raise InvariantError(f"{strange[0]} is too much")
    for group in ("state", "before", "good"):
        # the latter two are there for all factors or for none
        there = group == "state" or any(name.startswith(f"{group}.") for name in notes.arrays)
        table = [
            Field(f"{group}.{b}", shape, least=-LARGEST if b in signed else 0)
            for b, shape in shapes.items()
            if there
        ]
        Scope().check(tuple(table), notes.arrays)
    if len({array.dtype for array in notes.arrays.values()}) > 1:
        raise InvariantError("the factors have several types")


def noted(position: Position, release: Callable[[Any], Array]) -> Notes:
    """Return a position as notes; ``release`` makes a NumPy array (n, r) of a factor."""
    momentum = position.momentum
    factors = {"state": position.state}
    if momentum is not None:
        factors["before"] = momentum.before
    if not position.checked:  # else it equals the state
        factors["good"] = position.good
    tree = {
        **{k: getattr(position, k) for k in ("iteration", "plain_until", "begun", "seconds")},
        "looked": position.checked,
        "stop": None if position.stop is None else position.stop.name,
        "history": [list(check) for check in position.history],
        "momentum": momentum and [float(getattr(momentum, k)) for k in ("least", "cap", "t", "b")],
    }
    arrays = {
        f"{name}.{block}": release(factor)
        for name, group in factors.items()
        for block, factor in group.items()
    }
    return Notes(tree, arrays)


def position_of(notes: Notes, factor: Callable[[Array, str], Any]) -> Position:
    """Return the position that was noted.

    ``factor`` makes a factor of an array (n, r) and its letter; it must not keep the array where
    it may be written to.
    """
    tree = notes.tree
    state, before, good = (_group(notes, name, factor) for name in ("state", "before", "good"))
    momentum = None
    if tree["momentum"] is not None:
        least, cap, t, b = tree["momentum"]
        # numpy's numbers, as in the run: its squares need not round like Python's
        momentum = Momentum(least, cap, before, np.float64(t), np.float64(b))
        good = good or {block: deepcopy(value) for block, value in state.items()}
    return Position(
        state, [Check(*check) for check in tree["history"]], momentum, good,
        tree["iteration"], tree["plain_until"], tree["seconds"], tree["looked"],
        None if tree["stop"] is None else Stop[tree["stop"]], begun=tree.get("begun", 0),
    )  # fmt: skip


def _group(notes: Notes, name: str, factor: Callable[[Array, str], Any]) -> dict[str, Any]:
    """Return the factors of one group by their letter."""
    return {
        (block := place.partition(".")[2]): factor(array, block)
        for place, array in notes.arrays.items()
        if place.startswith(f"{name}.")
    }
