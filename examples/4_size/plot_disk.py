"""
Larger than memory
==================

``open_rows`` takes a matrix that lies on disk, and a limit for the memory of the process. Blocks of
rows are read one after the other; the parts are those of a fit in memory.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import scipy.sparse as sp

from marginparts import NMFAlpha, open_rows

# %%
# A matrix in ten files. (It is small, so that this example is quick; the code for a large one is
# the same. The kernels are told to take a few thousand rows at a time.)

rng = np.random.default_rng(0)
H, V = rng.gamma(0.2, 1, (20000, 8)), rng.gamma(0.1, 1, (8, 300))
X = sp.csr_array(rng.poisson(H @ V).astype(float))
folder = tempfile.TemporaryDirectory()
for k in range(10):
    sp.save_npz(Path(folder.name) / f"rows{k}.npz", X[2000 * k : 2000 * (k + 1)])
rows = open_rows(folder.name, memory_limit="1GB")
print(rows.shape, f"{X.nnz / 1e6:.1f} million counts")

# %%
# The same fit in memory and from disk, both for forty updates from one start. (One update of each
# goes first, so that no compiling is timed.) Labels, where there are some, stay in memory.

options = {"solver": "mu", "init": "random", "max_iter": 40, "tol": 0, "random_state": 0}
for data in (X, rows):
    NMFAlpha(8, **{**options, "max_iter": 1}).fit(data)
runs = {"in memory": NMFAlpha(8, **options).fit(X), "from disk": NMFAlpha(8, **options).fit(rows)}

figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for (name, run), style in zip(runs.items(), ("-", "o"), strict=True):
    losses = [check.loss for check in run.history_]
    axes[0].plot([check.iteration for check in run.history_], losses, style, label=name)
    axes[1].plot([check.seconds for check in run.history_], losses, style.replace("o", "o-"))
axes[0].set(xlabel="updates", ylabel="loss", title="the same updates ...")
axes[1].set(xlabel="seconds", title="... and the time they take")
axes[0].legend()
plt.show()

# %%
# Codes of all rows need not fit in memory either: ``transform`` writes them to a file.

codes = runs["from disk"].transform(rows, out=Path(folder.name) / "codes.npy")
print(type(codes).__name__, codes.shape)
alike = np.abs(runs["from disk"].components_ - runs["in memory"].components_).max()
print(f"largest difference between the parts of both: {alike:.0e}")
folder.cleanup()

# %%
# A matrix this small stays in the cache of the file system, so what the disk costs is little here.
# :doc:`/out-of-core` says what can be opened, what memory is needed and what the disk costs.
