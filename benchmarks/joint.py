"""Joint directions beside class sums and fixed duals, on five splits of the paper's protocol.

    MARGINPARTS_DATA=path/to/data python benchmarks/joint.py [--data news] [--rows 3000] [--show]

Training rows, labeled ones first, and test rows are those of `benchmarks/shares.py`, or the first
--rows of the training rows (0 for all), of which the same share is labeled. The parts are those of
`NMFAlpha` (32, lam 3, 100 iterations, nothing else set), and the last SVM sees the codes of the
labeled rows alone, as in the paper; its cost is the default. "joint" has as many rounds as a fold
of the labels is in favor of; "rounds" is how many, and "all" what five rounds come to without that
evidence. Rounds are also iterations: "longer" are fixed duals with as many as five rounds have.
With few-label collections (webkb, ohsumed, usps) it is 20 labels a class, draws for splits. What is
in the results is not computed again.
"""

import argparse
import csv
import time
import warnings
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np

from marginparts import NMFAlpha
from marginparts.datasets import load_paper_data
from marginparts.estimators._joint import ITERATIONS, ROUNDS, _evidence, rounds_of
from marginparts.experiments.few_labels import collections
from marginparts.experiments.few_labels.race import draw_rows
from marginparts.experiments.protocol import draw_trial
from marginparts.labels import encode_labels
from marginparts.scores import quality
from marginparts.svm.head import fit_head

RESULTS = Path(__file__).parent / "results" / "joint.csv"
FIELDS = (
    *("data", "rows", "share", "split", "class", "fixed", "longer", "joint", "rounds", "all"),
    *("fell", "seconds"),
)
TASKS = {"news": ("l2-log", (0.2,)), "mnist": ("counts", (0.02, 0.1))}
PARTS, LAM, FIRST = 32, 3.0, 100


def task(name, share, split, most):
    """The rows, the labels that are known, and the test."""
    if name in TASKS:
        trial = draw_trial(load_paper_data(name), TASKS[name][0], split)
        n = min(most or trial.X_train.shape[0], trial.X_train.shape[0])
        labels = trial.train.take(np.arange(n)).hide(np.arange(round(share * n), n))
        return trial.X_train[:n], labels, trial.X_test, trial.test
    own = collections.load_collection(name)
    X, X_test = collections.prepared_rows(name, "log")
    labels = encode_labels(np.concatenate([own.y_train, own.y_test]))
    n, rows = len(own.y_train), draw_rows(own, int(share), split)
    known = labels.take(np.arange(n)).hide(np.setdiff1d(np.arange(n), rows))
    return X, known, X_test, labels.take(np.arange(n, len(labels.codes)))


def gone_on(X, labels, recipe, fit, seed):
    """The fit with fixed duals after as many more iterations as all rounds have."""
    run = replace(recipe.run, init=(fit.result.H, fit.result.V), max_iter=ROUNDS * ITERATIONS)
    more = replace(recipe, run=run).parts(X, labels, fit.found.S, PARTS, (LAM,), seed)
    return next(iter(more))[1]


def unit(name, share, split, most=0):
    """One row of the table."""
    began = time.perf_counter()
    X, labels, X_test, test = task(name, share, split, most)
    known = np.flatnonzero(labels.labeled)

    def score(recipe, result):
        n = recipe.map.map_iter
        train, other = (recipe.codes(A, result, (n,), None)[n] for A in (X[known], X_test))
        head = fit_head(train, labels.take(known), recipe.head.C)
        return 100 * quality(head.values(other), test)

    sums = NMFAlpha(PARTS, directions="class", max_iter=FIRST)._recipe()
    first = next(rounds_of(X, labels, sums, PARTS, LAM, split))
    recipe = NMFAlpha(PARTS, max_iter=FIRST)._recipe()
    scores, objective = [], []
    for each in islice(rounds_of(X, labels, recipe, PARTS, LAM, split), ROUNDS + 1):
        if not scores:
            longer = score(recipe, gone_on(X, labels, recipe, each, split))
        scores.append(score(recipe, each.result))
        objective += each.objective
    evidence = _evidence(X, labels, recipe, PARTS, LAM, split)
    rounds = min(int(np.argmax(evidence)), len(scores) - 1) if evidence else 0
    fell = 100 * (objective[0] - objective[-1]) / abs(objective[0])
    found = (score(sums, first.result), scores[0], longer, scores[rounds], rounds, scores[-1], fell)
    numbers = [round(float(value), 2) for value in found]
    return (name, X.shape[0], share, split, *numbers, round(time.perf_counter() - began, 1))


def done():
    if not RESULTS.exists():
        return []
    with RESULTS.open(newline="") as file:
        return list(csv.DictReader(file))


def told_of(gain):
    """A mean with its standard error."""
    return f"{gain.mean():+.1f} ± {gain.std(ddof=1) / np.sqrt(len(gain)):.1f} ({len(gain)})"


def show(rows):
    shown = ("class sums", "fixed duals", "fixed, longer", "joint", "joint, all rounds")
    print(
        "| data | rows | labels | splits |", " | ".join(shown), "| joint - fixed | all - longer |"
    )
    print("|--- |" + "---: |" * (len(shown) + 5))
    for data, share in dict.fromkeys((row["data"], row["share"]) for row in rows):
        own = [row for row in rows if (row["data"], row["share"]) == (data, share)]
        names = ("class", "fixed", "longer", "joint", "all")
        found = {name: np.array([float(row[name] or "nan") for row in own]) for name in names}
        many = f"{100 * float(share):g} %" if float(share) < 1 else f"{float(share):g} a class"
        means = " | ".join(f"{np.nanmean(scores):.1f}" for scores in found.values())
        gains = [found["joint"] - found["fixed"], found["all"] - found["longer"]]
        told = " | ".join(told_of(gain[~np.isnan(gain)]) for gain in gains)
        print(f"| {data} | {own[0]['rows']} | {many} | {len(own)} | {means} | {told} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--first", type=int, default=0, help="the first split")
    parser.add_argument("--data", default="news,mnist,webkb,ohsumed,usps")
    parser.add_argument("--show", action="store_true", help="only show what is there")
    args = parser.parse_args()
    warnings.simplefilter("ignore")  # iterations that end before the tolerance
    kept = done()
    seen = {(row["data"], float(row["share"]), int(row["split"])) for row in kept}
    for name in () if args.show else args.data.split(","):
        shares = TASKS[name][1] if name in TASKS else (20,)
        for split in range(args.first, args.first + args.splits):
            for share in shares:
                if (name, float(share), split) in seen:
                    continue
                row = dict(zip(FIELDS, map(str, unit(name, share, split, args.rows)), strict=True))
                print(row, flush=True)
                first = not RESULTS.exists()
                with RESULTS.open("a", newline="") as file:
                    writer = csv.DictWriter(file, FIELDS)
                    if first:
                        writer.writeheader()
                    writer.writerow(row)
    show(sorted(done(), key=lambda row: (row["data"], float(row["share"]), int(row["split"]))))


if __name__ == "__main__":
    main()
