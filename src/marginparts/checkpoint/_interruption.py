"""Ctrl-C and SIGTERM as a wish to end, which is heard when it suits."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interruption:
    """Hears the first Ctrl-C or SIGTERM; the second one ends the work at once.

    Only the main thread can hear signals, and one that is ignored stays so. A handler that was
    there before is called as well, unless it is Python's own. All are put back on exit.
    """

    def __init__(self) -> None:
        self.heard: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interruption:
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                before = signal.getsignal(number)
                if before not in (None, signal.SIG_IGN):  # None: not set from Python
                    self._before[number] = before
                    signal.signal(number, self._hear)
        return self

    def __exit__(self, *error: Any) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        again, self.heard = self.heard is not None, number
        before = self._before[number]
        if callable(before) and before is not signal.default_int_handler:
            before(number, frame)
        if again:
            raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)
