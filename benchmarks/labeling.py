"""A simulated annotator: what asked labels are worth, when it stops, which labels it suspects.

    MARGINPARTS_DATA=path/to/data python benchmarks/labeling.py [--seeds 3] [--data docstrings ...]

For each seed 80 % of the training rows of a collection are the pool; the annotator answers with
their labels. After 100 asked labels the teachers' accuracy on the test rows is compared with that
after 100 and 150 labels drawn at random, by the same code. `--suspects` flips 5 % of 300 random
labels and counts how many of the first n suspects, n the number of flipped ones, are right: ours,
and cleanlab's by the same hidden probabilities and by those of a logistic regression on tf-idf
(`pip install cleanlab`). `--speed` times what a person waits for, `--kills 50` kills an annotator
at random moments and looks for what it was told is kept. Several labels a row are scored by the
F-measure, as everywhere.
"""

from __future__ import annotations

import csv
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from common import parser
from marginparts.datasets import load_docstrings
from marginparts.experiments.few_labels.collections import load_collection, prepared_rows
from marginparts.labeling import Labeling, Pool
from marginparts.labeling.journal import Journal
from marginparts.labeling.learning import Learner, labels_of
from marginparts.labeling.suspicion import evidence_of, suspects
from marginparts.scores import f_from_counts
from records import RESULTS, Table

COLLECTIONS = (
    "docstrings", "sms_spam", "webkb", "ohsumed", "yahoo_arts", "usps", "fsdd",
)  # fmt: skip

#: Labels asked, drawn at random, and after how many it learns.
ASKED, RANDOM, STEP = 100, 150, 5


def rows_of(name: str) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    data = load_collection(name)
    X, Y = prepared_rows(name, "log" if sp.issparse(data.X_train) else "unit")
    return X, data.y_train, Y, data.y_test


def names_of(y: np.ndarray) -> list[tuple[str, ...]]:
    if y.ndim == 1:
        return [(str(label),) for label in y]
    return [tuple(str(k) for k in np.flatnonzero(row)) for row in y]


class Judge:
    """Scores sets of labeled rows by what the teachers then say of the test rows."""

    def __init__(self, X: Any, y: np.ndarray, Y: Any, truth: np.ndarray) -> None:
        both = sp.vstack([X, Y], "csr") if sp.issparse(X) else np.vstack([X, Y])
        self.learner = Learner.of(both, y.ndim == 2)
        self.labels, self.truth, self.n = names_of(y), truth, X.shape[0]

    def score(self, rows: np.ndarray) -> float:
        """Return the accuracy, or the F-measure, with the labels of some rows."""
        answers = {int(row): self.labels[row] for row in rows}
        labels, names = labels_of(answers, self.learner.X.shape[0], self.learner.several)
        hits = self.learner.hidden(labels).hits
        best = self.learner.understand(labels, names, hits).best(self.learner.several)[self.n :]
        if not self.learner.several:
            return float(np.mean(np.array([int(n) for n in names])[best] == self.truth))
        given = np.zeros_like(self.truth)
        given[:, [int(name) for name in names]] = best
        hit, wrong = (given & self.truth).sum(axis=0), (given != self.truth).sum(axis=0)
        return f_from_counts(hit, wrong)


def simulate(
    X: Any, y: np.ndarray, rows: np.ndarray, n: int, advised: bool
) -> tuple[list[int], int | None]:
    """Return the rows that were asked about, in order, and the labels at which it said stop."""
    labels = names_of(y)
    pool = Pool.of(X[rows])
    labeling = Labeling(pool, several=y.ndim == 2, background=False)
    stopped = None
    labeling.refit.learn(check=False)
    for k in range(n):
        sample = labeling.next()
        assert sample is not None
        labeling.answer(sample["id"], labels[rows[sample["row"] - 1]])
        if k % STEP == STEP - 1:
            check = k % (2 * STEP) == 2 * STEP - 1
            labeling.refit.learn(check=check)
            if advised and check and stopped is None and labeling.status()["advice"]["stop"]:
                stopped = k + 1
    order = [int(rows[pool.rows[name]]) for name in labeling.state.answers]
    return order, stopped


