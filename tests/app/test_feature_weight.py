"""How much words count: as if they stood more or less often in the texts."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from typer.testing import CliRunner

from marginparts import NMFAlpha, fit_file, load, save
from marginparts.app.fitting import Options, matrix_of
from marginparts.app.preparation import PreparationError, prepare_texts
from marginparts.app.readers import open_source, read_all, read_feature_weights
from marginparts.app.report._payload import _settings
from marginparts.cli import app
from marginparts.files.atomic import FileProblemError

PETS = ["cats purr and sleep,cat", "dogs bark and run,dog", "a cat may purr,", "dogs run and bark,"]
QUICK = {"n_components": 2, "lam": 1.0, "C": 1.0}


@pytest.fixture(autouse=True)
def without_other_rivals(monkeypatch):
    """Leave out the rivals, which take longer than a fit here."""
    monkeypatch.setattr("marginparts.app.evaluation._FEW_LABELS", 0)


@pytest.fixture
def pets(tmp_path):
    file = tmp_path / "pets.csv"
    file.write_text("\n".join(["says,kind", *PETS * 6]))
    return file


def prepared(pets, **options):
    source = open_source(pets, text="says", label="kind")
    return matrix_of(read_all(source, keep_columns=False), source, Options(**options))


@pytest.mark.parametrize("weighting", ["counts", "l2-log", "tf-idf"])
def test_weight_zero_is_a_word_left_out(pets, weighting):
    how, X = prepared(pets, feature_weight={"Bark": 0, "run": 0.0}, weighting=weighting)
    left, expected = prepared(pets, stop_words=["bark", "run"], weighting=weighting)
    kept = [how.words.index(word) for word in left.words]
    assert_allclose(X[:, kept].toarray(), expected.toarray(), rtol=1e-6)
    assert X.nnz == expected.nnz  # nothing is stored for what is left out
    assert_array_equal(how.apply(["bark run"]).toarray(), 0)


def test_counts_are_multiplied_and_other_weightings_have_rows_of_length_one(pets):
    plain, X = prepared(pets, weighting="counts")
    weights = {"purr": 2.0, "sleep": 0.5}
    f = np.array([weights.get(word, 1.0) for word in plain.words])
    assert_allclose(prepared(pets, weighting="counts", feature_weight=weights)[1].toarray(),
                    X.toarray() * f)  # fmt: skip
    for weighting in ("l2-log", "tf-idf"):
        rows = prepared(pets, weighting=weighting, feature_weight=weights)[1].toarray()
        _, before = prepared(pets, weighting=weighting)
        assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-6)
        scaled = before.toarray() * f
        assert_allclose(rows, scaled / np.linalg.norm(scaled, axis=1)[:, None], rtol=1e-6)


def test_to_multiply_columns_is_to_weigh_them_in_the_loss():
    rng = np.random.default_rng(0)
    X, f = rng.random((9, 7)) + 0.01, rng.random(7) + 0.5
    H, V = rng.random((9, 3)) + 0.1, rng.random((7, 3)) + 0.1
    how = {"solver": "mu", "max_iter": 20, "tol": 0.0}
    weighed = NMFAlpha(3, init=(H, V), feature_weight=f, **how).fit(X)
    scaled = NMFAlpha(3, init=(H, V * f[:, None]), **how).fit(X * f)
    assert_allclose(scaled.loss_curve_, weighed.loss_curve_, rtol=1e-10)
    parts = weighed.components_ * f
    assert_allclose(scaled.components_, parts / parts.sum(axis=1)[:, None], rtol=1e-10)


def test_a_model_keeps_the_weights_and_the_page_shows_them(pets, tmp_path):
    model = fit_file(pets, text="says", label="kind", feature_weight={"purr": 3, "run": 0}, **QUICK)
    save(model, tmp_path / "pets.model")
    again = load(tmp_path / "pets.model")
    said = ["purr and run", "run", "bark"]
    assert_array_equal(again.features(said).toarray(), model.features(said).toarray())
    assert model.predict(said) == again.predict(said)
    assert dict(_settings(again))["weights of words"] == "run 0, purr 3"
    column = model.preparation.words.index("run")
    assert not model.classifier.parts_.components_[:, column].any()


def test_words_that_are_no_column_get_one_sentence(pets):
    with pytest.warns(UserWarning, match="are left out: zebra, 42") as told:
        prepared(pets, feature_weight={"zebra": 2.0, "purr": 2.0, "42": 0})
    assert len(told) == 1
    with pytest.raises(PreparationError, match="No word that has a weight is a column"):
        prepared(pets, feature_weight={"zebra": 2.0})
    for wrong in (-1, float("nan"), "much", 1e7):
        with pytest.raises(PreparationError, match="The weight of 'purr' is"):
            prepared(pets, feature_weight={"purr": wrong})


def test_columns_without_names_have_no_weights(tmp_path):
    np.save(tmp_path / "X.npy", np.ones((4, 3)))
    (tmp_path / "labels.txt").write_text("a\nb\n\n\n")
    with pytest.raises(PreparationError, match="give a file of them with --words"):
        fit_file(tmp_path / "X.npy", labels=tmp_path / "labels.txt", feature_weight={"x": 2})


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("word,weight\npurr,much", "line 2 has the weight 'much'; it must be a number from 0"),
        ("word,weight\npurr,", "line 2 has the weight"),
        ("word,weight\npurr,-1", "line 2 has the weight '-1'"),
        ("word,weight\npurr,nan", "line 2 has the weight 'nan'"),
        ("word,weight\n,1", "line 2 lacks a word"),
        ("word,weight\npurr,1\npurr,2", "two weights for 'purr'"),
        ("word,much\npurr,1", "weight"),
    ],
)
def test_a_file_that_makes_no_sense_gets_one_sentence(tmp_path, lines, said):
    file = tmp_path / "weights.csv"
    file.write_text(lines)
    with pytest.raises(FileProblemError, match=said):
        read_feature_weights(file)


@pytest.mark.filterwarnings("default::UserWarning")  # the command says it on the error output
def test_the_command_takes_a_file_of_weights(pets, tmp_path):
    (tmp_path / "weights.tsv").write_text("word\tweight\npurr\t3\nzebra\t1\n")
    asked = ["fit", str(pets), "--text", "says", "--label", "kind", "--components", "2",
             "--lam", "1", "--cost", "1", "--out", str(tmp_path / "a.model")]  # fmt: skip
    done = CliRunner().invoke(app, [*asked, "--feature-weight", str(tmp_path / "weights.tsv")])
    assert done.exit_code == 0, done.output
    assert "are left out: zebra." in done.stderr
    model = load(tmp_path / "a.model")
    assert model.preparation.feature_weight.max() == 3
    done = CliRunner().invoke(app, [*asked, "--feature-weight", str(tmp_path / "none.csv")])
    assert done.exit_code != 0
    assert "There is no file" in done.stderr


def test_texts_without_weights_are_prepared_as_before():
    how, X = prepare_texts(["a red cat", "a red dog", "The dog!"], max_df=1.0)
    assert how.feature_weight is None
    assert_array_equal(how.apply(["red dog"]).toarray() > 0, [[True, True]])
    assert X.nnz == 4
