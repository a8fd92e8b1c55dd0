"""Test scores of the classifier, nothing set, on the paper's splits of its three collections.

    MARGINPARTS_DATA=path/to/data python benchmarks/shares.py [--splits 2] [--data news] [--jobs 2]

The rows and labels are those of ``marginparts reproduce table2``: training rows drawn anew for each
split, the first of them labeled, and the test rows of the collection. Nothing is chosen on the
validation rows of the split; they are not used. The score is the accuracy, or where samples have
several labels the mean of the micro and the macro F.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from common import parser
from marginparts import NMFAlphaClassifier
from marginparts.datasets import load_paper_data
from marginparts.experiments.protocol import draw_trial
from marginparts.scores import quality
from records import Table

COLUMNS = ("data", "share", "split", "parts", "score")

#: The collections with how their rows are prepared, and the shares of labels of the paper.
TASKS = {
    "news": ("l2-log", (0.2, 0.4, 1.0)),
    "mnist": ("counts", (0.02, 0.1, 1.0)),
    "aviation-500": ("counts", (0.05, 0.1, 1.0)),
    "aviation-counts": ("l2-log", (0.05, 0.1, 1.0)),
}


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--splits", type=int, default=5)
    options.add_argument("--data", choices=tuple(TASKS), action="append")
    options.add_argument("--share", type=float, action="append")
    options.add_argument("--jobs", type=int, default=1)
    given = options.parse_args()
    units = [
        (name, share, split)
        for name in given.data or TASKS
        for share in given.share or TASKS[name][1][: 1 if given.quick else None]
        for split in range(1 if given.quick else given.splits)
    ]
    names = {(name, str(share), str(split)) for name, share, split in units}
    table = Table(
        "shares", COLUMNS, given.quick,
        keep=lambda row: (row["data"], row["share"], row["split"]) not in names,
    )  # fmt: skip
    found = defaultdict(list)
    rows = Parallel(n_jobs=given.jobs, return_as="generator")(delayed(score)(*u) for u in units)
    for row in rows:
        table.add(**row)
        found[row["data"], row["share"]].append(row["score"])
        print("  {data}, {share:g}, split {split}: {score:.2f} %".format(**row), flush=True)
    for (name, share), scores in found.items():
        spread = f" +- {np.std(scores, ddof=1):.1f}" if len(scores) > 1 else ""
        print(f"{name}, {100 * share:g} % of the labels: {np.mean(scores):.1f}{spread} %")


def score(name: str, share: float, split: int) -> dict[str, Any]:
    """Fit to one split, and return the row of the table."""
    warnings.simplefilter("ignore")  # rare labels that a fold lacks
    trial = draw_trial(load_paper_data(name), TASKS[name][0], split)
    model = NMFAlphaClassifier(random_state=split).fit(trial.X_train, trial.labels(share).codes)
    reached = 100 * quality(_columns(model.decision_function(trial.X_test)), trial.test)
    return {
        "data": name, "share": share, "split": split, "parts": model.n_components,
        "score": round(reached, 3),
    }  # fmt: skip


def _columns(values: np.ndarray) -> np.ndarray:
    return values if values.ndim == 2 else values[:, None]


if __name__ == "__main__":
    main()
