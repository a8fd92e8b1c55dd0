"""How good it is by now, what more labels would bring, and when to stop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from marginparts.labeling.learning import Beliefs, HeldOut

#: Labels of a step: what the last step changed says what the next may bring.
STEP = 20

#: How many labels ahead the advice looks, and how many back.
AHEAD, BACK = 100, 60

#: Below so many labels, and so many of them drawn at random, nothing is advised.
_ENOUGH, _RANDOM = 80, 20

#: The share of changed guesses that is gained, on average and at most, on the collections of
#: `benchmarks/labeling.py`: most changes are from one doubtful guess to another.
_GAINED, _KEPT = 0.2, 0.4

#: Stop when the labels ahead bring at most this.
_LITTLE = 0.01


class Estimate(NamedTuple):
    """The accuracy, its standard error, and the samples drawn at random that it comes from."""

    accuracy: float
    error: float
    n: int


def estimate(held: HeldOut, drawn: NDArray[np.bool_]) -> Estimate | None:
    """Return the accuracy on hidden labels of samples that were drawn at random, None for none."""
    right = held.right[drawn[held.rows]]
    n = len(right)
    if not n:
        return None
    smooth = (right.sum() + 1) / (n + 2)  # all right of a few is no proof
    return Estimate(float(right.mean()), float(np.sqrt(smooth * (1 - smooth) / (n + 2))), n)


class Gain(NamedTuple):
    """What the last step changed: the share of guesses, and the accuracy by the present beliefs.

    ``ahead`` is what a next step is expected to bring, by the share of changes that is usually
    gained.
    """

    changed: float
    behind: float
    ahead: float


def gain(before: Beliefs, now: Beliefs, n_labels: int, several: bool) -> Gain:
    """Compare with what was believed without the labels of the last step."""
    old = np.zeros_like(now.P)
    for k, name in enumerate(now.names):
        if name in before.names:
            old[:, k] = before.P[:, before.names.index(name)]
    if several:
        was, is_ = old >= 0.5, now.P >= 0.5
        changed = float((was != is_).any(axis=1).mean())
        behind = float((np.abs(2 * now.P - 1) * (was != is_)).sum(axis=1).clip(0, 1).mean())
    else:
        rows, was, is_ = np.arange(len(old)), old.argmax(axis=1), now.P.argmax(axis=1)
        changed = float((was != is_).mean())
        behind = float((now.P[rows, is_] - now.P[rows, was]).mean())
    return Gain(changed, behind, _expected(changed, n_labels))


def _expected(changed: float, n_labels: int) -> float:
    """Return the gain expected of a step, if the last one changed this many guesses."""
    return _GAINED * changed * n_labels / (n_labels + STEP)


class Measurement(NamedTuple):
    """What was measured after so many labels: the `Estimate`, and the `Gain` where it is known."""

    labeled: int
    accuracy: float | None = None
    error: float | None = None
    drawn: float | None = None
    changed: float | None = None
    behind: float | None = None


def most_ahead(measurements: Sequence[Measurement]) -> float | None:
    """Return how much the accuracy may still rise with the labels ahead; None with too few.

    A label can only help by changing guesses. The largest change of any step within the last `BACK`
    labels is taken for the next one, and changes fall with the number of labels, no faster.
    """
    if not measurements:
        return None
    now = measurements[-1].labeled
    recent = [each for each in measurements if now - BACK < each.labeled <= now]
    changes = {each.labeled: each.changed for each in recent if each.changed is not None}
    if not changes or max(changes) - min(changes) < BACK - STEP:
        return None
    falling = sum(now / (now + step) for step in range(0, AHEAD, STEP))
    return _KEPT * max(changes.values()) * falling


def enough(measurements: Sequence[Measurement]) -> bool:
    """Say whether more labels would bring little: less than a point, at most."""
    most = most_ahead(measurements)
    return (
        most is not None
        and most < _LITTLE
        and measurements[-1].labeled >= _ENOUGH
        and (measurements[-1].drawn or 0) >= _RANDOM
    )


class Advice(NamedTuple):
    """Whether to stop, in one sentence, and why, in some more."""

    stop: bool
    sentence: str
    reasons: list[str]


def advice(measurements: Sequence[Measurement], counts: dict[str, int]) -> Advice:
    """Say whether more labels are worth their time, by all measurements so far, the latest last."""
    most = most_ahead(measurements)
    now = measurements[-1] if measurements else Measurement(0)
    few = now.labeled < _ENOUGH or (now.drawn or 0) < _RANDOM
    if few or most is None or now.accuracy is None or now.error is None:
        left = max(_ENOUGH - now.labeled, 0)
        more = f"about {left} more labels" if left else "some more labels"
        return Advice(False, "Go on.", [f"It takes {more} to see how it goes."])
    reasons = [
        f"Another {AHEAD} labels would bring {100 * most:.1f} points at most, by how much the last "
        f"{BACK} changed the guesses.",
        f"The accuracy is {100 * now.accuracy:.0f} %, give or take {100 * now.error:.0f}.",
    ]
    if now.changed is not None:
        ahead = _expected(now.changed, now.labeled)
        reasons.insert(
            0,
            f"The last {STEP} labels changed the guess for {100 * now.changed:.1f} % of the "
            f"samples; another {STEP} are expected to bring {100 * ahead:.1f} points.",
        )
    rare = [name for name, count in counts.items() if 0 < count < 3]
    if rare:
        some = ", ".join(rare[:4]) + (", ..." if len(rare) > 4 else "")
        reasons.append(f"Labels with fewer than three examples are learned badly: {some}.")
    if enough(measurements):
        return Advice(True, "You can stop: more labels would bring less than a point.", reasons)
    return Advice(False, "Go on: more labels may still help.", reasons)


def as_shown(known: Estimate | None, what: Gain | None, said: Advice) -> dict[str, Any]:
    """Return all of it as plain values."""
    return {
        "estimate": None if known is None else known._asdict(),
        "gain": None if what is None else what._asdict(),
        "advice": said._asdict(),
    }
