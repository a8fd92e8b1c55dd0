"""Parts of ten newsgroups as a prior for the other ten: test accuracy with few labels.

    MARGINPARTS_DATA=path/to/data python benchmarks/transfer.py

The groups are split in two ways: every second one, so that most have relatives in the other half,
and the first ten against the last ten. Plain parts are learned from all training documents of one
half, without their labels. In the other half a few documents are labeled, and few are there at all;
words that none of these has are dropped, so parts are carried over by the names of the words. Five
draws of documents and labels. Unlabeled documents are guessed by teachers, the default, or by one
SVM; all else is what the classifier takes by default where there are teachers.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np

from common import parser
from marginparts import NMFAlpha, NMFAlphaClassifier, carried_parts
from marginparts.datasets import load_paper_data
from marginparts.experiments.preprocessing import preprocess
from records import Table

COLUMNS = ("split", "documents", "pseudo", "labels_a_class", "draw", "carried", "parts", "strength",
           "accuracy", "seconds")  # fmt: skip

#: How many parts are carried, how many there are in all, and the strength.
#: Next to no strength is a control: the carried parts are then a start, and little else.
WAYS = [(0, 64, 0.0), (0, 32, 0.0), (32, 64, 1.0), (32, 32, 1e-6), (32, 32, 0.1), (32, 32, 1.0)]

#: All but the parts, as the classifier has it by default where there are teachers.
TOLD = {"lam": 10.0, "map_iter": 40, "C": 4.0, "normalize": True, "rehearse": False}


class Half(NamedTuple):
    """Training and test counts of some groups, over all words."""

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray


class Task(NamedTuple):
    """Few documents with few labels, the words that they have, and the test documents."""

    X: Any
    y: np.ndarray
    words: np.ndarray
    X_test: Any
    y_test: np.ndarray


def halves(data: Any, split: str) -> list[Half]:
    """Return the half that parts come from, and the one that they are for."""
    groups = np.arange(20)
    goal = groups % 2 == 1 if split == "every second" else groups >= 10
    found = []
    for side in (~goal, goal):
        train, test = np.flatnonzero(side[data.y_train]), np.flatnonzero(side[data.y_test])
        found.append(
            Half(data.X_train[train], data.y_train[train], data.X_test[test], data.y_test[test])
        )
    return found


def drawn(half: Half, n: int, labels: int, draw: int) -> Task:
    """Return n documents, so many of each class labeled and the rest as they come."""
    order = np.random.default_rng(draw).permutation(len(half.y))
    known = np.concatenate([order[half.y[order] == k][:labels] for k in np.unique(half.y)])
    rest = order[~np.isin(order, known)][: n - len(known)]
    y = np.concatenate([half.y[known], np.full(len(rest), -1)])
    X = half.X[np.concatenate([known, rest])]
    words = np.flatnonzero(X.sum(axis=0))
    X, X_test = preprocess("l2-log", X[:, words], half.X_test[:, words])
    return Task(X, y, words, X_test, half.y_test)


def main() -> None:
    asked = parser(__doc__)
    asked.add_argument("--strength", type=float, help="only the ways with this one")
    options = asked.parse_args()
    name = "transfer" if options.strength is None else f"transfer_{options.strength:g}"
    ways = [way for way in WAYS if options.strength in (None, way[2])]
    data, table = load_paper_data("news"), Table(name, COLUMNS, options.quick)
    words = data.feature_names
    sizes, draws = ((200,), 1) if options.quick else ((500, 1500), 5)
    for split in ("every second", "first ten"):
        source, goal = halves(data, split)
        rows, _ = preprocess("l2-log", source.X, source.X_test)
        parts = NMFAlpha(32, tol=0.01 if options.quick else 1e-3, random_state=0).fit(rows)
        settings = [(n, how, few) for n in sizes for how in ("svm", "teachers") for few in (5, 20)]
        for n, pseudo, labels in settings:
            tasks = [drawn(goal, n, labels, draw) for draw in range(draws)]
            for carried, rank, strength in ways:
                scores = []
                for draw, task in enumerate(tasks):
                    prior = None
                    if carried:
                        prior = carried_parts(parts.components_, words, words[task.words])
                    model = NMFAlphaClassifier(rank, prior=prior, strength=strength, pseudo=pseudo,
                                               random_state=draw, **TOLD)  # fmt: skip
                    began = time.perf_counter()
                    right = model.fit(task.X, task.y).predict(task.X_test) == task.y_test
                    scores.append(100 * float(np.mean(right)))
                    table.add(
                        split=split, documents=n, pseudo=pseudo, labels_a_class=labels, draw=draw,
                        carried=carried, parts=rank, strength=strength,
                        accuracy=round(scores[-1], 2),
                        seconds=round(time.perf_counter() - began, 2),
                    )  # fmt: skip
                print(
                    f"{split}, {n} documents, {pseudo}, {labels} labels a class, {carried} of "
                    f"{rank} parts carried, strength {strength:g}: {np.mean(scores):.1f} %",
                    flush=True,
                )


if __name__ == "__main__":
    main()
