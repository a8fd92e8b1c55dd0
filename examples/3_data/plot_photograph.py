"""
A photograph, painted by a few strokes
======================================

A person marks a few spots of a photograph. Each small tile is a sample, and what it is made of is
counted: its colors, and how they change from pixel to pixel. Nearly all tiles are unlabeled.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image

from marginparts import NMFAlphaClassifier

photo = load_sample_image("china.jpg")
size = 8
height, width = (n // size for n in photo.shape[:2])
photo = photo[: height * size, : width * size]

# %%
# Counts of a tile: 64 kinds of color (four levels each of red, green and blue), and how large the
# differences of brightness are, across and down, in eight steps each.

color = (photo // 64).astype(int) @ [16, 4, 1]
bright = photo.mean(axis=2)
steps = [0, 2, 4, 8, 16, 32, 64, 128, 256]
across = np.digitize(np.abs(np.diff(bright, axis=1, append=bright[:, -1:])), steps) - 1
down = np.digitize(np.abs(np.diff(bright, axis=0, append=bright[-1:])), steps) - 1


def tiles(kind, n):
    """Count the kinds in every tile."""
    cut = kind.reshape(height, size, width, size).swapaxes(1, 2).reshape(height * width, -1)
    return np.stack([(cut == k).sum(axis=1) for k in range(n)], axis=1).astype(float)


X = np.hstack([tiles(color, 64), tiles(across, 8), tiles(down, 8)])

# %%
# The strokes: some tiles of sky and water, of the temple, and of the trees.

y = np.full((height, width), -1)
names = ["sky and water", "temple", "trees"]
y[6, 8:14] = y[14, 62:68] = y[34, 48:54] = 0
y[11, 24:29] = y[25, 22:32] = y[33, 22:30] = y[36, 22:32] = y[41, 22:32] = y[41, 38:43] = 1
y[26, 73:77] = y[38, 70:74] = y[44, 4:8] = y[44, 52:58] = y[48, 64:70] = 2
print((y >= 0).sum(), "of", y.size, "tiles are marked")

model = NMFAlphaClassifier(12, rehearse=False, max_iter=50, random_state=0).fit(X, y.ravel())
said = model.predict(X).reshape(height, width)

figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
colors = np.array([[0.25, 0.5, 1.0], [1.0, 0.3, 0.2], [0.1, 0.8, 0.2]])
for axis, marks, strength in ((axes[0], y, 1.0), (axes[1], said, 0.45)):
    wide = np.kron(marks, np.ones((size, size), dtype=int))
    shown = photo / 255.0
    there = wide >= 0
    shown[there] = (1 - strength) * shown[there] + strength * colors[wide[there]]
    axis.imshow(shown)
    axis.set_axis_off()
axes[0].set_title("what was marked")
axes[1].set_title("what it made of the rest")
for name, c in zip(names, colors, strict=True):
    axes[1].plot([], [], "s", color=c, label=name)
axes[1].legend(loc="upper right", fontsize=8)
plt.show()

# %%
# Nobody labeled this photograph in full, so there is no accuracy to give; look for yourself. Dark
# wood in the shade of the roofs has the colors of trees, and is often taken for them. A tile
# knows nothing of its neighbors: single tiles in the wrong color are the price of that.
