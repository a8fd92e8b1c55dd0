"""The most certain and the most doubtful samples of a file, and the words that decided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginparts._types import Array, Data
from marginparts.app.explanation import contributions
from marginparts.app.model import Decision, Model
from marginparts.app.readers import Batch

#: Samples shown of each kind, and how many certain ones may share a label.
_SHOWN, _A_LABEL = 15, 3

#: Characters shown of a text.
_LONGEST = 1200


class Example(NamedTuple):
    """One sample with what was said about it.

    ``score`` and ``probability`` belong to the most likely label, given or not; ``reasons`` are
    the features that spoke for or against it.
    """

    name: str
    text: str | None
    pixels: Array | None
    decision: Decision
    known: tuple[str, ...] | None
    sureness: float
    score: float
    probability: float
    reasons: list[tuple[str, float]]


class Extremes(NamedTuple):
    """The two ends of the scale."""

    certain: list[Example]
    doubtful: list[Example]


def find_examples(model: Model, batches: Iterable[Batch]) -> Extremes:
    """Go through samples, and keep the most certain and the most doubtful."""
    certain: list[Example] = []
    doubtful: list[Example] = []
    before = 0
    for batch in batches:
        X = model.prepare(batch.samples)
        if not X.shape[0]:
            continue
        values = model.values(X)
        sureness = model.sureness(values)
        order = np.argsort(sureness, kind="stable")
        rows = np.unique(np.concatenate([order[:_SHOWN], _surest(order[::-1], values)]))
        found = _explained(model, batch, X, values, rows, before)
        before += X.shape[0]
        doubtful = sorted([*doubtful, *found], key=lambda e: e.sureness)[:_SHOWN]
        certain = _few_of_each(sorted([*certain, *found], key=lambda e: -e.sureness))
    return Extremes(certain, doubtful)


def _surest(order: NDArray[np.intp], values: Array) -> NDArray[np.intp]:
    """Return the surest rows, only a few for each most likely class."""
    seen: Counter[int] = Counter()
    rows = []
    for row, top in zip(order, values[order].argmax(axis=1), strict=True):
        seen[int(top)] += 1
        if seen[int(top)] <= _A_LABEL:
            rows.append(row)
        if len(rows) == _SHOWN:
            break
    return np.array(rows, dtype=np.intp)


def _few_of_each(examples: list[Example]) -> list[Example]:
    """Keep at most a few of each set of labels, in order."""
    seen: Counter[tuple[str, ...]] = Counter()
    kept = []
    for example in examples:
        seen[example.decision.labels[:1]] += 1
        if seen[example.decision.labels[:1]] <= _A_LABEL and example.decision.labels:
            kept.append(example)
    return kept[:_SHOWN]


def _explained(
    model: Model, batch: Batch, X: Data, values: Array, rows: NDArray[np.intp], before: int
) -> list[Example]:
    """Return some rows of a batch as examples."""
    values = values[rows]
    top = values.argmax(axis=1)
    reasons = reasons_for(model, X[rows], top)
    probabilities = model.probabilities(values)
    found = []
    for k, (row, decision) in enumerate(zip(rows, model.decide(values), strict=True)):
        found.append(
            Example(
                name=_name(batch, row, before),
                text=batch.samples[row][:_LONGEST] if model.layout.kind == "text" else None,
                pixels=np.asarray(X[row]) if model.layout.kind == "image" else None,
                decision=decision,
                known=model.known(batch.labels[row]),
                sureness=float(model.sureness(values[[k]])[0]),
                score=float(values[k, top[k]]),
                probability=float(probabilities[k, top[k]]),
                reasons=reasons[k],
            )
        )
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
    """Return the features of each row that spoke most for (+) or against (-) a class."""
    two = not model.multilabel and len(model.class_names) == 2
    shares = contributions(model.classifier, X, np.zeros_like(classes) if two else classes)
    if two:
        shares = sp.csr_array(sp.diags_array(np.where(classes == 1, 1.0, -1.0)) @ shares)
    names, found = model.feature_names, []
    for row in range(shares.shape[0]):
        span = slice(shares.indptr[row], shares.indptr[row + 1])
        terms, columns = shares.data[span], shares.indices[span]
        order = np.argsort(-np.abs(terms), kind="stable")[:n]
        found.append([(str(names[columns[j]]), float(terms[j])) for j in order])
    return found
