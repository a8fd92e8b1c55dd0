"""Where a fit keeps its position and how often, and the open checkpoint of one fit."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from marginparts._types import Array
from marginparts.checkpoint._file import KIND, Content, read_checkpoint, write_checkpoint
from marginparts.checkpoint._fingerprint import differences
from marginparts.checkpoint._interruption import Interruption
from marginparts.checkpoint._position import Notes, Shapes, check_notes, noted, position_of
from marginparts.files.archive import damage
from marginparts.files.atomic import FileProblemError, check_destination, remove_leftovers
from marginparts.files.invariants import InvariantError
from marginparts.solve.loop import Keeper, Position
from marginparts.validation import check_count, check_positive

#: Writing may take one second in so many.
_SHARE = 20

#: Iterations that an interrupted run still does: fewer make poor parts.
_AT_LEAST = 10


@dataclass(frozen=True)
class Checkpoint:
    """Where a fit keeps its position, and how often.

    Parameters
    ----------
    path : path
        The file. Its folder must exist.
    every_seconds : float or None
        Seconds between checkpoints; more where writing would take a twentieth of the time.
    every_iterations : int or None
        Write after so many iterations, too.
    keep_finished : bool
        A completed fit removes its checkpoint. With ``keep_finished`` it stays, and the same call
        ends at once with the same result.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from marginparts import Checkpoint, nmf_alpha
    >>> X = np.random.default_rng(0).random((20, 10))
    >>> path = os.path.join(tempfile.mkdtemp(), "fit.ckpt")
    >>> seen = []
    >>> def watch(progress):
    ...     seen.append(os.path.exists(path))
    >>> result = nmf_alpha(
    ...     X, 3, random_state=0, callback=watch, checkpoint=Checkpoint(path, every_iterations=5)
    ... )
    >>> seen[-1], os.path.exists(path)  # there while the fit ran, and removed when it was complete
    (True, False)
    """

    path: str | os.PathLike[str]
    every_seconds: float | None = 30.0
    every_iterations: int | None = None
    keep_finished: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.path, str | os.PathLike):
            raise ValueError(f"checkpoint={self.path!r} must be a path or a Checkpoint.")
        if self.every_seconds is not None:
            check_positive(self.every_seconds, "every_seconds")
        if self.every_iterations is not None:
            check_count(self.every_iterations, "every_iterations")


class Logbook:
    """The open checkpoint of one fit: it recalls what was written, and writes when it is time.

    ``fit`` tells this fit from others, as JSON has it; notes of another fit are refused. Where any
    seed will do (``fit`` names none), the one of the notes is taken.
    """

    def __init__(
        self, checkpoint: Checkpoint, fit: dict[str, Any], seed: int, interruption: Interruption
    ) -> None:
        self.checkpoint, self.path, self.fit = checkpoint, Path(checkpoint.path), fit
        self.seed = seed
        self.interruption = interruption
        self.cut_short = False
        self._settled: dict[str, Notes] = {}
        self._noted: dict[str, Notes] = {}
        self._closed = self._secured = self._complained = False
        self._iterations, self._last, self._cost = 0, time.monotonic(), 0.0
        check_destination(self.path)
        remove_leftovers(self.path)
        if self.path.exists():
            content = read_checkpoint(self.path)
            self.check(content.fit, fit)
            self.seed, self._noted = content.seed, content.notes

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C or SIGTERM was heard."""
        return self.interruption.heard is not None

    def check(self, there: dict[str, Any], here: dict[str, Any]) -> None:
        """Refuse the notes of another fit, and name what is different."""
        if found := differences(there, here):
            raise FileProblemError(
                f"{self.path} belongs to another fit, with {' and '.join(found)}; delete it to "
                "start anew, or give another file."
            )

    def recall(self, name: str) -> Notes | None:
        """Return the notes of a name, once; None where there are none."""
        return self._noted.pop(name, None)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Turn what is wrong with notes into a sentence that names the file and the field."""
        with damage(self.path, "its notes do not fit together", KIND):
            try:
                yield
            except InvariantError as error:
                raise FileProblemError(
                    f"{self.path} is damaged or not a checkpoint of this fit: {error}."
                ) from error

    def settle(self, name: str, notes: Notes) -> None:
        """Put notes that will not change any more into every further checkpoint."""
        self._settled[name] = notes

    def offer(self, name: str, make: Callable[[], Notes], *, finished: bool = False) -> bool:
        """Write a checkpoint if it is time; say whether the fit is to end.

        ``name`` says what the notes are of, ``make`` makes them, and ``finished`` says that there
        is nothing left to do.
        """
        urgent = self.interrupted and not self._secured
        wanted = self.checkpoint.keep_finished if finished else self._due()
        if (urgent or wanted) and not self._closed:
            self._write(Content(self.fit, self.seed, {**self._settled, name: make()}))
        return self.interrupted

    def break_off(self) -> None:
        """Write no more: the fit ends early, and the same call resumes from what was written."""
        self.cut_short = self._closed = True

    def keeper(
        self,
        run: dict[str, Any],
        shapes: Shapes,
        release: Callable[[Any], Array] = lambda factor: factor,
        factor: Callable[[Array, str], Any] = lambda array, block: array,
        signed: Collection[str] = (),
    ) -> Keeper:
        """Return what keeps the position of the fit's last run.

        ``run`` tells this run from others, as JSON has it; ``shapes`` are those of its factors by
        their letter. ``release`` makes an array (n, r) of a factor, ``factor`` a factor of an array
        and its letter; ``signed`` factors have entries of either sign.
        """
        return _RunKeeper(self, run, shapes, release, factor, signed)

    def close(self) -> None:
        """End a fit that came to its end: remove the file, or say why it stays."""
        if self.interrupted:
            goes_on = f"; the same call goes on from {self.path}" if self.path.exists() else ""
            early = "ended early" if self.cut_short else "had all but ended"
            warnings.warn(
                f"Interrupted: the fit {early}, and the model is what it had found{goes_on}.",
                UserWarning,
                stacklevel=4,
            )
        elif not self.checkpoint.keep_finished:
            self.path.unlink(missing_ok=True)

    def _due(self) -> bool:
        """Count an iteration, and say whether it is time for a checkpoint."""
        self._iterations += 1
        iterations, seconds = self.checkpoint.every_iterations, self.checkpoint.every_seconds
        if iterations is not None and self._iterations >= iterations:
            return True
        gone = time.monotonic() - self._last
        return seconds is not None and gone >= max(seconds, _SHARE * self._cost)

    def _write(self, content: Content) -> None:
        """Write a checkpoint; a full disk is worth a warning, and not the fit."""
        began = time.monotonic()
        try:
            write_checkpoint(self.path, content)
            self._secured = self.interrupted
        except FileProblemError as error:
            if not self._complained:
                said = str(error).removesuffix(".")
                warnings.warn(
                    f"{said}; the fit goes on, and tries again later.", UserWarning, stacklevel=2
                )
            self._complained = True
        self._last, self._iterations = time.monotonic(), 0
        self._cost = self._last - began


@dataclass
class _RunKeeper:
    """Keeps the position of one run in a logbook."""

    logbook: Logbook
    run: dict[str, Any]
    shapes: Shapes
    release: Callable[[Any], Array]
    factor: Callable[[Array, str], Any]
    signed: Collection[str]

    def resume(self) -> Position | None:
        notes = self.logbook.recall("run")
        if notes is None:
            return None
        with self.logbook.reading():
            self.logbook.check(dict(notes.tree["run"]), self.run)
            check_notes(notes, self.shapes, self.signed)
            return position_of(notes, self.factor)

    def offer(self, position: Position) -> bool:
        def make() -> Notes:
            notes = noted(position, self.release)
            return notes._replace(tree={**notes.tree, "run": self.run})

        finished = position.stop is not None
        interrupted = self.logbook.offer("run", make, finished=finished)
        ends = interrupted and not finished and position.iteration >= _AT_LEAST
        self.logbook.cut_short |= ends
        return ends
