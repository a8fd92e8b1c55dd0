"""fit, predict, transform, topics, next and report through the command itself, for every input."""

import csv
import gzip
import io
import json
import os
import re
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from rich.console import Console
from rich.progress import TextColumn
from typer.testing import CliRunner

import marginparts
from marginparts.app.ranks import ranks_of_file
from marginparts.app.replacement import changed_mind
from marginparts.cli import app
from marginparts.commands._console import bars
from marginparts.commands.fit import tell
from marginparts.files.atomic import FileProblemError

RNG = np.random.default_rng(0)
WORDS = {
    "fruit": ["apple", "banana", "cherry", "grape", "lemon", "mango", "peach", "plum"],
    "metal": ["iron", "copper", "zinc", "tin", "nickel", "cobalt", "silver", "gold"],
}
QUICK = ["--components", "3", "--lam", "1", "--cost", "1", "--max-df", "0.9"]


def texts(n=60):
    """Texts of seven words, six of them of their kind."""
    kinds = [("fruit", "metal")[k % 2] for k in range(n)]
    made = []
    for kind in kinds:
        other = "metal" if kind == "fruit" else "fruit"
        words = [*RNG.choice(WORDS[kind], 6), RNG.choice(WORDS[other])]
        made.append(" ".join(map(str, words)))
    return made, kinds


TEXTS, KINDS = texts()
LABELS = [kind if k < 30 else "" for k, kind in enumerate(KINDS)]
SEVERAL = [f"{kind};all" if kind and k % 4 < 2 else kind for k, kind in enumerate(LABELS)]
COUNTS = np.array(
    [[text.split().count(word) for kind in WORDS.values() for word in kind] for text in TEXTS]
)
COLUMNS = [word for kind in WORDS.values() for word in kind]


@pytest.fixture(autouse=True)
def without_other_rivals(monkeypatch):
    """Leave out the rivals that `test_evaluation.py` is about: they take longer than a fit here."""
    monkeypatch.setattr("marginparts.app.evaluation._FEW_LABELS", 0)


def run(*args):
    """Run the command; whatever happens, there is no traceback."""
    result = CliRunner().invoke(app, [str(a) for a in args], catch_exceptions=False)
    assert "Traceback" not in result.output
    return result


def refused(*args):
    """Run what cannot work: one sentence on the error stream, and the code of a wrong argument."""
    result = run(*args)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert len(result.stderr.strip().splitlines()) == 1
    assert result.stderr.strip().endswith(".")
    return result.stderr


def write_table(path, labels=LABELS, **more):
    rows = {"id": list(range(len(TEXTS))), "body": TEXTS, "kind": labels, **more}
    if path.suffix in (".csv", ".tsv"):
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, delimiter="\t" if path.suffix == ".tsv" else ",")
            writer.writerow(rows)
            writer.writerows(zip(*rows.values(), strict=True))
    elif path.suffix == ".jsonl":
        lines = [
            json.dumps(dict(zip(rows, row, strict=True)))
            for row in zip(*rows.values(), strict=True)
        ]
        path.write_text("\n".join(lines) + "\n")
    else:
        pa = pytest.importorskip("pyarrow")
        pq = pytest.importorskip("pyarrow.parquet")
        pq.write_table(pa.table(rows), path)
    return path


