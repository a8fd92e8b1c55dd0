"""The command ``marginparts data``: list the paper's data sets, fetch them, say where they are."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import DownloadColumn, TaskID

from marginparts.commands._console import Commands, bars, examples, option, refuse, sentences, table

app = Commands(help="The paper's data sets: list, fetch, and where they are.", no_args_is_help=True)

_FOLDER = "The folder of all data sets, else MARGINPARTS_DATA, else a cache folder."
DataDir = Annotated[Path | None, typer.Option("--data-dir", help=_FOLDER)]


@app.command("list")
def list_data(data_dir: DataDir = None) -> None:
    """List the data sets, and where each is found."""
    from marginparts.datasets import PAPER_DATA, MissingDataError, data_folder
    from marginparts.datasets._catalog import find_files

    numbers = ("train", "test", "columns", "classes")
    shown = table("name", "what it is", *numbers, "found in", right=numbers, wrap=["what it is"])
    for entry in PAPER_DATA.values():
        try:
            find_files(entry, data_dir)
            place = entry.folder
        except MissingDataError:
            place = "not here"
        sizes = (entry.n_train + entry.n_validation, entry.n_test, entry.n_columns, entry.n_classes)
        shown.add_row(entry.name, entry.summary, *map(str, sizes), place)
    Console().print(shown)
    # a path must not be broken into lines, so that it can be copied
    typer.echo(f"Looked in {data_folder(data_dir)}")


@app.command()
def fetch(
    name: Annotated[str, typer.Argument(help="The name, as in 'marginparts data list'.")],
    data_dir: DataDir = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
) -> None:
    """Download a data set, check it, and keep it in the data folder."""
    from marginparts import datasets

    tasks: dict[str, TaskID] = {}
    try:
        with bars(DownloadColumn(), quiet=quiet) as shown:

            def progress(file: str, done: int, total: int | None) -> None:
                if file not in tasks:
                    tasks[file] = shown.add_task(file, total=total)
                shown.update(tasks[file], completed=done, total=total)

            folder = datasets.fetch(name, data_dir, progress)
    except datasets.DataError as error:
        # 2 is what a wrong argument gives everywhere in the command
        refuse(str(error), 2 if isinstance(error, datasets.UnknownDataError) else 1)
    typer.echo(f"{name} is in {folder}")


@app.command()
def path(data_dir: DataDir = None) -> None:
    """Print the folder that holds the data sets."""
    from marginparts.datasets import data_folder

    typer.echo(str(data_folder(data_dir)))


@app.command(epilog=examples("data example docs.csv"))
def example(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A .csv, .tsv, .jsonl or .parquet file to write.")
    ],
    every: Annotated[int, option("--every", "N", "Give every N-th text its label.", min=1)] = 10,
) -> None:
    """Write a table of texts with a few labels, to try the other commands on.

    The docstrings of NumPy, SciPy and scikit-learn (column text), labeled with the subpackage
    they come from (column topic). It needs no download.
    """
    from marginparts import datasets
    from marginparts.app.writers import open_table_writer

    with sentences():
        docs = datasets.load_docstrings()
        topics = [docs.target_names[k] for k in docs.target]
        shown = [topic if k % every == 0 else "" for k, topic in enumerate(topics)]
        columns = {"name": list(docs.names), "text": list(docs.documents), "topic": shown}
        with open_table_writer(file) as writer:
            writer.write(columns)
    typer.echo(f"{len(shown)} texts, {sum(map(bool, shown))} of them labeled, written to {file}")
