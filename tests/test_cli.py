"""The command, on data small enough for a test."""

import json

import pytest
from typer.testing import CliRunner

from marginparts import __version__, demo
from marginparts.cli import app


@pytest.fixture
def small_tasks(monkeypatch):
    """One small task instead of the two of the demo."""
    digits = demo.datasets.load_digits_49()
    task = demo.Task("digits", "Handwritten 4 v 9", digits.data, digits.target, 0.05, 4, 2)
    monkeypatch.setattr(demo, "tasks", lambda: [task])
    return task


def run(*arguments):
    return CliRunner().invoke(app, arguments, env={"COLUMNS": "80"})


def test_version():
    assert run("--version").output == f"marginparts {__version__}\n"


def test_help_names_the_demo():
    result = run("--help")
    assert result.exit_code == 0
    assert "demo" in result.output


def test_demo_shows_every_method_within_80_columns(small_tasks):
    result = run("demo", "--quiet")
    assert result.exit_code == 0
    assert all(name in result.stdout for name in demo.METHODS)
    assert "NMF-alpha is" in result.stdout
    assert max(len(line) for line in result.stdout.splitlines()) <= 80


def test_demo_as_json_has_one_record_for_each_method_and_draw(small_tasks):
    records = json.loads(run("demo", "--json", "--quiet").stdout)
    assert len(records) == len(demo.METHODS) * small_tasks.draws
    assert {record["method"] for record in records} == set(demo.METHODS)
    assert all(0.5 < record["accuracy"] <= 1 for record in records)
    dimensions = {record["method"]: record["dimensions"] for record in records}
    assert dimensions["raw SVM"] == 64
    assert dimensions["NMF-alpha"] == dimensions["NMF"] == dimensions["PCA"] == 4


def test_draws_hide_most_labels_and_keep_test_samples_apart(small_tasks):
    one, again, other = (demo.draw(small_tasks, seed) for seed in (0, 0, 1))
    assert (one.y == again.y).all()
    assert not (one.y_test[:50] == other.y_test[:50]).all()
    assert 0.03 < (one.y >= 0).mean() < 0.07
    assert len(one.y) + len(one.y_test) == len(small_tasks.y)
