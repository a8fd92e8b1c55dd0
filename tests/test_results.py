"""The committed results: tables follow from the records, and the page says what the tables say."""

import json
import re
from pathlib import Path

import pytest

from marginparts.commands._reproduce_output import RAW
from marginparts.experiments import plan, tables
from marginparts.experiments.registry import METHODS
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
    assert written("table2.json") == tables.table2(curves)


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
            shown = row[METHODS[method].title][column]
            assert shown.startswith(told(table[share][method])), (share, method)


def test_ablation_follows_from_the_records_and_is_on_the_page():
    table = written("ablation.json")
    assert table == tables.ablation(RESULTS.records(plan.ABLATIONS))
    shown = {cells[0]: cells[1:] for cells in rows_after("## What each choice is worth")[1:]}
    for column, name in enumerate(table):
        for row in table[name]:
            assert shown[row["what"]][column].startswith(told(row)), (name, row["what"])


#: Where a record has the value of an entry of the grid.
FIELDS = {
    "lams": "lam", "lee_lams": "lam", "map_iters": "map_iter", "direction_costs": "direction_C",
    "shrinkages": "shrinkage", "lda_inputs": "inputs",
}  # fmt: skip


@pytest.mark.parametrize("study", [*plan.TABLE_2, *plan.BESIDE], ids=lambda study: study.name)
def test_records_hold_the_whole_grid_and_nothing_else(study):
    complete = RESULTS.store(study)._complete()  # read once: the files are long
    for unit in study.units():
        records = complete[unit.key]
        for name in set(METHODS[unit.method].settings) & set(FIELDS):
            found = {record[FIELDS[name]] for record in records}
            assert found == set(getattr(unit.grid, name)), (unit, name)


def test_open_goal_follows_from_the_records_and_is_on_the_page(curves):
    table = written("open_goal.json")
    records = RESULTS.records(plan.OPEN_GOAL)
    raw = [*records, *RESULTS.records((*plan.TABLE_2, *plan.BESIDE))]
    assert table == tables.open_goal(
        [record for record in records if record["method"] not in RAW],
        [record for record in raw if record["method"] in RAW],
    )
    shown = {(cells[0], cells[1]): cells[2:] for cells in rows_after("## Past the paper")[1:]}
    for data, shares in table.items():
        for share, row in shares.items():
            cells = shown[data, share]
            assert cells[0] == told(row)
            assert cells[1] == str(row["dims"])
            assert cells[2].startswith(told(row["best_raw"]))


GPU = Results(ROOT / "results", backend="torch")


@pytest.fixture(scope="module")
def gpu_points():
    """What was chosen on a GPU beside what was chosen on a CPU, by data, share and method."""
    studies = [study for study in plan.TABLE_2 if GPU.store(study).path.exists()]
    on_gpu, on_cpu = (
        tables.curves(record for study in studies for record in results.store(study))
        for results in (GPU, RESULTS)
    )
    return {
        (cell.data, cell.share, method): (
            tables.chosen(points),
            tables.chosen(on_cpu[cell][method]),
        )
        for cell, found in on_gpu.items()
        for method, points in found.items()
    }


def test_a_gpu_finds_what_a_cpu_finds(gpu_points):
    cells = {key[:2] for key in gpu_points}
    assert len(cells) == 6, "MNIST and News at three shares of labels"
    for key, (gpu, cpu) in gpu_points.items():
        assert gpu.splits == cpu.splits == len(plan.SPLITS), key
        assert abs(gpu.test - cpu.test) <= cpu.std, key


def test_the_page_has_the_gpu_results(gpu_points):
    heading, *rows = rows_after("## On a GPU")
    columns = ("nmf_alpha", "nmf", "liu_wu2010")
    assert heading == ["data, labels", *(METHODS[name].title for name in columns)]
    expected = [
        [f"{data}, {share}", *(
            f"{gpu.test:.1f} ({cpu.test:.1f} ± {cpu.std:.1f})"
            for gpu, cpu in (gpu_points[data, share, name] for name in columns)
        )]
        for data, share in dict.fromkeys(key[:2] for key in gpu_points)
    ]  # fmt: skip
    assert rows == expected