def race(name: str, seed: int, table: Table, longest: int) -> None:
    X, y, Y, truth = rows_of(name)
    judge = Judge(X, y, Y, truth)
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.permutation(X.shape[0])[: int(0.8 * X.shape[0])])
    began = time.perf_counter()
    order, stopped = simulate(X, y, rows, max(longest, ASKED), longest > ASKED)
    seconds = time.perf_counter() - began
    drawn = rng.permutation(rows)
    at = None if stopped is None else judge.score(np.array(order[:stopped]))
    table.add(
        data=name, seed=seed, asked=judge.score(np.array(order[:ASKED])),
        random_100=judge.score(drawn[:ASKED]), random_150=judge.score(drawn[:RANDOM]),
        stop_at=stopped, at_stop=at,
        final=judge.score(np.array(order)) if longest > ASKED else None, seconds=seconds,
    )  # fmt: skip


def suspicion(name: str, seed: int, table: Table) -> None:
    """Flip labels and look for them."""
    X, y, _, _ = rows_of(name)
    if y.ndim == 2:
        return
    rng = np.random.default_rng(seed)
    rows = rng.permutation(X.shape[0])[:300]
    given = y.copy()
    flipped = rows[:15]
    classes = np.unique(y[rows])
    for row in flipped:
        given[row] = rng.choice(classes[classes != y[row]])
    learner = Learner.of(X, False)
    labels, _ = labels_of({int(r): (str(given[r]),) for r in rows}, X.shape[0], False)
    held = learner.hidden(labels, seed)
    codes = labels.codes[held.rows]
    evidence, _ = evidence_of(held.even, codes)
    wrong = np.isin(held.rows, flipped)
    listed = np.isin(held.rows, [suspect.row for suspect in suspects(held, labels)])
    found = {"ours": precision(-evidence - 100 * listed, wrong)}  # those that it lists come first
    try:
        from cleanlab.rank import get_label_quality_scores
    except ImportError:
        print("cleanlab is not installed")
    else:
        P = np.asarray(held.even, dtype=np.float64)
        P /= P.sum(axis=1, keepdims=True)
        for method in ("self_confidence", "normalized_margin"):
            quality = get_label_quality_scores(codes, P, method=method)
            found[f"cleanlab {method}"] = precision(quality, wrong)
        plain = logistic(X, labels, held.rows, seed)
        quality = get_label_quality_scores(codes, plain, method="self_confidence")
        found["cleanlab, logistic regression"] = precision(quality, wrong)
    for method, value in found.items():
        table.add(data=name, seed=seed, method=method, precision=value)


def precision(quality: np.ndarray, wrong: np.ndarray) -> float:
    n = int(wrong.sum())
    return float(wrong[np.argsort(quality, kind="stable")[:n]].mean())


def logistic(X: Any, labels: Any, rows: np.ndarray, seed: int) -> np.ndarray:
    """Return hidden probabilities of logistic regression on the same folds."""
    from sklearn.linear_model import LogisticRegression

    from marginparts.weighting import usual_weights, weighted_rows

    weights = usual_weights(X)
    Z = X if weights is None else weighted_rows(X, weights)
    order = np.random.default_rng(seed).permutation(rows)
    P = np.zeros((len(labels.codes), len(labels.classes)))
    for k in range(5):
        fold, rest = order[k::5], np.setdiff1d(order, order[k::5])
        model = LogisticRegression(C=10.0, max_iter=1000).fit(Z[rest], labels.codes[rest])
        P[np.ix_(fold, model.classes_)] = model.predict_proba(Z[fold])
    return np.asarray(P[rows])


