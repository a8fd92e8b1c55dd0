"""
What to label next
==================

Labels cost time, and some teach more than others. ``Labeling`` asks for the samples that would
settle most doubt. Here a program answers in the place of a person, and we look at what the answers
are worth beside those for samples drawn by lot.
"""

import matplotlib.pyplot as plt
import numpy as np

from marginparts import Labeling, NMFAlphaClassifier
from marginparts.datasets import load_docstrings

docs = load_docstrings()
kinds = ["numpy.ma", "numpy.random", "scipy.signal", "scipy.special", "sklearn.metrics"]
rows = np.flatnonzero(np.isin(docs.target_names[docs.target], kinds))[::2]
truth = docs.target_names[docs.target[rows]]
X = docs.data[rows].log1p()

# %%
# The loop: ask, answer, and learn after every eighth answer. ``marginparts label FILE`` is the same
# on a page in the browser, and learns while you read.

labeling = Labeling(X, background=False)
asked = []
for k in range(40):
    sample = labeling.next()
    row = sample["row"] - 1
    labeling.answer(sample["id"], [truth[row]])
    asked.append(row)
    if k % 8 == 7:
        labeling.learn()

# %%
# After 10, 20 and 40 labels a classifier is fitted, and judged on all texts that nobody labeled.


def right(chosen):
    """Return the accuracy on the texts that were not chosen."""
    y = np.full(len(truth), None, dtype=object)
    y[chosen] = truth[chosen]
    if len(set(truth[chosen])) < 2:
        return 0.0
    model = NMFAlphaClassifier(16, rehearse=False, max_iter=20, random_state=0).fit(X, y)
    rest = np.setdiff1d(np.arange(len(truth)), chosen)
    return np.mean(model.predict(X[rest]) == truth[rest])


numbers = [10, 20, 40]
by_asking = [100 * right(asked[:n]) for n in numbers]
draws = [np.random.default_rng(seed).permutation(len(truth)) for seed in range(2)]
by_lot = np.array([[100 * right(draw[:n]) for n in numbers] for draw in draws])

figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained", width_ratios=(3, 2))
axes[0].plot(numbers, by_asking, "o-", label="asked for")
axes[0].plot(numbers, by_lot.mean(axis=0), "o-", color="0.5", label="by lot, mean of two draws")
axes[0].plot(numbers, by_lot.T, ".", color="0.5", alpha=0.6)
axes[0].set_xticks(numbers, numbers)
axes[0].set(xlabel="labels", ylabel="right, % of the others")
axes[0].legend(loc="lower right")
shares = [
    [np.mean(truth[chosen] == kind) for kind in kinds]
    for chosen in (asked[:20], np.arange(len(truth)))
]
for shift, share, name, color in (
    (-0.2, shares[0], "the first 20 asked for", "C0"),
    (0.2, shares[1], "all texts", "0.6"),
):
    axes[1].barh(np.arange(5) + shift, 100 * np.array(share), 0.38, label=name, color=color)
axes[1].set_yticks(range(5), kinds)
axes[1].invert_yaxis()
axes[1].set(xlabel="share, %")
axes[1].legend(loc="lower right", fontsize=8)
plt.show()

# %%
# One run of one collection says little; :doc:`/labeling` has the comparison on seven of them. What
# can be seen here is how it goes about it. The first questions are asked before it has seen a label
# of every kind, for samples that are unlike each other, and need be no better than a draw. Later
# ones go where it is in doubt, and kinds that are told easily get less than their share of them.
