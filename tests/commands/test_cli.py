"""The command, on data small enough for a test."""

import json
import subprocess
import sys
from pathlib import Path

import numpy
import pytest
from typer.testing import CliRunner

from marginparts import __version__, _version, datasets
from marginparts.app import demo
from marginparts.cli import app


@pytest.fixture(scope="module")
def small_tasks(tmp_path_factory):
    """One small task instead of the two of the demo."""
    digits = demo.datasets.load_digits_49()
    task = demo.Task("digits", "Handwritten 4 v 9", digits.data, digits.target, 0.05, 4, 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "tasks", lambda: [task])
        patch.chdir(tmp_path_factory.mktemp("demo"))  # the page is written here
        yield task


@pytest.fixture(scope="module")
def shown(small_tasks):
    """What the demo prints, and the folder it was run in."""
    return run("demo", "--quiet"), Path.cwd()


def run(*arguments):
    return CliRunner().invoke(app, arguments, env={"COLUMNS": "80"})


def test_version_comes_first_and_then_those_of_what_matters(monkeypatch):
    monkeypatch.setenv("NUMBA_NUM_THREADS", "3")
    first, *others = run("--version").output.splitlines()
    assert first == f"marginparts {__version__}"
    told = dict(line.split(" ", 1) for line in others)
    assert told["numpy"] == numpy.__version__
    assert told["threads"].startswith("3 of ")
    assert {"Python", "scipy", "scikit-learn", "numba", "torch", "dask"} <= set(told)


def test_versions_are_told_without_an_import_of_the_libraries():
    code = "import sys; from marginparts import show_versions; show_versions();"
    code += "print({'numpy', 'numba', 'torch', 'dask'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "set()"


def test_a_library_that_is_absent_is_said_to_be(monkeypatch):
    monkeypatch.setattr(_version, "OPTIONAL", ("no-such-library",))
    assert "no-such-library not installed\n" in run("--version").output


def test_help_names_the_commands():
    result = run("--help")
    assert result.exit_code == 0
    assert "demo" in result.output
    assert "data" in result.output


def test_demo_shows_every_method_within_80_columns(shown):
    result, _ = shown
    assert result.exit_code == 0
    assert all(name in result.stdout for name in demo.METHODS)
    assert "NMF-alpha is" in result.stdout
    assert max(len(line) for line in result.stdout.splitlines()) <= 80


def test_demo_ends_with_a_page_and_says_where_it_is(shown):
    result, folder = shown
    assert "marginparts-demo.html" in result.stdout
    page = (folder / "marginparts-demo.html").read_text(encoding="utf-8")
    assert "Handwritten 4 v 9" in page


@pytest.mark.wide
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


NAMES = ["mnist", "news", "aviation", "aviation-500", "aviation-counts"]


def test_data_list_says_what_is_here_within_80_columns(tmp_path):
    folder = tmp_path / "siam2007"
    folder.mkdir()
    for file in datasets.PAPER_DATA["aviation-500"].files:
        (folder / file).write_text("")
    result = run("data", "list", "--data-dir", str(tmp_path))
    assert result.exit_code == 0
    *table, place = result.stdout.splitlines()
    assert place == f"Looked in {tmp_path}"
    assert max(len(line) for line in table) <= 80
    rows = {line.split()[0]: line for line in table if line.split()[:1] and line[0] != " "}
    assert [name for name in rows if name in NAMES] == NAMES
    assert [name for name in NAMES if "not here" in rows[name]] == [
        "mnist", "news", "aviation", "aviation-counts",
    ]  # fmt: skip
    assert rows["aviation-500"].split()[-5:] == ["21519", "7077", "500", "22", "siam2007"]
    assert rows["news"].split()[-6:-2] == ["11269", "7505", "53975", "20"]


def test_data_path_prints_the_folder_and_nothing_else(monkeypatch, tmp_path):
    assert run("data", "path", "--data-dir", str(tmp_path)).stdout == f"{tmp_path}\n"
    monkeypatch.setenv("MARGINPARTS_DATA", str(tmp_path / "data"))
    assert run("data", "path").stdout == f"{tmp_path / 'data'}\n"


def test_data_fetch_says_where_the_data_is(monkeypatch, tmp_path):
    def fetch(name, data_dir, progress):
        assert (name, data_dir) == ("mnist", tmp_path)
        for total in (None, 10):
            progress("train-images-idx3-ubyte.gz", 5, total)
        return tmp_path / "mnist"

    monkeypatch.setattr(datasets, "fetch", fetch)
    result = run("data", "fetch", "mnist", "--data-dir", str(tmp_path))
    assert result.exit_code == 0
    assert result.stdout == f"mnist is in {tmp_path / 'mnist'}\n"


def test_data_fetch_answers_an_unknown_name_with_one_sentence():
    result = run("data", "fetch", "mnits", "--quiet")
    assert result.exit_code == 2
    names = ", ".join(NAMES)
    assert result.output == f"There is no data set 'mnits': choose one of {names}.\n"


def test_data_fetch_answers_what_cannot_be_had_with_one_sentence(tmp_path):
    result = run("data", "fetch", "aviation-500", "--quiet", "--data-dir", str(tmp_path))
    assert result.exit_code == 1
    assert result.output.startswith("aviation-500 cannot be downloaded: put its files (train_bin")
    assert result.output.count("\n") == 1