def speed(table: Table, n_answers: int) -> None:
    """Answer for 10,000 texts while it learns in its thread, and time what a person waits for."""
    from marginparts.datasets import load_paper_data
    from marginparts.weighting import l2_log

    data = load_paper_data("news")
    X, y = l2_log(data.X_train[:10_000]), data.y_train[:10_000]
    labeling = Labeling(Pool.of(X), who="clock")
    labels = names_of(y)
    waits, learned = [], []
    try:
        version = -1
        while labeling.refit.busy or labeling.refit.version == 0:
            time.sleep(0.05)
        for k in range(n_answers):
            began = time.perf_counter()
            sample = labeling.next()
            assert sample is not None
            waits.append(time.perf_counter() - began)
            labeling.answer(sample["id"], labels[sample["row"] - 1])
            waits.append(time.perf_counter() - began - waits[-1])
            if k % STEP == STEP - 1 and k >= 10:
                version, began = labeling.refit.version, time.perf_counter()
                labeling.refit.wake(now=True)
                while labeling.refit.version == version and time.perf_counter() - began < 60:
                    time.sleep(0.01)
                    asked = time.perf_counter()
                    labeling.next()
                    waits.append(time.perf_counter() - asked)
                learned.append(time.perf_counter() - began)
    finally:
        labeling.close()
    for what, seconds in (("next or answer", waits), ("new suggestions", learned)):
        table.add(what=what, times=len(seconds), median=float(np.median(seconds)),
                  longest=max(seconds))  # fmt: skip


def annotate(file: str) -> None:
    """Answer as fast as it can until it is killed; name each answer that was confirmed."""
    labeling = Labeling(file, text="text", who="hasty")
    while sample := labeling.next():
        labeling.answer(sample["id"], [f"label {len(sample['text']) % 5}"])
        print(sample["id"], flush=True)
        time.sleep(0.1)


def kills(times: int, log: Path) -> None:
    """Kill an annotator at random moments, and look for what it was told is kept."""
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder, log.open("w") as told:
        file, heard = Path(folder, "docs.csv"), Path(folder, "heard.txt")
        with file.open("w", newline="") as target:
            csv.writer(target).writerows([["text"], *([d] for d in load_docstrings().documents)])
        confirmed: set[str] = set()
        for k in range(times):
            with heard.open("a") as out:
                child = subprocess.Popen([sys.executable, __file__, "--annotate", file], stdout=out)
                wait = float(rng.uniform(2, 12))
                time.sleep(wait)
                child.send_signal(signal.SIGKILL)
                child.wait()
            *whole, _ = heard.read_text().split("\n")  # the last may be cut short
            confirmed = set(whole)
            journal = Journal(f"{file}.labels.jsonl")
            kept = {event.get("sample") for event in journal.events}
            told.write(
                f"kill {k + 1} after {wait:.2f} s: {len(confirmed)} answers confirmed so far, "
                f"{len(confirmed - kept)} of them lost, {journal.damaged} lines cut short\n"
            )
            told.flush()
            assert confirmed <= kept
        labeling = Labeling(file, text="text", background=False)
        lost = confirmed - set(labeling.state.answers)
        told.write(f"{times} kills, {len(confirmed)} answers confirmed, {len(lost)} lost\n")


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--data", nargs="*", default=COLLECTIONS)
    options.add_argument("--longest", type=int, default=ASKED, help="labels, to see when it stops")
    options.add_argument("--suspects", action="store_true")
    options.add_argument("--speed", action="store_true")
    options.add_argument("--kills", type=int, help="kill an annotator so often")
    options.add_argument("--annotate", metavar="FILE", help="be that annotator")
    given = options.parse_args()
    seeds = range(1 if given.quick else given.seeds)
    names = given.data[:1] if given.quick else given.data
    if given.annotate:
        annotate(given.annotate)
        return
    if given.kills:
        kills(given.kills, RESULTS / "labeling_kills.txt")
        return
    if given.speed:
        table = Table("labeling_speed", ("what", "times", "median", "longest"), given.quick)
        speed(table, 20 if given.quick else 100)
        return
    if given.suspects:
        table = Table("labeling_suspects", ("data", "seed", "method", "precision"), given.quick)
    else:
        columns = (
            "data", "seed", "asked", "random_100", "random_150", "stop_at", "at_stop", "final",
            "seconds",
        )  # fmt: skip
        table = Table("labeling", columns, given.quick)
    for seed in seeds:
        for name in names:
            if given.suspects:
                suspicion(name, seed, table)
            else:
                race(name, seed, table, given.longest)
            print(name, seed, "is done", flush=True)


if __name__ == "__main__":
    main()
