"""What an import costs, what it brings along, and that kernels are compiled once."""

import os
import subprocess
import sys

import pytest

import marginparts

HEAVY = ["torch", "triton", "dask", "distributed", "matplotlib", "numba"]


def python(code: str, **environment: str) -> str:
    """Run code in a fresh interpreter and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    "statement",
    [
        "import marginparts",
        "from marginparts import *",
        "import marginparts.estimators, marginparts.cli",
    ],
)
def test_an_import_brings_no_heavy_library_along(statement):
    code = f"{statement}\nimport sys\nprint([m for m in {HEAVY} if m in sys.modules])"
    assert python(code) == "[]"


def test_an_import_is_quick():
    def seconds(module):
        code = f"""
import time
began = time.perf_counter()
import {module}
print(time.perf_counter() - began)"""
        return min(float(python(code)) for _ in range(3))

    assert seconds("marginparts") <= 1.5 * seconds("sklearn")


def test_public_names_are_listed_and_found():
    assert set(dir(marginparts)) >= set(marginparts.__all__)
    for name in marginparts.__all__:
        assert getattr(marginparts, name) is not None
    for name in ("NMFAlpha", "NMFAlphaClassifier", "nmf_alpha", "margin_directions", "datasets"):
        assert name in dir(marginparts)


def test_a_public_name_is_the_same_from_its_own_module():
    from marginparts.estimators import NMFAlpha
    from marginparts.factorization import nmf_alpha

    assert marginparts.NMFAlpha is NMFAlpha
    assert marginparts.nmf_alpha is nmf_alpha


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'NMFBeta'"):
        _ = marginparts.NMFBeta


FIRST_FIT = """
import numpy as np, scipy.sparse as sp
from marginparts import NMFAlpha
X = sp.csr_array(np.random.default_rng(0).random((20, 6)))
NMFAlpha(3, max_iter=5, random_state=0).fit(X, np.arange(20) % 2).transform(X)

from marginparts import _dual_cd
from marginparts.backends import _numba_kernels
used = [
    kernel
    for module in (_dual_cd, _numba_kernels)
    for kernel in vars(module).values()
    if getattr(kernel, "signatures", None)
]
print(sum(sum(k.stats.cache_hits.values()) for k in used))
print(sum(sum(k.stats.cache_misses.values()) for k in used))
"""


def test_kernels_are_compiled_once_and_not_on_every_start(tmp_path):
    def fit():
        hits, misses = python(
            FIRST_FIT, NUMBA_CACHE_DIR=str(tmp_path), NUMBA_NUM_THREADS="1"
        ).split()
        files = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nb[ci]")}
        return int(hits), int(misses), files

    _, compiled, files = fit()
    hits, compiled_again, files_again = fit()
    assert compiled > 0
    assert compiled_again == 0
    assert hits > 0
    assert files_again == files


def test_kernels_work_where_no_cache_can_be_written():
    python(
        "import numba.core.caching as caching\n"
        "caching.CacheImpl._locator_classes = []\n"
        "import marginparts, numpy as np\n"
        "marginparts.nmf_alpha(np.eye(3), 2, max_iter=2)\n"
    )
