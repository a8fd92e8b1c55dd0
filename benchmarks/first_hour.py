"""From a CSV with a few labels to a labeled CSV and a page: seconds of each command, and how good.

    MARGINPARTS_DATA=path/to/data python benchmarks/first_hour.py

The 944 aviation reports that are there as texts, with one in five labeled (several labels each).
Each command has no option but the columns, the separator and the output. What is predicted for the
hidden labels is compared with a linear SVM on the same words, whose C is chosen by cross-validation
over the labeled reports. Then a million short texts are labeled, and the memory is measured.
"""

from __future__ import annotations

import csv
import gzip
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from common import parser
from marginparts import load
from marginparts.datasets import data_folder
from marginparts.labels import encode_labels
from marginparts.scores import quality
from marginparts.selection.folds import folds_of
from marginparts.svm.head import fit_head
from records import Table

COLUMNS = ("measured", "seconds", "f_measure", "samples", "peak_mib")

#: Costs tried for the SVM on the words.
COSTS = (0.1, 0.5, 2.0, 10.0, 50.0)


def reports(quick: bool) -> tuple[list[str], Any]:
    """Return the texts and their labels (n, 22)."""
    folder = data_folder(None) / "siam2007"
    with gzip.open(folder / "train_first944_raw.txt.gz", "rt", errors="replace") as file:
        texts = [line.split("~", 1)[1].strip() for line in file]
    Y = sp.load_npz(folder / "train_labels.npz")[: len(texts)].toarray().astype(int)
    return (texts[:200], Y[:200]) if quick else (texts, Y)


def write(path: Path, texts: list[str], Y: Any) -> None:
    """Write a table with the labels of one report in five."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["report", "causes"])
        for k, (text, row) in enumerate(zip(texts, Y, strict=True)):
            names = ";".join(f"label {j + 1}" for j in np.flatnonzero(row))
            writer.writerow([text, "" if k % 5 else names])


def command(table: Table, name: str, *args: str) -> float:
    """Run one command as a process; return its seconds."""
    program = shutil.which("marginparts")
    assert program is not None, "install the package first"
    began = time.perf_counter()
    subprocess.run([program, name, *args], check=True)
    seconds = time.perf_counter() - began
    table.add(measured=name, seconds=round(seconds, 2))
    print(f"{name}: {seconds:.1f} s", flush=True)
    return seconds


def svm_on_words(X: Any, Y: Any, labeled: Any) -> Any:
    """Return decision values of a linear SVM on the words themselves."""
    y = np.full_like(Y, -1)
    y[labeled] = Y[labeled]
    labels = encode_labels(y)
    rows = X[labeled]
    folds = folds_of(labels, 0)
    means = {C: np.mean([fold.score(rows, C) for fold in folds]) for C in COSTS}
    C = max(means, key=lambda cost: means[cost])
    return fit_head(rows, labels.take(labeled), C).values(X)


def predicted(path: Path, n_labels: int) -> Any:
    """Return the labels in a file that `predict` wrote, as an indicator."""
    with path.open(newline="", encoding="utf-8") as file:
        cells = [row["predicted"] for row in csv.DictReader(file)]
    found = np.zeros((len(cells), n_labels), dtype=bool)
    for row, cell in zip(found, cells, strict=True):
        row[[int(name.split()[1]) - 1 for name in cell.split(";") if name]] = True
    return found


def million(table: Table, folder: Path, words: list[str], n: int) -> None:
    """Label many short texts, and look at the memory."""
    rng = np.random.default_rng(0)
    share = 1 / np.arange(1, len(words) + 1)
    with (folder / "many.csv").open("w", encoding="utf-8") as file:
        file.write("id,report\n")
        for first in range(0, n, 10_000):
            drawn = rng.choice(len(words), size=(min(10_000, n - first), 12), p=share / share.sum())
            file.writelines(
                f"{first + k},{' '.join(words[j] for j in row)}\n" for k, row in enumerate(drawn)
            )
    seconds = command(
        table, "predict", str(folder / "reports.model"), str(folder / "many.csv"), "--out",
        str(folder / "many_labeled.csv"),
    )  # fmt: skip
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    table.add(measured="many", seconds=round(seconds, 2), samples=n, peak_mib=round(peak))
    print(f"{n} texts: {seconds:.1f} s, at most {peak:.0f} MiB in any command", flush=True)


def main() -> None:
    options = parser(__doc__).parse_args()
    table = Table("first_hour", COLUMNS, options.quick)
    texts, Y = reports(options.quick)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        data, model = str(folder / "reports.csv"), str(folder / "reports.model")
        labeled_csv, page = folder / "labeled.csv", str(folder / "page.html")
        write(Path(data), texts, Y)
        columns = ("--text", "report", "--label", "causes", "--label-sep", ";")
        seconds = command(table, "fit", data, *columns, "--out", model)
        seconds += command(table, "predict", model, data, "--out", str(labeled_csv))
        seconds += command(table, "topics", model)
        seconds += command(table, "next", model, data)
        seconds += command(table, "report", model, data, "--out", page)
        table.add(measured="all five", seconds=round(seconds, 2))
        print(f"all five: {seconds:.1f} s", flush=True)

        labeled = np.arange(0, len(texts), 5)
        hidden = np.setdiff1d(np.arange(len(texts)), labeled)
        fitted = load(model)
        values = svm_on_words(fitted.prepare(texts), Y, labeled)
        ours = quality(predicted(labeled_csv, Y.shape[1])[hidden] - 0.5, encode_labels(Y[hidden]))
        raw = quality(values[hidden], encode_labels(Y[hidden]))
        for name, score in (("ours, hidden labels", ours), ("SVM on the words", raw)):
            table.add(measured=name, f_measure=round(score, 4), samples=len(hidden))
            print(f"{name}: F {score:.3f} on {len(hidden)} reports", flush=True)
        million(table, folder, fitted.preparation.words, 20_000 if options.quick else 1_000_000)


if __name__ == "__main__":
    sys.exit(main())
