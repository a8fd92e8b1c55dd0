"""The command ``marginparts reproduce``: the paper's tables and figures from the real data."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from marginparts.commands._console import bars
from marginparts.commands._few_labels import RACES, RaceChoice, run_race, show_race
from marginparts.commands._reproduce_output import CannotError, Target, present, studies_of
from marginparts.commands.data import DataDir

if TYPE_CHECKING:
    from marginparts.experiments.plan import Study, Unit
    from marginparts.experiments.reproduce import Results
    from marginparts.experiments.store import Record


#: The paper's own tables and figures.
PAPER = (Target.table1, Target.table2, Target.fig2, Target.fig3, Target.fig4, Target.fig5)


def _option(flag: str, metavar: str, text: str, **more: Any) -> Any:
    return typer.Option(flag, metavar=metavar, help=text, **more)


_NONE: dict[str, Any] = {"show_default": False}
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
DataSets = Annotated[
    list[str] | None, _option("--data", "NAME", "Only this data set; may be repeated.", **_NONE)
]
OwnMethods = Annotated[list[str] | None, _option("--method", "CLASS", _OWN_METHOD, **_NONE)]
Only = Annotated[list[str] | None, _option("--only", "PATTERN", _ONLY, **_NONE)]
Folder = Annotated[Path, _option("--results", "DIR", "The folder of records, tables and figures.")]
BackendName = Annotated[str, _option("--backend", "NAME", _BACKEND)]
Jobs = Annotated[int | None, _option("--jobs", "N", "Processes.", min=1, show_default="one a core")]
Minutes = Annotated[float | None, _option("--minutes", "M", _MINUTES, min=0, **_NONE)]
Page = Annotated[
    Path | None,
    _option("--page", "FILE", "Put the tables into this Markdown page too, between its marks.",
            **_NONE),
]  # fmt: skip
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

    Results are kept as they come: a run that was stopped or killed goes on where it was.

    Examples: marginparts reproduce all --quick;
    marginparts reproduce table2 --data news --minutes 50;
    marginparts reproduce fig3 --show;
    marginparts reproduce table2 --method sklearn.decomposition:TruncatedSVD;
    marginparts reproduce few-labels --data usps --only '*/5/0/*'
    """
    from marginparts.experiments.reproduce import Results

    found = Results(results, data_dir, quick, tuple(method or ()), backend)
    deadline = None if minutes is None else time.monotonic() + 60 * minutes
    if target in RACES:
        _race(found, RaceChoice(target, data, only), show, jobs, deadline, page, quiet)
        return
    targets = PAPER if target is Target.all else (target,)
    if only:
        _fail("--only is for few-labels; use --data.", 2)
    _check(targets, data or (), method or (), backend)
    complaints = []
    for each in targets:
        try:
            if not show:
                _compute(found, each, data, jobs, deadline, quiet)
            present(found, each, data, page)
        except CannotError as error:  # the other tables and figures can still be made
            typer.echo(str(error), err=True)
            complaints.append(error)
    if complaints:
        raise typer.Exit(1)


def _race(
    found: Results,
    choice: RaceChoice,
    show: bool,
    jobs: int | None,
    deadline: float | None,
    page: Path | None,
    quiet: bool,
) -> None:
    """Run what is missing of a race, and show what there is."""
    if found.methods or found.backend != "numba":
        _fail("few-labels has its own methods and backend; use --only '*/METHOD/*'.", 2)
    try:
        if not show:
            with _problems_of_a_run(), bars(quiet=quiet, memory=600) as shown:
                said = run_race(found, choice, shown, jobs, deadline)
            for sentence in said:
                typer.echo(sentence, err=True)
        show_race(found, choice, page)
    except CannotError as error:
        _fail(str(error))


def _fail(sentence: str, code: int = 1) -> NoReturn:
    typer.echo(sentence, err=True)
    raise typer.Exit(code)


def _check(
    targets: Sequence[Target], data: Sequence[str], methods: Sequence[str], backend: str
) -> None:
    """Refuse unknown methods and backends, and data sets on which there is nothing to run."""
    from marginparts.backends import get_backend
    from marginparts.experiments.bases import DATA
    from marginparts.experiments.registry import method_named

    try:
        for name in methods:
            method_named(name)
        get_backend(backend)
    except (ValueError, ImportError) as error:
        _fail(str(error), 2)
    known = {study.data for target in targets for study in studies_of(target)}
    known |= {DATA} if Target.fig2 in targets else set()
    for name in data:
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
    if target is Target.fig2:
        _compute_bases(found, data)
        return
    studies = _to_run(found, target, data)
    left, failures = 0, []
    with _problems_of_a_run(), bars(quiet=quiet, memory=600) as shown:
        total = sum(unit.weight for study in studies for unit in found.left(study))
        bar = shown.add_task(target.value, total=total)

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
            f"The time is up with {left} units of work left for {target.value}. What was done is "
            "kept; the same command goes on.",
            err=True,
        )


@contextmanager
def _problems_of_a_run() -> Iterator[None]:
    """Say in one sentence why a run ended early; what was done is kept."""
    from concurrent.futures.process import BrokenProcessPool

    from marginparts.experiments.store import StoreError

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
        _fail("Stopped. What was done is kept; the same command goes on.", 130)


def _to_run(found: Results, target: Target, data: Sequence[str] | None) -> list[Study]:
    """Return the studies with work left whose data is at hand; say why others are not run."""
    from marginparts.experiments import plan

    # few have the paper's third data set: it is run for those who name it
    wanted = [
        study
        for study in studies_of(target)
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
