"""People's files with something wrong in them: a sentence, or finite rows that are 0 or larger."""

import csv as tables
import io
import json
import tempfile
from functools import cache, partial
from pathlib import Path

import anndata
import h5py
import numpy as np
import scipy.io
import scipy.sparse as sp
from attacking import Target

from marginparts import open_rows
from marginparts.app.readers import open_source
from marginparts.files.atomic import FileProblemError
from mutations import changed_array, is_a_sentence

RNG = np.random.default_rng(0)
X = sp.csr_array(RNG.integers(0, 5, (12, 5)) * (RNG.random((12, 5)) < 0.5), dtype=float)


def npz(path, rng):
    """A sparse matrix, one of whose arrays is another."""
    kind = ("csr", "csc", "coo", "bsr")[rng.integers(4)]
    sp.save_npz(path, X.asformat(kind) if kind != "bsr" else sp.bsr_array(X, blocksize=(2, 5)))
    with np.load(path) as found:
        arrays = dict(found)
    name = sorted(arrays)[rng.integers(len(arrays))]
    arrays[name] = changed_array(rng, arrays[name])
    np.savez(path, **arrays)


def npy(path, rng):
    """An array with another type, shape or entry."""
    np.save(path, changed_array(rng, X.toarray()))


@cache
def cells(kind):
    """Return the bytes of a file of cells, which takes longer to write than to read."""
    with tempfile.TemporaryDirectory() as folder:
        anndata.AnnData(kind(X)).write_h5ad(f"{folder}/x.h5ad")
        return Path(folder, "x.h5ad").read_bytes()


def h5ad(path, rng):
    """Cells by rows or columns, one of whose arrays is another."""
    path.write_bytes(cells(sp.csr_matrix if rng.random() < 0.5 else sp.csc_matrix))
    with h5py.File(path, "a") as file:
        name = ("data", "indices", "indptr")[rng.integers(3)]
        changed = changed_array(rng, file[f"X/{name}"][:])
        if changed.dtype.kind in "iuf" and changed.size < 2**20:
            del file[f"X/{name}"]
            file[f"X/{name}"] = changed


