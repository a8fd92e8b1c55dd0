"""Which classes a stream has: declared at its first batch, or found on the way.

A batch cannot tell whether -1 is a class of the stream, so it never is unless it was declared.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marginparts._types import Targets
from marginparts.labels import UNKNOWN, Labels, encode_labels


def declared_classes(classes: ArrayLike, before: NDArray[Any] | None = None) -> NDArray[Any]:
    """Return the classes that a caller declares, in their order; they cannot change later."""
    found = np.asarray(classes)
    different, first = np.unique(found, return_index=True)
    if not len(found):
        raise ValueError("classes is empty; name all labels that the stream will have, or none.")
    if before is not None and not np.array_equal(different, np.unique(before)):
        raise ValueError(
            "classes differ from those of the stream so far; declare them at its first batch, and "
            "leave them out later."
        )
    return found[np.sort(first)]


def labels_of(
    y: Targets | None,
    n: int,
    before: NDArray[Any] | None = None,
    *,
    closed: bool = False,
    multilabel: bool | None = None,
) -> Labels:
    """Return the labels y of a batch (None: it has none), over known classes and new ones.

    ``before`` are the classes known before; for several labels a sample in the order of the
    columns. ``closed`` refuses new ones. ``multilabel`` says whether the stream has several labels
    a sample; None at its first batch.
    """
    if before is None:
        before = np.empty(0, np.int64)
    if y is None:
        shape = (n, len(before)) if multilabel else n
        return Labels(before if multilabel else np.unique(before), np.full(shape, UNKNOWN))
    labels = encode_labels(y, n, classes=before)
    _check_form(labels, before, multilabel)
    if labels.multilabel:
        return labels
    if not len(before):
        _warn_of_the_papers_coding(y, n, labels)
    before = np.unique(before)
    classes = _united(before, labels.classes)
    if closed and len(classes) > len(before):
        new = classes[~np.isin(classes, before)]
        raise ValueError(
            f"y has labels that were not declared: {', '.join(map(str, new[:8]))}; the classes "
            "given with the first batch must name all of them."
        )
    places = np.append(places_in(labels.classes, classes), UNKNOWN)  # -1 finds the last
    return Labels(classes, places[labels.codes])


def _warn_of_the_papers_coding(y: Targets, n: int, labels: Labels) -> None:
    """Warn when the first labels of a stream are -1 and 1, which may be meant as two classes."""
    if labels.classes.tolist() == [1] and UNKNOWN in encode_labels(y, n, classes=[UNKNOWN]).classes:
        warnings.warn(
            "y holds only -1 and 1, and in a stream -1 is unlabeled unless it is declared; if it "
            "is a class, begin anew and give classes=[-1, 1] with the first batch.",
            UserWarning,
            stacklevel=4,
        )


def places_in(some: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.intp]:
    """Return where some classes are among all, which are sorted."""
    return np.searchsorted(classes, some)


def _united(before: NDArray[Any], found: NDArray[Any]) -> NDArray[Any]:
    """Return all classes, sorted."""
    if not len(before) or not len(found):
        return before if len(before) else found
    if (before.dtype.kind in "UO") != (found.dtype.kind in "UO"):
        raise ValueError("y and the labels before it mix strings and numbers; use one kind.")
    return np.union1d(before, found)


def _check_form(labels: Labels, before: NDArray[Any], multilabel: bool | None) -> None:
    """Refuse a y of another form than the stream began with."""
    fits = multilabel is None or multilabel == labels.multilabel
    if labels.multilabel and len(before):
        fits = fits and len(labels.classes) == len(before)
    if not fits:
        form = "a 1d y" if multilabel is False else f"{len(before)} labels"
        raise ValueError(
            f"y has shape {labels.codes.shape}, but this stream began with {form}; keep to that."
        )
