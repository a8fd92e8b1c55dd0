"""The file of a checkpoint: which fit it belongs to, and notes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from marginparts._version import __version__
from marginparts.checkpoint._position import Notes
from marginparts.files.archive import Archive, damage, write_archive
from marginparts.files.atomic import FileProblemError, problems_with, written_beside
from marginparts.files.invariants import Scope, Value
from marginparts.files.json_text import plain_word, read_json

KIND, FORMAT = "checkpoint", "marginparts-checkpoint"

#: Raised when files written from now on could not be read by what came before.
VERSION = 1


class Content(NamedTuple):
    """What a checkpoint says: of which fit, with which seed, and the notes by what they are of."""

    fit: dict[str, Any]
    seed: int
    notes: dict[str, Notes]


def write_checkpoint(path: Path, content: Content) -> None:
    """Write beside the file that is there, and let the new one take its place when it is whole."""
    text = {
        "format": FORMAT, "version": VERSION, "marginparts": __version__,
        "fit": content.fit, "seed": content.seed,
        "notes": {name: notes.tree for name, notes in content.notes.items()},
    }  # fmt: skip
    arrays = {
        f"{name}.{place}": array
        for name, notes in content.notes.items()
        for place, array in notes.arrays.items()
    }
    with written_beside(path, durable=True) as file:
        write_archive(file, json.dumps(text).encode(), arrays, kind=KIND, compress=False)


def read_checkpoint(path: Path) -> Content:
    """Return what `write_checkpoint` wrote, when every checksum agrees.

    Another version is refused: its iterations may round differently.
    """
    with problems_with(path, "read"), path.open("rb") as file:
        archive = Archive(path, file, KIND)
        with damage(path, "its text cannot be understood", KIND):
            text = read_json(archive.text())
            if text["format"] != FORMAT:
                raise ValueError("another format")
            if (text["version"], text["marginparts"]) != (VERSION, __version__):
                theirs = plain_word(text["marginparts"])
                raise FileProblemError(
                    f"{path} was written by marginparts {theirs}, and this is "
                    f"{__version__}; go on with that version, or delete it to start anew."
                )
            arrays = archive.arrays()
            notes = {name: Notes(tree, {}) for name, tree in text["notes"].items()}
            for place, array in arrays.items():
                name, _, own = place.partition(".")
                notes[name].arrays[own] = array
            fields = {"fit": dict(text["fit"]), "seed": text["seed"]}
            Scope().check((Value("seed", "int", 0, 2**32),), fields)
            return Content(fields["fit"], fields["seed"], notes)
