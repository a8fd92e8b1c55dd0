"""Sparse matrices as text: lines ``label column:value column:value ... # comment``.

scikit-learn's reader serves for files that are known to be right (`marginparts.datasets`). Here
files are people's: they may be larger than memory, lines may lack a label, and what is wrong with
one is a sentence that names its line. None of that can be had from `load_svmlight_file`.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginparts.app.readers import _labels
from marginparts.files.atomic import FileProblemError
from marginparts.files.columns import check_entries, check_kind, refuse
from marginparts.files.layout import Batch, Label, Layout, SampleSource, Wanted
from marginparts.files.streams import opened

#: Pairs of a column and a value; possessive, so that 1:23:4 cannot be taken for 1:2 3:4.
_PAIRS = re.compile(rb"(?:\d++:[^\s:]++\s*+)*+")
_QUERY = re.compile(rb"\s*qid:\S+")
_LAST_COLUMN = 2**31 - 2


class _Lines(NamedTuple):
    """Some lines: their numbers and labels, where their entries begin, and these."""

    numbers: tuple[int, ...]
    labels: tuple[Label, ...]
    starts: NDArray[np.int64]
    columns: NDArray[np.float64]
    values: NDArray[np.float64]

    def number_of(self, entry: np.intp) -> int:
        """Return the number of the line that has an entry."""
        return self.numbers[int(np.searchsorted(self.starts, entry, "right")) - 1]


@dataclass
class SvmlightSource(SampleSource):
    """An svmlight file, read some lines at a time; ``unlabeled`` labels mark unlabeled rows."""

    unlabeled: frozenset[str]

    def batches(self, size: int = 10_000) -> Iterator[Batch]:
        row = 1
        for lines in _read(self.path, size):
            labels = [None if label in self.unlabeled else label for label in lines.labels]
            n = len(labels)
            yield Batch(self._matrix(lines), labels, {"row": list(range(row, row + n))})
            row += n

    def _matrix(self, lines: _Lines) -> Any:
        base = 0 if self.layout.zero_based else 1
        n_columns = self.layout.n_columns or 0
        columns = lines.columns.astype(np.int64) - base
        outside = np.flatnonzero((columns < 0) | (columns >= n_columns))
        if outside.size:
            raise FileProblemError(
                f"{self.path}, line {lines.number_of(outside[0])}: there is a column "
                f"{columns[outside[0]] + base}, and the columns here go from {base} to "
                f"{n_columns - 1 + base}; give a file with the same columns."
            )
        shape = (len(lines.numbers), n_columns)
        X = sp.csr_array((lines.values, columns, lines.starts), shape=shape)
        check_entries(X, self.path, lines.numbers, lambda j: str(j + base), "line",
                      self.layout.gaps, self.if_missing)  # fmt: skip
        X.sort_indices()
        twice = np.flatnonzero(np.diff(X.indices) == 0) + 1
        if (twice := np.setdiff1d(twice, X.indptr)).size:
            raise FileProblemError(
                f"{self.path}, line {lines.number_of(twice[0])}: column "
                f"{X.indices[twice[0]] + base} is there twice; add up its values."
            )
        X.eliminate_zeros()
        return X


def open_svmlight(path: Path, wanted: Wanted) -> SvmlightSource:
    """Read an svmlight file once, to know its columns and what its labels mean."""
    like = wanted.like
    check_kind(path, "matrix", like)
    refuse(path, wanted, "text", "label", "labels", instead="its lines begin with their labels")
    names: set[str] = set()
    n_rows, smallest, largest = 0, _LAST_COLUMN, -1
    for lines in _read(path, 10_000):
        n_rows += len(lines.numbers)
        names |= _labels.names_of(lines.labels)
        smallest = int(lines.columns.min(initial=smallest))
        largest = int(lines.columns.max(initial=largest))
    if not n_rows:
        raise FileProblemError(f"{path} has no rows; write lines 'label column:value ...'.")
    zero_based = smallest == 0
    if like is not None:
        zero_based = zero_based if like.zero_based is None else like.zero_based
        layout = replace(like, label=None, zero_based=zero_based)
    else:
        n_columns = largest + 1 if zero_based else largest
        words = _labels.read_words(wanted, path, n_columns, more=True)
        if words is not None:
            n_columns = len(words)
        if n_columns < 1:
            raise FileProblemError(f"{path} has no 'column:value' in any line; add some.")
        layout = Layout(
            "matrix",
            names=words,
            n_columns=n_columns,
            zero_based=zero_based,
            gaps=bool(wanted.gaps),
        )
    return SvmlightSource(path, layout, n_rows, _marks_of_unlabeled(names))


def _marks_of_unlabeled(names: set[str]) -> frozenset[str]:
    """Return the labels that mark unlabeled rows.

    SVM-light writes 0 beside -1 and 1, and where no label is known. 0 beside 1 alone are two
    classes. All else is the package's rule for -1.
    """
    if names == {"0"} or {"-1", "0"} <= names <= {"-1", "0", "1"}:
        return frozenset({"0"})
    return frozenset({"-1"} if _labels.minus_one_is_unlabeled(names) else ())


def _read(path: Path, size: int) -> Iterator[_Lines]:
    """Yield the lines that hold something, at most ``size`` at once."""
    records = _records(path)
    while some := list(islice(records, size)):
        numbers, labels, entries = zip(*some, strict=True)
        starts = np.cumsum([0, *(len(pairs) // 2 for pairs in entries)])
        pairs = np.concatenate(entries)
        lines = _Lines(numbers, labels, starts, pairs[0::2], pairs[1::2])
        too_far = np.flatnonzero(lines.columns > _LAST_COLUMN)  # for any matrix
        if too_far.size:
            raise FileProblemError(_not_svmlight(path, lines.number_of(too_far[0])))
        yield lines


def _records(path: Path) -> Iterator[tuple[int, Label, array[float]]]:
    """Yield the number, the label, and columns and values in turn of each line."""
    with opened(path) as file:
        for number, line in enumerate(file, start=1):
            line = line.removeprefix(b"\xef\xbb\xbf").partition(b"#")[0].rstrip()
            if not line:
                continue
            try:
                label, features = _split(line)
                pairs = array("d", map(float, features.replace(b":", b" ").split()))
            except ValueError as error:
                raise FileProblemError(_not_svmlight(path, number)) from error
            yield number, label, pairs


def _not_svmlight(path: Path, number: int) -> str:
    return (
        f"{path}, line {number} cannot be read; write 'label column:value column:value ...', with "
        "numbers only."
    )


def _split(line: bytes) -> tuple[Label, bytes]:
    """Return the label and the pairs of a line."""
    field = b"" if line[:1].isspace() else line.split(maxsplit=1)[0]
    if b":" in field:
        field = b""
    features = line[len(field) :]
    if query := _QUERY.match(features):
        features = features[query.end() :]
    features = features.lstrip()
    if not _PAIRS.fullmatch(features):
        raise ValueError("there is something else than pairs")
    names = [_labels.label_of(float(name)) for name in field.split(b",") if name.strip()]
    if b"," in field:
        return tuple(name for name in names if isinstance(name, str)), features
    return (names[0] if names else None), features
