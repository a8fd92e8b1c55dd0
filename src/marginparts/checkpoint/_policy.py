"""Where a fit keeps its position, and how often."""

from __future__ import annotations

import os
from dataclasses import dataclass

from marginparts.validation import check_count, check_positive


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
