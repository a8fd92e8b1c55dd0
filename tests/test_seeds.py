"""Seeds: words that speak for classes, from what they say of rows to models and files."""

import json
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import f1_score
from typer.testing import CliRunner

import marginparts
from marginparts import NMFAlphaClassifier, seed_columns
from marginparts.app.readers import read_seeds
from marginparts.cli import app
from marginparts.files.atomic import FileProblemError
from marginparts.labels import Labels
from marginparts.seeds import seeds_of
from marginparts.teaching import hints_of, lessons_of, views_of

RNG = np.random.default_rng(0)
N_WORDS = 40
NAMES = [f"w{k}" for k in range(3 * N_WORDS)]
SEEDS = {"a": ["w0", "w1"], "b": {"w40": 1.0, "w41": 1.0}, "c": ["w80", "w81"]}


def _topics(n=240):
    """Three classes of short texts, each of which has most of its words from a third of them."""
    y = np.arange(n) % 3
    shares = np.full((3, 3 * N_WORDS), 0.3)
    for k in range(3):
        shares[k, k * N_WORDS : (k + 1) * N_WORDS] = 1.4
    X = np.array([RNG.multinomial(9, shares[k] / shares[k].sum()) for k in y], dtype=float)
    return X, y


X, Y = _topics()
TRUTH = np.array(["a", "b", "c"])[Y]


def _fit(X=X, y=None, seeds=SEEDS, **changes):
    how = {"max_iter": 20, "rehearse": False, "random_state": 0, **changes}
    return NMFAlphaClassifier(6, seeds=seed_columns(seeds, NAMES), **how).fit(X, y)


@pytest.fixture(scope="module")
def model():
    return _fit()


def test_seeds_alone_make_a_classifier(model):
    seeds = seeds_of(SEEDS, NAMES, X.shape[1])
    counted, _ = seeds.codes(sp.csr_array(X))
    assert_array_equal(model.classes_, ["a", "b", "c"])
    assert model.score(X, TRUTH) > max(0.85, np.mean(counted == Y) + 0.2)
    assert np.isnan(model.honest_score_)
    assert model.calibration_ is None


@pytest.mark.parametrize("y", [np.full(len(X), -1), [None] * len(X)])
def test_no_label_at_all_can_be_said_in_several_ways(model, y):
    assert_allclose(_fit(y=y).decision_function(X), model.decision_function(X))


def test_the_order_of_classes_and_words_is_nothing(model):
    turned = {name: dict.fromkeys(reversed(list(SEEDS[name])), 1.0) for name in "cba"}
    assert_allclose(_fit(seeds=turned).decision_function(X), model.decision_function(X))


def test_sparse_dense_and_named_columns_are_one(model):
    expected = model.decision_function(X)
    assert_allclose(_fit(sp.csr_array(X)).decision_function(X), expected, rtol=1e-6, atol=1e-8)
    named = pd.DataFrame(X, columns=NAMES)
    found = NMFAlphaClassifier(6, seeds=SEEDS, max_iter=20, rehearse=False, random_state=0)
    assert_allclose(found.fit(named).decision_function(named), expected, rtol=1e-6, atol=1e-8)


def test_a_seed_in_a_single_row_is_that_rows_label():
    marked = np.hstack([X, np.zeros((len(X), 3))])
    rows = [3, 7, 11]
    marked[rows, [-3, -2, -1]] = 1
    seeds = seeds_of(
        {0: [X.shape[1]], 1: [X.shape[1] + 1], 2: [X.shape[1] + 2]}, None, X.shape[1] + 3
    )
    views = views_of(marked, None, 0)
    codes, _ = seeds.codes(views.inputs)
    assert_array_equal(np.flatnonzero(codes >= 0), rows)
    assert_array_equal(codes[rows], [0, 1, 2])
    hints = hints_of(marked, views, None, seeds, seeds.classes, 0)
    assert_array_equal(hints.kept, codes)


def test_seeds_of_one_of_two_classes_in_a_single_row():
    """Where its fold is hidden, the teachers know one class alone."""
    rng = np.random.default_rng(2)
    rows = rng.poisson(0.03, (100, 200)).astype(float)
    rows[:, :2] = 0
    rows[:20, 0] = rows[50, 1] = 1
    model = NMFAlphaClassifier(4, seeds={"a": [0], "b": [1]}, max_iter=20, random_state=0)
    found = model.fit(sp.csr_array(rows)).predict(sp.csr_array(rows))
    assert (found[:20] == "a").mean() > 0.8
    assert found[50] == "b"


def test_a_given_label_is_never_overridden():
    wrong = np.full(len(X), -1)
    wrong[:12] = (Y[:12] + 1) % 3
    labels = Labels(np.arange(3), wrong)
    views = views_of(X, None, 0)
    seeds = seeds_of(SEEDS, NAMES, X.shape[1])
    hints = hints_of(X, views, None, seeds, seeds.classes, 0)
    lesson, _ = lessons_of(views, labels, [], hints)
    assert_array_equal(lesson.labels.codes[:12], wrong[:12])
    assert_array_equal(lesson.weights[:12], 1.0)
    assert (lesson.weights[12:] < 1).all()
    assert lesson.labels.complete.all()  # every row is taught


