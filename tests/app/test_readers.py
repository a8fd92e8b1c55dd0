"""People's files come in as they are meant, and what is wrong with one is a sentence."""

import gzip
import json
import sys
import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from marginparts.app.readers import Layout, open_source, read_all, settle_minus_one, targets
from marginparts.files.atomic import FileProblemError

TEXTS = ["a b", "", "c,d", 'say "hi"', "two\nlines", "é ü", "x"]
KINDS = ["p", "q", "", "p", "q", "", "p"]
LABELS = [kind or None for kind in KINDS]
COUNTS = np.array([[1, 0, 2], [0, 0, 0], [3, 0, 0], [0, 4, 0], [5, 0, 6], [0, 7, 0], [1, 1, 1]])


def quoted(cell):
    return '"' + str(cell).replace('"', '""') + '"'


def write(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return path


def csv_text(rows, mark=","):
    return "".join(mark.join(map(quoted, row)) + "\n" for row in rows)


TABLE_ROWS = [
    ("id", "body", "kind"),
    *((i, text, kind) for i, (text, kind) in enumerate(zip(TEXTS, KINDS, strict=True))),
]


def write_csv(path):
    return write(path, csv_text(TABLE_ROWS))


def write_semicolons(path):
    return write(path, csv_text(TABLE_ROWS, ";").replace('"id";"body";"kind"', "id;body;kind"))


def write_tsv(path):
    return write(path, csv_text(TABLE_ROWS, "\t"))


def write_jsonl(path):
    header, *rows = TABLE_ROWS
    objects = [dict(zip(header, row, strict=True)) for row in rows]
    return write(path, "\n".join(json.dumps(row, ensure_ascii=False) for row in objects) + "\n")


def write_parquet(path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    header, *rows = TABLE_ROWS
    columns = [list(column) for column in zip(*rows, strict=True)]
    pq.write_table(pa.table(dict(zip(header, columns, strict=True))), path, row_group_size=4)
    return path


def compressed(writer):
    def write_compressed(path):
        plain = writer(path.with_suffix(""))
        path.write_bytes(gzip.compress(plain.read_bytes()))
        return path

    return write_compressed


TABLES = {
    "t.csv": write_csv,
    "t.CSV": write_csv,
    "european.csv": write_semicolons,
    "t.csv.gz": compressed(write_csv),
    "t.tsv": write_tsv,
    "t.tab": write_tsv,
    "t.tsv.gz": compressed(write_tsv),
    "t.jsonl": write_jsonl,
    "t.ndjson": write_jsonl,
    "t.jsonl.gz": compressed(write_jsonl),
    "t.parquet": write_parquet,
    "t.pq": write_parquet,
}


def dense(X):
    return X.toarray() if sp.issparse(X) else X


def problem(path, read=True, **options):
    """What is said about a file, which is one sentence."""

    def use():
        source = open_source(path, **options)
        if read:
            read_all(source)

    with pytest.raises(FileProblemError) as caught:
        use()
    sentence = str(caught.value)
    assert sentence.endswith(".")
    assert "\n" not in sentence
    return sentence


def assert_equal_batches(one, other):
    if isinstance(one.samples, list):
        assert one.samples == other.samples
    else:
        assert sp.issparse(one.samples) == sp.issparse(other.samples)
        assert one.samples.dtype == other.samples.dtype
        assert_array_equal(dense(one.samples), dense(other.samples))
    assert one.labels == other.labels
    assert one.columns == other.columns


def assert_streams(source):
    """Reading in threes, or again, gives what reading at once gives."""
    whole = read_all(source)
    sizes = [len(batch.labels) for batch in source.batches(3)]
    assert max(sizes) <= 3
    assert len(sizes) >= 3
    assert_equal_batches(read_all(source, 3), whole)
    assert_equal_batches(read_all(source), whole)
    assert source.n_rows in (None, len(whole.labels))
    return whole


# tables of texts


@pytest.mark.parametrize("name", TABLES)
def test_a_table_of_texts(tmp_path, name):
    source = open_source(TABLES[name](tmp_path / name), text="body", label="kind")
    batch = assert_streams(source)
    assert batch.samples == TEXTS  # with the cell of two lines
    assert batch.labels == LABELS
    assert list(batch.columns) == ["id", "body", "kind"]
    assert [str(cell) for cell in batch.columns["id"]] == list("0123456")
    assert batch.columns["kind"] == KINDS
    assert source.layout == Layout("text", text="body", label="kind")


def test_csv_cells_stay_strings_and_a_header_may_have_a_mark_and_spaces(tmp_path):
    path = write(tmp_path / "t.csv", "\ufefftext, n\r\nhi,007\r\n\r\nho,1.50\r\n")
    batch = read_all(open_source(path, text="text"))
    assert batch.columns == {"text": ["hi", "ho"], "n": ["007", "1.50"]}
    assert batch.labels == [None, None]


def test_another_encoding(tmp_path):
    path = write(tmp_path / "t.csv", "text\né\n", "latin-1")
    assert read_all(open_source(path, text="text", encoding="latin-1")).samples == ["é"]
    path = write(tmp_path / "u.tsv", "text\tn\né\t1\n", "utf-16")
    assert read_all(open_source(path, text="text", encoding="utf-16")).samples == ["é"]


def test_a_very_long_cell(tmp_path):
    path = write(tmp_path / "t.csv", "text,label\n" + "ab " * 100_000 + ",x\n")
    assert len(read_all(open_source(path, text="text")).samples[0]) == 300_000


def test_missing_texts_are_empty_and_keep_their_row(tmp_path):
    path = write(tmp_path / "t.jsonl", '{"t": null}\n{}\n{"t": "  "}\n{"t": NaN}\n{"t": "a"}\n')
    assert read_all(open_source(path, text="t")).samples == ["", "", "", "", "a"]


def test_texts_that_are_not_strings(tmp_path):
    path = write(tmp_path / "t.jsonl", '{"t": 5}\n{"t": ["a", "b"]}\n{"t": "cut \\ud83d"}\n')
    samples = read_all(open_source(path, text="t")).samples
    assert samples == ["5", "a b", "cut \ufffd"]


def test_json_objects_with_different_keys(tmp_path):
    path = write(tmp_path / "t.jsonl", '{"a": "x"}\n{"b": 2, "a": "y"}\n')
    source = open_source(path, text="a")
    assert source.n_rows == 2
    assert read_all(source, 1).columns == {"a": ["x", "y"], "b": [None, 2]}


def test_labels_in_csv_cells(tmp_path):
    cells = [" a ", "", "NaN", "null", "3", "3.0", "3.10", "NA"]
    path = write(tmp_path / "t.csv", csv_text([("t", "y"), *(("w", cell) for cell in cells)]))
    labels = read_all(open_source(path, text="t", label="y")).labels
    assert labels == ["a", None, None, None, "3", "3", "3.10", "NA"]


def test_labels_in_json_cells(tmp_path):
    cells = [3, 3.0, 2.5, None, float("nan"), "", ["b", " a "], [], ["a", None, "a"]]
    lines = [json.dumps({"t": "w", "y": cell}) for cell in cells]
    path = write(tmp_path / "t.jsonl", "\n".join([*lines, '{"t": "w"}']))
    labels = read_all(open_source(path, text="t", label="y")).labels
    assert labels == ["3", "3", "2.5", None, None, None, ("b", "a"), (), ("a",), None]


def test_labels_in_parquet_lists(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"t": ["u", None, "w"], "y": [["a", "b"], [], None], "z": [1.0, None, 2.0]})
    pq.write_table(table, tmp_path / "t.parquet")
    batch = read_all(open_source(tmp_path / "t.parquet", text="t", label="y"))
    assert batch.labels == [("a", "b"), (), None]
    assert batch.samples == ["u", "", "w"]
    assert batch.columns["y"] == [["a", "b"], [], None]
    labels = read_all(open_source(tmp_path / "t.parquet", text="t", label="z")).labels
    assert labels == ["1", None, "2"]


def test_separated_labels(tmp_path):
    path = write(tmp_path / "t.csv", "t,y\nw,a; b\nw,\nw,b;;\nw,;\n")
    labels = read_all(open_source(path, text="t", label="y", label_sep=";")).labels
    assert labels == [("a", "b"), None, ("b",), ()]


# tables of numbers

NUMBERS = "y,u,v\na,1,0.5\n,0,2\nb,3,1e2\n"


def test_a_table_of_numbers(tmp_path):
    source = open_source(write(tmp_path / "t.csv", NUMBERS), label="y")
    batch = read_all(source, 2)
    assert_allclose(batch.samples, [[1, 0.5], [0, 2], [3, 100]])
    assert batch.labels == ["a", None, "b"]
    assert batch.columns["v"] == ["0.5", "2", "1e2"]
    assert source.layout == Layout("matrix", label="y", names=("u", "v"), n_columns=2)


def test_a_parquet_table_of_numbers(tmp_path):
    import pandas as pd

    frame = pd.DataFrame({"u": [1, 0], "y": ["a", None], "v": [0.5, 2.0]}, index=["r", "s"])
    frame.to_parquet(tmp_path / "t.parquet")
    source = open_source(tmp_path / "t.parquet", label="y")
    assert_allclose(read_all(source).samples, [[1, 0.5], [0, 2]])
    assert source.layout.names == ("u", "v")  # without pandas' names of rows


def test_names_of_rows_are_no_feature(tmp_path):
    source = open_source(write(tmp_path / "t.csv", ",u\nfirst,1\nsecond,2\n"))
    assert source.layout.names == ("u",)
    assert read_all(source).columns == {"": ["first", "second"], "u": ["1", "2"]}


def test_decimal_commas_between_semicolons(tmp_path):
    source = open_source(write(tmp_path / "t.csv", "u;v\n0,5;1\n2;3.5\n"))
    assert_allclose(read_all(source).samples, [[0.5, 1], [2, 3.5]])


def test_a_wide_table_is_read_in_fewer_rows_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr("marginparts.app.readers._tables._MOST_CELLS", 6)
    source = open_source(write(tmp_path / "t.csv", NUMBERS), label="y")
    assert [len(batch.labels) for batch in source.batches()] == [2, 1]


@pytest.mark.parametrize("cell", ["-1", "nan", "inf", "", "1,5", " "])
def test_bad_numbers_in_a_table(tmp_path, cell):
    path = write(tmp_path / "t.csv", csv_text([("u", "v"), (1, 2), (3, cell)]))
    sentence = problem(path)
    assert f"{path}, line 3, column 'v'" in sentence
    assert "entries must be 0 or larger" in sentence or cell == "1,5"


def test_a_column_that_is_not_numeric(tmp_path):
    sentence = problem(write(tmp_path / "t.csv", "id,body\n1,hello\n"))
    assert "column 'body'" in sentence
    assert "line 2" in sentence
    assert "--text COLUMN" in sentence
    assert "id, body" in sentence


@pytest.mark.parametrize("cell", ["[1]", '{"a": 1}', '"x"', "null", "1" + 400 * "0"])
def test_json_cells_that_are_no_numbers(tmp_path, cell):
    path = write(tmp_path / "t.jsonl", f'{{"u": 1}}\n{{"u": {cell}}}\n')
    assert f"{path}, line 2, column 'u'" in problem(path)


def test_a_table_without_features(tmp_path):
    assert "no column of numbers" in problem(write(tmp_path / "t.csv", "y\na\n"), label="y")


# bad tables


@pytest.mark.parametrize("name", [name for name in TABLES if "gz" not in name])
def test_an_empty_file(tmp_path, name):
    assert f"{tmp_path / name} is empty" in problem(write(tmp_path / name, ""), text="body")


@pytest.mark.parametrize("name", ["t.csv.gz", "t.jsonl.gz", "t.svm.gz", "t.mtx.gz"])
def test_nothing_in_a_gzip_file(tmp_path, name):
    (tmp_path / name).write_bytes(gzip.compress(b""))
    assert str(tmp_path / name) in problem(tmp_path / name)


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.jsonl", "t.svm", "t.mtx"])
def test_a_file_of_blank_lines(tmp_path, name):
    assert name in problem(write(tmp_path / name, "\n\n \n" if name[2] == "j" else "\n\n"))


def test_a_header_without_rows(tmp_path):
    assert "header and no rows" in problem(write(tmp_path / "t.csv", "a,b\n\n"), text="a")


def test_parquet_without_rows(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"t": pa.array([], pa.string())}), tmp_path / "t.parquet")
    assert "has no rows" in problem(tmp_path / "t.parquet", text="t")


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl", "t.parquet"])
@pytest.mark.parametrize("option", ["text", "label"])
def test_a_missing_column(tmp_path, name, option):
    options = {"text": "body", option: "nope"}
    sentence = problem(TABLES[name](tmp_path / name), read=False, **options)
    assert sentence == f"{tmp_path / name} has no column 'nope'; its columns are id, body, kind."


