"""
Several labels a sample
=======================

Two handwritten digits that lie half on top of each other: each image has two labels out of ten.
``y`` is then a table of 0 and 1, a column a label, with ``-1`` where nothing is known.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import f1_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

from marginparts import NMFAlphaClassifier

digits = load_digits()
rng = np.random.default_rng(0)
pairs = rng.integers(0, len(digits.images), (1200, 2))
images = np.zeros((1200, 8, 13))
images[:, :, :8] = digits.images[pairs[:, 0]] / 16
images[:, :, 5:] = np.maximum(images[:, :, 5:], digits.images[pairs[:, 1]] / 16)
X = images.reshape(1200, -1)
truth = np.zeros((1200, 10), dtype=int)
truth[np.arange(1200)[:, None], digits.target[pairs]] = 1

# %%
# The first 150 images have their labels, the next 650 have none, and the last 400 are for the test.
# The rival is a linear SVM for each label, which sees the labeled images.

Y = truth[:800].copy()
Y[150:] = -1
model = NMFAlphaClassifier(32, random_state=0).fit(X[:800], Y)
predicted = model.predict(X[800:])
svm = OneVsRestClassifier(LinearSVC()).fit(X[:150], truth[:150]).predict(X[800:])
for name, guess in (("linear SVMs", svm), ("NMF-alpha", predicted)):
    print(f"{name:12} F {f1_score(truth[800:], guess, average='micro'):.2f}", end=", ")
    print(f"both digits right for {np.mean((guess == truth[800:]).all(axis=1)):.0%}")

# %%
# Some test images, with the digits that were found. Red ones are wrong, and a digit in brackets
# was missed. The first row are images that are right altogether, the second row are others.

good = (predicted == truth[800:]).all(axis=1)
chosen = np.concatenate([np.flatnonzero(good)[:7], np.flatnonzero(~good)[:7]])
figure, axes = plt.subplots(2, 7, figsize=(9, 3), layout="constrained")
for axis, row in zip(axes.flat, chosen, strict=True):
    axis.imshow(images[800 + row], cmap="gray_r")
    axis.set_axis_off()
    found, there = predicted[row] == 1, truth[800 + row] == 1
    said = [str(k) for k in np.flatnonzero(found)] + [
        f"({k})" for k in np.flatnonzero(there & ~found)
    ]
    axis.set_title(" ".join(said), color="C0" if good[row] else "C3", fontsize=12)
plt.show()

# %%
# Each label is a question of its own, and some are easier than others.

figure, axis = plt.subplots(figsize=(7, 3.2), layout="constrained")
for shift, guess, name, color in (
    (-0.2, svm, "linear SVMs", "0.6"),
    (0.2, predicted, "NMF-alpha", "C0"),
):
    each = f1_score(truth[800:], guess, average=None)
    axis.bar(np.arange(10) + shift, each, 0.38, label=name, color=color)
axis.set_xticks(range(10), digits.target_names)
axis.set(xlabel="digit", ylabel="F", ylim=(0, 1))
axis.legend(ncols=2)
plt.show()
