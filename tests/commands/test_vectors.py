"""Vectors beside the samples of a file: --embeddings, --embed, and what models do with them."""

import csv
import json
import logging
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from time import sleep
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.preprocessing import normalize
from typer.testing import CliRunner

import marginparts
from marginparts import NMFAlphaClassifier
from marginparts.app import encoders
from marginparts.app.explanation import contributions
from marginparts.app.options import Options, check_vectors
from marginparts.app.preparation import PreparationError, beside
from marginparts.app.readers import Batch, Layout, open_source
from marginparts.app.suggestion import suggest
from marginparts.cli import app
from marginparts.files.atomic import FileProblemError

RNG = np.random.default_rng(0)
WORDS = ("apple", "banana", "cherry", "grape", "lemon", "mango")
KINDS = np.array(["left", "right"] * 30)
LABELS = [kind if k < 20 else "" for k, kind in enumerate(KINDS)]
# words say nothing of the kind, vectors all
TEXTS = [" ".join(RNG.choice(WORDS, 4)) for _ in KINDS]
VECTORS = RNG.normal(size=(60, 5)) + 4 * np.where(KINDS == "left", 1, -1)[:, None] * np.eye(5)[0]
TABLE = ("--text", "body", "--label", "kind")
QUICK = ("--components", "2", "--lam", "1", "--cost", "1", "--max-df", "1", "--max-iter", "20")


@pytest.fixture(autouse=True, scope="module")
def without_other_rivals():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("marginparts.app.evaluation._FEW_LABELS", 0)
        yield


def run(*args):
    result = CliRunner().invoke(app, [str(a) for a in args], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result


def refused(*args):
    """Return the one sentence that says why a command does not work."""
    result = CliRunner().invoke(app, [str(a) for a in args], catch_exceptions=False)
    assert result.exit_code == 2, result.output
    (sentence,) = result.stderr.strip().splitlines()
    assert sentence.endswith(".")
    return sentence


def write(path, n=60):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["body", "kind"])
        writer.writerows(zip(TEXTS[:n], LABELS[:n], strict=True))
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vectors")
    write(folder / "docs.csv")
    np.save(folder / "v.npy", VECTORS)
    run("fit", folder / "docs.csv", *TABLE, *QUICK, "--embeddings", folder / "v.npy",
        "--out", folder / "both.model")  # fmt: skip
    return folder


