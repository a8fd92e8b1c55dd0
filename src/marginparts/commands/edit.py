"""The command ``marginparts edit``: parts merged, deleted or frozen, and the fit going on."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from marginparts.commands import _console as console
from marginparts.commands import _fit_options as options
from marginparts.commands.fit import tell, watched
from marginparts.files.atomic import FileProblemError, check_destination

EPILOG = console.examples(
    "edit tickets.model tickets.csv --merge 2,5 --delete 7 --freeze 1 --out edited.model",
    "edit tickets.model tickets.csv --forbid 3:regards,thanks --out edited.model",
)


def edit(
    model: console.ModelFile,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Samples and labels, as the model was fitted to.")
    ],
    out: Annotated[Path, console.option("--out", "MODEL", "Where to write the new model.")],
    merge: Annotated[
        list[str] | None,
        console.option("--merge", "N,N", "Parts that become one; may be given several times."),
    ] = None,
    delete: Annotated[str | None, console.option("--delete", "N,N", "Parts that go.")] = None,
    freeze: Annotated[
        str | None, console.option("--freeze", "N,N", "Parts that stay as they are.")
    ] = None,
    forbid: Annotated[
        list[str] | None,
        console.option(
            "--forbid", "N:WORD,WORD", "Words that may not enter a part; several times for several."
        ),
    ] = None,
    weight: options.Weight = None,
    labels: options.LabelsFile = None,
    seed: options.Seed = 0,
    encoding: console.Encoding = "utf-8",
    as_json: console.AsJson = False,
    quiet: console.Quiet = False,
) -> None:
    """Change the parts of a model after a look at them, and let the fit go on from there.

    Parts have the numbers that marginparts topics and the report show. Merged ones begin as their
    mean; frozen ones stay as they are, and come first in the new model. Words, the weight of the
    labels and the rest are as in the old one, which is left as it is.
    """
    with console.sentences(), console.spoken_warnings():
        from marginparts.app.editing import edit_file
        from marginparts.app.model_file import save

        asked: dict[str, Any] = {
            "merge": [_group(group) for group in merge or ()],
            "delete": _numbers(delete, "--delete"), "freeze": _numbers(freeze, "--freeze"),
            "forbid": _forbidden(forbid or []),
        }  # fmt: skip
        if not any(asked.values()):
            raise FileProblemError("Nothing is to be changed; say --merge, --delete, --freeze or "
                                   "--forbid.")  # fmt: skip
        for source in (model, file):
            console.refuse_same(source, out)
        check_destination(out)
        run = partial(
            edit_file, console.load_model(model), file, labels=labels, encoding=encoding,
            weight=weight, random_state=seed, **asked,
        )  # fmt: skip
        found, _ = watched(run, ("encoding", "following lam"), None, shown=not (quiet or as_json))
        save(found, out)
    tell(found, out, None, as_json=as_json, quiet=quiet)


def _group(cell: str) -> list[int]:
    """Return the parts of a merge, which are two at least."""
    found = _numbers(cell, "--merge")
    if len(found) < 2:
        raise FileProblemError(f"--merge {cell!r} names one part; give two or more, as 2,5.")
    return found


def _numbers(text: str | None, name: str) -> list[int]:
    """Return the parts that are named."""
    if text is None:
        return []
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        console.refuse(f"{name} {text!r} is not understood: give numbers of parts, as 2,5.")


def _forbidden(given: list[str]) -> dict[int, list[str]]:
    """Return the words that may not enter a part, by its number."""
    found: dict[int, list[str]] = {}
    for each in given:
        number, colon, words = each.partition(":")
        if not (colon and words and number.strip().isdecimal()):
            console.refuse(f"--forbid {each!r} is not understood: give a part and words, as 3:the.")
        found.setdefault(int(number), []).extend(word for word in words.split(",") if word)
    return found
