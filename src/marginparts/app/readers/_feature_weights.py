"""A file that says how much words, or other columns, count."""

import reprlib
from math import isfinite
from pathlib import Path

from marginparts.app.preparation import MOST_WEIGHT
from marginparts.app.readers._labels import label_of
from marginparts.app.readers._table_files import cells_by_name
from marginparts.files.atomic import FileProblemError


def read_feature_weights(path: Path, encoding: str = "utf-8") -> dict[str, float]:
    """Return the weight of each word in a table with the columns word and weight."""
    if not path.is_file():
        raise FileProblemError(f"There is no file {path}.")
    if path.suffix.lower() not in {".csv", ".tsv"}:
        raise FileProblemError(f"{path} must be a .csv or .tsv file with the columns word, weight.")
    found: dict[str, float] = {}
    for places, cells in cells_by_name(path, encoding, ("word", "weight")):
        for place, word, cell in zip(places, cells["word"], cells["weight"], strict=True):
            if (known := label_of(word)) is None:
                raise FileProblemError(f"{path}, line {place} lacks a word.")
            weight = _number(cell, path, place)
            if found.setdefault(str(known), weight) != weight:
                raise FileProblemError(f"{path} has two weights for {known!r}; leave out one.")
    return found


def _number(cell: object, path: Path, place: int) -> float:
    try:
        weight = float(str(cell))
    except ValueError:
        weight = -1.0
    if not (isfinite(weight) and 0 <= weight <= MOST_WEIGHT):
        raise FileProblemError(
            f"{path}, line {place} has the weight {reprlib.repr(cell)}; it must be a number from 0 "
            f"to {MOST_WEIGHT:g}."
        )
    return weight
