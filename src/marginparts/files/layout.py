"""What a file of samples looks like, and what comes out of one."""

from abc import ABC, abstractmethod
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

#: Unlabeled, one label, or several labels (possibly none of them: an empty tuple).
Label: TypeAlias = "str | tuple[str, ...] | None"


class Batch(NamedTuple):
    """Some samples, in the order of the file.

    Attributes
    ----------
    samples : list of n str, (n, d) CSR array, or (n, d) array
        Texts, or rows of a matrix in float32 or float64.
    labels : list of n Label
        All None where there is no label column.
    columns : dict of str to list of n cells
        What identifies the rows, to be written beside predictions: all columns of a table with
        their original cells, ``row`` (from 1) of a matrix, ``cell`` of h5ad, ``file`` of images.
    vectors : (n, k) array or None
        What an encoder makes of the samples, where it is given beside them.
    """

    samples: Any
    labels: list[Label]
    columns: dict[str, list[Any]]
    vectors: Any = None


@dataclass(frozen=True)
class Layout:
    """All that must be remembered to read a like file again.

    Attributes
    ----------
    kind : {"text", "matrix", "image"}
    text : str or None
        The column of texts.
    label : str or None
        The column of labels.
    label_sep : str or None
        What separates several labels in one cell.
    names : tuple of str or None
        The names of a matrix's columns: words, genes, numeric columns of a table.
    n_columns : int or None
        The number of columns of a matrix, or of pixels.
    zero_based : bool or None
        Whether the columns of svmlight files count from 0.
    image_shape : (height, width) or None
    invert : bool or None
        Whether images are dark on bright, and are turned so that the ink is large.
    gaps : bool
        Whether empty cells and NaN of a matrix are values that are missing, and no mistakes.
    vectors : int
        How many numbers the vector beside a sample has; 0 is no vectors.
    encoder : str or None
        What makes the vectors of texts, where that is not left to the user.
    """

    kind: str
    text: str | None = None
    label: str | None = None
    label_sep: str | None = None
    names: tuple[str, ...] | None = None
    n_columns: int | None = None
    zero_based: bool | None = None
    image_shape: tuple[int, int] | None = None
    invert: bool | None = None
    gaps: bool = False
    vectors: int = 0
    encoder: str | None = None


@dataclass
class SampleSource(ABC):
    """A file, or a folder of images, that can be read batch after batch, as often as one likes."""

    path: Path
    layout: Layout
    #: None where only reading the whole file would tell.
    n_rows: int | None
    #: What to do where a value is missing, at the end of a sentence.
    if_missing: str = field(default="", kw_only=True)

    @abstractmethod
    def batches(self, size: int = 10_000) -> Iterator[Batch]:
        """Yield all samples in order, at most ``size`` at once."""


@dataclass(frozen=True)
class Wanted:
    """What the caller of `open_source` asks for; see there."""

    text: str | None = None
    label: str | None = None
    label_sep: str | None = None
    labels: Path | None = None
    words: Path | None = None
    encoding: str = "utf-8"
    gaps: bool | None = False
    like: Layout | None = None

    @property
    def if_missing(self) -> str:
        """What to do where a value is missing: gaps cannot be asked for everywhere."""
        if self.gaps is None:
            return "; all values must be known here, so fill them in, or leave out their rows"
        if self.like is not None:
            return "; where values are missing, use a model fitted with --missing nan"
        return "; where values are missing, say --missing nan"

    @property
    def separator(self) -> str | None:
        """What separates several labels, here or in the fitted model."""
        return self.label_sep or (self.like.label_sep if self.like else None)

    def label_among(self, columns: Container[str]) -> str | None:
        """Return the column of labels: the one asked for, or the model's if it is there."""
        if self.label is None and self.like is not None and self.like.label in columns:
            return self.like.label
        return self.label
