"""The tests need what the extra ``test`` installs, and nothing else."""

import ast
import sys
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

FILES = sorted(Path(__file__).parent.rglob("*.py"))
OURS = {"marginparts", *(file.stem for file in FILES)}


def installed_by(distribution, extra=""):
    """The distributions that come with one, those that they need included."""
    found, waiting = set(), [(distribution, extra)]
    while waiting:
        name, extra = waiting.pop()
        try:
            lines = metadata.requires(name) or ()
        except metadata.PackageNotFoundError:  # a part of another extra that is not asked for
            continue
        for needed in map(Requirement, lines):
            wanted = needed.marker is None or needed.marker.evaluate({"extra": extra})
            if wanted and needed.name not in found:
                found.add(needed.name)
                waiting.append((needed.name, ""))
    return {canonicalize_name(name) for name in found}


def imported_by(code):
    """The top-level names that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module.partition(".")[0]


@cache
def importable():
    """The top-level names that the extra brings."""
    there = installed_by("marginparts", "test")
    homes = metadata.packages_distributions().items()
    return {name for name, home in homes if there & {canonicalize_name(d) for d in home}}


def not_installed(code):
    """What a file imports without asking whether it is there (``pytest.importorskip`` asks)."""
    return set(imported_by(code)) - sys.stdlib_module_names - OURS - importable()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_file_of_tests_imports_only_what_the_extra_installs(file):
    assert not_installed(file.read_text("utf-8")) == set()


@pytest.mark.parametrize("code", ["import torch", "def f():\n    from triton.language import load"])
def test_an_import_of_something_else_is_found(code):
    assert not_installed(code) <= {"torch", "triton"}
    assert not_installed(code)
