"""A file of seed words: a table with the columns class, word, maybe strength; JSON or YAML."""

import json
import reprlib
from math import isfinite
from pathlib import Path
from typing import Any

from marginparts.app.readers._labels import label_of
from marginparts.app.readers._table_files import cells_by_name
from marginparts.files.atomic import FileProblemError
from marginparts.files.json_text import read_json
from marginparts.files.streams import opened_text, optional_library

#: The words of each class, with their strengths.
SeedWords = dict[str, dict[str, float]]

#: Characters of a file: more than people write; YAML takes ten seconds for a megabyte.
_LONGEST = 2**18


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
    found: SeedWords = {}
    for places, cells in cells_by_name(path, encoding, ("class", "word")):
        strengths = cells.get("strength", [None] * len(places))
        for place, *row in zip(places, cells["class"], cells["word"], strengths, strict=True):
            label, word, strength = (label_of(cell) for cell in row)
            if label is None or word is None:
                raise FileProblemError(f"{path}, line {place} lacks a class or a word.")
            found.setdefault(str(label), {})[str(word)] = _number(strength, path)
    return found


def _of_json(path: Path, encoding: str) -> SeedWords:
    text = _text(path, encoding)
    try:
        given = read_json(text.encode())
    except json.JSONDecodeError as error:
        raise FileProblemError(f"{path} is no JSON: see its line {error.lineno}.") from error
    except ValueError as error:
        raise FileProblemError(f"{path} is no list of words for each class.") from error
    return _strengths(given, path)


def _of_yaml(path: Path, encoding: str) -> SeedWords:
    yaml = optional_library("yaml", "yaml", path)
    text = _text(path, encoding)
    try:
        # every word as it is written: this loader knows no numbers, and "no" is no False
        given = yaml.load(text, Loader=yaml.BaseLoader)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        where = "" if mark is None else f": see its line {mark.line + 1}"
        raise FileProblemError(f"{path} is no YAML{where}.") from error
    return _strengths(given, path)


def _text(path: Path, encoding: str) -> str:
    with opened_text(path, encoding) as file:
        text = file.read(_LONGEST + 1)
    if len(text) > _LONGEST:
        raise FileProblemError(f"{path} is too long for a file of seeds; give fewer words.")
    return text


def _strengths(given: Any, path: Path) -> SeedWords:
    found: SeedWords = {}
    words_of = given if isinstance(given, dict) else {}
    if not words_of or not all(isinstance(words, list | dict) for words in words_of.values()):
        raise FileProblemError(f"{path} must have a list of words for each class.")
    for name, words in words_of.items():
        pairs = words.items() if isinstance(words, dict) else ((word, None) for word in words)
        found[str(name)] = {_word(word, path): _number(value, path) for word, value in pairs}
    return found


def _word(word: object, path: Path) -> str:
    # a list within the list may hold itself, or be many times the size of the file
    if not isinstance(word, str | int | float):
        raise FileProblemError(f"{path} must have a list of words for each class.")
    return str(word)


def _number(strength: object, path: Path) -> float:
    if strength is None:
        return 1.0
    try:
        number = float(str(strength) if isinstance(strength, str | int | float) else "")
        if not isfinite(number):
            raise ValueError
    except (ValueError, OverflowError):
        shown = reprlib.repr(strength)
        raise FileProblemError(f"{path} has the strength {shown}; use a number.") from None
    return number
