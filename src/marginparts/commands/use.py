"""The commands that use a model on a file: ``predict``, ``transform`` and ``next``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from marginparts.commands._console import (
    AsJson,
    ModelFile,
    Quiet,
    bars,
    load_model,
    print_json,
    sentences,
    show,
)

if TYPE_CHECKING:
    from marginparts.model import Model
    from marginparts.readers import Batch, Source

DataFile = Annotated[
    Path, typer.Argument(metavar="FILE", help="Samples, in any format that 'fit' takes.")
]
Encoding = Annotated[
    str, typer.Option("--encoding", metavar="NAME", help="The encoding of text files.")
]
Text = Annotated[
    str | None,
    typer.Option(
        "--text", metavar="COLUMN", help="The column of texts.", show_default="as in the fit"
    ),
]

#: Samples in memory at a time.
_BATCH = 5_000


@contextmanager
def _opened(
    model_path: Path, file: Path, encoding: str, text: str | None, quiet: bool, doing: str
) -> Iterator[tuple[Model, Source, Iterator[Batch]]]:
    """Open a model and a file like the one it was fitted to, with a bar over the rows."""
    from marginparts.readers import open_source

    model = load_model(model_path)
    source = open_source(file, text=text, encoding=encoding, like=model.layout)
    with bars(quiet=quiet) as shown:
        task = shown.add_task(f"{doing} {file.name}", total=source.n_rows)

        def batches() -> Iterator[Batch]:
            for batch in source.batches(_BATCH):
                yield batch
                shown.advance(task, len(batch.labels))

        yield model, source, batches()


PREDICT_EPILOG = """Examples:

marginparts predict tickets.model new.csv --out labeled.csv

marginparts predict tickets.model new.jsonl --out labeled.parquet --all

marginparts predict tickets.model new.csv | head
"""


def predict(
    model: ModelFile,
    file: DataFile,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="FILE", show_default="CSV on the screen",
            help="A .csv, .tsv, .jsonl or .parquet file.",
        ),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Add the score and probability of every label.")
    ] = False,
    text: Text = None,
    encoding: Encoding = "utf-8",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Give labels to the samples of a file.

    The file's own columns are kept, and behind them come predicted, score and probability (empty
    where the labels were too few to tell). Several labels stand in one cell, the surest first. The
    file is read in pieces and may be larger than memory.
    """
    from marginparts.commands._agreement import Agreement
    from marginparts.report import as_score
    from marginparts.writers import open_table_writer

    with (
        sentences(),
        _opened(model, file, encoding, text, quiet or as_json or out is None, "labeling") as
        (fitted, _, batches),
        open_table_writer(out, separator=fitted.layout.label_sep or ";") as writer,
    ):  # fmt: skip
        agreement, n = Agreement(fitted.class_names, fitted.multilabel), 0
        for batch in batches:
            values = fitted.values(fitted.prepare(batch.samples))
            decisions = fitted.decide(values)
            agreement.add([d.labels for d in decisions], map(fitted.known, batch.labels))
            writer.write(_labeled(fitted, batch, decisions, values, every))
            n += len(decisions)
    if out is None:
        return
    if as_json:
        score = agreement.score() if agreement.n else None
        print_json(
            {"out": str(out), "samples": n, "with_label": agreement.n,
             "metric": fitted.metric, "agreement": score}
        )  # fmt: skip
        return
    show(f"{n} samples labeled, written to {out}", quiet=quiet)
    if agreement.n:
        show(
            f"{agreement.n} of them had a label in the file; against these the {fitted.metric} is "
            f"{as_score(agreement.score(), fitted.metric)}. (Labels that the model was fitted to "
            "flatter it.)",
            quiet=quiet,
        )


def _labeled(
    model: Model, batch: Batch, decisions: list[Any], values: Any, every: bool
) -> dict[str, Any]:
    """Return the rows of a batch with what was said about them."""
    columns: dict[str, Any] = dict(batch.columns)
    one = (lambda cells: cells) if model.multilabel else (lambda cells: cells[0])
    columns["predicted"] = [one(d.labels) for d in decisions]
    columns["score"] = [one(d.scores) for d in decisions]
    columns["probability"] = [one(d.probabilities) for d in decisions]
    if every:
        probabilities = model.probabilities(values)
        for k, name in enumerate(model.class_names):
            columns[f"score {name}"] = values[:, k].tolist()
            columns[f"probability {name}"] = probabilities[:, k].tolist()
    return columns


TRANSFORM_EPILOG = """Examples:

marginparts transform tickets.model new.csv --out codes.npz

marginparts transform tickets.model new.csv --out codes.parquet
"""


