"""Fits that survive: where a fit is, kept in a file from which the same call goes on.

A `Checkpoint` says where and how often. A `Logbook` is the open checkpoint of one fit: it knows
which fit that is, gives back what was written, writes what it is offered when it is time, and hears
Ctrl-C and SIGTERM. It does not know what it writes: the position of a run, or the state of a race
between candidates. See ``docs/checkpoints.md``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from marginparts.checkpoint._fingerprint import told
from marginparts.checkpoint._interruption import Interruption
from marginparts.checkpoint._logbook import Checkpoint, Logbook
from marginparts.checkpoint._position import Notes

__all__ = ["Checkpoint", "Logbook", "Notes", "logbook_of"]


@contextmanager
def logbook_of(
    checkpoint: str | os.PathLike[str] | Checkpoint | None,
    who: str,
    seed: int,
    *,
    any_seed: bool = False,
    **fit: Any,
) -> Iterator[tuple[int, Logbook | None]]:
    """Open the checkpoint of a fit, and remove it when the fit is complete.

    Ctrl-C and SIGTERM are heard meanwhile: the fit then ends early but well, and the file stays.
    The fit is known by ``who`` does it, its seed, and the data and parameters on which its result
    depends; with ``any_seed`` the seed in the file is taken. Yields the seed and the logbook.
    """
    if checkpoint is None:
        yield seed, None
        return
    if not isinstance(checkpoint, Checkpoint):
        checkpoint = Checkpoint(checkpoint)
    whole = {"fit": who, **fit, "random_state": None if any_seed else seed}
    known = {name: told(value) for name, value in whole.items()}
    with Interruption() as interruption:
        logbook = Logbook(checkpoint, known, seed, interruption)
        yield logbook.seed, logbook
    logbook.close()
