"""The race with few labels in ``marginparts reproduce``: what is run, and what is shown of it."""

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import typer
from rich.console import Console

from marginparts.commands._console import bars, refuse
from marginparts.commands._console import table as plain_table
from marginparts.commands._reproduce_output import (
    CannotError,
    into_page,
    no_records,
    write_table,
    writing,
)
from marginparts.commands._reproduce_work import problems_of_a_run
from marginparts.datasets import DataError
from marginparts.experiments.few_labels import page as pages
from marginparts.experiments.few_labels import race as races
from marginparts.experiments.few_labels.collections import found_folders, missing_collection
from marginparts.experiments.few_labels.figure import curve_figure, race_figure
from marginparts.experiments.few_labels.race import Race, RaceUnit, run_race_unit
from marginparts.experiments.few_labels.tables import (
    Scores,
    cell_table,
    changes,
    missing_sentence,
    scores_of,
    summary,
)
from marginparts.experiments.reproduce import Results
from marginparts.experiments.runner import run_tasks
from marginparts.experiments.store import Record, Store
from marginparts.plots import save_figure

#: All races share their records: a unit that two of them have is run once.
_RECORDS = "few-labels.jsonl"


class RaceChoice(NamedTuple):
    """Which race, on which collections, and which of its units to run (patterns of names)."""

    target: str
    data: Sequence[str] | None = None
    only: Sequence[str] | None = None

    def race(self, found: Results) -> Race:
        """Return the race as it is run here, with collections that lie beside those it knows."""
        if found.methods or found.backend != "numba":
            refuse("few-labels has its own methods and backend; use --only '*/METHOD/*'.")
        known = (races.FEW_LABELS, races.CURVE, races.ABLATION)
        race = next(each for each in known if each.name == self.target)
        if race is not races.CURVE and not found.quick:
            race = replace(race, collections=tuple(found_folders(found.data_dir)))
        race = races.quick(race) if found.quick else race
        for name in self.data or ():
            if name not in race.collections:
                known_here = ", ".join(sorted(race.collections))
                raise CannotError(
                    f"There is no collection {name!r} here; it is one of {known_here}."
                )
        if self.data:
            some = tuple(name for name in race.collections if name in self.data)
            race = replace(race, collections=some)
        try:
            race.units(data_dir=found.data_dir)
        except DataError as error:
            raise CannotError(str(error)) from error
        return race

    def units(self, found: Results) -> list[RaceUnit]:
        """Return the units to run, the cheapest first."""
        return self.race(found).units(self.only or (), found.data_dir)


def _store(found: Results) -> Store:
    return Store(found.place / "records" / _RECORDS)


@problems_of_a_run()
def run_race(
    found: Results, choice: RaceChoice, jobs: int | None, deadline: float | None, quiet: bool
) -> bool:
    """Run the units that have no record and whose data is here; say what was not run.

    Returns whether all of the data is here.
    """
    store = _store(found)
    done = store.units()
    units = [unit for unit in choice.units(found) if unit.key not in done]
    names = dict.fromkeys(unit.data for unit in units)
    missing = {name: missing_collection(name, found.data_dir) for name in names}
    units = [unit for unit in units if missing[unit.data] is None]
    folder = None if found.data_dir is None else os.fspath(found.data_dir)
    work = partial(run_race_unit, data_dir=folder)
    with bars(quiet=quiet, memory=600) as shown:
        bar = shown.add_task(choice.target, total=sum(unit.weight for unit in units))

        def tell(unit: RaceUnit, records: list[Record]) -> None:
            shown.update(bar, advance=unit.weight, description=unit.name)

        outcome = run_tasks(units, store, work, n_jobs=jobs, deadline=deadline, on_unit=tell)
    left = outcome.left - len(outcome.failures)
    late = [f"The time is up with {left} units left; the same command goes on."] if left else []
    for sentence in (*filter(None, missing.values()), *map(str, outcome.failures), *late):
        typer.echo(sentence, err=True)
    return not any(missing.values())


def show_race(found: Results, choice: RaceChoice, page: Path | None) -> None:
    """Show, write and draw what the records say, and which units have none."""
    race, store = choice.race(found), _store(found)
    units, done = race.units(data_dir=found.data_dir), store.units()
    scores = scores_of(store.of({unit.key for unit in units}), race.entries)
    if not scores:
        no_records(found, choice.target)
    missing = missing_sentence(units, [unit for unit in units if unit.key not in done])
    told: dict[str, Any] = {"missing": missing, "cells": cell_table(race, scores)}
    if race.name == races.ABLATION.name:
        told["changes"] = changes(race, scores)
        content = pages.changes_page(told["changes"], missing)
        _show_changes(told["changes"])
    elif race.name == races.CURVE.name:
        figure = _draw(found, race, scores, page)
        content = pages.curve_page(race, scores, missing, figure)
        _show_curve(race, scores)
    else:
        told["summary"] = summary(race, scores)
        figure = _draw(found, race, scores, page)
        content = pages.race_page(race, scores, told["summary"], missing, figure)
        _show_means(told["summary"])
    typer.echo(missing)
    name = race.name.replace("-", "_")
    write_table(found, f"{name}.json", told)
    into_page(page, **{name: content})


def _show_means(told: dict[str, Any]) -> None:
    numbers, title = ("score", "gain over SVM", "cells"), "Few labels: means over cells, in %"
    shown = plain_table("method, rows of texts", *numbers, right=numbers, title=title)
    for each in sorted(told["entries"], key=lambda each: -(each["gain"] or 0.0)):
        gain = "-" if each["gain"] is None else f"{each['gain']:+.1f} ± {each['error']:.1f}"
        bold = "bold" if each["method"].startswith("nmf_alpha") else None
        row = (each["title"], f"{each['score']:.1f}", gain, str(each["cells"]))
        shown.add_row(*row, style=bold)
    Console().print(shown)
    for sentence in pages.sentences(told):
        Console().print(sentence.replace("**", ""))


def _show_curve(race: Race, scores: Scores) -> None:
    for data, (header, *rows) in pages.curve_rows(race, scores).items():
        title = f"{data}: test score in % by labels a class"
        shown = plain_table(*header, right=header[1:], title=title)
        for row in rows:
            shown.add_row(*row)
        Console().print(shown)


def _show_changes(found: list[dict[str, Any]]) -> None:
    numbers = ("against NMF-alpha", "cells")
    title = "Few labels: what options of NMF-alpha change, in points"
    shown = plain_table("what is changed", *numbers, right=numbers, title=title)
    for each in found:
        change = f"{each['mean']:+.2f} ± {each['error']:.2f}"
        shown.add_row(each["title"], change, str(each["cells"]))
    Console().print(shown)


def _draw(found: Results, race: Race, scores: Scores, page: Path | None) -> str:
    """Draw the figure; return the way to it from the page."""
    path = found.place / f"{race.name}.png"
    draw = curve_figure if race.name == races.CURVE.name else race_figure
    try:
        with writing(path):
            save_figure(draw(race, scores), path)
    except (ImportError, ValueError) as error:
        raise CannotError(str(error)) from error
    typer.echo(f"Drawn in {path}")
    start = page.parent if page is not None else found.place
    return Path(os.path.relpath(path, start)).as_posix()
