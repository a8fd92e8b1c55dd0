"""Test accuracy of the classifier, nothing set, on the paper's splits of News and MNIST.

    MARGINPARTS_DATA=path/to/data python benchmarks/shares.py [--splits 2] [--data news]

The rows and labels are those of ``marginparts reproduce table2``: training rows drawn anew for each
split, the first of them labeled, and the test rows of the collection. Nothing is chosen on the
validation rows of the split; they are not used.
"""

from __future__ import annotations

import time

import numpy as np

from common import parser
from marginparts import NMFAlphaClassifier
from marginparts.datasets import load_paper_data
from marginparts.experiments.protocol import draw_trial
from records import Table

COLUMNS = ("data", "share", "split", "parts", "accuracy", "seconds")

#: The collections with how their rows are prepared, and the shares of labels of the paper.
TASKS = {"news": ("l2-log", (0.2, 0.4, 1.0)), "mnist": ("counts", (0.02, 0.1, 1.0))}


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--splits", type=int, default=5)
    options.add_argument("--data", choices=tuple(TASKS), action="append")
    options.add_argument("--share", type=float, action="append")
    given = options.parse_args()
    table = Table("shares", COLUMNS, given.quick)
    for name in given.data or TASKS:
        preparation, shares = TASKS[name]
        data = load_paper_data(name)
        for share in given.share or (shares[:1] if given.quick else shares):
            found = []
            for split in range(1 if given.quick else given.splits):
                trial = draw_trial(data, preparation, split)
                model = NMFAlphaClassifier(random_state=split)
                began = time.perf_counter()
                model.fit(trial.X_train, trial.labels(share).codes)
                seconds = time.perf_counter() - began
                right = model.predict(trial.X_test) == trial.test.codes
                found.append(100 * float(np.mean(right)))
                table.add(
                    data=name, share=share, split=split, parts=model.n_components,
                    accuracy=round(found[-1], 3), seconds=round(seconds, 2),
                )  # fmt: skip
                print(f"  split {split}: {found[-1]:.2f} %, {seconds:.1f} s", flush=True)
            print(f"{name}, {100 * share:g} % of the labels: {np.mean(found):.1f} %", flush=True)


if __name__ == "__main__":
    main()
