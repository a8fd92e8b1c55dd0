"""What ``marginparts reproduce`` shows: tables and figures from records, nothing computed."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer
from rich import box
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from marginparts.experiments.plan import Study
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
    few_labels = "few-labels"
    few_labels_curve = "few-labels-curve"
    few_labels_ablation = "few-labels-ablation"
    all = "all"


#: Methods without parts.
WITHOUT_PARTS = (
    "svm", "tsvm", "tsvm_shares", "self_training", "nb_em", "label_spreading", "lsa",
)  # fmt: skip


class CannotError(Exception):
    """What keeps a table or figure from being made, in one sentence."""


def studies_of(target: Target) -> tuple[Study, ...]:
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


def present(
    found: Results, target: Target, data: Sequence[str] | None, page: Path | None = None
) -> None:
    """Show a table, or draw a figure, from the records; put tables into a page too."""
    if target is Target.table1:
        _show_table1()
    elif target is Target.table2:
        _show_table2(found, data, page)
    elif target is Target.ablation:
        _show_ablations(found, page)
    elif target is Target.open_goal:
        _show_open_goal(found, page)
    else:
        _draw(found, target)


def write_table(found: Results, name: str, table: Any) -> None:
    """Write a table, and say where."""
    try:
        typer.echo(f"Written to {found.write(name, table)}")
    except OSError as error:
        raise CannotError(f"{found.place / name} cannot be written: {error.strerror}.") from error


def into_page(page: Path | None, **contents: str) -> None:
    """Put tables between their marks in a Markdown page."""
    from marginparts.experiments.page import replaced

    if page is None:
        return
    try:
        text = page.read_text("utf-8")
        for name, content in contents.items():
            text = replaced(text, name, content)
        page.write_text(text, "utf-8")
    except OSError as error:
        raise CannotError(f"{page} cannot be written: {error.strerror}.") from error
    except ValueError as error:
        raise CannotError(f"{page}: {error}") from error
    typer.echo(f"Put into {page}")


def plain_table(title: str) -> Table:
    """Return a table without lines, to be filled."""
    return Table(
        title=title, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False,
        title_justify="left",
    )  # fmt: skip


def _show_table1() -> None:
    from marginparts.experiments.tables import table1

    table = plain_table("Table 1: composition of the data sets")
    for k, heading in enumerate(("data", "kind", "training", "validation", "test", "columns",
                                 "classes")):  # fmt: skip
        table.add_column(heading, justify="left" if k < 2 else "right", no_wrap=True)
    for row in table1():
        table.add_row(*map(str, row.values()))
    Console().print(table)


def no_records(found: Results, target: Target) -> NoReturn:
    """Say that there is nothing to show."""
    raise CannotError(
        f"There are no records for {target.value} in {found.place / 'records'}; run without "
        "--show, with the data at hand."
    )


def _show_table2(found: Results, data: Sequence[str] | None, page: Path | None) -> None:
    from marginparts.experiments.edges import edges
    from marginparts.experiments.page import edges_page, table2_page
    from marginparts.experiments.tables import curves as curves_of
    from marginparts.experiments.tables import table2

    studies = studies_of(Target.table2)
    records = found.records(studies)
    curves = curves_of(records)
    if not curves:
        no_records(found, Target.table2)
    table, counts = table2(curves), edges(curves, records)
    for name, shares in table.items():
        if not data or name.partition(",")[0] in data:
            _show_scores(name, shares)
    begun = [study for study in studies if any(cell.data == study.data for cell in curves)]
    left = sum(len(found.left(study)) for study in begun)
    if left:
        typer.echo(f"{left} units of work are missing; run without --show.")
    _show_edges(counts)
    write_table(found, "table2.json", table)
    write_table(found, "edges.json", counts)
    into_page(page, table2=table2_page(table), edges=edges_page(counts))


def _show_edges(counts: dict[str, Any]) -> None:
    """Show which choices lie at the end of what was tried."""
    from marginparts.experiments.page import totals
    from marginparts.experiments.registry import title_of

    shown = plain_table("Choices at the end of what was tried")
    for k, heading in enumerate(("data", "method", "parameter", "choices")):
        shown.add_column(heading, justify="right" if k == 3 else "left", no_wrap=True)
    for name, methods in counts.items():
        for method, parameters in methods.items():
            for parameter, count in parameters.items():
                if count["at_edge"]:
                    share = f"{count['at_edge']} of {count['choices']}"
                    shown.add_row(name, title_of(method), parameter, share)
    choices, at_edge = totals(counts)
    if at_edge:
        Console().print(shown)
    typer.echo(f"{at_edge} of {choices} choices lie at the end of what was tried.")


def _show_scores(name: str, shares: dict[str, Any]) -> None:
    """Show one data set's part of Table 2."""
    from marginparts.experiments.page import places
    from marginparts.experiments.registry import METHODS, title_of

    shown = plain_table(f"Table 2: {name}, score in % (in brackets: the paper's)")
    shown.add_column("method", no_wrap=True)
    for share in shares:
        shown.add_column(f"{share} labels", justify="right", no_wrap=True)
    most = max(result["splits"] for row in shares.values() for result in row.values())
    methods = dict.fromkeys(method for row in shares.values() for method in row)
    # those of the paper as they are listed, then your own
    for method in sorted(methods, key=[*METHODS, *methods].index):
        cells = [_shown(row.get(method), most) for row in shares.values()]
        shown.add_row(title_of(method), *cells, style="bold" if method == "nmf_alpha" else None)
    Console().print(shown)
    Console().print(places(shares))
    Console().print()


