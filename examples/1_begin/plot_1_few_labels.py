"""
Few labels on texts
===================

Some hundred texts of eight kinds, and one to fifteen labels of each kind. How many of the other
texts are put right, by a linear SVM on the words and by parts that keep its margin?
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.svm import LinearSVC

from marginparts import NMFAlphaClassifier
from marginparts.datasets import load_docstrings

# %%
# The texts are docstrings of NumPy, SciPy and scikit-learn, from which the names of the packages
# were taken out; the class of a text is the subpackage it comes from. We take every
# second text of eight of them.

docs = load_docstrings()
kinds = [
    "numpy.ma", "numpy.random", "scipy.linalg", "scipy.special",
    "scipy.optimize", "scipy.signal", "scipy.stats", "sklearn.linear_model",
]  # fmt: skip
rows = np.flatnonzero(np.isin(docs.target_names[docs.target], kinds))[::2]
X, truth = docs.data[rows], docs.target[rows]
print(X.shape[0], "texts,", X.shape[1], "words")

# %%
# Labels are drawn by lot, and all other texts are what the classifiers are judged by. The SVM sees
# the labeled texts alone, with words weighted by tf-idf. ``NMFAlphaClassifier`` gets all texts, and
# ``-1`` for a label that is not known. (``rehearse=False`` saves the time in which it would find
# out its own accuracy; it changes no prediction.)


def scores(n_labels, seed):
    """Return the accuracy of both on the texts that were not labeled."""
    rng = np.random.default_rng(seed)
    known = np.concatenate(
        [rng.choice(np.flatnonzero(truth == c), n_labels, False) for c in set(truth)]
    )
    y = np.full(len(truth), -1)
    y[known] = truth[known]
    hidden = y == -1
    weighted = TfidfTransformer(sublinear_tf=True).fit_transform(X)
    svm = LinearSVC().fit(weighted[known], truth[known])
    model = NMFAlphaClassifier(32, rehearse=False, max_iter=40, random_state=0).fit(X.log1p(), y)
    return svm.score(weighted[hidden], truth[hidden]), model.score(X.log1p()[hidden], truth[hidden])


numbers = [1, 3, 5, 15]
found = np.array([[scores(n, seed) for seed in range(2)] for n in numbers]) * 100

# %%
# The line is the mean of two draws of the labels, and the dots are the draws: with one label a
# kind it depends on chance which texts these are. What unlabeled texts bring is most where labels
# are fewest; with fifteen of each kind there is little left to gain.

figure, axis = plt.subplots(figsize=(7, 4.2), layout="constrained")
for k, (name, color) in enumerate([("linear SVM on words", "0.45"), ("NMF-alpha, 32 parts", "C0")]):
    axis.plot(numbers, found[:, :, k].mean(axis=1), color=color, label=name)
    axis.plot(numbers, found[:, :, k], "o", color=color, alpha=0.5, markersize=4)
axis.set_xscale("log")
axis.set_xticks(numbers, numbers)
axis.minorticks_off()
axis.set(xlabel="labels of each kind", ylabel="right, % of the other texts")
axis.legend(loc="lower right")
plt.show()

# %%
# These are texts that the package was tried on while it was made. :doc:`/few-labels` has twelve
# collections and ten rivals, and :doc:`/few-labels-others` twelve more.
