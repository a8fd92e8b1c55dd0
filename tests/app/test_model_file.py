"""A model that was saved is the same when it is loaded; a file that is not one is one sentence."""

import errno
import hashlib
import io
import json
import math
import os
import subprocess
import sys
import zipfile
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, clone

from marginparts import estimators
from marginparts._types import Check, Stop
from marginparts.app.evaluation import Rated
from marginparts.app.model import Card, Model, PathStep
from marginparts.app.model_file import _KEPT, load, save
from marginparts.app.model_file import _registry as registry
from marginparts.app.model_file._decode import decode
from marginparts.app.model_file._encode import CannotKeepError, encode
from marginparts.app.model_file._registry import register
from marginparts.app.model_file._tables import TABLES
from marginparts.app.preparation import prepare_texts
from marginparts.app.readers import Layout
from marginparts.backends import get_backend
from marginparts.datasets import load_digits_49
from marginparts.estimators import NMFAlpha, NMFAlphaClassifier, TransductiveSVM
from marginparts.files import archive as _archive
from marginparts.files.atomic import FileProblemError
from marginparts.selection import Choice, Setting


class Span(NamedTuple):
    low: float
    high: Any = None


class Shade(Enum):
    DARK = "black"
    LIGHT = "white"


@dataclass(frozen=True, eq=False)
class Bundle:
    model: Any
    words: list[str] = field(default_factory=list)


class Wrapper(BaseEstimator):
    def __init__(self, inner: Any = None, dtype: Any = np.float64) -> None:
        self.inner = inner
        self.dtype = dtype

    def fit(self, X, y=None):
        self.n_features_in_ = 3
        return self


@pytest.fixture(autouse=True)
def known(monkeypatch):
    """Classes that a further module would register."""
    monkeypatch.setattr(registry, "CLASSES", dict(registry.CLASSES))
    for cls in (Span, Shade, Bundle, Wrapper):
        register(cls)


