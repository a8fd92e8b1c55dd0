"""Files, inputs and moments that want to break it: each finding as a case that stays closed.

The checksums of every archive here agree: anyone can compute them.
"""

import io
import json
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from typer.testing import CliRunner

from marginparts import (
    Checkpoint,
    Labeling,
    Landmarks,
    NMFAlpha,
    NMFAlphaClassifier,
    OnlineNMFAlphaClassifier,
    SemiSupervisedNMF,
    TransductiveSVM,
    margin_directions,
    nmf_alpha,
    open_rows,
)
from marginparts.app.fitting import fit_file
from marginparts.app.model_file import load, save
from marginparts.app.readers import open_source, read_seeds
from marginparts.app.report import payload_of, render
from marginparts.backends.reference import ReferenceBackend
from marginparts.cli import app
from marginparts.experiments.store import Store
from marginparts.files.archive import Archive
from marginparts.files.arrays import read_npz
from marginparts.files.atomic import (
    FileProblemError,
    check_destination,
    leave,
    written_beside,
)
from marginparts.files.compressed import check_compressed
from marginparts.files.invariants import extremes_of
from marginparts.files.json_text import read_json
from marginparts.rows.dask._calls import ClusterError, check_scheduler
from mutations import is_a_sentence, read_archive, write_archive

RNG = np.random.default_rng(0)
X = RNG.random((60, 9)) * (RNG.random((60, 9)) < 0.7)
Y = np.where(np.arange(60) % 2, np.arange(60) % 3, -1)


def edited(path, arrays=None, tree=None):
    """Change arrays (name: function) and the tree (function) of an archive."""
    text, found, all_arrays = read_archive(path)
    for name, change in (arrays or {}).items():
        place = f"arrays/{name}.npy"
        all_arrays[place] = change(all_arrays[place])
    if tree is not None:
        tree(found)
    write_archive(path, text, found, all_arrays)


def entry(value):
    def change(array):
        array = array.copy()
        array.reshape(-1)[0] = value
        return array

    return change


# --- Models and streams --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fitted():
    stream = OnlineNMFAlphaClassifier(3, batch_size=20, memory=15, random_state=0)
    return {
        "classifier": NMFAlphaClassifier(3, max_iter=5, random_state=0).fit(X, Y),
        "parts": NMFAlpha(3, max_iter=5, random_state=0).fit(X, Y),
        "stream": stream.partial_fit(X, Y, classes=[0, 1, 2]),
    }


ARRAYS = [
    ("stream", "stream_.W", lambda a: a[:, :0], "stream_.W has the size (3, 0), not (3, 9)"),
    ("stream", "stream_.V", lambda a: a[:, :0], "stream_.V has no columns"),
    ("stream", "stream_.past.A", lambda a: a[:-1], "stream_.past.A has the size"),
    ("stream", "stream_.memory.codes", entry(7), "stream_.memory.codes does not fit the rest"),
    ("stream", "stream_.memory.weights", entry(np.nan), "weights has an entry that is not finite"),
    ("parts", "gram_root_", lambda a: a[:0, :0], "gram_root_ has the size (0, 0), not (3, 3)"),
    ("parts", "components_", lambda a: a[:0], "components_ has no rows"),
    ("parts", "components_", lambda a: a[:, :-1], "components_ has the size (3, 8), not (3, 9)"),
    ("parts", "components_", entry(np.inf), "components_ has an entry that is not finite"),
    ("parts", "components_", entry(-0.1), "components_ has an entry that is not finite, or out"),
    ("parts", "components_", lambda a: a.astype(np.float16), "components_ is no array of the type"),
    ("classifier", "head_.intercept", lambda a: a[None], "intercept_ has the size (1, 3), not (3)"),
    ("classifier", "classes_", lambda a: np.array(3), "classes_ has the size (), not (c)"),
    ("classifier", "calibration_.slopes", lambda a: a[:, :0], "calibration_.slopes has the size"),
    ("classifier", "parts_.components_", entry(np.nan), "parts_.components_ has an entry"),
]


