"""
Gaps: values that are missing
=============================

A value that is missing is no zero. With ``missing="nan"`` the loss is that of the values that are
known, and the parts say what the others would be.
"""

import matplotlib.pyplot as plt
import numpy as np

from marginparts import NMFAlpha
from marginparts.datasets import load_digits_49

digits = load_digits_49()
images = digits.data
rng = np.random.default_rng(0)

# %%
# Images of fours and nines from which pixels are taken, by lot.


def gaps(share):
    """Return the images without a share of their pixels."""
    return np.where(rng.random(images.shape) < share, np.nan, images)


def filled(holes, n_parts=16):
    """Return what some parts make of the gaps."""
    parts = NMFAlpha(n_parts, missing="nan", max_iter=150, tol=0, random_state=0).fit(holes)
    return parts.fill(holes)


holes = gaps(0.4)
means = np.where(np.isnan(holes), np.nanmean(holes, axis=0), holes)
figure, axes = plt.subplots(4, 9, figsize=(9, 4.4), layout="constrained")
rows = rng.choice(len(images), 9, replace=False)
shown = {"whole": images, "40 % gone": holes, "means": means, "parts": filled(holes)}
color = plt.get_cmap("gray_r").copy()
color.set_bad("#ffd9a0")
for line, (name, data) in zip(axes, shown.items(), strict=True):
    for axis, row in zip(line, rows, strict=True):
        axis.imshow(data[row].reshape(8, 8), cmap=color, vmin=0, vmax=1)
        axis.set_xticks([])
        axis.set_yticks([])
    line[0].set_ylabel(name)
plt.show()

# %%
# How far off is a missing pixel, on average? The mean of a pixel over all images is the same
# guess for every image; parts know the rest of the image. The less is left of it, the fewer parts
# it can tell: sixteen do harm when more than half of the pixels are gone, and four when most are.
# ``how_many_parts`` finds such a number without knowing the truth.

shares = [0.1, 0.3, 0.5, 0.6, 0.7, 0.8]
errors = []
for share in shares:
    holes = gaps(share)
    gone = np.isnan(holes)
    guesses = (
        np.broadcast_to(np.nanmean(holes, axis=0), images.shape),
        filled(holes, 4),
        filled(holes),
    )
    errors.append([np.abs(guess - images)[gone].mean() for guess in guesses])

figure, axis = plt.subplots(figsize=(7, 3.8), layout="constrained")
names = ("mean of the pixel", "4 parts", "16 parts")
for values, name, style in zip(np.transpose(errors), names, ("s:", "o--", "o-"), strict=True):
    axis.plot(100 * np.array(shares), values, style, label=name)
axis.set(xlabel="pixels that are missing, %", ylabel="error of a missing pixel", ylim=(0, 0.5))
axis.legend()
plt.show()
