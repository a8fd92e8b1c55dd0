"""Arrays of NumPy and SciPy (npy, npz); nothing is ever unpickled."""

import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp

from marginparts.files.atomic import FileProblemError
from marginparts.files.columns import listed
from marginparts.files.streams import library_reads, opened

_PICKLED = (
    "holds pickled Python objects, which could run code when read; save arrays of numbers or "
    "strings."
)


def read_array(path: Path) -> Any:
    """Return the only array of an ``.npy`` or ``.npz`` file, dense or sparse."""
    return read_npy(path) if path.suffix.lower() == ".npy" else read_npz(path)[0]


def read_npy(path: Path) -> Any:
    """Return an array that stays on the disk until its rows are asked for."""
    with opened(path) as file, library_reads(path, "npy file"):
        npy_header(file, path)
        return np.lib.format.open_memmap(path, mode="r")


def npy_header(file: IO[bytes], path: Path) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return shape, whether it is stored by columns, and type of an array; refuse objects."""
    first = np.lib.format.read_magic(file) == (1, 0)
    npy = np.lib.format
    found = npy.read_array_header_1_0(file) if first else npy.read_array_header_2_0(file)
    if found[2].hasobject:
        raise FileProblemError(f"{path} {_PICKLED}")
    return found


def read_npz(path: Path) -> tuple[Any, Any]:
    """Return the matrix of an ``.npz`` file, and the array ``y`` beside it or None.

    The matrix is what `scipy.sparse.save_npz` has written, or the array ``X``, or the only one.
    """
    # NumPy would leave a file open that it has opened itself and cannot read
    with opened(path) as file, library_reads(path, "npz file"):
        if not zipfile.is_zipfile(file):
            raise ValueError("an npz file is a zip file")
        file.seek(0)
        arrays = np.load(file, allow_pickle=False)
        if "format" in arrays.files:
            file.seek(0)
            X = sp.load_npz(file)
            if X.format in {"csr", "csc", "bsr"}:
                X.check_format(full_check=True)  # wrong indices crash the interpreter
            return X, None
        others = [name for name in arrays.files if name != "y"]
        name = "X" if "X" in others else others[0] if len(others) == 1 else None
        if name is None and arrays.files == ["y"]:
            name = "y"
        if name is None:
            raise FileProblemError(
                f"{path} has the arrays {listed(arrays.files)}; name the matrix X."
                if arrays.files
                else f"{path} has no arrays; save one named X."
            )
        y = _member(arrays, "y", path) if "y" in arrays.files and name != "y" else None
        return _member(arrays, name, path), y


def _member(arrays: Any, name: str, path: Path) -> Any:
    try:
        return arrays[name]
    except ValueError as error:
        # NumPy has no error of its own for this
        if "Object arrays" in str(error):
            raise FileProblemError(f"{path} {_PICKLED}") from error
        raise