def read_csv(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def check_whole_way(tmp_path, file, *options, rows=60, hidden=None):
    """Fit, predict, transform, next, topics and report; the hidden labels must be found."""
    model = tmp_path / "a.model"
    result = run("fit", file, *options, *QUICK, "--out", model)
    assert result.exit_code == 0, result.output
    out = tmp_path / "predicted.csv"
    assert run("predict", model, file, "--out", out).exit_code == 0
    predicted = read_csv(out)
    assert len(predicted) == rows
    if hidden is not None:
        found = [predicted[k]["predicted"] for k in range(30, 60)]
        assert np.mean([f == h for f, h in zip(found, hidden, strict=True)]) > 0.8
    codes = tmp_path / "codes.npz"
    assert run("transform", model, file, "--out", codes).exit_code == 0
    assert np.load(codes)["Z"].shape == (rows, 3)
    suggested = run("next", model, file, "-n", "4", "--json")
    assert suggested.exit_code == 0
    assert len(json.loads(suggested.stdout)) == 4
    topics = run("topics", model, "--json")
    assert topics.exit_code == 0
    page = tmp_path / "page.html"
    assert run("report", model, file, "--out", page).exit_code == 0
    assert page.read_text(encoding="utf-8").lstrip().lower().startswith("<!doctype html>")
    return marginparts.load(model), json.loads(topics.stdout)


def test_the_command_and_the_function_give_the_same_model(tmp_path):
    file, written = write_table(tmp_path / "mail.csv"), tmp_path / "mail.model"
    options = ("--components", "3", "--lam", "1,3", "--max-iter", "5", "--stop-words", "english")
    assert run("fit", file, *COLUMNS_OF, *options, "--out", written, "--quiet").exit_code == 0
    model = marginparts.fit_file(
        file, text="body", label="kind", n_components=3, lam=(1, 3), max_iter=5,
        stop_words="english",
    )  # fmt: skip
    same = marginparts.load(written)
    same.card.seconds = model.card.seconds
    assert model.card == same.card
    assert model.classifier.best_params_ == same.classifier.best_params_
    assert_array_equal(model.classifier.coef_, same.classifier.coef_)
    assert_array_equal(model.classifier.parts_.components_, same.classifier.parts_.components_)


def test_the_function_takes_paths_and_checkpoints(tmp_path):
    file, words = write_table(tmp_path / "mail.csv"), tmp_path / "words.txt"
    words.write_text("the\nand\n")
    kept = marginparts.Checkpoint(tmp_path / "kept", keep_finished=True)
    model = marginparts.fit_file(
        file, text="body", label="kind", n_components=3, lam=1.0, max_iter=3, stop_words=words,
        checkpoint=kept,
    )  # fmt: skip
    assert not {"the", "and"} & set(model.preparation.names)
    assert (tmp_path / "kept").exists()


def test_the_function_refuses_what_it_does_not_know(tmp_path):
    file = write_table(tmp_path / "mail.csv")
    with pytest.raises(TypeError, match="n_parts"):
        marginparts.fit_file(file, text="body", label="kind", n_parts=3)
    with pytest.raises(ValueError, match="weighting"):
        marginparts.fit_file(file, text="body", label="kind", weighting="heavy")
    with pytest.raises(FileProblemError, match="no column"):
        marginparts.fit_file(file, text="text", label="kind")


# --- every kind of input


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_tables_of_texts(tmp_path, ending):
    file = write_table(tmp_path / f"mail{ending}")
    options = ("--text", "body", "--label", "kind")
    model, topics = check_whole_way(tmp_path, file, *options, hidden=KINDS[30:])
    assert model.layout.kind == "text"
    for entry in topics:  # the words of a label's first part are of its kind
        words = [word for word, _ in entry["parts"][0]["words"][:3]]
        assert set(words) <= set(WORDS[entry["label"]])


def write_numbers(path, counts=COUNTS):
    with path.open("w", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(["kind", *COLUMNS])
        writer.writerows(zip(LABELS, *counts.T.tolist(), strict=True))
    return path


def test_a_table_of_numbers(tmp_path):
    file = write_numbers(tmp_path / "numbers.csv")
    model, _ = check_whole_way(tmp_path, file, "--label", "kind", hidden=KINDS[30:])
    assert model.feature_names == COLUMNS


def test_several_labels_in_a_cell(tmp_path):
    file = write_table(tmp_path / "mail.csv", SEVERAL)
    options = ("--text", "body", "--label", "kind", "--label-sep", ";")
    model, _ = check_whole_way(tmp_path, file, *options)
    assert model.multilabel
    assert model.class_names == ["all", "fruit", "metal"]
    predicted = read_csv(tmp_path / "predicted.csv")
    kinds = [set(row["predicted"].split(";")) & set(WORDS) for row in predicted[30:]]
    assert np.mean([k == {truth} for k, truth in zip(kinds, KINDS[30:], strict=True)]) > 0.8
    for row in predicted:
        assert len(row["predicted"].split(";")) == len(row["score"].split(";"))


@pytest.mark.parametrize("several", [False, True])
def test_svmlight(tmp_path, several):
    lines = []
    for k, counts in enumerate(COUNTS):
        known = (["1"] if KINDS[k] == "fruit" else ["2"]) if k < 30 else []
        known += ["3"] if several and known and k % 4 < 2 else []
        features = " ".join(f"{j + 1}:{c}" for j, c in enumerate(counts) if c)
        lines.append(f"{','.join(known) if known or several else -1} {features}")
    file = tmp_path / "counts.svm"
    file.write_text("\n".join(lines) + "\n")
    model, _ = check_whole_way(tmp_path, file)
    assert model.multilabel is several
    assert model.class_names == ["1", "2", "3"][: 2 + several]


@pytest.mark.parametrize("ending", ["npz", "mtx", "npy", "npz dense"])
def test_matrices_with_a_labels_file(tmp_path, ending):
    file = tmp_path / f"counts.{ending.split()[0]}"
    if ending == "npz":
        sp.save_npz(file, sp.csr_array(COUNTS))
    elif ending == "mtx":
        scipy.io.mmwrite(file, sp.coo_array(COUNTS))
    elif ending == "npy":
        np.save(file, COUNTS)
    else:
        np.savez(file, X=COUNTS)
    labels, words = tmp_path / "labels.txt", tmp_path / "words.txt"
    labels.write_text("\n".join(LABELS) + "\n")
    words.write_text("\n".join(COLUMNS) + "\n")
    options = ("--labels", labels, "--words", words)
    model, topics = check_whole_way(tmp_path, file, *options, hidden=KINDS[30:])
    assert model.feature_names == COLUMNS
    assert topics[0]["label"] == "fruit"


@pytest.mark.filterwarnings("default")  # other people's warnings are not ours
def test_h5ad(tmp_path):
    anndata = pytest.importorskip("anndata")
    pd = pytest.importorskip("pandas")
    cells = pd.DataFrame(
        {"kind": pd.Categorical([label or None for label in LABELS])},
        index=[f"cell{k}" for k in range(60)],
    )
    data = anndata.AnnData(
        sp.csr_matrix(COUNTS.astype(np.float32)), obs=cells, var=pd.DataFrame(index=COLUMNS)
    )
    file = tmp_path / "cells.h5ad"
    data.write_h5ad(file)
    model, _ = check_whole_way(tmp_path, file, "--label", "kind", hidden=KINDS[30:])
    assert model.feature_names == COLUMNS


def test_a_folder_of_images(tmp_path):
    Image = pytest.importorskip("PIL.Image")
    from marginparts.datasets import load_digits_49

    digits = load_digits_49()
    folder = tmp_path / "digits"
    for k in range(60):
        name = str(digits.target_names[digits.target[k]]) if k < 30 else "unlabelled"
        (folder / name).mkdir(parents=True, exist_ok=True)
        pixels = (digits.data[k].reshape(8, 8) * 255 / digits.data.max()).astype(np.uint8)
        Image.fromarray(pixels).save(folder / name / f"{k:03}.png")
    model, _ = check_whole_way(tmp_path, folder, "--path")
    assert model.layout.image_shape == (8, 8)
    assert [step.lam for step in model.path] == sorted(step.lam for step in model.path)
    predicted = read_csv(tmp_path / "predicted.csv")
    truth = {f"{k:03}": str(digits.target_names[digits.target[k]]) for k in range(60)}
    hits = [
        row["predicted"] == truth[row["file"][-7:-4]]
        for row in predicted
        if row["file"].startswith("unlabelled")
    ]
    assert len(hits) == 30
    assert np.mean(hits) > 0.8


def test_a_compressed_table(tmp_path):
    plain = write_table(tmp_path / "mail.csv")
    file = tmp_path / "mail.csv.gz"
    file.write_bytes(gzip.compress(plain.read_bytes()))
    check_whole_way(tmp_path, file, "--text", "body", "--label", "kind", hidden=KINDS[30:])


# --- what is written


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fitted")
    table = write_table(folder / "mail.csv")
    model = folder / "mail.model"
    result = run("fit", table, "--text", "body", "--label", "kind", *QUICK, "--out", model)
    assert result.exit_code == 0, result.output
    return table, model


def test_the_file_of_a_fit_is_used_exactly_as_given(fitted, tmp_path):
    table, _ = fitted
    for name in ("m", "m.zip", "m.anything.else"):
        out = tmp_path / name
        run("fit", table, "--text", "body", "--label", "kind", *QUICK, "--out", out, "--quiet")
        assert out.is_file()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m", "m.anything.else", "m.zip"]


def test_a_fit_says_in_words_what_happened(fitted, tmp_path):
    table, _ = fitted
    out = tmp_path / "m"
    said = run("fit", table, "--text", "body", "--label", "kind", *QUICK, "--out", out).stdout
    assert "60 samples, 30 of them labeled" in said
    assert re.search(r"On hidden labels the accuracy is \d", said)
    assert "linear SVM" in said
    assert "plain NMF" in said
    assert str(out) in said.replace("\n", "")
    assert "\x1b[" not in said  # no color in a pipe


def test_a_column_of_weights_says_how_much_each_text_counts(tmp_path):
    # half of the labels are wrong, and weigh nothing or next to nothing
    wrong = {"fruit": "metal", "metal": "fruit", "": ""}
    labels = [wrong[name] if k % 4 < 2 else name for k, name in enumerate(LABELS)]
    rows = zip(TEXTS, labels, range(60), strict=True)
    cells = [f"{text},{name},{(0, '1e-6', 1, 2)[k % 4]}" for text, name, k in rows]
    table = tmp_path / "heavy.csv"
    table.write_text("\n".join(["says,kind,heavy", *cells]))
    columns = ("--text", "says", "--label", "kind")
    run("fit", table, *columns, "--weight", "heavy", "--out", tmp_path / "a.model", *QUICK)
    model = marginparts.load(tmp_path / "a.model")
    assert np.mean([a == b for a, b in zip(model.predict(TEXTS), KINDS, strict=True)]) > 0.9
    assert model.card.n_samples == 45
    for column, what in (("says", "only a table"), ("no", "no column"), ("kind", "only a table")):
        result = run("fit", table, *columns, "--weight", column, "--out", tmp_path / "b.model")
        assert result.exit_code != 0
        assert what in " ".join(result.output.split())
    table.write_text("says,kind,heavy\nan apple,fruit,\niron,metal,1\n")
    result = run("fit", table, *columns, "--weight", "heavy", "--out", tmp_path / "b.model")
    assert "must hold numbers" in " ".join(result.output.split())


def test_a_model_is_a_prior_for_other_words(fitted, tmp_path):
    _, model = fitted
    other, columns = tmp_path / "other.csv", ("--text", "body", "--label", "kind")
    kinds = zip(TEXTS, LABELS, strict=True)
    cells = [f"{text.replace('plum', 'apricot')},{kind}" for text, kind in kinds]
    other.write_text("\n".join(["body,kind", *cells]))
    how = ("--max-df", "0.9", "--prior", model, "--strength", "1e4", "--path", "--out")
    run("fit", other, *columns, *how, tmp_path / "a.model")
    before, after = (marginparts.load(each) for each in (model, tmp_path / "a.model"))
    known = {name: k for k, name in enumerate(before.feature_names)}
    shared = [(known[name], k) for k, name in enumerate(after.feature_names) if name in known]
    assert "apricot" in after.feature_names
    assert after.n_parts == before.n_parts
    old, new = (
        each.classifier.parts_.components_[:, [pair[k] for pair in shared]]
        for k, each in enumerate((before, after))
    )
    assert_allclose(new, old / old.sum(axis=1, keepdims=True), atol=0.01)
    assert after.classifier.prior is None
    run("report", tmp_path / "a.model", other, "--out", tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text("utf-8")
    assert f"{before.n_parts} parts of {before.card.source}, strength 10000" in page
    assert page.count('"carried":true') == before.n_parts
    assert '"own":[["' in page
    assert "There is no file" in refused(
        "fit", other, *columns, *how[:3], tmp_path / "no", "--out", "x"
    )
    marginparts.save(marginparts.NMFAlpha(2).fit(np.eye(4)), tmp_path / "bare.model")
    said = refused("fit", other, *columns, "--prior", tmp_path / "bare.model", "--out", "x.model")
    assert "no model that marginparts fit has written" in said
    said = refused(
        "fit", other, *columns, "--components", "2", "--prior", model, "--out", "x.model"
    )
    assert "--components must be 3 or more" in said


def test_gaps_of_tables_and_matrices_are_filled_if_they_are_said_to_be_there(tmp_path):
    rng = np.random.default_rng(0)
    kinds = np.resize(["low", "high"], 60)
    X = rng.poisson(np.where((kinds == "low")[:, None], [8, 8, 8, 1, 1, 1], [1, 1, 1, 8, 8, 8]))
    hidden = rng.random(X.shape) < 0.15
    cells = np.where(hidden, "", X.astype(str)).tolist()
    labels = [name if k < 20 else "" for k, name in enumerate(kinds)]
    table, model = tmp_path / "gaps.csv", tmp_path / "gaps.model"
    rows = [",".join([*row, name]) for row, name in zip(cells, labels, strict=True)]
    table.write_text("\n".join(["a,b,c,d,e,f,kind", *rows]))
    few = ("--components", "2", "--lam", "1", "--cost", "1", "--out", model)
    how = ("--label", "kind", *few)
    assert "--missing nan" in refused("fit", table, *how)
    run("fit", table, *how, "--missing", "nan")
    told = json.loads(run("predict", model, table, "--json").stdout.splitlines()[0])
    assert told["predicted"] == kinds[0]
    found = marginparts.load(model)
    gaps = np.where(hidden, np.nan, X)
    assert np.mean(np.array(found.predict(gaps)) == kinds) > 0.95
    assert run("report", model, table, "--out", tmp_path / "it.html").exit_code == 0
    assert run("next", model, table).exit_code == 0
    stored = sp.csr_array(gaps)
    sp.save_npz(tmp_path / "gaps.npz", stored)
    (tmp_path / "labels.txt").write_text("\n".join([*labels, ""]))
    how = ("--labels", tmp_path / "labels.txt", *few)
    assert "--missing nan" in refused("fit", tmp_path / "gaps.npz", *how)
    run("fit", tmp_path / "gaps.npz", *how, "--missing", "nan")
    assert np.mean(np.array(marginparts.load(model).predict(stored)) == kinds) > 0.95
    assert "most of each row" in refused("fit", tmp_path / "gaps.npz", *how, "--missing", "zeros")
    said = refused("fit", tmp_path / "gaps.npz", *how, "--missing", "nan", "--weighting", "l2-log")
    assert "needs whole rows" in said


def test_what_is_advised_about_gaps_is_what_the_command_has(fitted, tmp_path):
    table = tmp_path / "gaps.csv"
    for cells in ("kind,a\n1,\n2,3\n", "kind,a\n1,2\n,3\n", "kind,a\nx,2\n,3\n"):
        table.write_text(cells)
        said = refused("ranks", table)
        assert "--missing" not in said
        assert "--label COLUMN" in said
        assert ("fill them in" in said) == ("x" not in cells)
    table.write_text("kind,a\nx,\n,3\n")
    said = refused("ranks", table, "--label", "kind")
    assert "fill them in" in said
    assert "--" not in said
    whole = write_numbers(tmp_path / "whole.csv")
    model = tmp_path / "a.model"
    assert run("fit", whole, "--label", "kind", *QUICK, "--out", model).exit_code == 0
    counts = COUNTS.astype(object)
    counts[3, 2] = ""
    gaps = write_numbers(tmp_path / "more.csv", counts)
    said = refused("predict", model, gaps, "--out", tmp_path / "p.csv")
    assert "use a model fitted with --missing nan" in said
    assert "--label" not in said
    np.save(tmp_path / "gaps.npy", np.where(np.eye(*COUNTS.shape), np.nan, COUNTS))
    assert "--missing" not in refused("ranks", tmp_path / "gaps.npy")


@pytest.mark.wide
def test_parts_share_less_if_that_is_asked(fitted, tmp_path):
    table, _ = fitted
    how = ("--text", "body", "--label", "kind", "--components", "4", "--lam", "1", "--out")
    shared = []
    for charge in ("0", "10"):
        run("fit", table, *how, tmp_path / "m", "--exclusivity", charge)
        parts = marginparts.load(tmp_path / "m").classifier.parts_.components_
        unit = parts / np.linalg.norm(parts, axis=1, keepdims=True)
        shared.append((unit @ unit.T)[np.triu_indices(4, 1)].mean())
    assert shared[1] < 0.5 * shared[0]
    said = refused("fit", table, *how[:-1], "--missing", "nan", "--out", "x.model")
    assert "matrices and numeric tables" in said


def test_a_fit_weighs_classes_and_goes_by_another_score(fitted, tmp_path):
    table, _ = fitted
    columns = ("--text", "body", "--label", "kind")
    how = ("--class-weight", "balanced", "--scoring", "f1_macro", "--json")
    said = json.loads(run("fit", table, *columns, *QUICK, *how, "--out", tmp_path / "m").stdout)
    assert said["metric"] == "macro F-measure"
    classifier = marginparts.load(tmp_path / "m").classifier
    assert classifier.get_params()["class_weight"] == "balanced"
    assert said["scores"][0]["score"] == classifier.honest_score_
    for wrong in (("--class-weight", "fair"), ("--scoring", "roc")):
        result = run("fit", table, *columns, *wrong, "--out", tmp_path / "n")
        assert result.exit_code != 0
        assert wrong[1] in result.output


def test_json_is_for_scripts_and_quiet_is_quiet(fitted, tmp_path):
    table, model = fitted
    columns = ("--text", "body", "--label", "kind")
    result = run("fit", table, *columns, *QUICK, "--out", tmp_path / "m", "--json")
    said = json.loads(result.stdout)
    assert said["labels"] == {"fruit": 15, "metal": 15}
    assert said["chosen"]["n_components"] == 3
    assert result.stderr == ""
    quiet = run("fit", table, *columns, *QUICK, "--out", tmp_path / "m", "--quiet")
    assert quiet.output == ""
    out = tmp_path / "p.csv"
    assert json.loads(run("predict", model, table, "--out", out, "--json").stdout)["samples"] == 60
    assert run("predict", model, table, "--out", out, "-q").output == ""
    page = tmp_path / "page.html"
    assert json.loads(run("report", model, "--out", page, "--json").stdout)["page"] == str(page)
    codes = tmp_path / "z.csv"
    assert json.loads(run("transform", model, table, "--out", codes, "--json").stdout)["parts"] == 3


def test_the_same_seed_gives_the_same_file(fitted, tmp_path):
    table, model = fitted
    columns = ("--text", "body", "--label", "kind")
    run("fit", table, *columns, *QUICK, "--out", tmp_path / "m", "--quiet")
    one, two = marginparts.load(model), marginparts.load(tmp_path / "m")
    assert_allclose(one.classifier.coef_, two.classifier.coef_, rtol=0)


def test_predictions_keep_the_columns_of_the_file(fitted, tmp_path):
    table, model = fitted
    out = tmp_path / "p.csv"
    run("predict", model, table, "--out", out)
    rows = read_csv(out)
    assert list(rows[0]) == ["id", "body", "kind", "predicted", "score", "probability"]
    assert [row["body"] for row in rows] == TEXTS
    assert all(0.5 <= float(row["probability"]) <= 1 for row in rows)


@pytest.mark.parametrize("ending", [".tsv", ".jsonl", ".parquet"])
def test_predictions_are_the_same_in_every_format(fitted, tmp_path, ending):
    table, model = fitted
    run("predict", model, table, "--out", tmp_path / "p.csv", "--all")
    run("predict", model, table, "--out", tmp_path / f"p{ending}", "--all")
    expected = read_csv(tmp_path / "p.csv")
    if ending == ".parquet":
        found = pytest.importorskip("pyarrow.parquet").read_table(tmp_path / "p.parquet")
        found = found.to_pylist()
    elif ending == ".jsonl":
        found = [json.loads(line) for line in (tmp_path / "p.jsonl").read_text().splitlines()]
    else:
        with (tmp_path / "p.tsv").open(newline="") as file:
            found = list(csv.DictReader(file, delimiter="\t"))
    assert [row["predicted"] for row in found] == [row["predicted"] for row in expected]
    for name in ("score", "score fruit", "probability metal"):
        assert_allclose(
            [float(row[name]) for row in found], [float(row[name]) for row in expected], rtol=1e-4
        )


def test_predictions_without_out_go_to_the_screen(fitted):
    table, model = fitted
    said = run("predict", model, table).stdout
    assert said.splitlines()[0] == "id,body,kind,predicted,score,probability"
    assert len(said.splitlines()) == 61


def test_a_file_without_the_label_column_can_be_predicted(fitted, tmp_path):
    _, model = fitted
    file = tmp_path / "new.jsonl"
    file.write_text('{"body": "iron zinc tin"}\n{"body": ""}\n{"body": "unheard of"}\n')
    out = tmp_path / "p.csv"
    assert run("predict", model, file, "--out", out).exit_code == 0
    rows = read_csv(out)
    assert rows[0]["predicted"] == "metal"
    assert len(rows) == 3


def test_what_is_predicted_does_not_depend_on_the_pieces(fitted, tmp_path, monkeypatch):
    from marginparts.commands import _console

    table, model = fitted
    run("predict", model, table, "--out", tmp_path / "whole.csv")
    monkeypatch.setattr(_console, "BATCH", 7)
    run("predict", model, table, "--out", tmp_path / "pieces.csv")
    assert (tmp_path / "whole.csv").read_text() == (tmp_path / "pieces.csv").read_text()


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".jsonl", ".parquet", ".npz"])
def test_codes_in_every_format(fitted, tmp_path, ending):
    table, model = fitted
    out = tmp_path / f"z{ending}"
    assert run("transform", model, table, "--out", out).exit_code == 0
    Z = marginparts.load(model).transform(TEXTS)
    if ending == ".npz":
        found = np.load(out)["Z"]
    elif ending == ".parquet":
        rows = pytest.importorskip("pyarrow.parquet").read_table(out).to_pylist()
        found = [[row[f"part {k + 1}"] for k in range(3)] for row in rows]
    elif ending == ".jsonl":
        rows = [json.loads(line) for line in out.read_text().splitlines()]
        found = [[row[f"part {k + 1}"] for k in range(3)] for row in rows]
    else:
        with out.open(newline="") as file:
            rows = list(csv.DictReader(file, delimiter="\t" if ending == ".tsv" else ","))
        found = [[float(row[f"part {k + 1}"]) for k in range(3)] for row in rows]
        assert rows[5]["id"] == "5"
    assert_allclose(found, Z, rtol=1e-4, atol=1e-6)


def test_next_names_unlabeled_rows_that_are_in_doubt_and_spread_over_the_parts(fitted):
    table, model = fitted
    found = json.loads(run("next", model, table, "-n", "6", "--json").stdout)
    assert all(suggestion["row"] > 30 for suggestion in found)
    fit = marginparts.load(model)
    values = fit.decision_function(TEXTS)
    sureness = np.abs(values[30:, 0] - values[30:, 1])
    least = 31 + int(sureness.argmin())
    assert least in [suggestion["row"] for suggestion in found]
    used = fit.classifier.parts_._coefficients(fit.prepare(TEXTS[30:])).argmax(axis=1)
    assert {s["part"] for s in found} == set(used + 1)


def test_next_can_be_written_to_be_filled_in(fitted, tmp_path):
    table, model = fitted
    out = tmp_path / "todo.csv"
    assert run("next", model, table, "-n", "5", "--out", out).exit_code == 0
    rows = read_csv(out)
    assert len(rows) == 5
    assert {"row", "body", "kind", "guess", "margin", "part"} <= set(rows[0])
    assert all(row["kind"] == "" for row in rows)


def test_next_says_when_nothing_is_left_to_label(fitted, tmp_path):
    _, model = fitted
    table = write_table(tmp_path / "all.csv", KINDS)
    assert "Every sample" in run("next", model, table).stdout


def test_the_table_of_next_fits_a_terminal(fitted, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    table, model = fitted
    said = run("next", model, table).stdout
    assert max(map(len, said.splitlines())) <= 80
    assert max(map(len, run("topics", model).stdout.splitlines())) <= 80


def test_ranks_are_those_of_the_function(tmp_path):
    file = write_table(tmp_path / "a.csv")
    asked = "ranks", file, "--text", "body", "--components", "1,2,3", "--max-df", "0.9"
    counts = COUNTS[:, np.argsort(COLUMNS)]
    found = marginparts.how_many_parts(counts, (1, 2, 3), random_state=0)
    told = json.loads(run(*asked, "--json").stdout)
    assert [told["best"], told["least"]] == [found.best, found.least]
    assert_allclose([each["divergence"] for each in told["tried"]], found.mean)
    assert "*" in run(*asked).stdout
    np.save(tmp_path / "few.npy", np.ones((20, 4)))
    assert "too few to hide" in refused("ranks", tmp_path / "few.npy")
    assert "commas" in refused(*asked[:4], "--components", "two")


def test_topics_name_every_label(fitted):
    _, model = fitted
    said = run("topics", model).stdout
    assert "fruit (15 labeled)" in said
    assert "metal (15 labeled)" in said


def test_topics_show_only_parts_that_speak_for_a_label(fitted, monkeypatch):
    _, model = fitted
    weights = np.array([[2.0, 0.004], [0.39, -1.0], [0.41, -1.0]])
    monkeypatch.setattr("marginparts.app.explanation.part_weights", lambda classifier: weights)
    first, second = json.loads(run("topics", model, "--json").stdout)
    assert [part["part"] for part in first["parts"]] == [1, 3]
    assert second["parts"] == []
    assert "no part speaks for it" in run("topics", model).stdout
    monkeypatch.setattr("marginparts.app.explanation.top_features", lambda *args: [])
    said = run("topics", model).stdout.splitlines()
    assert "part 1" in said[1]
    assert said[1].endswith("no word tells it from other parts")


def test_topics_of_a_file_are_words_that_are_surely_distinctive(fitted):
    table, model = fitted
    said = run("topics", model, table)
    assert said.exit_code == 0, said.output
    assert re.search(r"\w+ x\d+\.\d", said.stdout)
    for entry in json.loads(run("topics", model, table, "--json").stdout):
        for part in entry["parts"]:
            for word, probability, credited, fold, low, high in part["words"]:
                assert 0 < probability <= 1
                assert credited > 0
                assert 0 < low < fold < high
                assert any(word in text for text in TEXTS)


def test_topics_need_a_file_with_something_in_it(fitted, tmp_path):
    _, model = fitted
    table = tmp_path / "other.csv"
    table.write_text("id,body,kind\n1,qqq zzz,\n")
    assert "has no sample with anything" in refused("topics", model, table)


def test_a_page_without_examples_holds_no_text_of_the_file(fitted, tmp_path):
    table, model = fitted
    page = tmp_path / "page.html"
    run("report", model, "--out", page)
    assert not any(text in page.read_text(encoding="utf-8") for text in TEXTS)
    run("report", model, table, "--out", page)
    assert "1 candidate was tried" in page.read_text(encoding="utf-8")
    assert any(text in page.read_text(encoding="utf-8") for text in TEXTS)


def test_columns_of_the_file_are_never_written_over(fitted, tmp_path):
    _, model = fitted
    file = tmp_path / "own.csv"
    file.write_text("body,score,predicted\napple plum,5 stars,by Ann\n")
    out = tmp_path / "p.csv"
    run("predict", model, file, "--out", out)
    (row,) = read_csv(out)
    assert (row["score"], row["predicted"], row["predicted (2)"]) == ("5 stars", "by Ann", "fruit")


@pytest.mark.parametrize("command", ["predict", "transform", "next", "report"])
def test_the_file_that_is_read_is_never_written_over(fitted, tmp_path, command):
    table, model = fitted
    same = tmp_path / "same.csv"
    same.write_bytes(table.read_bytes())
    refused(command, model, same, "--out", same)
    assert same.read_bytes() == table.read_bytes()


def test_a_sheet_that_may_be_filled_in_is_never_written_over(fitted, tmp_path):
    table, model = fitted
    sheet = tmp_path / "sheet.csv"
    run("next", model, table, "--out", sheet)
    assert "there already" in refused("next", model, table, "--out", sheet)


def test_samples_without_a_known_word_have_no_label(fitted, tmp_path):
    _, model = fitted
    file = tmp_path / "new.csv"
    file.write_text('body\napple plum\n""\nunheard of\n')
    out = tmp_path / "p.csv"
    said = run("predict", model, file, "--out", out).stdout
    assert "2 of them hold nothing that the model knows, and have no label." in said
    assert [row["predicted"] for row in read_csv(out)] == ["fruit", "", ""]
    file.write_text('body\napple plum\n""\n')
    said = run("predict", model, file, "--out", out).stdout
    assert "1 of them holds nothing that the model knows, and has no label." in said


def test_a_terminal_is_told_the_next_command(fitted, capsys, monkeypatch):
    _, path = fitted
    model = marginparts.load(path)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    tell(model, Path("my.model"), None, ["my mail.csv"], as_json=False, quiet=False)
    said = capsys.readouterr().out
    assert "Next: marginparts predict my.model 'my mail.csv' --out labeled.csv\n" in said


@pytest.mark.parametrize("total", [None, 100])
def test_the_time_is_seen_beside_the_longest_stage(monkeypatch, total):
    monkeypatch.setenv("COLUMNS", "80")
    shown = bars(TextColumn("{task.fields[loss]}"))
    shown.add_task("5 of 5: comparing with transductive SVM on the inputs", total=total, loss="")
    screen = Console(file=io.StringIO(), width=80)
    screen.print(shown.make_tasks_table(shown.tasks))
    said = screen.file.getvalue()
    assert said.count("\n") == 1
    assert "transductive SVM on the inputs" in said
    assert " 0:00:00" in said
    assert ("%" in said) is (total is not None)


def test_predictions_as_json_lines_on_the_screen(fitted):
    table, model = fitted
    said = run("predict", model, table, "--json").stdout
    rows = [json.loads(line) for line in said.splitlines()]
    assert len(rows) == 60
    assert set(rows[0]) == {"id", "body", "kind", "predicted", "score", "probability"}


def test_a_fit_warns_of_single_examples_and_of_a_forgotten_separator(tmp_path):
    labels = [f"{kind};x" if kind else "" for kind in LABELS]
    labels[0] = "rare;y"
    file = write_table(tmp_path / "mail.csv", labels)
    columns = ("--text", "body", "--label", "kind")
    said = run("fit", file, *columns, *QUICK, "--out", tmp_path / "m").stdout
    assert "single example" in said
    assert "rare;y" in said
    assert "--label-sep ';'" in said


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ("N/A", "'N/A' is read as a label"),
        ("None", "'None' is read as a label"),
        (" Fruit", "'Fruit' and 'fruit' differ only in case"),
    ],
)
def test_a_fit_warns_of_labels_that_may_not_be_meant(tmp_path, other, words):
    labels = [other if kind and i % 4 == 0 else kind for i, kind in enumerate(LABELS)]
    file = write_table(tmp_path / "mail.csv", labels)
    said = run("fit", file, "--text", "body", "--label", "kind", *QUICK, "--out", tmp_path / "m")
    assert words in " ".join(said.stdout.split())
    assert said.stderr == ""  # what is said of arrays in Python is no help here


