"""The race with few labels: draws, records, tables by hand, and classes that nobody labeled."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from typer.testing import CliRunner

from marginparts.cli import app
from marginparts.experiments.few_labels import collections as collected
from marginparts.experiments.few_labels import race as races
from marginparts.experiments.few_labels.collections import (
    Collection,
    found_folders,
    load_collection,
    missing_collection,
    prepared_rows,
)
from marginparts.experiments.few_labels.methods import CONTESTANTS, Trial
from marginparts.experiments.few_labels.page import curve_page, race_page, sentences
from marginparts.experiments.few_labels.race import (
    Entry,
    Race,
    RaceUnit,
    draw_rows,
    known_labels,
    run_race_unit,
)
from marginparts.experiments.few_labels.tables import (
    Cell,
    changes,
    missing_sentence,
    scores_of,
    summary,
)
from marginparts.experiments.runner import run_tasks
from marginparts.experiments.store import Store
from marginparts.labels import Labels

N, N_TEST, D, CLASSES = 60, 20, 12, 3


def counts(y, rng):
    """Words of each class, and a word that all have."""
    rates = np.full((len(y), D), 0.3)
    rates[:, 0] = 2.0
    for k in range(CLASSES):
        has = y[:, k] if y.ndim == 2 else y == k
        rates[has.astype(bool), 1 + 3 * k : 4 + 3 * k] = 3.0
    return rng.poisson(rates)


def write(folder, name, kind, *, several=False):
    rng = np.random.default_rng(0)
    place = folder / "fewlabel" / name
    place.mkdir(parents=True)
    for part, n in (("train", N), ("test", N_TEST)):
        y = rng.integers(0, 2, (n, CLASSES)) if several else np.arange(n) % CLASSES
        X = counts(y, rng)
        if part == "train":
            X[0] = 0  # no entry at all
        sp.save_npz(place / f"X_{part}.npz", sp.csr_matrix(X.astype(np.uint8)))
        np.save(place / f"y_{part}.npy", y.astype(np.int16))
    (place / "meta.json").write_text(json.dumps({"name": name, "kind": kind}))


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    write(folder, "notes", "text")
    write(folder, "shapes", "image")
    write(folder, "topics", "multilabel", several=True)
    return str(folder)


ENTRIES = (Entry("svm", "log"), Entry("svm", "tf-idf"), Entry("nb_em", "log"))
SMALL = Race("small", ENTRIES, ("notes", "shapes"), (2, 4), (0, 1))


class TestCollections:
    def test_rows_without_an_entry_are_left_out(self, data_dir):
        found = load_collection("notes", data_dir)
        assert found.X_train.shape[0] == len(found.y_train) == N - 1
        assert found.X_train.sum(axis=1).min() > 0

    def test_there_are_no_more_rows_than_the_race_takes(self, data_dir, tmp_path, monkeypatch):
        monkeypatch.setattr(collected, "MOST_TRAINING", 30)
        monkeypatch.setattr(collected, "MOST_TEST", 10)
        shutil.copytree(data_dir, tmp_path / "copy")
        found = load_collection("shapes", str(tmp_path / "copy"))
        assert len(found.y_train) <= 30
        assert len(found.y_test) == 10

    @pytest.mark.parametrize(("name", "rows"), [("notes", "log"), ("notes", "tf-idf"),
                                                ("topics", "log"), ("shapes", "unit")])  # fmt: skip
    def test_rows_have_length_one_and_only_texts_are_sparse(self, data_dir, name, rows):
        for X in prepared_rows(name, rows, data_dir):
            assert sp.issparse(X) == (name != "shapes")
            lengths = np.sqrt((X.multiply(X) if sp.issparse(X) else X * X).sum(axis=1))
            np.testing.assert_allclose(lengths, 1, rtol=1e-5)

    def test_what_is_absent_is_said_in_one_sentence(self, data_dir):
        assert missing_collection("notes", data_dir) is None
        assert missing_collection("digits", data_dir) is None
        assert "has no meta.json" in missing_collection("usps", data_dir)
        assert "news" in missing_collection("news", data_dir)
        assert found_folders(data_dir)[-3:] == ["notes", "shapes", "topics"]


class TestDraws:
    def test_so_many_labels_a_class_are_drawn_from_all_rows(self, data_dir):
        found = load_collection("notes", data_dir)
        few, more = (draw_rows(found, k, 0) for k in (2, 4))
        assert len(few) == 2 * CLASSES
        assert set(few) < set(more)
        assert set(draw_rows(found, 2, 1)) != set(few)
        # they are not drawn by class
        sizes = [np.bincount(found.y_train[draw_rows(found, 2, d)], minlength=3) for d in range(9)]
        assert any(len(set(each)) > 1 for each in sizes)

    def test_it_is_drawn_again_while_one_class_is_known(self):
        y = np.zeros(1000, dtype=np.int64)
        y[:5] = 1
        found = Collection("rare", np.ones((1000, 2)), y, np.ones((1, 2)), y[:1])
        for draw in range(5):
            assert len(np.unique(y[draw_rows(found, 1, draw)])) == 2

    def test_one_class_alone_is_refused(self):
        y = np.zeros(9, dtype=np.int64)
        with pytest.raises(ValueError, match="fewer than 2 classes"):
            draw_rows(Collection("one", np.ones((9, 2)), y, np.ones((1, 2)), y[:1]), 1, 0)


class TestMethods:
    @pytest.mark.parametrize("name", CONTESTANTS)
    def test_a_class_without_labels_is_never_predicted(self, data_dir, name):
        X, X_test = prepared_rows("notes", "log", data_dir)
        y = load_collection("notes", data_dir).y_train
        rows = np.concatenate([np.flatnonzero(y == k)[:4] for k in (0, 2)])
        labels = known_labels(y, rows, np.array([0, 2]))
        guess, setting = CONTESTANTS[name].predict(Trial(X, labels, X_test, 0))
        assert set(guess) <= {0, 1}  # places among those that are known
        assert setting in CONTESTANTS[name].rival.settings

    @pytest.mark.parametrize("name", CONTESTANTS)
    def test_a_label_that_no_row_has_is_never_given(self, data_dir, name):
        X, X_test = prepared_rows("topics", "log", data_dir)
        codes = load_collection("topics", data_dir).y_train.copy()
        codes[30:] = -1
        codes[:30, 1] = 0
        labels = Labels(np.arange(CLASSES), codes)
        guess, _ = CONTESTANTS[name].predict(Trial(X, labels, X_test, 0))
        assert_array_equal(guess.any(axis=0), [True, False, True])

    @pytest.mark.parametrize("method", [*CONTESTANTS, "nmf_alpha"])
    def test_what_is_easy_is_learned(self, data_dir, method):
        (record,) = run_race_unit(RaceUnit("notes", 5, 0, method, "log"), data_dir)
        assert record["score"] >= 75
        assert record["labeled"] == 15

    @pytest.mark.parametrize("method", [*CONTESTANTS, "nmf_alpha"])
    def test_several_labels_a_sample(self, data_dir, method):
        (record,) = run_race_unit(RaceUnit("topics", 8, 0, method, "log"), data_dir)
        assert 50 <= record["score"] <= 100
        assert 0 <= record["mean_f"] <= 100

    def test_a_variant_gets_its_options(self, data_dir, monkeypatch):
        monkeypatch.setitem(races.VARIANTS, "huge", {"n_components": 10_000, "no_such": 1})
        with pytest.raises(TypeError, match="no_such"):
            run_race_unit(RaceUnit("notes", 5, 0, "nmf_alpha:huge", "log"), data_dir)


class TestUnits:
    def test_texts_are_prepared_in_two_ways_and_images_in_one(self, data_dir):
        names = {unit.name for unit in SMALL.units(data_dir=data_dir)}
        assert {"notes/2/0/svm/log", "notes/2/0/svm/tf-idf", "notes/2/0/nb_em/log"} <= names
        assert {name for name in names if name.startswith("shapes/2/0")} == {"shapes/2/0/svm/unit"}
        assert len(names) == 4 * (3 + 1)

    def test_the_cheapest_come_first_and_patterns_choose(self, data_dir):
        weights = [unit.weight for unit in SMALL.units(data_dir=data_dir)]
        assert weights == sorted(weights)
        some = SMALL.units(("notes/*/1/svm/*", "shapes/4/0/*"), data_dir)
        assert len(some) == 5

    def test_a_curve_ends_before_all_rows_are_labeled(self):
        labels = {(unit.data, unit.labels) for unit in races.CURVE.units()}
        assert ("news", 200) in labels
        assert ("usps", 100) in labels
        assert ("usps", 200) not in labels

    def test_other_settings_have_another_key(self, monkeypatch):
        unit = RaceUnit("notes", 2, 0, "nmf_alpha:class sums", "log")
        before = unit.key
        monkeypatch.setitem(races.VARIANTS, "class sums", {"directions": "svm"})
        assert unit.key != before

    def test_a_run_goes_on_where_it_was(self, data_dir, tmp_path):
        store = Store(tmp_path / "records.jsonl")
        units = SMALL.units(data_dir=data_dir)
        begun = []

        def work(unit):
            begun.append(unit)
            return run_race_unit(unit, data_dir)

        assert run_tasks(units[:3], store, work, n_jobs=1).left == 0
        assert run_tasks(units, store, work, n_jobs=1).left == 0
        assert begun == units
        (record,) = store.of({units[0].key})
        assert record["score"] == run_race_unit(units[0], data_dir)[0]["score"]


def record(data, labels, draw, method, rows, score):
    return {"data": data, "labels": labels, "draw": draw, "method": method, "rows": rows,
            "score": score}  # fmt: skip


class TestTables:
    """Two cells (one of texts), two draws, and numbers small enough for the head."""

    RACE = Race("hand", (Entry("svm", "log"), Entry("svm", "tf-idf"), Entry("tsvm", "log"),
                         Entry("tsvm", "tf-idf"), Entry("nb_em", "log"), Entry("nmf_alpha", "log"),
                         Entry("nmf_alpha:x", "log")),
                ("sms_spam", "usps"), (5,), (0, 1))  # fmt: skip
    TEXT, IMAGE = Cell("sms_spam", 5), Cell("usps", 5)

    @pytest.fixture
    def scores(self):
        table = {
            ("sms_spam", "svm", "log"): (70, 72), ("sms_spam", "svm", "tf-idf"): (74, 76),
            ("sms_spam", "tsvm", "log"): (80, 80), ("sms_spam", "tsvm", "tf-idf"): (84, 86),
            ("sms_spam", "nb_em", "log"): (90, 84), ("sms_spam", "nmf_alpha", "log"): (85, 85),
            ("sms_spam", "nmf_alpha:x", "log"): (83, 85), ("usps", "svm", "unit"): (60, 60),
            ("usps", "tsvm", "unit"): (58, 60), ("usps", "nmf_alpha", "unit"): (66, 64),
            ("usps", "nmf_alpha:x", "unit"): (60, 62),
        }  # fmt: skip
        records = [
            record(data, 5, draw, method, rows, float(score))
            for (data, method, rows), both in table.items()
            for draw, score in enumerate(both)
        ]
        return scores_of(records, self.RACE.entries)

    def test_images_count_for_both_ways_to_prepare_texts(self, scores):
        for rows in ("log", "tf-idf"):
            assert scores.mean(Entry("tsvm", rows), self.IMAGE) == 59
            assert scores.gain(Entry("tsvm", rows), self.IMAGE).mean == -1
        assert scores.gain(Entry("tsvm", "tf-idf"), self.TEXT).mean == 10
        assert scores.mean(Entry("nb_em", "log"), self.IMAGE) is None

    def test_the_summary(self, scores):
        told = summary(self.RACE, scores)
        means = {each["title"]: (each["score"], each["gain"]) for each in told["entries"]}
        assert means["TSVM, log"] == (69.5, 4.0)  # (80 + 59) / 2, (9 - 1) / 2
        assert means["TSVM, tf-idf"] == (72.0, 4.5)  # (85 + 59) / 2, (10 - 1) / 2
        assert means["NMF-alpha, log"] == (75.0, 9.5)  # (85 + 65) / 2, (14 + 5) / 2
        assert told["common_cells"] == 2
        assert told["best_single_rival"] == "TSVM, tf-idf"
        ours = told["ours"]["NMF-alpha, log"]
        assert ours["over_best_single"] == {"mean": 3.0, "error": 3.0, "cells": 2}  # 0 and 6
        assert ours["over_svm"]["mean"] == 9.5
        # sms_spam: -5 and 1 against naive Bayes, error 3; usps: +6 and +4 against the SVM
        hindsight = ours["against_best_of_cell"]
        assert (hindsight["level"], hindsight["cells"]) == (2, 2)
        assert hindsight["worst"] == {
            "cell": "sms_spam, 5 a class", "mean": -2.0, "rival": "naive Bayes with EM, log",
        }  # fmt: skip
        assert ours["worst_against_svm"] == {"cell": "usps, 5 a class", "mean": 5.0}

    def test_what_is_clearly_behind_is_not_level(self, scores):
        scores[Entry("nmf_alpha", "log")][self.TEXT] = {0: 80.0, 1: 80.0}
        found = summary(self.RACE, scores)["ours"]["NMF-alpha, log"]["against_best_of_cell"]
        assert found["level"] == 1  # -10 and -4: 7 behind, with an error of 3
        assert found["share"] == 0.5

    def test_only_draws_that_both_have_are_compared(self, scores):
        del scores[Entry("svm", "log")][self.TEXT][0]
        assert scores.gain(Entry("tsvm", "log"), self.TEXT) == (8.0, 0.0, 1)

    def test_what_a_variant_changes(self, scores):
        (found,) = changes(self.RACE, scores)
        assert found == {"title": "NMF-alpha (x), log", "mean": -2.5, "error": 1.5, "cells": 2}

    def test_the_page_says_the_same(self, scores):
        told = summary(self.RACE, scores)
        page = race_page(self.RACE, scores, told, "All 1 units are there.", "few-labels.png")
        assert "| TSVM, tf-idf | 85.0 (+10.0) | 59.0 (-1.0) |" in page
        assert "| naive Bayes with EM, log | **87.0 (+16.0)** | - |" in page
        assert "+3.0 ± 3.0 points against the best single rival, TSVM, tf-idf" in sentences(told)[0]
        assert "2 of 2 cells (100 %)" in page

    def test_the_page_of_a_curve_has_a_column_a_number_of_labels(self, scores):
        page = curve_page(self.RACE, scores, "All 1 units are there.", "x.png")
        assert "### usps\n\n| method, rows of texts | 5 |" in page
        assert "| TSVM, log | 59.0 |" in page

    def test_missing_units_are_counted(self):
        units = self.RACE.units()
        said = missing_sentence(units, [unit for unit in units if unit.method == "tsvm"])
        assert said.startswith("6 of 22 units are missing")
        assert "sms_spam 4 of 14, usps 2 of 8" in said or "usps 2 of 8, sms_spam 4 of 14" in said
        assert missing_sentence(units, []) == "All 22 units are there."


def test_the_command_runs_shows_and_resumes(data_dir, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("<!-- begin: few_labels --><!-- end: few_labels -->")
    given = [
        "reproduce", "few-labels", "--data-dir", data_dir, "--results", str(tmp_path),
        "--jobs", "1", "--quiet", "--page", str(page), "--data", "notes", "--data", "shapes",
        "--only", "*/5/0/svm/*", "--only", "*/5/0/lsa/*",
    ]  # fmt: skip
    runs = [CliRunner().invoke(app, given, env={"COLUMNS": "100"}) for _ in range(2)]
    assert [run.exit_code for run in runs] == [0, 0], runs[0].output
    assert runs[0].stdout == runs[1].stdout
    records = (tmp_path / "records" / "few-labels.jsonl").read_text().splitlines()
    assert len(records) == 6
    told = json.loads((tmp_path / "few_labels.json").read_text())
    assert set(told["cells"]) == {"notes, 5 a class", "shapes, 5 a class"}
    assert (tmp_path / "few-labels.png").read_bytes().startswith(b"\x89PNG")
    assert "![Gains over the linear SVM](few-labels.png)" in page.read_text()
    assert "units are missing" in runs[0].stdout


def test_the_command_draws_a_curve_and_tells_what_variants_change(data_dir, tmp_path, monkeypatch):
    curve = replace(races.CURVE, collections=("notes",), labels=(2, 5), draws=(0,))
    ours = tuple(Entry(name, "log") for name in ("nmf_alpha", "nmf_alpha:class sums"))
    monkeypatch.setattr(races, "CURVE", curve)
    monkeypatch.setattr(races, "ABLATION", replace(races.ABLATION, entries=ours))
    for target, some, file in (
        ("few-labels-curve", "*/[sl]*/*", "few-labels-curve.png"),
        ("few-labels-ablation", "notes/5/0/*", "few_labels_ablation.json"),
    ):
        result = CliRunner().invoke(
            app,
            ["reproduce", target, "--data-dir", data_dir, "--results", str(tmp_path),
             "--jobs", "1", "--quiet", "--only", some],
        )  # fmt: skip
        assert result.exit_code == 0, result.output
        assert (tmp_path / file).exists()
    (change,) = json.loads((tmp_path / file).read_text())["changes"]
    assert change["title"] == "NMF-alpha (class sums), log"
    assert change["cells"] == 1


def test_the_command_refuses_what_it_does_not_know(data_dir, tmp_path):
    given = ["reproduce", "few-labels", "--data-dir", data_dir, "--results", str(tmp_path)]
    result = CliRunner().invoke(app, [*given, "--data", "nowhere"])
    assert result.exit_code == 1
    assert "no collection 'nowhere'" in result.output
    assert CliRunner().invoke(app, ["reproduce", "table1", "--only", "x"]).exit_code == 2


def test_the_draw_of_rows_is_the_same_everywhere(data_dir):
    rows = draw_rows(load_collection("shapes", data_dir), 2, 0)
    assert_array_equal(rows, np.sort(np.random.default_rng(0).permutation(N - 1)[:6]))