#: Bytes of one kind, one of which may stand for another so that a text stays well formed.
KINDS = (b"0123456789", b"abcdefghijklmnopqrstuvwxyz", b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", b" \t", b"+-")

#: What may stand in a cell of a table; half of it are numbers that people write.
CELLS = (
    0, 1, 2.5, "3", "4.0", "1e2", "0", " 5 ", 7, 1e-30, None, "", True, -1, "1e400", 1e300, "nan",
    "x", "3,5", "=1+1", "\u0663", '"', "x" * 5000, [], [1.0, 2.0], {"a": 1}, 2**70,
    "\x1b[31m", "-0",
)  # fmt: skip


def flipped(path, rng, content):
    """Change, leave out or repeat some bytes; half of the time for others of their kind only."""
    content, gentle = bytearray(content), rng.random() < 0.5
    for _ in range(rng.integers(1, 5)):
        content = content or bytearray(b"\n")
        place = int(rng.integers(len(content)))
        way = rng.integers(3)
        if gentle:
            alike = next((kind for kind in KINDS if content[place] in kind), None)
            content[place] = alike[rng.integers(len(alike))] if alike else content[place]
        elif way == 0:
            content[place] = int(rng.integers(256))
        elif way == 1:
            del content[place : place + int(rng.integers(1, 20))]
        else:
            piece = content[place : place + int(rng.integers(1, 20))]
            content[place:place] = piece
    path.write_bytes(bytes(content) or b"\n")


def changed_rows(rng):
    """Rows by column of which a cell, a row or a column is another, missing, or there twice."""
    rows = [dict(zip("abcde", row.tolist(), strict=True)) for row in X.toarray()]
    for _ in range(rng.integers(1, 4)):
        row, name = rows[rng.integers(len(rows))], "abcde"[rng.integers(5)]
        way = rng.integers(8)
        if way == 0:
            row.pop(name, None)
        elif way == 1:
            rows.append(dict(row))
        elif way == 2 and len(rows) > 1:
            rows.remove(row)
        elif way == 3:
            rows = [{k: v for k, v in each.items() if k != name} for each in rows]
        elif way == 4:
            cell = CELLS[rng.integers(len(CELLS))]
            rows = [{**each, name: cell} for each in rows]
        else:
            row[name] = CELLS[rng.integers(len(CELLS))]
    return rows


def mtx(path, rng):
    """Matrix Market, with other bytes."""
    out = io.BytesIO()
    scipy.io.mmwrite(out, sp.coo_matrix(X))
    flipped(path, rng, out.getvalue())


def svm(path, rng):
    """Svmlight, with other bytes."""
    rows = X.toarray()
    lines = [
        " ".join([str(i % 2), *(f"{j + 1}:{v:g}" for j, v in enumerate(row) if v)])
        for i, row in enumerate(rows)
    ]
    flipped(path, rng, "\n".join(lines).encode())


def csv(path, rng):
    """A table of numbers, with other cells or bytes."""
    rows = changed_rows(rng) if rng.random() < 0.5 else None
    if rows is None:
        lines = [",".join("abcde"), *(",".join(f"{v:g}" for v in row) for row in X.toarray())]
        flipped(path, rng, "\n".join(lines).encode())
        return
    names = list(dict.fromkeys(name for row in rows for name in row)) or ["a"]
    with path.open("w", newline="") as file:
        writer = tables.DictWriter(file, names, delimiter=",;\t"[rng.integers(3)])
        writer.writeheader()
        writer.writerows(rows)


def packed(path, rng):
    """A zip file of one array, with other bytes."""
    out = io.BytesIO()
    np.savez(out, X=X.toarray())
    flipped(path, rng, out.getvalue())


def jsonl(path, rng):
    """One object a line, with other cells or bytes."""
    if rng.random() < 0.5:
        path.write_text("\n".join(map(json.dumps, changed_rows(rng))))
        return
    rows = [json.dumps(dict(zip("abcde", row.tolist(), strict=True))) for row in X.toarray()]
    flipped(path, rng, "\n".join(rows).encode())


def parquet(path, rng):
    """A table with columns of other types, or other bytes, mostly in its description at the end."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {name: X.toarray()[:, k] for k, name in enumerate("abcde")}
    if rng.random() < 0.5:
        rows = changed_rows(rng)
        columns = {name: [row.get(name) for row in rows] for name in "abcde"}
        name, n = "abcde"[rng.integers(5)], len(rows)
        others = (
            pa.array(np.arange(n), pa.uint8()), pa.array(np.arange(n), pa.timestamp("s")),
            pa.array([b"1"] * n), pa.array(["1"] * n).dictionary_encode(), pa.nulls(n),
            pa.array([[1.0]] * n), pa.array([{"x": 1}] * n), pa.array(np.ones(n, np.float16)),
            pa.array([True] * n), pa.array(np.full(n, 2**63), pa.uint64()),
        )  # fmt: skip
        columns[name] = others[rng.integers(len(others))]
    arrays = {}
    for key, values in columns.items():
        try:
            arrays[key] = pa.array(values)
        except (pa.ArrowException, OverflowError):  # cells of several types
            arrays[key] = pa.array([str(value) for value in values])
    pq.write_table(pa.table(arrays), path, compression=("snappy", "gzip", None)[rng.integers(3)])
    if rng.random() < 0.5:
        content = path.read_bytes()
        cut = len(content) // 2 if rng.random() < 0.7 else 0
        flipped(path, rng, content[cut:])
        path.write_bytes(content[:cut] + path.read_bytes())


def raw_h5ad(path, rng):
    """Cells with other bytes."""
    flipped(path, rng, cells(sp.csr_matrix))


def png(path, rng):
    """A folder of images, one of which has other bytes."""
    from PIL import Image

    folder, out = path.with_suffix(""), io.BytesIO()
    Image.fromarray((X.toarray() * 50).astype(np.uint8)).save(out, "png")
    for letter in "ab":
        (folder / letter).mkdir(parents=True, exist_ok=True)
        (folder / letter / "x.png").write_bytes(out.getvalue())
    flipped(folder / "a" / "x.png", rng, out.getvalue())
    path.write_bytes(b"see the folder")


FORMATS = {
    "npz": npz, "npy": npy, "h5ad": h5ad, "mtx": mtx, "svm": svm, "csv": csv, "packed.npz": packed,
    "jsonl": jsonl, "parquet": parquet, "raw.h5ad": raw_h5ad, "png": png,
}  # fmt: skip


def look(path):
    """Read a file by both ways, and look at what comes out."""
    path = path.with_suffix("") if path.suffix == ".png" else path
    for batch in open_source(path).batches():
        rows = batch.samples
        if isinstance(rows, list):
            continue
        values = rows.data if sp.issparse(rows) else np.asarray(rows)
        assert np.isfinite(values).all()
        assert values.min(initial=0) >= 0
        assert np.isfinite(np.asarray(rows.sum(axis=0))).all()  # and touch every index
    if path.suffix in (".npz", ".npy"):
        open_rows(path.parent if path.suffix == ".npz" else path)


def attack_files(name, folder):
    """Files of one format."""
    path = folder / (f"x.{name}" if "." not in name else name)

    def attack(rng):
        FORMATS[name](path, rng)
        before = path.read_bytes()
        try:
            look(path)
        except FileProblemError as error:
            is_a_sentence(error, path if str(path) in str(error) else folder)
            return False
        assert path.read_bytes() == before
        return True

    return attack


#: Cases of the short form where they are not 100; 0 leaves a format to the long one.
SHORT = {"h5ad": 60, "raw.h5ad": 60, "png": 0}

TARGETS = {
    f"reader {name}": Target(
        partial(attack_files, name), SHORT.get(name, 100), both=name not in ("raw.h5ad", "parquet")
    )
    for name in FORMATS
}