def test_seconds_are_counted_in_words():
    from marginparts.commands._fit_notes import spent

    assert [spent(s) for s in (0.2, 0.9, 17.2)] == ["0 seconds", "1 second", "17 seconds"]


def test_predictions_tell_of_labels_that_the_model_has_never_seen(fitted, tmp_path):
    table, model = fitted
    other = tmp_path / "other.csv"
    other.write_text(table.read_text().replace("metal", "stone"))
    said = " ".join(run("predict", model, other, "--out", tmp_path / "c.csv").stdout.split())
    assert "have a label that the model does not know, and cannot be right: stone." in said
    told = json.loads(run("predict", model, other, "--out", tmp_path / "d.csv", "--json").stdout)
    assert list(told["unknown_labels"]) == ["stone"]
    assert f" {told['unknown_labels']['stone']} of these" in said


def test_of_several_labels_the_samples_with_one_that_the_model_has_never_seen_are_counted(tmp_path):
    table, model = write_table(tmp_path / "mail.csv", SEVERAL), tmp_path / "mail.model"
    how = ("--text", "body", "--label", "kind", "--label-sep", ";", *QUICK, "--out", model)
    assert run("fit", table, *how).exit_code == 0
    known = [label or KINDS[k] for k, label in enumerate(SEVERAL)]
    strange = [f"{label};wet;cold" if k < 5 else label for k, label in enumerate(known)]
    scores = []
    for labels in (known, strange):
        other = write_table(tmp_path / "other.csv", labels)
        found = run("predict", model, other, "--out", tmp_path / "c.csv", "--json")
        scores.append(json.loads(found.stdout)["agreement"])
    assert scores[0] == scores[1]
    said = " ".join(run("predict", model, other, "--out", tmp_path / "c.csv").stdout.split())
    assert "60 of the samples had a label" in said
    left_out = "which the score leaves out: cold, wet."
    assert f"5 of these have a label that the model does not know, {left_out}" in said


