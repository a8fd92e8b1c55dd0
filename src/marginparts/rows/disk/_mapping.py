"""Rows of a result from rows of data, a block at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

import numpy as np

from marginparts._types import Array, Data
from marginparts.files.atomic import written_beside
from marginparts.rows.disk._rows import RowBlocks


def mapped_by_blocks(
    X: RowBlocks | Data,
    function: Callable[[Data], Array],
    r: int,
    out: str | os.PathLike[str] | None = None,
) -> Array:
    """Apply a function from trusted rows (m, d) to rows (m, k) to all rows.

    It makes ``r`` columns on the way, which count for the memory limit. With an ``.npy`` file for
    ``out`` the result is never in memory as a whole, and a memory map of that file is returned.
    """
    blocks = X.blocks(X.plan(r, solver="mu")) if isinstance(X, RowBlocks) else (X,)
    found = map(function, blocks)
    if out is None:
        return _gathered(found, X.shape[0])
    _write(found, X.shape[0], Path(out))
    mapped: Array = np.load(out, mmap_mode="r")
    return mapped


def _gathered(found: Iterator[Array], n: int) -> Array:
    first = next(found)
    gathered = np.empty((n, first.shape[1]), first.dtype)
    place = 0
    for rows in chain([first], found):
        gathered[place : place + len(rows)] = rows
        place += len(rows)
    return gathered


def _write(found: Iterator[Array], n: int, path: Path) -> None:
    with written_beside(path) as file:
        for i, rows in enumerate(found):
            if i == 0:
                header = {
                    "descr": np.lib.format.dtype_to_descr(rows.dtype), "fortran_order": False,
                    "shape": (n, rows.shape[1]),
                }  # fmt: skip
                np.lib.format.write_array_header_1_0(file, header)
            file.write(np.ascontiguousarray(rows).data)
