"""Choosing a number on validation scores: from a start outwards, for as long as it pays."""

from __future__ import annotations

from collections.abc import Callable, Sequence

#: Costs of SVMs, in half decades.
COSTS = tuple(float(f"{factor}e{power}") for power in range(-4, 6) for factor in (1, 3))


def climb(
    ladder: Sequence[float],
    start: float,
    score: Callable[[float], float],
    steps: int,
    known: float | None = None,
) -> dict[float, float]:
    """Try the start and its neighbors, and go on while the best lies at an end and is better.

    The ladder has all that may be tried, in order. The search goes at most ``steps`` values either
    way from the start, whose score may be ``known``. Returns the scores of what was tried.

    Examples
    --------
    >>> climb([1, 2, 4, 8, 16, 32, 64], 2, lambda value: -abs(value - 8), 5)
    {1: -7, 2: -6, 4: -4, 8: 0, 16: -8}
    """
    first = min(range(len(ladder)), key=lambda i: abs(ladder[i] - start))
    lowest, highest = max(first - steps, 0), min(first + steps, len(ladder) - 1)
    if known is None or ladder[first] != start:
        known = score(ladder[first])
    found = {first: known}
    low, high = max(first - 1, lowest), min(first + 1, highest)
    while True:
        for i in (low, high):
            if i not in found:
                found[i] = score(ladder[i])
        best = max(found.values())
        # what is equal to its neighbor gains nothing from going further
        if found[high] == best > found[max(high - 1, low)] and high < highest:
            high += 1
        elif found[low] == best > found[min(low + 1, high)] and low > lowest:
            low -= 1
        else:
            return {ladder[i]: found[i] for i in sorted(found)}


def best_of(found: dict[float, float]) -> float:
    """Return the value with the best score, the first of equals."""
    return max(found, key=lambda value: found[value])
