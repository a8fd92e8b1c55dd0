"""What all commands share: sentences instead of tracebacks and bars."""

from __future__ import annotations

import inspect
import json
import os
import re
import sys
import warnings
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

import typer
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, ProgressColumn, Task, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars
from rich.progress import TimeRemainingColumn as TimeLeft
from rich.table import Column, Table
from rich.text import Text

from marginparts.files.atomic import FileProblemError

if TYPE_CHECKING:
    from marginparts.app.model import Model
    from marginparts.app.readers import Batch, SampleSource


class Commands(typer.Typer):
    """Commands whose help is their docstring, as paragraphs that flow to the terminal's width."""

    def command(self, name: str | None = None, **more: Any) -> Callable[[Any], Any]:
        """Return what makes a command of a function."""

        def decorate(function: Callable[..., Any]) -> Any:
            told = flowing(inspect.getdoc(function) or "")
            return super(Commands, self).command(name, help=told, **more)(function)

        return decorate


def flowing(text: str) -> str:
    r"""Return paragraphs without the line breaks inside them.

    Examples
    --------
    >>> flowing("One\ntwo.\n\nThree.")
    'One two.\n\nThree.'
    """
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def option(flag: str, metavar: str | None, text: str, **more: Any) -> Any:
    """Return an option of a command."""
    return typer.Option(flag, metavar=metavar, help=text, **more)


def examples(*commands: str) -> str:
    """Return what stands below the help of a command."""
    return "Examples:\n\n" + "\n\n".join(f"marginparts {command}" for command in commands) + "\n"


Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress and no summary.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the outcome as JSON, for scripts.")]
Encoding = Annotated[str, option("--encoding", "NAME", "The encoding of text files.")]
Embeddings = Annotated[
    Path | None, option("--embeddings", "FILE", "Vectors of an encoder: .npy, one row a sample.")
]

#: Control characters but for line ends and tabs, marks of writing direction, lone surrogates.
_COMMANDS = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)

#: Samples in memory at a time.
BATCH = 5_000

ModelFile = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A model that 'marginparts fit' wrote.")
]


def refuse(sentence: str, code: int = 2) -> NoReturn:
    """End with a sentence and an exit code, that of a wrong argument unless said otherwise."""
    typer.echo(printable(sentence), err=True)
    raise typer.Exit(code)


def printable(text: str) -> str:
    r"""Return a text without what would command a terminal, or cannot be written as UTF-8.

    Examples
    --------
    >>> print(printable("red\x1b[31m"))
    red\x1b[31m
    """
    return _COMMANDS.sub(lambda found: ascii(found[0])[1:-1], text)


@contextmanager
def sentences() -> Iterator[None]:
    """Turn what is wrong with a file or an option into one sentence and exit code 2."""
    from marginparts.app.preparation import EstimatorError, PreparationError

    try:
        yield
    except EstimatorError as error:
        from marginparts.commands._wording import spoken

        refuse(spoken(str(error)))
    except (FileProblemError, PreparationError) as error:
        refuse(str(error))
    except MemoryError:
        refuse("There is not enough memory for this; use fewer samples or fewer parts.")
    except BrokenPipeError:  # the reader of a pipe has seen enough
        close_output()
        raise typer.Exit(0) from None
    except OSError as error:
        if error.filename is not None:  # a name that is too long, say
            refuse(f"{error.filename} cannot be used: {error.strerror}.")
        close_output()
        refuse(f"The output cannot be written: {error.strerror or error}.")


def close_output() -> None:
    """Discard what is still to be printed."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def load_model(path: Path) -> Model:
    """Return the model in a file, whatever wrote it."""
    from marginparts.app.model import Model
    from marginparts.app.model_file import load

    model = load(path)
    if not isinstance(model, Model):
        raise FileProblemError(
            f"{path} holds a {type(model).__name__} that was saved from Python and does not know "
            "how to read files; use 'marginparts fit', or load it in Python."
        )
    return model


def show(text: str, *, quiet: bool = False) -> None:
    """Print words for people, wrapped to the terminal; a path in them stays whole in a pipe."""
    if not quiet:
        Console(highlight=False, soft_wrap=not sys.stdout.isatty()).print(
            printable(text), markup=False
        )


def table(
    *headings: str, right: Container[str] = (), wrap: Container[str] = (), title: str | None = None
) -> Table:
    """Return a table without lines; some columns stand to the right, and some may be wrapped."""
    found = Table(
        title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0),
        show_edge=False,
    )  # fmt: skip
    for name in headings:
        side: Literal["left", "right"] = "right" if name in right else "left"
        found.add_column(name, justify=side, no_wrap=name not in wrap)
    return found


def print_json(found: Any) -> None:
    """Print plain values as JSON, which knows no NaN."""
    from marginparts.app.writers import plain

    text = json.dumps(plain(found), indent=2, ensure_ascii=False, allow_nan=False, default=str)
    # JSON has the same escapes for what printable would take out, but for the form of some
    typer.echo(_COMMANDS.sub(lambda odd: f"\\u{ord(odd[0]):04x}", text))


def refuse_same(source: Path | None, target: Path | None) -> None:
    """Refuse to write over the file that is read."""
    if source and target and source.exists() and target.exists() and source.samefile(target):
        raise FileProblemError(f"{target} is the file that is read; give --out another name.")


def watched(source: SampleSource, shown: Bars, doing: str) -> Iterator[Batch]:
    """Yield the batches of a source, with a bar over its rows."""
    name = printable(source.path.name)
    task = shown.add_task(f"{doing} {escape(name)}", total=source.n_rows)
    for batch in source.batches(BATCH):
        yield batch
        shown.advance(task, len(batch.labels))


class _Share(TextColumn):
    """How much is done, and nothing where nobody knows how much there is."""

    def render(self, task: Task) -> Text:
        return super().render(task) if task.total else Text("")


def _as_wide(least: int) -> Column:
    """Return a column of so many letters at least: on narrow screens the bar gives way."""
    return Column(no_wrap=True, min_width=least)


class _Bars(Bars):
    """Bars that leave no trace when they are off; rich before 14.3 ends them with an empty line."""

    def stop(self) -> None:
        if not self.disable:
            super().stop()


def bars(*more: ProgressColumn, quiet: bool = False, memory: float = 30.0) -> Bars:
    """Return bars on the error stream: what is done, the time gone and the time left.

    The time left is guessed from the speed of the last seconds, ``memory`` of them.
    """
    console = Console(stderr=True)
    return _Bars(
        TextColumn("{task.description}", table_column=_as_wide(1)), BarColumn(),
        _Share("{task.percentage:>3.0f}%", table_column=_as_wide(4)),
        *more, TimeElapsedColumn(_as_wide(7)), TimeLeft(compact=True, table_column=_as_wide(5)),
        console=console, transient=True, speed_estimate_period=memory,
        disable=quiet or not console.is_terminal,  # bars in a log are noise
    )  # fmt: skip


@contextmanager
def spoken_warnings() -> Iterator[None]:
    """Say warnings as the sentences that they are, on the error stream."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *more, **options: typer.echo(
            printable(str(message)), err=True
        )
        yield
