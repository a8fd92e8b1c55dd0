"""MNIST, 4 against 9, with RBF landmarks: accuracy with 2, 10 and 100 % of the labels.

    MARGINPARTS_DATA=path/to/data python benchmarks/landmarks.py [--draws 3] [--shares 0.02,0.1,1]
    python benchmarks/landmarks.py --pixels
    python benchmarks/landmarks.py --svm
    python benchmarks/landmarks.py --ten --draws 5
    python benchmarks/landmarks.py --validate [--sharpness 6] [--landmarks 2000] [--parts auto]

Rows of pixels and of landmarks have length 1. With --pixels it is the classifier without landmarks,
with --svm scikit-learn's RBF SVM on the labeled images, whose C and gamma are chosen by three folds
of (at most 1,200 of) them: the same draws of the labels. With --validate a quarter of the training
rows is the test, another one for each draw, and the test rows are not looked at: that is how the
options are to be chosen. With --ten it is all ten digits, on the rows of the race with few labels
(docs/few-labels.md), ten labels a class; there are label spreading and an RBF SVM as well.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, normalize
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from common import parser
from marginparts import Landmarks, NMFAlphaClassifier
from marginparts.datasets import load_paper_data
from marginparts.experiments.few_labels.collections import load_collection, prepared_rows
from marginparts.experiments.few_labels.methods import CONTESTANTS, Trial
from marginparts.experiments.few_labels.race import draw_rows, known_labels


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--sharpness", type=float, default=6.0)
    options.add_argument("--landmarks", type=int, default=2000)
    options.add_argument("--parts", default="auto", help="a number, or auto")
    options.add_argument("--shares", default="0.02,0.1,1")
    options.add_argument("--draws", type=int, default=1)
    options.add_argument("--validate", action="store_true")
    kind = options.add_mutually_exclusive_group()
    kind.add_argument("--pixels", action="store_true")
    kind.add_argument("--svm", action="store_true")
    kind.add_argument("--ten", action="store_true")
    given = options.parse_args()
    if given.ten:
        ten_digits(given)
        return
    if given.quick:
        given.landmarks, given.shares = 50, "0.02"
    for share in map(float, given.shares.split(",")):
        scores = []
        for draw in range(given.draws):
            began = time.perf_counter()
            scores.append(score(given, share, draw))
            took = time.perf_counter() - began
            print(f"  draw {draw}, {100 * share:g} %: {scores[-1]:.2f} ({took:.0f} s)", flush=True)
        where = "rows held out of training" if given.validate else "test rows"
        print(f"{named(given)}, {100 * share:g} %: {np.mean(scores):.2f} ({where})", flush=True)


def named(given: Any) -> str:
    """Say what is tried."""
    if given.svm:
        return "RBF SVM"
    what = f"{given.landmarks} landmarks, sharpness {given.sharpness:g}"
    return f"{'pixels' if given.pixels else what}, {given.parts} parts"


def score(given: Any, share: float, draw: int) -> float:
    """Fit to one draw of the labels, and return the accuracy."""
    X, y, X_test, y_test = rows(given.validate, draw)
    known = np.random.default_rng(draw).permutation(len(y))[: int(share * len(y))]
    if given.svm:
        return 100 * rbf_svm(X[known], y[known]).score(X_test, y_test)
    partly = np.full(len(y), -1)
    partly[known] = y[known]
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return 100 * classifier(given, draw, given.pixels).fit(X, partly).score(X_test, y_test)


def classifier(given: Any, seed: int, pixels: bool) -> Any:
    """Return the classifier, for pixels or for landmarks."""
    parts = given.parts if given.parts == "auto" else int(given.parts)
    near = Landmarks(n_landmarks=given.landmarks, sharpness=given.sharpness, random_state=seed)
    steps = [] if pixels else [near, Normalizer()]
    return make_pipeline(*steps, NMFAlphaClassifier(parts, rehearse=False, random_state=seed))


def rbf_svm(X: Any, y: Any) -> Any:
    """Return an RBF SVM, tuned on 1,200 of the rows."""
    grid = {"C": [1, 10, 100], "gamma": [0.3, 1, 3]}
    best = GridSearchCV(SVC(), grid, cv=3).fit(X[:1200], y[:1200]).best_params_
    return SVC(**best).fit(X, y)


def ten_digits(given: Any) -> None:
    """Print the mean accuracy on all ten digits with ten labels a class."""
    digits = load_collection("mnist")
    X, X_test = prepared_rows("mnist", "unit")
    scores: dict[str, list[float]] = {}
    for draw in range(given.draws):
        known = draw_rows(digits, 10, draw)
        labels = known_labels(digits.y_train, known, np.arange(10))
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            said = {
                "pixels": classifier(given, draw, True).fit(X, labels.codes).predict(X_test),
                f"{given.landmarks} landmarks": classifier(given, draw, False)
                .fit(X, labels.codes)
                .predict(X_test),
                "RBF SVM": rbf_svm(X[known], digits.y_train[known]).predict(X_test),
                "label spreading": CONTESTANTS["label_spreading"].predict(
                    Trial(X, labels, X_test, draw)
                )[0],
            }
        for name, guess in said.items():
            scores.setdefault(name, []).append(100 * float(np.mean(guess == digits.y_test)))
            print(f"  draw {draw}, {name}: {scores[name][-1]:.2f}", flush=True)
    for name, own in scores.items():
        print(f"ten digits, 10 labels a class, {name}: {np.mean(own):.2f} (test rows)")


def rows(validate: bool, draw: int) -> tuple[Any, Any, Any, Any]:
    """Return training rows with their labels, and those that are predicted."""
    data = load_paper_data("mnist")
    X, X_test = (normalize(np.asarray(X, np.float32)) for X in (data.X_train, data.X_test))
    if not validate:
        return X, data.y_train, X_test, data.y_test
    order = np.random.default_rng(100 + draw).permutation(len(X))
    held, rest = np.split(order, [len(X) // 4])
    return X[rest], data.y_train[rest], X[held], data.y_train[held]


if __name__ == "__main__":
    main()
