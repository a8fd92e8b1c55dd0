"""Readers of the file formats in which the data sets are published."""

import bz2
import gzip
import io
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

#: What readers raise on a file that is cut short or is not in its format. gzip and bz2 raise
#: OSError, as a file that cannot be opened does.
UNREADABLE = (EOFError, KeyError, OSError, ValueError, zipfile.BadZipFile, zlib.error)


def open_bytes(path: Path) -> IO[bytes]:
    """Open a file that may be compressed (``.gz``, ``.bz2``)."""
    if path.suffix == ".gz":
        return cast(IO[bytes], gzip.open(path))
    return cast(IO[bytes], bz2.open(path)) if path.suffix == ".bz2" else path.open("rb")


def read_bytes(path: Path) -> bytes:
    """Return the content of a file that may be compressed."""
    with open_bytes(path) as file:
        return file.read()


def read_words(path: Path) -> NDArray[np.str_]:
    """Return the words of a list."""
    return np.array(read_bytes(path).decode("utf-8").split(), dtype=str)


def read_class_map(path: Path) -> NDArray[np.str_]:
    """Return the names of a file with lines ``name id``, where ids count from 1."""
    pairs = [line.split() for line in read_bytes(path).decode("utf-8").splitlines() if line.strip()]
    names = {int(number): name for name, number in pairs}
    return np.array([names[number] for number in range(1, len(pairs) + 1)], dtype=str)


def read_idx(path: Path) -> NDArray[np.uint8]:
    """Return the array of bytes in an idx file: two zeros, a type, the shape, the values."""
    content = read_bytes(path)
    if content[:3] != b"\x00\x00\x08":
        raise ValueError("it is no idx file of bytes")
    start = 4 * (1 + content[3])
    shape = tuple(int(size) for size in np.frombuffer(content[4:start], ">u4"))
    values = np.frombuffer(content, np.uint8, offset=start)
    if values.size != np.prod(shape):
        raise ValueError(f"it has {values.size} values and not those of the shape {shape}")
    return values.reshape(shape)


def read_npz(path: Path) -> Any:
    """Return a sparse matrix as canonical CSR in float32."""
    # NumPy leaves a file open that it has opened itself and cannot read
    with path.open("rb") as file:
        return _canonical(sp.load_npz(file))


def _canonical(X: Any) -> Any:
    """Return a matrix as CSR in float32, sorted, without duplicates and stored zeros."""
    X = sp.csr_array(X, dtype=np.float32)
    X.sum_duplicates()
    X.eliminate_zeros()
    return X


def read_npy(path: Path) -> NDArray[np.int64]:
    """Return an array of integers."""
    with path.open("rb") as file:
        return np.asarray(np.load(file), dtype=np.int64)


def read_multilabel_svmlight(path: Path, n_labels: int) -> tuple[Any, NDArray[np.int64]]:
    """Read lines ``label,label,... column:value ...``, with labels from 0 and columns from 1.

    Returns X (n, d), where d is the last column that occurs, and the indicator Y (n, n_labels). A
    line may have no label.
    """
    from sklearn.datasets import load_svmlight_file

    with open_bytes(path) as file:
        X, labels = load_svmlight_file(file, dtype=np.float32, multilabel=True, zero_based=False)
    rows = np.repeat(np.arange(len(labels)), [len(some) for some in labels])
    columns = np.array([label for some in labels for label in some])
    if columns.size and not np.isin(columns, np.arange(n_labels)).all():
        raise ValueError(f"it has labels other than 0 to {n_labels - 1}")
    Y = np.zeros((len(labels), n_labels), dtype=np.int64)
    Y[rows, columns.astype(np.intp)] = 1
    return _canonical(X), Y


def read_triples(text: bytes) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return documents, words (both from 0) and counts of lines ``document word count``."""
    triples = np.loadtxt(io.BytesIO(text), dtype=np.int64, ndmin=2)
    if triples.shape[1] != 3 or triples.min(initial=1) < 1:
        raise ValueError("its lines are not three positive numbers")
    return triples[:, 0] - 1, triples[:, 1] - 1, triples[:, 2]