def test_many_columns_are_not_all_listed(tmp_path):
    path = write(tmp_path / "t.csv", ",".join(f"c{j}" for j in range(30)) + "\n" + "1," * 29 + "1")
    sentence = problem(path, text="nope")
    assert "c9 and 20 more" in sentence
    assert "c10" not in sentence


def test_strange_names_of_columns_are_shown_on_one_line(tmp_path):
    path = write(tmp_path / "t.csv", csv_text([("a\nb", "", "x" * 99), (1, 2, 3)]))
    sentence = problem(path, text="nope")
    assert f"its columns are 'a\\nb', '', {37 * 'x'}...." in sentence


def test_two_columns_of_one_name(tmp_path):
    assert "two columns named 'a'" in problem(write(tmp_path / "t.csv", "a,b,a\n1,2,3\n"))


def test_one_column_for_two_things(tmp_path):
    path = write_csv(tmp_path / "t.csv")
    assert "both" in problem(path, text="body", label="body")


@pytest.mark.parametrize(
    ("rows", "line", "cells", "empty"),
    [('1,2\n"x\ny",2\n1,2,3\n', 5, "3 cells", False), ("1,2\n1\n", 3, "1 cell", True)],
)
def test_rows_with_another_number_of_cells(tmp_path, rows, line, cells, empty):
    sentence = problem(write(tmp_path / "t.csv", "a,b\n" + rows), text="a")
    assert f"line {line}: the row has {cells} and the header 2" in sentence
    assert ("also where the next is empty" in sentence) is empty


