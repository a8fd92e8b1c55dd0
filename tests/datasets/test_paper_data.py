"""The paper's data sets: formats and downloads on small files, sizes on the real ones."""

import bz2
import contextlib
import errno
import gzip
import hashlib
import io
import os
import sys
import tarfile
import threading
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from marginparts.datasets import (
    PAPER_DATA,
    DamagedDataError,
    DownloadError,
    MissingDataError,
    UnknownDataError,
    _formats,
    data_folder,
    download,
    fetch,
    load_paper_data,
)
from realdata import FOLDER, REAL, real_data

NAMES = ["mnist", "news", "aviation", "aviation-500", "aviation-counts"]
PACK = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress}


# ---- small data sets in the published formats


def idx(array):
    head = b"\0\0\x08" + bytes([array.ndim]) + np.array(array.shape, ">u4").tobytes()
    return head + array.astype(np.uint8).tobytes()


def mnist_files():
    """Five training and three test images of 2 x 2 pixels; a four and a nine are in each."""
    images = np.arange(20).reshape(5, 2, 2) * 10
    parts = {
        "train-images-idx3-ubyte": images,
        "train-labels-idx1-ubyte": np.array([4, 0, 9, 4, 1]),
        "t10k-images-idx3-ubyte": images[:3],
        "t10k-labels-idx1-ubyte": np.array([9, 4, 7]),
    }
    return {f"{name}.gz": gzip.compress(idx(array)) for name, array in parts.items()}


NEWS = {
    "train.data": b"1 1 2\n1 4 1\n2 2 300\n3 1 1\n",
    "train.label": b"1\n2\n1\n",
    "train.map": b"alt.atheism 1\nsci.space 2\n",
    "test.data": b"1 3 1\n1 4 5\n2 5 1\n",  # words 3 and 5 are in no training document
    "test.label": b"2\n1\n",
    "test.map": b"alt.atheism 1\nsci.space 2\n",
}
WORDS = b"archive\nname\natheism\nspace\norbit\n"

AVIATION = {
    "tmc2007_train.svm": b"0,2 1:0.5 3:1\n 3:2\n1 1:1 6:1\n",  # the second has no label
    "tmc2007_test.svm": b"2 1:1 2:9\n0,1 3:4 9:1\n",  # words 2 and 9 are only here
}


def write(folder, files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)


def write_variants(folder):
    """The 500 words and the counts of Aviation, with two words and three."""
    folder.mkdir(parents=True)
    labels = np.array([[1, 0, 1], [0, 0, 0], [0, 1, 0], [1, 1, 0]], np.uint8)
    words = np.array([[1, 0], [0, 0], [1, 1], [0, 1]], np.uint8)
    counts = np.array([[0, 3, 0], [7, 0, 1]], np.uint16)
    for part, size in (("train", 4), ("test", 3)):
        sp.save_npz(folder / f"{part}_labels.npz", sp.csr_matrix(labels[:size]))
        sp.save_npz(folder / f"{part}_binary500.npz", sp.csr_matrix(words[:size]))
        sp.save_npz(folder / f"{part}_subset_counts.npz", sp.csr_matrix(counts))
        np.save(folder / f"{part}_subset_rows.npy", np.array([2, 0]))
    (folder / "features500.txt").write_text("abort\nabove\n")
    (folder / "vocabulary10000.txt.gz").write_bytes(gzip.compress(b"00\n000\n001\n"))


@pytest.fixture
def small(monkeypatch):
    """The catalog with the sizes of the data sets above."""
    sizes = {
        "mnist": {"n_train": 2, "n_validation": 1, "n_test": 2},
        "news": {"n_train": 2, "n_validation": 1, "n_test": 2},
        "aviation": {"n_train": 2, "n_validation": 1, "n_test": 2, "n_classes": 3},
        "aviation-500": {"n_train": 3, "n_validation": 1, "n_test": 3, "n_classes": 3},
        "aviation-counts": {"n_train": 1, "n_validation": 1, "n_test": 2, "n_classes": 3},
    }
    for name, size in sizes.items():
        monkeypatch.setitem(PAPER_DATA, name, replace(PAPER_DATA[name], **size))