def test_labels_and_seeds_can_name_different_classes():
    y = np.full(len(X), None, dtype=object)
    y[:30] = np.where(Y[:30] == 2, "c", None)
    found = _fit(y=y, seeds={name: SEEDS[name] for name in "ab"})
    assert_array_equal(found.classes_, ["a", "b", "c"])
    assert found.score(X, TRUTH) > 0.8


def test_many_labels_outweigh_seeds_that_are_wrong():
    y = np.where(np.arange(len(X)) < 150, TRUTH, None)
    wrong = {"a": SEEDS["b"], "b": SEEDS["c"], "c": SEEDS["a"]}
    rest = slice(150, None)
    without = NMFAlphaClassifier(6, max_iter=20, rehearse=False, random_state=0).fit(X, y)
    misled = _fit(y=y, seeds=wrong)
    assert misled.score(X[rest], TRUTH[rest]) > without.score(X[rest], TRUTH[rest]) - 0.05


def test_a_negative_seed_speaks_against_its_class():
    seeds = seeds_of({"a": {0: 1.0, 1: -1.0}, "b": {2: 1.0}}, None, 3)
    codes, lead = seeds.codes(
        sp.csr_array(np.array([[1.0, 0, 0], [1, 1, 0], [0, 1, 0], [2, 0, 1]]))
    )
    assert_array_equal(codes, [0, -1, -1, 0])
    assert_allclose(lead[[0, 3]], [1, 1])


def test_unknown_words_are_named_once_and_the_others_are_used():
    with pytest.warns(UserWarning, match="left out: puck, rink") as told:
        found = seed_columns({"a": ["w0", "puck"], "b": ["w40", "rink", "puck"]}, NAMES)
    assert len(told) == 1
    assert found == {"a": {0: 1.0}, "b": {40: 1.0}}


@pytest.mark.parametrize(
    ("seeds", "sentence"),
    [
        ({"a": [0]}, "at least two classes"),
        ({"a": [0], "b": "puck"}, "a list or a dict"),
        ({"a": [0], "b": {1: "much"}}, "use a number"),
        ({"a": [0], "b": {1: -1.0}}, "speaks for 'b'"),
        ({"a": [0], "b": []}, "speaks for 'b'"),
        ({"a": [0], "b": ["puck"]}, "seed_columns"),
        ({"a": [0], "b": [999]}, "columns 0 to"),
        ({"a": [0], "b": [0]}, "No sample has the seeds of 'b'|No sample has the seeds of 'a'"),
        ({"a": [0], 1: [1]}, "one kind"),
    ],
)
def test_what_makes_no_sense_is_refused(seeds, sentence):
    with pytest.raises(ValueError, match=sentence):
        NMFAlphaClassifier(3, seeds=seeds).fit(X)


