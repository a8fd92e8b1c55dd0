"""The command ``marginparts demo``: many methods on two embedded data sets."""

import statistics
from collections import defaultdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import MofNCompleteColumn
from rich.table import Table

from marginparts.commands._console import (
    AsJson,
    Quiet,
    bars,
    examples,
    option,
    print_json,
    sentences,
)
from marginparts.files.atomic import check_destination, written_beside

PAGE = Path("marginparts-demo.html")

EPILOG = examples("demo", "demo --out page.html")


def demo(
    out: Annotated[Path, option("--out", "PAGE", "Where to write the page at the end.")] = PAGE,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Compare methods of the paper and of today on two embedded data sets, with few labels.

    Handwritten digits (4 v 9) and the docstrings of NumPy, SciPy and scikit-learn. Takes a minute
    or two on two cores and needs no download. It ends with a page that shows what NMF-alpha has
    learned about the digits.
    """
    from marginparts.app.demo import METHODS, Score, compare, demo_page, tasks

    with sentences():
        check_destination(out)

    results: dict[str, dict[str, list[Score]]] = {}
    with bars(MofNCompleteColumn(), quiet=quiet or as_json) as progress:
        loading = progress.add_task("loading the data sets", total=None)
        all_tasks = tasks()
        progress.remove_task(loading)
        for task in all_tasks:
            bar = progress.add_task(task.title, total=task.draws * len(METHODS))
            scores = results.setdefault(task.title, defaultdict(list))
            for score in compare(task):
                scores[score.method].append(score)
                progress.update(bar, advance=1, description=f"{task.name}: {score.method}")
        progress.add_task("writing the page", total=None)
        page = demo_page()
    with sentences(), written_beside(out, "w", encoding="utf-8") as file:
        file.write(page)
    if as_json:
        groups = [group for scores in results.values() for group in scores.values()]
        print_json([score._asdict() for group in groups for score in group])
        return
    console = Console()
    for task in all_tasks:
        console.print(_table(task.title, task.describe(), results[task.title]))
    console.print(_sentence(results))
    typer.echo(f"A page about the digits' model is in {out}")


def _mean(scores: list) -> float:
    return 100 * statistics.fmean(score.accuracy for score in scores)


def _table(title: str, subtitle: str, scores: dict) -> Table:
    """Return one data set's results, the best in bold."""
    table = Table(title=title, caption=subtitle, title_justify="left", caption_justify="left")
    table.add_column("method")
    for heading in ("accuracy %", "+/-", "dimensions", "seconds"):
        table.add_column(heading, justify="right")
    best = max(_mean(s) for s in scores.values())
    for method, all_scores in scores.items():
        mean = _mean(all_scores)
        spread = 100 * statistics.pstdev(score.accuracy for score in all_scores)
        seconds = statistics.fmean(score.seconds for score in all_scores)
        table.add_row(
            method, f"{mean:.1f}", f"{spread:.1f}", str(all_scores[0].dimensions), f"{seconds:.2f}",
            style="bold" if mean > best - 0.05 else None,
        )  # fmt: skip
    return table


def _sentence(results: dict) -> str:
    """Say in words what the tables mean."""
    parts = []
    for title, scores in results.items():
        ours = _mean(scores["NMF-alpha"])
        best = max((m for m in scores if m != "NMF-alpha"), key=lambda m: _mean(scores[m]))
        dims, all_dims = (scores[m][0].dimensions for m in ("NMF-alpha", "raw SVM"))
        svm, tsvm, plain = (
            _points(ours - _mean(scores[m])) for m in ("raw SVM", "raw TSVM", "NMF")
        )
        parts.append(
            f"{title}: with {dims} parts instead of {all_dims} features, NMF-alpha is {svm} the "
            f"linear SVM on the raw inputs, {tsvm} the transductive SVM on them, {plain} plain "
            f"NMF, and {_points(ours - _mean(scores[best]))} {best}, the best of the others."
        )
    return "\n".join(parts)


def _points(difference: float) -> str:
    if abs(difference) < 0.05:
        return "as accurate as"
    return f"{abs(difference):.1f} points {'above' if difference > 0 else 'below'}"
