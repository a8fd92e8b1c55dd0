"""Tables and arrays out, piece after piece."""

import csv
import json

import numpy as np
import pytest

from marginparts.app.writers import open_array_writer, open_table_writer
from marginparts.files.atomic import FileProblemError


def written(path, *batches):
    with open_table_writer(path) as writer:
        for batch in batches:
            writer.write(batch)
    return path


@pytest.mark.parametrize("ending", [".csv", ".jsonl", ".parquet"])
def test_numbers_of_the_user_keep_all_their_digits(tmp_path, ending):
    path = written(tmp_path / f"x{ending}", {"when": [1700000000.123], "where": [52.52000661234]})
    if ending == ".csv":
        with path.open(newline="") as file:
            (row,) = csv.DictReader(file)
    elif ending == ".jsonl":
        row = json.loads(path.read_text())
    else:
        (row,) = pytest.importorskip("pyarrow.parquet").read_table(path).to_pylist()
    assert (float(row["when"]), float(row["where"])) == (1700000000.123, 52.52000661234)


def test_what_is_no_number_is_null_in_json(tmp_path):
    path = written(tmp_path / "x.jsonl", {"a": [float("nan"), float("inf"), 1.0]})
    lines = [json.loads(line)["a"] for line in path.read_text().splitlines()]
    assert lines == [None, None, 1.0]


def test_parquet_columns_may_be_empty_first_and_filled_later(tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    path = written(
        tmp_path / "x.parquet",
        {"note": [None, None], "predicted": [(), ()], "score": [(), ()]},
        {"note": ["late", None], "predicted": [("a", "b"), ()], "score": [(1.0, 0.5), ()]},
    )
    rows = pq.read_table(path).to_pylist()
    assert [row["note"] for row in rows] == [None, None, "late", None]
    assert rows[2]["predicted"] == ["a", "b"]
    assert rows[2]["score"] == [1.0, 0.5]


def test_parquet_columns_of_mixed_kinds_become_text(tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    path = written(tmp_path / "x.parquet", {"a": [1, "two", None]})
    assert [row["a"] for row in pq.read_table(path).to_pylist()] == ["1", "two", None]


def test_a_parquet_column_that_changes_its_kind_is_refused_with_a_sentence(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "x.parquet"
    path.write_text("as it was")
    with pytest.raises(FileProblemError, match=r"write a \.csv"):
        written(path, {"a": [1, 2]}, {"a": ["two", "three"]})
    assert path.read_text() == "as it was"


def test_several_values_stand_in_one_cell(tmp_path):
    path = tmp_path / "x.csv"
    with open_table_writer(path, separator="|") as writer:
        writer.write({"labels": [("a", "b"), ()], "scores": [(1.5, 0.25), ()]})
    assert path.read_text().splitlines() == ["labels,scores", "a|b,1.5|0.25", ","]


def test_an_array_of_unknown_length(tmp_path):
    rows = np.arange(12, dtype=np.float32).reshape(4, 3)
    with open_array_writer(tmp_path / "z.npz", "Z", 3) as write:
        write(rows[:1])
        write(rows[1:])
    assert np.array_equal(np.load(tmp_path / "z.npz")["Z"], rows)