def same(a, b):
    """Whether two values are equal in type, order and every bit."""
    if type(a) is not type(b):
        return False
    if isinstance(a, BaseEstimator):
        return same(a.get_params(deep=False), b.get_params(deep=False)) and same(
            dict(sorted(vars(a).items())), dict(sorted(vars(b).items()))
        )
    if isinstance(a, Choice):  # its folds are of use beside the data of the fit only
        a, b = (tuple(each._replace(folds=[])) for each in (a, b))
    if isinstance(a, dict):
        return same(list(a.items()), list(b.items()))
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, np.ndarray):
        alike = a.dtype == b.dtype and a.shape == b.shape
        if a.dtype == object:
            return alike and same(a.ravel().tolist(), b.ravel().tolist())
        return alike and a.tobytes() == b.tobytes()
    if sp.issparse(a):
        return a.shape == b.shape and all(
            same(getattr(a, k), getattr(b, k)) for k in ("data", "indices", "indptr")
        )
    if is_dataclass(a):
        return all(same(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
    if isinstance(a, float):
        return repr(a) == repr(b)
    return a == b


def round_trip(value):
    encoded = encode(value)
    text = json.dumps(encoded.tree, sort_keys=True, allow_nan=False)
    return decode(json.loads(text), encoded.arrays)


# ---- values

plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
scalars = st.sampled_from(
    [np.float32(0.1), np.float64(-0.0), np.float64("nan"), np.int64(-(2**63)), np.uint64(2**64 - 1),
     np.bool_(True), np.str_("née"), np.float16(0.1), np.int8(-3)]
)  # fmt: skip
arrays = st.sampled_from(
    [np.arange(6.0).reshape(2, 3), np.asfortranarray(np.arange(6, dtype="f4").reshape(2, 3)),
     np.array(1.5), np.empty((0, 3)), np.array(["a", "née"]), np.array([True, False]),
     np.array([1, 2], dtype=">i4"), np.array([np.nan, -0.0, np.inf]), np.arange(8)[::-2],
     np.array(["a", None, 1, 2.5, True, np.float32(1)], dtype=object),
     np.array([["a"], ["b"]], dtype=object), np.empty(0, dtype=str)]
)  # fmt: skip
keys = plain | st.tuples(plain, plain) | st.builds(Span, plain, plain) | st.sampled_from(Shade)
values = st.recursive(
    plain | scalars | arrays | st.sampled_from([Shade.DARK, Stop.EXACT, np.float32, np.str_]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(keys, inner, max_size=3)
        | st.builds(Span, inner, inner)
        | st.builds(Bundle, inner)
    ),
    max_leaves=8,
)


@given(values)
def test_values_come_back_exactly(value):
    assert same(round_trip(value), value)


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_sparse_arrays_keep_their_class_and_types(kind, index):
    S = kind(np.array([[0, 1, 0], [2, 0, 3]], dtype=np.float32))
    S.indices, S.indptr = S.indices.astype(index), S.indptr.astype(index)
    back = round_trip(S)
    assert same(back, S)
    assert back.indices.dtype == index
    assert_array_equal((back @ np.ones(3)), [1, 5])


@pytest.mark.parametrize(
    "array",
    [np.arange(12.0).reshape(3, 4), np.arange(12.0).reshape(3, 4).T,
     np.arange(12.0).reshape(3, 4)[:, :3], np.arange(12.0).reshape(3, 4).T[:3]],
)  # fmt: skip
def test_the_order_of_the_axes_is_kept(array, tmp_path):
    back = through_a_file(Bundle(array), tmp_path).model
    assert same(back, array)
    assert np.argsort(back.strides).tolist() == np.argsort(array.strides).tolist()


def through_a_file(model, folder):
    save(model, folder / "model")
    return load(folder / "model")


def test_an_array_that_occurs_twice_is_kept_once():
    shared = np.arange(3.0)
    encoded = encode({"a": shared, "b": [shared, shared.copy()]})
    assert list(encoded.arrays) == ["a", "b.1"]
    back = decode(*encoded)
    assert back["a"] is back["b"][0]
    assert back["a"] is not back["b"][1]


def test_names_of_arrays_are_names_of_files():
    one, two, three = (np.arange(n) for n in (1, 2, 3))
    names = list(encode({"../a b": one, "..|a|b": two, "C": three, "c": three.copy()}).arrays)
    assert names == [".._a_b", ".._a_b-2", "C", "c-2"]
    (name,) = encode({"x" * 500: one}).arrays
    assert len(name) < 100


@pytest.mark.parametrize(
    "value",
    [object(), lambda: 0, {1, 2}, b"x", 1j, np.complex128(1), np.array([1j]), np.longdouble(1),
     np.array(["2020-01-01"], dtype="M8[D]"), np.array([[1], "a"], dtype=object),
     np.zeros(2, dtype=[("a", "f8")]), np.ma.array([1.0]), sp.csc_array(np.eye(2)), int, np,
     type("Span", (Span,), {})(1, 2), TransductiveSVM()],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_what_cannot_be_kept_is_named(value):
    with pytest.raises(CannotKeepError, match=r"^model\.x\.1 cannot be saved: it is .*\.$"):
        encode({"x": [0, value]})


def test_a_value_that_holds_itself_is_refused():
    value: list[Any] = []
    value.append(value)
    with pytest.raises(CannotKeepError, match="holds itself"):
        encode(value)


def test_only_classes_with_known_parts_can_be_registered():
    @dataclass
    class Hidden:
        a: int = field(init=False, default=1)

    for wrong in (int, Hidden):
        with pytest.raises(TypeError, match=wrong.__name__):
            register(wrong)
    with pytest.raises(ValueError, match="Another class named Check"):
        register(type("Check", (NamedTuple("Check", [("a", int)]),), {"__module__": "elsewhere"}))
    assert registry.CLASSES["Check"] is Check


@pytest.mark.parametrize(
    "cls", [cls for cls in _KEPT if is_dataclass(cls) or hasattr(cls, "_fields")]
)
def test_every_field_of_what_is_kept_is_checked(cls):
    names = [each.name for each in fields(cls)] if is_dataclass(cls) else cls._fields
    assert set(names) <= {line.name for line in TABLES[cls.__name__]}


# ---- models


def text_labels(target):
    return np.where(target == 0, "four", "nine")


def partly(y, unknown, n):
    y = y.copy()
    y[n:] = unknown
    return y


@pytest.fixture(scope="module")
def digits():
    data = load_digits_49()
    return data.data[:120].astype(np.float64), data.target[:120]


def fitted(name, kind, digits):
    X, target = digits
    if kind == "sparse, text":
        X, y = sp.csr_array(X), partly(text_labels(target).astype(object), None, 40)
    elif kind == "float32, three classes":
        y = partly(target + (np.arange(len(target)) % 3 == 0), -1, 60)
        X = X.astype(np.float32)
    else:
        y = np.stack([target, X[:, 20] > np.median(X[:, 20])], axis=1).astype(int)
        y = partly(y, -1, 40)
    options = {"random_state": 0}
    if name == "OnlineNMFAlphaClassifier":
        options |= {"n_components": 5, "batch_size": 50, "memory": 60, "half_life": 100.0}
    elif name == "NMFAlphaConsensus":
        options |= {"estimator": estimators.NMFAlpha(5, max_iter=15), "n_runs": 2}
    elif name != "TransductiveSVM":
        options |= {"n_components": 5, "max_iter": 15}
    if name in ("NMFAlphaClassifier", "NMFAlphaCV"):
        options |= {"C": 1.0, "map_iter": 5}  # lam and the scale are choice enough
    return getattr(estimators, name)(**options).fit(X, y), X


@pytest.fixture(
    scope="module",
    params=[
        (name, kind)
        for name in estimators.__all__
        for kind in ("sparse, text", "float32, three classes", "multilabel")
    ],
    ids=" ".join,
)
def case(request, digits):
    return fitted(*request.param, digits)


@pytest.fixture(scope="module")
def classifier(digits):
    X, target = digits
    return NMFAlphaClassifier(4, max_iter=10, random_state=0).fit(X, partly(target, -1, 40))


@pytest.fixture
def path(classifier, tmp_path):
    save(classifier, tmp_path / "model")
    return tmp_path / "model"


METHODS = ("predict", "decision_function", "transform", "predict_proba")


def test_a_loaded_model_is_the_saved_one(case, tmp_path):
    model, X = case
    back = through_a_file(model, tmp_path)
    assert same(back, model)
    for method in METHODS:
        if hasattr(model, method):
            expected = outcome(model, method, X)
            assert same(outcome(back, method, X), expected), method
    assert same(clone(back).get_params(), clone(model).get_params())
    save(back, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()


def outcome(model, method, X):
    try:
        return getattr(model, method)(X)
    except ValueError as error:  # probabilities need more labels than some cases have
        return str(error)


def test_it_predicts_the_same_in_another_process(classifier, digits, path):
    code = (
        "import sys, numpy as np\n"
        "from marginparts.app.model_file import load, save\n"
        "values = load(sys.argv[1]).decision_function(np.load(sys.argv[2]))\n"
        "np.save(sys.argv[3], values)\n"
        "save(load(sys.argv[1]), sys.argv[4])\n"
    )
    X, _ = digits
    np.save(path.with_name("X.npy"), X)
    files = [path, *(path.with_name(name) for name in ("X.npy", "values.npy", "again"))]
    subprocess.run([sys.executable, "-c", code, *map(str, files)], check=True)
    assert same(np.load(files[2]), classifier.decision_function(X))
    assert files[3].read_bytes() == path.read_bytes()


def test_the_file_is_named_as_asked_and_usable(path):
    assert sorted(os.listdir(path.parent)) == ["model"]
    assert same(load(str(path)), load(path))
    back = load(path)
    back.parts_.components_[0] = 0  # not read-only
    assert back.coef_ is back.head_.coef


def test_feature_names_and_output_settings_are_kept(digits, tmp_path):
    pd = pytest.importorskip("pandas")
    X, _ = digits
    table = pd.DataFrame(X, columns=[f"pixel {k}" for k in range(X.shape[1])])
    model = NMFAlpha(3, max_iter=5, random_state=0).set_output(transform="pandas").fit(table)
    back = through_a_file(model, tmp_path)
    pd.testing.assert_frame_equal(back.transform(table), model.transform(table))
    assert same(back.feature_names_in_, model.feature_names_in_)


def test_own_starts_are_kept(digits, tmp_path):
    X, _ = digits
    start = (np.ones((len(X), 2)), np.ones((X.shape[1], 2)))
    start[1][:3, 0] = 2
    model = NMFAlpha(2, init=start, max_iter=3).fit(X)
    assert same(through_a_file(model, tmp_path).init, start)


@pytest.mark.parametrize("random_state", [np.random.RandomState(0), np.random.default_rng(0)])
def test_what_only_a_fit_uses_is_left_out(random_state, digits, tmp_path):
    X, target = digits
    model = NMFAlphaClassifier(
        3, lam=1.0, C=1.0, map_iter=5, normalize=True, max_iter=5,
        random_state=random_state, callback=lambda progress: None,
    ).fit(X, partly(target, -1, 40))  # fmt: skip
    back = through_a_file(model, tmp_path)
    assert back.random_state is None
    assert back.callback is None
    assert back.parts_.callback is None
    assert same(back.predict(X), model.predict(X))


@pytest.mark.parametrize("seed", [None, 3, np.int64(3)])
def test_seeds_are_kept(seed, digits, tmp_path):
    model = NMFAlpha(2, max_iter=2, random_state=seed).fit(digits[0])
    assert same(through_a_file(model, tmp_path).random_state, seed)


def test_another_module_can_add_its_own_model(classifier, tmp_path):
    back = through_a_file(Bundle(classifier, ["a", "b"]), tmp_path)
    assert same(back, Bundle(classifier, ["a", "b"]))


def test_a_model_of_texts_is_the_same_again(tmp_path):
    texts = [f"{animal} number {k} says {noise}" for k in range(20)
             for animal, noise in (("dog", "woof"), ("cat", "miau"))]  # fmt: skip
    preparation, X = prepare_texts(texts, weighting="tf-idf", max_df=0.9)
    classifier = NMFAlphaClassifier(2, max_iter=5, random_state=0)
    classifier.fit(X, np.array(["dog", "cat", None, None] * 10, dtype=object))
    card = Card("a.csv", 40, 20, [10, 10], rated=[Rated("parts", 0.5, math.nan)])
    path = [PathStep(1.0, sp.csr_array(classifier.parts_.components_))]
    model = Model(classifier, preparation, Layout("text", text="t"), ["cat", "dog"], card, path)
    back = through_a_file(model, tmp_path)
    assert type(back) is Model
    assert same(back.decision_function(texts), model.decision_function(texts))
    assert back.preparation.words == preparation.words
    assert (back.layout, repr(back.card)) == (model.layout, repr(model.card))
    assert same(back.path, model.path)
    save(back, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()


def test_an_estimator_as_a_parameter_need_not_be_fitted(tmp_path):
    model = Wrapper(TransductiveSVM(C=2.0), dtype=np.float32).fit(None)
    assert same(through_a_file(model, tmp_path), model)


# ---- what is not saved


def own_directions(features, signs):
    return np.ones(len(signs))


@pytest.mark.parametrize("model", [c() for c in map(estimators.__dict__.get, estimators.__all__)])
def test_a_model_that_is_not_fitted_is_refused(model, tmp_path):
    says = rf"model cannot be saved: it is a {type(model).__name__} that is not fitted; call fit"
    with pytest.raises(ValueError, match=says):
        save(model, tmp_path / "model")
    with pytest.raises(ValueError, match=r"model\.model cannot be saved"):
        save(Bundle(model), tmp_path / "model")
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize(
    ("name", "value", "instead"),
    [("directions", own_directions, "svm"), ("backend", get_backend("reference"), "auto")],
)
def test_a_parameter_that_is_code_is_refused_with_the_way_out(
    name, value, instead, digits, tmp_path
):
    X, target = digits
    model = NMFAlphaClassifier(
        3, lam=1.0, C=1.0, map_iter=5, normalize=True, max_iter=5, random_state=0,
        **{name: value},
    ).fit(X, partly(target, -1, 40))  # fmt: skip
    expected = model.predict(X)
    for owner, where in ((model, "model"), (model.parts_, "model.parts_")):
        way_out = f"{where}.set_params({name}='{instead}')"
        with pytest.raises(ValueError, match="no code is kept") as caught:
            save(model, tmp_path / "model")
        assert str(caught.value).startswith(f"{where}.{name} cannot be saved")
        assert str(caught.value).endswith(f"first call {way_out}.")
        owner.set_params(**{name: instead})
    assert_array_equal(through_a_file(model, tmp_path).predict(X), expected)


def test_other_things_are_refused(tmp_path):
    from sklearn.svm import LinearSVC

    for other in (LinearSVC(), {"a": 1}, type("NMFAlpha", (NMFAlpha,), {})()):
        with pytest.raises(ValueError, match=f"A {type(other).__name__} cannot be saved; give"):
            save(other, tmp_path / "model")


@pytest.mark.parametrize(
    ("number", "says"), [(errno.ENOSPC, "the disk is full"), (errno.EIO, "error")]
)
@pytest.mark.parametrize("writes", [0, 3, 12])
def test_a_write_that_fails_leaves_the_old_file(
    number, says, writes, classifier, path, monkeypatch
):
    before = path.read_bytes()
    left = [writes]
    write = _archive._Summed.write

    def fails(self, data):
        if not left[0]:
            raise OSError(number, os.strerror(number))
        left[0] -= 1
        return write(self, data)

    monkeypatch.setattr(_archive._Summed, "write", fails)
    with pytest.raises(FileProblemError, match=f"model cannot be written: .*{says}"):
        save(classifier, path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == ["model"]


# ---- the file


def members(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write_members(path, contents, *, sums=True, how=zipfile.ZIP_DEFLATED):
    """Write an archive as a stranger might, with checksums that agree."""
    if sums:
        contents = dict(contents)
        lines = [
            f"{hashlib.sha256(data).hexdigest()}  {name}\n"
            for name, data in contents.items()
            if name != "SHA256SUMS"
        ]
        contents["SHA256SUMS"] = "".join(lines).encode()
    with zipfile.ZipFile(path, "w", how) as archive:
        for name, data in contents.items():
            archive.writestr(name, data)


def edit_json(path, edit):
    contents = members(path)
    tree = json.loads(contents["model.json"])
    edit(tree)
    contents["model.json"] = json.dumps(tree).encode()
    write_members(path, contents)


def refused(path, says):
    with pytest.raises(FileProblemError) as caught:
        load(path)
    message = str(caught.value)
    assert says in message
    assert str(path) in message
    assert message.endswith(".")
    assert "\n" not in message


def test_what_is_inside(classifier, path):
    contents = members(path)
    assert {"model.json", "SHA256SUMS", "arrays/parts_.components_.npy"} < set(contents)
    head = json.loads(contents["model.json"])
    assert (head["format"], head["version"]) == ("marginparts-model", 1)
    array = np.load(io.BytesIO(contents["arrays/parts_.components_.npy"]), allow_pickle=False)
    assert same(array, classifier.parts_.components_)
    for info in zipfile.ZipFile(path).infolist():
        assert info.date_time == (1980, 1, 1, 0, 0, 0)
        assert (info.create_system, info.external_attr) == (3, 0o644 << 16)


def test_the_checksums_are_those_of_sha256sum(path):
    contents = members(path)
    lines = contents.pop("SHA256SUMS").decode().splitlines()
    assert lines == [
        f"{hashlib.sha256(data).hexdigest()}  {name}" for name, data in sorted(contents.items())
    ]


def test_a_stored_archive_is_read_too(classifier, path):
    write_members(path, members(path), how=zipfile.ZIP_STORED)
    assert same(load(path), classifier)


def test_other_versions_of_the_array_format_are_refused(path):
    contents = members(path)
    out = io.BytesIO()
    np.lib.format.write_array(out, np.ones(3), version=(2, 0))
    contents["arrays/coef_.npy"] = out.getvalue()
    write_members(path, contents)
    refused(path, "arrays/coef_.npy is no array of numbers or text")


def test_missing_and_folder(tmp_path):
    refused(tmp_path / "none", "There is no file")
    refused(tmp_path, "is a folder")


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04" + b"x" * 50, b"\x80\x04N."])
def test_other_files(content, tmp_path):
    (tmp_path / "model").write_bytes(content)
    refused(tmp_path / "model", "is damaged or not a model: it is not a whole zip archive")


def test_another_zip(tmp_path):
    write_members(tmp_path / "model", {"a.txt": b"hello"})
    refused(tmp_path / "model", "is damaged or not a model: it has no model.json")


def test_altered_members(path):
    contents = members(path)
    contents["model.json"] += b" "
    write_members(path, contents, sums=False)
    refused(path, "was altered or damaged: the checksum of model.json does not agree")
    contents["model.json"] = contents["model.json"][:-1]
    contents["arrays/coef_.npy"] = contents["arrays/coef_.npy"][:-1] + b"\x01"
    write_members(path, contents, sums=False)
    refused(path, "was altered or damaged: the checksum of arrays/coef_.npy does not agree")


def test_missing_and_extra_members(path):
    contents = members(path)
    for name in ("model.json", "SHA256SUMS"):
        write_members(path, {k: v for k, v in contents.items() if k != name}, sums=False)
        refused(path, f"it has no {name}")
    short = {k: v for k, v in contents.items() if k != "arrays/coef_.npy"}
    write_members(path, short, sums=False)
    refused(path, "arrays/coef_.npy is missing")
    write_members(path, short)
    refused(path, "does not fit together")
    write_members(path, {**contents, "a.py": b""}, sums=False)
    refused(path, "a.py is too much")
    write_members(path, {**contents, "a.py": b""})
    refused(path, "a.py is too much")


def test_swapped_members(path):
    contents = members(path)
    one, two = "arrays/coef_.npy", "arrays/parts_.components_.npy"
    contents[one], contents[two] = contents[two], contents[one]
    write_members(path, contents, sums=False)
    refused(path, "was altered or damaged")


def test_a_newer_format_says_to_upgrade(path):
    edit_json(path, lambda tree: tree.update(version=7, marginparts="9.1.0"))
    refused(path, "was written by marginparts 9.1.0 in format 7; this version reads up to 1: upg")
    # a newer format may have other members, and its author may be anyone
    contents = {**members(path), "more/things.bin": b"?"}
    contents["model.json"] = contents["model.json"].replace(b"9.1.0", b"\\u001b[31m")
    write_members(path, contents)
    refused(path, "was written by marginparts ? in format 7")


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        ({"format": "other"}, "is not a model of marginparts"),
        ({"version": "1"}, "model.json cannot be understood"),
        ({"version": True}, "model.json cannot be understood"),
        ({"version": 0}, "model.json cannot be understood"),
        ({"model": 3}, "does not fit together"),
        ({"model": {"estimator": {}}}, "does not fit together"),
        ({"model": {"dict": []}}, "does not fit together"),
        ({"model": {"exec": "1"}}, "does not fit together"),
        ({"model": {"object": {"class": "NMFAlpha", "fields": {}}}}, "does not fit together"),
        ({"model": {"object": {"class": "Popen", "fields": {}}}}, "holds a Popen, which this"),
        ({"model": {"object": {"class": "os\nrm", "fields": {}}}}, "holds a ?, which this"),
        ({"model": {"object": {"class": [], "fields": {}}}}, "does not fit together"),
        ({"model": {"member": {"class": "Stop", "name": "mro"}}}, "does not fit together"),
        ({"model": {"scalar": ["float32", [1, 2]]}}, "does not fit together"),
        ({"model": {"dict": [[[1], 2]]}}, "does not fit together"),
    ],
)
def test_json_that_says_something_else(edit, says, path):
    edit_json(path, lambda tree: tree.update(edit))
    refused(path, says)


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"[]", b"\xff", b'{"format": NaN}', b"[" * 100_000, b"9" * 5000],
    ids=lambda text: repr(text[:20]),
)
def test_json_that_is_none(text, path):
    write_members(path, {**members(path), "model.json": text})
    refused(path, "model")


def test_deep_trees_are_refused(path):
    deep = "[" * 5000 + "]" * 5000
    text = f'{{"format": "marginparts-model", "version": 1, "model": {deep}}}'
    write_members(path, {**members(path), "model.json": text.encode()})
    refused(path, "is damaged or not a model")


@pytest.mark.parametrize("name", ["predict", "__class__", "_n_features_out", "set_params"])
def test_methods_cannot_be_replaced(name, path):
    edit_json(path, lambda tree: tree["model"]["estimator"]["attributes"].update({name: 3}))
    refused(path, "does not fit together")


@pytest.mark.parametrize("n", [-1, 4, "1"])
def test_a_number_of_fixed_parts_that_there_cannot_be_is_refused(n, path):
    def edit(tree):
        tree["model"]["estimator"]["attributes"]["parts_"]["estimator"]["attributes"].update(
            n_fixed_=n
        )

    edit_json(path, edit)
    refused(path, "parts_.n_fixed_")


def test_parameters_that_are_not_known_are_refused_and_missing_ones_are_defaults(path):
    edit_json(path, lambda tree: tree["model"]["estimator"]["parameters"].pop("tol"))
    assert load(path).tol == NMFAlphaClassifier().tol
    edit_json(path, lambda tree: tree["model"]["estimator"]["parameters"].update(later=3))
    refused(path, "does not fit together")


@pytest.mark.parametrize(
    ("indices", "indptr", "shape"),
    [([0, 9], [0, 1, 2], [2, 3]), ([0, -1], [0, 1, 2], [2, 3]), ([0, 1], [0, 2, 1], [2, 3]),
     ([0, 1], [0, 1, 9], [2, 3]), ([0, 1], [0, 1, 2], [5, 3]), ([0, 1], [0, 1, 2], [2, "3"]),
     ([0.0, 1.0], [0, 1, 2], [2, 3])],
)  # fmt: skip
def test_sparse_arrays_that_point_outside_are_refused(indices, indptr, shape, tmp_path):
    S = sp.csr_array(np.array([[1.0, 0, 0], [0, 2, 0]]))
    save(Bundle(S), tmp_path / "model")
    edit_json(tmp_path / "model", lambda tree: tree["model"]["object"]["fields"]["model"]["csr"]
              .update(shape=shape))  # fmt: skip
    contents = members(tmp_path / "model")
    for name, values in (("indices", indices), ("indptr", indptr)):
        out = io.BytesIO()
        np.lib.format.write_array(out, np.array(values), version=(1, 0))
        contents[f"arrays/model.{name}.npy"] = out.getvalue()
    write_members(tmp_path / "model", contents)
    refused(tmp_path / "model", "does not fit together")


def npy(descr="'<f8'", order="False", shape="(3,)", data=b"\0" * 24):
    head = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + data


@pytest.mark.parametrize(
    ("array", "says"),
    [
        (npy("'|O'"), "is no array of numbers or text"),
        (npy("'|O8'"), "is no array of numbers or text"),
        (npy("[('a', '<f8')]"), "is no array of numbers or text"),
        (npy("'<M8'"), "is no array of numbers or text"),
        (npy("'<c16'"), "is no array of numbers or text"),
        (npy("'<f16'"), "is no array of numbers or text"),
        (npy("'<U0'", shape="(9999,)", data=b""), "is no array of numbers or text"),
        (npy(shape="(__import__('os').abort(),)"), "is no array of numbers or text"),
        (npy(shape="(-3,)"), "is no array of numbers or text"),
        (npy(shape="(" + "1" * 60_000 + ",)"), "is no array of numbers or text"),
        (npy(shape="(4,)"), "does not have the size that it says"),
        (npy(shape="(2,)"), "does not have the size that it says"),
        (npy(shape="(1099511627776, 1099511627776)"), "does not have the size that it says"),
        (npy("'<U99999999'"), "does not have the size that it says"),
        (npy("'<U999999999'"), "is no array of numbers or text"),
        (npy(shape="(" + "1, " * 99 + "3)"), "cannot be unpacked"),
        (npy("'<i9'"), "is no array of numbers or text"),
        (npy(shape="(0, 9999999999999999999)", data=b""), "cannot be unpacked"),
        (b"", "is no array"),
        (b"\x80\x04N.", "is no array"),
    ],
    ids=lambda value: "" if isinstance(value, bytes) else value,
)
def test_arrays_that_ask_for_too_much_are_refused(array, says, path):
    write_members(path, {**members(path), "arrays/coef_.npy": array})
    refused(path, says)


def test_a_hand_made_array_is_read(path):
    contents = members(path)
    contents["arrays/coef_.npy"] = npy(order="True", shape="(1, 8)", data=np.arange(8.0).tobytes())
    write_members(path, contents)
    assert_array_equal(load(path).coef_, [np.arange(8)])


def test_bombs_are_refused(path):
    write_members(path, {**members(path), "arrays/coef_.npy": npy(data=bytes(2**25))})
    refused(path, "arrays/coef_.npy would swell to 33,554,")


def test_what_shrinks_too_well_is_stored(tmp_path, monkeypatch):
    zeros = np.zeros(2**20)
    save(Bundle(zeros), tmp_path / "model")
    assert (tmp_path / "model").stat().st_size < zeros.nbytes / 100
    monkeypatch.setattr(_archive, "_LARGE", 2**20)
    monkeypatch.setattr(_archive, "_SWELLING", 100)
    refused(tmp_path / "model", "would swell")
    assert same(through_a_file(Bundle(zeros), tmp_path), Bundle(zeros))
    assert (tmp_path / "model").stat().st_size > zeros.nbytes


def test_large_zeros_can_be_saved(tmp_path):
    zeros = np.zeros(2**22)
    assert zeros.nbytes > _archive._LARGE
    assert same(through_a_file(Bundle(zeros), tmp_path), Bundle(zeros))


def test_members_past_two_gigabytes_get_the_long_form(classifier, path, tmp_path, monkeypatch):
    monkeypatch.setattr(_archive, "_LONG", 10)
    save(classifier, tmp_path / "long")
    assert (tmp_path / "long").stat().st_size > path.stat().st_size
    assert same(load(tmp_path / "long"), classifier)


def test_members_that_occur_twice_or_overlap_are_refused(path):
    contents = members(path)
    write_members(path, contents)
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("model.json", contents["model.json"])
    refused(path, "overlap")


def test_other_ways_of_packing_are_refused(path):
    write_members(path, members(path), how=zipfile.ZIP_LZMA)
    refused(path, "is packed in an unknown way")


def test_a_disk_that_fails_is_not_called_damage(path, monkeypatch):
    def fails(*args, **options):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(zipfile.ZipFile, "open", fails)
    refused(path, "cannot be read: Input/output error")


def test_a_model_too_large_for_the_memory_is_not_called_damage(path, monkeypatch):
    def fails(*args, **options):
        raise MemoryError

    monkeypatch.setattr(_archive.np, "empty", fails)
    refused(path, "does not fit into memory")


def damaged(whole, rng):
    """Damage a file at random: bytes changed, cut, doubled or lost."""
    data = bytearray(whole)
    what = rng.integers(5)
    if what == 0:
        for at in rng.integers(len(data), size=rng.integers(1, 5)):
            data[at] ^= 1 << rng.integers(8)
    elif what == 1:
        del data[rng.integers(len(data)) :]
    elif what == 2:
        start, stop = np.sort(rng.integers(len(data), size=2))
        del data[start:stop]
    elif what == 3:
        start, stop = np.sort(rng.integers(len(data), size=2))
        data[start:stop] = rng.bytes(stop - start)
    else:  # the directory, at the end, is where a byte does most
        for at in rng.integers(len(data) * 4 // 5, len(data), size=2):
            data[at] = rng.integers(256)
    return bytes(data)


def loads_the_same_or_is_refused(path, model):
    back = loaded_or_refused(path)
    assert back is None or same(back, model)
    return back is not None


def loaded_or_refused(path):
    try:
        return load(path)
    except FileProblemError as error:
        if str(path) not in str(error):
            raise
        return None


@pytest.mark.parametrize("shift", range(4))
def test_damage_is_always_found(shift, classifier, path):
    seed = int.from_bytes(os.urandom(4), "little") if shift else 0
    print("seed", seed)
    rng = np.random.default_rng(seed)
    whole = path.read_bytes()
    found = 0
    for _ in range(150):
        path.write_bytes(damaged(whole, rng))
        found += not loads_the_same_or_is_refused(path, classifier)
    assert found > 75


def test_damaged_members_are_always_found(classifier, path):
    """The archive is whole, and its checksums are not made to agree."""
    seed = int.from_bytes(os.urandom(4), "little")
    print("seed", seed)
    rng = np.random.default_rng(seed)
    whole = members(path)
    for _ in range(100):
        contents = dict(whole)
        one, two = rng.choice(list(whole), size=2, replace=False)
        what = rng.integers(3)
        if what == 0:
            del contents[one]
        elif what == 1:
            contents[one], contents[two] = contents[two], contents[one]
        else:
            contents[one] = damaged(contents[one], rng)
        write_members(path, contents, sums=False)
        loads_the_same_or_is_refused(path, classifier)


def test_strange_members_never_raise_anything_else(path):
    """The checksums agree, so that damage goes as deep as it can."""
    seed = int.from_bytes(os.urandom(4), "little")
    print("seed", seed)
    rng = np.random.default_rng(seed)
    whole = members(path)
    for _ in range(150):
        one = str(rng.choice(["model.json", rng.choice(list(whole))]))
        write_members(path, {**whole, one: damaged(whole[one], rng)})
        loaded_or_refused(path)


def test_opening_imports_and_runs_nothing(path):
    code = (
        "import sys, encodings.cp437\n"  # the standard library's, for names in zip archives
        "from marginparts.app.model_file import load\n"
        "seen = []\n"
        "def hook(event, args):\n"
        "    if event in ('exec', 'compile', 'import', 'pickle.find_class', 'subprocess.Popen'):\n"
        "        seen.append((event, args))\n"
        "sys.addaudithook(hook)\n"
        "load(sys.argv[1])\n"
        # NumPy parses the heads of arrays, as literals that are not executed
        "heads = [e for e, a in seen if e == 'compile' and a[0].startswith(b\"{'descr'\")]\n"
        "assert len(heads) == len(seen), seen\n"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], check=True)


def test_infinity_in_a_history_is_json(path):
    text = members(path)["model.json"].decode("ascii")
    assert '{"float":"nan"}' in text  # the residual at the start
    json.loads(text, parse_constant=pytest.fail)
    assert any(math.isnan(check.residual) for check in load(path).parts_.history_)


def test_settings_are_keys_again(classifier, path):
    scores = load(path).selection_
    assert same(scores, classifier.selection_)
    assert all(type(key) is Setting for key in scores)


# ---- the other way


def test_skops_keeps_an_estimator(digits):
    X, target = digits
    assert_skops_keeps(TransductiveSVM(random_state=0).fit(X, partly(target, -1, 40)), X)


def test_skops_keeps_a_classifier(classifier, digits):
    assert_skops_keeps(classifier, digits[0])


def assert_skops_keeps(model, X):
    skops = pytest.importorskip("skops.io", reason="skops is not installed")
    data = skops.dumps(model)
    back = skops.loads(data, trusted=skops.get_untrusted_types(data=data))
    assert same(back.decision_function(X), model.decision_function(X))


@pytest.mark.parametrize("name", ["parts", "classifier", "stream"])
def test_a_file_from_before_its_parameters_were_renamed_still_says_the_same(name):
    """The files were written when `direction_C` was `C` and a stream's `pseudo` a bool."""
    folder = Path(__file__).parent / "old_models"
    with np.load(folder / "said.npz") as said:
        X, expected = said["X"], said[name]
    model = load(folder / f"{name}.model")
    found = model.transform(X) if name == "parts" else model.decision_function(X)
    assert_allclose(found, expected, rtol=1e-6)
    if name == "stream":
        assert model.pseudo == "pa"
    else:
        assert (model if name == "parts" else model.parts_).direction_C == 0.5


OLD = Path(__file__).parent / "old_models"


@pytest.mark.parametrize("name", estimators.__all__)
def test_a_model_of_every_class_that_0_1_0_wrote_still_says_the_same(name):
    """The files are those of `old_models/write.py`; a new class needs one as well."""
    with np.load(OLD / "said-0.1.0.npz") as said:
        X, expected = said["X"], said[name]
    model = load(OLD / f"{name}-0.1.0.model")
    scored = hasattr(model, "decision_function")
    found = model.decision_function(X) if scored else model.transform(X)
    assert_allclose(found, expected, rtol=1e-6, atol=1e-12)
