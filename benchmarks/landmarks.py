"""MNIST, 4 against 9, with RBF landmarks: accuracy with 2, 10 and 100 % of the labels.

python benchmarks/landmarks.py [--sharpness 6] [--landmarks 500] [--parts 64] [--validate]
python benchmarks/landmarks.py --svm

One draw of the labels. With --svm it is scikit-learn's RBF SVM on the labeled images, whose C and
gamma are chosen by three folds of (at most 1,200 of) them. With --validate a quarter of the
training rows is the test, and the test rows are not looked at: that is how the options are to be
chosen.
"""

import argparse
import time
import warnings

import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import normalize
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from marginparts import Landmarks, NMFAlphaClassifier
from marginparts.datasets import load_paper_data


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sharpness", type=float, default=6.0)
    parser.add_argument("--landmarks", type=int, default=500)
    parser.add_argument("--parts", type=int, default=64)
    parser.add_argument("--shares", default="0.02,0.1,1")
    parser.add_argument("--validate", action="store_true")
    parser.add_argument("--svm", action="store_true")
    args = parser.parse_args()
    data = load_paper_data("mnist")
    X, y, X_test, y_test = data.X_train, data.y_train, data.X_test, data.y_test
    X, X_test = (normalize(np.asarray(each, dtype=np.float32)) for each in (X, X_test))
    if args.validate:
        order = np.random.default_rng(1).permutation(len(y))
        held, rest = np.split(order, [len(y) // 4])
        X_test, y_test, X, y = X[held], y[held], X[rest], y[rest]
    for share in map(float, args.shares.split(",")):
        known = np.random.default_rng(0).permutation(len(y))[: int(share * len(y))]
        if args.svm:
            grid = {"C": [1, 10, 100], "gamma": [0.3, 1, 3]}
            few = known[:1200]
            best = GridSearchCV(SVC(), grid, cv=3).fit(X[few], y[few]).best_params_
            score = 100 * SVC(**best).fit(X[known], y[known]).score(X_test, y_test)
            print(f"RBF SVM, {100 * share:g} %: {score:.2f} ({best})", flush=True)
            continue
        partly = np.full(len(y), -1)
        partly[known] = y[known]
        model = make_pipeline(
            Landmarks(n_landmarks=args.landmarks, sharpness=args.sharpness, random_state=0),
            NMFAlphaClassifier(args.parts, rehearse=False, random_state=0),
        )
        began = time.perf_counter()
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            score = 100 * model.fit(X, partly).score(X_test, y_test)
        how = f"{args.landmarks} landmarks, sharpness {args.sharpness:g}, {args.parts} parts"
        where = "held out of training" if args.validate else "test"
        took = time.perf_counter() - began
        print(f"{how}, {100 * share:g} %: {score:.2f} ({where}, {took:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
