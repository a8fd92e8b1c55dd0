"""A simulated annotator: what asked labels are worth, when it stops, which labels it suspects.

    MARGINPARTS_DATA=path/to/data python benchmarks/labeling.py [--seeds 0 1 2] [--data usps ...]
    python benchmarks/labeling.py --show

For each seed some training rows of a collection can be asked about, and some test rows lie beside
them in the pool, which are never asked about; the annotator answers with the true labels. After
every 20 labels the accuracy on the test rows, and all that the advice to stop comes from, is
written down; so is the accuracy after 100 and 150 labels drawn at random, by the same code.
`--show` sums up: 100 asked labels against 150 random ones, and how far the accuracy at the advice
to stop, which is given anew by what was written down, is from that at the end of the session.
Sessions are added to the file unless `--anew` is said.

`--suspects` flips 5 % of 300 random labels and counts how many of the first n suspects, n the
number of flipped ones, are right: ours, and cleanlab's by the same hidden probabilities and by
those of a logistic regression on tf-idf (`pip install cleanlab`). `--speed` times what a person
waits for, `--kills 50` kills an annotator at random moments and looks for what it was told is kept.
Several labels a row are scored by the F-measure, as everywhere.
"""

from __future__ import annotations

import csv
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from common import parser
from marginparts.datasets import load_docstrings
from marginparts.experiments.few_labels.collections import load_collection, prepared_rows
from marginparts.labeling import Labeling, Pool, progress
from marginparts.labeling.journal import Journal
from marginparts.labeling.learning import Beliefs, Learner, labels_of
from marginparts.labeling.suspicion import evidence_of, suspects
from marginparts.scores import f_from_counts
from records import RESULTS, Table

COLLECTIONS = (
    "docstrings", "sms_spam", "webkb", "ohsumed", "yahoo_arts", "usps", "fsdd",
)  # fmt: skip

#: Labels asked, drawn at random, and after how many it learns and looks how good it is.
ASKED, RANDOM, STEP, CHECK = 100, 150, 5, 20

#: Rows that can be asked about, and test rows, at most.
ROWS, TEST = 900, 500


def rows_of(name: str) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    data = load_collection(name)
    X, Y = prepared_rows(name, "log" if sp.issparse(data.X_train) else "unit")
    return X, data.y_train, Y, data.y_test


def names_of(y: np.ndarray) -> list[tuple[str, ...]]:
    if y.ndim == 1:
        return [(str(label),) for label in y]
    return [tuple(str(k) for k in np.flatnonzero(row)) for row in y]


class Session:
    """A pool in which some rows can be asked about, and others are for the test."""

    def __init__(self, name: str, seed: int) -> None:
        X, y, Y, truth = rows_of(name)
        rng = np.random.default_rng(seed)
        asked = rng.permutation(X.shape[0])[: min(ROWS, int(0.8 * X.shape[0]))]
        test = rng.permutation(Y.shape[0])[:TEST]
        pieces = X[np.sort(asked)], Y[np.sort(test)]
        self.pool = Pool.of(sp.vstack(pieces, "csr") if sp.issparse(X) else np.vstack(pieces))
        self.n, self.several = len(asked), y.ndim == 2
        self.pool.full = self.pool.full & (np.arange(self.pool.X.shape[0]) < self.n)
        self.labels = names_of(y[np.sort(asked)])
        self.truth = truth[np.sort(test)]
        self.drawn = rng.permutation(np.flatnonzero(self.pool.full))

    def score(self, beliefs: Beliefs) -> float:
        """Return the accuracy, or the F-measure, on the test rows."""
        best = beliefs.best(self.several)[self.n :]
        if not self.several:
            return float(np.mean(np.array([int(n) for n in beliefs.names])[best] == self.truth))
        given = np.zeros_like(self.truth)
        given[:, [int(name) for name in beliefs.names]] = best
        hit, wrong = (given & self.truth).sum(axis=0), (given != self.truth).sum(axis=0)
        return f_from_counts(hit, wrong)

    def asked(self, n: int) -> Iterator[dict[str, Any]]:
        """Answer n questions; yield what is known after every few."""
        labeling = Labeling(self.pool, several=self.several, background=False)
        labeling.refit.learn(check=False)
        for k in range(1, n + 1):
            sample = labeling.next()
            assert sample is not None
            labeling.answer(sample["id"], self.labels[sample["row"] - 1])
            if k % STEP == 0:
                insight = labeling.refit.learn(check=k % CHECK == 0)
            if k % CHECK == 0 and insight.beliefs is not None:
                found = {"labels": k, "score": self.score(insight.beliefs)}
                last = labeling.state.estimates[-1]
                yield found | {name: last.get(name) for name in progress.Measurement._fields[1:]}

    def random(self, n: int) -> float:
        """Return the score after n labels drawn at random."""
        labeling = Labeling(self.pool, several=self.several, background=False)
        for row in map(int, self.drawn[:n]):
            labeling.answer(self.pool.ids[row], self.labels[row])
        labeling.refit.learn()
        beliefs = labeling.refit.learn(check=False).beliefs  # with the teachers weighed
        assert beliefs is not None
        return self.score(beliefs)