@pytest.mark.parametrize(("name", "array", "change", "says"), ARRAYS, ids=[a[3] for a in ARRAYS])
def test_arrays_of_a_model_that_do_not_fit_are_named(name, array, change, says, fitted, tmp_path):
    path = tmp_path / "model"
    save(fitted[name], path)
    edited(path, {array: change})
    with pytest.raises(FileProblemError) as caught:
        load(path)
    assert says in str(caught.value)
    assert str(path) in str(caught.value)


def test_arrays_in_another_order_of_bytes_are_read(fitted, tmp_path):
    save(fitted["parts"], tmp_path / "model")
    edited(tmp_path / "model", {"components_": lambda a: a.astype(">f8")})
    assert (load(tmp_path / "model").transform(X) == fitted["parts"].transform(X)).all()


@pytest.mark.parametrize("place", [0, 2**16 - 1, 2**16, 2**17])
@pytest.mark.parametrize("order", ["C", "F"])
def test_extremes_are_found_in_every_piece(place, order):
    array = np.full((3, 2**16), 0.5, order=order)
    assert extremes_of(array) == (0.5, 0.5)
    array[np.unravel_index(place, array.shape, order)] = -1
    assert extremes_of(array) == (-1, 0.5)
    array[np.unravel_index(place, array.shape, order)] = np.nan
    assert np.isnan(extremes_of(array)).all()


NO_LETTER = np.array([2**31 - 1, 97], np.uint32).view("U2")


def test_letters_that_are_none_are_refused(fitted, tmp_path):
    """Python ends with an error of its own inside where NumPy hands it such a text."""
    save(fitted["parts"], tmp_path / "model")
    edited(tmp_path / "model", {"margin_names_": lambda a: np.repeat(NO_LETTER, len(a))})
    with pytest.raises(FileProblemError, match=r"margin_names_\.npy has a letter that is none"):
        load(tmp_path / "model")
    np.save(tmp_path / "x.npy", X[:2])
    np.save(tmp_path / "y.npy", np.repeat(NO_LETTER, 2))
    with pytest.raises(FileProblemError, match="have a letter that is none; save them anew"):
        open_source(tmp_path / "x.npy", labels=tmp_path / "y.npy")