def test_labels_that_are_all_different_are_refused(tmp_path):
    file = write_table(tmp_path / "mail.csv")
    said = refused("fit", file, "--text", "body", "--label", "id", "--out", tmp_path / "m")
    assert "label of its own" in said


# --- the same model from Python


def test_a_model_from_the_command_works_in_python(fitted, tmp_path):
    _, path = fitted
    model = marginparts.load(path)
    assert model.predict(["apple banana cherry", "iron zinc tin"]) == ["fruit", "metal"]
    assert_allclose(model.predict_proba(["apple banana"]).sum(axis=1), 1)
    assert model.transform(["apple"]).shape == (1, 3)
    assert model.predict([]) == []
    assert len(repr(model)) < 200
    with pytest.raises(ValueError, match="list"):
        model.predict("apple")
    for nothing in (None, float("nan"), 3):
        with pytest.raises(ValueError, match=rf"sample 2 is {nothing} and no text; put ''"):
            model.predict(["apple", nothing])
    marginparts.save(model, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


def test_samples_may_come_from_a_generator(fitted):
    model = marginparts.load(fitted[1])
    texts = ["apple banana cherry", "iron zinc tin"]
    assert model.predict(text for text in texts) == ["fruit", "metal"]
    assert model.predict(iter([])) == []
    for method in (model.transform, model.decision_function, model.predict_proba):
        assert_array_equal(method(iter(texts)), method(texts))


# --- what cannot work


def test_next_takes_the_options_that_it_advises(tmp_path):
    """A file whose words are all rare, and one with gaps, can be looked at without a model."""
    rare, gaps = tmp_path / "rare.csv", tmp_path / "gaps.csv"
    rare.write_text("body\n" + "\n".join(f"word{k} other{k}" for k in range(8)))
    assert "--min-df" in refused("next", rare, "--text", "body")
    assert run("next", rare, "--text", "body", "--min-df", "1", "-n", "3").exit_code == 0
    gaps.write_text("a,b,c\n" + "\n".join(f"{k % 3},{k % 5 or ''},{k % 7}" for k in range(1, 30)))
    assert "--missing" in refused("next", gaps)
    assert run("next", gaps, "--missing", "nan", "-n", "3").exit_code == 0


def test_the_stages_of_a_fit_are_counted():
    from marginparts.commands.fit import _place

    usual = ("encoding", "following lam")
    stages = ("reading", "preparing", "choosing", "parts", "comparing: naive Bayes")
    said = [_place(stage, usual) for stage in stages]
    assert [each.split(":")[0] for each in said] == [f"{k} of 5" for k in range(1, 6)]
    assert said[-1] == "5 of 5: comparing with naive Bayes"
    assert _place("following lam", ()) == "7 of 7: following lam"


COLUMNS_OF = ("--text", "body", "--label", "kind")


@pytest.mark.parametrize(
    ("name", "content", "options", "word"),
    [
        ("gone.csv", None, COLUMNS_OF, "no file"),
        ("empty.csv", b"", COLUMNS_OF, "empty"),
        ("header.csv", b"body,kind\n", COLUMNS_OF, "no row"),
        ("column.csv", b"text,kind\na b,x\n", COLUMNS_OF, "body"),
        ("label.csv", b"body,class\na b,x\n", COLUMNS_OF, "kind"),
        ("encoding.csv", "body,kind\ncaf\xe9,x\n".encode("latin-1"), COLUMNS_OF, "UTF-8"),
        ("unlabeled.csv", b"body,kind\na b,\nc d,\n", COLUMNS_OF, "no label"),
        ("one.csv", b"body,kind\naa bb,x\ncc dd,x\n", COLUMNS_OF, "another class"),
        ("format.docx", b"PK", COLUMNS_OF, "format"),
        ("words.csv", b"body,kind\naa,x\nbb,y\n", COLUMNS_OF, "--min-df"),
        ("rows.csv", b"body,kind\naa,x,1\n", COLUMNS_OF, "line 2"),
        ("lines.jsonl", b'{"body": "a b", "kind": "x"}\n{oops\n', COLUMNS_OF, "line 2"),
        ("broken.parquet", b"PAR1nothing", COLUMNS_OF, "broken.parquet"),
        ("broken.npz", b"PK\x03\x04nothing", (), "broken.npz"),
        ("broken.mtx", b"%%MatrixMarket nothing", (), "broken.mtx"),
        ("broken.h5ad", b"nothing", ("--label", "kind"), "broken.h5ad"),
        ("broken.svm", b"1 1:2\nx y z\n", (), "broken.svm"),
        ("negative.csv", b"kind,a\nx,1\ny,-1\n", ("--label", "kind"), "0 or larger"),
        ("zero.csv", b"kind,a\nx,0\ny,0\n", ("--label", "kind"), "zero"),
        ("text.csv", b"body,kind\naa bb,x\n", ("--label", "kind"), "--text"),
        ("bars.csv", b"body|kind\naa bb|x\n", COLUMNS_OF, "commas, semicolons or tabs"),
        ("array.json", b'[{"body": "aa bb", "kind": "x"}]', COLUMNS_OF, "one JSON object a line"),
        ("array.jsonl", b'[{"body": "aa"}]', COLUMNS_OF, '{"column": value, ...} a line'),
        ("labels.csv", b"kind,a\n1,1\n,2\n", (), "--label COLUMN"),
    ],
)  # fmt: skip
def test_a_bad_file_is_refused_with_one_sentence(tmp_path, name, content, options, word):
    file = tmp_path / name
    if content is not None:
        file.write_bytes(content)
    model = tmp_path / "kept.model"
    model.write_text("as it was")
    assert word in refused("fit", file, *options, *QUICK, "--out", model)
    assert model.read_text() == "as it was"
    left = {path.name for path in tmp_path.iterdir()}
    assert left == ({name, "kept.model"} if content is not None else {"kept.model"})


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (("--components", "many"), "--components"),
        (("--components", "0"), "--components"),
        (("--lam", "-1"), "--lam"),
        (("--cost", "nan"), "--cost"),
        (("--backend", "abacus"), "--backend 'abacus'"),
        (("--scoring", "luck"), "--scoring 'luck'"),
        (("--consensus", "1"), "--consensus must"),
        (("--strength", "2"), "--prior"),
        (("--strength", "1"), "--prior"),
        (("--l1-ratio", "0.5"), "--alpha-W"),
        (("--components", "61"), "60 rows and 16 words"),
        (("--components", "2,1000"), "give 16 or less"),
        (("--weighting", "heavy"), "--weighting"),
        (("--stop-words", "nowhere.txt"), "nowhere.txt"),
        (("--encoding", "klingon"), "klingon"),
        (("--label-sep", ""), "separator"),
    ],
)
def test_a_bad_option_is_refused_with_one_sentence(fitted, tmp_path, options, word):
    table, _ = fitted
    said = refused("fit", table, *COLUMNS_OF, "--out", tmp_path / "m", *options)
    assert word in said
    assert not (tmp_path / "m").exists()


