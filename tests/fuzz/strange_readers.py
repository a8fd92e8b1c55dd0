"""People's files with something wrong in them: a sentence, or finite rows that are 0 or larger."""

import io
import json
from functools import partial

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


def h5ad(path, rng):
    """Cells by rows or columns, one of whose arrays is another."""
    cells = sp.csr_matrix(X) if rng.random() < 0.5 else sp.csc_matrix(X)
    anndata.AnnData(cells).write_h5ad(path)
    with h5py.File(path, "a") as file:
        name = ("data", "indices", "indptr")[rng.integers(3)]
        changed = changed_array(rng, file[f"X/{name}"][:])
        if changed.dtype.kind in "iuf" and changed.size < 2**20:
            del file[f"X/{name}"]
            file[f"X/{name}"] = changed


def flipped(path, rng, content):
    """Change, leave out or repeat some bytes."""
    content = bytearray(content)
    for _ in range(rng.integers(1, 5)):
        content = content or bytearray(b"\n")
        place = int(rng.integers(len(content)))
        way = rng.integers(3)
        if way == 0:
            content[place] = int(rng.integers(256))
        elif way == 1:
            del content[place : place + int(rng.integers(1, 20))]
        else:
            piece = content[place : place + int(rng.integers(1, 20))]
            content[place:place] = piece
    path.write_bytes(bytes(content) or b"\n")


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
    """A table of numbers, with other bytes."""
    rows = [",".join("abcde"), *(",".join(f"{v:g}" for v in row) for row in X.toarray())]
    flipped(path, rng, "\n".join(rows).encode())


def packed(path, rng):
    """A zip file of one array, with other bytes."""
    out = io.BytesIO()
    np.savez(out, X=X.toarray())
    flipped(path, rng, out.getvalue())


def jsonl(path, rng):
    """One object a line, with other bytes."""
    rows = [json.dumps(dict(zip("abcde", row.tolist(), strict=True))) for row in X.toarray()]
    flipped(path, rng, "\n".join(rows).encode())


def parquet(path, rng):
    """A table of numbers with other bytes, mostly in its description at the end."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({name: X.toarray()[:, k] for k, name in enumerate("abcde")}), path)
    content = path.read_bytes()
    cut = len(content) // 2 if rng.random() < 0.7 else 0
    flipped(path, rng, content[cut:])
    path.write_bytes(content[:cut] + path.read_bytes())


def raw_h5ad(path, rng):
    """Cells with other bytes."""
    anndata.AnnData(sp.csr_matrix(X)).write_h5ad(path)
    flipped(path, rng, path.read_bytes())


def png(path, rng):
    """A folder of images, one of which has other bytes."""
    from PIL import Image

    folder = path.with_suffix("")
    for k in range(2):
        (folder / "ab"[k]).mkdir(parents=True, exist_ok=True)
        Image.fromarray((X.toarray() * 50).astype(np.uint8)).save(folder / "ab"[k] / "x.png")
    flipped(folder / "a" / "x.png", rng, (folder / "a" / "x.png").read_bytes())
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
