r"""
What the margin adds
====================

Nonnegative matrix factorization keeps what most of the data has in common. What tells a four from
a nine is a small thing, the stroke that closes the top, and may be lost. NMF-alpha takes the
hyperplane of a linear classifier, which knows what tells them apart, and factorizes it along with
the data. The weight :math:`\lambda` says how much that counts.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.svm import LinearSVC

from marginparts import NMFAlpha, plot_path
from marginparts.datasets import load_digits_49

digits = load_digits_49()
X, truth = digits.data, digits.target
rng = np.random.default_rng(0)

# %%
# Sixteen parts from all images, with the labels of forty. As the weight grows the parts go from
# strokes, which add up to digits, to whole fours and nines that are easily taken for each other:
# the examples near the margin.

known = rng.choice(len(X), 40, replace=False)
y = np.full(len(X), -1)
y[known] = truth[known]
parts = NMFAlpha(16, lam=1.0, max_iter=100, tol=0, random_state=0).fit(X, y)
figure = plot_path(parts, X, lams=[0, 1, 10], shape=(8, 8), n_parts=16)

# %%
# How much of the classifier's own hyperplane is left in the parts, and what is it good for? For
# several weights we project the hyperplane onto the span of the parts, and train an SVM on the
# codes of the labeled images. Four parts are few, and what they leave out is missed.

lams = [0, 0.1, 1, 3, 10, 30]
kept, right = np.zeros((4, len(lams))), np.zeros((4, len(lams)))
raw = []
for draw in range(4):
    known = rng.choice(len(X), 40, replace=False)
    y = np.full(len(X), -1)
    y[known] = truth[known]
    hidden = y == -1
    w = LinearSVC().fit(X[known], truth[known]).coef_[0]
    raw.append(LinearSVC().fit(X[known], truth[known]).score(X[hidden], truth[hidden]))
    for k, lam in enumerate(lams):
        fit = NMFAlpha(4, lam=lam, max_iter=60, tol=0, random_state=draw).fit(X, y)
        basis = np.linalg.qr(fit.components_.T)[0]
        kept[draw, k] = np.sum((basis.T @ w) ** 2) / np.sum(w**2)
        codes = fit.transform(X)
        codes /= np.linalg.norm(codes, axis=1, keepdims=True)
        svm = LinearSVC(C=10).fit(codes[known], truth[known])
        right[draw, k] = svm.score(codes[hidden], truth[hidden])

figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for axis, values, title in zip(axes, (kept, right), ("hyperplane kept", "right"), strict=True):
    axis.errorbar(
        range(len(lams)), 100 * values.mean(0), 100 * values.std(0) / np.sqrt(4), marker="o"
    )
    axis.set_xticks(range(len(lams)), lams)
    axis.set(xlabel="weight of the margin (0 is plain NMF)", ylabel="%", title=title)
axes[1].axhline(100 * np.mean(raw), color="0.5", linestyle="--")
axes[1].text(
    5, 100 * np.mean(raw), "linear SVM on all 64 pixels", ha="right", va="top", color="0.4"
)
plt.show()

# %%
# More is not better without end: a very large weight describes the classifier of forty labels,
# its errors included, and forgets the data. The number of parts matters as much: with sixteen of
# them plain NMF is as good on these images (``marginparts demo`` shows it).
# ``NMFAlphaClassifier`` takes a weight that does well on average, and ``NMFAlphaCV`` chooses one.