@pytest.fixture(autouse=True)
def no_settings(monkeypatch, tmp_path):
    """No data of the user's, unless a test asks for it, and no proxy before a local server."""
    monkeypatch.delenv("MARGINPARTS_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "*")


# ---- where data is looked for


def test_the_folder_is_the_argument_or_the_variable_or_a_cache(monkeypatch, tmp_path):
    cache = tmp_path / "cache" / "marginparts"
    assert data_folder() == cache
    monkeypatch.setenv("MARGINPARTS_DATA", "")
    assert data_folder() == cache
    monkeypatch.setenv("MARGINPARTS_DATA", "~/data")
    assert data_folder() == Path.home() / "data"
    assert data_folder(tmp_path) == data_folder(str(tmp_path)) == tmp_path


def test_the_cache_is_where_the_platform_keeps_it(monkeypatch, tmp_path):
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(sys, "platform", "linux")
    assert data_folder() == Path.home() / ".cache" / "marginparts"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    assert data_folder() == tmp_path / "marginparts"


def test_the_variable_names_the_folder_to_load_from(small, monkeypatch, tmp_path):
    write(tmp_path / "mnist", mnist_files())
    monkeypatch.setenv("MARGINPARTS_DATA", str(tmp_path))
    assert load_paper_data("mnist").X_train.shape == (3, 4)


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_file_is_one_sentence(name, tmp_path):
    with pytest.raises(MissingDataError) as caught:
        load_paper_data(name)
    message = str(caught.value)
    entry = PAPER_DATA[name]
    assert isinstance(caught.value, FileNotFoundError)
    assert entry.files[0] in message
    assert str(tmp_path / "cache" / "marginparts" / entry.folder) in message
    assert (f"'marginparts data fetch {name}'" in message) == entry.downloadable
    assert ("cannot be downloaded" in message) != entry.downloadable
    assert "\n" not in message


def test_the_command_for_a_missing_file_names_the_folder_that_was_given(tmp_path):
    with pytest.raises(MissingDataError, match=r"fetch news --data-dir '.*with space'"):
        load_paper_data("news", tmp_path / "with space")


def test_the_missing_file_is_named_where_others_are_there(small, tmp_path):
    write(tmp_path / "mnist", mnist_files())
    (tmp_path / "mnist" / "t10k-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(MissingDataError, match=r"mnist needs t10k-labels-idx1-ubyte\.gz"):
        load_paper_data("mnist", tmp_path)


@pytest.mark.parametrize("call", [load_paper_data, fetch])
def test_an_unknown_name_is_one_sentence_with_the_names_there_are(call):
    with pytest.raises(UnknownDataError, match=r"no data set 'mnits'.* mnist, news, aviation, .*"):
        call("mnits")


# ---- formats


@pytest.mark.parametrize("suffix", PACK)
def test_idx_files_are_read_plain_and_compressed(suffix, tmp_path):
    array = np.arange(24).reshape(2, 3, 4)
    path = tmp_path / f"file{suffix}"
    path.write_bytes(PACK[suffix](idx(array)))
    assert_array_equal(_formats.read_idx(path), array)


@pytest.mark.parametrize(
    "content", [b"", b"\0\0\x08\x01", b"\0\0\x0d\x01\0\0\0\x01\0", idx(np.arange(9))[:-1]]
)
def test_what_is_no_idx_file_is_refused(content, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r".+"):
        _formats.read_idx(path)


@pytest.mark.parametrize("suffix", PACK)
def test_multilabel_svmlight_files_are_read_plain_and_compressed(suffix, tmp_path):
    path = tmp_path / f"file.svm{suffix}"
    path.write_bytes(PACK[suffix](AVIATION["tmc2007_train.svm"]))
    X, Y = _formats.read_multilabel_svmlight(path, 3)
    assert X.dtype == np.float32
    assert_array_equal(X.toarray(), [[0.5, 0, 1, 0, 0, 0], [0, 0, 2, 0, 0, 0], [1, 0, 0, 0, 0, 1]])
    assert_array_equal(Y, [[1, 0, 1], [0, 0, 0], [0, 1, 0]])


@pytest.mark.parametrize("text", [b"3 1:1\n", b"0.5 1:1\n", b"-1 1:1\n", b"0 0:1\n", b"0 1:x\n"])
def test_labels_and_columns_that_cannot_be_are_refused(text, tmp_path):
    path = tmp_path / "file.svm"
    path.write_bytes(text)
    with pytest.raises(ValueError, match=r".+"):
        _formats.read_multilabel_svmlight(path, 3)


def test_triples_count_from_zero():
    documents, words, counts = _formats.read_triples(b"1 3 2\n2 1 7\n")
    assert_array_equal(documents, [0, 1])
    assert_array_equal(words, [2, 0])
    assert_array_equal(counts, [2, 7])


@pytest.mark.parametrize("text", [b"0 1 1\n", b"1 1\n", b"1 1 one\n"])
def test_other_lines_than_triples_are_refused(text):
    with pytest.raises(ValueError, match=r".+"):
        _formats.read_triples(text)


# ---- loading


def test_mnist_is_fours_and_nines_in_the_unit_interval(small, tmp_path):
    write(tmp_path / "mnist", mnist_files())
    data = load_paper_data("mnist", tmp_path)
    assert data.kind == "binary"
    assert data.X_train.dtype == data.X_test.dtype == np.float32
    pixels = np.arange(20, dtype=np.float32).reshape(5, 4) * 10 / 255
    assert_array_equal(data.X_train, pixels[[0, 2, 3]])
    assert_array_equal(data.X_test, pixels[:2])
    assert_array_equal(data.y_train, [0, 1, 0])
    assert_array_equal(data.y_test, [1, 0])
    assert data.class_names.tolist() == ["4", "9"]
    assert data.feature_names is None
    assert (data.n_train, data.n_validation) == (2, 1)
    assert repr(data) == "PaperData('mnist', binary: 2 + 1 + 2 examples, 4 columns, 2 classes)"


def test_news_has_the_words_of_the_training_documents_only(small, archive, tmp_path):
    fetch("news", tmp_path)
    data = load_paper_data("news", tmp_path)
    assert data.kind == "multiway"
    assert_array_equal(data.X_train.toarray(), [[2, 0, 1], [0, 300, 0], [1, 0, 0]])
    assert_array_equal(data.X_test.toarray(), [[0, 0, 5], [0, 0, 0]])
    assert data.feature_names.tolist() == ["archive", "name", "space"]
    assert_array_equal(data.y_train, [0, 1, 0])
    assert_array_equal(data.y_test, [1, 0])
    assert data.class_names.tolist() == ["alt.atheism", "sci.space"]
    assert_canonical(data)


@pytest.mark.parametrize("suffix", PACK)
def test_aviation_has_the_words_of_the_training_documents_only(small, suffix, tmp_path):
    files = {f"{name}{suffix}": PACK[suffix](text) for name, text in AVIATION.items()}
    write(tmp_path / "siam2007", files)
    data = load_paper_data("aviation", tmp_path)
    assert data.kind == "multilabel"
    assert_array_equal(data.X_train.toarray(), [[0.5, 1, 0], [0, 2, 0], [1, 0, 1]])
    assert_array_equal(data.X_test.toarray(), [[1, 0, 0], [0, 4, 0]])
    assert_array_equal(data.y_train, [[1, 0, 1], [0, 0, 0], [0, 1, 0]])
    assert_array_equal(data.y_test, [[0, 0, 1], [1, 1, 0]])
    assert data.class_names.tolist() == ["1", "2", "3"]
    assert data.feature_names is None
    assert_canonical(data)


def test_aviation_500_is_presence_of_words(small, tmp_path):
    write_variants(tmp_path / "siam2007")
    data = load_paper_data("aviation-500", tmp_path)
    assert_array_equal(data.X_train.toarray(), [[1, 0], [0, 0], [1, 1], [0, 1]])
    assert_array_equal(data.y_test, [[1, 0, 1], [0, 0, 0], [0, 1, 0]])
    assert data.feature_names.tolist() == ["abort", "above"]
    assert_canonical(data)


def test_aviation_counts_takes_the_labels_of_its_rows(small, tmp_path):
    write_variants(tmp_path / "siam2007")
    data = load_paper_data("aviation-counts", tmp_path)
    assert_array_equal(data.X_train.toarray(), [[0, 3, 0], [7, 0, 1]])
    assert_array_equal(data.y_train, [[0, 1, 0], [1, 0, 1]])
    assert data.feature_names.tolist() == ["00", "000", "001"]
    assert_canonical(data)


def assert_canonical(data):
    for X in (data.X_train, data.X_test):
        assert X.format == "csr"
        assert X.dtype == np.float32
        assert X.has_canonical_format
    assert data.y_train.dtype == data.y_test.dtype == np.int64


# ---- damage


def cut(path):
    path.write_bytes(path.read_bytes()[:-9])


@pytest.mark.parametrize("change", [cut, lambda path: path.write_bytes(b"not a gzip file")])
def test_a_damaged_gz_file_is_named_with_the_command(small, change, tmp_path):
    write(tmp_path / "mnist", mnist_files())
    change(tmp_path / "mnist" / "train-labels-idx1-ubyte.gz")
    with pytest.raises(DamagedDataError) as caught:
        load_paper_data("mnist", tmp_path)
    assert "train-labels-idx1-ubyte.gz cannot be read (" in str(caught.value)
    assert "marginparts data fetch mnist --data-dir" in str(caught.value)


@pytest.mark.parametrize(
    "file", ["train_subset_counts.npz", "test_subset_rows.npy", "vocabulary10000.txt.gz"]
)
def test_a_damaged_matrix_or_list_is_named(small, file, tmp_path):
    write_variants(tmp_path / "siam2007")
    cut(tmp_path / "siam2007" / file)
    with pytest.raises(DamagedDataError, match=rf"{file} cannot be read \(.+cannot be downloaded"):
        load_paper_data("aviation-counts", tmp_path)


def test_a_bz2_file_that_is_cut_short_is_named(small, tmp_path):
    write(
        tmp_path / "siam2007",
        {f"{name}.bz2": bz2.compress(text)[:-9] for name, text in AVIATION.items()},
    )
    with pytest.raises(DamagedDataError, match=r"tmc2007_train\.svm\.bz2 cannot be read"):
        load_paper_data("aviation", tmp_path)


def test_another_number_of_examples_is_refused(tmp_path):
    write(tmp_path / "mnist", mnist_files())
    with pytest.raises(DamagedDataError, match=r"has 3 \+ 2 examples .* and not 11791 \+ 1991"):
        load_paper_data("mnist", tmp_path)


def test_files_that_do_not_belong_together_are_refused(small, tmp_path):
    folder = tmp_path / "siam2007"
    write_variants(folder)
    (folder / "features500.txt").write_text("abort\n")
    with pytest.raises(DamagedDataError, match="do not agree on the number of columns"):
        load_paper_data("aviation-500", tmp_path)
    np.save(folder / "train_subset_rows.npy", np.array([0, 4]))
    with pytest.raises(DamagedDataError, match="train rows past the last label"):
        load_paper_data("aviation-counts", tmp_path)
    sp.save_npz(folder / "train_labels.npz", sp.csr_matrix(np.eye(4)))
    with pytest.raises(DamagedDataError, match="has 4 labels and not 3"):
        load_paper_data("aviation-500", tmp_path)


def test_news_files_that_do_not_belong_together_are_refused(small, archive, tmp_path):
    folder = fetch("news", tmp_path)
    np.save(folder / "test_labels.npy", np.array([0, 1], np.uint8))
    with pytest.raises(DamagedDataError, match="test labels other than 1 to 2"):
        load_paper_data("news", tmp_path)
    (folder / "vocabulary.txt.gz").write_bytes(gzip.compress(WORDS + b"more\n"))
    with pytest.raises(DamagedDataError, match="counts of 5 words and names of 6"):
        load_paper_data("news", tmp_path)


# ---- downloads


def git_id(content):
    return hashlib.sha1(b"blob " + str(len(content)).encode() + b"\0" + content).hexdigest()


def tgz(files):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", compresslevel=1) as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(f"20news-bydate/matlab/{name}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return packed.getvalue()


@pytest.fixture
def mirror(small, monkeypatch, tmp_path):
    """The small MNIST in a folder that stands for a mirror."""
    folder = tmp_path / "mirror"
    write(folder, mnist_files())
    monkeypatch.setitem(download.SOURCES, "mnist", mnist_from(folder.as_uri()))
    return folder


def mnist_from(*addresses):
    return tuple(
        download.Download(
            name,
            tuple(f"{address}/{name}" for address in addresses),
            partial(
                download._accept_digest, "md5", hashlib.md5(gzip.decompress(content)).hexdigest()
            ),
        )
        for name, content in mnist_files().items()
    )


def news_from(folder, blobs):
    sha256 = hashlib.sha256(WORDS).hexdigest()
    accept = {
        "20news-bydate-matlab.tgz": partial(download._unpack_news, blobs),
        "vocabulary.txt": partial(download._pack, "sha256", sha256),
    }
    return tuple(
        download.Download(name, ((folder / name).as_uri(),), check)
        for name, check in accept.items()
    )


@pytest.fixture
def archive(monkeypatch, tmp_path):
    """The small 20 Newsgroups in J. Rennie's archive."""
    folder = tmp_path / "archive"
    write(folder, {"20news-bydate-matlab.tgz": tgz(NEWS), "vocabulary.txt": WORDS})
    blobs = {name: git_id(NEWS[name]) for name in ("train.data", "test.data")}
    monkeypatch.setitem(download.SOURCES, "news", news_from(folder, blobs))
    return folder


def fetch_fails(name, folder, match):
    """Check that the sentence is one, and that nothing is left."""
    with pytest.raises(DownloadError, match=match) as caught:
        fetch(name, folder)
    assert "\n" not in str(caught.value)
    assert not [path for path in folder.rglob("*") if path.is_file() or ".fetch" in path.name]


def test_fetched_data_loads_and_nothing_else_is_left(mirror, tmp_path):
    seen = []
    folder = fetch("mnist", tmp_path / "data", lambda *step: seen.append(step))
    assert folder == tmp_path / "data" / "mnist"
    assert sorted(path.name for path in folder.iterdir()) == sorted(mnist_files())
    assert load_paper_data("mnist", tmp_path / "data").X_train.shape == (3, 4)
    for name, content in mnist_files().items():
        assert (name, 0, len(content)) in seen
        assert (name, len(content), len(content)) in seen


def test_what_is_there_is_not_downloaded_again(mirror, tmp_path):
    folder = fetch("mnist", tmp_path)
    assert fetch("mnist", tmp_path, lambda *told: pytest.fail("downloaded")) == folder


def test_a_second_call_brings_what_is_missing_or_damaged(mirror, tmp_path):
    folder = fetch("mnist", tmp_path)
    cut(folder / "train-images-idx3-ubyte.gz")
    (folder / "t10k-labels-idx1-ubyte.gz").unlink()
    seen = set()
    fetch("mnist", tmp_path, lambda file, *_: seen.add(file))
    assert seen == {"train-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"}
    assert load_paper_data("mnist", tmp_path).X_train.shape == (3, 4)


def test_another_checksum_is_refused(mirror, tmp_path):
    for path in mirror.iterdir():
        path.write_bytes(gzip.compress(b"another file"))
    fetch_fails("mnist", tmp_path / "data", "the checksum of .* is [0-9a-f]{32} and not ")


def test_a_truncated_file_is_refused(mirror, tmp_path):
    for path in mirror.iterdir():
        cut(path)
    fetch_fails("mnist", tmp_path / "data", r"could not be downloaded \(.*ended before")


def test_the_next_mirror_is_tried(mirror, monkeypatch, tmp_path):
    bad = tmp_path / "bad"
    write(bad, {"train-images-idx3-ubyte.gz": gzip.compress(b"another file")})
    sources = mnist_from(bad.as_uri(), mirror.as_uri())
    monkeypatch.setitem(download.SOURCES, "mnist", sources)
    fetch("mnist", tmp_path / "data")
    assert load_paper_data("mnist", tmp_path / "data").X_train.shape == (3, 4)


def test_without_a_network_the_sentence_names_every_mirror(small, monkeypatch, tmp_path):
    # nothing listens on port 1 or 2 of this machine
    sources = mnist_from("http://127.0.0.1:1", "http://127.0.0.1:2")
    monkeypatch.setitem(download.SOURCES, "mnist", sources)
    fetch_fails(
        "mnist", tmp_path / "data", r"\(127\.0\.0\.1:1: .+; 127\.0\.0\.1:2: .+check the net"
    )


class Answers(BaseHTTPRequestHandler):
    """A server that has nothing, or breaks off."""

    def do_GET(self):
        if self.path.startswith("/broken"):
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"half of it")
        else:
            self.send_error(404)

    def log_message(self, *arguments):
        pass


@contextlib.contextmanager
def serve():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(
    ("place", "match"), [("broken", "ended after 10 of 1000 bytes"), ("none", "HTTP 404 Not Found")]
)
def test_what_a_server_does_wrong_is_said(small, place, match, monkeypatch, tmp_path):
    with serve() as address:
        monkeypatch.setitem(download.SOURCES, "mnist", mnist_from(f"{address}/{place}"))
        fetch_fails("mnist", tmp_path / "data", match)


@pytest.mark.parametrize(
    ("number", "match"), [(errno.ENOSPC, "disk of .*mnist is full"), (errno.EROFS, "cannot be wr")]
)
def test_what_the_disk_refuses_is_said(mirror, number, match, tmp_path):
    def refuse(file, done, total):
        if done:
            raise OSError(number, os.strerror(number))

    with pytest.raises(DownloadError, match=match):
        fetch("mnist", tmp_path / "data", refuse)
    assert list((tmp_path / "data" / "mnist").iterdir()) == []


def test_a_folder_that_is_a_file_is_said(mirror, tmp_path):
    (tmp_path / "mnist").write_text("")
    with pytest.raises(DownloadError, match="mnist cannot be written"):
        fetch("mnist", tmp_path)


def test_an_interrupted_call_leaves_nothing_half_written(mirror, tmp_path):
    def interrupt(file, done, total):
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch("mnist", tmp_path / "data", interrupt)
    assert list((tmp_path / "data" / "mnist").iterdir()) == []


@pytest.mark.parametrize("name", ["aviation-500", "aviation-counts"])
def test_the_variants_cannot_be_downloaded(name, tmp_path):
    fetch_fails(name, tmp_path, f"^{name} cannot be downloaded: put its files .* into .*siam2007")


def test_every_other_data_set_has_sources():
    assert set(download.SOURCES) == {name for name in NAMES if PAPER_DATA[name].downloadable}


def test_the_archive_of_news_is_turned_into_matrices(small, archive, tmp_path):
    folder = fetch("news", tmp_path)
    assert sorted(path.name for path in folder.iterdir()) == [
        "classes.txt", "test_counts.npz", "test_labels.npy", "train_counts.npz",
        "train_labels.npy", "vocabulary.txt.gz",
    ]  # fmt: skip
    counts = sp.load_npz(folder / "train_counts.npz")
    assert counts.dtype == np.uint16
    assert_array_equal(counts.toarray(), [[2, 0, 0, 1, 0], [0, 300, 0, 0, 0], [1, 0, 0, 0, 0]])
    assert_array_equal(np.load(folder / "train_labels.npy"), [1, 2, 1])


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (tgz({**NEWS, "test.data": b"1 1 1\n"}), "the checksum of test.data is [0-9a-f]{40} and"),
        (tgz({k: v for k, v in NEWS.items() if k != "train.map"}), "tgz has no train.map"),
        (tgz(NEWS)[:150], "20news-bydate-matlab.tgz could not be downloaded"),
        (b"no archive", "20news-bydate-matlab.tgz could not be downloaded"),
    ],
)
def test_another_archive_of_news_is_refused(small, archive, content, match, tmp_path):
    (archive / "20news-bydate-matlab.tgz").write_bytes(content)
    fetch_fails("news", tmp_path / "data", match)


