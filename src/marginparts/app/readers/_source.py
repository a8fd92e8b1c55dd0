"""Find out what a file is by its name, and open it."""

import os
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from marginparts.app.readers._images import open_images
from marginparts.app.readers._matrices import open_h5ad, open_matrix
from marginparts.app.readers._svmlight import open_svmlight
from marginparts.app.readers._table_files import DelimitedFile, JSONLinesFile, ParquetFile
from marginparts.app.readers._tables import open_table
from marginparts.app.readers._vectors import with_vectors
from marginparts.files.atomic import FileProblemError, problems_with
from marginparts.files.layout import Batch, Label, Layout, SampleSource, Wanted
from marginparts.files.streams import check_encoding

_ENDINGS = {
    "csv": ".csv",
    "tsv": ".tsv .tab",
    "jsonl": ".jsonl .ndjson",
    "parquet": ".parquet .pq",
    "svmlight": ".svm .svmlight .libsvm",
    **{name: f".{name}" for name in ("npz", "npy", "mtx", "h5ad")},
}

#: The formats by the endings of files' names.
FORMATS = {ending: name for name, endings in _ENDINGS.items() for ending in endings.split()}

_SPREADSHEETS = {".xlsx", ".xlsm", ".xls", ".ods", ".numbers"}
_COMPRESSIBLE = {"csv", "tsv", "jsonl", "svmlight", "mtx"}


def open_source(
    path: str | os.PathLike[str],
    *,
    text: str | None = None,
    label: str | None = None,
    label_sep: str | None = None,
    labels: str | os.PathLike[str] | None = None,
    words: str | os.PathLike[str] | None = None,
    embeddings: str | os.PathLike[str] | None = None,
    encoding: str = "utf-8",
    gaps: bool | None = False,
    like: Layout | None = None,
) -> SampleSource:
    r"""Open a file, or a folder of images, to read samples and labels from it.

    Parameters
    ----------
    path : path
        The format is known by the ending: tables (``.csv .tsv .jsonl .parquet``), svmlight
        (``.svm .svmlight .libsvm``), matrices (``.npz .npy .mtx``), ``.h5ad``; or a folder of
        images. Text formats may end in ``.gz``.
    text : str or None
        The column of texts of a table. Without it, all columns but the label must be numbers.
    label : str or None
        The column of labels.
    label_sep : str or None
        What separates several labels in one cell.
    labels : path or None
        The labels of a matrix: one a line, or ``.npy``, or an indicator.
    words : path or None
        The names of a matrix's columns, one a line.
    embeddings : path or None
        An ``.npy`` array with a vector a sample, from any encoder.
    encoding : str
        Of text files.
    gaps : bool or None
        Whether empty cells and NaN of a matrix are values that are missing; None where that cannot
        be asked for, as beside vectors.
    like : Layout or None
        The layout of the file on which a model was fitted. What is not given is taken from it,
        the label column may be absent, and the columns must be those of the model.

    Returns
    -------
    SampleSource

    Raises
    ------
    FileProblemError
        With one sentence on what is wrong and what to do.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "mail.csv")
    ...     _ = file.write_text("body,kind\nhello,ham\nbuy now,\n")
    ...     source = open_source(file, text="body", label="kind")
    ...     batch = next(source.batches())
    >>> batch.samples, batch.labels
    (['hello', 'buy now'], ['ham', None])
    """
    path = Path(path)
    check_separator(label_sep)
    check_encoding(encoding)
    beside = {"labels": labels, "words": words}
    paths = {option: Path(file) for option, file in beside.items() if file is not None}
    for file in paths.values():
        _check_file(file)
    gaps = True if like is not None and like.gaps else gaps
    if embeddings is not None or (like is not None and like.vectors):
        gaps = gaps or None  # no model has both
    wanted = Wanted(text, label, label_sep, encoding=encoding, gaps=gaps, like=like, **paths)
    vectors = None if embeddings is None else Path(embeddings)
    if vectors is not None:
        _check_file(vectors)
    source = _opened(path, wanted)
    source.if_missing = wanted.if_missing
    return with_vectors(source, vectors, like)


def check_separator(label_sep: str | None) -> None:
    """Refuse to separate labels by nothing."""
    if label_sep == "":
        raise FileProblemError("The separator of labels is empty; say --label-sep ';' or the like.")


def _opened(path: Path, wanted: Wanted) -> SampleSource:
    """Open a file by its format."""
    file_format = _format_of(path)
    if file_format == "images":
        return open_images(path, wanted)
    _check_file(path)
    if file_format == "svmlight":
        return open_svmlight(path, wanted)
    if file_format == "h5ad":
        return open_h5ad(path, wanted)
    if file_format in {"npz", "npy", "mtx"}:
        return open_matrix(path, file_format, wanted)
    if file_format == "parquet":
        return open_table(ParquetFile(path), wanted)
    if file_format == "jsonl":
        return open_table(JSONLinesFile(path, wanted.encoding), wanted)
    delimiter = "\t" if file_format == "tsv" else None
    return open_table(DelimitedFile(path, wanted.encoding, delimiter), wanted)


def _format_of(path: Path) -> str:
    with problems_with(path, "read"):
        is_folder = path.is_dir()
        if not is_folder and not path.exists():
            raise FileProblemError(f"There is no file {path}.")
    compressed = path.suffix.lower() == ".gz"
    ending = Path(path.stem if compressed else path.name).suffix.lower()
    file_format = FORMATS.get(ending)
    if is_folder and file_format is None:
        return "images"
    if ending in _SPREADSHEETS:
        raise FileProblemError(f"{path} is a spreadsheet; save the sheet as .csv, and use that.")
    if ending == ".json":
        raise FileProblemError(
            f'{path} must have one JSON object a line, {{"column": value, ...}}, and a name that '
            "ends in .jsonl; write it so."
        )
    if file_format is None or (compressed and file_format not in _COMPRESSIBLE):
        raise FileProblemError(
            f"{path} is in no known format; its name must end in one of {' '.join(FORMATS)} (text "
            "formats and .mtx also with .gz behind), or be that of a folder of images."
        )
    return file_format


def _check_file(path: Path) -> None:
    """Raise unless there is a file that can be opened and holds something."""
    with problems_with(path, "read"):
        if path.is_dir():
            raise FileProblemError(f"{path} is a folder; give the name of a file.")
        if path.exists() and not path.is_file():
            # a pipe can be read once only, and files are read twice
            raise FileProblemError(f"{path} is no file on the disk; save it to one first.")
        with path.open("rb") as file:
            if not file.read(1):
                raise FileProblemError(f"{path} is empty; give a file with samples.")


def read_all(source: SampleSource, size: int = 10_000, *, keep_columns: bool = True) -> Batch:
    """Return all samples of a source as one batch, maybe without its columns to save memory."""
    samples: list[Any] = []
    labels: list[Label] = []
    columns: dict[str, list[Any]] = {}
    vectors = []
    for batch in source.batches(size):
        samples.append(batch.samples)
        labels += batch.labels
        vectors.append(batch.vectors)
        if keep_columns:
            for name, cells in batch.columns.items():
                columns.setdefault(name, []).extend(cells)
    joined: Any = samples[0]
    if isinstance(joined, list):
        joined = list(chain.from_iterable(samples))
    elif len(samples) > 1:
        joined = sp.vstack(samples, format="csr") if sp.issparse(joined) else np.vstack(samples)
    return Batch(joined, labels, columns, None if vectors[0] is None else np.vstack(vectors))
