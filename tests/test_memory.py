"""Sparse data never becomes dense: 50,000 x 200,000 would be 40 GB even in float32."""

import json
import subprocess
import sys

import numpy as np
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

n, d, nonzeros = 50_000, 200_000, 200_000
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


_PREDICT = """
import sys
from pathlib import Path
from marginparts.cli import app

try:
    app(sys.argv[1:])
except SystemExit as ended:
    assert ended.code in (0, None)
status = Path("/proc/self/status").read_text().splitlines()
print(next(line for line in status if line.startswith("VmHWM")).split()[1])
"""


@pytest.mark.wide
@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read the Linux way")
def test_predict_takes_no_more_memory_for_a_larger_file(tmp_path):
    words = [f"word{k}" for k in range(500)]
    rng = np.random.default_rng(0)

    def write(name, n, label):
        drawn = rng.integers(0, 500, size=(n, 10))
        lines = [f"{label(k)}," + " ".join(words[j] for j in row) for k, row in enumerate(drawn)]
        (tmp_path / name).write_text("kind,text\n" + "\n".join(lines) + "\n")
        return str(tmp_path / name)

    def peak(*args):
        done = subprocess.run(
            [sys.executable, "-c", _PREDICT, *args], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return int(done.stdout.split()[-1]) * 1024

    model, out = str(tmp_path / "m"), str(tmp_path / "out.csv")
    train = write("train.csv", 400, lambda k: "ab"[k % 2] if k < 60 else "")
    options = ("--components", "8", "--lam", "1", "--cost", "1", "--quiet")
    peak("fit", train, "--text", "text", "--label", "kind", "--out", model, *options)
    small, large = (
        peak("predict", model, write(f"{n}.csv", n, lambda k: ""), "--out", out)
        for n in (15_000, 150_000)
    )
    assert large < 1 << 30
    assert large < small + 40e6  # one piece after the other, whatever their number