def test_an_archive_put_there_by_hand_needs_no_network(small, archive, monkeypatch, tmp_path):
    write(tmp_path / "20newsgroups", {path.name: path.read_bytes() for path in archive.iterdir()})
    offline = [replace(source, urls=()) for source in download.SOURCES["news"]]
    monkeypatch.setitem(download.SOURCES, "news", offline)
    fetch("news", tmp_path)
    assert load_paper_data("news", tmp_path).X_train.shape == (3, 3)


def test_ids_are_those_of_git():
    # echo hello | git hash-object --stdin
    hello = "ce013625030ba8dba906f756967f9e9ca394464a"
    download._compare("file", "git", hello, b"hello\n")
    with pytest.raises(ValueError, match="the checksum of file"):
        download._compare("file", "git", hello, b"hello")


def test_aviation_is_checked_by_its_number_of_documents(small, monkeypatch, tmp_path):
    folder = tmp_path / "mirror"
    write(folder, {f"{name}.bz2": bz2.compress(text) for name, text in AVIATION.items()})

    def sources(*lines):
        return tuple(
            download.Download(path.name, (path.as_uri(),), partial(download._accept_lines, number))
            for path, number in zip(sorted(folder.iterdir()), lines, strict=True)
        )

    monkeypatch.setitem(download.SOURCES, "aviation", sources(2, 4))
    with pytest.raises(DownloadError, match=r"tmc2007_train\.svm\.bz2 has 3 lines and not 4"):
        fetch("aviation", tmp_path)
    monkeypatch.setitem(download.SOURCES, "aviation", sources(2, 3))
    fetch("aviation", tmp_path)
    assert load_paper_data("aviation", tmp_path).X_train.shape == (3, 3)


