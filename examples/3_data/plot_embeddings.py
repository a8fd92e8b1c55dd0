"""
Embeddings: data of either sign
===============================

Vectors of an encoder have negative entries, and no nonnegative parts. ``SemiNMFAlpha`` lets the
parts have either sign and keeps the codes nonnegative; the margin is kept as ever.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.svm import LinearSVC

from marginparts import SemiNMFAlpha
from marginparts.datasets import load_docstrings

# %%
# In the place of an encoder, which would have to be downloaded: 100 singular vectors of tf-idf, in
# rows of length 1. One text in ten is labeled.

docs = load_docstrings()
kinds = [
    "numpy.ma", "numpy.random", "scipy.linalg", "scipy.ndimage",
    "scipy.optimize", "scipy.signal", "scipy.stats", "sklearn.linear_model",
]  # fmt: skip
rows = np.flatnonzero(np.isin(docs.target_names[docs.target], kinds))
truth = docs.target[rows]
weighted = TfidfTransformer(sublinear_tf=True).fit_transform(docs.data[rows])
vectors = TruncatedSVD(100, random_state=0).fit_transform(weighted)
vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
y = np.where(np.arange(len(truth)) % 10 == 0, truth, -1)
hidden = y == -1

# %%
# Few dimensions that keep what an SVM needs: parts with the margin, parts without it (``lam=0``),
# and principal components, by how many there are.

numbers = [4, 8, 16, 32]


def right(codes):
    """Train an SVM on the labeled codes, and return its accuracy on the others."""
    codes = codes / np.linalg.norm(codes, axis=1, keepdims=True)
    return LinearSVC().fit(codes[~hidden], truth[~hidden]).score(codes[hidden], truth[hidden])


curves = {"with the margin": [], "without (lam = 0)": [], "principal components": []}
for r in numbers:
    for name, lam in (("with the margin", 10.0), ("without (lam = 0)", 0.0)):
        parts = SemiNMFAlpha(r, lam=lam, output="projection", max_iter=60, random_state=0)
        curves[name].append(100 * right(parts.fit(vectors, y).transform(vectors)))
    curves["principal components"].append(
        100 * right(PCA(r, random_state=0).fit_transform(vectors))
    )

figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
for (name, values), style in zip(curves.items(), ("o-", "o--", "s:"), strict=True):
    axis.plot(numbers, values, style, label=name)
axis.axhline(100 * right(vectors), color="0.6")
axis.text(4, 100 * right(vectors), "SVM on all 100 numbers", color="0.4", va="bottom")
axis.set_xscale("log")
axis.set_xticks(numbers, numbers)
axis.minorticks_off()
axis.set(xlabel="dimensions", ylabel="right, % of unlabeled texts")
axis.legend()
plt.show()

# %%
# With very few dimensions the margin does not fit in, and with many nothing need be chosen: at 32
# principal components are as good, or better. In between labels say what is worth keeping.
#
# ``margin_kept_`` says how much of each class's hyperplane lies in the span of the parts.

parts = SemiNMFAlpha(16, lam=10.0, output="projection", max_iter=60, random_state=0).fit(vectors, y)
plain = PCA(16, random_state=0).fit(vectors)
planes = parts.margin_components_[0::2] - parts.margin_components_[1::2]
planes = np.asarray(planes)
lost = np.sum((planes @ plain.components_.T) ** 2, axis=1) / np.sum(planes**2, axis=1)
for name, ours, theirs in zip(parts.margin_names_, parts.margin_kept_, lost, strict=True):
    title = docs.target_names[int(name)]
    print(f"{title:22} {ours:4.0%} of the hyperplane kept, {theirs:4.0%} by principal components")

# %%
# ``NMFAlphaClassifier(embedded="all")`` does all of this in one step, with teachers;
# :doc:`/embeddings` says how vectors go beside words.