def transform(
    model: ModelFile,
    file: DataFile,
    out: Annotated[
        Path,
        typer.Option(
            "--out", metavar="FILE", help="A .csv, .tsv, .jsonl, .parquet or .npz file.",
            show_default=False,
        ),
    ],
    text: Text = None,
    encoding: Encoding = "utf-8",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Express the samples of a file in the parts: one column a part (Z of the paper's eq. 5).

    The .npz holds one array Z, with a row a sample. The other formats keep what identifies a row.
    """
    from marginparts.writers import (
        ARRAYS,
        TABLES,
        check_ending,
        open_array_writer,
        open_table_writer,
    )

    n = 0
    with (
        sentences(),
        _opened(model, file, encoding, text, quiet or as_json, "mapping") as (fitted, _, batches),
    ):
        check_ending(out, (*TABLES, *ARRAYS))
        if out.suffix.lower() in ARRAYS:
            with open_array_writer(out, "Z", fitted.n_parts) as write:
                for batch in batches:
                    Z = fitted.transform(batch.samples)
                    write(Z)
                    n += len(Z)
        else:
            with open_table_writer(out) as writer:
                for batch in batches:
                    Z = fitted.transform(batch.samples)
                    columns = {k: v for k, v in batch.columns.items() if k != fitted.layout.text}
                    parts = {f"part {k + 1}": Z[:, k].tolist() for k in range(Z.shape[1])}
                    writer.write({**columns, **parts})
                    n += len(Z)
    if as_json:
        print_json({"out": str(out), "samples": n, "parts": fitted.n_parts})
    else:
        show(f"{n} samples in {fitted.n_parts} parts, written to {out}", quiet=quiet)


NEXT_EPILOG = """Examples:

marginparts next tickets.model tickets.csv

marginparts next tickets.model tickets.csv -n 50 --out to_label.csv
"""


def suggest_next(
    model: ModelFile,
    file: DataFile,
    n: Annotated[int, typer.Option("-n", metavar="N", min=1, help="How many.")] = 10,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="FILE", show_default="a table on the screen",
            help="A .csv, .tsv, .jsonl or .parquet file to fill in.",
        ),
    ] = None,
    text: Text = None,
    encoding: Encoding = "utf-8",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Say which unlabeled samples to label next.

    Those that the model is least sure of, spread over the parts, so that each new label teaches
    something else. Rows that have a label are passed over.
    """
    from marginparts.suggestion import suggest
    from marginparts.writers import TABLES, check_ending, open_table_writer

    with (
        sentences(),
        _opened(model, file, encoding, text, quiet or as_json, "looking through") as
        (fitted, _, batches),
    ):  # fmt: skip
        if out is not None:
            check_ending(out, TABLES)
        found = suggest(fitted, batches, n)
        if out is not None and found:
            with open_table_writer(out, separator=fitted.layout.label_sep or ";") as writer:
                writer.write(_to_fill_in(found))
    if as_json:
        print_json(
            [
                {"row": s.row, "guess": s.guess, "margin": s.sureness, "part": s.part + 1,
                 **({"text": s.sample} if s.sample is not None else s.columns)}
                for s in found
            ]
        )  # fmt: skip
        return
    if not found:
        show(f"Every sample of {file} has a label, or is empty.")
    elif out is not None:
        show(f"{len(found)} samples to label, written to {out}", quiet=quiet)
    else:
        _show_suggestions(found)


def _to_fill_in(found: list[Any]) -> dict[str, Any]:
    """Return suggestions as columns of a table."""
    columns: dict[str, Any] = {"row": [s.row for s in found]}
    columns |= {name: [s.columns[name] for s in found] for name in found[0].columns}
    columns["guess"] = [s.guess for s in found]
    columns["margin"] = [s.sureness for s in found]
    columns["part"] = [s.part + 1 for s in found]
    return columns


def _show_suggestions(found: list[Any]) -> None:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("row", justify="right", no_wrap=True)
    table.add_column("guess", max_width=18)
    table.add_column("margin", justify="right", no_wrap=True)
    table.add_column("part", justify="right", no_wrap=True)
    table.add_column("sample", ratio=1, max_width=None)
    for s in found:
        sample = s.sample if s.sample is not None else next(iter(s.columns.values()))
        shown = " ".join(str(sample).split())[:160]
        cells = (str(s.row), s.guess, f"{s.sureness:.2f}", str(s.part + 1), shown)
        table.add_row(*map(_plain, cells))
    Console(highlight=False).print(table)


def _plain(text: str) -> Any:
    """Return text that is shown as it is, brackets and all."""
    from rich.text import Text as RichText

    return RichText(text)
