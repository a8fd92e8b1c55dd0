"""From what people have (texts, counts, pictures) to the nonnegative matrix that is factorized.

A preparation is made once, from the samples that a model is fitted to, and travels with the model:
the same text becomes the same row wherever the model is used.
"""

import os
import reprlib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.feature_extraction import text as sklearn_text

from marginparts._types import Array, Data
from marginparts.backends.base import safe_ratio
from marginparts.files.atomic import problems_with
from marginparts.weighting import idf_of, in_own_units, l2_log, log, weighted_rows

#: How counts may be weighted: as they are, by `l2_log`, or with rare columns weighing more.
WEIGHTINGS = ("counts", "l2-log", "tf-idf")

#: More words than this are never of use, and their parts would fill the memory.
_MOST_WORDS = 100_000


#: The largest weight of a column: its square, times a count, stays within range.
MOST_WEIGHT = 1e6

#: Words that are named in one sentence.
_MOST_NAMED = 10


class PreparationError(ValueError):
    """Samples that nothing can be made of, as one sentence."""


class EstimatorError(PreparationError):
    """What an estimator refuses, in its own words: options have the names of its parameters."""


@dataclass(frozen=True)
class TextPreparation:
    """Texts to weighted word counts.

    Words are runs of two or more letters or digits, in lower case and without accents. A column is
    one of them, or from the fewest to the most of ``ngrams`` with spaces between.
    """

    words: list[str]
    ngrams: tuple[int, int] = (1, 1)
    weighting: str = "l2-log"
    idf: NDArray[np.float32] | None = None
    feature_weight: NDArray[np.float32] | None = None

    def __post_init__(self) -> None:
        counter = _counter(self.ngrams, vocabulary={w: k for k, w in enumerate(self.words)})
        object.__setattr__(self, "_counter", counter)

    def __repr__(self) -> str:
        return f"TextPreparation({len(self.words)} words, {self.weighting})"

    def apply(self, texts: Sequence[str]) -> sp.csr_array:
        """Return rows (n, d) in float32; a text without a known word is an empty row."""
        counts = self._counter.transform(texts)  # type: ignore[attr-defined]
        return _weigh(sp.csr_array(counts), self.weighting, self.idf, self.feature_weight)

    @property
    def names(self) -> list[str]:
        """What the columns are called."""
        return self.words


@dataclass(frozen=True)
class MatrixPreparation:
    """Rows of a matrix, weighted or as they are, and what its columns are called."""

    names: list[str] | None = None
    weighting: str = "counts"
    idf: NDArray[np.float32] | None = None
    feature_weight: NDArray[np.float32] | None = None

    def apply(self, rows: Data) -> Data:
        """Return the rows as they are factorized."""
        return _weigh(rows, self.weighting, self.idf, self.feature_weight)


#: What a model can be made of.
Preparation = TextPreparation | MatrixPreparation


def prepare_texts(
    texts: Sequence[str],
    *,
    min_df: int = 2,
    max_df: float = 0.7,
    stop_words: Sequence[str] = (),
    ngrams: tuple[int, int] = (1, 1),
    weighting: str = "l2-log",
) -> tuple[TextPreparation, sp.csr_array]:
    """Find the words of texts, and prepare these.

    Words must be in ``min_df`` texts and may be in a share ``max_df`` of them; ``stop_words`` are
    left out.

    Examples
    --------
    >>> preparation, X = prepare_texts(["a red cat", "a red dog", "The dog!"], max_df=1.0)
    >>> preparation.words
    ['dog', 'red']
    >>> X.shape
    (3, 2)
    """
    left_out = [as_counted(word) for word in stop_words if word.strip()]
    counter = _counter(
        ngrams, min_df=min_df, max_df=max_df, stop_words=left_out or None, max_features=_MOST_WORDS
    )
    try:
        counts = sp.csr_array(counter.fit_transform(texts))
    except ValueError as error:  # scikit-learn's word for "nothing is left"
        raise PreparationError(
            f"No word occurs in at least {min_df} texts and at most {100 * max_df:g} % of them; "
            "use a smaller --min-df or a larger --max-df."
        ) from error
    idf = idf_of(counts).astype(np.float32) if weighting == "tf-idf" else None
    columns = counter.get_feature_names_out().tolist()
    preparation = TextPreparation(columns, ngrams, weighting, idf)
    return preparation, _weigh(counts, weighting, idf)


def as_counted(word: str) -> str:
    """Return a word as it is counted: in lower case, without accents."""
    return str(sklearn_text.strip_accents_unicode(word.strip().lower()))


