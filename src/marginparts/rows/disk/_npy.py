"""Arrays in ``.npy`` files, read a piece at a time.

Not by a memory map: pages of it count as the process's own memory for as long as it is open.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from marginparts.files.arrays import npy_header
from marginparts.files.atomic import FileProblemError
from marginparts.files.streams import library_reads, opened


class NpyFile:
    """An array on disk whose rows are read when they are asked for.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with opened(path) as file, library_reads(path, "npy file"):
            self.shape, by_columns, self.dtype = npy_header(file, path)
            self.offset = file.tell()
            size = file.seek(0, 2)
        if by_columns and len(self.shape) > 1:
            raise FileProblemError(
                f"{path} is stored by columns; save np.ascontiguousarray of it, which has rows."
            )
        if size < self.offset + int(np.prod(self.shape)) * self.dtype.itemsize:
            raise FileProblemError(f"{path} is cut short; write or fetch it again.")

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, rows: slice) -> Any:
        first, last, _ = rows.indices(len(self))
        row = int(np.prod(self.shape[1:]))
        with library_reads(self.path, "npy file"):
            found = np.fromfile(
                self.path, self.dtype, max(last - first, 0) * row,
                offset=self.offset + first * row * self.dtype.itemsize,
            )  # fmt: skip
            return found.reshape(-1, *self.shape[1:])
