"""The samples to choose from: as people see them, as a matrix, and under names that last."""

from __future__ import annotations

import hashlib
import os
import re
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginparts._types import Array, Data
from marginparts.app import preparation
from marginparts.app.explanation import flat, picture
from marginparts.app.fitting import Options, Prepared, matrix_of
from marginparts.app.model import natural
from marginparts.app.options import check_missing
from marginparts.app.preparation import Preparation, as_counted
from marginparts.app.readers import Batch, Label, Layout, open_source, read_all, settle_minus_one
from marginparts.estimators import NMFAlpha
from marginparts.validation import check_matrix

#: Letters of a text that are shown, words that count (as they are counted), rows of a table.
_SHOWN, _WORD, _ROWS = 20_000, re.compile(r"(?u)\b\w\w+\b"), 40

#: Parts, at most, that fill gaps.
_FILLING = 16


@dataclass
class Pool:
    """Samples, their rows of a matrix, and the labels that were in the file.

    Attributes
    ----------
    samples : list of n str, or (n, d) matrix
    X : (n, d) array or CSR array
        As it is factorized.
    labels : list of n Label
    columns : dict of str to list of n cells
    layout, preparation
        How the file is read, and the matrix made.
    source : Path or None
    gappy : (n, d) array or CSR array or None
        X with NaN where values are missing, for the model; in X the parts have filled these in.
    """

    samples: Any
    X: Data
    labels: list[Label]
    columns: dict[str, list[Any]]
    layout: Layout
    preparation: Preparation
    source: Path | None = None
    gappy: Data | None = None
    ids: list[str] = field(init=False)

    def __post_init__(self) -> None:
        self.ids = _names(self.samples)
        self.rows = {name: k for k, name in enumerate(self.ids)}

    @classmethod
    def read(cls, path: str | os.PathLike[str], options: Options | None = None, **how: Any) -> Pool:
        """Read a file; ``how`` is what `marginparts.app.readers.open_source` takes."""
        options = options or Options()
        source = open_source(path, gaps=options.missing is not None, **how)
        if source.layout.gaps:  # of a model, perhaps
            options = options._replace(missing=options.missing or "nan")
        check_missing(options, source)
        batch = read_all(source)
        made, X = matrix_of(batch, source, options)
        gappy, whole = (X, _filled(X)) if options.missing else (None, X)
        labels, layout = settle_minus_one(batch.labels), source.layout
        return cls(batch.samples, whole, labels, batch.columns, layout, made, source.path, gappy)

    @classmethod
    def of(cls, samples: Any, names: Sequence[str] | None = None) -> Pool:
        """Take texts, or the rows of a nonnegative matrix whose columns may have names."""
        made: Preparation
        if isinstance(samples, str):
            raise ValueError("Labeling takes a list of texts; put the text into a list.")
        if isinstance(samples, list | tuple) and all(isinstance(each, str) for each in samples):
            samples = list(samples)
            made, X = preparation.prepare_texts(samples)
            layout = Layout("text", text="text")
            columns = {"text": samples}
        else:
            samples = check_matrix(samples, "Labeling")
            made, X = preparation.prepare_matrix(samples, names)
            columns = {"row": list(range(1, X.shape[0] + 1))}
            shown = None if names is None else tuple(names)
            layout = Layout("matrix", names=shown, n_columns=X.shape[1])
        return cls(samples, X, [None] * X.shape[0], columns, layout, made)

    @property
    def given(self) -> dict[str, tuple[str, ...]]:
        """The labels in the file, by sample."""
        pairs = zip(self.ids, self.labels, strict=True)
        return {k: (v,) if isinstance(v, str) else v for k, v in pairs if v is not None}

    @property
    def given_names(self) -> list[str]:
        """The names of these, as people sort them."""
        return sorted({name for labels in self.given.values() for name in labels}, key=natural)

    @cached_property
    def full(self) -> NDArray[np.bool_]:
        """Which rows (n,) have anything in them."""
        return np.asarray(self.X.sum(axis=1)).ravel() > 0

    @cached_property
    def words(self) -> dict[str, int]:
        """The columns of the matrix by name."""
        names = self.preparation.names or [f"column {k + 1}" for k in range(self.X.shape[1])]
        return {name: k for k, name in enumerate(names)}

    def prepared(self, y: NDArray[Any], names: list[str]) -> Prepared:
        """Return the samples with labels, as `marginparts.app.fitting.fit_model` takes them."""
        name = "labeling" if self.source is None else self.source.name
        X = self.X if self.gappy is None else self.gappy
        return Prepared(X, y, names, self.preparation, self.layout, name)

    def batch(self, labels: list[Label]) -> Batch:
        """Return all samples with other labels."""
        return Batch(self.samples, labels, self.columns)

    def shown(self, row: int) -> dict[str, Any]:
        """Return a sample for the page: a text with its words, a picture, or named numbers.

        ``words`` are the columns of (start, end, column) in the text.
        """
        found: dict[str, Any] = {"row": row + 1, "id": self.ids[row], "kind": self.layout.kind}
        if self.layout.kind == "text":
            text = self.samples[row][:_SHOWN]
            found["text"] = text
            found["words"] = [
                (m.start(), m.end(), k)
                for m in _WORD.finditer(text)
                if (k := self.words.get(as_counted(m[0]))) is not None
            ]
        elif self.layout.image_shape is not None:
            found["image"] = picture(self.X[[row]])
            found["image_shape"] = self.layout.image_shape
        else:
            found["cells"] = self._cells(flat(self.samples[[row]]))
        skipped = (self.layout.text, self.layout.label, *(self.layout.names or ()))
        found["beside"] = [
            (name, str(cells[row])[:200])
            for name, cells in self.columns.items()
            if name not in skipped and name != "row" and str(cells[row] or "").strip()
        ]
        return found

    def _cells(self, values: Array) -> list[tuple[str, float | None, int]]:
        """Return name, value and place of the columns: as in the file, or the largest of many."""
        names = list(self.words)
        whole = len(names) <= _ROWS and not sp.issparse(self.samples)
        known = np.nan_to_num(np.abs(values), nan=0.0)
        top = range(len(names)) if whole else np.argsort(-known, kind="stable")[:_ROWS]
        return [
            (names[k], None if np.isnan(values[k]) else float(values[k]), int(k))
            for k in top
            if whole or known[k] != 0
        ]

    def having(self, word: str) -> NDArray[np.bool_]:
        """Return which samples (n,) have a word, or a number other than 0 in a column."""
        name = as_counted(word) if self.layout.kind == "text" else word
        column = self.words.get(name)
        if column is None:
            return np.zeros(self.X.shape[0], dtype=bool)
        entries: Any = self.X[:, [column]]
        return np.asarray((entries.toarray() if sp.issparse(entries) else entries) != 0).ravel()


def _filled(X: Data) -> Data:
    """Return rows in whose gaps is what a few parts make of the rest."""
    if not np.isnan(X.data if sp.issparse(X) else X).any():
        return X
    r = max(1, min(_FILLING, min(X.shape) // 4))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few iterations are enough
        return NMFAlpha(r, missing="nan", max_iter=50, random_state=0).fit(X).fill(X)


def _names(samples: Any) -> list[str]:
    """Return a name for each sample that depends on what it is and not on where it stands."""
    seen: Counter[str] = Counter()
    names = []
    rows: Any = samples if isinstance(samples, list) else sp.csr_array(samples)
    for k in range(rows.shape[0] if sp.issparse(rows) else len(rows)):
        content: bytes
        if sp.issparse(rows):
            piece = slice(rows.indptr[k], rows.indptr[k + 1])
            content = rows.indices[piece].astype("<i8").tobytes()
            content += rows.data[piece].astype("<f8").tobytes()
        else:
            content = rows[k].encode("utf-8", "surrogatepass")
        name = hashlib.sha256(content).hexdigest()[:16]
        seen[name] += 1
        names.append(name if seen[name] == 1 else f"{name}-{seen[name]}")
    return names
