"""The command that reproduces the paper, on the embedded digits in the place of its data."""

import json
import re
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from marginparts.cli import app
from marginparts.experiments import page as page_tables
from marginparts.experiments import plan, tables
from marginparts.experiments.plan import Study

RUNNER = CliRunner()
GRID = plan.QUICK_GRID._replace(max_iter=10, steps=0)
DIGITS = Study(
    "digits", "digits", "counts", (0.1, 0.3, 1.0), (2, 4),
    methods=("svm", "tsvm", "pca", "lda", "nmf", "lee2010", "liu_wu2010", "nmf_alpha"),
    splits=(0, 1), grid=GRID,
)  # fmt: skip

#: Each test runs a small study.
pytestmark = pytest.mark.wide


@pytest.fixture(autouse=True)
def on_digits(monkeypatch):
    monkeypatch.setattr(plan, "TABLE_2", (DIGITS,))
    monkeypatch.setattr(plan, "BESIDE", ())
    monkeypatch.setattr(plan, "AVIATION", replace(DIGITS, name="aviation", data="aviation"))
    monkeypatch.setattr(plan, "QUICK_GRID", GRID)
    ablated = ("nmf_alpha", "nmf_alpha_class", "nmf_alpha_h")
    study = Study("ablation", "digits", "counts", (0.1,), (4,), ablated, (0, 1), GRID)
    monkeypatch.setattr(plan, "ABLATIONS", (study,))
    monkeypatch.setattr(tables, "PREPARATION", {"digits": "counts"})


@pytest.fixture
def reproduce(tmp_path):
    def run(*arguments, code=0):
        given = ["reproduce", *arguments, "--results", str(tmp_path), "--jobs", "1", "--quiet"]
        result = RUNNER.invoke(app, given, env={"COLUMNS": "80"})
        assert result.exit_code == code, result.output
        assert code != 0 or result.exception is None
        assert all(len(line) <= 80 for line in result.stdout.splitlines() if "/" not in line)
        return result

    run.results = tmp_path
    return run


def test_table1_needs_no_data(reproduce):
    assert re.search(r"news +multiway +9007 +2262 +7505 +53975 +20", reproduce("table1").output)


def test_table2_is_shown_written_and_not_computed_twice(reproduce, monkeypatch):
    first = reproduce("table2")
    table = json.loads((reproduce.results / "table2.json").read_text())
    assert set(table["digits"]) == {"10%", "30%", "100%"}
    assert set(table["digits"]["10%"]) == set(DIGITS.methods)
    mean, std = (table["digits"]["10%"]["nmf_alpha"][k] for k in ("mean", "std"))
    assert f"{mean:.1f} ± {std:.1f}" in first.output
    monkeypatch.setattr(
        "marginparts.experiments.runner.run_unit", lambda *a, **k: pytest.fail("computed again")
    )
    assert reproduce("table2").stdout == first.stdout
    assert reproduce("table2", "--show").output == first.output


def test_choices_at_an_edge_are_told_and_written(reproduce):
    output = " ".join(reproduce("table2").output.split())
    counts = json.loads((reproduce.results / "edges.json").read_text())
    every = [count for row in counts["digits, counts"].values() for count in row.values()]
    at_edge, choices = (sum(count[name] for count in every) for name in ("at_edge", "choices"))
    assert f"{at_edge} of {choices} choices lie at the end" in output
    assert choices > 0


def test_tables_are_put_into_a_page(reproduce):
    page = reproduce.results / "page.md"
    marks = [f"<!-- begin: {name} -->\n<!-- end: {name} -->" for name in ("table2", "edges")]
    page.write_text("# A page\n\n" + "\n".join(marks))
    reproduce("table2", "--page", str(page))
    table = json.loads((reproduce.results / "table2.json").read_text())
    first = page.read_text("utf-8")
    assert page_tables.table2_page(table) in first
    assert "Place of NMF-alpha:" in first
    reproduce("table2", "--show", "--page", str(page))
    assert page.read_text("utf-8") == first
    page.write_text("# No marks\n")
    assert "has no marks" in reproduce("table2", "--show", "--page", str(page), code=1).output