# ---- the real data


@pytest.mark.parametrize("name", [pytest.param(name, marks=REAL) for name in NAMES])
def test_real_sizes_are_those_of_the_catalog(name):
    data, entry = real_data(name), PAPER_DATA[name]
    n = entry.n_train + entry.n_validation
    assert data.X_train.shape == (n, entry.n_columns)
    assert data.X_test.shape == (entry.n_test, entry.n_columns)
    labels = () if data.kind != "multilabel" else (entry.n_classes,)
    assert data.y_train.shape == (n, *labels)
    assert data.y_test.shape == (entry.n_test, *labels)
    assert len(data.class_names) == entry.n_classes
    assert data.feature_names is None or len(set(data.feature_names)) == entry.n_columns
    assert data.X_train.dtype == np.float32
    if sp.issparse(data.X_train):
        assert_canonical(data)
        assert (data.X_train.data > 0).all()


class TestReal:
    pytestmark = REAL

    def test_mnist(self):
        data = real_data("mnist")
        assert_array_equal(np.bincount(data.y_train), [5842, 5949])
        assert_array_equal(np.bincount(data.y_test), [982, 1009])
        assert data.X_train.min() == 0
        assert data.X_train.max() == 1
        assert data.y_train[:3].tolist() == [0, 1, 0]  # 5 0 [4] 1 [9] 2 1 3 1 [4]

    def test_news(self):
        data = real_data("news")
        train = "480 581 572 587 575 592 582 592 596 594 598 594 591 594 593 599 545 564 464 376"
        test = "318 389 391 392 383 390 382 395 397 397 399 395 393 393 392 398 364 376 310 251"
        assert_array_equal(np.bincount(data.y_train), [int(size) for size in train.split()])
        assert_array_equal(np.bincount(data.y_test), [int(size) for size in test.split()])
        assert data.X_train.nnz == 1467345
        assert data.X_train.sum(dtype=np.float64) == 2765300
        assert data.X_test.nnz < 967874  # those of all 61188 words
        assert (data.X_train.sum(axis=0) > 0).all()
        assert (data.class_names[0], data.class_names[19]) == ("alt.atheism", "talk.religion.misc")
        assert "atheism" in data.feature_names

    def test_aviation_500(self):
        data = real_data("aviation-500")
        assert (data.X_train.nnz, data.X_test.nnz) == (485350, 163197)
        assert (data.y_train.sum(), data.y_test.sum()) == (47892, 13816)
        assert set(data.X_train.data) == {1.0}
        assert (data.X_train.sum(axis=1) == 0).sum() == 11

    def test_aviation_counts(self):
        data = real_data("aviation-counts")
        assert (data.X_train.nnz, data.X_test.nnz) == (270551, 90438)
        assert (data.X_train.sum(), data.X_test.sum()) == (409167, 137240)
        # the words that both variants have must agree, which they do if the rows are right
        words = real_data("aviation-500")
        rows = np.load(Path(FOLDER) / "siam2007" / "test_subset_rows.npy")
        assert_array_equal(data.y_test, words.y_test[rows])
        _, ours, theirs = np.intersect1d(
            data.feature_names, words.feature_names, return_indices=True
        )
        here = data.X_test[:, ours].toarray() > 0
        there = words.X_test[rows][:, theirs].toarray() > 0
        assert len(ours) > 400
        assert (here == there).mean() > 0.998

    def test_mnist_has_its_published_checksums(self, monkeypatch, tmp_path):
        real_data("mnist")
        home = (Path(FOLDER) / "mnist").as_uri()
        local = tuple(
            replace(source, urls=(f"{home}/{source.file}",)) for source in download.SOURCES["mnist"]
        )
        monkeypatch.setitem(download.SOURCES, "mnist", local)
        folder = fetch("mnist", tmp_path)
        assert {file.name for file in folder.iterdir()} == {source.file for source in local}

    @pytest.mark.slow
    def test_news_comes_out_of_its_archive_as_it_is_here(self, monkeypatch, tmp_path):
        real_data("news")
        here = Path(FOLDER) / "20newsgroups"
        files = {}
        for part in ("train", "test"):
            X = sp.load_npz(here / f"{part}_counts.npz").tocoo()
            lines = zip((X.row + 1).tolist(), (X.col + 1).tolist(), X.data.tolist(), strict=True)
            files[f"{part}.data"] = "".join(f"{i} {j} {c}\n" for i, j, c in lines).encode()
            labels = np.load(here / f"{part}_labels.npy")
            files[f"{part}.label"] = "".join(f"{label}\n" for label in labels).encode()
        files["train.map"] = (here / "classes.txt").read_bytes()
        home = tmp_path / "home"
        words = _formats.read_bytes(here / "vocabulary.txt.gz")
        write(home, {"20news-bydate-matlab.tgz": tgz(files), "vocabulary.txt": words})
        local = tuple(
            replace(source, urls=((home / source.file).as_uri(),))
            for source in download.SOURCES["news"]
        )
        monkeypatch.setitem(download.SOURCES, "news", local)
        folder = fetch("news", tmp_path / "data")
        for part in ("train", "test"):
            counts = sp.load_npz(folder / f"{part}_counts.npz")
            original = sp.load_npz(here / f"{part}_counts.npz")
            assert counts.shape == original.shape
            assert (counts != original).nnz == 0
            labels = [np.load(path / f"{part}_labels.npy") for path in (folder, here)]
            assert_array_equal(*labels)
