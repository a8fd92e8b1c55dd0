"""Matrix Market files (mtx).

They are read here and not by `scipy.io.mmread`, which is faster, but on some broken files ends the
interpreter (seen with SciPy 1.17).
"""

from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginparts.files.atomic import FileProblemError
from marginparts.files.streams import library_reads, opened


def read_mtx(path: Path) -> Any:
    """Return the matrix of a file, plain or ``.gz``: a COO array, or an array if stored dense."""
    with opened(path) as file, library_reads(path, "Matrix Market file"):
        banner = file.readline(200).decode("ascii").lower().split()
        if len(banner) != 5 or banner[:2] != ["%%matrixmarket", "matrix"]:
            raise ValueError("the first line is no banner")
        storage, field, symmetry = banner[2:]
        known = field in {"real", "integer", "pattern", "double"}
        if not known or symmetry not in {"general", "symmetric"}:
            raise FileProblemError(
                f"{path} holds a {symmetry} matrix of {field} entries; save a general one of real "
                "numbers."
            )
        content = (line for line in file if line.strip() and not line.startswith(b"%"))
        sizes = [int(number) for number in next(content, b"").split()]
        if storage == "array":
            return _dense(file, sizes, symmetry == "symmetric")
        if storage != "coordinate":
            raise ValueError("it is stored in no known way")
        return _sparse(file, sizes, field == "pattern", symmetry == "symmetric")


def _numbers(file: IO[bytes], width: int) -> NDArray[np.float64]:
    """Return the rest of a file (m, width)."""
    numbers = np.loadtxt(file, comments="%", ndmin=2)
    if numbers.size == 0:
        return np.empty((0, width))
    if numbers.shape[1] != width:
        raise ValueError(f"the lines have {numbers.shape[1]} numbers")
    return numbers


def _dense(file: IO[bytes], sizes: list[int], symmetric: bool) -> NDArray[np.float64]:
    n_rows, n_columns = sizes
    values = _numbers(file, 1)[:, 0]
    if not symmetric:
        # the format goes down the columns
        return values.reshape((n_columns, n_rows)).T
    # only the part on and below the diagonal is there, again column after column
    columns, rows = np.triu_indices(n_rows)
    if n_rows != n_columns or len(values) != len(rows):
        raise ValueError("there are more or fewer entries than it says")
    X = np.empty((n_rows, n_rows))
    X[rows, columns] = X[columns, rows] = values
    return X


def _sparse(file: IO[bytes], sizes: list[int], pattern: bool, symmetric: bool) -> Any:
    n_rows, n_columns, n_entries = sizes
    entries = _numbers(file, 2 if pattern else 3)
    places = entries[:, :2].astype(np.int64)
    if (
        len(entries) != n_entries
        or (places != entries[:, :2]).any()
        or (places < 1).any()
        or (places > (n_rows, n_columns)).any()
    ):
        raise ValueError("there are other entries than it says")
    rows, columns = places.T - 1
    values = np.ones(len(entries)) if pattern else entries[:, 2]
    if symmetric:
        below = rows != columns
        rows, columns = np.r_[rows, columns[below]], np.r_[columns, rows[below]]
        values = np.r_[values, values[below]]
    return sp.coo_array((values, (rows, columns)), shape=(n_rows, n_columns))
