"""A file of seed words: a table with the columns class, word, maybe strength; JSON or YAML."""

import json
from pathlib import Path
from typing import Any

from marginparts.app.readers._labels import label_of
from marginparts.app.readers._table_files import DelimitedFile
from marginparts.files.atomic import FileProblemError
from marginparts.files.columns import check_column
from marginparts.files.streams import opened_text, optional_library

#: The words of each class, with their strengths.
SeedWords = dict[str, dict[str, float]]


def read_seeds(path: Path, encoding: str = "utf-8") -> SeedWords:
    """Return the seeds in a file.

    JSON and YAML are as in Python: a list, or words with their strengths, for each class.
    """
    if not path.is_file():
        raise FileProblemError(f"There is no file {path}.")
    ending = path.suffix.lower()
    if ending == ".json":
        return _of_json(path, encoding)
    if ending in {".yaml", ".yml"}:
        return _of_yaml(path, encoding)
    if ending not in {".csv", ".tsv"}:
        raise FileProblemError(f"{path} must be a .csv, .tsv, .json or .yaml file of seeds.")
    table = DelimitedFile(path, encoding, "\t" if ending == ".tsv" else None)
    for name in ("class", "word"):
        check_column(str(path), name, table.columns)
    found: SeedWords = {}
    for rows in table.rows(10_000):
        cells = dict(zip(table.columns, rows.cells, strict=True))
        strengths = cells.get("strength", [None] * len(rows.places))
        for place, *row in zip(rows.places, cells["class"], cells["word"], strengths, strict=True):
            label, word, strength = (label_of(cell) for cell in row)
            if label is None or word is None:
                raise FileProblemError(f"{path}, line {place} lacks a class or a word.")
            found.setdefault(str(label), {})[str(word)] = _number(strength, path)
    return found


def _of_json(path: Path, encoding: str) -> SeedWords:
    with opened_text(path, encoding) as file:
        try:
            given = json.load(file)
        except json.JSONDecodeError as error:
            raise FileProblemError(f"{path} is no JSON: see its line {error.lineno}.") from error
    return _strengths(given, path)


def _of_yaml(path: Path, encoding: str) -> SeedWords:
    yaml = optional_library("yaml", "yaml", path)
    with opened_text(path, encoding) as file:
        try:
            # every word as it is written: this loader knows no numbers, and "no" is no False
            given = yaml.load(file, Loader=yaml.BaseLoader)
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            where = "" if mark is None else f": see its line {mark.line + 1}"
            raise FileProblemError(f"{path} is no YAML{where}.") from error
    return _strengths(given, path)


def _strengths(given: Any, path: Path) -> SeedWords:
    found: SeedWords = {}
    words_of = given if isinstance(given, dict) else {}
    if not words_of or not all(isinstance(words, list | dict) for words in words_of.values()):
        raise FileProblemError(f"{path} must have a list of words for each class.")
    for name, words in words_of.items():
        pairs = words.items() if isinstance(words, dict) else ((word, None) for word in words)
        found[name] = {str(word): _number(strength, path) for word, strength in pairs}
    return found


def _number(strength: object, path: Path) -> float:
    try:
        return 1.0 if strength is None else float(str(strength))
    except ValueError:
        raise FileProblemError(f"{path} has the strength {strength!r}; use a number.") from None
