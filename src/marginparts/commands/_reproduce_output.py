"""What ``marginparts reproduce`` shows: tables and figures from records, nothing computed."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import typer
from rich.console import Console

from marginparts.commands._console import table as plain_table
from marginparts.experiments import figures, page, plan, tables
from marginparts.experiments.bases import load_bases
from marginparts.experiments.edges import edges
from marginparts.experiments.plan import Study
from marginparts.experiments.registry import METHODS, title_of
from marginparts.experiments.reproduce import Results
from marginparts.plots import save_figure

#: Methods without parts.
WITHOUT_PARTS = (
    "svm", "tsvm", "tsvm_shares", "self_training", "nb_em", "label_spreading", "lsa",
)  # fmt: skip


class CannotError(Exception):
    """What keeps a table or figure from being made, in one sentence."""


def studies_of(target: str) -> tuple[Study, ...]:
    """Return what a table or figure is made of."""
    paper = (*plan.TABLE_2, plan.AVIATION)
    studies: dict[str, tuple[Study, ...]] = {
        "table1": (),
        "table2": (*paper, *plan.BESIDE),
        "fig2": (),
        "ablation": plan.ABLATIONS,
        "open-goal": plan.OPEN_GOAL,
    }
    return studies.get(target, paper)


def present(
    found: Results, target: str, data: Sequence[str] | None, into: Path | None = None
) -> None:
    """Show a table, or draw a figure, from the records; put tables into a page too."""
    if target == "table1":
        _show_table1()
    elif target == "table2":
        _show_table2(found, data, into)
    elif target == "ablation":
        _show_ablations(found, into)
    elif target == "open-goal":
        _show_open_goal(found, into)
    else:
        _draw(found, target)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Say in one sentence why a file cannot be written."""
    try:
        yield
    except OSError as error:
        raise CannotError(f"{path} cannot be written: {error.strerror}.") from error


def write_table(found: Results, name: str, table: Any) -> None:
    """Write a table, and say where."""
    with writing(found.place / name):
        typer.echo(f"Written to {found.write(name, table)}")


def into_page(into: Path | None, **contents: str) -> None:
    """Put tables between their marks in a Markdown page."""
    if into is None:
        return
    try:
        with writing(into):
            text = into.read_text("utf-8")
            for name, content in contents.items():
                text = page.replaced(text, name, content)
            into.write_text(text, "utf-8")
    except ValueError as error:
        raise CannotError(f"{into}: {error}") from error
    typer.echo(f"Put into {into}")


def _show_table1() -> None:
    numbers = ("training", "validation", "test", "columns", "classes")
    title = "Table 1: composition of the data sets"
    table = plain_table("data", "kind", *numbers, right=numbers, title=title)
    for row in tables.table1():
        table.add_row(*map(str, row.values()))
    Console().print(table)


def no_records(found: Results, target: str) -> NoReturn:
    """Say that there is nothing to show."""
    raise CannotError(
        f"There are no records for {target} in {found.place / 'records'}; run without "
        "--show, with the data at hand."
    )


def _show_table2(found: Results, data: Sequence[str] | None, into: Path | None) -> None:
    studies = studies_of("table2")
    records = found.records(studies)
    curves = tables.curves(records)
    if not curves:
        no_records(found, "table2")
    table, counts = tables.table2(curves), edges(curves, records)
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
    into_page(into, table2=page.table2_page(table), edges=page.edges_page(counts))


def _show_edges(counts: dict[str, Any]) -> None:
    """Show which choices lie at the end of what was tried."""
    headings, title = ("data", "method", "parameter"), "Choices at the end of what was tried"
    shown = plain_table(*headings, "choices", right=["choices"], title=title)
    for name, methods in counts.items():
        for method, parameters in methods.items():
            for parameter, count in parameters.items():
                if count["at_edge"]:
                    share = f"{count['at_edge']} of {count['choices']}"
                    shown.add_row(name, title_of(method), parameter, share)
    choices, at_edge = page.totals(counts)
    if at_edge:
        Console().print(shown)
    typer.echo(f"{at_edge} of {choices} choices lie at the end of what was tried.")


