"""Test accuracy of one pass over News as a stream, and whether a stream stopped and resumed agrees.

    MARGINPARTS_DATA=path/to/data python benchmarks/online.py

20 % of the labels, l2-normalized log counts, 64 parts, batches of 500, everything else as it is by
default. The rows come in three random orders, and in that of the file, in which each class comes
after the one before. The batch classifier, which sees all rows at once, is beside it.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numba
import numpy as np

from common import parser
from corpora import DESCRIBED, Corpus, news_l2_log, partly_labeled
from marginparts import NMFAlphaClassifier, OnlineNMFAlphaClassifier, load, save
from records import Table

COLUMNS = (
    "measured", "order", "rank", "samples", "labels", "seconds", "accuracy", "megabytes",
    "same_bits", *DESCRIBED, "threads",
)  # fmt: skip

BATCH = 500


ORDERS = ("random 1", "random 2", "random 3", "by class")


def rows_in(order: str, y: np.ndarray) -> np.ndarray:
    """Return the rows in one of the orders."""
    kind, _, seed = order.partition(" ")
    if kind == "random":
        return np.random.default_rng(int(seed)).permutation(len(y))
    return np.argsort(y, kind="stable")


def batch_fit(table: Table, corpus: Corpus, y: np.ndarray, facts: dict[str, Any]) -> float:
    """Fit all rows at once."""
    began = time.perf_counter()
    model = NMFAlphaClassifier(facts["rank"], random_state=0).fit(corpus.X, y)
    seconds = time.perf_counter() - began
    accuracy = float(model.score(corpus.X_test, corpus.y_test))
    table.add(
        measured="batch fit", samples=len(y), labels=int((y >= 0).sum()),
        seconds=round(seconds, 3), accuracy=round(accuracy, 4), **facts,
    )  # fmt: skip
    print(f"batch fit: {100 * accuracy:.2f} % in {seconds:.1f} s", flush=True)
    return accuracy


def pass_over(
    table: Table, corpus: Corpus, y: np.ndarray, order: str, facts: dict[str, Any], size: int
) -> OnlineNMFAlphaClassifier:
    """Go once over the rows, with a look at the test data every few batches."""
    rows = rows_in(order, corpus.y)
    model = OnlineNMFAlphaClassifier(facts["rank"], lam=1.0, batch_size=size, random_state=0)
    starts = range(0, len(rows), size)
    checked = {starts[(len(starts) - 1) * k // 5] for k in range(6)}
    seconds = 0.0
    for start in starts:
        batch = rows[start : start + size]
        began = time.perf_counter()
        model.partial_fit(corpus.X[batch], y[batch])
        seconds += time.perf_counter() - began
        if start in checked:
            samples = start + len(batch)
            accuracy = float(model.score(corpus.X_test, corpus.y_test))
            table.add(
                measured="stream", order=order, samples=samples,
                labels=int((y[rows[:samples]] >= 0).sum()), seconds=round(seconds, 3),
                accuracy=round(accuracy, 4), megabytes=round(kept(model) / 1e6, 1), **facts,
            )  # fmt: skip
            print(
                f"{order}: {samples} samples, {100 * accuracy:.2f} % after {seconds:.1f} s",
                flush=True,
            )
    return model


def kept(model: OnlineNMFAlphaClassifier) -> int:
    """Return the bytes of a model's file before it is packed: all that is kept of a stream."""
    from marginparts.app.model_file._encode import encode

    return sum(array.nbytes for array in encode(model).arrays.values())


def resumed(
    table: Table, corpus: Corpus, y: np.ndarray, whole: Any, facts: dict[str, Any], size: int
) -> None:
    """Stop in the middle of a batch, save, load, go on; compare with the stream that went on."""
    rows = rows_in(ORDERS[0], corpus.y)
    middle = len(rows) // 2
    model = OnlineNMFAlphaClassifier(facts["rank"], lam=1.0, batch_size=size, random_state=0)
    model.partial_fit(corpus.X[rows[:middle]], y[rows[:middle]])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stream.model"
        save(model, path)
        del model
        model = load(path)
    model.partial_fit(corpus.X[rows[middle:]], y[rows[middle:]])
    found = [
        (each.components_.tobytes(), each.decision_function(corpus.X_test).tobytes())
        for each in (whole, model)
    ]
    same = found[0] == found[1]
    table.add(measured="resumed", order=ORDERS[0], samples=len(rows), same_bits=same, **facts)
    print(f"stopped, saved, loaded and resumed: the same bits: {same}", flush=True)


def main() -> None:
    options = parser(__doc__).parse_args()
    corpus = news_l2_log(options.quick)
    y = partly_labeled(corpus.y, 0.2)
    facts = {
        "rank": 16 if options.quick else 64, "threads": numba.get_num_threads(), **corpus.described
    }  # fmt: skip
    size = 100 if options.quick else BATCH
    table = Table("online", COLUMNS, options.quick)
    together = batch_fit(table, corpus, y, facts)
    models = {order: pass_over(table, corpus, y, order, facts, size) for order in ORDERS}
    for order, model in models.items():
        behind = together - model.score(corpus.X_test, corpus.y_test)
        print(f"{order}: {100 * behind:.2f} points behind the batch fit")
    resumed(table, corpus, y, models[ORDERS[0]], facts, size)


if __name__ == "__main__":
    main()
