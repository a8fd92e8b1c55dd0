"""What fits into a memory limit."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

MIB = 1 << 20

_UNITS = {
    "": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
    "KIB": 1 << 10, "MIB": MIB, "GIB": 1 << 30, "TIB": 1 << 40,
}  # fmt: skip

#: Python, the libraries and the compiled kernels (measured: 320 MB, and 390 while they compile).
LIBRARIES = 400 * MIB

#: Bytes of a sample apart from its row of X and of H: its mass, length, number of nonzeros, label,
#: pointers into the file and into S, weight.
_PER_SAMPLE = 48

#: A block of X has so many bytes at least, and passes over the rest are made of such blocks.
_SMALLEST_BLOCK = MIB

#: Blocks in memory at a time. In a pass one is used and one is read. When the data is stored one is
#: as the file has it, one in order and one transposed, and the checks take some more.
_BLOCKS = 4

#: The rows of H that belong to a block should stay in the cache when V is updated, but a block
#: should have so many nonzeros for each row of V, for which there is a sum over blocks.
_CACHE, _WORTH = 8 * MIB, 16


def bytes_of(limit: int | str) -> int:
    """Return a number of bytes from ``"1.5GB"``, ``"800 MiB"`` or a number.

    Examples
    --------
    >>> bytes_of("1.5GB"), bytes_of("2 GiB"), bytes_of(1_000_000)
    (1500000000, 2147483648, 1000000)
    """
    if isinstance(limit, int | np.integer) and not isinstance(limit, bool) and limit > 0:
        return int(limit)
    found = re.fullmatch(
        r"\s*(\d+(?:\.\d*)?)\s*([a-zA-Z]*)\s*", limit if isinstance(limit, str) else ""
    )
    if found is None or found[2].upper() not in _UNITS or float(found[1]) <= 0:
        raise ValueError(
            f"memory_limit={limit!r} is no amount of memory; say '2GB', '800MB', '1.5GiB' or a "
            "number of bytes."
        )
    return int(float(found[1]) * _UNITS[found[2].upper()])


def shown(size: float) -> str:
    """Return a number of bytes for people, rounded up.

    Examples
    --------
    >>> shown(1_234_567_890), shown(2_000)
    ('1.24GB', '1MB')
    """
    if size >= 10**9:
        return f"{-(-size // 10**7) / 100:g}GB"
    return f"{max(-(-size // 10**6), 1):.0f}MB"


class Problem(NamedTuple):
    """What decides how much memory a fit takes."""

    shape: tuple[int, int]
    nnz: int
    itemsize: int  # bytes of a number
    r: int
    copies: int  # values of a factor that a run keeps: one, or three with extrapolation

    @property
    def row_of_factor(self) -> int:
        """Bytes of a row of a factor, which is filled up."""
        line = 64 if self.r * self.itemsize <= 256 else 256
        return -(-self.r * self.itemsize // line) * line

    @property
    def fixed(self) -> int:
        """What is in memory whatever the size of the blocks: libraries, V, a little per sample."""
        n, d = self.shape
        # beside its values: the numerator of a block, the sum of all in float64 and rounded
        V = d * self.row_of_factor * (self.copies + 2 + 8 // self.itemsize)
        return LIBRARIES + V + _PER_SAMPLE * n


class Plan(NamedTuple):
    """How a fit keeps within its limit."""

    block_bytes: int  # of a block of X at most
    block_rows: int
    file_bytes: int  # of what is read from the user's files at once
    gather_bytes: int  # of the rows that are taken out of X
    H_on_disk: bool


def smallest_limit(problem: Problem, largest_row: int) -> int:
    """Return the smallest limit that works, with a largest row of X of so many bytes."""
    H_rows = 3 * problem.row_of_factor
    return problem.fixed + _BLOCKS * max(_SMALLEST_BLOCK, largest_row, H_rows)


def planned(limit: int, problem: Problem, largest_row: int) -> Plan:
    """Share out the bytes of a limit; the largest row of X counts 0 where it is not known yet."""
    (n, d), r = problem.shape, problem.r
    smallest = smallest_limit(problem, largest_row)
    if limit < smallest:
        raise ValueError(
            f"memory_limit={shown(limit)} cannot hold V ({d} x {r}) and one row of X beside the "
            f"libraries; the smallest that works is {shown(smallest)}."
        )
    rest = limit - problem.fixed
    # at the end there is the result beside the last value
    H = n * problem.row_of_factor * max(problem.copies, 2)
    H_on_disk = rest // 2 < H
    block_bytes = (rest if H_on_disk else rest - H) // _BLOCKS
    nonzeros_a_row = max(problem.nnz / max(n, 1), 1)
    block_rows = max(_CACHE // problem.row_of_factor, int(_WORTH * d / nonzeros_a_row))
    if H_on_disk:
        block_rows = min(block_rows, block_bytes // (3 * problem.row_of_factor))
    return Plan(block_bytes, max(block_rows, 1), rest // 3, rest // 6, H_on_disk)
