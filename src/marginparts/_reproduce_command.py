"""The command ``marginparts reproduce``: the paper's tables and figures from the real data."""

from __future__ import annotations

import time
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from rich import box
from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bars
from rich.table import Table

from marginparts._data_command import DataDir

if TYPE_CHECKING:
    from marginparts.experiments.plan import Study, Unit
    from marginparts.experiments.reproduce import Results


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
    all = "all"


#: Methods on the inputs themselves.
RAW = ("svm", "tsvm", "tsvm_shares")

#: The paper's own tables and figures.
PAPER = (Target.table1, Target.table2, Target.fig2, Target.fig3, Target.fig4, Target.fig5)


def reproduce(
    target: Annotated[
        Target,
        typer.Argument(
            metavar="WHAT",
            help="table1, table2, fig2, fig3, fig4, fig5, ablation or open-goal; "
            "all for the paper's own.",
        ),
    ],
    quick: Annotated[
        bool, typer.Option("--quick", help="A small grid on one split, in minutes.")
    ] = False,
    show: Annotated[
        bool, typer.Option("--show", help="From the records at hand, without computing.")
    ] = False,
    data: Annotated[
        list[str] | None,
        typer.Option(
            "--data",
            metavar="NAME",
            help="Only this data set; may be repeated.",
            show_default=False,
        ),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            metavar="CLASS",
            help="One more method: a scikit-learn transformer as package.module:Class.",
            show_default=False,
        ),
    ] = None,
    results: Annotated[
        Path,
        typer.Option("--results", metavar="DIR", help="The folder of records, tables and figures."),
    ] = Path("results"),
    data_dir: DataDir = None,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", metavar="N", min=1, help="Processes.", show_default="one a core"),
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(
            "--minutes",
            metavar="M",
            min=0,
            help="Begin no more work after this time; the same command goes on later.",
            show_default=False,
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
) -> None:
    """Reproduce the paper's tables and figures from the real data.

    Results are kept as they come: a run that was stopped or killed goes on where it was.

    Examples: marginparts reproduce all --quick;
    marginparts reproduce table2 --data news --minutes 50;
    marginparts reproduce fig3 --show;
    marginparts reproduce table2 --method sklearn.decomposition:TruncatedSVD
    """
    from marginparts.experiments.registry import method_named
    from marginparts.experiments.reproduce import Results

    for name in method or ():
        try:
            method_named(name)
        except ValueError as error:
            _fail(str(error), 2)
    found = Results(results, data_dir, quick, tuple(method or ()))
    targets = PAPER if target is Target.all else (target,)
    _check_data(targets, data)
    deadline = None if minutes is None else time.monotonic() + 60 * minutes
    complaints = []
    for each in targets:
        try:
            if not show:
                _compute(found, each, data, jobs, deadline, quiet)
            _present(found, each, data)
        except CannotError as error:  # the other tables and figures can still be made
            typer.echo(str(error), err=True)
            complaints.append(error)
    if complaints:
        raise typer.Exit(1)


class CannotError(Exception):
    """What keeps a table or figure from being made, in one sentence."""


def _fail(sentence: str, code: int = 1) -> NoReturn:
    typer.echo(sentence, err=True)
    raise typer.Exit(code)


def _studies(target: Target) -> tuple[Study, ...]:
    """Return what a table or figure is made of."""
    from marginparts.experiments import plan

    paper = (*plan.TABLE_2, plan.AVIATION)
    studies: dict[Target, tuple[Study, ...]] = {
        Target.table1: (),
        Target.table2: (*paper, *plan.BESIDE),
        Target.fig2: (),
        Target.ablation: plan.ABLATIONS,
        Target.open_goal: plan.OPEN_GOAL,
    }
    return studies.get(target, paper)


def _check_data(targets: Sequence[Target], data: Sequence[str] | None) -> None:
    """Refuse a data set on which there is nothing to run."""
    from marginparts.experiments.bases import DATA

    known = {study.data for target in targets for study in _studies(target)}
    known |= {DATA} if Target.fig2 in targets else set()
    for name in data or ():
        if name not in known:
            some = f"it is one of {', '.join(sorted(known))}" if known else "it needs none"
            _fail(f"There is nothing to run on {name!r} for this; {some}.", 2)


