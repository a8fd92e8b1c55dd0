"""The command ``marginparts reproduce``: the paper's tables and figures from the real data."""

import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from marginparts.commands._console import examples, option, refuse
from marginparts.commands.data import DataDir

EPILOG = examples(
    "reproduce all --quick",
    "reproduce table2 --data news --minutes 50",
    "reproduce fig3 --show",
    "reproduce table2 --method sklearn.decomposition:TruncatedSVD",
    "reproduce few-labels --data usps --only '*/5/0/*'",
)


class Target(StrEnum):
    """What can be reproduced."""

    table1 = "table1"
    table2 = "table2"
    fig2 = "fig2"
    fig3 = "fig3"
    fig4 = "fig4"
    fig5 = "fig5"
    ablation = "ablation"
    open_goal = "open-goal"
    few_labels = "few-labels"
    few_labels_curve = "few-labels-curve"
    few_labels_ablation = "few-labels-ablation"
    all = "all"


#: The paper's own tables and figures.
PAPER = (Target.table1, Target.table2, Target.fig2, Target.fig3, Target.fig4, Target.fig5)

#: The races with few labels.
RACES = (Target.few_labels, Target.few_labels_curve, Target.few_labels_ablation)

_WHAT = (
    "table1, table2, fig2, fig3, fig4, fig5, ablation or open-goal; all for the paper's own; "
    "few-labels, few-labels-curve or few-labels-ablation for the race with few labels."
)
_OWN_METHOD = "One more method: a scikit-learn transformer as package.module:Class."
_BACKEND = (
    "Where factorizations run: numba, torch (a GPU, shared by the processes) or reference. "
    "Records of another than numba are kept in a folder of its name."
)
_ONLY = (
    "Of few-labels only units whose name collection/labels/draw/method/rows matches, such as "
    "'usps/5/0/*' or '*/nmf_alpha*/*'; may be repeated."
)
_MINUTES = "Begin no more work after this time; the same command goes on later."

What = Annotated[Target, typer.Argument(metavar="WHAT", help=_WHAT)]
Quick = Annotated[bool, typer.Option("--quick", help="A small grid on one split, in minutes.")]
FromRecords = Annotated[
    bool, typer.Option("--show", help="From the records at hand, without computing.")
]
_DATA = "Only this data set; may be repeated."
DataSets = Annotated[list[str] | None, option("--data", "NAME", _DATA)]
OwnMethods = Annotated[list[str] | None, option("--method", "CLASS", _OWN_METHOD)]
Only = Annotated[list[str] | None, option("--only", "PATTERN", _ONLY)]
Folder = Annotated[Path, option("--results", "DIR", "The folder of records, tables and figures.")]
BackendName = Annotated[str, option("--backend", "NAME", _BACKEND)]
Jobs = Annotated[int | None, option("--jobs", "N", "Processes.", min=1, show_default="one a core")]
Minutes = Annotated[float | None, option("--minutes", "M", _MINUTES, min=0)]
_PAGE = "Put the tables into this Markdown page too, between its marks."
Page = Annotated[Path | None, option("--page", "FILE", _PAGE)]
NoBars = Annotated[bool, typer.Option("--quiet", help="Show no progress.")]


def reproduce(
    target: What,
    quick: Quick = False,
    show: FromRecords = False,
    data: DataSets = None,
    method: OwnMethods = None,
    only: Only = None,
    results: Folder = Path("results"),
    data_dir: DataDir = None,
    backend: BackendName = "numba",
    jobs: Jobs = None,
    minutes: Minutes = None,
    page: Page = None,
    quiet: NoBars = False,
) -> None:
    """Reproduce the paper's tables and figures from the real data.

    Results are kept as they come: a run that was stopped or killed goes on where it was, and what
    has a record is not computed again. Where data is missing, the records at hand are shown, and
    the exit code is 1.
    """
    from marginparts.commands._reproduce_output import CannotError, present
    from marginparts.commands._reproduce_work import check, compute
    from marginparts.experiments.reproduce import Results

    found = Results(results, data_dir, quick, tuple(method or ()), backend)
    deadline = None if minutes is None else time.monotonic() + 60 * minutes
    if target in RACES:
        from marginparts.commands._few_labels import RaceChoice, run_race, show_race

        choice = RaceChoice(target, data, only)
        try:
            whole = show or run_race(found, choice, jobs, deadline, quiet)
            show_race(found, choice, page)
        except CannotError as error:
            refuse(str(error), 1)
        raise typer.Exit(0 if whole else 1)
    if only:
        refuse("--only is for few-labels; use --data.")
    targets = PAPER if target is Target.all else (target,)
    check(targets, data or (), method or (), backend)
    whole = True
    for each in targets:
        try:
            whole &= show or compute(found, each, data, jobs, deadline, quiet)
            present(found, each, data, page)
        except CannotError as error:  # the other tables and figures can still be made
            typer.echo(str(error), err=True)
            whole = False
    if not whole:
        raise typer.Exit(1)