def test_vectors_find_what_words_do_not_say(folder, tmp_path):
    given = (folder / "both.model", folder / "docs.csv", "--embeddings", folder / "v.npy")
    run("predict", *given, "--out", tmp_path / "labeled.csv")
    with (tmp_path / "labeled.csv").open() as file:
        found = [row["predicted"] for row in csv.DictReader(file)]
    assert np.mean(np.array(found) == KINDS) > 0.95
    run("transform", *given, "--out", tmp_path / "codes.npz")
    assert np.load(tmp_path / "codes.npz")["Z"].shape == (60, 2)
    rows = [each["row"] for each in json.loads(run("next", *given, "-n", 3, "--json").stdout)]
    assert len(rows) == 3
    assert min(rows) > 20  # the others have labels
    run("report", *given, "--out", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "vectors have parts of their own" in page
    assert "(its vector)" in page
    assert "parts of their own" in run("topics", *given[:2]).stdout


def test_decision_values_are_the_terms_of_words_and_the_vector(folder):
    model = marginparts.load(folder / "both.model")
    X = model.prepare(TEXTS, VECTORS)
    terms = contributions(model.classifier, X, np.zeros(60, dtype=int))
    values = model.classifier.decision_function(X) - model.classifier.intercept_[0]
    assert_allclose(np.asarray(terms.sum(axis=1)), values, rtol=1e-4, atol=1e-4)
    assert terms.shape == (60, len(WORDS) + 1)
    # words say nothing here
    sizes = np.abs(terms.toarray()).sum(axis=0)
    assert sizes[-1] > sizes[:-1].sum()


def test_neither_the_size_of_vectors_nor_of_batches_matters(folder, monkeypatch, tmp_path):
    model = marginparts.load(folder / "both.model")
    expected = model.decision_function(TEXTS, VECTORS)
    assert_allclose(model.decision_function(TEXTS, 7 * VECTORS), expected, rtol=1e-4, atol=1e-5)
    monkeypatch.setattr("marginparts.commands._console.BATCH", 7)
    out = tmp_path / "labeled.csv"
    run("predict", folder / "both.model", folder / "docs.csv", "--embeddings", folder / "v.npy",
        "--all", "--out", out)  # fmt: skip
    with out.open() as file:
        found = [float(row["score left"]) for row in csv.DictReader(file)]
    assert_allclose(found, expected[:, 0], rtol=1e-3, atol=1e-4)


def test_texts_without_a_known_word_are_not_asked_for(folder):
    model = marginparts.load(folder / "both.model")
    texts = ["", "   ", "kiwi", "an apple and a kiwi", "a mango"]
    batch = Batch(texts, [None] * 5, {}, np.tile(VECTORS.mean(axis=0), (5, 1)))  # all in doubt
    assert {each.row for each in suggest(model, [batch], 5)} == {4, 5}
    assert suggest(model, [Batch(texts[:3], [None] * 3, {}, VECTORS[:3])], 5) == []


@pytest.mark.parametrize("unit", [1e-30, 1e-7, 1e19, 1e30])
def test_vectors_of_any_size_are_made_of_length_1(unit):
    vectors = np.vstack([VECTORS, np.zeros(5)]).astype(np.float32)
    own = beside(np.ones((61, 2), np.float32), np.float32(unit) * vectors)[:, 2:]
    assert own.dtype == np.float32
    assert_allclose(np.linalg.norm(own[:60], axis=1), 1, rtol=1e-6)
    assert_allclose(own, beside(np.ones((61, 2), np.float32), vectors)[:, 2:], rtol=1e-6)
    assert not own[60].any()


SIZES = {
    np.float64: [1e-320, 1e-60, 1e-30, 1.0, 1e30, 1e60, 1e300],
    np.float32: [1e-44, 1e-30, 1.0, 1e30],
    np.float16: [1e-7, 1.0, 1e3],
    np.int64: [1e2, 1e17],
    np.longdouble: [1.0, np.finfo(np.longdouble).max / 100],
}


@pytest.mark.parametrize(("dtype", "unit"), [(t, unit) for t in SIZES for unit in SIZES[t]])
def test_vectors_in_a_file_have_length_one_whatever_their_type_and_size(dtype, unit, tmp_path):
    docs = write(tmp_path / "docs.csv")
    vectors = (VECTORS * unit).astype(dtype)
    vectors[8] = 0
    np.save(tmp_path / "v.npy", vectors)
    source = open_source(docs, text="body", embeddings=tmp_path / "v.npy")
    read = np.vstack([batch.vectors for batch in source.batches(7)])
    assert read.dtype == np.float32
    largest = np.abs(vectors.astype(np.longdouble)).max(axis=1, keepdims=True)
    exact = normalize((vectors / np.where(largest > 0, largest, 1)).astype(np.float64))
    for given in (read, vectors):
        assert_allclose(beside(np.zeros((60, 1)), given)[:, 1:], exact, rtol=1e-6, atol=1e-7)


def test_vectors_of_any_size_in_a_file_make_the_same_model(folder, tmp_path):
    said = {}
    for unit in (1.0, 2.0**-200, 2.0**990):
        np.save(tmp_path / "v.npy", unit * VECTORS)
        run("fit", folder / "docs.csv", *TABLE, *QUICK, "--embeddings", tmp_path / "v.npy",
            "--out", tmp_path / "m")  # fmt: skip
        run("predict", tmp_path / "m", folder / "docs.csv", "--embeddings", tmp_path / "v.npy",
            "--out", tmp_path / "o.csv")  # fmt: skip
        said[unit] = (tmp_path / "o.csv").read_text()
    assert len(set(said.values())) == 1


@pytest.mark.parametrize("strange", [np.nan, np.inf])
def test_vectors_of_python_must_be_finite_too(strange):
    vectors = np.where(np.arange(60)[:, None] == 8, [1e300, 1, strange, 0, 0], VECTORS)
    with pytest.raises(PreparationError, match="Vector 9 does not have finite numbers"):
        beside(np.ones((60, 2)), vectors)


@pytest.mark.parametrize(
    ("vectors", "says"),
    [
        (VECTORS[:59], "has 59 vectors, and .* has 60 rows"),
        (np.vstack([VECTORS, VECTORS]), "has 120 vectors, and .* has 60 rows"),
        (VECTORS[:, 0], "one row a sample"),
        (VECTORS.astype(str), "save numbers"),
        (np.where(np.arange(60)[:, None] == 8, np.nan, VECTORS), "row 9: .* finite"),
        (VECTORS[:, :3], "has vectors of 3 numbers, and the model was fitted with 5"),
    ],
)
def test_vectors_that_do_not_fit_are_refused(vectors, says, folder, tmp_path):
    np.save(tmp_path / "v.npy", vectors)
    out = tmp_path / "labeled.csv"
    with pytest.raises(AssertionError, match=says):
        raise AssertionError(
            refused("predict", folder / "both.model", folder / "docs.csv", "--out", out,
                    "--embeddings", tmp_path / "v.npy")
        )  # fmt: skip
    assert not out.exists()


def test_models_say_what_they_need(folder, tmp_path):
    model, docs, v = folder / "both.model", folder / "docs.csv", ("--embeddings", folder / "v.npy")
    for command in ("predict", "transform", "next", "report"):
        out = tmp_path / ("z.npz" if command == "transform" else "o.csv")
        assert "fitted with vectors of 5" in refused(command, model, docs, "--out", out)
    assert "no file" in refused("predict", model, docs, "--embeddings", tmp_path / "none.npy")
    assert "no .npy" in refused("predict", model, docs, "--embeddings", docs)
    assert "give their FILE" in refused("report", model, *v)
    assert "leave out --embeddings" in refused("next", docs, "--text", "body", *v)
    with pytest.raises(FileProblemError, match="fitted without vectors; leave out --embeddings"):
        open_source(docs, embeddings=folder / "v.npy", like=Layout("text", text="body"))
    with pytest.raises(PreparationError, match="one from the same encoder for each"):
        marginparts.load(model).predict(TEXTS)
    for option in (("--exclusivity", "1"), ("--prior", model)):
        said = refused("fit", docs, *TABLE, *v, *option, "--out", tmp_path / "m")
        assert "does not go with vectors" in said
    assert "leave out one" in refused("fit", docs, *TABLE, *v, "--embed", "wordllama", "--out",
                                      tmp_path / "m")  # fmt: skip


@pytest.mark.parametrize("n", [1, 59, 61])
def test_models_need_a_vector_for_each_sample(n, folder):
    model = marginparts.load(folder / "both.model")
    vectors = np.vstack([VECTORS, VECTORS])[:n]
    says = f"number of samples is 60 and that of vectors is {n}; give one vector for each sample"
    with pytest.raises(PreparationError, match=says):
        model.predict(TEXTS, vectors)
    for strange in (VECTORS[:, 0], [[1.0] * 5, [1.0]], VECTORS[:, :4]):
        with pytest.raises(PreparationError, match="fitted with vectors of 5 numbers"):
            model.predict(TEXTS, strange)


@pytest.mark.wide
def test_a_matrix_with_vectors(tmp_path):
    counts = np.array([[text.split().count(word) for word in WORDS] for text in TEXTS])
    np.savez(tmp_path / "counts.npz", X=counts)
    np.save(tmp_path / "v.npy", VECTORS.astype(np.float32))
    (tmp_path / "labels.txt").write_text("\n".join(LABELS) + "\n" * (LABELS[-1] == ""))
    given = (tmp_path / "counts.npz", "--labels", tmp_path / "labels.txt", *QUICK)
    v = ("--embeddings", tmp_path / "v.npy")
    run("fit", *given, *v, "--out", tmp_path / "both.model")
    model = marginparts.load(tmp_path / "both.model")
    assert np.mean(np.array(model.predict(counts, VECTORS)) == KINDS) > 0.95
    assert model.feature_names == [f"column {k + 1}" for k in range(6)]


def test_no_sentence_advises_gaps_beside_vectors(tmp_path):
    rows = [[k + 1, 60 - k, label] for k, label in enumerate(LABELS)]
    counts = np.array(rows)[:, :2].astype(float)
    counts[8, 1] = np.nan
    np.savez(tmp_path / "gaps.npz", X=counts, y=KINDS)
    for name, cell in (("whole.csv", 5), ("gaps.csv", "")):
        rows[8][1] = cell
        with (tmp_path / name).open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([["length", "width", "kind"], *rows])
    np.save(tmp_path / "v.npy", VECTORS)
    whole, gaps, v = (
        tmp_path / "whole.csv",
        tmp_path / "gaps.csv",
        ("--embeddings", tmp_path / "v.npy"),
    )
    fit, model = (
        ("--label", "kind", "--components", "2", "--lam", "1", "--cost", "1"),
        tmp_path / "m",
    )
    run("fit", whole, *fit, "--max-iter", "20", *v, "--out", model)
    said = [refused("fit", gaps, *fit, *v), refused("fit", tmp_path / "gaps.npz", *v)]
    for command in ("predict", "transform", "next", "report"):
        out = tmp_path / ("z.npz" if command == "transform" else "o.csv")
        said.append(refused(command, model, gaps, *v, "--out", out))
    way_out = "; all values must be known here, so fill them in, or leave out their rows."
    assert all(each.endswith(way_out) for each in said), said
    said = refused("fit", gaps, *fit, *v, "--missing", "nan")
    assert said == "--missing does not go with vectors; leave out one of them."
    assert refused("fit", gaps, *fit).endswith("; where values are missing, say --missing nan.")


def counting(which):
    """An encoder for tests: how often some letters occur."""
    return lambda texts: [[text.count(letter) + 0.5 for letter in "aegm"] for text in texts]


def test_a_model_with_an_encoder_makes_its_own_vectors(folder, tmp_path, monkeypatch):
    monkeypatch.setitem(encoders.LOADERS, "wordllama", counting)
    encoders._loaded.cache_clear()
    docs, model = folder / "docs.csv", tmp_path / "m.model"
    run("fit", docs, *TABLE, *QUICK, "--embed", "wordllama", "--out", model)
    fitted = marginparts.load(model)
    assert (fitted.layout.vectors, fitted.layout.encoder) == (4, "wordllama")
    own = np.array(counting("")(TEXTS))
    assert_array_equal(fitted.decision_function(TEXTS), fitted.decision_function(TEXTS, own))
    assert_array_equal(fitted.decision_function(iter(TEXTS)), fitted.decision_function(TEXTS))
    assert fitted.predict([]) == []
    coded = [text.encode() if k % 2 else text for k, text in enumerate(TEXTS)]
    assert_array_equal(fitted.decision_function(coded), fitted.decision_function(TEXTS))
    with pytest.raises(ValueError, match="sample 2 is bytes that are not UTF-8; decode it"):
        fitted.predict(["caf\xe9", "caf\xe9".encode("latin-1")])
    run("predict", model, docs, "--out", tmp_path / "a.csv")
    np.save(tmp_path / "own.npy", own)
    run("predict", model, docs, "--embeddings", tmp_path / "own.npy", "--out", tmp_path / "b.csv")
    assert (tmp_path / "a.csv").read_text() == (tmp_path / "b.csv").read_text()
    encoders._loaded.cache_clear()


#: Values of options that a classifier of embedded columns may refuse.
UNUSUAL = {
    "seeds": {"left": ["apple"]}, "prior": [[1.0] * 6], "fixed": [[1.0] * 6], "missing": "nan",
    "exclusivity": 0.1, "alpha_W": 0.1, "alpha_H": 0.1, "l1_ratio": 0.5, "consensus": 3,
    "strength": 2.0, "class_weight": "balanced", "scoring": "f1_macro", "C": 2.0, "lam": 3.0,
}  # fmt: skip


def test_what_classifiers_refuse_beside_vectors_is_refused_before_they_are_made(folder):
    source, refusals = open_source(folder / "docs.csv", text="body", label="kind"), set()
    for name, value in UNUSUAL.items():
        model = NMFAlphaClassifier(2, embedded=5, max_iter=5, random_state=0)
        try:
            model.set_params(**{name: value}).fit(np.hstack([np.ones((60, 6)), VECTORS]), KINDS)
        except ValueError as error:
            refusals.add((name, str(error)))
        else:
            check_vectors(Options(embed="wordllama", **{name: value}), source)
    assert len(refusals) > 5
    for name, said in refusals:
        assert said.startswith(f"{name} needs data without embedded columns")
        with pytest.raises(PreparationError, match=f"^--{name.replace('_', '-')} does not go with"):
            check_vectors(Options(embed="wordllama", **{name: UNUSUAL[name]}), source)
    check_vectors(Options(embed="wordllama", alpha_H=0.0), source)


def test_no_text_is_encoded_for_options_that_do_not_go_with_vectors(folder, monkeypatch):
    monkeypatch.setitem(encoders.LOADERS, "wordllama", lambda which: 1 / 0)
    encoders._loaded.cache_clear()
    fit = ("fit", folder / "docs.csv", *TABLE, *QUICK, "--embed", "wordllama")
    for option, value in (("--alpha-H", "0.1"), ("--alpha-W", "0.1"), ("--consensus", "3")):
        said = refused(*fit, option, value, "--out", folder / "none.model")
        assert said == f"{option} does not go with vectors; leave out one of them."


def test_a_library_does_not_make_all_others_log(tmp_path, monkeypatch):
    (tmp_path / "talkative.py").write_text("import logging\nlogging.basicConfig(level='INFO')\n")
    monkeypatch.syspath_prepend(tmp_path)
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    monkeypatch.setattr(root, "handlers", [])  # pytest's, with which basicConfig does nothing
    encoders._library("talkative", "talkative")
    assert (root.level, root.handlers) == (level, [])
    monkeypatch.undo()
    assert root.handlers == handlers


def test_two_threads_leave_the_process_as_it_was(monkeypatch):
    inside = Event()
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)

    def slow(texts):
        inside.set()
        sleep(0.1)
        return [[1.0, 2.0] for _ in texts]

    monkeypatch.setitem(encoders.LOADERS, "wordllama", lambda which: slow)
    encoders._loaded.cache_clear()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(encoders.encoded, "wordllama", TEXTS)
        inside.wait(10)
        second = pool.submit(encoders.encoded, "wordllama", TEXTS[:3])
        assert (len(first.result()), len(second.result())) == (60, 3)
    assert "HF_HUB_OFFLINE" not in os.environ
    encoders._loaded.cache_clear()


