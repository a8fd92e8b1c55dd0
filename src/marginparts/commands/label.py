"""The command ``marginparts label``: a page in the browser to label a file on."""

from __future__ import annotations

import webbrowser
from typing import TYPE_CHECKING, Annotated

import typer

from marginparts.commands import _console
from marginparts.commands import _fit_options as options
from marginparts.commands._console import Encoding, option, show

if TYPE_CHECKING:
    from marginparts.labeling.server import LabelServer

EPILOG = _console.examples(
    "label tickets.csv --text body",
    "label tickets.csv --text body --label team",
    "label reports.csv --text report --label causes --label-sep ';'",
    "label photos/ --no-browser --port 8000",
)


def label(
    file: options.File,
    text: options.Text = None,
    label: options.Label = None,
    label_sep: options.LabelSep = None,
    labels: options.LabelsFile = None,
    words: options.WordsFile = None,
    several: Annotated[
        bool, typer.Option("--several", help="A sample can have several labels.")
    ] = False,
    who: Annotated[
        str | None, option("--who", "NAME", "Who answers.", show_default="your user name")
    ] = None,
    port: Annotated[
        int, option("--port", "N", "Where the page is.", min=0, max=65535, show_default="any")
    ] = 0,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")
    ] = True,
    min_df: options.MinDf = 2,
    max_df: options.MaxDf = 0.7,
    missing: options.Missing = None,
    encoding: Encoding = "utf-8",
) -> None:
    """Label a file in the browser, and watch it learn.

    The page shows the samples that would teach most, one at a time, and says how good the model
    would be and when to stop. Nothing leaves this machine. The file is never changed: answers are
    in FILE.labels.jsonl beside it, on the disk before the next sample shows, and the same command
    goes on with them. Ctrl-C ends it.
    """
    from marginparts.labeling.server import LabelServer
    from marginparts.labeling.session import Labeling

    with _console.sentences():
        labeling = Labeling(
            file, text=text, label=label, label_sep=label_sep, labels=labels, words=words,
            encoding=encoding, several=several or label_sep is not None, who=who, min_df=min_df,
            max_df=max_df, missing=missing,
        )  # fmt: skip
        try:
            server = LabelServer(labeling, port)
        except OSError as error:
            _console.refuse(f"The port {port} cannot be used: {error.strerror}; give another.")
        typer.echo(f"Label at {server.address}\nCtrl-C ends it; every answer is kept.")
        if browser:
            webbrowser.open(server.address)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            pass
        finally:
            server.server_close()
        show(_end(server))


def _end(server: LabelServer) -> str:
    """Say where everything is."""
    labeling, finish = server.labeling, server.finish
    given = sum(bool(each.labels and each.when) for each in labeling.state.answers.values())
    what = "1 label is" if given == 1 else f"{given} labels are"
    answers = f"{what} in {labeling.journal.path}" if given else "No label was given"
    if finish.made:
        return f"{answers}, the model is in {finish.model} and its page in {finish.page}."
    return f"{answers}; there is no model yet: the button on the page makes one."