def test_a_column_of_names_in_a_table_of_numbers(tmp_path):
    sentence = problem(write(tmp_path / "t.csv", "id,a,y\nrow 1,2,x\n"), label="y")
    assert "'row 1' is no number" in sentence
    assert "--text COLUMN" in sentence
    assert "take out of the file what is neither a number nor a label" in sentence


@pytest.mark.parametrize("bad", ['"never closed', '"closed" and on,x'])
def test_quotes_that_go_wrong(tmp_path, bad):
    path = write(tmp_path / "t.csv", f"t,y\nfine,x\nx,{bad}\nfine,x\n")
    sentence = problem(path, text="t")
    assert f"{path}, line 3" in sentence
    assert "double the quotes" in sentence


def test_nul_bytes(tmp_path):
    path = write(tmp_path / "t.csv", "t,y\nfine,x\nb\0d,x\n")
    assert f"{path}, line 3: there is a NUL byte" in problem(path, text="t")


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl"])
@pytest.mark.parametrize("before", [0, 40_000])
def test_a_wrong_encoding(tmp_path, name, before):
    header, row = ("t", "x") if name == "t.csv" else ('{"t": "a"}', '{"t": "b"}')
    text = "\n".join([header, *before * [row], '{"t": "é"}', row])
    path = write(tmp_path / name, text, "latin-1")
    sentence = problem(path, text="t")
    assert f"{path} is not UTF-8 at line {before + 2}; say --encoding latin-1" in sentence


def test_utf_16_is_recognized(tmp_path):
    path = write(tmp_path / "t.csv", "t\na\n", "utf-16")
    assert "say --encoding utf-16" in problem(path, text="t")


@pytest.mark.parametrize("encoding", ["utf-9", "base64", "a\0b"])
def test_an_encoding_that_does_not_exist(tmp_path, encoding):
    path = write_csv(tmp_path / "t.csv")
    assert "There is no encoding" in problem(path, text="body", encoding=encoding)


@pytest.mark.parametrize("bad", ['{"t": ', "[" * 100_000, "nope"])
def test_a_line_that_is_no_json(tmp_path, bad):
    path = write(tmp_path / "t.jsonl", f'{{"t": "a"}}\n\n{bad}\n')
    assert f"{path}, line 3 is not JSON" in problem(path, text="t")


@pytest.mark.parametrize("bad", ["[1]", "3", '"text"', "null"])
def test_a_json_line_that_is_no_object(tmp_path, bad):
    path = write(tmp_path / "t.jsonl", f'{{"t": "a"}}\n{bad}\n')
    assert f"{path}, line 2 is JSON but no object" in problem(path, text="t")


@pytest.mark.parametrize("name", ["t.csv.gz", "t.jsonl.gz"])
def test_a_gzip_file_cut_short(tmp_path, name):
    path = TABLES[name](tmp_path / name)
    path.write_bytes(path.read_bytes()[:-12])
    assert f"{path} is cut short" in problem(path, text="body")


def test_a_file_that_is_only_named_gz(tmp_path):
    path = write(tmp_path / "t.csv.gz", "t\na\n")
    assert "is no gzip file" in problem(path, text="t")


@pytest.mark.parametrize("keep", [4, 100, -6, -200])
def test_parquet_cut_short(tmp_path, keep):
    path = write_parquet(tmp_path / "t.parquet")
    path.write_bytes(path.read_bytes()[:keep])
    assert f"{path} is cut short or is no Parquet file" in problem(path, text="body")


def test_parquet_with_broken_pages(tmp_path):
    path = write_parquet(tmp_path / "t.parquet")
    content = bytearray(path.read_bytes())
    content[4:300] = b"\xff" * 296
    path.write_bytes(content)
    assert "is no Parquet file" in problem(path, text="body")


# what is no file, or of no known format


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.npz", "t.h5ad", "folder", "t.xyz"])
def test_a_missing_file(tmp_path, name):
    assert problem(tmp_path / name) == f"There is no file {tmp_path / name}."


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.npz", "t.svm", "t.h5ad"])
def test_a_folder_instead_of_a_file(tmp_path, name):
    (tmp_path / name).mkdir()
    assert f"{tmp_path / name} is a folder" in problem(tmp_path / name)


@pytest.mark.parametrize("name", ["t.txt", "noending", "t.parquet.gz", ".csv"])
def test_an_unknown_format(tmp_path, name):
    sentence = problem(write(tmp_path / name, "a\n1\n"))
    assert f"{tmp_path / name} is in no known format" in sentence
    for ending in (".csv", ".parquet", ".svm", ".npz", ".h5ad"):
        assert ending in sentence


@pytest.mark.parametrize("name", ["t.xlsx", "t.ods", "T.XLS"])
def test_a_spreadsheet_is_to_be_saved_as_a_table(tmp_path, name):
    sentence = problem(write(tmp_path / name, "a\n1\n"))
    assert sentence == f"{tmp_path / name} is a spreadsheet; save the sheet as .csv, and use that."


def test_a_matrix_with_signs_is_told_where_signs_may_be(tmp_path):
    np.save(tmp_path / "t.npy", np.array([[1.0, -2.0], [0.5, 1.0]]))
    sentence = problem(tmp_path / "t.npy")
    assert "the entry is -2" in sentence
    assert "--embeddings FILE" in sentence
    np.save(tmp_path / "t.npy", np.array([[1.0, np.inf], [0.5, 1.0]]))
    assert "--embeddings" not in problem(tmp_path / "t.npy")


def test_a_pipe_is_not_waited_for(tmp_path):
    import os

    os.mkfifo(tmp_path / "t.csv")
    assert "save it to one first" in problem(tmp_path / "t.csv")


def test_a_file_that_may_not_be_read(tmp_path, monkeypatch):
    def refuse(*args, **kwargs):
        raise PermissionError(13, "Permission denied")

    path = write_csv(tmp_path / "t.csv")
    monkeypatch.setattr("pathlib.Path.open", refuse)
    assert problem(path) == f"{path} cannot be read: Permission denied."


def test_an_empty_separator(tmp_path):
    assert "--label-sep" in problem(write_csv(tmp_path / "t.csv"), text="body", label_sep="")


@pytest.mark.parametrize(
    ("module", "extra", "name"),
    [
        ("pyarrow.parquet", "tables", "t.parquet"),
        ("anndata", "h5ad", "t.h5ad"),
        ("PIL.Image", "images", "folder"),
    ],
)
def test_a_missing_library_names_its_extra(tmp_path, monkeypatch, module, extra, name):
    if name == "folder":
        (tmp_path / name / "a").mkdir(parents=True)
        write(tmp_path / name / "a" / "x.png", "?")
    else:
        write(tmp_path / name, "?")
    monkeypatch.setitem(sys.modules, module, None)
    assert f"pip install 'marginparts[{extra}]'" in problem(tmp_path / name)


