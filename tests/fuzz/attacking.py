"""What an attack is: cases drawn from a seed, and what must be true of every one of them."""

from __future__ import annotations

import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

#: Seconds of computing that a case may take. A kernel that is compiled for it counts once only.
SECONDS = 5.0

#: By how much the clock may run ahead of a case that computes, on a machine that others use, too.
BUSY = 4

#: One case: whether what was asked for worked; else it was refused with a sentence.
Attack = Callable[[np.random.Generator], bool]


@dataclass(frozen=True)
class Target:
    """Something to attack.

    Attributes
    ----------
    prepare : function of a folder
        Returns the attack, which may write into the folder.
    short : int
        Cases of the short form; 0 leaves a target to the long one.
    both : bool
        Whether the short form must see both outcomes.
    """

    prepare: Callable[[Path], Attack]
    short: int = 150
    both: bool = True


@dataclass
class Outcome:
    """What was seen in some cases."""

    counts: Counter[str] = field(default_factory=Counter)
    slowest: float = 0.0
    failures: list[tuple[int, str]] = field(default_factory=list)

    def add(self, case: int, found: str, seconds: float = 0.0, why: str = "") -> None:
        self.counts[found] += 1
        self.slowest = max(self.slowest, seconds)
        if found == "failed":
            self.failures.append((case, why))


def tried(attack: Attack, seed: int, case: int, outcome: Outcome) -> None:
    """Do one case. What takes too long is done again: then nothing is compiled any more.

    A process may be paused for minutes, but hardly three times in one case.
    """
    for _ in range(3):
        began, computed = time.perf_counter(), time.process_time()
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                found, why = attack(np.random.default_rng([seed, case])), ""
        except Exception as error:
            found, why = None, short_of(error)
        waited = time.perf_counter() - began
        seconds = max(time.process_time() - computed, waited / BUSY)
        if seconds < SECONDS:
            break
    if seconds >= SECONDS and not why:
        why = f"{seconds:.1f} s"
    outcome.add(case, "failed" if why else "worked" if found else "refused", seconds, why)


def short_of(error: BaseException) -> str:
    """Return an error and where it came from in one line."""
    frames = traceback.extract_tb(error.__traceback__)
    where = " < ".join(f"{Path(f.filename).name}:{f.lineno}" for f in reversed(frames[-6:]))
    return f"{type(error).__name__}: {str(error)[:600]} ({where})".replace("\n", " ")


def ran(target: Target, folder: Path, n: int, seed: int, first: int = 0) -> Outcome:
    """Do cases one after the other."""
    outcome, attack = Outcome(), target.prepare(folder)
    for case in range(first, first + n):
        tried(attack, seed, case, outcome)
    return outcome
