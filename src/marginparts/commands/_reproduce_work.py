"""What ``marginparts reproduce`` computes: the records that are missing."""

from collections.abc import Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager

import typer

from marginparts.backends import get_backend
from marginparts.commands._console import bars, refuse
from marginparts.commands._reproduce_output import CannotError, studies_of, writing
from marginparts.datasets import DataError
from marginparts.experiments import plan
from marginparts.experiments.bases import DATA, LAMS, find_bases, load_bases, save_bases
from marginparts.experiments.plan import Study, Unit
from marginparts.experiments.registry import method_named
from marginparts.experiments.reproduce import Results
from marginparts.experiments.store import Record, StoreError


def check(
    targets: Sequence[str], data: Sequence[str], methods: Sequence[str], backend: str
) -> None:
    """Refuse unknown methods and backends, and data sets on which there is nothing to run."""
    from marginparts.commands._wording import spoken

    try:
        for name in methods:
            method_named(name)
        get_backend(backend)
    except (ValueError, ImportError) as error:
        refuse(spoken(str(error)))
    known = {study.data for target in targets for study in studies_of(target)}
    known |= {DATA} if "fig2" in targets else set()
    for name in data:
        if name not in known:
            some = f"it is one of {', '.join(sorted(known))}" if known else "it needs none"
            refuse(f"There is nothing to run on {name!r} for this; {some}.")


def compute(
    found: Results,
    target: str,
    data: Sequence[str] | None,
    jobs: int | None,
    deadline: float | None,
    quiet: bool,
) -> bool:
    """Run what is missing, and return whether all of its data is here."""
    if target == "fig2":
        _compute_bases(found, data)
        return True
    wanted = _wanted(found, target, data)
    studies = _to_run(found, wanted)
    if not wanted and studies_of(target):
        typer.echo(
            f"The records of {target} in {found.place} are complete, so nothing was computed; "
            "with another folder in --results it is.",
            err=True,
        )
    left, failures = 0, []
    with problems_of_a_run(), bars(quiet=quiet, memory=600) as shown:
        total = sum(unit.weight for study in studies for unit in found.left(study))
        bar = shown.add_task(target, total=total)

        def tell(unit: Unit, records: list[Record]) -> None:
            shown.update(bar, advance=unit.weight, description=f"{unit.data}: {unit.method}")

        for study in studies:
            outcome = found.run(study, n_jobs=jobs, deadline=deadline, on_unit=tell)
            left += outcome.left - len(outcome.failures)
            failures += outcome.failures
    for failure in failures:
        typer.echo(str(failure), err=True)
    if left:
        typer.echo(
            f"The time is up with {left} units of work left for {target}. What was done is "
            "kept; the same command goes on.",
            err=True,
        )
    return len(studies) == len(wanted)


@contextmanager
def problems_of_a_run() -> Iterator[None]:
    """Say in one sentence why a run ended early; what was done is kept."""
    try:
        yield
    except StoreError as error:
        raise CannotError(str(error)) from error
    except BrokenProcessPool as error:
        raise CannotError(
            "A process was killed, perhaps for want of memory; what was done is kept. Try again "
            "with fewer --jobs."
        ) from error
    except KeyboardInterrupt:
        refuse("Stopped. What was done is kept; the same command goes on.", 130)


def _wanted(found: Results, target: str, data: Sequence[str] | None) -> list[Study]:
    """Return the studies with work left."""
    # few have the paper's third data set: it is run for those who name it
    return [
        study
        for study in studies_of(target)
        if (study.data in data if data else study is not plan.AVIATION) and found.left(study)
    ]


def _to_run(found: Results, wanted: Sequence[Study]) -> list[Study]:
    """Return the studies whose data is at hand; say why others are not run."""
    missing = {study.data: found.missing_data(study) for study in wanted}
    for sentence in dict.fromkeys(filter(None, missing.values())):
        typer.echo(sentence, err=True)
    return [study for study in wanted if missing[study.data] is None]


def _compute_bases(found: Results, data: Sequence[str] | None) -> None:
    """Find the parts of Figure 2, unless they are there."""
    path = found.place / "records" / "fig2.npz"
    if data and DATA not in data:
        return
    if path.exists() and [panel.lam for panel in load_bases(path).panels] == list(LAMS):
        return
    try:
        bases = find_bases(found.data_dir, quick=found.quick)
    except DataError as error:
        raise CannotError(str(error)) from error
    with writing(path):
        save_bases(path, bases)
