"""The command ``marginparts ranks``: how many parts there are in a file, without labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from rich.console import Console

from marginparts.commands import _console as console
from marginparts.commands import _fit_options as options

if TYPE_CHECKING:
    from marginparts._types import Progress

EPILOG = console.examples(
    "ranks tickets.csv --text body --label team", "ranks counts.npz --components 5,10,20,40,80"
)

_USUAL = "2,4,8,16,32"


def ranks(
    file: options.File,
    text: options.Text = None,
    label: options.Label = None,
    components: Annotated[
        str, console.option("--components", "N", "Numbers of parts to try.", show_default=_USUAL)
    ] = "auto",
    folds: Annotated[
        int, console.option("--folds", "N", "How often other entries are hidden.", min=1, max=10)
    ] = 3,
    seed: options.Seed = 0,
    min_df: options.MinDf = 2,
    max_df: options.MaxDf = 0.7,
    stop_words: options.StopWords = None,
    weighting: options.Weighting = "counts",
    encoding: console.Encoding = "utf-8",
    as_json: console.AsJson = False,
) -> None:
    """Say how many parts a file has: entries are hidden from a fit, and predicted.

    Labels are ignored. Each number of parts is tried on several tenths of all entries; the
    smallest that predicts them as well as the best, within one standard error, is marked.
    """
    with console.sentences(), console.spoken_warnings():
        from marginparts.app.ranks import ranks_of_file

        asked = _USUAL if components == "auto" else components
        numbers = map(int, options.numbers(asked, "--components", int, 1, 100_000))
        with console.bars(quiet=as_json) as shown:
            task = shown.add_task(f"reading {file.name}", total=None)

            def callback(progress: Progress) -> None:
                shown.update(
                    task, description="predicting hidden entries", total=progress.max_iter,
                    completed=progress.iteration,
                )  # fmt: skip

            found = ranks_of_file(
                file, numbers, text=text, label=label, encoding=encoding, folds=folds,
                random_state=seed, callback=callback, min_df=min_df, max_df=max_df,
                stop_words=stop_words, weighting=weighting,
            )  # fmt: skip
        rows = zip(found.ranks.tolist(), found.mean, found.error, strict=True)
        if as_json:
            tried = [{"parts": k, "divergence": mean, "error": e} for k, mean, e in rows]
            console.print_json({"best": found.best, "least": found.least, "tried": tried})
            return
        table = console.table("parts", "divergence", "behind the best by", right=("parts",))
        for k, mean, error in rows:
            behind = "" if k == found.least else f"{mean - found.mean.min():.2g} +- {error:.1g}"
            table.add_row(str(k), f"{mean:.5g}", behind + (" *" if k == found.best else ""))
        Console(highlight=False).print(table)
