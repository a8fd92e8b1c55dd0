"""The C loop of `c_loop.c`, compiled on the spot and called from Python."""

from __future__ import annotations

import atexit
import ctypes
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

# No -ffast-math: gcc's start code would switch off denormal numbers in the whole process. The
# three flags of it that are here let the compiler reorder the sum of the dot product; with
# "omp simd reduction" in their place the loop takes up to twice as long.
_REORDER = ("-fassociative-math", "-fno-signed-zeros", "-fno-trapping-math")
_COMPILE = ("-O3", "-march=native", "-fopenmp", "-shared", "-fPIC", *_REORDER)

_TASKS = 256


@cache
def library(rank: int | None = None) -> ctypes.CDLL | None:
    """Compile the loop for any rank or for one, or say why there is none."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        print("There is no C compiler here: the C loop is skipped.")
        return None
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    source, built = Path(__file__).with_suffix(".c"), Path(folder) / "c_loop.so"
    known = [] if rank is None else [f"-DRANK={rank}"]
    command = [compiler, *_COMPILE, *known, str(source), "-o", str(built)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        print(f"The C loop did not compile and is skipped: {done.stderr.strip()}")
        return None
    loaded = ctypes.CDLL(str(built))
    integer, pointer = ctypes.c_int32, ctypes.c_void_p
    loaded.half_step.argtypes = [integer, *[pointer] * 8, integer]
    loaded.half_step.restype = None
    return loaded


def set_threads(n: int) -> None:
    """Choose the number of threads."""
    loop = library()
    if loop is not None:
        loop.set_threads(n)


class CMatrix:
    """A CSR matrix in float32, its rows cut into tasks of about equal numbers of nonzeros.

    Parameters
    ----------
    X : (n, d) CSR
    loop : CDLL
        What `library` returns.
    """

    def __init__(self, X: Any, loop: ctypes.CDLL) -> None:
        self.loop = loop
        self.shape = X.shape
        self.arrays = tuple(
            np.ascontiguousarray(array, dtype)
            for array, dtype in ((X.indptr, np.int32), (X.indices, np.int32), (X.data, np.float32))
        )
        cuts = np.searchsorted(X.indptr, np.linspace(0, X.nnz, _TASKS + 1)[1:-1])
        self.tasks = np.unique(np.concatenate([[0], cuts, [X.shape[0]]])).astype(np.int64)

    def half_step(self, A: np.ndarray, B: np.ndarray, den: np.ndarray, out: np.ndarray) -> None:
        """Write ``A * ((X / (A @ B.T)) @ B) / den`` to ``out``; all are C-ordered float32."""
        assert A.shape[1] <= self.loop.max_rank()
        inverse = (1 / den).astype(np.float32)
        arrays = (self.tasks, *self.arrays, A, B, inverse, out)
        addresses = [array.ctypes.data for array in arrays]
        self.loop.half_step(len(self.tasks) - 1, *addresses, A.shape[1])
