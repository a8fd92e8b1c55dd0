"""What an import brings along, and that kernels are compiled once."""

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


def brought_by(statement):
    """The modules that a statement imports in a fresh interpreter."""
    code = f"import sys\nbefore = set(sys.modules)\n{statement}\nprint(*set(sys.modules) - before)"
    return set(python(code).split())


def test_an_import_of_the_package_imports_nothing_but_its_version():
    brought = brought_by("import marginparts")
    others = {name.partition(".")[0] for name in brought} - sys.stdlib_module_names
    assert others == {"marginparts"}
    assert {name for name in brought if name.startswith("marginparts.")} == {"marginparts._version"}


def test_public_names_are_listed_and_found():
    assert set(dir(marginparts)) >= set(marginparts.__all__)
    for name in marginparts.__all__:
        assert getattr(marginparts, name) is not None
    for name in ("NMFAlpha", "NMFAlphaClassifier", "nmf_alpha", "margin_directions", "datasets"):
        assert name in dir(marginparts)


def test_a_public_name_is_the_same_from_its_own_module():
    from marginparts.estimators import NMFAlpha
    from marginparts.solve.factorize import nmf_alpha

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

from marginparts.svm import _dual_cd
from marginparts.backends.cpu import entries, kernels
used = [
    kernel
    for module in (_dual_cd, entries, kernels)
    for kernel in vars(module).values()
    if getattr(kernel, "signatures", None)
]
print(sum(sum(k.stats.cache_hits.values()) for k in used))
print(sum(sum(k.stats.cache_misses.values()) for k in used))
"""


def test_kernels_are_compiled_once_and_not_on_every_start():
    """In the cache that all processes share: the first fit may find some there, the second all.

    Where a kernel is compiled, so are the functions that it calls, which count by themselves.
    """
    (found, compiled), second = (
        [int(count) for count in python(FIRST_FIT, NUMBA_NUM_THREADS="1").split()] for _ in range(2)
    )
    assert 5 < second[0] <= found + compiled  # all kernels of a fit are counted
    assert second[1] == 0


@pytest.mark.wide
def test_kernels_of_a_first_fit_are_compiled_into_an_empty_cache(tmp_path):
    def fit():
        environment = {"NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_NUM_THREADS": "1"}
        hits, misses = (int(count) for count in python(FIRST_FIT, **environment).split())
        files = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nb[ci]")}
        return hits, misses, files

    _, compiled, files = fit()
    hits, compiled_again, files_again = fit()
    assert compiled > 0
    assert compiled_again == 0
    assert hits > 0
    assert files_again == files


NO_CACHE = """
import numba.core.caching as caching
caching.CacheImpl._locator_classes = []
import marginparts, numpy as np
"""


def test_kernels_work_where_no_cache_can_be_written():
    code = "from marginparts.backends import get_backend\n"
    code += "from marginparts.backends.cpu import sweeps\n"
    code += "from marginparts.svm import _dual_cd, _perceptrons\n"
    assert (
        python(f"{NO_CACHE}{code}print(get_backend('numba').column_sums(np.eye(2)))") == "[1. 1.]"
    )


@pytest.mark.wide
def test_a_fit_works_where_no_cache_can_be_written():
    assert python(f"{NO_CACHE}print(marginparts.nmf_alpha(np.eye(3), 2, max_iter=2).n_iter)") == "2"
