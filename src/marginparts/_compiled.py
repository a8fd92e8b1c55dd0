"""Compilation of the loops that must be fast, kept on disk for the next process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba import config, get_num_threads, njit, set_num_threads

#: Sums may be reordered into vector lanes, but NaN and infinity keep their meaning. Not "arcp":
#: with it a loop just compiled and the same one from the cache can differ in their last bits.
FAST_SUMS = {"reassoc", "contract", "nsz"}

#: Sums are done in the order written; only a product and a sum may become one instruction.
IN_ORDER = {"contract"}


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
    """Let compiled loops use so many cores, or all of them where there are fewer."""
    before = get_num_threads()
    most: int = config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]
    set_num_threads(max(1, min(n, most)))
    try:
        yield
    finally:
        set_num_threads(before)
