"""The race with few labels in ``marginparts reproduce``: what is run, and what is shown of it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer
from rich.console import Console

from marginparts.commands._reproduce_output import (
    CannotError,
    Target,
    into_page,
    no_records,
    plain_table,
    write_table,
)

if TYPE_CHECKING:
    from rich.progress import Progress as Bars

    from marginparts.experiments.few_labels.race import Race, RaceUnit
    from marginparts.experiments.few_labels.tables import Scores
    from marginparts.experiments.reproduce import Results
    from marginparts.experiments.store import Record, Store

#: The targets that are races.
RACES = (Target.few_labels, Target.few_labels_curve, Target.few_labels_ablation)

#: All races share their records: a unit that two of them have is run once.
_RECORDS = "few-labels.jsonl"


class RaceChoice(NamedTuple):
    """Which race, on which collections, and which of its units to run (patterns of names)."""

    target: Target
    data: Sequence[str] | None = None
    only: Sequence[str] | None = None

    def race(self, found: Results) -> Race:
        """Return the race as it is run here, with collections that lie beside those it knows."""
        from dataclasses import replace

        from marginparts.datasets import DataError
        from marginparts.experiments.few_labels import race as races
        from marginparts.experiments.few_labels.collections import found_folders

        race = {
            Target.few_labels: races.FEW_LABELS,
            Target.few_labels_curve: races.CURVE,
            Target.few_labels_ablation: races.ABLATION,
        }[self.target]
        if self.target is not Target.few_labels_curve and not found.quick:
            race = replace(race, collections=tuple(found_folders(found.data_dir)))
        race = races.quick(race) if found.quick else race
        for name in self.data or ():
            if name not in race.collections:
                known = ", ".join(sorted(race.collections))
                raise CannotError(f"There is no collection {name!r} here; it is one of {known}.")
        try:
            race.units(data_dir=found.data_dir)
        except DataError as error:
            raise CannotError(str(error)) from error
        return race

    def units(self, found: Results) -> list[RaceUnit]:
        """Return the units to run, the cheapest first."""
        units = self.race(found).units(self.only or (), found.data_dir)
        return [unit for unit in units if not self.data or unit.data in self.data]


def _store(found: Results) -> Store:
    from marginparts.experiments.store import Store

    return Store(found.place / "records" / _RECORDS)


def run_race(
    found: Results, choice: RaceChoice, shown: Bars, jobs: int | None, deadline: float | None
) -> list[str]:
    """Run the units that have no record and whose data is here; return what is to be said."""
    from marginparts.experiments.few_labels.collections import missing_collection
    from marginparts.experiments.few_labels.race import run_race_unit
    from marginparts.experiments.runner import run_tasks

    store = _store(found)
    done = store.units()
    units = [unit for unit in choice.units(found) if unit.key not in done]
    names = dict.fromkeys(unit.data for unit in units)
    missing = {name: missing_collection(name, found.data_dir) for name in names}
    units = [unit for unit in units if missing[unit.data] is None]
    bar = shown.add_task(choice.target.value, total=sum(unit.weight for unit in units))

    def tell(unit: RaceUnit, records: list[Record]) -> None:
        shown.update(bar, advance=unit.weight, description=unit.name)

    folder = None if found.data_dir is None else os.fspath(found.data_dir)
    outcome = run_tasks(
        units, store, partial(run_race_unit, data_dir=folder), n_jobs=jobs, deadline=deadline,
        on_unit=tell,
    )  # fmt: skip
    left = outcome.left - len(outcome.failures)
    late = [f"The time is up with {left} units left; the same command goes on."] if left else []
    return [*filter(None, missing.values()), *map(str, outcome.failures), *late]


def show_race(found: Results, choice: RaceChoice, page: Path | None) -> None:
    """Show, write and draw what the records say, and which units have none."""
    from marginparts.experiments.few_labels.page import changes_page, curve_page, race_page
    from marginparts.experiments.few_labels.tables import (
        cell_table,
        changes,
        missing_sentence,
        scores_of,
        summary,
    )

    race, store = choice.race(found), _store(found)
    units, done = race.units(data_dir=found.data_dir), store.units()
    scores = scores_of(store.of({unit.key for unit in units}), race.entries)
    if not scores:
        no_records(found, choice.target)
    missing = missing_sentence(units, [unit for unit in units if unit.key not in done])
    told: dict[str, Any] = {"missing": missing, "cells": cell_table(race, scores)}
    if choice.target is Target.few_labels_ablation:
        told["changes"] = changes(race, scores)
        content = changes_page(told["changes"], missing)
        _show_changes(told["changes"])
    elif choice.target is Target.few_labels_curve:
        content = curve_page(race, scores, missing, _draw(found, choice.target, race, scores, page))
        _show_curve(race, scores)
    else:
        told["summary"] = summary(race, scores)
        figure = _draw(found, choice.target, race, scores, page)
        content = race_page(race, scores, told["summary"], missing, figure)
        _show_means(told["summary"])
    typer.echo(missing)
    write_table(found, f"{choice.target.value.replace('-', '_')}.json", told)
    into_page(page, **{choice.target.value.replace("-", "_"): content})


def _show_means(told: dict[str, Any]) -> None:
    from marginparts.experiments.few_labels.page import sentences

    shown = plain_table("Few labels: means over cells, in %")
    for k, heading in enumerate(("method, rows of texts", "score", "gain over SVM", "cells")):
        shown.add_column(heading, justify="right" if k else "left", no_wrap=True)
    for each in sorted(told["entries"], key=lambda each: -(each["gain"] or 0.0)):
        gain = "-" if each["gain"] is None else f"{each['gain']:+.1f} ± {each['error']:.1f}"
        bold = "bold" if each["method"].startswith("nmf_alpha") else None
        row = (each["title"], f"{each['score']:.1f}", gain, str(each["cells"]))
        shown.add_row(*row, style=bold)
    Console().print(shown)
    for sentence in sentences(told):
        Console().print(sentence.replace("**", ""))


def _show_curve(race: Race, scores: Scores) -> None:
    from marginparts.experiments.few_labels.page import curve_rows

    for data, (header, *rows) in curve_rows(race, scores).items():
        shown = plain_table(f"{data}: test score in % by labels a class")
        for k, heading in enumerate(header):
            shown.add_column(heading, justify="right" if k else "left", no_wrap=True)
        for row in rows:
            shown.add_row(*row)
        Console().print(shown)


def _show_changes(found: list[dict[str, Any]]) -> None:
    shown = plain_table("Few labels: what options of NMF-alpha change, in points")
    for k, heading in enumerate(("what is changed", "against NMF-alpha", "cells")):
        shown.add_column(heading, justify="right" if k else "left", no_wrap=True)
    for each in found:
        change = f"{each['mean']:+.2f} ± {each['error']:.2f}"
        shown.add_row(each["title"], change, str(each["cells"]))
    Console().print(shown)


def _draw(found: Results, target: Target, race: Race, scores: Scores, page: Path | None) -> str:
    """Draw the figure; return the way to it from the page."""
    from marginparts.experiments.few_labels.figure import curve_figure, race_figure
    from marginparts.plots import save_figure

    path = found.place / f"{target.value}.png"
    draw = curve_figure if target is Target.few_labels_curve else race_figure
    try:
        save_figure(draw(race, scores), path)
    except (ImportError, ValueError) as error:
        raise CannotError(str(error)) from error
    except OSError as error:
        raise CannotError(f"{path} cannot be written: {error.strerror}.") from error
    typer.echo(f"Drawn in {path}")
    start = page.parent if page is not None else found.place
    return Path(os.path.relpath(path, start)).as_posix()
