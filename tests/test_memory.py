"""Sparse data never becomes dense: 50,000 x 200,000 would be 40 GB even in float32."""

import json
import subprocess
import sys

import pytest

_RUN = """
import json, resource, sys
from pathlib import Path

import numpy as np, scipy.sparse as sp
from marginparts import ConstrainedNMF, NMFAlpha, SemiSupervisedNMF

def peak():
    # ru_maxrss starts from that of the parent that was forked; VmHWM is this program's own
    status = Path("/proc/self/status")
    if status.exists():
        line = next(l for l in status.read_text().splitlines() if l.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit

n, d, nonzeros = 50_000, 200_000, 1_000_000
rng = np.random.default_rng(0)
values = rng.random(nonzeros, dtype=np.float32)
places = [rng.integers(0, bound, nonzeros, np.int32) for bound in (n, d)]
X = sp.csr_array(sp.coo_array((values, places), shape=(n, d)))
y = np.full(n, -1)
y[:300] = np.arange(300) % 3

options = dict(n_components=8, max_iter=3, map_iter=3, random_state=0)
peaks = {}
for estimator in (
    NMFAlpha(**options),
    NMFAlpha(**options, features="hellinger", pseudo="svm", multiclass="ovo"),
    NMFAlpha(**options, init="random", backend="reference"),
    SemiSupervisedNMF(**options),
    ConstrainedNMF(**options),
):
    Z = estimator.fit(X, y).transform(X)
    assert Z.shape == (n, 8) and Z.dtype == np.float32 and np.isfinite(Z).all() and Z.any()
    peaks[repr(estimator)] = peak()
print(json.dumps(peaks))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="peak memory is read the POSIX way")
def test_sparse_never_becomes_dense():
    done = subprocess.run([sys.executable, "-c", _RUN], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for estimator, peak in json.loads(done.stdout).items():
        assert peak < 1.0e9, f"{estimator} took {peak / 1e9:.2f} GB"
