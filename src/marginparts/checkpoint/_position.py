"""The position of a run as notes: plain values and arrays, from which it is rebuilt bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np

from marginparts._types import Array, Check, Stop
from marginparts.solve.loop import Momentum, Position


class Notes(NamedTuple):
    """What is written down of something: a tree as JSON has it, and arrays by name."""

    tree: Any
    arrays: dict[str, Array]


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
