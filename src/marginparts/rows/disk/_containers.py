"""Matrices in HDF5 files (h5ad among them) and Zarr stores, with h5py and zarr."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from marginparts.files.atomic import FileProblemError
from marginparts.files.columns import listed
from marginparts.files.hdf5 import check_hdf5
from marginparts.files.streams import library_reads, optional_library
from marginparts.rows.disk._sources import Source, csr_source, dense_source

_ARRAYS = ("data", "indices", "indptr")


def open_container(path: Path, group: str | None, n_features: int | None, what: str) -> Source:
    """Open the matrix of an HDF5 file or a Zarr store: ``what`` says which of the two it is."""
    opened = partial(_matrix, path, group, what)

    @contextmanager
    def arrays() -> Iterator[tuple[Any, Any]]:
        with opened() as again:
            yield again["data"], again["indices"]

    with opened() as node:
        if hasattr(node, "dtype"):
            return dense_source(path, node, opened)
        attributes = dict(node.attrs)
        _check_csr(path, node, attributes)
        indptr = node["indptr"][:]
        shape = _shape(path, node, attributes, len(indptr) - 1, n_features)
        return csr_source(path, shape, indptr, node["data"], node["indices"], arrays)


@contextmanager
def _matrix(path: Path, group: str | None, what: str) -> Iterator[Any]:
    """Open the group or array with the matrix: as asked, or the root, or ``X``."""
    with _opened(path, what) as root, library_reads(path, what):
        if group is None:
            group = "" if all(name in root for name in _ARRAYS) else "X"
        if group and group not in root:
            raise FileProblemError(
                f"{path} has no {group!r}; it has {listed(sorted(root)) or 'nothing'}: say group=."
            )
        yield root[group] if group else root


@contextmanager
def _opened(path: Path, what: str) -> Iterator[Any]:
    """Open the root group for reading."""
    if what == "Zarr store":
        zarr = optional_library("zarr", "zarr", path)
        with library_reads(path, what):
            root = zarr.open_group(str(path), mode="r")
        yield root
        return
    h5py = optional_library("h5py", "h5ad", path)
    check_hdf5(path)
    with library_reads(path, what):
        file = h5py.File(path, "r")
    with file:
        yield file


def _check_csr(path: Path, node: Any, attributes: dict[str, Any]) -> None:
    kind = attributes.get("encoding-type") or attributes.get("h5sparse_format") or "csr"
    if "csc" in str(kind):
        raise FileProblemError(
            f"{path} is stored by columns (CSC); save it as CSR, whose rows can be read apart."
        )
    if missing := [name for name in _ARRAYS if name not in node]:
        raise FileProblemError(
            f"{path} has no array {missing[0]!r} in its group, which a CSR matrix needs; say where "
            "the matrix is with group=."
        )


def _shape(
    path: Path, node: Any, attributes: dict[str, Any], n: int, n_features: int | None
) -> tuple[int, int]:
    if n_features is not None:
        return n, n_features
    found = attributes.get("shape", attributes.get("h5sparse_shape"))
    if found is None and "shape" in node:
        found = node["shape"][:]
    if found is None:
        raise FileProblemError(
            f"{path} does not say how many columns it has; say n_features= or save its shape."
        )
    return int(found[0]), int(found[1])
