"""Ctrl-C and SIGTERM as a request to stop, which work answers at a good moment."""

from __future__ import annotations

import signal
import threading
from collections.abc import Sequence
from types import FrameType
from typing import Any

from marginparts.files.atomic import leave


class Interruption:
    """Catches Ctrl-C and SIGTERM, so that work can stop at a good moment.

    After ``patience`` signals the next one ends the work at once; ``heard`` is the last of them, or
    None. Only the main thread receives signals, and one that is ignored stays ignored. A handler
    that was there before is called as well, unless it is Python's own. All are put back on exit.
    """

    def __init__(
        self, signals: Sequence[int] = (signal.SIGINT, signal.SIGTERM), patience: int = 1
    ) -> None:
        self.heard: int | None = None
        self._signals, self._patience, self._count = signals, patience, 0
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interruption:
        if threading.current_thread() is threading.main_thread():
            for number in self._signals:
                before = signal.getsignal(number)
                if before not in (None, signal.SIG_IGN):  # None: not set from Python
                    self._before[number] = before
                    signal.signal(number, self._hear)
        return self

    def __exit__(self, *error: Any) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def take(self) -> bool:
        """Whether a signal came since the last call; patience begins anew."""
        heard, self._count = self._count > 0, 0
        return heard

    def _hear(self, number: int, frame: FrameType | None) -> None:
        self._count, self.heard = self._count + 1, number
        before = self._before[number]
        if callable(before) and before not in (signal.default_int_handler, leave):
            before(number, frame)
        if self._count > self._patience:
            raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)