# svmlight

SVM = """# a comment
1 1:1 3:2 # first
2 qid:4
1 1:3
 2:4
2 1:5 3:6.0

1:0 2:7e0
1 1:1 2:1 3:1
"""


@pytest.mark.parametrize("name", ["t.svm", "t.svmlight", "t.libsvm", "t.svm.gz"])
def test_svmlight(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(gzip.compress(SVM.encode()) if name.endswith("gz") else SVM.encode())
    source = open_source(path)
    batch = assert_streams(source)
    assert sp.issparse(batch.samples)
    assert batch.samples.nnz == np.count_nonzero(COUNTS)
    assert_array_equal(batch.samples.toarray(), COUNTS)
    assert batch.labels == ["1", "2", "1", None, "2", None, "1"]
    assert batch.columns == {"row": [1, 2, 3, 4, 5, 6, 7]}
    assert source.layout == Layout("matrix", n_columns=3, zero_based=False)
    assert source.n_rows == 7


def test_svmlight_as_scikit_learn_writes_it(tmp_path):
    from sklearn.datasets import dump_svmlight_file

    X = sp.random_array((40, 9), density=0.3, random_state=np.random.default_rng(0))
    X = sp.csr_array(X.toarray())  # with indices of the width that scikit-learn before 1.7 writes
    for zero_based in (True, False):
        y = np.arange(40) % 3
        dump_svmlight_file(X, y, str(tmp_path / "t.svm"), zero_based=zero_based)
        source = open_source(tmp_path / "t.svm")
        batch = assert_streams(source)
        assert_allclose(batch.samples.toarray(), X.toarray())
        assert batch.labels == [str(label) for label in y]
        assert source.layout.zero_based is zero_based


def test_svmlight_columns_in_any_order(tmp_path):
    batch = read_all(open_source(write(tmp_path / "t.svm", "1 3:1 0:2\n2 1:4\n")))
    assert_array_equal(batch.samples.toarray(), [[2, 0, 0, 1], [0, 4, 0, 0]])


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (["+1", "-1", "0"], ["1", "-1", None]),  # SVM-light's transduction
        (["0", "-1"], [None, "-1"]),
        (["0", "0"], [None, None]),
        (["0", "1"], ["0", "1"]),  # two classes
        (["-1", "+1"], ["-1", "1"]),
        (["-1", "1", "2"], [None, "1", "2"]),  # the package's rule
        (["-1", "0", "1", "2"], [None, "0", "1", "2"]),
        (["1.0", "2.5"], ["1", "2.5"]),
        (["1,3", "2", ""], [("1", "3"), "2", None]),
        (["1,3", "2,", "-1"], [("1", "3"), ("2",), None]),
        (["nan", "3", "4"], [None, "3", "4"]),
    ],
)
def test_svmlight_labels(tmp_path, given, meant):
    path = write(tmp_path / "t.svm", "".join(f"{label} 1:1\n" for label in given))
    assert read_all(open_source(path), 1).labels == meant


def test_svmlight_with_words(tmp_path):
    path = write(tmp_path / "t.svm", "1 1:1\n2 2:1\n")
    words = write(tmp_path / "words.txt", "one\ntwo\nthree\n\n")
    source = open_source(path, words=words)
    assert source.layout.names == ("one", "two", "three")
    assert read_all(source).samples.shape == (2, 3)
    write(words, "one\n")
    assert "has 1 names" in problem(path, words=words)


@pytest.mark.parametrize(
    "bad",
    [
        "1 2",
        "1 a:2",
        "1 2:b",
        "1 2:",
        "1 :2",
        "1 1:23:4",
        "spam 1:2",
        "1 -1:2",
        "1 1.5:2",
        "1 1:2;3:4",
        "1 99999999999:1",
        "hello",
        "\0",
    ],
)
def test_svmlight_lines_that_cannot_be_parsed(tmp_path, bad):
    path = write(tmp_path / "t.svm", f"1 1:1\n\n{bad}\n")
    assert f"{path}, line 3 cannot be read" in problem(path, read=False)


def test_svmlight_with_a_column_twice(tmp_path):
    path = write(tmp_path / "t.svm", "1 1:1 2:1\n1 2:1 3:1\n2 3:1 4:2 3:5\n")
    assert f"{path}, line 3: column 3 is there twice" in problem(path)


@pytest.mark.parametrize("value", ["-1", "nan", "inf"])
def test_svmlight_entries(tmp_path, value):
    path = write(tmp_path / "t.svm", f"# comment\n1 1:1\n2 4:2 7:{value}\n")
    sentence = problem(path)
    assert f"{path}, line 3, column 7" in sentence
    assert "entries must be 0 or larger" in sentence


def test_svmlight_without_any_entry(tmp_path):
    assert "no 'column:value'" in problem(write(tmp_path / "t.svm", "1\n2\n"))


def test_svmlight_is_read_in_bounded_memory(tmp_path):
    line = "1 " + " ".join(f"{j}:1" for j in range(1, 101)) + "\n"
    path = write(tmp_path / "t.svm", line * 5_000)

    def peak(size):
        tracemalloc.start()
        for _ in source.batches(size):
            pass
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    source = open_source(path)
    assert 5 * peak(100) < peak(5_000)


# matrices


def save_matrix(path):
    if path.name.startswith("sparse") and path.suffix == ".npz":
        sp.save_npz(path, sp.csr_array(COUNTS))
    elif path.name.startswith("columns"):
        sp.save_npz(path, sp.csc_matrix(COUNTS.astype(np.float32)))
    elif path.name.startswith("named"):
        np.savez(path, X=COUNTS, other=np.arange(3))
    elif path.suffix == ".npz":
        np.savez_compressed(path, COUNTS.astype(np.float32))
    elif path.suffix == ".npy":
        np.save(path, COUNTS.astype(np.float32))
    elif path.suffix == ".gz":
        save_matrix(path.with_suffix(""))
        path.write_bytes(gzip.compress(path.with_suffix("").read_bytes()))
    else:
        matrix = sp.coo_array(COUNTS) if path.name.startswith("sparse") else COUNTS.astype(float)
        scipy.io.mmwrite(path, matrix)
    return path


MATRICES = [
    "sparse.npz",
    "columns.npz",
    "named.npz",
    "only.npz",
    "dense.npy",
    "sparse.mtx",
    "dense.mtx",
    "sparse.mtx.gz",
]


@pytest.mark.parametrize("name", MATRICES)
def test_a_matrix(tmp_path, name):
    path = save_matrix(tmp_path / name)
    labels = write(tmp_path / "labels.txt", "\n".join(KINDS) + "\n")
    words = write(tmp_path / "words.txt", "one\ntwo\nthree\n")
    source = open_source(path, labels=labels, words=words)
    batch = assert_streams(source)
    assert sp.issparse(batch.samples) == name.startswith(("sparse", "columns"))
    assert not sp.issparse(batch.samples) or batch.samples.format == "csr"
    assert batch.samples.dtype == (
        np.float32 if name in {"columns.npz", "only.npz", "dense.npy"} else np.float64
    )
    assert_array_equal(dense(batch.samples), COUNTS)
    assert batch.labels == LABELS
    assert batch.columns == {"row": [1, 2, 3, 4, 5, 6, 7]}
    assert source.n_rows == 7
    assert source.layout == Layout("matrix", names=("one", "two", "three"), n_columns=3)