#: What is written down of a session.
COLUMNS = ("data", "seed", "how", "labels", "score", *progress.Measurement._fields[1:])


def race(name: str, seed: int, table: Table, longest: int) -> None:
    """Measure one session, unless it is there."""
    with table.path.open(newline="") as file:
        units = {(r["data"], int(r["seed"]), int(r["labels"])) for r in csv.DictReader(file)}
    if (name, seed, longest) in units:
        return
    session = Session(name, seed)
    for n in (ASKED, RANDOM):
        table.add(data=name, seed=seed, how="random", labels=n, score=session.random(n))
    for found in session.asked(longest):
        table.add(data=name, seed=seed, how="asked", **found)


def show(path: Path) -> None:
    """Print what asked labels are worth, and where the advice to stop ends."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    units: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in rows:
        units.setdefault((row["data"], row["seed"]), []).append(row)
    said = []
    for (name, seed), own in sorted(units.items()):
        scores = {(r["how"], int(r["labels"])): 100 * float(r["score"]) for r in own}
        if ("asked", ASKED) not in scores:
            continue  # not done yet
        curve = [r for r in own if r["how"] == "asked"]
        measured = [_measured(r) for r in curve]
        ends = (n + 1 for n in range(len(measured)) if progress.enough(measured[: n + 1]))
        stop = measured[k - 1].labeled if (k := next(ends, None)) else None
        last = measured[-1].labeled
        off = None if stop is None else scores["asked", last] - scores["asked", stop]
        said.append((name, seed, scores, stop, off, last))
    print("data          seed  asked 100  random 100  random 150  stop at  gained by the end")
    for name, seed, scores, stop, off, last in said:
        three = [scores["asked", ASKED], scores["random", ASKED], scores["random", RANDOM]]
        end = "-" if off is None else f"{off:+.1f} ({last})"
        print(f"{name:12s}  {seed:>4s}", *(f"{x:10.1f}" for x in three), f"{stop or '-':>8}  {end}")
    for name in (*dict.fromkeys(each[0] for each in said), "all"):
        some = [each[2] for each in said if name in (each[0], "all")]
        means = [np.mean([s[key] for s in some]) for key in (
            ("asked", ASKED), ("random", ASKED), ("random", RANDOM))]  # fmt: skip
        print(f"{name:12s}  mean", *(f"{x:10.1f}" for x in means), f"  of {len(some)}")
    offs = [off for *_, off, _ in said if off is not None]
    good = sum(off <= 1.0 for off in offs)
    print(f"advised to stop in {len(offs)} of {len(said)}; within a point of the end in {good}")


def _measured(row: dict[str, str]) -> progress.Measurement:
    values = (float(row[name]) if row[name] else None for name in progress.Measurement._fields[1:])
    return progress.Measurement(int(row["labels"]), *values)


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
    options.add_argument("--seeds", type=int, nargs="*", default=(0, 1, 2))
    options.add_argument("--data", nargs="*", default=COLLECTIONS)
    options.add_argument("--longest", type=int, default=240, help="labels of a session")
    options.add_argument("--anew", action="store_true", help="forget earlier sessions")
    options.add_argument("--show", action="store_true", help="sum up what was measured")
    options.add_argument("--suspects", action="store_true")
    options.add_argument("--speed", action="store_true")
    options.add_argument("--kills", type=int, help="kill an annotator so often")
    options.add_argument("--annotate", metavar="FILE", help="be that annotator")
    given = options.parse_args()
    seeds = given.seeds[:1] if given.quick else given.seeds
    names = given.data[:1] if given.quick else given.data
    if given.annotate:
        annotate(given.annotate)
        return
    if given.show:
        show(RESULTS / "labeling.csv")
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
        table = Table("labeling", COLUMNS, given.quick, more=not given.anew)
    for seed in seeds:
        for name in names:
            if given.suspects:
                suspicion(name, seed, table)
            else:
                race(name, seed, table, 40 if given.quick else given.longest)
            print(name, seed, "is done", flush=True)


if __name__ == "__main__":
    main()
