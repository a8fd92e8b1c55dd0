"""
Reading the parts
=================

A part is a list of words with weights: a topic. Which topics speak for a label, and which against
it, is what a linear classifier on the parts has to say.
"""

import matplotlib.pyplot as plt
import numpy as np

from marginparts import NMFAlphaClassifier, plot_components, top_words
from marginparts.datasets import load_docstrings

docs = load_docstrings()
kinds = ["numpy.random", "scipy.signal", "scipy.special", "sklearn.linear_model", "sklearn.metrics"]
rows = np.flatnonzero(np.isin(docs.target_names[docs.target], kinds))
X, truth = docs.data[rows].log1p(), docs.target_names[docs.target[rows]]
y = np.where(np.arange(len(truth)) % 10 == 0, truth, None)  # one text in ten is labeled

model = NMFAlphaClassifier(12, output="gram", random_state=0).fit(X, y)
print(f"{model.honest_score_:.0%} right of labels that were hidden from it")

# %%
# ``plot_components`` draws the words that tell a part from the others. Such a list can be read
# without knowing anything of the labels.

figure = plot_components(model, docs.feature_names, n_parts=12, n_words=6)

# %%
# The classifier has one number for each part and label. Blue speaks for the label, red against it.

words = top_words(model, docs.feature_names, n=3).groupby("part")["word"].agg(", ".join)
weights = model.coef_ / np.abs(model.coef_).max()
order = np.argsort(weights.argmax(axis=0), kind="stable")
figure, axis = plt.subplots(figsize=(7, 5), layout="constrained")
shown = axis.imshow(weights[:, order].T, cmap="RdBu", vmin=-1, vmax=1, aspect="auto")
axis.set_xticks(range(len(kinds)), model.classes_, rotation=20, ha="right")
axis.set_yticks(range(12), words.iloc[order])
figure.colorbar(shown, label="weight in the classifier")
plt.show()

# %%
# A text is a mixture of parts, so the same numbers say why it got its label.

text = int(np.flatnonzero(truth == "scipy.signal")[3])
share = (
    model.parts_.transform(X[[text]])[0] * model.coef_[list(model.classes_).index("scipy.signal")]
)
print(docs.names[rows[text]], "was called", model.predict(X[[text]])[0])
for part in np.argsort(-np.abs(share))[:3]:
    print(f"{share[part]:+.2f}  {words.iloc[part]}")
