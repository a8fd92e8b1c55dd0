"""How good it is by now, what more labels would bring, and when to stop."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from marginparts.labeling.learning import Beliefs, HeldOut

#: Labels of a step: what the last step changed says what the next may bring.
STEP = 20

#: Below so many labels, and so many of them drawn at random, nothing is advised.
_ENOUGH, _RANDOM = 60, 10

#: Stop when a step is expected to bring less than this, and the last changed the guesses for less
#: than this share of the samples; and less than these shares of what is still wrong.
_LITTLE, _CHANGED, _OF_WRONG = 0.004, 0.03, (0.06, 0.3)


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

    ``ahead`` is what a next step would bring if the error falls with the root of the labels.
    """

    changed: float
    behind: float
    ahead: float


def gain(before: Beliefs, now: Beliefs, n_labels: int, step: int, several: bool) -> Gain:
    """Compare with what was believed without the last ``step`` labels."""
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
    first, last = max(n_labels - step, 1), n_labels + STEP
    ratio = (n_labels**-0.5 - last**-0.5) / max(first**-0.5 - n_labels**-0.5, 1e-9)
    return Gain(changed, behind, behind * ratio)


class Advice(NamedTuple):
    """Whether to stop, in one sentence, and why, in some more."""

    stop: bool
    sentence: str
    reasons: list[str]


def advice(
    n_labels: int, known: Estimate | None, what: Gain | None, counts: dict[str, int]
) -> Advice:
    """Say whether more labels are worth their time."""
    if n_labels < _ENOUGH or known is None or known.n < _RANDOM or what is None:
        left = max(_ENOUGH - n_labels, 0)
        more = f"about {left} more labels" if left else "a few more that are drawn at random"
        return Advice(False, "Go on.", [f"It takes {more} to see how it goes."])
    reasons = [
        f"The last {STEP} labels changed the guess for {100 * what.changed:.1f} % of the samples.",
        f"Another {STEP} are expected to bring {100 * what.ahead:.1f} points.",
        f"The accuracy is {100 * known.accuracy:.0f} %, give or take {100 * known.error:.0f}.",
    ]
    rare = [name for name, count in counts.items() if 0 < count < 3]
    if rare:
        some = ", ".join(rare[:4]) + (", ..." if len(rare) > 4 else "")
        reasons.append(f"Labels with fewer than three examples are learned badly: {some}.")
    wrong = max(1 - known.accuracy, known.error)
    little, changed = min(_LITTLE, _OF_WRONG[0] * wrong), min(_CHANGED, _OF_WRONG[1] * wrong)
    if what.ahead < little and what.changed < changed:
        return Advice(True, "You can stop: more labels would bring little.", reasons)
    return Advice(False, "Go on: more labels still help.", reasons)


def as_shown(known: Estimate | None, what: Gain | None, said: Advice) -> dict[str, Any]:
    """Return all of it as plain values."""
    return {
        "estimate": None if known is None else known._asdict(),
        "gain": None if what is None else what._asdict(),
        "advice": said._asdict(),
    }
