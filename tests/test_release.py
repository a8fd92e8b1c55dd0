"""What is said of versions in several files is the same, and the changelog has its form."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

import marginparts

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.skipif(
    not (ROOT / "recipe").exists(), reason="the recipe is in the repository, not in the package"
)


@pytest.fixture(scope="module")
def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


@pytest.fixture(scope="module")
def recipe():
    return yaml.safe_load((ROOT / "recipe" / "recipe.yaml").read_text("utf-8"))


def bounds(lines):
    return {needed.name: needed.specifier for needed in map(Requirement, lines)}


def test_the_recipe_needs_what_the_package_needs(project, recipe):
    assert recipe["context"]["version"] == marginparts.__version__
    python, *lines = recipe["requirements"]["run"]
    assert bounds(lines) == bounds(project["dependencies"])
    least = python.replace("${{ python_min }}", recipe["context"]["python_min"])
    assert SpecifierSet(least.removeprefix("python ")) == SpecifierSet(project["requires-python"])


def test_every_requirement_has_one_lower_bound(project):
    """From these `.ci/versions oldest` makes its environment."""
    lines = [*project["dependencies"], *project["optional-dependencies"]["test"]]
    for name, specifier in bounds(lines).items():
        assert [each.operator for each in specifier].count(">=") == 1, name


def workflow_steps():
    text = (ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8")
    for job in yaml.safe_load(text)["jobs"].values():
        yield from job["steps"]


@pytest.fixture(scope="module")
def steps():
    if not (ROOT / ".github").exists():
        pytest.skip("the workflow is in the repository, not in the sdist")
    return list(workflow_steps())


def test_actions_are_pinned_by_version(steps):
    used = [step["uses"] for step in steps if "uses" in step]
    assert used
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@v\d+\.\d+\.\d+", name) for name in used), used


def test_the_workflow_does_what_ci_does(steps):
    """Every check of `.ci/run` is a step there too."""
    here = (ROOT / ".ci" / "run").read_text("utf-8")
    there = "\n".join(step.get("run", "") for step in steps)
    for command in ("ruff check . && ruff format --check .", "mypy", "bash .ci/release"):
        assert command in here
        assert command in there
    marked = "-m '(wide or extra) and not slow'"
    assert marked in here
    assert marked in there


def test_the_oldest_and_the_newest_python_are_named(project):
    said = {line.rpartition(" ")[2] for line in project["classifiers"] if ":: 3." in line}
    text = (ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8")
    tested = set(re.findall(r'python: "([\d.]+)"', text))
    newest = max(said, key=lambda version: int(version.partition(".")[2]))
    assert {project["requires-python"].removeprefix(">="), newest} <= tested
    assert tested <= said


def test_the_changelog_keeps_its_form():
    """As keepachangelog.com has it: versions with a date, newest first, changes by kind."""
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    versions = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert all(
        re.fullmatch(r"\d+\.\d+\.\d+ - (\d{4}-\d\d-\d\d|Unreleased)", line) for line in versions
    )
    numbers = [tuple(map(int, line.partition(" ")[0].split("."))) for line in versions]
    assert numbers == sorted(numbers, reverse=True)
    kinds = re.findall(r"^### (.+)$", text, re.MULTILINE)
    assert {*kinds} <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
