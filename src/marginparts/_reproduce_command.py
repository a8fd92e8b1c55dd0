"""The command ``marginparts reproduce``: the paper's tables and figures from the real data."""

from __future__ import annotations

import time
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
_RAW = ("svm", "tsvm")

#: The paper's own tables and figures.
PAPER = (Target.table1, Target.table2, Target.fig2, Target.fig3, Target.fig4, Target.fig5)


def reproduce(
    target: Annotated[Target, typer.Argument(help="A table or figure, or all of the paper's.")],
    quick: Annotated[
        bool, typer.Option("--quick", help="A small grid on two splits, in minutes.")
    ] = False,
    show: Annotated[
        bool, typer.Option("--show", help="From the records at hand, without computing.")
    ] = False,
    data: Annotated[
        list[str] | None,
        typer.Option("--data", help="Only this data set; may be repeated.", show_default=False),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            help="One more method: a scikit-learn transformer as package.module:Class.",
            show_default=False,
        ),
    ] = None,
    results: Annotated[
        Path, typer.Option("--results", help="The folder of records, tables and figures.")
    ] = Path("results"),
    data_dir: DataDir = None,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", min=1, help="Processes.", show_default="one a core"),
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(
            "--minutes",
            min=0,
            help="Begin no more work after this time; the same command goes on later.",
            show_default=False,
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
) -> None:
    """Reproduce the paper's tables and figures from the real data.

    Results are kept as they come: a run that was stopped or killed goes on where it was.
    """
    from marginparts.experiments.registry import method_named
    from marginparts.experiments.reproduce import Results

    for name in method or ():
        try:
            method_named(name)
        except ValueError as error:
            _fail(str(error), 2)
    found = Results(results, data_dir, quick, tuple(method or ()))
    deadline = None if minutes is None else time.monotonic() + 60 * minutes
    for each in PAPER if target is Target.all else (target,):
        if not show and not _compute(found, each, data, jobs, deadline, quiet):
            typer.echo("The time is up. What was done is kept; the same command goes on.", err=True)
            return
        _present(found, each, data)


def _fail(sentence: str, code: int = 1) -> None:
    typer.echo(sentence, err=True)
    raise typer.Exit(code)


def _studies(target: Target, data: Sequence[str] | None) -> tuple[Study, ...]:
    """Return what has to be run for a table or figure."""
    from marginparts.experiments import plan

    # the paper's third data set only for those who ask for it: few have it
    paper = (*plan.TABLE_2, plan.AVIATION) if data and plan.AVIATION.data in data else plan.TABLE_2
    wanted: dict[Target, tuple[Study, ...]] = {
        Target.table1: (),
        Target.table2: (*paper, *plan.TF_IDF),
        Target.fig2: (),
        Target.ablation: plan.ABLATIONS,
        Target.open_goal: plan.OPEN_GOAL,
    }
    studies = wanted.get(target, paper)
    if data and studies:
        known = {study.data for study in studies}
        unknown = [name for name in data if name not in known]
        if unknown:
            _fail(
                f"There is nothing to run on {unknown[0]!r}; --data is one of "
                f"{', '.join(sorted(known))}.", 2,
            )  # fmt: skip
        studies = tuple(study for study in studies if study.data in data)
    return studies


def _compute(
    found: Results,
    target: Target,
    data: Sequence[str] | None,
    jobs: int | None,
    deadline: float | None,
    quiet: bool,
) -> bool:
    """Run what is missing; say whether all of it is done."""
    if target is Target.fig2:
        return _compute_bases(found, deadline)
    studies = _studies(target, data)
    missing = {study.data: found.missing_data(study) for study in studies}
    for sentence in dict.fromkeys(filter(None, missing.values())):
        typer.echo(sentence, err=True)
    at_hand = [study for study in studies if missing[study.data] is None]
    if studies and not at_hand:
        raise typer.Exit(1)
    bars = Bars(
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:3.0f} %"),
        TimeElapsedColumn(), TimeRemainingColumn(),
        console=Console(stderr=True), disable=quiet, transient=True, speed_estimate_period=600,
    )  # fmt: skip
    with bars:
        bar = bars.add_task(target.value, total=found.open_weight(at_hand))

        def tell(unit: Unit, records: Any) -> None:
            bars.update(bar, advance=unit.weight, description=f"{unit.data}: {unit.method}")

        left = [found.run(s, n_jobs=jobs, deadline=deadline, on_unit=tell) for s in at_hand]
    return not any(left)


def _compute_bases(found: Results, deadline: float | None) -> bool:
    from marginparts.datasets import DataError
    from marginparts.experiments.bases import find_bases, save_bases

    path = found.place / "records" / "fig2.npz"
    if path.exists():
        return True
    if deadline is not None and time.monotonic() >= deadline:
        return False
    try:
        bases = find_bases(found.data_dir, quick=found.quick)
    except DataError as error:
        _fail(str(error))
    save_bases(path, bases)
    return True


