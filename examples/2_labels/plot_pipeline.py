"""
A pipeline and a grid search, done right
========================================

To scikit-learn ``-1`` is a class like any other. A pipeline that ends in one of its classifiers
learns to say "unlabeled", cross-validation rewards it for that, and nothing warns.
``LabeledOnly`` and ``LabeledKFold`` put it right.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from marginparts import LabeledKFold, LabeledOnly, NMFAlpha

digits = load_digits()
rows = np.random.default_rng(0).permutation(len(digits.data))[:600]  # they come by writer
X, truth = digits.data[rows] / 16, digits.target[rows]
y = np.where(np.arange(600) < 100, truth, -1)  # 100 labels of ten digits
unseen = y == -1

# %%
# Three ways to do the same, each with what cross-validation says of it and what is true: its
# accuracy on the images whose labels it was not given.

parts = NMFAlpha(8, max_iter=30, tol=0, random_state=0)
ways = {
    "as it is": (make_pipeline(parts, LinearSVC()), 4),
    "LabeledOnly": (make_pipeline(parts, LabeledOnly(LinearSVC())), 4),
    "LabeledOnly and\nLabeledKFold": (
        make_pipeline(parts, LabeledOnly(LinearSVC())),
        LabeledKFold(4),
    ),
}
said, true = [], []
for pipeline, folds in ways.values():
    said.append(cross_val_score(pipeline, X, y, cv=folds, scoring="accuracy").mean())
    true.append(np.mean(pipeline.fit(X, y).predict(X[unseen]) == truth[unseen]))

figure, axis = plt.subplots(figsize=(7, 3.8), layout="constrained")
place = np.arange(3)
for shift, values, name, color in (
    (-0.2, said, "cross-validation says", "C1"),
    (0.2, true, "true", "C0"),
):
    bars = axis.bar(place + shift, 100 * np.array(values), 0.38, label=name, color=color)
    axis.bar_label(bars, fmt="%.0f")
axis.set_xticks(place, ways)
axis.set(ylabel="accuracy, %", ylim=(0, 108))
axis.legend(ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1))
plt.show()

# %%
# - *As it is* the score looks fine and the classifier is useless: it calls nearly everything
#   unlabeled.
# - With ``LabeledOnly`` the classifier is good, but plain folds count every unlabeled row of a test
#   fold as an error.
# - With both, the score is about what is true. A hundred labels make four folds of twenty-five, so
#   it may still be off by some points.
#
# The same folds go into a grid search, here over the number of parts and the weight of the margin.

grid = {"nmfalpha__n_components": [4, 8, 16], "nmfalpha__lam": [0, 1, 10]}
search = GridSearchCV(
    make_pipeline(NMFAlpha(max_iter=30, tol=0, random_state=0), LabeledOnly(LinearSVC())),
    grid,
    cv=LabeledKFold(4),
).fit(X, y)
table = search.cv_results_["mean_test_score"].reshape(3, 3)  # rows: lam, columns: parts

figure, axis = plt.subplots(figsize=(5.5, 3.2), layout="constrained")
axis.imshow(table, cmap="Blues", aspect="auto")
for (row, column), value in np.ndenumerate(table):
    dark = value > table.mean()
    axis.text(
        column, row, f"{100 * value:.0f}", ha="center", va="center", color="w" if dark else "k"
    )
axis.set_xticks(range(3), grid["nmfalpha__n_components"])
axis.set_yticks(range(3), grid["nmfalpha__lam"])
axis.set(xlabel="parts", ylabel="lam", title="right of hidden labels, %")
plt.show()
print(search.best_params_)
print(f"on the {unseen.sum()} other images: {search.score(X[unseen], truth[unseen]):.1%}")
