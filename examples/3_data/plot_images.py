"""
Images
======

The ten digits, five labels of each. The parts of images are images, so one can see what the
classifier goes by.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.svm import LinearSVC

from marginparts import NMFAlphaClassifier

digits = load_digits()
X, truth = digits.data / 16, digits.target
rng = np.random.default_rng(0)
known = np.concatenate([rng.choice(np.flatnonzero(truth == c), 5, False) for c in range(10)])
y = np.full(len(truth), -1)
y[known] = truth[known]
hidden = y == -1

model = NMFAlphaClassifier(32, output="projection", rehearse=False, max_iter=50, random_state=0)
model.fit(X, y)
predicted = model.predict(X)
svm = LinearSVC().fit(X[known], truth[known])
print(f"NMF-alpha: {np.mean(predicted[hidden] == truth[hidden]):.1%} of {hidden.sum()} images")
print(f"linear SVM on pixels: {svm.score(X[hidden], truth[hidden]):.1%}")

# %%
# For each digit the labeled images, and then the three parts that speak most for it.

figure, axes = plt.subplots(8, 10, figsize=(9, 7.4), layout="constrained")
for digit in range(10):
    column = axes[:, digit]
    for axis, row in zip(column[:5], known[truth[known] == digit], strict=True):
        axis.imshow(digits.images[row], cmap="gray_r")
    for axis, part in zip(column[5:], np.argsort(-model.coef_[digit])[:3], strict=True):
        axis.imshow(model.parts_.components_[part].reshape(8, 8), cmap="Blues")
    column[0].set_title(digit)
for axis in axes.flat:
    axis.set_xticks([])
    axis.set_yticks([])
axes[2, 0].set_ylabel("labeled images", fontsize=11)
axes[6, 0].set_ylabel("parts that\nspeak for it", fontsize=11)
plt.show()

# %%
# And some of the images that it got wrong, those first of which it was surest. Few labels miss
# whole ways to write a digit, and such errors come in groups.

values = model.decision_function(X)
wrong = np.flatnonzero(hidden & (predicted != truth))
sure = np.sort(values[wrong], axis=1)
wrong = wrong[np.argsort(sure[:, -2] - sure[:, -1])][:16]
figure, axes = plt.subplots(2, 8, figsize=(9, 2.8), layout="constrained")
for axis, row in zip(axes.flat, wrong, strict=False):
    axis.imshow(digits.images[row], cmap="gray_r")
    axis.set_title(f"{predicted[row]}, not {truth[row]}", fontsize=9)
for axis in axes.flat:
    axis.set_axis_off()
plt.show()