def test_show_does_not_compute(reproduce):
    result = reproduce("table2", "--show", code=1)
    assert "no records" in result.output
    assert not (reproduce.results / "records").exists()


def test_quick_is_kept_apart(reproduce):
    reproduce("table2", "--quick")
    assert (reproduce.results / "quick" / "table2.json").exists()
    assert not (reproduce.results / "table2.json").exists()


def test_figures(reproduce):
    pytest.importorskip("matplotlib")
    for target in ("fig3", "fig4", "fig5"):
        assert "Drawn in" in reproduce(target).output
        assert (reproduce.results / f"{target}.png").read_bytes().startswith(b"\x89PNG")


def test_the_table_of_one_data_set_does_not_overwrite_the_others(reproduce, monkeypatch):
    docs = replace(DIGITS, name="docs", data="docstrings", methods=("svm",), splits=(0,))
    monkeypatch.setattr(plan, "TABLE_2", (DIGITS, docs))
    monkeypatch.setattr(tables, "PREPARATION", {"digits": "counts", "docstrings": "counts"})
    reproduce("table2")
    output = reproduce("table2", "--data", "digits").output
    assert "docstrings" not in output
    assert set(json.loads((reproduce.results / "table2.json").read_text())) == {
        "digits", "docstrings"
    }  # fmt: skip


def test_complete_records_need_no_data(reproduce, monkeypatch):
    reproduce("table2")
    monkeypatch.setattr(
        "marginparts.experiments.reproduce.Results.missing_data", lambda *a: "It is not here."
    )
    output = " ".join(reproduce("table2").output.split())
    assert "not here" not in output
    assert "complete, so nothing was computed" in output  # and what is shown is not new


def test_what_cannot_be_made_does_not_keep_the_rest_from_being_made(reproduce, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setenv("MARGINPARTS_DATA", str(reproduce.results / "none"))
    result = reproduce("all", code=1)  # Figure 2 needs MNIST
    assert "mnist" in result.output
    assert (reproduce.results / "fig5.png").exists()


def test_old_records_do_not_stand_for_data_that_is_missing(reproduce, monkeypatch):
    reproduce("table2")
    monkeypatch.setattr(plan, "TABLE_2", (DIGITS, replace(DIGITS, name="more", splits=(2,))))
    monkeypatch.setattr(
        "marginparts.experiments.reproduce.Results.missing_data", lambda *a: "It is not here."
    )
    result = reproduce("table2", code=1)
    assert "It is not here." in result.output
    assert "NMF-alpha" in result.output  # the records at hand are shown all the same


def test_ablation(reproduce):
    assert "class sums" in reproduce("ablation").output
    rows = json.loads((reproduce.results / "ablation.json").read_text())["digits 10%"]
    assert rows[0]["what"] == "NMF-alpha"


def test_a_method_of_your_own_is_in_the_table(reproduce):
    output = reproduce("table2", "--method", "sklearn.decomposition:TruncatedSVD").output
    assert "TruncatedSVD" in output


def test_time_that_is_up_keeps_what_is_done(reproduce):
    assert "goes on" in reproduce("table2", "--minutes", "0", code=1).output
    assert "goes on" not in reproduce("table2").output


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("table2", "--method", "nope"), 2, "Unknown method 'nope'"),
        (("table2", "--method", "no.module:Class"), 2, "cannot be used"),
        (("table2", "--data", "mnist"), 2, "nothing to run on 'mnist'"),
        (("table7",), 2, "table7"),
    ],
)
def test_bad_arguments(reproduce, arguments, code, words):
    output = " ".join(reproduce(*arguments, code=code).output.split())
    assert words in output


def test_missing_data_is_one_sentence(reproduce, monkeypatch, tmp_path):
    study = Study("mnist", "mnist", "counts", (0.02,), (4,), ("svm",), (0,), GRID)
    monkeypatch.setattr(plan, "TABLE_2", (study,))
    result = reproduce("table2", "--data-dir", str(tmp_path / "none"), code=1)
    assert "Traceback" not in result.output
    assert "mnist" in result.output