def test_a_matrix_without_labels(tmp_path):
    batch = read_all(open_source(save_matrix(tmp_path / "dense.npy")))
    assert batch.labels == 7 * [None]


def test_labels_in_the_file_of_the_matrix(tmp_path):
    np.savez(tmp_path / "t.npz", X=COUNTS, y=np.array(KINDS))
    assert read_all(open_source(tmp_path / "t.npz")).labels == LABELS
    others = write(tmp_path / "labels.txt", "z\n" * 7)
    assert read_all(open_source(tmp_path / "t.npz", labels=others)).labels == 7 * ["z"]
    np.savez(tmp_path / "t.npz", data=COUNTS, y=np.arange(6))
    assert "has 6 labels, and" in problem(tmp_path / "t.npz")


@pytest.mark.parametrize(
    ("array", "meant"),
    [
        (np.array([0, 1, -1, 2, 0, 1, 2]), ["0", "1", None, "2", "0", "1", "2"]),
        (np.array([1, 1, -1, 1, -1, 1, 1]), ["1", "1", "-1", "1", "-1", "1", "1"]),
        (np.array([1, 1, np.nan, 2, 2, 2, 2.5]), ["1", "1", None, "2", "2", "2", "2.5"]),
        (np.array(["a", "", "b", "a", "a", "a", "nan"]), ["a", None, "b", "a", "a", "a", None]),
        (np.array([b"a", b"b", b"", b"a", b"a", b"a", b"a"]), ["a", "b", None, *4 * ["a"]]),
        (
            np.array([[1, 0], [0, 0], [-1, -1], [1, 1], [0, 1], [np.nan, np.nan], [1, 0]]),
            [("0",), (), None, ("0", "1"), ("1",), None, ("0",)],
        ),
        (np.array([[3], [4], [3], [4], [3], [4], [-1]]), ["3", "4", "3", "4", "3", "4", None]),
    ],
)
def test_labels_in_an_array(tmp_path, array, meant):
    np.save(tmp_path / "labels.npy", array)
    source = open_source(save_matrix(tmp_path / "dense.npy"), labels=tmp_path / "labels.npy")
    assert read_all(source).labels == meant


def test_labels_in_a_sparse_indicator(tmp_path):
    Y = np.zeros((7, 12), dtype=int)
    Y[0, [1, 11]] = 1
    Y[3] = -1
    sp.save_npz(tmp_path / "labels.npz", sp.csr_array(Y))
    path = save_matrix(tmp_path / "sparse.mtx")
    labels = read_all(open_source(path, labels=tmp_path / "labels.npz")).labels
    assert labels == [("1", "11"), (), (), None, (), (), ()]
    Y[3, 4] = 0
    sp.save_npz(tmp_path / "labels.npz", sp.csr_array(Y))
    assert "labels.npz, row 4" in problem(path, labels=tmp_path / "labels.npz")


@pytest.mark.parametrize("array", [np.full((7, 2), 2), np.zeros((7, 2, 2)), np.zeros(7, "M8[s]")])
def test_arrays_that_are_no_labels(tmp_path, array):
    np.save(tmp_path / "labels.npy", array)
    path = save_matrix(tmp_path / "dense.npy")
    assert "labels.npy" in problem(path, labels=tmp_path / "labels.npy")


def test_lines_of_labels(tmp_path):
    path = save_matrix(tmp_path / "dense.npy")
    labels = write(tmp_path / "y.txt", "\ufeffa|b\r\n\r\n b\r\n\r\na\r\na\r\n\r\n\r\n\r\n")
    assert read_all(open_source(path, labels=labels, label_sep="|")).labels == [
        ("a", "b"),
        None,
        ("b",),
        None,
        ("a",),
        ("a",),
        None,
    ]
    np.savetxt(labels, [0, 1, 2, -1, 0, 1, 2])
    meant = ["0", "1", "2", None, "0", "1", "2"]
    assert read_all(open_source(path, labels=labels)).labels == meant


def test_labels_of_another_length(tmp_path):
    path = save_matrix(tmp_path / "dense.npy")
    labels = write(tmp_path / "y.txt", "a\n" * 6)
    assert problem(path, labels=labels) == (
        f"{labels} has 6 labels, and {path} has 7 rows; give one a row."
    )
    write(labels, "a\n" * 3)
    assert "transpose" in problem(path, labels=labels)


@pytest.mark.parametrize("option", ["labels", "words"])
def test_files_beside_a_matrix_that_cannot_be_read(tmp_path, option):
    path = save_matrix(tmp_path / "dense.npy")
    beside = tmp_path / "beside.txt"
    assert problem(path, **{option: beside}) == f"There is no file {beside}."
    assert "beside.txt is empty" in problem(path, **{option: write(beside, "")})
    assert "beside.txt is empty" in problem(path, **{option: write(beside, "\n\n")})
    assert "not UTF-8 at line 2" in problem(path, **{option: write(beside, "a\né", "latin-1")})
    assert "is a folder" in problem(path, **{option: tmp_path})


def test_words_of_another_number(tmp_path):
    path = save_matrix(tmp_path / "dense.npy")
    words = write(tmp_path / "words.txt", "one\ntwo\n")
    assert f"{words} has 2 names, and {path} has 3 columns" in problem(path, words=words)
    assert "line 2 is blank" in problem(path, words=write(words, "one\n\nthree\n"))


