"""What ``y`` means, decided in one place.

* One label a sample: any numbers or strings. ``-1``, ``None``, NaN and what is masked mean
  *unlabeled*.
* The exception: labels that are exactly {-1, 1} are the binary coding of the paper, with nothing
  unlabeled; a warning says how to mark unlabeled rows instead.
* Several labels a sample: an (n, c) indicator of 0 and 1, where ``-1`` (or NaN) marks an unknown
  entry, a whole row or single entries. In a sparse indicator what is not stored is 0: a row without
  entries says that no label applies, not that nothing is known. The columns of a DataFrame name the
  classes.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.multiclass import check_classification_targets

from marginparts._types import Array, Targets

#: The code of a label that is not known.
UNKNOWN = -1

#: What missing values become where they are made into strings, and cells that are empty.
_LIKE_NOTHING = {"", "nan", "NaN", "None", "<NA>"}


class BinaryTask(NamedTuple):
    """One two-class question: which rows can answer it, and with which sign."""

    name: str
    rows: NDArray[np.intp]
    signs: NDArray[np.float64]


@dataclass(frozen=True)
class Labels:
    """Labels as codes.

    Attributes
    ----------
    classes : (c,) array
        The labels themselves, sorted; for multilabel data the columns in their own order, by the
        names that a DataFrame has for them or by number.
    codes : (n,) or (n, c) int array
        The index of each sample's class, or the indicator; ``-1`` is unknown.
    weights : (n,) array or None
        How much each sample counts, more than 0; None for all alike.
    groups : (n,) int array or None
        Samples that are the same have one number, and are hidden together; None for all apart.
    folds : (n,) int array or None
        The fold in which each sample is hidden, -1 for none, where folds were given.
    """

    classes: NDArray[Any]
    codes: NDArray[np.int64]
    weights: Array | None = None
    groups: NDArray[np.intp] | None = None
    folds: NDArray[np.intp] | None = None

    @property
    def multilabel(self) -> bool:
        """Whether a sample can have several labels."""
        return self.codes.ndim == 2

    @property
    def labeled(self) -> NDArray[np.bool_]:
        """Mask (n,) of the samples about which anything is known."""
        known = self.codes != UNKNOWN
        return known.any(axis=1) if self.multilabel else known

    @property
    def complete(self) -> NDArray[np.bool_]:
        """Mask (n,) of the samples about which everything is known."""
        known = self.codes != UNKNOWN
        return known.all(axis=1) if self.multilabel else known

    def members(self, k: int) -> NDArray[np.intp]:
        """Rows known to belong to class k."""
        return np.flatnonzero(self.codes[:, k] == 1 if self.multilabel else self.codes == k)

    def hide(self, rows: NDArray[Any]) -> Labels:
        """Return the same labels with those of some rows unknown."""
        codes = self.codes.copy()
        codes[rows] = UNKNOWN
        return replace(self, codes=codes)

    def take(self, rows: NDArray[Any]) -> Labels:
        """Return the labels of some rows."""
        told = (self.weights, self.groups, self.folds)
        return Labels(
            self.classes, self.codes[rows], *(each if each is None else each[rows] for each in told)
        )

    def tasks(self, multiclass: str = "ovr") -> list[BinaryTask]:
        """Cut the labels into two-class questions.

        Two classes make one task, with the later class positive. More make one task a class
        (``"ovr"``) or one a pair (``"ovo"``, the paper's choice, the later class positive). Every
        label of multilabel data is a task of its own, over the rows where its entry is known.
        """
        names = [str(c) for c in self.classes]
        if self.multilabel:
            return [
                _task(name, np.flatnonzero(column != UNKNOWN), column == 1)
                for name, column in zip(names, self.codes.T, strict=True)
            ]
        if multiclass == "ovo" or len(names) == 2:
            pairs = combinations(range(len(names)), 2)
            both = ((a, b, np.flatnonzero(np.isin(self.codes, (a, b)))) for a, b in pairs)
            return [_task(f"{names[b]} v {names[a]}", rows, self.codes == b) for a, b, rows in both]
        rows = np.flatnonzero(self.codes != UNKNOWN)
        return [_task(name, rows, self.codes == k) for k, name in enumerate(names)]


def _task(name: str, rows: NDArray[np.intp], positive: NDArray[np.bool_]) -> BinaryTask:
    return BinaryTask(name, rows, np.where(positive[rows], 1.0, -1.0))


def are_numbers(classes: NDArray[Any]) -> bool:
    """Whether the classes of multilabel data are the bare numbers of its columns."""
    return np.array_equal(classes, np.arange(len(classes)))


def encode_labels(
    y: Targets, n_samples: int | None = None, *, classes: ArrayLike | None = None
) -> Labels:
    """Turn ``y`` into codes, by the rules at the head of this module.

    Parameters
    ----------
    y : (n,) or (n, c) array-like
    n_samples : int or None
        When given, the number of labels y must have.
    classes : array or None
        Classes known from a fit: unless -1 is among them, it means unlabeled even where y happens
        to hold nothing else but 1; if it is among them, it is a label like any other. The columns
        of a multilabel DataFrame are put into their order, by name.

    Returns
    -------
    Labels

    Examples
    --------
    >>> encode_labels(["cat", None, "dog", "cat"]).codes
    array([ 0, -1,  1,  0])
    >>> encode_labels([[1, 0], [-1, 1]]).labeled
    array([ True,  True])
    """
    names, sparse, y = _column_names(y), sp.issparse(y), _as_array(y)
    if y.ndim == 2 and y.shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected; it is taken as 1d. "
            "Use y.ravel() to avoid this.",
            DataConversionWarning,
            stacklevel=3,
        )
        y = y[:, 0]
    if y.ndim not in (1, 2):
        raise ValueError(f"y should be a 1d array or a 2d indicator, got shape {y.shape}.")
    if n_samples is not None and len(y) != n_samples:
        raise ValueError(f"X has {n_samples} samples and y has {len(y)}; they must be equal.")
    if y.ndim == 2:
        if sparse:
            _warn_of_empty_rows(y)
        return _with_names(_encode_indicator(y), names, classes)
    if classes is not None:
        return _encode_single(y, bool(np.isin(UNKNOWN, classes)))
    found = _encode_single(y, None)
    _warn_of_names_like_nothing(found.classes)
    return found


def _as_array(y: Any) -> NDArray[Any]:
    """Make an array without turning a missing value among strings into the string 'nan'."""
    if sp.issparse(y):
        return np.asarray(y.toarray())
    if isinstance(y, np.ma.MaskedArray):  # as an array it would show what the mask hides
        shown = np.ma.getdata(y).astype(object)
        shown[np.ma.getmaskarray(y)] = None
        return shown
    if isinstance(y, list | tuple) and not any(isinstance(v, list | tuple | np.ndarray) for v in y):
        array = np.empty(len(y), dtype=object)
        array[:] = y
    else:
        try:
            array = np.asarray(y)
        except ValueError as error:  # lists of several lengths
            raise ValueError(_SEVERAL) from error
    if array.dtype.kind == "c":
        raise ValueError("y is complex; labels are numbers without an imaginary part, or strings.")
    if array.ndim == 1 and array.dtype.kind == "O" and any(map(_is_several, array)):
        raise ValueError(_SEVERAL)
    return array


#: Said of samples with lists of labels, which scikit-learn's classifiers refuse, too.
_SEVERAL = (
    "y has a list of labels for a sample; give an indicator of 0 and 1 instead, which "
    "sklearn.preprocessing.MultiLabelBinarizer makes of lists."
)


def _is_several(label: Any) -> bool:
    return isinstance(label, list | tuple | set | frozenset | np.ndarray)


def _column_names(y: Targets) -> NDArray[Any] | None:
    """Return the names of a table's columns; None for an array, or columns that are numbered."""
    # pyarrow has names of its own for it; those of pandas and polars are alike
    names = getattr(y, "column_names" if hasattr(type(y), "column_names") else "columns", None)
    if names is None:
        return None
    if len(set(names)) < len(names):
        raise ValueError("y has two columns of one name; give each label a name of its own.")
    if all(isinstance(name, int | np.integer) for name in names):
        found = np.array(names, dtype=np.int64)
        return None if are_numbers(found) else found
    return np.array([str(name) for name in names])


def _missing(y: NDArray[Any]) -> NDArray[np.bool_]:
    """Mask of None, NaN and NA entries."""
    if y.dtype.kind != "O":
        return np.isnan(y) if y.dtype.kind == "f" else np.zeros(y.shape, dtype=bool)
    # pandas' NA compares to nothing, and NaN not even to itself
    found = [v is None or type(v).__name__ == "NAType" or bool(v != v) for v in y.flat]
    return np.array(found, dtype=bool).reshape(y.shape)


def _encode_single(y: NDArray[Any], minus_one_is_a_class: bool | None) -> Labels:
    known = ~_missing(y)
    values = _plain_values(y, known)
    if values.dtype.kind in "fc" and not np.isfinite(values).all():
        raise ValueError("y contains infinity; labels must be finite, None or NaN.")
    if len(values):
        with warnings.catch_warnings():
            # many classes with few labels each are what this package is for
            warnings.simplefilter("ignore", UserWarning)
            check_classification_targets(values)
    if values.dtype.kind in "if":
        if minus_one_is_a_class is None:
            minus_one_is_a_class = _is_paper_coding(values, marked=not known.all())
        if not minus_one_is_a_class:
            known[known] = values != UNKNOWN
            values = values[values != UNKNOWN]
    classes, inverse = np.unique(values, return_inverse=True)
    codes = np.full(len(y), UNKNOWN, dtype=np.int64)
    codes[known] = inverse.ravel()
    return Labels(classes, codes)


def _plain_values(y: NDArray[Any], known: NDArray[np.bool_]) -> NDArray[Any]:
    """Return the known labels as numbers or strings; -1 beside strings is marked as unknown."""
    if y.dtype.kind != "O":
        return y[known]
    if any(isinstance(v, str) for v in y[known]):
        known[known] = [isinstance(v, str) or v != UNKNOWN for v in y[known]]
        if not all(isinstance(v, str) for v in y[known]):
            raise ValueError("y mixes strings and numbers; use one kind of label.")
    return np.array(y[known].tolist())


def _is_paper_coding(values: NDArray[Any], marked: bool) -> bool:
    """Whether labels are exactly {-1, 1}; warn unless unlabeled rows are marked in another way."""
    if set(np.unique(values).tolist()) != {-1, 1}:
        return False
    if not marked:
        warnings.warn(
            "y holds only -1 and 1, which is read as two classes with every sample labeled. "
            "To mark unlabeled samples, use None or NaN, or code the classes as 0 and 1.",
            UserWarning,
            stacklevel=5,
        )
    return True


def _warn_of_names_like_nothing(classes: NDArray[Any]) -> None:
    """Warn of a class that is the string of a missing value, or empty."""
    found = [name for name in classes.tolist() if name in _LIKE_NOTHING]
    if found:
        warnings.warn(
            f"y has the label {found[0]!r}, which is read as a class; if it marks unlabeled "
            "samples, put None or NaN in its place, in a list or an array of objects.",
            UserWarning,
            stacklevel=4,
        )


def _encode_indicator(y: NDArray[Any]) -> Labels:
    codes = np.full(y.shape, UNKNOWN, dtype=np.int64)
    known = ~_missing(y)
    try:
        values = y[known].astype(np.float64)
    except (TypeError, ValueError):
        values = np.array([np.inf])
    if not np.isin(values, (UNKNOWN, 0, 1)).all():
        raise ValueError(
            "A 2d y must be an indicator of 0 and 1, with -1 or NaN for an unknown entry."
        )
    codes[known] = values.astype(np.int64)
    return Labels(np.arange(y.shape[1]), codes)


def _warn_of_empty_rows(y: NDArray[Any]) -> None:
    """Warn when most rows of a sparse indicator have no entry: they may be meant as unlabeled."""
    empty = int((~(y != 0).any(axis=1)).sum())
    if 2 * empty > len(y):
        warnings.warn(
            f"{empty} of {len(y)} rows of the sparse y have no entry, which is read as samples to "
            "which no label applies; if they are unlabeled, set their rows to -1.",
            UserWarning,
            stacklevel=4,
        )


def _with_names(labels: Labels, names: NDArray[Any] | None, classes: Any) -> Labels:
    """Name the columns of an indicator; if the classes are known, bring it into their order."""
    if classes is None or not len(classes):
        return labels if names is None else Labels(names, labels.codes)
    classes = np.asarray(classes)
    place = {} if names is None else {str(name): k for k, name in enumerate(names)}
    if place.keys() == set(map(str, classes)):
        return Labels(classes, labels.codes[:, [place[str(name)] for name in classes]])
    if names is not None and not are_numbers(classes):
        raise ValueError(
            f"y has the columns {_listed(names)}, and the labels so far are {_listed(classes)}; "
            "give the same ones, in any order."
        )
    # one of the two has no names: by position; another number is for the caller to refuse
    return labels if len(classes) != labels.codes.shape[1] else Labels(classes, labels.codes)


def _listed(names: NDArray[Any], most: int = 8) -> str:
    """Return names in one line."""
    return ", ".join([str(name) for name in names[:most]] + ["..."] * (len(names) > most))