def test_a_map_that_would_never_end_is_refused(fitted, tmp_path):
    save(fitted["parts"], tmp_path / "model")
    edited(
        tmp_path / "model",
        tree=lambda tree: tree["model"]["estimator"]["parameters"].update(map_iter=10**12),
    )
    with pytest.raises(FileProblemError, match="map_iter is not between 1 and 100000"):
        load(tmp_path / "model")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Texts of two labels, one of which is a formula."""
    path = tmp_path_factory.mktemp("table") / "t.csv"
    rows = ["body,team"]
    for i in range(60):
        words = " ".join(f"word{k}" for k in RNG.integers(10 * (i % 2), 10 * (i % 2) + 12, 8))
        rows.append(f"{words},{('=1+2', 'b')[i % 2] if i < 40 else ''}")
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.fixture(scope="module")
def text_model(table):
    return fit_file(table, text="body", label="team", n_components=(2,), max_iter=3, random_state=0)


@pytest.fixture
def model_path(text_model, tmp_path):
    save(text_model, tmp_path / "t.model")
    return tmp_path / "t.model"


def preparation_of(tree):
    return tree["model"]["object"]["fields"]["preparation"]["object"]["fields"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda words: words.append("more"), "preparation.words has the size"),
        (lambda words: words.pop(), "preparation.words has the size"),
        (lambda words: words.__setitem__(0, words[1]), "words has an entry twice"),
        (lambda words: words.__setitem__(0, 3), "words is no str"),
    ],
)
def test_words_and_columns_are_as_many(change, says, model_path):
    edited(model_path, tree=lambda tree: change(preparation_of(tree)["words"]))
    with pytest.raises(FileProblemError, match="is damaged or not a model") as caught:
        load(model_path)
    assert says in str(caught.value) or "does not fit together" in str(caught.value)


def test_an_encoder_that_does_not_exist_is_refused(model_path):
    def change(tree):
        layout = tree["model"]["object"]["fields"]["layout"]["object"]["fields"]
        layout["encoder"] = "rm -rf"

    edited(model_path, tree=change)
    with pytest.raises(FileProblemError, match=r"layout\.encoder does not fit the rest"):
        load(model_path)


PARAMETERS = [
    ("parts", {"missing": {"array": "components_"}}, {}, "missing is no str"),
    ("parts", {"missing": "some"}, {}, "missing is none of nan, zeros"),
    ("classifier", {"seeds": 3}, {}, "seeds does not fit the rest"),
    ("classifier", {"seeds": {"dict": [["a", {"dict": [[0, "x"]]}]]}}, {}, "seeds does not fit"),
    ("classifier", {"strength": "x"}, {}, "strength is no float"),
    ("classifier", {"alpha_W": {"dict": []}}, {}, "alpha_W is no float"),
    ("classifier", {"alpha_H": {"dict": []}}, {}, "alpha_H is no float"),
    ("classifier", {"max_unlabeled": 0}, {}, "max_unlabeled is not between 1 and inf"),
    ("classifier", {"embedded": {"array": "classes_"}}, {}, "embedded is no int"),
    ("stream", {"normalize": {"array": "classes_"}}, {}, "normalize is no bool"),
    ("stream", {"C": {"float": "nan"}}, {}, "C is not between 0 and 1e+150"),
    ("stream", {}, {"declared_": None}, "declared_ is missing"),
    ("classifier", {}, {"calibration_": ...}, "calibration_ is missing"),
]


@pytest.mark.parametrize(
    ("name", "parameters", "attributes", "says"), PARAMETERS, ids=[p[3] for p in PARAMETERS]
)
def test_parameters_that_make_no_sense_are_named(
    name, parameters, attributes, says, fitted, tmp_path
):
    path = tmp_path / "model"
    save(fitted[name], path)

    def change(tree):
        tree["model"]["estimator"]["parameters"].update(parameters)
        kept = tree["model"]["estimator"]["attributes"]
        kept.update(attributes)
        for name in [name for name, value in attributes.items() if value is ...]:
            del kept[name]

    edited(path, tree=change)
    with pytest.raises(FileProblemError) as caught:
        load(path)
    assert says in str(caught.value)


def test_rows_of_a_stream_whose_squares_are_no_numbers_are_refused(fitted, tmp_path):
    save(fitted["stream"], tmp_path / "model")
    edited(tmp_path / "model", {"stream_.memory.sample_weight": entry(1e300)})
    with pytest.raises(FileProblemError, match="sample_weight has an entry that is not finite"):
        load(tmp_path / "model")


def test_a_scale_of_a_stream_that_does_not_fit_its_rows_is_refused(fitted, tmp_path):
    save(fitted["stream"], tmp_path / "model")

    def change(tree):
        stream = tree["model"]["estimator"]["attributes"]["stream_"]
        stream["object"]["fields"]["scale"] = 1e308

    edited(tmp_path / "model", tree=change)
    with pytest.raises(FileProblemError, match=r"stream_\.scale does not fit the rest"):
        load(tmp_path / "model")


def test_a_model_without_its_choice_is_refused(model_path):
    def change(tree):
        classifier = tree["model"]["object"]["fields"]["classifier"]
        del classifier["estimator"]["attributes"]["choice_"]

    edited(model_path, tree=change)
    with pytest.raises(FileProblemError, match="classifier has no choice"):
        load(model_path)


def test_a_card_without_shares_can_be_shown(model_path):
    def change(tree):
        card = tree["model"]["object"]["fields"]["card"]["object"]["fields"]
        card["shares"] = []

    edited(model_path, tree=change)
    assert "<!doctype html>" in render(payload_of(load(model_path), None))


@pytest.mark.parametrize("value", [None, -1, "x"])
def test_a_card_with_a_strange_number_of_carried_parts_is_refused(value, model_path):
    def change(tree):
        tree["model"]["object"]["fields"]["card"]["object"]["fields"]["carried"] = value

    edited(model_path, tree=change)
    with pytest.raises(FileProblemError, match="carried"):
        load(model_path)


# --- Seeds and journals ---------------------------------------------------------------------------

BOMB = "\n".join(["a0: &a0 [x, x]"] + [f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 9)}]"
                                       for k in range(1, 10)])  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("s.json", "[" * 10**5), ("s.json", '{"a": {"b": NaN}}'), ("s.json", '{"a": [["b"]]}'),
        ("s.json", '{"a": {"b": ' + "9" * 5000 + "}}"), ("s.json", '{"a": {"b": 1e999}}'),
        ("s.yaml", "[" * 10**5), ("s.yaml", BOMB), ("s.yaml", "a: &a [*a]"),
        ("s.yaml", "a: {b: .inf}"), ("s.yaml", "a: [" + "b, " * 10**5 + "]"),
        ("s.csv", "class,word,strength\na,b,inf\n"),
        ("s.csv", "class,word,strength\na,b," + "x" * 5000),
    ],
)  # fmt: skip
def test_seeds_that_want_to_break_it_are_a_short_sentence(name, text, tmp_path):
    pytest.importorskip("yaml")
    (tmp_path / name).write_text(text)
    began = time.process_time()
    with pytest.raises(FileProblemError) as caught:
        read_seeds(tmp_path / name)
    assert time.process_time() - began < 5
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    "strange",
    [
        {"id": []}, {"kind": {}}, {"of": {"a": 1}}, {"sample": ["x"]}, {"labels": "cat"},
        {"labels": [None]}, {"samples": [[]]}, {"accuracy": float("nan")}, {"error": 10**400},
        {"labeled": "x"}, {"when": 3}, {"into": "\ud800"},
    ],
)  # fmt: skip
def test_events_of_the_wrong_kind_are_passed_over(strange, tmp_path):
    path = tmp_path / "a.jsonl"
    event = {
        "id": "a", "kind": "estimate", "when": "", "labeled": 3, "accuracy": 0.5, "error": 0.1,
    }  # fmt: skip
    path.write_text(f"{json.dumps({**event, **strange})}\n{json.dumps({**event, 'id': 'b'})}\n")
    labeling = Labeling(["cats purr", "dogs bark"] * 4, journal=path, background=False)
    assert labeling.journal.damaged == 1
    assert [entry["accuracy"] for entry in labeling.status()["history"]] == [0.5]


def test_an_image_of_billions_of_pixels_is_refused(tmp_path):
    image = pytest.importorskip("PIL.Image")
    (tmp_path / "a").mkdir()
    image.new("1", (9000, 9000)).save(tmp_path / "a" / "x.png")  # a small file
    with pytest.raises(FileProblemError, match="has 9000 x 9000 pixels; make it smaller"):
        open_source(tmp_path)


# --- Checkpoints ---------------------------------------------------------------------------------


class CrashError(Exception):
    pass


def fit_with(path, *, crash=False):
    seen = []

    def callback(progress):
        seen.append(progress)
        if crash and len(seen) == 5:
            raise CrashError

    return nmf_alpha(
        X, 3, random_state=0, max_iter=9, tol=0, solver="mue", callback=callback,
        checkpoint=Checkpoint(path, every_iterations=1),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("arrays", "tree", "says"),
    [
        ({"run.state.H": lambda a: a[:1]}, None, "state.H has the size (1, 3), not (60, 3)"),
        ({"run.state.V": entry(np.nan)}, None, "state.V has an entry that is not finite"),
        ({"run.before.V": entry(-1)}, None, "before.V has an entry that is not finite, or out"),
        ({"run.state.V": lambda a: a.astype(np.float32)}, None, "the factors have several types"),
        (None, lambda t: t["history"][0].pop(), "history has a row that is none"),
        (None, lambda t: t.pop("iteration"), "iteration is missing"),
        (None, lambda t: t.update(stop="NEVER"), "stop is none of"),
    ],
)
def test_notes_that_do_not_fit_are_refused(arrays, tree, says, tmp_path):
    path = tmp_path / "fit.ckpt"
    with pytest.raises(CrashError):
        fit_with(path, crash=True)
    edited(path, arrays, None if tree is None else lambda found: tree(found["notes"]["run"]))
    with pytest.raises(FileProblemError) as caught:
        fit_with(path)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda tree: tree.update(marginparts="x" * 5000), "was written by marginparts ?"),
        (lambda tree: tree["fit"].update(tol="x" * 5000), "belongs to another fit, with tol='xxx"),
        (lambda tree: tree["fit"].update({"x" * 5000: 1}), "belongs to another fit, with xxx"),
        (lambda tree: tree["notes"]["run"].update(run={str(k): 1 for k in range(500)}), "another"),
    ],
)
def test_a_long_text_in_a_checkpoint_is_not_repeated(change, says, tmp_path):
    path = tmp_path / "fit.ckpt"
    with pytest.raises(CrashError):
        fit_with(path, crash=True)
    edited(path, tree=change)
    with pytest.raises(FileProblemError) as caught:
        fit_with(path)
    assert says in str(caught.value)
    is_a_sentence(caught.value, path)


def test_a_yes_in_the_place_of_a_number_is_no_candidate(tmp_path):
    """It equals 1, and would be refused in mid-fit, without the name of the file."""
    path, seen = tmp_path / "fit.ckpt", []

    def fit(at=None):
        def callback(progress):
            seen.append(progress)
            if len(seen) == at:
                raise CrashError

        NMFAlphaClassifier(
            2, lam="auto", map_iter=3, C=1.0, max_iter=3, pseudo=None, random_state=0,
            callback=callback, checkpoint=Checkpoint(path, every_iterations=1),
        ).fit(X, Y)  # fmt: skip

    with pytest.raises(CrashError):
        fit(30)

    def change(tree):
        candidate = tree["notes"]["race"]["candidates"][0][0]
        assert candidate[3] == 1
        candidate[3] = True

    edited(path, tree=change)
    with pytest.raises(FileProblemError, match="direction_C is no float") as caught:
        fit()
    is_a_sentence(caught.value, path)


# --- Compressed matrices -------------------------------------------------------------------------

#: Pointers that SciPy's own check lets pass, or that wrap when they are subtracted or cast.
POINTERS = [
    [0, 5, 0], [0, 9, -1], [0, 2**62, 2], [1, 1, 2], [0, -(2**62), 2], [0, 1, 9], [0, 2], [],
]  # fmt: skip


@pytest.mark.parametrize("indptr", POINTERS, ids=str)
@pytest.mark.parametrize("by_columns", [False, True])
def test_pointers_that_lead_outside_are_refused(indptr, by_columns, tmp_path):
    parts = {"data": np.ones(2), "indices": np.array([0, 1]), "indptr": np.array(indptr, int)}
    with pytest.raises(ValueError, match="indptr must"):
        check_compressed(**parts, shape=(2, 2), by_columns=by_columns)
    path = tmp_path / "x.npz"
    kind = np.array(b"csc" if by_columns else b"csr")
    np.savez(path, format=kind, shape=np.array([2, 2]), **parts)
    with pytest.raises(FileProblemError, match="cut short or is no npz file"):
        read_npz(path)


def test_pointers_without_a_sign_do_not_wrap():
    falling = np.array([0, 3, 1], np.uint64)
    with pytest.raises(ValueError, match="indptr must rise"):
        check_compressed(np.ones(3), np.zeros(3, int), falling, (2, 2))


def test_a_folder_of_arrays_with_falling_pointers_is_refused(tmp_path):
    for name, array in (
        ("data", np.ones(1)), ("indices", np.zeros(1, int)),
        ("indptr", np.array([0, 3, 1], np.uint64)),
    ):  # fmt: skip
        np.save(tmp_path / f"{name}.npy", array)
    with pytest.raises(FileProblemError, match="indptr must rise from 0"):
        open_rows(tmp_path, n_features=2)


def test_cells_by_columns_that_lead_outside_are_refused(tmp_path):
    anndata = pytest.importorskip("anndata")
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "cells.h5ad"
    anndata.AnnData(sp.csc_matrix(X)).write_h5ad(path)
    with h5py.File(path, "a") as file:
        file["X/indices"][0] = 10**6
    with pytest.raises(FileProblemError, match="cut short or is no h5ad file"):
        list(open_source(path).batches())


# --- Bombs ---------------------------------------------------------------------------------------


def test_members_that_swell_together_are_refused():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model.json", "{}")
        archive.writestr("SHA256SUMS", "")
        for k in range(4):
            archive.writestr(f"arrays/{k}.npy", bytes(2**23))
    with pytest.raises(FileProblemError, match="it would swell to 33,554,434 bytes"):
        Archive("x.model", file)


@pytest.mark.parametrize(
    "text", [b"[" * 10**5, b"[" + b"{}," * 10**6 + b"{}]", b"[" + b"1," * 4_000_001 + b"1]"]
)
def test_json_with_too_many_items_is_refused(text):
    with pytest.raises(ValueError, match=r"too many items|nested too deeply"):
        read_json(text)


def test_keys_that_all_collide_are_refused_quickly(fitted, tmp_path):
    save(fitted["parts"], tmp_path / "model")
    pairs = [[k * (2**61 - 1), 0] for k in range(20_000)]
    edited(
        tmp_path / "model",
        tree=lambda tree: tree["model"]["estimator"]["attributes"].update(more_={"dict": pairs}),
    )
    began = time.process_time()
    with pytest.raises(FileProblemError, match="does not fit together"):
        load(tmp_path / "model")
    assert time.process_time() - began < 5  # a dict of them takes 25


def test_an_npz_file_that_says_more_than_it_has_is_refused(tmp_path):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (10**9, 10**3)}
    )
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("X.npy", header.getvalue())
    with pytest.raises(FileProblemError, match="cut short or is no npz file"):
        read_npz(tmp_path / "x.npz")


# --- Outputs -------------------------------------------------------------------------------------


def run(*arguments):
    return CliRunner().invoke(app, [str(each) for each in arguments])


def refused(result, says):
    assert result.exit_code == 2, result.output
    assert says in result.output.replace("\n", " ")


def test_links_and_pipes_are_not_written_to(model_path, table, tmp_path):
    target = tmp_path / "target.csv"
    target.write_text("mine")
    (tmp_path / "link.csv").symlink_to(target)
    os.mkfifo(tmp_path / "pipe.csv")
    for name, says in (("link.csv", "is a link"), ("pipe.csv", "is no file, but a device")):
        refused(run("predict", model_path, table, "--out", tmp_path / name), says)
    assert target.read_text() == "mine"
    # only asked for: were it wrong, to write would cost a machine its device
    with pytest.raises(FileProblemError, match="is no file, but a device"):
        check_destination(Path(os.devnull))


def test_labels_are_not_written_over(tmp_path):
    np.save(tmp_path / "x.npy", X)
    labels = tmp_path / "y.txt"
    labels.write_text("".join(f"{'ab'[k % 2]}\n" for k in range(60)))
    before = labels.read_text()
    for flag in ("--out", "--checkpoint"):
        result = run("fit", tmp_path / "x.npy", "--labels", labels, flag, labels)
        refused(result, "is the file that is read")
    assert labels.read_text() == before


def test_cells_that_a_spreadsheet_would_run_are_put_in_quotes(model_path, table, tmp_path):
    out = tmp_path / "out.csv"
    assert run("predict", model_path, table, "--out", out, "-q").exit_code == 0
    first = out.read_text().splitlines()[1]
    assert ",'=1+2,'=1+2," in first
    assert ",-" in out.read_text() or ",0." in first  # numbers stay numbers
    assert run("predict", model_path, table, "--out", out, "-q", "--raw").exit_code == 0
    assert ",=1+2,=1+2," in out.read_text().splitlines()[1]


def test_a_model_cannot_command_the_terminal(model_path):
    edited(
        model_path,
        tree=lambda tree: tree["model"]["object"]["fields"].update(
            class_names=["\x1b]0;owned\x07red", "b\x9b31m"]
        ),
    )
    for more in ((), ("--json",)):
        said = run("topics", model_path, *more).output
        assert "red" in said
        assert not set(said) & {"\x1b", "\x07", "\x9b"}
    assert json.loads(said)[0]["label"] in ("\x1b]0;owned\x07red", "b\x9b31m")


# --- Tracebacks, signals and forks ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["fit", "."], "."),
        (["fit", ""], "."),
        (["fit", "x.npy", "--labels", "y.txt", "--cost", "1e308"], "--cost has a value"),
        (["fit", "x.npy", "--labels", "y.txt", "--components", "9" * 20], "--components has a"),
        (["fit", "x" * 300], "cannot be"),
        (["fit", "x.npy", "--embeddings", "x" * 300], "cannot be"),
        (["predict", "x" * 300, "x.npy"], "cannot be"),
        (["predict", "pipe", "x.npy"], "pipe is no file, but a device or a pipe; give a file."),
        (["fit", "x.npy", "--labels", "pipe"], "pipe is no file"),
        (["fit", "b\udcff.csv"], "There is no file b\\udcff.csv."),
        (["fit", "huge.npy", "--labels", "y.txt"], "entries must be 0 or larger, and below"),
    ],
)
def test_what_makes_no_sense_is_a_sentence(arguments, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", X)
    os.mkfifo("pipe")
    np.save("huge.npy", (X * 1e38).astype(np.float32))
    (tmp_path / "y.txt").write_text("a\nb\n" * 30)
    refused(run(*arguments), says)


NO_NUMBERS = [
    (lambda: Landmarks(n_landmarks=3).fit(1e299 * X), "too large to be squared"),
    (lambda: Landmarks(n_landmarks=3).fit((1e25 * X).astype("f")), "too large to be squared"),
    (lambda: Landmarks("hellinger", n_landmarks=3).fit(1e308 * X), "too large to be summed"),
    (lambda: NMFAlpha(2, random_state=[]).fit(X), "random_state=[] must be an int"),
    (lambda: NMFAlpha(2, verbose="auto").fit(X), "verbose='auto' must be 0, 1 or 2"),
    (lambda: NMFAlpha(2, feature_weight="").fit(X), "feature_weight must be numbers"),
    (lambda: NMFAlpha(2, feature_weight={}).fit(X), "feature_weight must be numbers"),
    (lambda: NMFAlpha(2, fixed={}).fit(X), "fixed must be an array of parts with 9 columns"),
    (lambda: NMFAlpha(2, fixed=[["", "a"]]).fit(X), "fixed must be an array of parts with 9 col"),
    (lambda: SemiSupervisedNMF(2, backend=3.5).fit(X, Y), "backend=3.5 is unknown"),
    (lambda: SemiSupervisedNMF(2, lam=1e308, max_iter=3).fit(1e9 * X, Y), "The loss leaves"),
    (lambda: TransductiveSVM(C=1e-320).fit(X, Y), "C=1e-320 must be at least 1e-100"),
    (lambda: NMFAlpha(2, alpha_W=1e6, random_state=0).fit(1e200 * X, Y), "The loss leaves"),
    (
        lambda: NMFAlpha(2, lam=10, random_state=0).fit(np.diag([5e307] * 3), HALF),
        "The loss leaves",
    ),
    (lambda: margin_directions(SPREAD, [0, 0, 1, 1]), "differ too much in size"),
    (lambda: nmf_alpha(X, 2, S=SIGNS, lam=1e308, max_iter=3), "The loss leaves the range"),
]

SPREAD = np.array([[1e300, 1e-300], [1e-300, 0], [0, 1e-300], [1e-300, 1e-300]])
SIGNS, HALF = np.eye(60, 2), [0, 1, -1]


@pytest.mark.parametrize(("work", "says"), NO_NUMBERS, ids=[says for _, says in NO_NUMBERS])
@pytest.mark.filterwarnings("ignore")
def test_numbers_at_the_edge_of_the_range_are_a_sentence(work, says):
    with pytest.raises(ValueError, match=re.escape(says)) as caught, np.errstate(all="ignore"):
        work()
    is_a_sentence(caught.value)


@pytest.mark.filterwarnings("ignore")
def test_one_entry_near_the_end_of_the_range_can_be_fitted():
    model = NMFAlpha(2, lam=10, random_state=0, max_iter=3).fit(1.7e308 * np.eye(1, 5), [0])
    assert np.isfinite(model.components_).all()
    assert np.isfinite(model.loss_curve_).all()


class OutOfMemoryError(RuntimeError):
    """What torch raises when a GPU is full, by its name."""


def test_a_full_gpu_is_a_sentence():
    class Full(ReferenceBackend):
        def ratio_matmul(self, *given):
            raise OutOfMemoryError("CUDA out of memory.")

    with pytest.raises(MemoryError, match="The memory of backend='reference' is full; ") as caught:
        nmf_alpha(X, 2, backend=Full(), random_state=0)
    is_a_sentence(caught.value)


@pytest.mark.parametrize("status", ["connecting", "closed"])
def test_whatever_a_dead_scheduler_makes_of_a_call_is_a_sentence(status):
    for error in (OSError(), RuntimeError("1 Future cancelled")):
        with pytest.raises(ClusterError, match="The Dask scheduler is gone") as caught:
            check_scheduler(SimpleNamespace(status=status), error)
        is_a_sentence(caught.value)


def test_an_error_on_a_cluster_that_is_there_stays_what_it_is():
    check_scheduler(SimpleNamespace(status="running"), ValueError("mine"))


def test_a_batch_out_of_all_proportion_is_refused_and_leaves_the_stream():
    stream = OnlineNMFAlphaClassifier(2, batch_size=20, random_state=0).partial_fit(1e-200 * X, Y)
    before = stream.stream_
    with pytest.raises(ValueError, match="too large to be squared"):
        stream.partial_fit(X, Y)
    assert stream.stream_ is before


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_full_disk_behind_the_screen_is_a_sentence(model_path):
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "marginparts.cli", "topics", str(model_path)]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "The output cannot be written: No space left on device.\n"


def test_a_signal_leaves_nothing_half_written(tmp_path):
    def write():
        with written_beside(tmp_path / "out") as file:
            file.write(b"half")
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(1)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        with pytest.raises(SystemExit) as caught:
            write()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert caught.value.code == 128 + signal.SIGTERM
    assert not list(tmp_path.iterdir())


def _fit_in_a_child(queue):
    try:
        NMFAlpha(2, max_iter=2).fit(X, Y)
        queue.put("fitted")
    except RuntimeError as error:
        queue.put(str(error))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fit_after_a_fork_works_or_is_a_sentence():
    NMFAlpha(2, max_iter=2).fit(X, Y)
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=_fit_in_a_child, args=(queue,))
    child.start()
    child.join(60)
    assert child.exitcode == 0
    said = queue.get()
    assert said == "fitted" or "forked from one that had already fitted" in said


def test_records_that_are_none_are_passed_over(tmp_path):
    store = Store(tmp_path / "records.jsonl")
    store.append("a", [{"score": 1.0}])
    strange = [
        "[" * 10**5,
        '{"unit": [], "part": 0, "of": 1}',
        '{"unit": "b", "part": "0", "of": 1}',
    ]
    with store.path.open("a") as file:
        file.write("\n".join(strange) + "\n")
    assert store.units() == {"a"}


def _hdf5(path, **datasets):
    """Write an HDF5 file with datasets made by functions of the file."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        for name, make in datasets.items():
            make(file, name)
    return path


