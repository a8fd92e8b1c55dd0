"""One H for words and vectors, or codes side by side? An SVM on either, with the same labels.

python benchmarks/shared_codes.py [--data news,ohsumed] [--labels 20] [--draws 2]

The classifier has parts of words and parts of vectors, each with codes of their own. Here it is
compared with one matrix of codes that explains both, by 64 parts with a block of words and a block
of vectors: H, V and U that minimize

    D(X, H V') + weight / 2 |Y - H U'|^2

over words X and vectors Y, and over the margin components that the classifier found, as further
rows. The weight is in units in which the two losses are the same where nothing is explained: each
row by the sums of X, and by the mean of Y. Beside the shared codes stand the projections of words
and of vectors onto their blocks, as the classifier has them. Vectors are those of `embeddings.py`;
unlabeled rows have the labels that the classifier gives them, at 0.3 of the weight.
"""

import argparse
import warnings

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from embeddings import embedded
from marginparts import NMFAlphaClassifier
from marginparts.backends.base import safe_ratio
from marginparts.experiments.few_labels import collections
from marginparts.experiments.few_labels.race import draw_rows
from marginparts.solve.map import projection
from marginparts.weighting import idf_of

WEIGHTS = (0.0, 0.1, 0.3, 1.0, 3.0)
ROUNDS, MAP_ROUNDS, AT_ONCE = 60, 40, 1 << 18


def ratios(X, H, V):
    """X / (H V') over the nonzeros of X (n, d)."""
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    fit = np.empty(X.nnz)
    for start in range(0, X.nnz, AT_ONCE):
        some = slice(start, start + AT_ONCE)
        fit[some] = np.einsum("ek,ek->e", H[rows[some]], V[X.indices[some]])
    return sp.csr_array((X.data / np.maximum(fit, 1e-12), X.indices, X.indptr), shape=X.shape)


def update_codes(X, Y, H, V, U, weight):
    """The minimum of a bound in which every entry h of H stands alone: b h^2 + u h - a log h."""
    YU, UU = Y @ U, U.T @ U
    a = H * (ratios(X, H, V) @ V) + weight * H * (np.maximum(YU, 0) + H @ np.maximum(-UU, 0))
    b = safe_ratio(weight * (np.maximum(-YU, 0) + H @ np.maximum(UU, 0)), H)
    u = V.sum(axis=0)
    return safe_ratio(2 * a, u + np.sqrt(u * u + 4 * a * b))


def shared_parts(X, Y, H, V, weight):
    """V (d, r) and U (k, r) after some rounds; U is solved exactly."""
    turned = sp.csr_array(X.T)
    for _ in range(ROUNDS):
        U = np.linalg.lstsq(H, Y)[0].T
        H = update_codes(X, Y, H, V, U, weight)
        V = V * safe_ratio(ratios(turned, V, H) @ H, H.sum(axis=0))
    return V, np.linalg.lstsq(H, Y)[0].T


def shared_codes(X, Y, V, U, weight):
    """Codes (n, r) of rows, from a flat start."""
    H = np.repeat(np.asarray(X.sum(axis=1)).reshape(-1, 1) / V.sum() + 1e-9, V.shape[1], axis=1)
    for _ in range(MAP_ROUNDS):
        H = update_codes(X, Y, H, V, U, weight)
    return H


def shares(H, V):
    """Square roots of the share that each part has in a row."""
    mass = H * V.sum(axis=0)
    return np.sqrt(safe_ratio(mass, mass.sum(axis=1, keepdims=True)))


def accuracy(train, test, guessed, weights, truth):
    """Of an SVM on codes of length 1, less their mean and in units of their spread."""
    train, test = normalize(train), normalize(test)
    middle = train.mean(axis=0)
    spread = np.sqrt(np.mean(np.sum((train - middle) ** 2, axis=1)))
    svm = LinearSVC(C=4).fit((train - middle) / spread, guessed, sample_weight=weights)
    return 100 * np.mean(svm.predict((test - middle) / spread) == truth)


def with_margins(model, words, vectors):
    """Words and vectors with the margin components below them, weighed as the classifier does."""
    lam = model.lam_
    below = [own.directions_.T for own in (model.parts_, model.embedding_parts_)]
    XS, YS = sp.csr_array(below[0] @ words) * lam, normalize(below[1] @ vectors)
    YS *= np.sqrt(lam * np.sum(vectors**2) / len(YS))
    both = min(XS.shape[0], len(YS))
    return sp.csr_array(sp.vstack([words, XS[:both]])), np.vstack([vectors, YS[:both]])


def same_units(X, Y):
    """The weight at which both losses are the same where nothing is explained."""
    rows, columns = np.asarray(X.sum(axis=1)).ravel(), np.asarray(X.sum(axis=0)).ravel()
    of_each = np.repeat(rows, np.diff(X.indptr))
    flat = np.sum(X.data * np.log(X.data * rows.sum() / (of_each * columns[X.indices])))
    return flat / (0.5 * np.sum((Y - Y.mean(axis=0)) ** 2))


def compared(name, labels, draw):
    """Accuracies on test rows: of the classifier, of its codes, of shared ones by their weight."""
    collection = collections.load_collection(name)
    words = [sp.csr_array(each).astype(float) for each in collections.prepared_rows(name, "log")]
    vectors = [each.astype(float) for each in embedded(name)]
    both = [sp.csr_array(sp.hstack(pair)) for pair in zip(words, vectors, strict=True)]
    rows, truth = draw_rows(collection, labels, draw), collection.y_test
    known = np.full(len(collection.y_train), -1)
    known[rows] = collection.y_train[rows]
    model = NMFAlphaClassifier(
        64, embedded=vectors[0].shape[1], rehearse=False, random_state=draw
    ).fit(both[0], known)
    weights, guessed = np.where(known == -1, 0.3, 1.0), np.where(
        known == -1, model.predict(both[0]), known
    )  # fmt: skip
    found = {"classifier": 100 * np.mean(model.predict(both[1]) == truth)}
    found["side by side"] = accuracy(*map(model._codes, both), guessed, weights, truth)
    X, Y = with_margins(model, words[0], vectors[0])
    start = model.parts_.components_.T.astype(float)
    H = shared_codes(X, Y, start, np.zeros((Y.shape[1], start.shape[1])), 0.0)
    unit, idf = same_units(X, Y), idf_of(words[0])
    for weight in WEIGHTS:
        V, U = shared_parts(X, Y, H, start, weight * unit)
        onto_words, onto_vectors = projection(V, idf), projection(U)
        codes = [
            np.hstack([w @ onto_words, v @ onto_vectors, shares(own, V)])
            for w, v in zip(words, vectors, strict=True)
            for own in [shared_codes(w, v, V, U, weight * unit)]
        ]
        found[f"shared, {weight:g}"] = accuracy(*codes, guessed, weights, truth)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="news,ohsumed")
    parser.add_argument("--labels", type=int, default=20)
    parser.add_argument("--draws", type=int, default=2)
    args = parser.parse_args()
    titles = ("classifier", "side by side", *(f"shared, {weight:g}" for weight in WEIGHTS))
    print("| data | labels a class | draws |", " | ".join(titles), "|")
    print("|--- |---: |---: |" + "---: |" * len(titles))
    for name in args.data.split(","):
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = [compared(name, args.labels, draw) for draw in range(args.draws)]
        means = " | ".join(f"{np.mean([each[title] for each in found]):.1f}" for title in titles)
        print(f"| {name} | {args.labels} | {args.draws} | {means} |", flush=True)


if __name__ == "__main__":
    main()