@pytest.mark.parametrize("size", [1e-60, 1e60])
def test_vectors_of_any_size_have_length_one(size):
    rows = beside(np.zeros((2, 1)), size * np.array([[3.0, 4.0], [0.0, 0.0]]))
    assert_allclose(rows, [[0, 0.6, 0.8], [0, 0, 0]], rtol=1e-6)


def test_a_library_that_is_there_but_broken_is_not_said_to_be_missing(tmp_path, monkeypatch):
    (tmp_path / "halfway.py").write_text("import not_there_at_all\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(PreparationError, match=r"cannot be imported here .*not_there_at_all"):
        encoders._library("halfway", "halfway")
    with pytest.raises(PreparationError, match="not installed: pip install nowhere"):
        encoders._library("nowhere_at_all", "nowhere")


@pytest.mark.parametrize("before", [False, True])
def test_encoders_are_offline_whatever_was_imported_before(before, monkeypatch):
    hub = SimpleNamespace(HF_HUB_OFFLINE=before)  # as it is once it was imported
    monkeypatch.setitem(sys.modules, "huggingface_hub.constants", hub)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    seen = []

    def load(which):
        seen.append((hub.HF_HUB_OFFLINE, os.environ["HF_HUB_OFFLINE"]))
        return failing

    def failing(texts):
        seen.append((hub.HF_HUB_OFFLINE, os.environ["HF_HUB_OFFLINE"]))
        raise MemoryError

    monkeypatch.setitem(encoders.LOADERS, "wordllama", load)
    encoders._loaded.cache_clear()
    with pytest.raises(MemoryError):
        encoders.encoded("wordllama", TEXTS)
    assert seen == [(True, "1"), (True, "1")]
    assert hub.HF_HUB_OFFLINE is before
    assert "HF_HUB_OFFLINE" not in os.environ
    encoders._loaded.cache_clear()


def test_a_damaged_folder_of_model2vec_is_refused(tmp_path, monkeypatch):
    class StaticModel:
        @staticmethod
        def from_pretrained(path):
            raise Exception("Error while deserializing header")

    monkeypatch.setitem(sys.modules, "model2vec", SimpleNamespace(StaticModel=StaticModel))
    encoders._loaded.cache_clear()
    with pytest.raises(PreparationError, match="holds no model that model2vec can load"):
        encoders.encoded(f"model2vec:{tmp_path}", TEXTS)


@pytest.mark.extra
def test_the_hub_knows_that_it_is_offline_and_then_that_it_is_not():
    hub = pytest.importorskip("huggingface_hub", minversion="1.0")
    before = hub.is_offline_mode()
    with encoders._offline():
        assert hub.is_offline_mode()
    assert hub.is_offline_mode() is before


def test_a_model_finds_the_folder_of_its_encoder_from_anywhere(folder, tmp_path, monkeypatch):
    seen = []

    def folder_of(which):
        seen.append(which)
        return counting("")

    for place in ("here", "there"):
        (tmp_path / place / "encoder").mkdir(parents=True)
    monkeypatch.setitem(encoders.LOADERS, "model2vec", folder_of)
    encoders._loaded.cache_clear()
    own = str(tmp_path / "here" / "encoder")
    monkeypatch.chdir(tmp_path / "here")
    run("fit", folder / "docs.csv", *TABLE, *QUICK, "--embed", "model2vec:encoder", "--out", "m")
    model = marginparts.load("m")
    assert model.layout.encoder == f"model2vec:{own}"
    monkeypatch.chdir(tmp_path / "there")
    model.predict(TEXTS)
    assert seen == [own]
    encoders.encoded("model2vec:encoder", TEXTS)  # another one with the same name
    assert seen == [own, str(tmp_path / "there" / "encoder")]
    assert encoders.settled("sentence-transformers:some") == "sentence-transformers:some"
    for other in ("wordllama", "sentence-transformers:" + 5000 * "a"):
        assert encoders.settled(other) == other
    encoders._loaded.cache_clear()


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (np.ones((2, 4)), "was given 3 texts and made 2 vectors"),
        (np.ones((4, 4)), "was given 3 texts and made 4 vectors"),
        ([[1.0, 2.0], [1.0], [1.0, 2.0]], "does not make a vector of as many finite numbers"),
        ([["a"], ["b"], ["c"]], "does not make a vector of as many finite numbers"),
        (None, "does not make a vector of as many finite numbers"),
        (np.ones(3), "does not make a vector of as many finite numbers"),
        (np.full((3, 2), np.inf), "does not make a vector of as many finite numbers"),
        (np.full((3, 2), 1e300), "does not make a vector of as many finite numbers"),
    ],
)
def test_strange_answers_of_encoders_are_refused(made, says, monkeypatch):
    monkeypatch.setitem(encoders.LOADERS, "wordllama", lambda which: lambda texts: made)
    encoders._loaded.cache_clear()
    with pytest.raises(PreparationError, match=f"^wordllama {says}.*[.]$"):
        encoders.encoded("wordllama", ["a", "b", "c"])
    encoders._loaded.cache_clear()


def test_encoders_that_are_not_there(folder, tmp_path, monkeypatch):
    def missing(name):
        raise ModuleNotFoundError(name, name=name)

    monkeypatch.setattr(encoders.importlib, "import_module", missing)
    encoders._loaded.cache_clear()
    fit = ("fit", folder / "docs.csv", *TABLE, "--out", tmp_path / "m", "--embed")
    assert refused(*fit, "wordllama").endswith("is not installed: pip install wordllama.")
    assert "needs the folder" in refused(*fit, "model2vec:nowhere")
    assert "pip install sentence-transformers" in refused(*fit, "sentence-transformers:some")
    assert "is unknown; it is wordllama" in refused(*fit, "word2vec")
    assert "is unknown" in refused(*fit, "model2vec")


@pytest.mark.extra
def test_wordllama_knows_what_is_near():
    pytest.importorskip("wordllama")
    encoders._loaded.cache_clear()
    car, automobile, soup = encoders.encoded("wordllama", ["a car", "an automobile", "hot soup"])
    assert car @ automobile > car @ soup
