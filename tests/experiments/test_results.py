"""The committed results: tables follow from the records, and the page says what the tables say."""

import json
from pathlib import Path

import pytest

from marginparts.commands._reproduce_output import WITHOUT_PARTS
from marginparts.experiments import page, plan, tables
from marginparts.experiments.edges import edges
from marginparts.experiments.reproduce import Results

ROOT = Path(__file__).parents[2]
RESULTS = Results(ROOT / "results")
PAGE = ROOT / "docs" / "reproduce.md"

pytestmark = pytest.mark.skipif(
    not RESULTS.place.exists(), reason="the results are in the repository, not in the package"
)


STUDIES = (*plan.TABLE_2, *plan.BESIDE, *plan.ABLATIONS, *plan.OPEN_GOAL)


def written(name):
    return json.loads((RESULTS.place / name).read_text())


@pytest.fixture(scope="module")
def records():
    return RESULTS.records((*plan.TABLE_2, *plan.BESIDE))


@pytest.fixture(scope="module")
def curves(records):
    return tables.curves(records)


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_every_unit_is_in_the_records(study):
    assert {unit.key for unit in study.units()} == RESULTS.store(study).units()


def test_table2_follows_from_the_records(curves):
    assert written("table2.json") == tables.table2(curves)


def test_the_choices_at_an_edge_follow_from_the_records(curves, records):
    counts = written("edges.json")
    assert counts == edges(curves, records)
    assert page.edges_page(counts) in PAGE.read_text("utf-8")


def test_five_splits_everywhere():
    table = written("table2.json")
    for study in plan.TABLE_2:
        for share, row in table[study.data].items():
            assert set(row) == set(study.methods), (study.data, share)
            assert {result["splits"] for result in row.values()} == {5}, (study.data, share)


def test_the_page_shows_table2():
    assert page.table2_page(written("table2.json")) in PAGE.read_text("utf-8")


def test_ablation_follows_from_the_records_and_is_on_the_page():
    table = written("ablation.json")
    assert table == tables.ablation(RESULTS.records(plan.ABLATIONS))
    assert page.ablation_page(table) in PAGE.read_text("utf-8")


def test_open_goal_follows_from_the_records_and_is_on_the_page(records):
    table = written("open_goal.json")
    ours = RESULTS.records(plan.OPEN_GOAL)
    assert table == tables.open_goal(
        [record for record in ours if record["method"] not in WITHOUT_PARTS],
        [record for record in (*ours, *records) if record["method"] in WITHOUT_PARTS],
    )
    assert page.open_goal_page(table) in PAGE.read_text("utf-8")
