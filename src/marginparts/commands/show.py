"""The commands that show what a model has learned: ``topics`` and ``report``."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from marginparts.commands import _console
from marginparts.commands._console import (
    AsJson,
    Embeddings,
    Encoding,
    ModelFile,
    Quiet,
    option,
    printable,
    show,
)
from marginparts.files.atomic import FileProblemError, check_destination, written_beside

if TYPE_CHECKING:
    from marginparts.app.model import Model
    from marginparts.topics import TopicView

TOPICS_EPILOG = _console.examples(
    "topics tickets.model", "topics tickets.model tickets.csv", "topics tickets.model --json"
)


#: A part speaks for a label if it scores this share of what the best does, and does not end as 0.
_SPEAKS, _NOTHING = 0.2, 0.005

#: What is said of a part without a word of its own.
_NO_WORD = "no word tells it from other parts"


def topics(
    model: ModelFile,
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]", help="Samples to count in: words that are surely distinctive."
        ),
    ] = None,
    words: Annotated[int, option("--words", "N", "Words shown of a part.", min=1)] = 8,
    parts: Annotated[int, option("--parts", "N", "Parts shown of a label.", min=1)] = 3,
    encoding: Encoding = "utf-8",
    as_json: AsJson = False,
) -> None:
    """Show the parts that speak for each label, as their top words.

    The number before a part is what a sample made of that part alone would score for the label;
    parts that score less than a fifth of the best are left out.
    With a file, the one after a word says how many times as frequent it is in the part as in any
    other: at least so many, with 95 % confidence from what is counted in the file. In brackets
    after a part stands how stable it is, 0 to 1, if it was fitted with --consensus.
    """
    with _console.sentences():
        fitted = _console.load_model(model)
        view = None if file is None else _view(fitted, file, encoding)
        found = _topics(fitted, words, parts, view)
        if as_json:
            _console.print_json(found)
            return
        if fitted.layout.kind == "image":
            show(f"The parts of images are pictures: see them with marginparts report {model}")
        console = Console(highlight=False)
        for entry in found:
            console.print(_entry(entry, pictures=fitted.layout.kind == "image"))
        if fitted.layout.vectors:
            show("The vectors beside the samples have parts of their own, which have no words.")


def _entry(entry: dict[str, Any], *, pictures: bool) -> Group:
    """Return a label and its parts, each with its words beside it."""
    head = Text(printable(entry["label"]), style="bold").append(
        f" ({entry['labeled']} labeled)", "dim"
    )
    rows = Table.grid(padding=(0, 1, 0, 0))
    rows.add_column(justify="right", width=6)
    known = any("stability" in part for part in entry["parts"])
    rows.add_column(width=14 if known else 8, no_wrap=True)
    rows.add_column()
    for part in entry["parts"]:
        words = ", ".join(_shown(*word) for word in part["words"]) or _NO_WORD
        words = "" if pictures else words
        stable = f"({part['stability']:.2f})" if "stability" in part else ""
        name = f"part {part['part']:<3}{stable}".rstrip()
        rows.add_row(f"{part['weight']:+.2f}", name, Text(printable(words)))
    if not entry["parts"]:
        rows.add_row("", "", "no part speaks for it")
    return Group(head, rows)


def _shown(word: str, *numbers: float) -> str:
    """Return a word with the least factor by which it leads, where that is known."""
    return word if len(numbers) < 2 else f"{word} x{2 ** numbers[-2]:.1f}"


def _view(model: Model, file: Path, encoding: str, most: int | None = None) -> TopicView:
    """Return the view of a file's samples, or of so many batches of them."""
    from marginparts.app.explanation import view_of
    from marginparts.app.readers import open_source

    # vectors have no words to count
    source = open_source(file, encoding=encoding, like=replace(model.layout, vectors=0))
    with _console.bars(quiet=True) as shown:
        return view_of(model, islice(_console.watched(source, shown, "counting"), most))


def _topics(
    model: Model, n_words: int, n_parts: int, view: TopicView | None = None
) -> list[dict[str, Any]]:
    """Return for each label its parts, each with its words."""
    import numpy as np

    from marginparts.app.explanation import distinctive, part_weights, top_features

    weights = part_weights(model.classifier)
    components = distinctive(model.classifier.parts_.components_, model.card.shares or None)
    names = model.feature_names
    found = []
    for c in model.display_order:
        name, count = model.class_names[c], model.card.label_counts[c]
        order = np.argsort(-weights[:, c], kind="stable")[:n_parts]
        speaking = []
        least = max(_SPEAKS * weights[:, c].max(), _NOTHING)
        for k in order[weights[order, c] >= least]:
            if view is None:
                telling: list[Any] = top_features(components[k], names, n_words)
            else:
                telling = view.distinctive(k, n_words)
            words = [(word, *(round(value, 6) for value in values)) for word, *values in telling]
            weight = round(float(weights[k, c]), 4)
            part = {"part": int(k) + 1, "weight": weight, "words": words}
            if model.card.stability:
                part["stability"] = round(model.card.stability[k], 4)
            speaking.append(part)
        found.append({"label": name, "labeled": count, "parts": speaking})
    return found


#: Batches of 10,000 samples in which a report counts words: they are in memory at once.
_COUNTED = 2

REPORT_EPILOG = _console.examples(
    "report tickets.model", "report tickets.model tickets.csv --out tickets.html"
)


def report(
    model: ModelFile,
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]",
            help="Samples: the most certain and the most doubtful are shown, and words counted.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        option(
            "--out", "PAGE", "Where to write the page.", show_default="MODEL with the ending .html"
        ),
    ] = None,
    embeddings: Embeddings = None,
    encoding: Encoding = "utf-8",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write one self-contained page that shows what was learned, to read or to send to a colleague.

    How good it is, the parts, which parts speak for which label, the margin, the loss, what was
    tried, and examples. A model that was fitted with --path has a slider over lam.
    """
    from marginparts.app.preparation import PreparationError
    from marginparts.app.readers import open_source
    from marginparts.app.report import find_examples, payload_of, render

    page = out or Path(f"{model.stem}.html")
    with _console.sentences(), _console.bars(quiet=quiet or as_json) as shown:
        _console.refuse_same(file, page)
        _console.refuse_same(model, page)
        _console.refuse_same(embeddings, page)
        if file is None and embeddings is not None:
            raise FileProblemError("--embeddings are vectors of samples; give their FILE, too.")
        check_destination(page)
        fitted = _console.load_model(model)
        examples = view = None
        if file is not None:
            source = open_source(file, encoding=encoding, embeddings=embeddings, like=fitted.layout)
            examples = find_examples(fitted, _console.watched(source, shown, "looking through"))
            if fitted.layout.kind != "image":
                with suppress(PreparationError):  # there is nothing to count
                    view = _view(fitted, file, encoding, _COUNTED)
        html = render(payload_of(fitted, examples, view))
        with written_beside(page, "w", encoding="utf-8") as target:
            target.write(html)
    if as_json:
        _console.print_json({"page": str(page), "bytes": len(html.encode("utf-8"))})
    else:
        show(f"Written to {page}", quiet=quiet)
