"""Arrays of NumPy and SciPy (npy, npz); nothing is ever unpickled."""

import math
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp

from marginparts.files.atomic import FileProblemError
from marginparts.files.columns import listed
from marginparts.files.compressed import check_compressed, check_indices
from marginparts.files.streams import library_reads, opened

_PICKLED = (
    "holds pickled Python objects, which could run code when read; save arrays of numbers or "
    "strings."
)


#: So many rows or columns may be empty, whatever else is there; each takes memory.
_EMPTY = 2**26


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
        _check_sizes(file, path)
        arrays = np.load(file, allow_pickle=False)
        if "format" in arrays.files:
            return _sparse(arrays), None
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


def _check_sizes(file: IO[bytes], path: Path) -> None:
    """Refuse arrays that say to be larger than what is there, before memory is taken for them."""
    with zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            with archive.open(info) as member:
                shape, _, dtype = npy_header(member, path)
            if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize > info.file_size:
                raise ValueError("an array is cut short")
    file.seek(0)


def _sparse(arrays: Any) -> Any:
    """Return what `scipy.sparse.save_npz` has written, its structure checked before it is made."""
    kind, data = arrays["format"].item(), arrays["data"]
    kind = kind.decode() if isinstance(kind, bytes) else kind
    n, d = map(int, arrays["shape"])
    shape = n, d
    if min(shape) < 0 or max(shape) > _EMPTY + 10 * data.size:
        raise ValueError("all but all of its rows or columns are empty")
    if kind in ("csr", "csc"):
        parts = data, arrays["indices"], arrays["indptr"]
        check_compressed(*parts, shape, by_columns=kind == "csc")
        return (sp.csr_array if kind == "csr" else sp.csc_array)(parts, shape=shape)
    if kind == "coo":
        row, column = arrays["row"], arrays["col"]
        check_indices(row, shape[0])
        check_indices(column, shape[1])
        return sp.coo_array((data, (row, column)), shape=shape)
    if kind == "dia":
        return sp.dia_array((data, arrays["offsets"]), shape=shape)
    if kind == "bsr":
        high, wide = data.shape[1:]
        blocks = shape[0] // high, shape[1] // wide
        check_compressed(data, arrays["indices"], arrays["indptr"], blocks)
        return sp.bsr_array((data, arrays["indices"], arrays["indptr"]), shape=shape)
    raise ValueError("an unknown format")


def _member(arrays: Any, name: str, path: Path) -> Any:
    try:
        return arrays[name]
    except ValueError as error:
        # NumPy has no error of its own for this
        if "Object arrays" in str(error):
            raise FileProblemError(f"{path} {_PICKLED}") from error
        raise
