"""Sparse data never becomes dense: 50,000 x 200,000 would be 40 GB even in float32."""

import subprocess
import sys

import pytest

_RUN = """
import resource, sys
from pathlib import Path

import numpy as np, scipy.sparse as sp
from marginparts import ConstrainedNMF, NMFAlpha, SemiSupervisedNMF, TransductiveSVM

n, d, nonzeros = 50_000, 200_000, 1_000_000
rng = np.random.default_rng(0)
entries = rng.random(nonzeros, dtype=np.float32), (
    rng.integers(0, n, nonzeros), rng.integers(0, d, nonzeros)
)
X = sp.csr_array(sp.coo_array(entries, shape=(n, d)))
y = np.full(n, -1)
y[:300] = np.arange(300) % 3
estimator = eval(sys.argv[1]).fit(X, y)
out = estimator.transform(X) if hasattr(estimator, "transform") else estimator.predict(X)
assert len(out) == n and np.isfinite(out).all()

# the peak of this program alone: ru_maxrss starts from that of the parent, which was forked
status = Path("/proc/self/status")
if status.exists():
    lines = status.read_text().splitlines()
    print(int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) * 1024)
else:
    unit = 1 if sys.platform == "darwin" else 1024
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="peak memory is read the POSIX way")
@pytest.mark.parametrize(
    "estimator",
    [
        "NMFAlpha(8, max_iter=3, map_iter=3, random_state=0)",
        "NMFAlpha(8, max_iter=2, map_iter=2, multiclass='ovo', features='hellinger', pseudo='svm', "
        "backend='reference', random_state=0)",
        "SemiSupervisedNMF(8, max_iter=3, map_iter=3, random_state=0)",
        "ConstrainedNMF(8, max_iter=3, map_iter=3, random_state=0)",
        "TransductiveSVM(random_state=0)",
    ],
)
def test_sparse_never_becomes_dense(estimator):
    done = subprocess.run(
        [sys.executable, "-c", _RUN, estimator], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    peak = int(done.stdout)
    assert peak < 1.0e9, f"{estimator} took {peak / 1e9:.2f} GB"