def _compute(
    found: Results,
    target: Target,
    data: Sequence[str] | None,
    jobs: int | None,
    deadline: float | None,
    quiet: bool,
) -> None:
    """Run what is missing."""
    from concurrent.futures.process import BrokenProcessPool

    from marginparts.experiments.store import StoreError

    if target is Target.fig2:
        _compute_bases(found, data)
        return
    studies = _to_run(found, target, data)
    bars = Bars(
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:3.0f} %"),
        TimeElapsedColumn(), TimeRemainingColumn(),
        console=Console(stderr=True), disable=quiet, transient=True, speed_estimate_period=600,
    )  # fmt: skip
    left, failures = 0, []
    try:
        with bars:
            total = sum(unit.weight for study in studies for unit in found.left(study))
            bar = bars.add_task(target.value, total=total)

            def tell(unit: Unit, records: Any) -> None:
                bars.update(bar, advance=unit.weight, description=f"{unit.data}: {unit.method}")

            for study in studies:
                outcome = found.run(study, n_jobs=jobs, deadline=deadline, on_unit=tell)
                left += outcome.left - len(outcome.failures)
                failures += outcome.failures
    except StoreError as error:
        raise CannotError(str(error)) from error
    except BrokenProcessPool as error:
        raise CannotError(
            "A process was killed, perhaps for want of memory; what was done is kept. Try again "
            "with fewer --jobs."
        ) from error
    except KeyboardInterrupt:
        _fail("Stopped. What was done is kept; the same command goes on.", 130)
    for failure in failures:
        typer.echo(str(failure), err=True)
    if left:
        typer.echo(
            f"The time is up with {left} units of work left for {target.value}. What was done is "
            "kept; the same command goes on.",
            err=True,
        )


def _to_run(found: Results, target: Target, data: Sequence[str] | None) -> list[Study]:
    """Return the studies with work left whose data is at hand; say why others are not run."""
    from marginparts.experiments import plan

    # few have the paper's third data set: it is run for those who name it
    wanted = [
        study
        for study in _studies(target)
        if (study.data in data if data else study is not plan.AVIATION) and found.left(study)
    ]
    missing = {study.data: found.missing_data(study) for study in wanted}
    for sentence in dict.fromkeys(filter(None, missing.values())):
        typer.echo(sentence, err=True)
    return [study for study in wanted if missing[study.data] is None]


def _compute_bases(found: Results, data: Sequence[str] | None) -> None:
    """Find the parts of Figure 2, unless they are there."""
    from marginparts.datasets import DataError
    from marginparts.experiments.bases import DATA, LAMS, find_bases, load_bases, save_bases

    path = found.place / "records" / "fig2.npz"
    if data and DATA not in data:
        return
    if path.exists() and [panel.lam for panel in load_bases(path).panels] == list(LAMS):
        return
    try:
        save_bases(path, find_bases(found.data_dir, quick=found.quick))
    except DataError as error:
        raise CannotError(str(error)) from error
    except OSError as error:
        raise CannotError(f"{path} cannot be written: {error.strerror}.") from error


def _present(found: Results, target: Target, data: Sequence[str] | None) -> None:
    """Show a table, or draw a figure, from the records."""
    if target is Target.table1:
        _show_table1()
    elif target is Target.table2:
        _show_table2(found, data)
    elif target is Target.ablation:
        _show_ablations(found)
    elif target is Target.open_goal:
        _show_open_goal(found)
    else:
        _draw(found, target)


def _write(found: Results, name: str, table: Any) -> None:
    """Write a table, and say where."""
    try:
        typer.echo(f"Written to {found.write(name, table)}")
    except OSError as error:
        raise CannotError(f"{found.place / name} cannot be written: {error.strerror}.") from error


def _plain_table(title: str) -> Table:
    return Table(
        title=title, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False,
        title_justify="left",
    )  # fmt: skip


def _show_table1() -> None:
    from marginparts.experiments.tables import table1

    table = _plain_table("Table 1: composition of the data sets")
    for k, heading in enumerate(("data", "kind", "training", "validation", "test", "columns",
                                 "classes")):  # fmt: skip
        table.add_column(heading, justify="left" if k < 2 else "right", no_wrap=True)
    for row in table1():
        table.add_row(*map(str, row.values()))
    Console().print(table)


def _no_records(found: Results, target: Target) -> NoReturn:
    raise CannotError(
        f"There are no records for {target.value} in {found.place / 'records'}; run without "
        "--show, with the data at hand."
    )


def _title(method: str) -> str:
    from marginparts.experiments.registry import METHODS

    return METHODS[method].title if method in METHODS else method.rpartition(":")[2]


