"""The command ``marginparts``."""

import io
import os
import signal
import sys
from typing import Annotated

import typer

from marginparts._version import show_versions
from marginparts.commands import data, demo, edit, fit, label, ranks, reproduce, show, suggest, use
from marginparts.commands._console import Commands, close_output
from marginparts.files.atomic import leave

app = Commands(
    name="marginparts",
    help="Semi-supervised nonnegative matrix factorization: parts that keep the margin.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

OWN, PAPER = "Your own files", "The paper"
app.command(rich_help_panel=OWN, epilog=fit.EPILOG)(fit.fit)
app.command(rich_help_panel=OWN, epilog=label.EPILOG)(label.label)
app.command(rich_help_panel=OWN, epilog=ranks.EPILOG)(ranks.ranks)
app.command(rich_help_panel=OWN, epilog=use.PREDICT_EPILOG)(use.predict)
app.command(rich_help_panel=OWN, epilog=use.TRANSFORM_EPILOG)(use.transform)
app.command(rich_help_panel=OWN, epilog=show.TOPICS_EPILOG)(show.topics)
app.command("next", rich_help_panel=OWN, epilog=suggest.EPILOG)(suggest.suggest_next)
app.command(rich_help_panel=OWN, epilog=show.REPORT_EPILOG)(show.report)
app.command(rich_help_panel=OWN, epilog=edit.EPILOG)(edit.edit)
app.command(rich_help_panel=PAPER, epilog=demo.EPILOG)(demo.demo)
app.command(rich_help_panel=PAPER, epilog=reproduce.EPILOG)(reproduce.reproduce)
app.add_typer(data.app, name="data", rich_help_panel=PAPER)


_VERSION = "Show the version, and the versions of what matters."


def _show_version(wanted: bool) -> None:
    if wanted:
        show_versions()
        raise typer.Exit()


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help=_VERSION),
    ] = False,
) -> None:
    """Semi-supervised nonnegative matrix factorization: parts that keep the margin."""


def main() -> None:
    """Run the command; Ctrl-C ends it without a traceback."""
    # on a busy machine, threads that spin while they wait would take the cores from the others
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if isinstance(sys.stdout, io.TextIOWrapper):
        if not sys.stdout.isatty():
            sys.stdout.reconfigure(encoding="utf-8")  # whatever the console's code page can show
        sys.stdout.reconfigure(errors="backslashreplace")  # names of files need not be text
    for name in ("SIGTERM", "SIGHUP"):
        if (number := getattr(signal, name, None)) and signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, leave)
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except OSError as error:  # what was printed could not be written: a full disk, a closed pipe
        close_output()
        if not isinstance(error, BrokenPipeError):
            typer.echo(f"The output cannot be written: {error.strerror or error}.", err=True)
            sys.exit(2)
    except KeyboardInterrupt:
        typer.echo("Stopped.", err=True)
        sys.exit(130)


if __name__ == "__main__":
    main()
