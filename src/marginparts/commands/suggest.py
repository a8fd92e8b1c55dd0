"""The command ``marginparts next``: what to label, and which labels to check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text as RichText

from marginparts.commands import _console, use
from marginparts.commands import _fit_options as options
from marginparts.commands._console import AsJson, Embeddings, Encoding, Quiet, option, show
from marginparts.files.atomic import FileProblemError

if TYPE_CHECKING:
    from marginparts.labeling.pool import Pool

EPILOG = _console.examples(
    "next tickets.model tickets.csv",
    "next tickets.model tickets.csv -n 50 --out to_label.csv",
    "next tickets.csv --text body",
    "next tickets.csv --text body --label team --suspects",
)


def suggest_next(
    model: Annotated[
        Path,
        typer.Argument(metavar="[MODEL]", help="A model that 'marginparts fit' wrote, or none."),
    ],
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="Samples, in any format that 'fit' takes."),
    ] = None,
    n: Annotated[int, option("-n", "N", "How many.", min=1)] = 10,
    out: Annotated[
        Path | None,
        option("--out", "FILE", f"A {use.TABLE} to fill in.", show_default="a table on the screen"),
    ] = None,
    suspects: Annotated[
        bool, typer.Option("--suspects", help="List labels that may be wrong instead.")
    ] = False,
    text: use.Text = None,
    label: Annotated[
        str | None, option("--label", "COLUMN", "The column of labels.", show_default="as above")
    ] = None,
    embeddings: Embeddings = None,
    min_df: options.MinDf = 2,
    max_df: options.MaxDf = 0.7,
    missing: options.Missing = None,
    raw: use.Raw = False,
    encoding: Encoding = "utf-8",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Say which unlabeled samples to label next, or which labels may be wrong.

    Those that the model is least sure of, spread over the parts, so that each new label teaches
    something else. Without a model they are typical samples of all parts, or what the labels in
    the file leave in doubt. Rows that have a label are passed over, and texts without a known
    word. Rows count from 1, without the header. --min-df, --max-df and --missing are for a file
    without a model, which knows them.
    With --suspects it is the other way round: labels that the others speak against, those
    with the most evidence first; each was hidden while the others spoke. Vectors take no part.
    """
    from marginparts.app.suggestion import suggest
    from marginparts.labeling.suggest import to_check, to_label

    with _console.sentences():
        if file is None or suspects:
            if embeddings is not None:
                raise FileProblemError(
                    "--suspects looks at the samples without their vectors; leave out --embeddings."
                    if suspects
                    else "Vectors are for the suggestions of a model; leave out --embeddings."
                )
            how = {"min_df": min_df, "max_df": max_df, "missing": missing}
            pool = _pool(model, file, how, text=text, label=label, encoding=encoding)
            _check_free(out)
            found: list[Any] = to_check(pool, n) if suspects else to_label(pool, n)
        else:
            silent = quiet or as_json
            doing = "looking through"
            where = model, file, encoding, text, silent, doing, out
            with use.opened(*where, label=label, embeddings=embeddings) as both:
                _check_free(out)
                found = suggest(*both, n)
        _show_next(found, file or model, out, suspects, raw=raw, as_json=as_json, quiet=quiet)


def _pool(model: Path, file: Path | None, how: dict[str, Any], **where: Any) -> Pool:
    """Read a file, like that of the model; without a file, what stands in its place is the file."""
    from marginparts.app.options import Options
    from marginparts.labeling.pool import Pool

    like = None if file is None else replace(_console.load_model(model).layout, vectors=0)
    path = model if file is None else file
    return Pool.read(path, Options(**how), like=like, **where)


def _check_free(out: Path | None) -> None:
    """Refuse a table that is there, perhaps with labels that someone has filled in."""
    from marginparts.app.writers import TABLES, check_ending

    if out is not None:
        check_ending(out, TABLES)
        if out.exists():
            raise FileProblemError(f"{out} is there already; give --out another name.")


def _show_next(
    found: list[Any], file: Path, out: Path | None, suspects: bool, *, raw: bool, as_json: bool,
    quiet: bool,
) -> None:  # fmt: skip
    """Show or write what is to be labeled, or to be checked."""
    from marginparts.app.writers import open_table_writer

    if out is not None and found:
        with open_table_writer(out, raw=raw) as writer:
            writer.write(_to_fill_in(found, _DOUBTED if suspects else _OURS))
    if as_json:
        _console.print_json([each if suspects else each._asdict() for each in found])
    elif not found:
        why = "No label speaks against another" if suspects else "Every sample has a label"
        show(f"{why} in {file}, or there is nothing in it.", quiet=quiet)
    elif out is not None:
        samples = "sample" if len(found) == 1 else "samples"
        what = "check" if suspects else "label"
        show(f"{len(found)} {samples} to {what}, written to {out}", quiet=quiet)
    else:
        _show_suggestions(found, _DOUBTED if suspects else _OURS)


#: What the tables of suggestions and of suspects say of each.
_OURS = ("row", "guess", "margin", "part")
_DOUBTED = ("row", "labels", "instead", "evidence")


def _to_fill_in(found: list[Any], ours: Sequence[str]) -> dict[str, Any]:
    """Return suggestions as columns of a table."""
    plain = [each if isinstance(each, dict) else each._asdict() for each in found]
    columns = {name: [each["columns"][name] for each in plain] for name in plain[0]["columns"]}
    told = {name: [_rounded_cell(each[name]) for each in plain] for name in ours}
    return use.beside(columns, told)


def _rounded_cell(cell: Any) -> Any:
    return use.short(cell) if isinstance(cell, float) else cell


def _show_suggestions(found: list[Any], ours: Sequence[str]) -> None:
    numbers = {"row", "margin", "part", "evidence"}
    table = _console.table(*ours, right=numbers, wrap={"guess", "labels", "instead"})
    for column in table.columns[1:3]:
        column.max_width = 24
    table.add_column("sample", ratio=1)
    for each in found:
        told = each if isinstance(each, dict) else each._asdict()
        sample = told.get("text") or _longest(told["columns"])
        shown = " ".join(str(sample).split())
        if len(shown) > 160:  # cut between words
            shown = shown[:160].rsplit(" ", 1)[0] + " ..."
        cells = [f"{c:.2f}" if isinstance(c, float) else str(c) for c in map(told.get, ours)]
        # as it is, brackets and all
        cells = ["" if cell == "nan" else cell for cell in cells]
        table.add_row(*(RichText(_console.printable(cell)) for cell in (*cells, shown)))
    Console(highlight=False).print(table)


def _longest(columns: Mapping[str, Any]) -> str:
    """Return the cell that says most of a row: its text, or what names it."""
    return max((str(cell) for cell in columns.values()), key=len, default="")