@pytest.mark.parametrize("name", MATRICES)
def test_a_matrix_cut_short(tmp_path, name):
    path = save_matrix(tmp_path / name)
    content = path.read_bytes()
    for keep in (3, len(content) // 2, len(content) - 4):
        path.write_bytes(content[:keep])
        assert f"{path} is cut short or is no" in problem(path)


@pytest.mark.parametrize("name", ["t.npz", "t.npy", "t.mtx", "t.h5ad", "t.parquet"])
def test_a_file_of_something_else(tmp_path, name):
    assert f"{tmp_path / name} is cut short or is no" in problem(write(tmp_path / name, "hello\n"))


def test_a_matrix_whose_indices_are_wrong(tmp_path):
    np.savez(
        tmp_path / "t.npz",
        format=b"csr",
        shape=(2, 3),
        data=np.ones(2),
        indices=np.array([0, 10**6]),
        indptr=np.array([0, 1, 2]),
    )
    assert "is no npz file" in problem(tmp_path / "t.npz")


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize(
    ("storage", "field"),
    [
        (np.asarray, "real"),
        (np.asarray, "integer"),
        (sp.coo_array, "real"),
        (sp.coo_array, "integer"),
        (sp.coo_array, "pattern"),
    ],
)
def test_matrix_market_as_scipy_writes_it(tmp_path, symmetric, storage, field):
    X = np.random.default_rng(0).integers(0, 3, (6, 6)) + 0.0
    X = X + X.T if symmetric else X
    X = np.sign(X) if field == "pattern" else X
    symmetry = "symmetric" if symmetric else "general"
    scipy.io.mmwrite(
        tmp_path / "t.mtx", storage(X), comment="by a test", field=field, symmetry=symmetry
    )
    assert_array_equal(dense(read_all(open_source(tmp_path / "t.mtx")).samples), X)


MTX = "%%MatrixMarket matrix coordinate real general\n"


@pytest.mark.parametrize(
    "bad",
    [
        MTX.replace("M", "\xff", 1) + "2 2 1\n1 1 1\n",
        MTX,
        MTX + "2 2\n1 1 1\n",
        MTX + "2 2 1\n",
        MTX + "2 2 1\n1 1 x\n",
        MTX + "2 2 1\n1 1\n",
        MTX + "2 2 1\n1 3 1\n",
        MTX + "2 2 1\n0 1 1\n",
        MTX + "2 2 1\n1.5 1 1\n",
        MTX + "2 2 1\n1 1 1\n2 2 2\n",
        MTX + "2 2 1\n1 1 1\x14",  # SciPy's reader ends the interpreter
        MTX.replace("coordinate", "array") + "2 2\n1\n2\n3\n",
        MTX.replace("coordinate", "array").replace("general", "symmetric") + "2 2\n1\n2\n",
        MTX.replace("coordinate", "heap") + "2 2 1\n1 1 1\n",
    ],
)
def test_broken_matrix_market_files(tmp_path, bad):
    path = write(tmp_path / "t.mtx", bad, "latin-1")
    assert f"{path} is cut short or is no Matrix Market file" in problem(path)


def test_a_complex_matrix_market_file(tmp_path):
    path = write(tmp_path / "t.mtx", MTX.replace("real", "complex") + "1 1 1\n1 1 1 0\n")
    assert "complex entries" in problem(path)


class Bomb:
    """What would show that something was unpickled."""

    def __reduce__(self):
        return (pytest.fail, ("unpickled",))


def test_nothing_is_unpickled(tmp_path):
    bombs = np.array([[Bomb(), 1]], dtype=object)
    np.save(tmp_path / "t.npy", bombs, allow_pickle=True)
    np.savez(tmp_path / "t.npz", X=bombs)
    np.savez(tmp_path / "y.npz", X=COUNTS, y=bombs)
    for name in ("t.npy", "t.npz", "y.npz"):
        assert "pickled Python objects" in problem(tmp_path / name)
    path = save_matrix(tmp_path / "dense.npy")
    assert "pickled Python objects" in problem(path, labels=tmp_path / "t.npy")


@pytest.mark.parametrize("value", [-1, np.nan, np.inf])
@pytest.mark.parametrize("name", ["t.npz", "t.npy", "t.mtx"])
def test_entries_of_a_matrix(tmp_path, name, value):
    X = COUNTS.astype(float)
    X[4, 2] = value
    if name == "t.npz":
        sp.save_npz(tmp_path / name, sp.csr_array(X))
    elif name == "t.npy":
        np.save(tmp_path / name, X)
    else:
        scipy.io.mmwrite(tmp_path / name, sp.coo_array(X))
    sentence = problem(tmp_path / name)
    assert f"{tmp_path / name}, row 5, column 3" in sentence
    assert "entries must be 0 or larger" in sentence
    words = write(tmp_path / "words.txt", "one\ntwo\nthree\n")
    assert "row 5, column 'three'" in problem(tmp_path / name, words=words)


@pytest.mark.parametrize(
    "array",
    [
        np.zeros(3),
        np.zeros((2, 2, 2)),
        np.zeros((0, 3)),
        np.zeros((3, 0)),
        np.array([["a"]]),
        np.array([[1j]]),
        np.zeros((2, 2), "M8[s]"),
    ],
)
@pytest.mark.parametrize("name", ["t.npz", "t.npy"])
def test_arrays_that_are_no_matrix_of_numbers(tmp_path, array, name):
    (np.save if name == "t.npy" else np.savez)(tmp_path / name, array)
    assert str(tmp_path / name) in problem(tmp_path / name)


def test_several_arrays(tmp_path):
    np.savez(tmp_path / "t.npz", a=COUNTS, b=COUNTS)
    assert "has the arrays a, b; name the matrix X" in problem(tmp_path / "t.npz")
    np.savez(tmp_path / "t.npz")
    assert "has no arrays" in problem(tmp_path / "t.npz")


@pytest.mark.parametrize(
    ("name", "options", "hint"),
    [
        ("dense.npy", {"label": "y"}, "--labels FILE"),
        ("dense.npy", {"text": "t"}, "--text"),
        ("t.csv", {"labels": "y.txt", "text": "body"}, "--label COLUMN"),
        ("t.csv", {"words": "y.txt", "text": "body"}, "--words"),
        ("t.svm", {"label": "y"}, "begin with their labels"),
    ],
)
def test_options_that_do_not_go_with_a_format(tmp_path, monkeypatch, name, options, hint):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "y.txt", "a\n")
    save_matrix(tmp_path / "dense.npy")
    write_csv(tmp_path / "t.csv")
    write(tmp_path / "t.svm", SVM)
    assert hint in problem(tmp_path / name, **options)


# h5ad


def save_h5ad(path, X=None, genes=("g1", "g2", "g3"), **obs):
    import anndata
    import pandas as pd

    X = sp.csr_matrix(COUNTS.astype(np.float32)) if X is None else X
    cells = pd.DataFrame(obs, index=[f"cell{i}" for i in range(X.shape[0])])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = anndata.AnnData(X, obs=cells, var=pd.DataFrame(index=list(genes)))
        data.write_h5ad(path)
    return path


@pytest.mark.parametrize("form", ["csr", "csc", "dense"])
@pytest.mark.parametrize("categorical", [True, False])
def test_h5ad(tmp_path, form, categorical):
    import pandas as pd

    X = COUNTS.astype(np.float32)
    X = X if form == "dense" else sp.csr_matrix(X).asformat(form)
    kinds = pd.Categorical(LABELS) if categorical else KINDS
    source = open_source(save_h5ad(tmp_path / "t.h5ad", X, kind=kinds), label="kind")
    batch = assert_streams(source)
    assert sp.issparse(batch.samples) == (form != "dense")
    assert batch.samples.dtype == np.float32
    assert_array_equal(dense(batch.samples), COUNTS)
    assert batch.labels == LABELS
    assert batch.columns == {"cell": [f"cell{i}" for i in range(7)]}
    assert source.n_rows == 7
    assert source.layout == Layout("matrix", label="kind", names=("g1", "g2", "g3"), n_columns=3)


def test_h5ad_problems(tmp_path):
    path = save_h5ad(tmp_path / "t.h5ad", kind=KINDS, batch=KINDS)
    assert f"The obs of {path} has no column 'nope'; its columns are kind, batch." == problem(
        path, label="nope"
    )
    assert "--text" in problem(path, text="kind")
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    assert "is cut short or is no h5ad file" in problem(path)


