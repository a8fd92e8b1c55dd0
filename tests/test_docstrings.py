"""The examples in docstrings run, in the package as it is installed."""

import doctest
import importlib
import importlib.util
import pkgutil
from pathlib import Path

import pytest

import marginparts

#: What the extra ``gpu`` brings. The extra ``test`` does not, so modules may need it and lack it.
OPTIONAL = {"torch", "triton"}

pytestmark = pytest.mark.extra  # where torch is installed there is more to import

MODULES = [m.name for m in pkgutil.walk_packages(marginparts.__path__, prefix="marginparts.")]


def has_examples(name):
    """Whether a module's source has an example; it is not imported for that."""
    return ">>> " in Path(importlib.util.find_spec(name).origin).read_text("utf-8")


WITH_EXAMPLES = [name for name in MODULES if has_examples(name)]


def imported(name):
    """The module, or a skip where it needs an optional library that is not installed."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] not in OPTIONAL:
            raise
        return pytest.skip(f"{error.name} is not installed")


@pytest.mark.parametrize("name", MODULES)
def test_every_module_can_be_imported(name):
    assert imported(name).__name__ == name


def test_the_public_functions_and_estimators_have_examples():
    home = {f"marginparts.{module}" for module in ("solve.factorize", "directions", "solve.start")}
    home |= {f"marginparts.estimators.{m}" for m in ("nmf_alpha", "classifier", "baselines")}
    assert home <= set(WITH_EXAMPLES)


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples_run(name):
    found = doctest.testmod(imported(name))
    assert found.attempted > 0
    assert found.failed == 0