def _show_table2(found: Results, data: Sequence[str] | None) -> None:
    from marginparts.experiments.tables import PREPARATION, table2

    studies = _studies(Target.table2)
    curves = found.curves(studies)
    if not curves:
        _no_records(found, Target.table2)
    table = table2(curves, PREPARATION)
    for cell in curves:
        if PREPARATION.get(cell.data) != cell.preprocessing:
            beside = table2({cell: curves[cell]}, {cell.data: cell.preprocessing})
            table.setdefault(f"{cell.data}, {cell.preprocessing}", {}).update(beside[cell.data])
    for name, shares in table.items():
        if not data or name.partition(",")[0] in data:
            _show_scores(name, shares)
    begun = [study for study in studies if any(cell.data == study.data for cell in curves)]
    left = sum(len(found.left(study)) for study in begun)
    if left:
        typer.echo(f"{left} units of work are missing; run without --show.")
    _write(found, "table2.json", table)


def _show_scores(name: str, shares: dict[str, Any]) -> None:
    """Show one data set's part of Table 2."""
    shown = _plain_table(f"Table 2: {name}, score in % (in brackets: the paper's)")
    shown.add_column("method", no_wrap=True)
    for share in shares:
        shown.add_column(f"{share} labels", justify="right", no_wrap=True)
    most = max(result["splits"] for row in shares.values() for result in row.values())
    methods = dict.fromkeys(method for row in shares.values() for method in row)
    for method in sorted(methods, key=_order):
        cells = [_shown(row.get(method), most) for row in shares.values()]
        shown.add_row(_title(method), *cells, style="bold" if method == "nmf_alpha" else None)
    Console().print(shown)
    Console().print()


def _order(method: str) -> int:
    from marginparts.experiments.registry import METHODS

    return list(METHODS).index(method) if method in METHODS else len(METHODS)


def _shown(result: dict[str, Any] | None, splits: int = 0) -> str:
    if result is None:
        return "-"
    paper = f" ({result['paper']})" if "paper" in result else ""
    fewer = f" {result['splits']} splits" if result.get("splits", splits) < splits else ""
    return f"{result['mean']:.1f} ± {result['std']:.1f}{paper}{fewer}"


def _show_ablations(found: Results) -> None:
    from marginparts.experiments.tables import ablation

    records = found.records(_studies(Target.ablation))
    if not records:
        _no_records(found, Target.ablation)
    table = ablation(records)
    for name, rows in table.items():
        shown = _plain_table(f"Ablation on {name}, score in %")
        shown.add_column("what is changed")
        for heading in ("test", "against the paper's way"):
            shown.add_column(heading, justify="right", no_wrap=True)
        for row in rows:
            change, spread = row["change"], row["change_std"]
            against = "" if change is None else f"{change:+.1f} ± {spread:.1f}"
            shown.add_row(row["what"], _shown(row), against)
        Console().print(shown)
        Console().print()
    _write(found, "ablation.json", table)


def _show_open_goal(found: Results) -> None:
    from marginparts.experiments.tables import open_goal

    records = found.records(_studies(Target.open_goal))
    if not records:
        _no_records(found, Target.open_goal)
    raw = [*records, *found.records(_studies(Target.table2))]
    table = open_goal(
        [record for record in records if record["method"] not in RAW],
        [record for record in raw if record["method"] in RAW],
    )
    shown = _plain_table("Past the paper: score in %")
    for k, heading in enumerate(("data", "labels", "ours", "parts", "best raw classifier")):
        shown.add_column(heading, justify="right" if k in (1, 2, 3) else "left", no_wrap=k < 4)
    for name, shares in table.items():
        for share, row in shares.items():
            raw_row = row.get("best_raw")
            rival = f"{_shown(raw_row)} ({raw_row['method']})" if raw_row else "-"
            shown.add_row(name, share, _shown(row), str(row["dims"]), rival)
    Console().print(shown)
    _write(found, "open_goal.json", table)


def _draw(found: Results, target: Target) -> None:
    from marginparts import plots
    from marginparts.experiments.bases import load_bases
    from marginparts.experiments.tables import PREPARATION

    path = found.place / f"{target.value}.png"
    try:
        if target is Target.fig2:
            bases = found.place / "records" / "fig2.npz"
            if not bases.exists():
                _no_records(found, target)
            figure = plots.figure2(load_bases(bases))
        else:
            curves = found.curves(_studies(target))
            if not curves:
                _no_records(found, target)
            if target is Target.fig3:
                figure = plots.figure3(curves, PREPARATION, also=found.methods)
            elif target is Target.fig4:
                figure = plots.figure4(curves, PREPARATION)
            else:
                figure = plots.figure5(curves, PREPARATION)
        plots.save_figure(figure, path)
    except (ImportError, ValueError) as error:
        raise CannotError(str(error)) from error
    except OSError as error:
        raise CannotError(f"{path} cannot be written: {error.strerror}.") from error
    typer.echo(f"Drawn in {path}")