@pytest.mark.parametrize("value", [-1, np.nan, np.inf])
def test_h5ad_entries(tmp_path, value):
    X = sp.csr_matrix(COUNTS.astype(float))
    X.data[3] = value
    sentence = problem(save_h5ad(tmp_path / "t.h5ad", X))
    assert "row 4, column 'g2'" in sentence
    assert "entries must be 0 or larger" in sentence


def test_an_hdf5_file_that_is_no_h5ad(tmp_path):
    import h5py

    with h5py.File(tmp_path / "t.h5ad", "w") as file:
        file["something"] = [1, 2]
    assert str(tmp_path / "t.h5ad") in problem(tmp_path / "t.h5ad")


# images


def save_image(path, pixels, **options):
    from PIL import Image

    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.asarray(pixels)).save(path, **options)
    return path


def drawing(ink, background, at):
    pixels = np.full((6, 4), background, dtype=np.uint8)
    pixels[2 + at, 1:3] = ink
    return pixels


def image_folder(folder, ink=255, background=0):
    for name, at in {"a/2.png": 0, "a/1.bmp": 1, "b/1.gif": 1, "b/sub/2.tiff": 0}.items():
        save_image(folder / name, drawing(ink, background, at))
    save_image(folder / "unlabeled" / "x.webp", drawing(ink, background, 0), lossless=True)
    save_image(folder / "c" / "x.JPG", drawing(ink, background, 0), quality=100)
    save_image(folder / "Unlabelled" / "y.png", drawing(ink, background, 1))
    write(folder / "a" / "notes.txt", "no image")
    write(folder / "a" / "._2.png", "left by a system")
    write(folder / "readme.md", "no image")
    return folder


FILES = ["Unlabelled/y.png", "a/1.bmp", "a/2.png", "b/1.gif", "b/sub/2.tiff", "c/x.JPG"]


@pytest.mark.parametrize(("ink", "background"), [(255, 0), (0, 255)])
def test_images(tmp_path, ink, background):
    source = open_source(image_folder(tmp_path / "images", ink, background))
    batch = assert_streams(source)
    assert batch.columns == {"file": [*FILES, "unlabeled/x.webp"]}
    assert batch.labels == [None, "a", "a", "b", "b", "c", None]
    assert batch.samples.dtype == np.float32
    # whatever was the ink, it is large
    assert_allclose(batch.samples[2].reshape(6, 4), drawing(1, 0, 0))
    assert_allclose(batch.samples[1].reshape(6, 4), drawing(1, 0, 1))
    assert_allclose(batch.samples[5].reshape(6, 4), drawing(1, 0, 0), atol=0.1)
    assert source.layout == Layout(
        "image", n_columns=24, image_shape=(6, 4), invert=background == 255
    )
    assert source.n_rows == 7


def test_images_are_made_small_and_alike(tmp_path):
    save_image(tmp_path / "i" / "a" / "1.png", np.zeros((100, 200), np.uint8))
    save_image(tmp_path / "i" / "b" / "1.png", np.full((30, 30, 3), 255, np.uint8))
    source = open_source(tmp_path / "i")
    assert source.layout.image_shape == (32, 64)
    assert read_all(source).samples.shape == (2, 32 * 64)


def test_images_of_all_kinds_of_pixels(tmp_path):
    gray = np.array([[0, 255], [0, 128]], dtype=np.uint8)
    transparent = np.zeros((2, 2, 4), np.uint8)  # black, but where it is opaque only
    transparent[..., 3] = 255 - gray
    save_image(tmp_path / "i" / "a" / "1.png", gray)
    save_image(tmp_path / "i" / "a" / "2.png", np.stack(3 * [gray], axis=2))
    save_image(tmp_path / "i" / "a" / "3.png", gray.astype(np.uint16) * 257)
    save_image(tmp_path / "i" / "b" / "4.png", transparent)
    save_image(tmp_path / "i" / "b" / "5.png", gray > 200)
    samples = read_all(open_source(tmp_path / "i")).samples
    for row in samples[:4]:
        assert_allclose(row, gray.ravel() / 255, atol=1e-2)
    assert_allclose(samples[4], [0, 1, 0, 0])


def test_an_image_that_cannot_be_decoded(tmp_path):
    folder = image_folder(tmp_path / "images")
    content = (folder / "a" / "2.png").read_bytes()
    for bad in (b"", b"hello", content[:40], content[:-30]):
        (folder / "a" / "2.png").write_bytes(bad)
        assert f"{folder / 'a' / '2.png'} is cut short or is no image" in problem(folder)


def test_a_folder_without_images(tmp_path):
    write(tmp_path / "notes.txt", "no image")
    (tmp_path / "a").mkdir()
    assert f"The folder {tmp_path} has no images" in problem(tmp_path)


def test_a_loose_image_when_fitting(tmp_path):
    folder = image_folder(tmp_path / "images")
    loose = save_image(folder / "z.png", drawing(255, 0, 0))
    assert f"{loose} lies outside" in problem(folder)


# reading again what a model was fitted on

LAYOUTS = [
    Layout("text", text="body", label="kind", label_sep=";"),
    Layout("matrix", names=("a", "é"), n_columns=2, zero_based=False),
    Layout("image", n_columns=6, image_shape=(2, 3), invert=True),
]


@pytest.mark.parametrize("name", TABLES)
def test_texts_like_those_of_a_model(tmp_path, name):
    like = open_source(write_csv(tmp_path / "fit.csv"), text="body", label="kind").layout
    source = open_source(TABLES[name](tmp_path / name), like=like)
    batch = assert_streams(source)
    assert batch.samples == TEXTS
    assert batch.labels == LABELS


def test_the_label_column_may_be_absent_and_what_is_given_comes_first(tmp_path):
    like = Layout("text", text="body", label="kind", label_sep=";")
    path = write(tmp_path / "new.csv", "title,body,topic\nt,hello,a;b\n")
    batch = read_all(open_source(path, like=like))
    assert batch.samples == ["hello"]
    assert batch.labels == [None]
    batch = read_all(open_source(path, like=like, text="title", label="topic"))
    assert batch.samples == ["t"]
    assert batch.labels == [("a", "b")]
    assert "no column 'kind'" in problem(path, like=like, label="kind")
    like = Layout("text", text="nope")
    assert "no column 'nope'; its columns are title, body, topic" in problem(path, like=like)


def test_the_kind_must_be_that_of_the_model(tmp_path):
    text, matrix, image = LAYOUTS
    npy = save_matrix(tmp_path / "dense.npy")
    csv = write_csv(tmp_path / "t.csv")
    svm = write(tmp_path / "t.svm", SVM)
    folder = image_folder(tmp_path / "images")
    assert problem(npy, like=text) == f"The model reads texts, and {npy} is a matrix."
    assert problem(svm, like=image) == f"The model reads images, and {svm} is a matrix."
    assert "reads a matrix" in problem(csv, like=matrix, text="body")
    assert "reads images" in problem(csv, like=image)
    assert problem(folder, like=text) == (
        f"The model reads texts, and {folder} is a folder of images."
    )
    h5ad = save_h5ad(tmp_path / "t.h5ad")
    assert "reads texts" in problem(h5ad, like=text)