def _present(found: Results, target: Target, data: Sequence[str] | None) -> None:
    """Show a table, or draw a figure, from the records."""
    if target is Target.table1:
        _show_table1()
    elif target is Target.table2:
        _show_table2(found, data)
    elif target is Target.ablation:
        _show_ablations(found, data)
    elif target is Target.open_goal:
        _show_open_goal(found, data)
    else:
        _draw(found, target, data)


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


def _no_records(found: Results) -> None:
    _fail(f"There are no records for this in {found.place / 'records'}; run without --show first.")


def _title(method: str) -> str:
    from marginparts.experiments.registry import METHODS

    return METHODS[method].title if method in METHODS else method.rpartition(":")[2]


def _show_table2(found: Results, data: Sequence[str] | None) -> None:
    from marginparts.experiments.tables import PREPARATION, table2

    curves = found.curves(_studies(Target.table2, data))
    if not curves:
        _no_records(found)
    table = table2(curves, PREPARATION)
    for cell in curves:
        if PREPARATION.get(cell.data) != cell.preprocessing:
            beside = table2({cell: curves[cell]}, {cell.data: cell.preprocessing})
            table.setdefault(f"{cell.data}, {cell.preprocessing}", {}).update(beside[cell.data])
    for name, shares in table.items():
        shown = _plain_table(f"Table 2: {name}, score in % (in brackets: the paper's)")
        shown.add_column("method", no_wrap=True)
        for share in shares:
            shown.add_column(f"{share} labels", justify="right", no_wrap=True)
        methods = list(dict.fromkeys(m for row in shares.values() for m in row))
        for method in sorted(methods, key=_order):
            cells = [_shown(row.get(method)) for row in shares.values()]
            shown.add_row(_title(method), *cells, style=_style(method))
        Console().print(shown)
        Console().print()
    typer.echo(f"Written to {found.write('table2.json', table)}")


def _order(method: str) -> int:
    from marginparts.experiments.registry import METHODS

    return list(METHODS).index(method) if method in METHODS else len(METHODS)


def _style(method: str) -> str | None:
    return "bold" if method == "nmf_alpha" else None


def _shown(result: dict[str, Any] | None) -> str:
    if result is None:
        return "-"
    paper = f" ({result['paper']})" if "paper" in result else ""
    return f"{result['mean']:.1f} ± {result['std']:.1f}{paper}"


def _show_ablations(found: Results, data: Sequence[str] | None) -> None:
    from marginparts.experiments.tables import ablation

    records = found.records(_studies(Target.ablation, data))
    if not records:
        _no_records(found)
    table = ablation(records)
    for name, rows in table.items():
        shown = _plain_table(f"Ablation on {name}, score in %")
        shown.add_column("what is changed")
        for heading in ("test", "against the paper's way"):
            shown.add_column(heading, justify="right", no_wrap=True)
        for row in rows:
            change = (
                "" if row["change"] is None else f"{row['change']:+.1f} ± {row['change_std']:.1f}"
            )
            shown.add_row(row["what"], f"{row['mean']:.1f} ± {row['std']:.1f}", change)
        Console().print(shown)
        Console().print()
    typer.echo(f"Written to {found.write('ablation.json', table)}")


def _show_open_goal(found: Results, data: Sequence[str] | None) -> None:
    from marginparts.experiments.tables import open_goal

    records = found.records(_studies(Target.open_goal, data))
    if not records:
        _no_records(found)
    raw = [r for r in found.records(_studies(Target.table2, None)) if r["method"] in _RAW]
    table = open_goal(records, raw)
    shown = _plain_table("Past the paper: score in %")
    for k, heading in enumerate(("data", "labels", "ours", "parts", "best raw classifier")):
        shown.add_column(heading, justify="right" if k in (1, 2, 3) else "left", no_wrap=k < 4)
    for name, shares in table.items():
        for share, row in shares.items():
            raw_row = row.get("best_raw")
            rival = f"{_shown(raw_row)} ({raw_row['method']})" if raw_row else "-"
            shown.add_row(name, share, _shown(row), str(row["dims"]), rival)
    Console().print(shown)
    typer.echo(f"Written to {found.write('open_goal.json', table)}")


def _draw(found: Results, target: Target, data: Sequence[str] | None) -> None:
    from marginparts import plots
    from marginparts.experiments.bases import load_bases
    from marginparts.experiments.tables import PREPARATION

    path = found.place / f"{target.value}.png"
    try:
        if target is Target.fig2:
            bases = found.place / "records" / "fig2.npz"
            if not bases.exists():
                _no_records(found)
            figure = plots.figure2(load_bases(bases))
        else:
            curves = found.curves(_studies(target, data))
            if not curves:
                _no_records(found)
            if target is Target.fig3:
                figure = plots.figure3(curves, PREPARATION, also=found.methods)
            elif target is Target.fig4:
                figure = plots.figure4(curves, PREPARATION)
            else:
                figure = plots.figure5(curves, PREPARATION)
    except (ImportError, ValueError) as error:
        _fail(str(error))
    plots.save_figure(figure, path)
    typer.echo(f"Drawn in {path}")
