"""The examples in docstrings run, in the package as it is installed."""

import doctest
import importlib
import pkgutil

import pytest

import marginparts

#: Modules of extras that need not be installed.
EXTRAS = {
    f"marginparts.backends.{name}"
    for name in ("torch_gpu", "triton_csr", "_torch_dense", "_torch_graphs", "_torch_launch")
}

MODULES = [
    module.name
    for module in pkgutil.walk_packages(marginparts.__path__, prefix="marginparts.")
    if module.name not in EXTRAS
]
WITH_EXAMPLES = [
    name
    for name in MODULES
    if any(test.examples for test in doctest.DocTestFinder().find(importlib.import_module(name)))
]


def test_the_public_functions_and_estimators_have_examples():
    home = {f"marginparts.{module}" for module in ("factorization", "directions", "init")}
    home |= {f"marginparts.estimators.{m}" for m in ("nmf_alpha", "classifier", "baselines")}
    assert home <= set(WITH_EXAMPLES)


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples_run(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0
