"""
Seeds: words in the place of labels
===================================

Not one label, but two words for each class that somebody who knows the field would name at once.
"""

import matplotlib.pyplot as plt
import numpy as np

from marginparts import NMFAlphaClassifier, seed_columns
from marginparts.datasets import load_docstrings

docs = load_docstrings()
seeds = {
    "numpy.random": ["distribution", "generator"],
    "scipy.ndimage": ["image", "footprint"],
    "scipy.signal": ["filter", "signals"],
    "scipy.special": ["bessel", "elliptic"],
    "sklearn.linear_model": ["regression", "lasso"],
}
rows = np.flatnonzero(np.isin(docs.target_names[docs.target], list(seeds)))
X, truth = docs.data[rows], docs.target_names[docs.target[rows]]
classes = np.array(list(seeds))

# %%
# How far do the words themselves go? A text gets the class whose words it has most often. Most
# texts have none of them.

columns = seed_columns(seeds, docs.feature_names)
votes = np.stack([X[:, list(columns[name])].sum(axis=1) for name in classes], axis=1)
counted = np.where(votes.max(axis=1) > 0, classes[votes.argmax(axis=1)], "no word")
print(f"{np.mean(counted == 'no word'):.0%} of the texts have none of the words")

# %%
# The classifier takes the words for a hint, and learns from all texts what else goes with them.

model = NMFAlphaClassifier(16, seeds=columns, max_iter=50, random_state=0).fit(X.log1p())
predicted = model.predict(X.log1p())

figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained", sharey=True)
for axis, guess, title in (
    (axes[0], counted, "words counted"),
    (axes[1], predicted, "parts, from the same words"),
):
    names = [*classes, "no word"] if axis is axes[0] else classes
    table = np.array([[np.mean(guess[truth == a] == b) for b in names] for a in classes])
    axis.imshow(table, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    for (i, j), value in np.ndenumerate(table):
        axis.text(
            j, i, f"{100 * value:.0f}", ha="center", va="center", color="w" if value > 0.5 else "k"
        )
    axis.set_xticks(range(len(names)), names, rotation=30, ha="right")
    axis.set(xlabel="said", title=f"{title}: {np.mean(guess == truth):.0%} right")
axes[0].set_yticks(range(len(classes)), classes)
axes[0].set_ylabel("true, % of each row")
plt.show()

# %%
# It can go wrong where a class's words do not reach: texts about distributions are in
# ``scipy.special``, too, and two words cannot tell them from ``numpy.random``.
#
# Without labels nothing can say how good it is: ``honest_score_`` is NaN. Ten labels change that,
# and labels win over seeds where they disagree.

print("honest score:", model.honest_score_)