def test_options_are_checked_before_the_name_of_the_model(fitted, tmp_path, monkeypatch):
    table, _ = fitted
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mail.model").write_text("it is there")
    for options in (
        ("--components", "many"), ("--lam", "-1"), ("--cost", "nan"), ("--weighting", "heavy"),
        ("--stop-words", "nowhere.txt"), ("--encoding", "klingon"), ("--label-sep", ""),
        ("--missing", "zeros"), ("--embed", "nobody"), ("--consensus", "1"), ("--strength", "2"),
    ):  # fmt: skip
        assert "is there already" not in refused("fit", table, *COLUMNS_OF, *options)
    assert "is there already" in refused("fit", table, *COLUMNS_OF)


def test_what_fails_in_the_fit_is_said_in_the_words_of_the_command(tmp_path):
    labels = [("fruit", "metal", "wood")[k % 3] if k < 30 else "" for k in range(60)]
    table = write_table(tmp_path / "three.csv", labels)
    said = refused("fit", table, *COLUMNS_OF, *QUICK, "--scoring", "f1", "--out", tmp_path / "m")
    assert said.startswith("--scoring 'f1' is for two classes")


def test_what_fails_in_python_is_said_in_the_words_of_python(tmp_path):
    table = write_table(tmp_path / "mail.csv")
    how = {"text": "body", "label": "kind", "n_components": 2, "lam": 1.0, "C": 1.0}
    with pytest.raises(ValueError, match=r"^scoring='f1_macroo' is unknown; choose"):
        marginparts.fit_file(table, scoring="f1_macroo", **how)

    def enough(progress):
        raise ValueError("lam=1 with max_iter=3 is enough.")

    with pytest.raises(ValueError, match=r"^lam=1 with max_iter=3 is enough\.$"):
        marginparts.fit_file(table, callback=enough, **how)
    with pytest.raises(ValueError, match=r"^random_state="):
        ranks_of_file(table, [2], text="body", random_state="seven")


