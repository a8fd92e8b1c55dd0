"""Compilation of the loops that must be fast, kept on disk for the next process."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from numba import config, get_num_threads, njit, set_num_threads, threading_layer

#: Sums may be reordered into vector lanes, but NaN and infinity keep their meaning. Not "arcp":
#: with it a loop just compiled and the same one from the cache can differ in their last bits.
FAST_SUMS = {"reassoc", "contract", "nsz"}

#: Sums are done in the order written; only a product and a sum may become one instruction.
IN_ORDER = {"contract"}


class _Fork:
    """Whether this process was forked from one whose threads it does not have."""

    happened = False

    @classmethod
    def note(cls) -> None:
        """Remember, in the child, that it was forked: GNU OpenMP would abort it."""
        with suppress(ValueError):  # no threads yet
            cls.happened = threading_layer() == "omp"


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_Fork.note)


def check_threads() -> None:
    """Refuse to start loops on threads that did not survive a fork."""
    if _Fork.happened:
        raise RuntimeError(
            "This process was forked from one that had already fitted, and its threads cannot be "
            "used here; start processes with 'spawn' or 'forkserver' (joblib: 'loky'), or set "
            "NUMBA_THREADING_LAYER=workqueue."
        )


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function with numba on its first call, without the GIL, and cache the result.

    Where no folder can be written to (a read-only container), it is compiled in every process.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        try:
            return njit(cache=True, nogil=True, **options)(function)
        except RuntimeError:
            return njit(nogil=True, **options)(function)

    return decorate


@contextmanager
def cores(n: int) -> Iterator[None]:
    """Let compiled loops use n cores, or all of them where there are fewer."""
    before = get_num_threads()
    most: int = config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]
    set_num_threads(max(1, min(n, most)))
    try:
        yield
    finally:
        set_num_threads(before)
