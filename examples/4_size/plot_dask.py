"""
A Dask cluster
==============

A Dask array takes the place of ``X``. Its blocks of rows stay on the workers; what travels are the
parts and their sums.
"""

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from dask.distributed import Client, LocalCluster

from marginparts import NMFAlpha

# %%
# A cluster of two workers in this process, in the place of a real one, and an array in blocks
# of uneven size.

cluster = LocalCluster(
    n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None, protocol="inproc://"
)
client = Client(cluster)
rng = np.random.default_rng(0)
counts = rng.poisson(rng.gamma(0.2, 1, (6000, 6)) @ rng.gamma(0.2, 1, (6, 200))).astype(float)
sizes = (2000, 1500, 1000, 800, 700)
X = da.from_array(counts, chunks=(sizes, 200))
y = np.full(6000, -1)
y[:100] = (counts[:100, :100].sum(axis=1) > counts[:100, 100:].sum(axis=1)).astype(int)

# %%
# The fit is called as ever. Labels may be a NumPy array; codes come back as a Dask array that is
# computed when somebody asks for it.

options = {"solver": "mu", "init": "random", "max_iter": 30, "tol": 0, "random_state": 0}
there = NMFAlpha(6, **options).fit(X, y)
here = NMFAlpha(6, **options).fit(counts, y)
codes = there.transform(X)
print(type(codes).__module__, codes.shape, codes.chunks[0])

# %%
# On the left the codes of some rows, computed on the cluster; on the right the loss of both fits.

figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
some = codes[::40].compute()
some = some[some.sum(axis=1) > 0]  # some rows have no counts
some = some / some.sum(axis=1, keepdims=True)
order = np.lexsort((-some.max(axis=1), some.argmax(axis=1)))
axes[0].imshow(some[order].T, aspect="auto", cmap="viridis", interpolation="nearest")
axes[0].set(xlabel="rows, in the order of their largest part", ylabel="part", title="codes")
for run, style, name in ((here, "-", "one process"), (there, "o", "cluster")):
    axes[1].plot(
        [c.iteration for c in run.history_], [c.loss for c in run.history_], style, label=name
    )
axes[1].set(xlabel="updates", ylabel="loss", title="the same fit")
axes[1].legend()
plt.show()
client.close()
cluster.close()

# %%
# Two workers that share two cores with everybody else are no faster than one process. When a
# cluster pays, and what moves over the wire, is in :doc:`/scaling`.
