"""
Cells
=====

Counts of genes in an AnnData object, five cells of each type with a label, and two types that
differ in a few genes only. The counts are made, so that we know which genes these are.
"""

import anndata
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

import marginparts.sc as mp

types = ["B", "NK", "monocyte", "T helper", "T killer"]
shares = [0.2, 0.1, 0.3, 0.3, 0.1]
rng = np.random.default_rng(0)
cells, genes = 1000, 400
truth = rng.choice(5, cells, p=shares)

# %%
# Each type has thirty genes of its own; the two kinds of T cells share twenty-two of theirs. Cells
# differ in how many molecules were caught, and genes in how often they are seen at all.

own = {c: np.arange(30 * c, 30 * c + 30) for c in range(5)}
own[4] = np.concatenate([own[3][:22], own[4][:8]])
fold = np.ones((5, genes))
for c, g in own.items():
    fold[c, g] = 4
rate = rng.gamma(0.5, 1, genes) * fold[truth] * rng.lognormal(0, 0.5, (cells, 1))
counts = rng.poisson(rate * rng.gamma(2, 0.5, (cells, genes)))

names = np.array(types)[truth]
known = np.concatenate([rng.choice(np.flatnonzero(truth == c), 5, False) for c in range(5)])
hidden = np.setdiff1d(np.arange(cells), known)
labels = np.where(np.isin(np.arange(cells), known), names, "Unknown")
obs = pd.DataFrame({"cell_type": pd.Categorical(labels)}, index=[f"cell{i}" for i in range(cells)])
adata = anndata.AnnData(counts.astype("float32"), obs=obs)
adata.var_names = [f"gene{j}" for j in range(genes)]

# %%
# One call, as for a function of scanpy: predicted types, probabilities, codes and parts are in the
# object. Beside it logistic regression on the same labels.

mp.tl.nmf_alpha(adata, "cell_type", n_components=16, max_iter=60)
ours = np.asarray(adata.obs["nmf_alpha"])

size = counts.sum(axis=1, keepdims=True)
X = np.log1p(counts / size * np.median(size))
rival = LogisticRegression(C=0.1, max_iter=500).fit(X[known], names[known])
print(f"NMF-alpha: {np.mean(ours[hidden] == names[hidden]):.1%} right")
print(f"logistic regression: {rival.score(X[hidden], names[hidden]):.1%} right")

# %%
# How often each type is recognized.

figure, axis = plt.subplots(figsize=(6, 3), layout="constrained")
for shift, guess, name, color in (
    (-0.2, rival.predict(X), "logistic regression", "0.6"),
    (0.2, ours, "NMF-alpha", "C0"),
):
    each = [np.mean(guess[hidden][truth[hidden] == c] == types[c]) for c in range(5)]
    axis.barh(np.arange(5) + shift, 100 * np.array(each), 0.38, label=name, color=color)
axis.set_yticks(range(5), types)
axis.invert_yaxis()
axis.set(xlabel="recognized, %", xlim=(0, 100))
axis.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2, fontsize=8)
plt.show()

# %%
# Which parts the cells of each type have: programs of genes that a type has for itself, or that
# several share.

mp.pl.codes(adata)

# %%
# The genes that tell each part from the others. Those that were made for a type have the numbers
# that the counts were made with: 0 to 29 for B cells, 30 to 59 for NK cells, and so on.

mp.pl.parts(adata, n_parts=12, n_genes=6)
