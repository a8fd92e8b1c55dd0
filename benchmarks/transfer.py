"""Parts of one corpus as a prior for another: test accuracy with few labels.

    MARGINPARTS_DATA=path/to/data python benchmarks/transfer.py
    MARGINPARTS_DATA=path/to/data python benchmarks/transfer.py --far

Ten newsgroups for the other ten, split in two ways: every second one, so that most have relatives
in the other half, and the first ten against the last ten. With ``--far`` aviation reports for
medical abstracts (Ohsumed, 23 classes), which share words and nothing else. Plain parts are learned
from all training documents of one side, without their labels. On the other a few documents are
labeled, and few are there at all; words that none of these has are dropped, so parts are carried
over by the names of the words. Five
draws of documents and labels. Unlabeled documents are guessed by teachers, the default, or by one
SVM; all else is what the classifier takes by default where there are teachers.
"""

from __future__ import annotations

import gzip
import time
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from common import parser
from marginparts import NMFAlpha, NMFAlphaClassifier, carried_parts
from marginparts.datasets import data_folder, load_paper_data
from marginparts.experiments.preprocessing import preprocess
from records import Table

COLUMNS = ("split", "documents", "pseudo", "labels_a_class", "draw", "carried", "parts", "strength",
           "accuracy", "seconds")  # fmt: skip

#: How many parts are carried, how many there are in all, and the strength.
#: Next to no strength is a control: the carried parts are then a start, and little else.
WAYS = [(0, 64, 0.0), (0, 32, 0.0), (32, 64, 1.0), (32, 32, 1e-6), (32, 32, 0.1), (32, 32, 1.0)]

#: All but the parts, as the classifier has it by default where there are teachers.
TOLD = {"lam": 10.0, "map_iter": 40, "C": 4.0, "normalize": True, "rehearse": False}


class Side(NamedTuple):
    """Training and test counts of a corpus, and its words."""

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray
    words: np.ndarray


class Task(NamedTuple):
    """Few documents with few labels, the words that they have, and the test documents."""

    X: Any
    y: np.ndarray
    words: np.ndarray
    X_test: Any
    y_test: np.ndarray


def far() -> list[Side]:
    """Return aviation reports, and medical abstracts."""
    found = load_paper_data("aviation-counts")
    reports = Side(found.X_train, found.y_train, found.X_test, found.y_test, found.feature_names)
    folder = data_folder() / "fewlabel" / "ohsumed"
    X, X_test = (sp.load_npz(folder / f"X_{part}.npz").astype(float) for part in ("train", "test"))
    y, y_test = (np.load(folder / f"y_{part}.npy") for part in ("train", "test"))
    with gzip.open(folder / "words.txt.gz", "rt") as file:
        words = np.array(file.read().split())
    return [reports, Side(sp.csr_array(X), y, sp.csr_array(X_test), y_test, words)]


def halves(split: str) -> list[Side]:
    """Return the half of the newsgroups that parts come from, and the one that they are for."""
    data, groups = load_paper_data("news"), np.arange(20)
    goal = groups % 2 == 1 if split == "every second" else groups >= 10
    found = []
    for side in (~goal, goal):
        train, test = np.flatnonzero(side[data.y_train]), np.flatnonzero(side[data.y_test])
        rows = data.X_train[train], data.y_train[train], data.X_test[test], data.y_test[test]
        found.append(Side(*rows, data.feature_names))
    return found


def drawn(half: Side, n: int, labels: int, draw: int) -> Task:
    """Return n documents, so many of each class labeled and the rest as they come."""
    order = np.random.default_rng(draw).permutation(len(half.y))
    known = np.concatenate([order[half.y[order] == k][:labels] for k in np.unique(half.y)])
    rest = order[~np.isin(order, known)][: n - len(known)]
    y = np.concatenate([half.y[known], np.full(len(rest), -1)])
    X = half.X[np.concatenate([known, rest])]
    words = np.flatnonzero(X.sum(axis=0))
    X, X_test = preprocess("l2-log", X[:, words], half.X_test[:, words])
    return Task(X, y, half.words[words], X_test, half.y_test)


def main() -> None:
    asked = parser(__doc__)
    asked.add_argument("--strength", type=float, help="only the ways with this one")
    asked.add_argument("--far", action="store_true", help="aviation reports to medical abstracts")
    options = asked.parse_args()
    name = "transfer" if options.strength is None else f"transfer_{options.strength:g}"
    name += "_far" if options.far else ""
    ways = [way for way in WAYS if options.strength in (None, way[2])]
    table = Table(name, COLUMNS, options.quick)
    sizes, draws = ((200,), 1) if options.quick else ((500, 1500), 5)
    for split in ("aviation to medicine",) if options.far else ("every second", "first ten"):
        source, goal = far() if options.far else halves(split)
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
                        prior = carried_parts(parts.components_, source.words, task.words)
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