def test_numeric_columns_are_found_by_name(tmp_path):
    like = open_source(write(tmp_path / "fit.csv", NUMBERS), label="y").layout
    path = write(tmp_path / "new.jsonl", '{"v": 1, "name": "row one", "u": 2}\n')
    source = open_source(path, like=like)
    assert_allclose(read_all(source).samples, [[2, 1]])
    assert read_all(source).columns == {"v": [1], "name": ["row one"], "u": [2]}
    assert source.layout.names == like.names
    path = write(tmp_path / "new.csv", "v,w\n1,2\n")
    assert problem(path, like=like) == f"{path} lacks 1 of the 2 columns of the model: u."


def test_matrices_must_have_the_columns_of_the_model(tmp_path):
    like = Layout("matrix", n_columns=4)
    for name in ("sparse.npz", "dense.npy", "sparse.mtx"):
        path = save_matrix(tmp_path / name)
        assert f"{path} has 3 columns, and the model was fitted on 4" in problem(path, like=like)
    path = write(tmp_path / "t.csv", "a,b,c\n1,2,3\n")
    assert "has 3 columns" in problem(path, like=like)
    source = open_source(path, like=Layout("matrix", n_columns=3, label="y"))
    assert_allclose(read_all(source).samples, [[1, 2, 3]])


def test_a_matrix_with_words_in_another_order(tmp_path):
    like = Layout("matrix", names=("three", "one"), n_columns=2)
    words = write(tmp_path / "words.txt", "one\ntwo\nthree\n")
    for name in ("sparse.npz", "dense.npy"):
        source = open_source(save_matrix(tmp_path / name), words=words, like=like)
        assert_array_equal(dense(assert_streams(source).samples), COUNTS[:, [2, 0]])


def test_svmlight_like_that_of_a_model(tmp_path):
    path = write(tmp_path / "t.svm", "1 1:1\n2 2:1\n")
    source = open_source(path, like=Layout("matrix", n_columns=4, zero_based=False))
    assert_array_equal(read_all(source).samples.toarray(), [[1, 0, 0, 0], [0, 1, 0, 0]])
    source = open_source(path, like=Layout("matrix", n_columns=4, zero_based=True))
    assert_array_equal(read_all(source).samples.toarray(), [[0, 1, 0, 0], [0, 0, 1, 0]])
    sentence = problem(path, like=Layout("matrix", n_columns=1, zero_based=False))
    assert "line 2: there is a column 2, and the columns here go from 1 to 1" in sentence
    write(path, "1 1:1\n2 0:1\n")
    sentence = problem(path, like=Layout("matrix", n_columns=4, zero_based=False))
    assert "line 2: there is a column 0" in sentence
    source = open_source(path, like=Layout("matrix", n_columns=3))  # fitted on another format
    assert_array_equal(read_all(source).samples.toarray(), [[0, 1, 0], [1, 0, 0]])


def test_h5ad_genes_are_found_by_name(tmp_path):
    like = Layout("matrix", label="kind", names=("g3", "g1"), n_columns=2)
    for form in (sp.csr_matrix, sp.csc_matrix, np.asarray):
        path = save_h5ad(tmp_path / "t.h5ad", form(COUNTS.astype(np.float32)))
        batch = assert_streams(open_source(path, like=like))
        assert_array_equal(dense(batch.samples), COUNTS[:, [2, 0]])
        assert batch.labels == 7 * [None]
    like = Layout("matrix", names=("g3", "nope"), n_columns=2)
    assert "lacks 1 of the 2 columns of the model: nope" in problem(path, like=like)
    path = save_h5ad(tmp_path / "t.h5ad", genes=("g1", "g3", "g3"))
    like = Layout("matrix", names=("g3", "g1"), n_columns=2)
    assert "two columns named 'g3'" in problem(path, like=like)


def test_images_like_those_of_a_model(tmp_path):
    folder = image_folder(tmp_path / "images")
    save_image(folder / "z.png", np.zeros((9, 9), np.uint8))
    source = open_source(folder, like=LAYOUTS[2])
    batch = read_all(source)
    assert batch.samples.shape == (8, 6)
    assert batch.columns["file"][0] == "z.png"
    assert batch.labels[:3] == [None, None, "a"]
    assert_allclose(batch.samples[0], 1)  # black is turned, as it was for the model


# labels as estimators take them


def a_source(tmp_path, **options):
    path = write_csv(tmp_path / "t.csv")
    return open_source(path, text="body", **options)


def test_single_labels_as_targets(tmp_path):
    y, names = targets(["b", None, "a", "b"], a_source(tmp_path))
    assert y.dtype == object
    assert y.tolist() == ["b", None, "a", "b"]
    assert names == ["a", "b"]


def test_several_labels_as_targets(tmp_path):
    y, names = targets([("b", "a"), None, "c", ()], a_source(tmp_path))
    assert names == ["a", "b", "c"]
    assert y.dtype == np.int64
    assert_array_equal(y, [[1, 1, 0], [-1, -1, -1], [0, 0, 1], [0, 0, 0]])


def test_minus_one_among_numbers_is_unlabeled(tmp_path):
    assert settle_minus_one(["-1", "0", "2"]) == [None, "0", "2"]
    assert settle_minus_one(["-1", "1"]) == ["-1", "1"]
    assert settle_minus_one(["-1", "a"]) == ["-1", "a"]
    assert settle_minus_one(["-1", "1", None]) == ["-1", "1", None]
    y, names = targets(["-1", "0", "2"], a_source(tmp_path))
    assert y.tolist() == [None, "0", "2"]
    assert names == ["0", "2"]


def test_targets_suit_the_estimators(tmp_path):
    from marginparts.labels import encode_labels

    y, names = targets(LABELS, a_source(tmp_path))
    encoded = encode_labels(y)
    assert encoded.classes.tolist() == names
    assert_array_equal(encoded.labeled, [label is not None for label in LABELS])
    y, _ = targets([("a",), None, ("b",)], a_source(tmp_path))
    assert_array_equal(encode_labels(y).labeled, [True, False, True])


@pytest.mark.parametrize("labels", [[None, None], [(), None], []])
def test_no_label_at_all(tmp_path, labels):
    with pytest.raises(FileProblemError, match=r"t\.csv has no label: fill in the column 'kind'"):
        targets(labels, a_source(tmp_path, label="kind"))
    with pytest.raises(FileProblemError, match="--label COLUMN"):
        targets(labels, a_source(tmp_path))


def test_one_class_only(tmp_path):
    with pytest.raises(FileProblemError, match="have the label 'a'"):
        targets(["a", None, "a"], a_source(tmp_path, label="kind"))


def test_columns_can_be_left_out(tmp_path):
    batch = read_all(a_source(tmp_path), keep_columns=False)
    assert batch.columns == {}
    assert batch.samples == TEXTS
