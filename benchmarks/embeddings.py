"""Embeddings with few labels: the same encoder and labels, with and without us.

python benchmarks/embeddings.py [--draws 5] [--data sms_spam,ohsumed,news] [--labels 5,20,50]
python benchmarks/embeddings.py --show --methods vectors

A word's vector is that of wordllama (its wheel has the weights: pip install wordllama==0.3.9), a
text's is the mean of its words' vectors weighted by tf-idf. Collections, draws and test rows are
those of the race with few labels (docs/few-labels.md). Logistic regression and the linear SVM see
all 256 dimensions and choose C among 0.1 to 1000 by folds of the labels; ours has 64 parts of each
view and nothing else set. Rows that are in the results are not computed again.
Means are over the draws that all methods shown have.
"""

import argparse
import csv
import gzip
import logging
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.preprocessing import normalize
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from marginparts import NMFAlphaClassifier
from marginparts.datasets import data_folder, load_paper_data
from marginparts.experiments.few_labels import collections
from marginparts.experiments.few_labels.race import draw_rows
from marginparts.weighting import idf_of, log, weighted_rows

RESULTS = Path(__file__).parent / "results" / "embeddings.csv"
FIELDS = ("data", "labels", "draw", "method", "score", "seconds")


def word_vectors(words):
    """The vectors (m, 256) of wordllama; nothing is downloaded."""
    import wordllama

    logging.getLogger().setLevel(logging.WARNING)  # it turns on what all packages have to say
    home = Path(wordllama.__file__).parent
    return wordllama.WordLlama.load(cache_dir=home, disable_download=True).embed(words)


def embedded(name):
    """Vectors of length 1 for the training and test rows of a collection."""
    if name == "news":
        words = [str(word) for word in load_paper_data("news").feature_names]
    else:
        with gzip.open(data_folder() / "fewlabel" / name / "words.txt.gz", "rt") as file:
            words = file.read().split()
    train, _, test, _ = collections._whole(name, None)
    train, test = (sp.csr_array(X).astype(np.float32) for X in (train, test))
    idf, vectors = idf_of(train), word_vectors(words)
    some = collections._draw(train, collections.MOST_TRAINING)
    others = collections._draw(test, collections.MOST_TEST)
    some = some[np.asarray(train[some].sum(axis=1)).ravel() > 0]
    return [normalize(weighted_rows(log(X), idf) @ vectors) for X in (train[some], test[others])]


def tuned(model, X, y):
    """C by as many folds as the labels allow, or 10."""
    folds = min(3, np.bincount(y).max())
    grid = {"C": [0.1, 1, 10, 100, 1000]}
    return GridSearchCV(model, grid, cv=StratifiedKFold(folds, shuffle=True, random_state=0)).fit(
        X, y
    )


def methods(words, vectors):
    """What is compared, as functions of training rows, known labels and test rows."""
    both = [
        sp.csr_array(sp.hstack([w, sp.csr_array(v)])) for w, v in zip(words, vectors, strict=True)
    ]

    def linear(model):
        def run(rows, y, draw):
            return tuned(model, vectors[0][rows], y).predict(vectors[1])

        return run

    def ours(data, columns):
        def run(rows, y, draw):
            known = np.full(data[0].shape[0], -1)
            known[rows] = y
            model = NMFAlphaClassifier(64, embedded=columns, rehearse=False, random_state=draw)
            return model.fit(data[0], known).predict(data[1])

        return run

    return {
        "logistic regression, vectors": linear(LogisticRegression(max_iter=3000)),
        "linear SVM, vectors": linear(LinearSVC()),
        "ours, vectors": ours(vectors, "all"),
        "ours, words": ours(words, 0),
        "ours, both": ours(both, vectors[0].shape[1]),
    }


def done():
    if not RESULTS.exists():
        return []
    with RESULTS.open(newline="") as file:
        return list(csv.DictReader(file))


def show(rows, endings):
    names = [
        name for name in dict.fromkeys(row["method"] for row in rows) if name.endswith(endings)
    ]
    print("| data | labels a class | draws |", " | ".join(names), "|")
    print("|--- |---: |---: |" + "---: |" * len(names))
    for data, labels in dict.fromkeys((row["data"], row["labels"]) for row in rows):
        own = [row for row in rows if (row["data"], row["labels"]) == (data, labels)]
        found = {
            name: {r["draw"]: float(r["score"]) for r in own if r["method"] == name}
            for name in names
        }
        common = set.intersection(*(set(scores) for scores in found.values()))  # no draw by half
        means = " | ".join(
            f"{np.mean([scores[draw] for draw in common]):.1f}" for scores in found.values()
        )
        print(f"| {data} | {labels} | {len(common)} | {means} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--data", default="sms_spam,ohsumed,news")
    parser.add_argument("--labels", default="5,20,50")
    parser.add_argument("--methods", default="", help="only those with one of these endings")
    parser.add_argument("--show", action="store_true", help="only show what is there")
    args = parser.parse_args()
    kept, endings = done(), tuple(args.methods.split(","))
    seen = {tuple(row[name] for name in FIELDS[:4]) for row in kept}
    for name in () if args.show else args.data.split(","):
        collection = collections.load_collection(name)
        runs = methods(collections.prepared_rows(name, "log"), embedded(name))
        for draw in range(args.draws):
            for labels in args.labels.split(","):
                rows = draw_rows(collection, int(labels), draw)
                for method, run in runs.items():
                    if not method.endswith(endings) or (name, labels, str(draw), method) in seen:
                        continue
                    began = time.perf_counter()
                    with threadpool_limits(1), warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        guess = run(rows, collection.y_train[rows], draw)
                    score = 100 * float(np.mean(guess == collection.y_test))
                    seconds = round(time.perf_counter() - began, 1)
                    row = (name, labels, str(draw), method, round(score, 2), seconds)
                    kept.append(dict(zip(FIELDS, row, strict=True)))
                    with RESULTS.open("w", newline="") as file:
                        writer = csv.DictWriter(file, FIELDS)
                        writer.writeheader()
                        writer.writerows(kept)
    show(kept, endings)


if __name__ == "__main__":
    main()
