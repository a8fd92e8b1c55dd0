"""Vectors of an encoder beside the samples of a file: an ``.npy`` array, one row a sample."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from marginparts._types import Array
from marginparts.files.arrays import read_npy
from marginparts.files.atomic import FileProblemError
from marginparts.files.layout import Batch, Layout, SampleSource
from marginparts.weighting import in_own_units


@dataclass
class SourceWithVectors(SampleSource):
    """A source whose batches have vectors, which stay on the disk until their rows are read."""

    source: SampleSource
    vectors: Any
    beside: Path

    def batches(self, size: int = 10_000) -> Iterator[Batch]:
        last, n = 0, len(self.vectors)
        for batch in self.source.batches(size):
            first, last = last, last + len(batch.labels)
            if last <= n:
                yield batch._replace(vectors=self._rows(first, last))
        if last != n:
            raise _other_number(self.beside, n, self.path, last)

    def _rows(self, first: int, last: int) -> Array:
        rows = np.asarray(self.vectors[first:last])
        finite = np.isfinite(rows).all(axis=1)
        if not finite.all():
            raise FileProblemError(
                f"{self.beside}, row {first + int(finite.argmin()) + 1}: a vector must have finite "
                "numbers only."
            )
        return in_own_units(rows)


def with_vectors(source: SampleSource, beside: Path | None, like: Layout | None) -> SampleSource:
    """Put the vectors of a file beside a source, or say why they do not go with it."""
    wanted = 0 if like is None else like.vectors
    if beside is None:
        if wanted and like is not None and like.encoder is None:
            raise FileProblemError(
                f"The model was fitted with vectors of {wanted} numbers beside the samples; give "
                f"those of {source.path} with --embeddings FILE."
            )
        encoder = None if like is None else like.encoder
        source.layout = replace(source.layout, vectors=wanted, encoder=encoder)
        return source
    if like is not None and not wanted:
        raise FileProblemError("The model was fitted without vectors; leave out --embeddings.")
    vectors = _read(beside)
    n, k = vectors.shape
    if wanted not in (0, k):
        raise FileProblemError(
            f"{beside} has vectors of {k} numbers, and the model was fitted with {wanted}; use the "
            "same encoder."
        )
    if source.n_rows not in (None, n):
        raise _other_number(beside, n, source.path, source.n_rows)
    layout = replace(source.layout, vectors=k, encoder=None if like is None else like.encoder)
    return SourceWithVectors(source.path, layout, source.n_rows or n, source, vectors, beside)


def _read(path: Path) -> Any:
    if path.suffix.lower() != ".npy":
        raise FileProblemError(
            f"{path} is no .npy file; write the vectors with numpy.save, one row a sample."
        )
    vectors = read_npy(path)
    if vectors.ndim != 2 or 0 in vectors.shape or vectors.dtype.kind not in "iuf":
        raise FileProblemError(
            f"{path} has {vectors.dtype} entries in the shape {vectors.shape}; save numbers with "
            "one row a sample."
        )
    return vectors


def _other_number(beside: Path, n: int, path: Path, rows: int | None) -> FileProblemError:
    return FileProblemError(
        f"{beside} has {n} vectors, and {path} has {rows} rows; give one a row."
    )
