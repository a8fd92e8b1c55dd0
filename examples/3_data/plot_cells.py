"""
Cells
=====

Counts of genes in cells, five labels of each type, and two types that differ in a few genes only.
The counts are made, so that we know which genes these are.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from marginparts import NMFAlphaClassifier

types = ["B", "NK", "monocyte", "T helper", "T killer"]
shares = [0.2, 0.1, 0.3, 0.3, 0.1]
rng = np.random.default_rng(0)
cells, genes = 1000, 400
truth = rng.choice(5, cells, p=shares)

# %%
# Each type has thirty genes of its own; the two kinds of T cells share twenty-two of theirs. Cells
# differ in how many molecules were caught, and genes in how often they are seen at all.

own = {c: np.arange(30 * c, 30 * c + 30) for c in range(5)}
own[4] = np.concatenate([own[3][:22], own[4][:8]])
fold = np.ones((5, genes))
for c, g in own.items():
    fold[c, g] = 4
rate = rng.gamma(0.5, 1, genes) * fold[truth] * rng.lognormal(0, 0.5, (cells, 1))
counts = rng.poisson(rate * rng.gamma(2, 0.5, (cells, genes)))
size = counts.sum(axis=1, keepdims=True)
X = np.log1p(counts / size * np.median(size))

known = np.concatenate([rng.choice(np.flatnonzero(truth == c), 5, False) for c in range(5)])
y = np.full(cells, None, dtype=object)
y[known] = np.array(types)[truth[known]]
hidden = np.setdiff1d(np.arange(cells), known)

model = NMFAlphaClassifier(16, output="gram", rehearse=False, max_iter=60, random_state=0).fit(X, y)
ours = model.predict(X)
rival = LogisticRegression(C=0.1, max_iter=500).fit(X[known], truth[known])
print(f"NMF-alpha: {np.mean(ours[hidden] == np.array(types)[truth[hidden]]):.1%} right")
print(f"logistic regression: {rival.score(X[hidden], truth[hidden]):.1%} right")

# %%
# On the left the parts of every cell, cells in the order of their type: programs of genes that a
# type has, or that several share. On the right how often each type is recognized.

codes = model.transform(X)
codes /= np.linalg.norm(codes, axis=1, keepdims=True)
order = np.argsort(truth, kind="stable")
center = np.array([codes[truth == c].mean(axis=0) for c in range(5)])
parts = np.argsort((center / center.sum(axis=0)).argmax(axis=0), kind="stable")
figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", width_ratios=(3, 2))
axes[0].imshow(codes[order][:, parts].T, aspect="auto", cmap="viridis", interpolation="nearest")
ends = np.cumsum(np.bincount(truth))
for end in ends[:-1]:
    axes[0].axvline(end, color="w", linewidth=1)
axes[0].set_xticks(ends - np.bincount(truth) / 2, types)
axes[0].set(ylabel="parts", title="codes of the cells")
for shift, guess, name, color in (
    (-0.2, np.array(types)[rival.predict(X)], "logistic regression", "0.6"),
    (0.2, ours, "NMF-alpha", "C0"),
):
    each = [np.mean(guess[hidden][truth[hidden] == c] == types[c]) for c in range(5)]
    axes[1].barh(np.arange(5) + shift, 100 * np.array(each), 0.38, label=name, color=color)
axes[1].set_yticks(range(5), types)
axes[1].invert_yaxis()
axes[1].set(xlabel="recognized, %", xlim=(0, 100))
axes[1].legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2, fontsize=8)
plt.show()

# %%
# Unlabeled cells help with everything but the rare kind of T cells: the parts take some of them for
# the frequent kind, and logistic regression takes a third of the frequent kind for the rare one.
# Which error is worse is for you to say: ``class_weight="balanced"`` moves it.
#
# Which genes speak for a type can be read from the parts: those that were made its own come first.

speaks = model.coef_ @ model.parts_.components_
for c, name in enumerate(types):
    row = list(model.classes_).index(name)
    first = np.argsort(-speaks[row])[:10]
    print(f"{name:9} {np.isin(first, own[c]).sum()} of its first ten genes are its own")