def test_a_model_goes_nowhere_without_a_folder(fitted, tmp_path):
    table, model = fitted
    assert "no folder" in refused("fit", table, *COLUMNS_OF, "--out", tmp_path / "no" / "m")
    assert "is a folder" in refused("fit", table, *COLUMNS_OF, "--out", tmp_path)
    assert "no folder" in refused("predict", model, table, "--out", tmp_path / "no" / "p.csv")
    assert "end in" in refused("predict", model, table, "--out", tmp_path / "p.docx")
    assert "end in" in refused("transform", model, table, "--out", tmp_path / "z.docx")


def test_a_default_name_is_never_written_over(fitted, tmp_path, monkeypatch):
    table, _ = fitted
    monkeypatch.chdir(tmp_path)
    assert run("fit", table, *COLUMNS_OF, *QUICK).exit_code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["mail.model"]
    assert "--out" in refused("fit", table, *COLUMNS_OF, *QUICK)


@pytest.mark.parametrize("command", ["predict", "transform", "next", "report"])
def test_a_bad_model_is_refused_with_one_sentence(fitted, tmp_path, command):
    table, model = fitted
    out = tmp_path / ("out.html" if command == "report" else "out.csv")
    out.write_text("as it was")
    whole = model.read_bytes()
    bad = {
        "gone": None,
        "empty": b"",
        "truncated": whole[: len(whole) // 2],
        "altered": whole[:1000] + bytes([whole[1000] ^ 1]) + whole[1001:],
        "text": b"hello",
    }
    for name, content in bad.items():
        file = tmp_path / name
        if content is not None:
            file.write_bytes(content)
        said = refused(command, file, table, "--out", out)
        assert name in said
        assert out.read_text() == "as it was"


def test_a_model_of_a_later_version_is_refused(fitted, tmp_path, monkeypatch):
    from marginparts.app import model_file

    table, model = fitted
    later = tmp_path / "later"
    monkeypatch.setattr(model_file, "VERSION", model_file.VERSION + 1)
    marginparts.save(marginparts.load(model), later)
    monkeypatch.undo()
    assert "upgrade" in refused("predict", later, table, "--out", tmp_path / "p.csv")


def test_a_file_of_another_kind_than_the_model_is_refused(fitted, tmp_path):
    _, model = fitted
    matrix = tmp_path / "m.npz"
    sp.save_npz(matrix, sp.csr_array(COUNTS))
    assert "text" in refused("predict", model, matrix, "--out", tmp_path / "p.csv")


def test_an_estimator_saved_from_python_is_no_model_for_files(fitted, tmp_path):
    table, _ = fitted
    estimator = marginparts.NMFAlphaClassifier(2, lam=1.0, map_iter=5, normalize=True, C=1.0)
    marginparts.save(estimator.fit(COUNTS, np.arange(60) % 2), tmp_path / "m")
    said = refused("predict", tmp_path / "m", table, "--out", tmp_path / "p.csv")
    assert "Python" in said


class FullDisk:
    """A file on a full disk."""

    def __init__(self, file):
        self.file = file

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.file.close()

    def write(self, data):
        raise OSError(28, "No space left on device")

    def __getattr__(self, name):
        return getattr(self.file, name)


def test_a_full_disk_is_one_sentence_and_leaves_what_was_there(fitted, tmp_path, monkeypatch):
    table, model = fitted
    names = ["m.model", "p.csv", "p.jsonl", "page.html", "z.npz"]
    for name in names:
        (tmp_path / name).write_text("as it was")
    real = os.fdopen
    monkeypatch.setattr(
        "marginparts.files.atomic.os.fdopen", lambda *a, **k: FullDisk(real(*a, **k))
    )
    said = [
        refused("fit", table, *COLUMNS_OF, *QUICK, "--out", tmp_path / "m.model"),
        refused("predict", model, table, "--out", tmp_path / "p.csv"),
        refused("predict", model, table, "--out", tmp_path / "p.jsonl"),
        refused("report", model, "--out", tmp_path / "page.html"),
        refused("transform", model, table, "--out", tmp_path / "z.npz"),
    ]
    assert all("disk is full" in sentence for sentence in said)
    assert all((tmp_path / name).read_text() == "as it was" for name in names)
    assert sorted(path.name for path in tmp_path.iterdir()) == names


# --- as a process


def process(*args, **options):
    return subprocess.Popen(
        [sys.executable, "-m", "marginparts.cli", *map(str, args)], text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options,
    )  # fmt: skip


@pytest.mark.parametrize("stage", ["choosing", "parts"])
def test_ctrl_c_keeps_the_best_so_far(fitted, tmp_path, monkeypatch, stage):
    from marginparts.app import fitting

    table, _ = fitted
    seen = []

    def press_ctrl_c(data, options, *, callback, on_stage):
        def pressed(progress):
            seen.append(progress.stage)
            if progress.stage == stage and seen.count(stage) == 2:
                os.kill(os.getpid(), signal.SIGINT)
            return callback(progress)

        return fit_model(data, options, callback=pressed, on_stage=on_stage)

    fit_model = fitting.fit_model
    monkeypatch.setattr(fitting, "fit_model", press_ctrl_c)
    out = tmp_path / "m"
    before = signal.getsignal(signal.SIGINT)
    options = ("--components", "3,4", "--max-df", "0.9", "--out", out, "--json")
    result = run("fit", table, *COLUMNS_OF, *options)
    assert result.exit_code == 0
    told = json.loads(result.stdout)
    assert told["stopped"] is True
    doubt = marginparts.load(out).card.doubt or ""
    assert ("ended before it could be said" in doubt) is (not told["scores"])
    assert "label a few" not in doubt
    predicted = marginparts.load(out).predict(TEXTS[30:])
    assert np.mean(np.array(predicted) == KINDS[30:]) > 0.9
    assert seen.count(stage) == 2  # the stage ended there
    assert ("parts" in seen[seen.index(stage) + 2 :]) is (stage == "choosing")  # the next began
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_while_reading_leaves_nothing(fitted, tmp_path, monkeypatch):
    from marginparts import cli

    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("marginparts.app.fitting.read_all", interrupted)
    monkeypatch.setattr(
        sys, "argv", ["marginparts", "fit", str(fitted[0]), *COLUMNS_OF, "--out", "m"]
    )
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 130
    assert list(tmp_path.iterdir()) == []


def test_a_closed_pipe_is_no_error(fitted):
    table, model = fitted
    with process("predict", model, table) as running:
        running.stdout.readline()
        running.stdout.close()
        assert "Traceback" not in running.stderr.read()


COMMANDS = (
    "fit", "label", "ranks", "predict", "transform", "topics", "next", "report", "demo",
    "reproduce", "data list", "data fetch", "data path", "data example",
)  # fmt: skip


@pytest.mark.parametrize("command", ["", "data", *COMMANDS])
def test_help_has_examples_and_fits_a_terminal(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    said = run(*command.split(), "--help").stdout
    assert max(map(len, said.splitlines())) <= 80
    if command in COMMANDS and command not in ("data list", "data fetch", "data path"):
        assert f"marginparts {command}" in said
        assert "Examples" in said


@pytest.mark.parametrize("command", COMMANDS)
def test_paragraphs_of_the_help_fill_their_lines(command, monkeypatch):
    """No line ends early: the first word of the next would not have fitted."""
    monkeypatch.setenv("COLUMNS", "80")
    lines = run(*command.split(), "--help").stdout.splitlines()
    body = [line.strip() for line in lines[3 : next(k for k, x in enumerate(lines) if "╭" in x)]]
    for line, after in pairwise(body):
        if line and after:
            assert len(f"{line} {after.split()[0]}") > 78, line


def test_the_shell_can_complete_columns(fitted):
    from types import SimpleNamespace

    from marginparts.commands._fit_options import complete_column

    table, _ = fitted
    context = SimpleNamespace(params={"file": str(table)})
    assert complete_column(context, "") == ["id", "body", "kind"]
    assert complete_column(context, "b") == ["body"]
    assert complete_column(SimpleNamespace(params={"file": "gone.csv"}), "") == []


def test_completion_can_be_installed():
    assert "--install-completion" in run("--help").stdout


def test_predictions_for_the_file_of_the_fit_do_not_flatter(fitted, tmp_path):
    table, model = fitted
    said = run("predict", model, table, "--out", tmp_path / "a.csv").stdout
    assert "against these" not in said
    told = json.loads(run("predict", model, table, "--out", tmp_path / "b.csv", "--json").stdout)
    assert told["agreement"] is None
    rated = marginparts.load(model).card.rated
    assert told["hidden_labels"] == (rated[0]._asdict() if rated else None)
    assert ("hidden from it" in said) == bool(rated)
    other = tmp_path / "other.csv"
    other.write_bytes(table.read_bytes())
    assert "against these" in run("predict", model, other, "--out", tmp_path / "c.csv").stdout


def test_next_needs_no_model(fitted):
    table, _ = fitted
    first = json.loads(run("next", table, "--text", "body", "-n", 3, "--json").stdout)
    assert len({each["text"] for each in first}) == 3
    assert all(each["guess"] == "" and each["margin"] is None for each in first)
    known = json.loads(run("next", table, "--text", "body", "--label", "kind", "--json").stdout)
    assert all(LABELS[each["row"] - 1] == "" and each["guess"] for each in known)
    assert run("next", table, "--text", "body").exit_code == 0


def test_suspected_labels_are_listed(tmp_path):
    wrong = [*LABELS]
    row = next(k for k, label in enumerate(LABELS) if label)
    wrong[row] = next(label for label in LABELS if label not in ("", LABELS[row]))
    table = write_table(tmp_path / "mail.csv", wrong)
    how = ("--text", "body", "--label", "kind", "--suspects")
    found = json.loads(run("next", table, *how, "--json").stdout)
    assert found[0]["row"] == row + 1
    assert found[0]["instead"] == LABELS[row]
    assert LABELS[row] in run("next", table, *how).stdout
    run("next", table, *how, "--out", tmp_path / "check.csv")
    with (tmp_path / "check.csv").open(newline="") as file:
        assert next(csv.DictReader(file))["instead"] == LABELS[row]


def test_suspects_need_labels_and_next_heeds_the_column_of_labels(fitted, tmp_path):
    table, model = fitted
    assert "--label" in refused("next", table, "--text", "body", "--suspects")
    with table.open(newline="") as file:
        header, *rows = csv.reader(file)
    renamed = tmp_path / "renamed.csv"
    with renamed.open("w", newline="") as file:
        csv.writer(file).writerows([[*header, "other"], *([*row, "yes"] for row in rows)])
    assert "Every sample has a label" not in run("next", model, renamed).output
    assert "Every sample has a label" in run("next", model, renamed, "--label", "other").output


def test_suggestions_are_not_alike(fitted, tmp_path):
    table, model = fitted
    text = next(t for t, label in zip(TEXTS, LABELS, strict=True) if not label)
    with table.open(newline="") as file:
        header, *rows = csv.reader(file)
    twice = tmp_path / "twice.csv"
    with twice.open("w", newline="") as file:
        again = [["x", text, ""]] * 10
        csv.writer(file).writerows([header, *(row[:3] for row in rows), *again])
    found = json.loads(run("next", model, twice, "-n", 4, "--json").stdout)
    assert sum(each["text"] == text for each in found) <= 1


def test_a_fit_says_when_it_chose_otherwise(fitted, tmp_path):
    table, _ = fitted
    out = tmp_path / "mail.model"
    how = ("fit", table, "--text", "body", "--label", "kind", *QUICK, "--out", out)
    assert "otherwise" not in run(*how).stdout
    assert "otherwise" not in run(*how).stdout
    assert "lam 3 and not" in " ".join(run(*how, "--lam", "3").stdout.split())


def test_label_refuses_what_it_cannot_show(fitted, tmp_path):
    table, _ = fitted
    assert "--text" in refused("label", table)
    assert "no column" in refused("label", table, "--text", "nothing")
    assert "There is no file" in refused("label", tmp_path / "nothing.csv", "--text", "body")
    assert not list(table.parent.glob("*.labels.*"))


@pytest.mark.wide
def test_parts_are_said_to_be_stable_or_not(fitted, tmp_path):
    table, _ = fitted
    model, how = tmp_path / "m", ("--text", "body", "--label", "kind", *QUICK)
    assert run("fit", table, *how, "--consensus", 3, "--out", model).exit_code == 0
    found = marginparts.load(model)
    assert len(found.card.stability) == 3
    assert_allclose(found.card.stability, found.classifier.parts_.stability_)
    said = json.loads(run("topics", model, "--json").stdout)
    numbers = [part["stability"] for label in said for part in label["parts"]]
    assert numbers
    assert f"({numbers[0]:.2f})" in run("topics", model).stdout
    run("report", model, "--out", tmp_path / "it.html")
    assert '"stability":0.' in (tmp_path / "it.html").read_text()
    assert "2 or more" in refused("fit", table, *how, "--consensus", 1, "--out", model)


@pytest.mark.wide
def test_parts_of_another_model_stay_as_they_are(fitted, tmp_path):
    table, old = fitted
    model, how = tmp_path / "m", ("--text", "body", "--label", "kind", "--lam", "1", "--cost", "1")
    run("fit", table, *how, "--max-df", "0.9", "--fixed", old, "--out", model)
    assert marginparts.load(model).n_parts == 3 + 16
    run("fit", table, *how, "--max-df", "0.9", "--fixed", old, "--components", 5, "--out", model)
    before, now = marginparts.load(old), marginparts.load(model)
    parts = before.classifier.parts_.components_
    kept = now.classifier.parts_.components_[: len(parts)]
    places = [before.feature_names.index(word) for word in now.feature_names]
    assert_array_equal(kept, parts[:, places])
    assert now.card.n_fixed == len(parts)
    said = refused("fit", table, *how, "--fixed", old, "--components", 2, "--out", model)
    assert "The fixed model has 3 parts, so --components must be 4 or more" in said
    said = refused("fit", table, *how, "--prior", old, "--components", "2,9", "--out", model)
    assert "The prior has 3 parts, so --components must be 3 or more" in said


@pytest.mark.wide
def test_large_entries_are_charged_for(fitted, tmp_path):
    table, _ = fitted
    how = ("--text", "body", "--label", "kind", *QUICK, "--out", tmp_path / "m")
    zeros = []
    for charge in ("0", "0.05"):
        assert run("fit", table, *how, "--alpha-W", charge, "--l1-ratio", 1).exit_code == 0
        found = marginparts.load(tmp_path / "m").classifier
        assert found.alpha_W == float(charge)
        zeros.append(found.parts_.reconstruction_err_)
    assert zeros[0] < zeros[1]


@pytest.mark.wide
def test_somebody_who_looked_at_the_parts_changes_them(fitted, tmp_path):
    table, old = fitted
    out, before = tmp_path / "edited", marginparts.load(fitted[1])
    parts, names = before.classifier.parts_.components_, before.feature_names
    word = names[int(parts[1].argmax())]
    how = ("edit", old, table, "--out", out)
    result = run(*how, "--freeze", 3, "--forbid", f"2:{word.upper()}")
    assert result.exit_code == 0, result.output
    now = marginparts.load(out)
    assert_array_equal(now.classifier.parts_.components_[0], parts[2])
    assert now.classifier.parts_.components_[2, names.index(word)] == 0
    assert "flatters" in now.card.doubt
    again = tmp_path / "again"
    assert run("edit", out, table, "--merge", "2,3", "--out", again).exit_code == 0
    assert_array_equal(marginparts.load(again).classifier.parts_.components_[0], parts[2])
    assert run(*how, "--merge", "1,2", "--json").exit_code == 0
    assert marginparts.load(out).n_parts == 2
    assert run("predict", out, table).exit_code == 0
    for wrong, said in (
        ([], "Nothing is to be changed"),
        (["--delete", "9"], "not there"),
        (["--delete", "0"], "counted from 1"),
        (["--merge", "1,2", "--delete", "2"], "twice"),
        (["--forbid", "1:xyzzy"], "no word 'xyzzy'"),
        (["--forbid", "1"], "not understood"),
        (["--freeze", "a"], "not understood"),
    ):
        assert said in refused(*how, *wrong)
    assert "wrote" not in refused("edit", old, table, "--delete", 1, "--out", old)
    assert "names one part; give two or more" in refused(*how, "--merge", "2")


@pytest.mark.wide
def test_texts_count_by_their_weight_when_parts_are_edited(tmp_path):
    table = write_table(tmp_path / "t.csv", w=[k % 3 for k in range(60)])
    old, out = tmp_path / "a.model", tmp_path / "b.model"
    how = ("--text", "body", "--label", "kind", "--weight", "w", *QUICK, "--out", old)
    assert run("fit", table, *how).exit_code == 0
    edit = ("edit", old, table, "--merge", "1,2", "--out", out, "--weight")
    assert run(*edit, "w").exit_code == 0
    found = marginparts.load(out)
    assert found.card.n_samples == 40  # those of weight 0 are left out
    assert_array_equal(np.unique(found.classifier.parts_.sample_weight_), [1, 2])
    assert "beside that of its texts" in refused(*edit, "kind")


def test_a_model_that_replaces_another_says_what_it_chose_otherwise():
    def model(n_parts, cost):
        return SimpleNamespace(n_parts=n_parts, classifier=SimpleNamespace(lam_=10.0, C_=cost))

    assert changed_mind(None, model(64, 4.0)) is None
    assert changed_mind(model(64, 4.0), model(64, 4.0)) is None
    said = changed_mind(model(32, 4.0), model(64, 1.0))
    assert "parts 64 and not 32, C 1 and not 4" in said
