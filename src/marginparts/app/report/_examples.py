"""The most certain and the most doubtful samples of a file, and the words that decided."""

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginparts._types import Array, Data
from marginparts.app.explanation import VECTOR, contributions, picture
from marginparts.app.model import Model
from marginparts.app.readers import Batch

#: Samples shown of each kind, and how many certain ones may share a label.
_SHOWN, _A_LABEL = 15, 3

#: Characters shown of a text.
_LONGEST = 1200

T = TypeVar("T")


class Example(NamedTuple):
    """One sample: how sure its labels are, these, and what the page shows of it."""

    sureness: float
    labels: tuple[str, ...]
    shown: dict[str, Any]


def find_examples(model: Model, batches: Iterable[Batch]) -> dict[str, list[dict[str, Any]]]:
    """Go through samples, and return the most certain and the most doubtful for the page."""
    certain: list[Example] = []
    doubtful: list[Example] = []
    before = 0
    for batch in batches:
        X = model.prepare(batch.samples, batch.vectors)
        if not X.shape[0]:
            continue
        values = model.values(X)
        order = np.argsort(model.sureness(values), kind="stable")
        surest: list[np.intp] = _few_of_each(
            order[::-1], values[order[::-1]].argmax(axis=1).tolist()
        )
        rows = np.unique(np.concatenate([order[:_SHOWN], surest]))
        found = _explained(model, batch, X, values[rows], rows, before)
        before += X.shape[0]
        doubtful = sorted([*doubtful, *found], key=lambda e: e.sureness)[:_SHOWN]
        labeled = [each for each in (*certain, *found) if each.labels]
        labeled.sort(key=lambda e: -e.sureness)
        certain = _few_of_each(labeled, [each.labels[0] for each in labeled])
    return {
        "certain": [example.shown for example in certain],
        "doubtful": [example.shown for example in doubtful],
    }


def _few_of_each(items: Iterable[T], keys: Iterable[Hashable]) -> list[T]:
    """Keep the first items, only a few for each key."""
    seen: Counter[Hashable] = Counter()
    kept = []
    for item, key in zip(items, keys, strict=True):
        seen[key] += 1
        if seen[key] <= _A_LABEL:
            kept.append(item)
    return kept[:_SHOWN]


def _explained(
    model: Model, batch: Batch, X: Data, values: Array, rows: NDArray[np.intp], before: int
) -> list[Example]:
    """Return some rows of a batch as examples.

    Score, probability and words (those that spoke for or against it) are those of the most likely
    label, given or not.
    """
    top = values.argmax(axis=1)
    reasons = reasons_for(model, X[rows], top)
    probabilities = model.probabilities(values)
    sureness = model.sureness(values)
    kind = model.layout.kind
    found = []
    for k, (row, decision) in enumerate(zip(rows, model.decide(values), strict=True)):
        shown = {
            "name": _name(batch, row, before),
            "text": batch.samples[row][:_LONGEST] if kind == "text" else None,
            "image": picture(model.classifier._without_embedding(X[[row]]))
            if kind == "image"
            else None,
            "labels": decision.labels,
            "known": model.known(batch.labels[row]),
            "score": values[k, top[k]],
            "probability": probabilities[k, top[k]],
            "words": reasons[k] if model.layout.image_shape is None else [],
        }
        found.append(Example(float(sureness[k]), decision.labels, shown))
    return found


def _name(batch: Batch, row: int, before: int) -> str:
    """Return what a sample is called: its file or cell, or its row."""
    if len(batch.columns) == 1:
        ((kind, names),) = batch.columns.items()
        if kind in ("file", "cell"):
            return str(names[row])
    return f"row {before + row + 1}"


def reasons_for(
    model: Model, X: Data, classes: NDArray[np.intp], n: int = 8
) -> list[list[tuple[str, float]]]:
    """Return the features of each row that spoke most for (+) or against (-) a class.

    The vector beside a sample is one of them, as a whole.
    """
    two = not model.multilabel and len(model.class_names) == 2
    shares = contributions(model.classifier, X, np.zeros_like(classes) if two else classes)
    if two:
        shares = sp.csr_array(sp.diags_array(np.where(classes == 1, 1.0, -1.0)) @ shares)
    names, found = [*model.feature_names, VECTOR], []
    for row in range(shares.shape[0]):
        span = slice(shares.indptr[row], shares.indptr[row + 1])
        terms, columns = shares.data[span], shares.indices[span]
        order = np.argsort(-np.abs(terms), kind="stable")[:n]
        found.append([(str(names[columns[j]]), float(terms[j])) for j in order])
    return found
