"""The committed results: tables follow from the records, and the page says what the tables say."""

import json
import re
from pathlib import Path

import pytest

from marginparts.experiments import plan, tables
from marginparts.experiments.reproduce import Results

ROOT = Path(__file__).parent.parent
RESULTS = Results(ROOT / "results")
PAGE = ROOT / "docs" / "reproduce.md"

pytestmark = pytest.mark.skipif(
    not RESULTS.place.exists(), reason="the results are in the repository, not in the package"
)


def written(name):
    return json.loads((RESULTS.place / name).read_text())


def rows_after(heading):
    """The first table after a heading of the page, as rows of cells."""
    text = PAGE.read_text("utf-8").split(f"{heading}\n", 1)[1]
    table = re.search(r"(?:^\|.*\n)+", text, re.MULTILINE).group()
    rows = [
        [cell.strip(" *") for cell in line.strip("|\n ").split("|")] for line in table.splitlines()
    ]
    return rows[:1] + rows[2:]


def told(result):
    return f"{result['mean']:.1f} ± {result['std']:.1f}"


@pytest.fixture(scope="module")
def curves():
    return RESULTS.curves((*plan.TABLE_2, *plan.BESIDE))


def test_every_unit_of_table2_is_in_the_records():
    for study in plan.TABLE_2:
        wanted = {unit.key for unit in study.units()}
        assert wanted <= RESULTS.store(study).units(), study.name


def test_table2_follows_from_the_records(curves):
    table = written("table2.json")
    for data, shares in tables.table2(curves, tables.PREPARATION).items():
        assert table[data] == shares


def test_five_splits_everywhere():
    table = written("table2.json")
    for study in plan.TABLE_2:
        for share, row in table[study.data].items():
            assert set(plan.PAPER_METHODS) <= set(row), (study.data, share)
            assert {result["splits"] for result in row.values()} == {5}, (study.data, share)


@pytest.mark.parametrize("data", ["mnist", "news", "aviation-500", "aviation-counts"])
def test_the_page_shows_table2(data):
    header, *rows = rows_after(f"### {data}")
    row = {cells[0]: cells[1:] for cells in rows}
    table = written("table2.json")[data]
    for column, share in enumerate(table):
        assert header[column + 1].startswith(share)
        for method in plan.PAPER_METHODS:
            shown = row[tables.METHODS[method].title][column]
            assert shown.startswith(told(table[share][method])), (share, method)


def test_ablation_follows_from_the_records_and_is_on_the_page():
    table = written("ablation.json")
    assert table == tables.ablation(RESULTS.records(plan.ABLATIONS))
    shown = {cells[0]: cells[1:] for cells in rows_after("## What each choice is worth")[1:]}
    for column, name in enumerate(table):
        for row in table[name]:
            assert shown[row["what"]][column].startswith(told(row)), (name, row["what"])


def test_open_goal_is_on_the_page():
    table = written("open_goal.json")
    shown = {(cells[0], cells[1]): cells[2:] for cells in rows_after("## Past the paper")[1:]}
    for data, shares in table.items():
        for share, row in shares.items():
            cells = shown[data, share]
            assert cells[0] == told(row)
            assert cells[1] == str(row["dims"])
            assert cells[2].startswith(told(row["best_raw"]))