def _several(n=240, labels=3, labeled=12):
    """Rows with the words of one or more labels, few of which are known."""
    rng = np.random.default_rng(0)
    truth = (rng.random((n, labels)) < 0.8 / labels).astype(int)
    truth[np.arange(n), np.arange(n) % labels] = 1
    shares = 0.1 + np.repeat(truth, 3 * N_WORDS // labels, axis=1)
    rows = np.array([rng.multinomial(8, row / row.sum()) for row in shares], dtype=float)
    return rows, truth, np.where(np.arange(n)[:, None] < labeled, truth, -1)


def test_seeds_help_where_samples_have_several_labels():
    rows, truth, y = _several(labels=12, labeled=36)
    seeds, scores = {k: [10 * k, 10 * k + 1, 10 * k + 2] for k in range(12)}, []
    for given in (None, seeds):
        model = NMFAlphaClassifier(12, seeds=given, max_iter=20, random_state=0).fit(rows, y)
        scores.append(f1_score(truth[36:], model.predict(rows[36:]), average="micro"))
        assert ("seeds" in model.teachers_) == (given is not None)
    assert scores[1] > scores[0] + 0.02


def test_seeds_of_several_labels_go_by_the_names_of_columns():
    rows, _, y = _several()
    how = {"max_iter": 20, "rehearse": False, "random_state": 0}
    by_number = NMFAlphaClassifier(6, seeds={0: [0, 1], 2: [80]}, **how).fit(rows, y)
    named = pd.DataFrame(y, columns=["x", "b", "a"])
    by_name = NMFAlphaClassifier(6, seeds={"x": [0, 1], "a": [80]}, **how).fit(rows, named)
    assert_allclose(by_name.decision_function(rows), by_number.decision_function(rows))


def test_several_labels_and_other_guesses_are_refused():
    for y in (np.full((len(X), 3), -1), np.eye(2, dtype=int)[Y % 2]):
        with pytest.raises(ValueError, match="labeled samples beside them"):
            _fit(y=y, seeds={0: SEEDS["a"], 2: SEEDS["c"]})
    with pytest.raises(ValueError, match="teachers"):
        _fit(pseudo="svm")


def test_a_model_file_keeps_seeds(model, tmp_path):
    marginparts.save(model, tmp_path / "m.model")
    again = marginparts.load(tmp_path / "m.model")
    assert again.seeds == model.seeds
    assert_array_equal(again.predict(X), model.predict(X))


def _run(*args):
    return CliRunner().invoke(app, [str(a) for a in args], catch_exceptions=False)


@pytest.fixture
def docs(tmp_path):
    texts = [" ".join(np.repeat(NAMES, row.astype(int))) for row in X]
    (tmp_path / "docs.csv").write_text("\n".join(["text", *texts]))
    return tmp_path


@pytest.mark.filterwarnings("always::UserWarning")
@pytest.mark.parametrize("kind", ["csv", "json", "yaml"])
def test_the_command_fits_predicts_and_reports_without_a_label(docs, kind):
    file = docs / f"seeds.{kind}"
    if kind == "json":
        file.write_text(json.dumps({**SEEDS, "c": ["W80", "w81", "puck"]}))
    elif kind == "yaml":
        pytest.importorskip("yaml")
        file.write_text("a: [w0, w1]\nb:\n  w40: 1\n  w0: -0.5\nc:\n- w80\n- w81\n- puck\n")
    else:
        rows = [f"{name},{word}," for name in SEEDS for word in SEEDS[name]]
        file.write_text("\n".join(["class,word,strength", *rows, "a,w40,-1", "c,puck,2"]))
    fitted = _run("fit", docs / "docs.csv", "--text", "text", "--seeds", file, "--components", 6,
                  "--max-iter", 20, "--out", docs / "m.model")  # fmt: skip
    assert fitted.exit_code == 0, fitted.output
    assert "left out: puck." in fitted.stderr
    assert "how good this is is unknown" in " ".join(fitted.stdout.split())
    out = docs / "out.csv"
    said = _run("predict", docs / "m.model", docs / "docs.csv", "--out", out)
    assert said.exit_code == 0, said.output
    found = pd.read_csv(out)["predicted"].to_numpy()
    assert np.mean(found == TRUTH) > 0.85
    assert _run("report", docs / "m.model", "--out", docs / "r.html").exit_code == 0
    assert '"seeds":["w0","w1"]' in (docs / "r.html").read_text("utf-8")


def test_yaml_keeps_words_as_they_are_written(tmp_path, monkeypatch):
    pytest.importorskip("yaml")
    file = tmp_path / "s.yaml"
    file.write_text("yes: [no, 007]\n1.0: {on: 2, null: -1}\n")
    wanted = {"yes": {"no": 1.0, "007": 1.0}, "1.0": {"on": 2.0, "null": -1.0}}
    assert read_seeds(file) == wanted
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(FileProblemError, match=r"marginparts\[yaml\]"):
        read_seeds(file)


@pytest.mark.wide
def test_the_command_takes_seeds_of_several_labels(docs):
    rows, _, y = _several()
    texts = [" ".join(np.repeat(NAMES, row.astype(int))) for row in rows]
    cells = [";".join("abc"[k] for k in np.flatnonzero(row == 1)) for row in y]
    lines = [f"{text},{cell}" for text, cell in zip(texts, cells, strict=True)]
    (docs / "several.csv").write_text("\n".join(["text,kinds", *lines]))
    (docs / "s.json").write_text(json.dumps(SEEDS))
    how = ("--text", "text", "--label", "kinds", "--label-sep", ";", "--components", 6, "--seeds")
    out = docs / "m.model"
    found = _run("fit", docs / "several.csv", *how, docs / "s.json", "--out", out)
    assert found.exit_code == 0, found.output
    model = marginparts.load(out)
    names = np.array(model.feature_names)
    assert {str(names[j]) for j in model.classifier.seeds[0]} == {"w0", "w1"}
    assert _run("report", out, "--out", docs / "r.html").exit_code == 0
    assert '"seeds":["w0","w1"]' in (docs / "r.html").read_text("utf-8")
    (docs / "s.json").write_text(json.dumps({**SEEDS, "d": ["w2"]}))
    found = _run("fit", docs / "several.csv", *how, docs / "s.json", "--out", out)
    assert "No row has the label 'd'" in found.stderr


@pytest.mark.filterwarnings("always::UserWarning")
@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("s.csv", "class,word\na,w0\nb,puck\n", "speaks for 'b'"),
        ("s.csv", "class\na\n", "word"),
        ("s.csv", "class,word,strength\na,w0,much\n", "use a number"),
        ("s.csv", "class,word\na,\n", "lacks"),
        ("s.json", "{", "no JSON"),
        ("s.json", "[]", "a list of words"),
        ("s.json", '{"a": "w0"}', "a list of words"),
        ("s.txt", "a", ".json"),
        ("s.yaml", "a: [", "no YAML: see its line 1"),
        ("s.yaml", "a: w0", "a list of words"),
    ],
)
def test_a_wrong_file_of_seeds_is_refused_in_one_sentence(docs, name, content, sentence):
    (docs / name).write_text(content)
    found = _run("fit", docs / "docs.csv", "--text", "text", "--seeds", docs / name,
                 "--out", docs / "m.model")  # fmt: skip
    assert found.exit_code == 2
    assert sentence in found.stderr