def prepare_matrix(
    X: Data, names: Sequence[str] | None = None, weighting: str = "auto"
) -> tuple[MatrixPreparation, Data]:
    """Choose a weighting for a matrix (n, d), and apply it.

    ``"auto"`` is ``"l2-log"`` for counts (whole numbers, of which some are larger than 1) in a
    sparse matrix, and leaves all else as it is.
    """
    if weighting == "auto":
        weighting = "counts"
        if not isinstance(X, np.ndarray) and X.nnz and X.data.max() > 1:
            weighting = "l2-log" if np.array_equal(X.data, np.rint(X.data)) else "counts"
    idf = idf_of(X).astype(np.float32) if weighting == "tf-idf" else None
    preparation = MatrixPreparation(None if names is None else list(names), weighting, idf)
    return preparation, preparation.apply(X)


def beside(rows: Data, vectors: Array | None) -> Data:
    """Return rows (n, d) with vectors (n, k), each made of length 1, behind them."""
    if vectors is None:
        return rows
    unit = _of_length_one(np.asarray(vectors))
    if len(unit) != rows.shape[0]:
        raise PreparationError(
            f"The number of samples is {rows.shape[0]} and that of vectors is {len(unit)}; give "
            "one vector for each sample."
        )
    if isinstance(rows, np.ndarray):
        return np.hstack([rows, unit])
    return sp.csr_array(sp.hstack([rows, sp.csr_array(unit)]))


def _of_length_one(vectors: Array) -> Array:
    """Return vectors (n, k) in float32, each made of length 1 unless it is zero."""
    vectors = in_own_units(vectors)
    # in float32 the squares of very small or large entries would be 0 or infinite
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
    finite = np.isfinite(lengths)
    if not finite.all():
        raise PreparationError(
            f"Vector {int(finite.argmin()) + 1} does not have finite numbers only; leave its "
            "sample out, or encode it again."
        )
    return safe_ratio(vectors, lengths[:, None])


def check_weighting(name: str) -> None:
    """Refuse an unknown way to weigh counts."""
    if name not in ("auto", *WEIGHTINGS):
        raise PreparationError(
            f"--weighting {name!r} is unknown; it is one of auto, {', '.join(WEIGHTINGS)}."
        )


def stop_words_from(what: str | os.PathLike[str] | Sequence[str] | None) -> Sequence[str]:
    """Return words to leave out: those given, a known list, or the words of a file."""
    if not isinstance(what, str | os.PathLike):
        return what or ()
    if what == "english":
        return sorted(sklearn_text.ENGLISH_STOP_WORDS)
    if not Path(what).exists():
        raise PreparationError(
            f"--stop-words {what!r} is neither 'english' nor a file with one word a line."
        )
    try:
        with problems_with(what, "read"):
            return Path(what).read_text("utf-8").split()
    except UnicodeDecodeError as error:
        raise PreparationError(f"{what} is not UTF-8; save it in that encoding.") from error


def _counter(ngrams: tuple[int, int], **options: Any) -> Any:
    """Return what counts words: one way for all texts, so that a model can be read anywhere."""
    return sklearn_text.CountVectorizer(
        lowercase=True, strip_accents="unicode", token_pattern=r"(?u)\b\w\w+\b",
        ngram_range=tuple(ngrams), dtype=np.float32, **options,
    )  # fmt: skip


def column_weights(how: Preparation, given: Mapping[str, float], *, text: bool) -> Array:
    """Return what each column counts (d,): 1 unless its word has another weight.

    Words that are no column are left out, and one sentence names them.
    """
    if how.names is None:
        raise PreparationError(
            "Weights of columns need their names; give a file of them with --words."
        )
    places = {name: k for k, name in enumerate(how.names)}
    weights = np.ones(len(places), dtype=np.float32)
    unknown: list[str] = []
    for word, weight in given.items():
        if not isinstance(weight, Real) or not 0 <= float(weight) <= MOST_WEIGHT:
            raise PreparationError(
                f"The weight of {word!r} is {reprlib.repr(weight)}; it must be a number from 0 to "
                f"{MOST_WEIGHT:g}."
            )
        place = places.get(as_counted(word) if text else word)
        if place is None:
            unknown.append(word)
        else:
            weights[place] = float(weight)
    if len(unknown) == len(given):
        raise PreparationError("No word that has a weight is a column of the data; correct them.")
    if unknown:
        rest = f" and {len(unknown) - _MOST_NAMED} more" if len(unknown) > _MOST_NAMED else ""
        warnings.warn(
            "Weights of words that are no column of the data are left out: "
            f"{', '.join(unknown[:_MOST_NAMED])}{rest}.",
            UserWarning,
            stacklevel=2,
        )
    return weights


def _weigh(X: Data, weighting: str, idf: Array | None, own: Array | None = None) -> Data:
    """Return weighted rows; columns that count 0 are empty, as if they had been left out."""
    if own is not None:
        idf = own if idf is None else own * idf
    if weighting == "counts":
        X = X if own is None else X @ sp.diags_array(own, dtype=X.dtype)
    else:
        X = l2_log(X) if idf is None else weighted_rows(log(X), idf)
    if own is not None and not isinstance(X, np.ndarray):
        X = sp.csr_array(X)
        X.eliminate_zeros()
    return X
