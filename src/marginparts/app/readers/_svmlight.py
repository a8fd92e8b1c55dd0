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
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginparts.app.readers._label_files import read_words
from marginparts.app.readers._labels import label_of, minus_one_is_unlabeled, names_of
from marginparts.files.atomic import FileProblemError
from marginparts.files.columns import check_entries, check_kind, refuse
from marginparts.files.layout import Batch, Label, Layout, Wanted
from marginparts.files.streams import opened

#: Pairs of a column and a value; possessive, so that 1:23:4 cannot be taken for 1:2 3:4.
_PAIRS = re.compile(rb"(?:\d++:[^\s:]++\s*+)*+")
_QUERY = re.compile(rb"\s*qid:\S+")
_LAST_COLUMN = 2**31 - 2


class _Lines(NamedTuple):
    """Some lines: where they are, their labels, and columns and values in turn."""

    numbers: list[int]
    labels: list[Label]
    starts: list[int]
    pairs: NDArray[np.float64]

    @property
    def columns(self) -> NDArray[np.int64]:
        return self.pairs[0::2].astype(np.int64)


@dataclass
class SvmlightSource:
    """An svmlight file, read some lines at a time.

    ``unlabeled`` are the labels that mark unlabeled rows.
    """

    path: Path
    layout: Layout
    n_rows: int | None
    unlabeled: frozenset[str]

    def batches(self, size: int = 10_000) -> Iterator[Batch]:
        """Yield all samples in order, at most ``size`` at once."""
        row = 1
        for lines in _read(self.path, size):
            labels = [None if label in self.unlabeled else label for label in lines.labels]
            n = len(labels)
            yield Batch(self._matrix(lines), labels, {"row": list(range(row, row + n))})
            row += n

    def _matrix(self, lines: _Lines) -> Any:
        base = 0 if self.layout.zero_based else 1
        n_columns = self.layout.n_columns or 0
        columns = lines.columns - base
        if (columns < 0).any() or (columns >= n_columns).any():
            raise FileProblemError(self._not_a_column(lines, columns, n_columns, base))
        shape = (len(lines.numbers), n_columns)
        X = sp.csr_array((lines.pairs[1::2], columns, np.array(lines.starts)), shape=shape)
        check_entries(X, self.path, lines.numbers, lambda j: str(j + base), "line")
        X.sort_indices()
        twice = np.flatnonzero(np.diff(X.indices) == 0) + 1
        if (twice := np.setdiff1d(twice, X.indptr)).size:
            row = int(np.searchsorted(X.indptr, twice[0], "right")) - 1
            raise FileProblemError(
                f"{self.path}, line {lines.numbers[row]}: column {X.indices[twice[0]] + base} is "
                "there twice; add up its values."
            )
        X.eliminate_zeros()
        return X

    def _not_a_column(
        self, lines: _Lines, columns: NDArray[np.int64], n_columns: int, base: int
    ) -> str:
        first = int(np.argmax((columns < 0) | (columns >= n_columns)))
        row = int(np.searchsorted(lines.starts, first, "right")) - 1
        return (
            f"{self.path}, line {lines.numbers[row]}: there is a column {columns[first] + base}, "
            f"and the columns here go from {base} to {n_columns - 1 + base}; give a file with the "
            "same columns."
        )


def open_svmlight(path: Path, wanted: Wanted) -> SvmlightSource:
    """Read an svmlight file once, to know its columns and what its labels mean."""
    like = wanted.like
    check_kind(path, "matrix", like)
    refuse(path, wanted, "text", "label", "labels", instead="its lines begin with their labels")
    names: set[str] = set()
    n_rows, smallest, largest = 0, _LAST_COLUMN, -1
    for lines in _read(path, 10_000):
        n_rows += len(lines.numbers)
        names |= names_of(lines.labels)
        columns = lines.columns
        smallest = int(columns.min(initial=smallest))
        largest = int(columns.max(initial=largest))
    if not n_rows:
        raise FileProblemError(f"{path} has no rows; write lines 'label column:value ...'.")
    zero_based = smallest == 0
    if like is not None and like.zero_based is not None:
        zero_based = like.zero_based
    if like is not None:
        layout = replace(like, label=None, zero_based=zero_based)
    else:
        n_columns = largest + 1 if zero_based else largest
        words = read_words(wanted.words, wanted.encoding) if wanted.words else None
        if words is not None:
            if len(words) < n_columns:
                raise FileProblemError(
                    f"{wanted.words} has {len(words)} names, and {path} has {n_columns} columns; "
                    "give one name a line for each."
                )
            n_columns = len(words)
        if n_columns < 1:
            raise FileProblemError(f"{path} has no 'column:value' in any line; add some.")
        layout = Layout("matrix", names=words, n_columns=n_columns, zero_based=zero_based)
    return SvmlightSource(path, layout, n_rows, _marks_of_unlabeled(names))


def _marks_of_unlabeled(names: set[str]) -> frozenset[str]:
    """Return the labels that mark unlabeled rows.

    SVM-light writes 0 beside -1 and 1, and where no label is known. 0 beside 1 alone are two
    classes. All else is the package's rule for -1.
    """
    if names == {"0"} or {"-1", "0"} <= names <= {"-1", "0", "1"}:
        return frozenset({"0"})
    return frozenset({"-1"} if minus_one_is_unlabeled(names) else ())


def _read(path: Path, size: int) -> Iterator[_Lines]:
    """Yield the lines that hold something, at most ``size`` at once."""
    numbers: list[int] = []
    labels: list[Label] = []
    starts = [0]
    pairs = array("d")
    with opened(path) as file:
        for number, line in enumerate(file, start=1):
            line = line.removeprefix(b"\xef\xbb\xbf").partition(b"#")[0].rstrip()
            if not line:
                continue
            try:
                label, features = _split(line)
                pairs.extend(map(float, features.replace(b":", b" ").split()))
            except ValueError as error:
                raise FileProblemError(_not_svmlight(path, number)) from error
            numbers.append(number)
            labels.append(label)
            starts.append(len(pairs) // 2)
            if len(numbers) == size:
                yield _checked(_Lines(numbers, labels, starts, np.array(pairs)), path)
                numbers, labels, starts, pairs = [], [], [0], array("d")
    if numbers:
        yield _checked(_Lines(numbers, labels, starts, np.array(pairs)), path)


def _checked(lines: _Lines, path: Path) -> _Lines:
    """Return the lines, or raise if a column is too far out for any matrix."""
    too_far = np.flatnonzero(lines.pairs[0::2] > _LAST_COLUMN)
    if too_far.size:
        row = int(np.searchsorted(lines.starts, too_far[0], "right")) - 1
        raise FileProblemError(_not_svmlight(path, lines.numbers[row]))
    return lines


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
    names = [label_of(float(name)) for name in field.split(b",") if name.strip()]
    if b"," in field:
        return tuple(name for name in names if isinstance(name, str)), features
    return (names[0] if names else None), features
