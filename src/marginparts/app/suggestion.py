"""Which samples to label next: those the classifier is least sure of, spread over the parts."""

from collections import defaultdict, deque
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from marginparts.app.model import Model
from marginparts.app.readers import Batch

#: From this cosine on, two samples are too like each other to ask about both.
_ALIKE = 0.8


class Suggestion(NamedTuple):
    """A sample worth a label: its row (from 1), what is guessed and how surely, its part (from 1).

    ``text`` is None where samples are no texts; ``columns`` are those of the file.
    """

    row: int
    guess: str
    margin: float
    part: int
    text: str | None
    columns: dict[str, Any]


def suggest(model: Model, batches: Iterable[Batch], n: int) -> list[Suggestion]:
    """Return the unlabeled samples that would teach most.

    Rows that have a label are passed over, and those without a known word, whatever their vector:
    they have no part. The least sure samples of each part come first, one a part in turn, the
    least sure of all first: twenty samples that are doubtful for the same reason teach little more
    than one. For that reason, too, one that is much like another waits until there is nothing else.
    """
    by_part: dict[int, list[tuple[Suggestion, Any]]] = defaultdict(list)
    before = 0
    for batch in batches:
        for found in _doubtful(model, batch, before, n):
            by_part[found[0].part].append(found)
        for part, candidates in by_part.items():
            by_part[part] = sorted(candidates, key=lambda s: s[0].margin)[:n]
        before += len(batch.labels)
    queues = [deque(c) for c in sorted(by_part.values(), key=lambda c: c[0][0].margin)]
    chosen: list[Suggestion] = []
    others: list[Suggestion] = []
    rows: list[Any] = []
    while queues and len(chosen) < n:
        for queue in queues:
            suggestion, row = queue.popleft()
            if len(chosen) < n and all(_cosine(row, other) < _ALIKE for other in rows):
                chosen.append(suggestion)
                rows.append(row)
            else:
                others.append(suggestion)
        queues = [queue for queue in queues if queue]
    return (chosen + others)[:n]


def _cosine(a: Any, b: Any) -> float:
    """Return the cosine of two rows (1, d), dense or CSR, of length 1."""
    product = a @ b.T
    return float(product.sum() if sp.issparse(product) else product.item())


def _doubtful(model: Model, batch: Batch, before: int, n: int) -> list[tuple[Suggestion, Any]]:
    """Return the unlabeled rows of a batch that are least sure, up to n a part, with the rows."""
    X = model.prepare(batch.samples, batch.vectors)
    own = model.classifier._without_embedding(X)  # all that has parts
    mass = np.asarray(own.sum(axis=1)).ravel()
    rows = np.array(
        [k for k, label in enumerate(batch.labels) if model.known(label) is None and mass[k] > 0]
    )
    if not len(rows):
        return []
    values = model.values(X[rows])
    sureness = model.sureness(values)
    own = own[rows]
    parts = model.classifier.parts_._coefficients(own).argmax(axis=1)
    order = np.lexsort((sureness, parts))
    rank = np.arange(len(order)) - np.searchsorted(parts[order], parts[order])
    few = order[rank < n]
    unit = normalize(own)
    return [
        (Suggestion(
            before + int(rows[k]) + 1,
            model.class_names[int(values[k].argmax())],
            float(sureness[k]),
            int(parts[k]) + 1,
            batch.samples[rows[k]] if model.layout.kind == "text" else None,
            {name: column[rows[k]] for name, column in batch.columns.items()},
        ), unit[[k]])
        for k in few
    ]  # fmt: skip