def _show_scores(name: str, shares: dict[str, Any]) -> None:
    """Show one data set's part of Table 2."""
    columns = [f"{share} labels" for share in shares]
    title = f"Table 2: {name}, score in % (in brackets: the paper's)"
    shown = plain_table("method", *columns, right=columns, title=title)
    most = max(result["splits"] for row in shares.values() for result in row.values())
    methods = dict.fromkeys(method for row in shares.values() for method in row)
    # those of the paper as they are listed, then your own
    for method in sorted(methods, key=[*METHODS, *methods].index):
        cells = [_shown(row.get(method), most) for row in shares.values()]
        shown.add_row(title_of(method), *cells, style="bold" if method == "nmf_alpha" else None)
    Console().print(shown)
    Console().print(page.places(shares))
    Console().print()


def _shown(result: dict[str, Any] | None, splits: int = 0) -> str:
    if result is None:
        return "-"
    paper = f" ({result['paper']})" if "paper" in result else ""
    fewer = f" {result['splits']} splits" if result.get("splits", splits) < splits else ""
    return f"{result['mean']:.1f} ± {result['std']:.1f}{paper}{fewer}"


def _show_ablations(found: Results, into: Path | None) -> None:
    records = found.records(studies_of("ablation"))
    if not records:
        no_records(found, "ablation")
    table = tables.ablation(records)
    for name, rows in table.items():
        what, scores = "what is changed", ("test", "against the paper's way")
        title = f"Ablation on {name}, score in %"
        shown = plain_table(what, *scores, right=scores, wrap=[what], title=title)
        for row in rows:
            change, spread = row["change"], row["change_std"]
            against = "" if change is None else f"{change:+.1f} ± {spread:.1f}"
            shown.add_row(row["what"], _shown(row), against)
        Console().print(shown)
        Console().print()
    write_table(found, "ablation.json", table)
    into_page(into, ablation=page.ablation_page(table))


def _show_open_goal(found: Results, into: Path | None) -> None:
    records = found.records(studies_of("open-goal"))
    if not records:
        no_records(found, "open-goal")
    others = [*records, *found.records(studies_of("table2"))]
    table = tables.open_goal(
        [record for record in records if record["method"] not in WITHOUT_PARTS],
        [record for record in others if record["method"] in WITHOUT_PARTS],
    )
    numbers, rival = ("labels", "ours", "parts"), "best rival"
    title = "Past the paper: score in %"
    shown = plain_table("data", *numbers, rival, right=numbers, wrap=[rival], title=title)
    for name, shares in table.items():
        for share, row in shares.items():
            best = row.get("best_rival")
            against = f"{_shown(best)} ({best['method']})" if best else "-"
            shown.add_row(name, share, _shown(row), str(row["dims"]), against)
    Console().print(shown)
    write_table(found, "open_goal.json", table)
    into_page(into, open_goal=page.open_goal_page(table))


def _draw(found: Results, target: str) -> None:
    path = found.place / f"{target}.png"
    bases = found.place / "records" / "fig2.npz"
    curves = [] if target == "fig2" else found.curves(studies_of(target))
    if not (bases.exists() if target == "fig2" else curves):
        no_records(found, target)
    try:
        with writing(path):
            if target == "fig2":
                figure = figures.figure2(load_bases(bases))
            elif target == "fig3":
                figure = figures.figure3(curves, tables.PREPARATION, also=found.methods)
            elif target == "fig4":
                figure = figures.figure4(curves, tables.PREPARATION)
            else:
                figure = figures.figure5(curves, tables.PREPARATION)
            save_figure(figure, path)
    except (ImportError, ValueError) as error:
        raise CannotError(str(error)) from error
    typer.echo(f"Drawn in {path}")