def _whole(file, name):
    file.create_dataset(name, data=np.eye(3))


def _never_written(file, name):
    file.create_dataset(name, shape=(10**10,), dtype="f8", chunks=(10**6,))


def test_hdf5_that_declares_what_nobody_wrote_is_refused(tmp_path):
    path = _hdf5(tmp_path / "x.h5", X=_never_written)
    with pytest.raises(FileProblemError, match="declares more data than it can have"):
        open_rows(path)


def test_hdf5_with_data_of_other_files_is_refused(tmp_path):
    secret = tmp_path / "secret"
    secret.write_bytes(bytes(72))

    def elsewhere(file, name):
        file.create_dataset(name, shape=(3, 3), dtype="f8", external=[(str(secret), 0, 72)])

    path = _hdf5(tmp_path / "x.h5", X=elsewhere)
    with pytest.raises(FileProblemError, match="in another file"):
        open_rows(path)


def test_hdf5_that_hangs_the_library_is_refused_and_others_are_read(tmp_path, monkeypatch):
    from marginparts.files import hdf5

    good, bad = (_hdf5(tmp_path / f"{name}.h5", X=_whole) for name in ("good", "bad"))
    assert open_rows(good).shape == (3, 3)
    os.kill(hdf5._reader.child.pid, signal.SIGSTOP)  # which looks like a library that hangs
    with monkeypatch.context() as patch:
        patch.setattr(hdf5, "_SECONDS", 0.3)
        with pytest.raises(FileProblemError, match=r"bad\.h5 is damaged"):
            open_rows(bad)
    assert open_rows(bad).shape == (3, 3)
