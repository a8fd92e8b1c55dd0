"""
A stream that changes
=====================

Samples keep coming, and after a while words mean something else. ``OnlineNMFAlphaClassifier``
learns batch by batch, and forgets if it is told to.
"""

import matplotlib.pyplot as plt
import numpy as np

from marginparts import OnlineNMFAlphaClassifier

# %%
# A made stream: texts of 60 words out of 300, of three classes with 20 words of their own each.
# After half of it two of the classes change places: what spoke for one now speaks for the other.

rng = np.random.default_rng(0)
batch, n_batches = 100, 40
own = np.ones((3, 300))
for c in range(3):
    own[c, 20 * c : 20 * c + 20] = 5
own /= own.sum(axis=1, keepdims=True)


def texts(step):
    """Return one batch: counts of words, and what the texts are about."""
    about = rng.integers(0, 3, batch)
    named = about if step < n_batches // 2 else np.array([1, 0, 2])[about]
    return np.stack([rng.multinomial(60, own[c]) for c in about]).astype(float), named


# %%
# Each batch is first predicted and then learned, with one label in five. One model never forgets,
# the other counts a sample half after 500 more.

models = {
    "never forgets": OnlineNMFAlphaClassifier(12, batch_size=batch, memory=1000, random_state=0),
    "half-life of 500 samples": OnlineNMFAlphaClassifier(
        12, batch_size=batch, memory=1000, half_life=500, random_state=0
    ),
}
right = {name: [] for name in models}
for step in range(n_batches):
    X, truth = texts(step)
    y = np.where(np.arange(batch) % 5 == 0, truth, -1)
    for name, model in models.items():
        if step:
            right[name].append(100 * np.mean(model.predict(X) == truth))
        model.partial_fit(X, y, classes=[0, 1, 2])

figure, axis = plt.subplots(figsize=(8, 3.8), layout="constrained")
for (name, values), style in zip(right.items(), ("--", "-"), strict=True):
    axis.plot(batch * np.arange(1, n_batches), values, style, label=name)
axis.axvline(batch * n_batches / 2, color="0.6")
axis.text(batch * n_batches / 2, 8, " two classes change places", color="0.4")
axis.set(xlabel="samples seen", ylabel="right, % of the next batch", ylim=(0, 102))
axis.legend(loc="lower left")
plt.show()

# %%
# Forgetting is for a world that changes: before the change it is of no use, and where nothing
# changes it wastes data. A memory that is bounded forgets a little by itself.