def _shown(result: dict[str, Any] | None, splits: int = 0) -> str:
    if result is None:
        return "-"
    paper = f" ({result['paper']})" if "paper" in result else ""
    fewer = f" {result['splits']} splits" if result.get("splits", splits) < splits else ""
    return f"{result['mean']:.1f} ± {result['std']:.1f}{paper}{fewer}"


def _show_ablations(found: Results, page: Path | None) -> None:
    from marginparts.experiments.page import ablation_page
    from marginparts.experiments.tables import ablation

    records = found.records(studies_of(Target.ablation))
    if not records:
        no_records(found, Target.ablation)
    table = ablation(records)
    for name, rows in table.items():
        shown = plain_table(f"Ablation on {name}, score in %")
        shown.add_column("what is changed")
        for heading in ("test", "against the paper's way"):
            shown.add_column(heading, justify="right", no_wrap=True)
        for row in rows:
            change, spread = row["change"], row["change_std"]
            against = "" if change is None else f"{change:+.1f} ± {spread:.1f}"
            shown.add_row(row["what"], _shown(row), against)
        Console().print(shown)
        Console().print()
    write_table(found, "ablation.json", table)
    into_page(page, ablation=ablation_page(table))


def _show_open_goal(found: Results, page: Path | None) -> None:
    from marginparts.experiments.page import open_goal_page
    from marginparts.experiments.tables import open_goal

    records = found.records(studies_of(Target.open_goal))
    if not records:
        no_records(found, Target.open_goal)
    others = [*records, *found.records(studies_of(Target.table2))]
    table = open_goal(
        [record for record in records if record["method"] not in WITHOUT_PARTS],
        [record for record in others if record["method"] in WITHOUT_PARTS],
    )
    shown = plain_table("Past the paper: score in %")
    for k, heading in enumerate(("data", "labels", "ours", "parts", "best rival")):
        shown.add_column(heading, justify="right" if k in (1, 2, 3) else "left", no_wrap=k < 4)
    for name, shares in table.items():
        for share, row in shares.items():
            best = row.get("best_rival")
            rival = f"{_shown(best)} ({best['method']})" if best else "-"
            shown.add_row(name, share, _shown(row), str(row["dims"]), rival)
    Console().print(shown)
    write_table(found, "open_goal.json", table)
    into_page(page, open_goal=open_goal_page(table))


def _draw(found: Results, target: Target) -> None:
    from marginparts.experiments import figures
    from marginparts.experiments.bases import load_bases
    from marginparts.experiments.tables import PREPARATION
    from marginparts.plots import save_figure

    path = found.place / f"{target.value}.png"
    try:
        if target is Target.fig2:
            bases = found.place / "records" / "fig2.npz"
            if not bases.exists():
                no_records(found, target)
            figure = figures.figure2(load_bases(bases))
        else:
            curves = found.curves(studies_of(target))
            if not curves:
                no_records(found, target)
            if target is Target.fig3:
                figure = figures.figure3(curves, PREPARATION, also=found.methods)
            elif target is Target.fig4:
                figure = figures.figure4(curves, PREPARATION)
            else:
                figure = figures.figure5(curves, PREPARATION)
        save_figure(figure, path)
    except (ImportError, ValueError) as error:
        raise CannotError(str(error)) from error
    except OSError as error:
        raise CannotError(f"{path} cannot be written: {error.strerror}.") from error
    typer.echo(f"Drawn in {path}")
