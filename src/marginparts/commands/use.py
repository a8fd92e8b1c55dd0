"""The commands that use a model on a file: ``predict`` and ``transform``."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from marginparts.commands import _console
from marginparts.commands._console import (
    AsJson,
    Embeddings,
    Encoding,
    ModelFile,
    Quiet,
    option,
    show,
)

if TYPE_CHECKING:
    from marginparts._types import Array
    from marginparts.app.model import Decision, Model
    from marginparts.app.readers import Batch

DataFile = Annotated[
    Path, typer.Argument(metavar="FILE", help="Samples, in any format that 'fit' takes.")
]
Raw = Annotated[
    bool,
    typer.Option("--raw", help="Write cells as they are, though a spreadsheet may run them."),
]
Text = Annotated[
    str | None, option("--text", "COLUMN", "The column of texts.", show_default="as in the fit")
]


TABLE = ".csv, .tsv, .jsonl or .parquet file"


@contextmanager
def opened(
    model_path: Path, file: Path, encoding: str, text: str | None, quiet: bool, doing: str,
    out: Path | None, *, label: str | None = None, embeddings: Path | None = None,
) -> Iterator[tuple[Model, Iterator[Batch]]]:  # fmt: skip
    """Open a model and a file like the one it was fitted to, with a bar over the rows."""
    from marginparts.app.readers import open_source

    _console.refuse_same(file, out)
    _console.refuse_same(embeddings, out)
    _console.refuse_same(model_path, out)
    model = _console.load_model(model_path)
    source = open_source(
        file, text=text, label=label, encoding=encoding, embeddings=embeddings, like=model.layout
    )
    with _console.bars(quiet=quiet) as shown:
        yield model, _console.watched(source, shown, doing)


PREDICT_EPILOG = _console.examples(
    "predict tickets.model new.csv --out labeled.csv",
    "predict tickets.model new.jsonl --out labeled.parquet --all",
    "predict tickets.model new.csv | head",
)


def predict(
    model: ModelFile,
    file: DataFile,
    out: Annotated[
        Path | None, option("--out", "FILE", f"A {TABLE}.", show_default="CSV on the screen")
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Add the score and probability of every label.")
    ] = False,
    text: Text = None,
    embeddings: Embeddings = None,
    raw: Raw = False,
    encoding: Encoding = "utf-8",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Give labels to the samples of a file.

    The file's own columns are kept, and behind them come predicted, score and probability (empty
    where the labels were too few to tell). In .csv and .tsv a cell that a spreadsheet would run
    (it begins with = + - or @) has a ' in front; --raw keeps it as it is. Several labels stand in
    one cell, the surest first. A sample without a known word (and without a vector) has no label.
    The file is read in pieces and may be larger than memory.
    """
    from marginparts.app.writers import open_table_writer

    silent = quiet or as_json or out is None
    with (
        _console.sentences(),
        opened(model, file, encoding, text, silent, "labeling", out, embeddings=embeddings) as (
            fitted,
            batches,
        ),
        open_table_writer(out, fitted.layout.label_sep or ";", as_json=as_json, raw=raw) as writer,
    ):
        agreement, n, empty = Agreement(fitted.class_names, fitted.multilabel), 0, 0
        for batch in batches:
            decisions, values, blank = _decided(fitted, batch)
            agreement.add([d.labels for d in decisions], map(fitted.known, batch.labels))
            writer.write(_labeled(fitted, batch, decisions, values, every))
            n, empty = n + len(decisions), empty + blank
    if out is not None:
        _tell(fitted, agreement, file, out, n, empty, as_json=as_json, quiet=quiet)


class Agreement:
    """Counts how often given labels are the known ones, while a file streams by."""

    def __init__(self, class_names: Sequence[str], multilabel: bool) -> None:
        self.class_names, self.multilabel = class_names, multilabel
        self.n = self.right = 0
        #: how many samples have a label that is none of the model's, and how many have each
        self.strange = 0
        self.hits: Counter[str] = Counter()
        self.errors: Counter[str] = Counter()
        self.unknown: Counter[str] = Counter()

    def add(
        self, given: Iterable[tuple[str, ...]], known: Iterable[tuple[str, ...] | None]
    ) -> None:
        """Count some samples; those without a known label are passed over."""
        for labels, truth in zip(given, known, strict=True):
            if truth is not None:
                self.n += 1
                self.right += {*labels} == {*truth}
                self.hits.update({*labels} & {*truth})
                self.errors.update({*labels} ^ {*truth})
                unknown = {*truth}.difference(self.class_names)
                self.strange += bool(unknown)
                self.unknown.update(unknown)

    def score(self) -> float:
        """Return the accuracy, or the mean of the micro and macro F where labels are several."""
        import numpy as np

        from marginparts.scores import f_from_counts

        if not self.multilabel:
            return self.right / max(self.n, 1)
        counts = ([count[name] for name in self.class_names] for count in (self.hits, self.errors))
        return f_from_counts(*map(np.array, counts))


def _decided(model: Model, batch: Batch) -> tuple[list[Decision], Array, int]:
    """Return decisions, decision values, and how many rows are empty: these have no label."""
    import numpy as np

    from marginparts.app.model import Decision

    X = model.prepare(batch.samples, batch.vectors)
    values = model.values(X)
    blank = np.asarray(abs(X).sum(axis=1)).ravel() == 0
    pairs = zip(blank, model.decide(values), strict=True)
    decisions = [Decision((), (), ()) if nothing else decision for nothing, decision in pairs]
    return decisions, values, int(blank.sum())


def _tell(
    fitted: Model, agreement: Agreement, file: Path, out: Path, n: int, empty: int, *,
    as_json: bool, quiet: bool,
) -> None:  # fmt: skip
    """Say how many samples were labeled, and how well where that is known."""
    from marginparts.scores import score_name

    # on labels that it was fitted to, the model would score too high
    new = agreement.n > 0 and file.name != fitted.card.source
    if as_json:
        hidden = fitted.card.rated[0]._asdict() if fitted.card.rated else None
        _console.print_json(
            {"out": str(out), "samples": n, "empty": empty, "with_label": agreement.n,
             "hidden_labels": hidden, "metric": score_name(None, fitted.multilabel),
             "agreement": agreement.score() if new else None,
             "unknown_labels": dict(agreement.unknown)}
        )  # fmt: skip
        return
    show(f"{n} samples, written to {out}", quiet=quiet)
    if empty:
        hold, have = ("holds", "has") if empty == 1 else ("hold", "have")
        said = f"{empty} of them {hold} nothing that the model knows, and {have} no label."
        show(said, quiet=quiet)
    if fitted.classifier.calibration_ is None:
        show("There are no probabilities: the model had too few labels for them.", quiet=quiet)
    for sentence in _worth(fitted, agreement if new else None):
        show(sentence, quiet=quiet)


def _worth(fitted: Model, agreement: Agreement | None) -> Iterator[str]:
    """Say how good the labels are: by hidden ones first, then by those of a file that is new."""
    from marginparts.app.report import as_score
    from marginparts.scores import score_name

    if fitted.card.rated:
        ours = fitted.card.rated[0]
        size = as_score(ours.score, fitted.metric)
        yield f"On labels that were hidden from it the model's {fitted.metric} is {size}."
    if agreement is not None:
        metric = score_name(None, fitted.multilabel)
        yield (
            f"{agreement.n} of the samples had a label in the file; against these the {metric} is "
            f"{as_score(agreement.score(), metric)}."
        )
        if unknown := agreement.unknown:
            some = ", ".join(sorted(unknown)[:5]) + (", ..." if len(unknown) > 5 else "")
            have = "has" if agreement.strange == 1 else "have"
            # with several labels the others of such a sample still count
            so = "which the score leaves out" if fitted.multilabel else "and cannot be right"
            yield (
                f"{agreement.strange} of these {have} a label that the model does not know, {so}: "
                f"{some}."
            )


def _labeled(
    model: Model, batch: Batch, decisions: list[Decision], values: Array, every: bool
) -> dict[str, Any]:
    """Return the rows of a batch with what was said about them."""
    several = model.multilabel
    found: dict[str, Any] = {
        "predicted": [d.labels if several else (*d.labels, None)[0] for d in decisions],
        "score": [_rounded(d.scores, several) for d in decisions],
        "probability": [_rounded(d.probabilities, several) for d in decisions],
    }
    if every:
        probabilities = model.probabilities(values)
        for k, name in enumerate(model.class_names):
            found[f"score {name}"] = [short(v) for v in values[:, k]]
            found[f"probability {name}"] = [short(v) for v in probabilities[:, k]]
    return beside(batch.columns, found)


def short(value: float) -> float:
    """Return a number with six digits: more say nothing."""
    return float(f"{value:.6g}")


def _rounded(values: tuple[float, ...], several: bool) -> Any:
    rounded = tuple(map(short, values))
    return rounded if several else (*rounded, math.nan)[0]


def beside(columns: Mapping[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of a file with ours beside them, under names that are free."""
    both = dict(columns)
    for name, cells in found.items():
        names = chain([name], (f"{name} ({number})" for number in count(2)))
        # what people wrote is never written over
        both[next(free for free in names if free not in columns)] = cells
    return both


TRANSFORM_EPILOG = _console.examples(
    "transform tickets.model new.csv --out codes.npz",
    "transform tickets.model new.csv --out codes.parquet",
)


def transform(
    model: ModelFile,
    file: DataFile,
    out: Annotated[Path, option("--out", "FILE", "A .csv, .tsv, .jsonl, .parquet or .npz file.")],
    text: Text = None,
    embeddings: Embeddings = None,
    raw: Raw = False,
    encoding: Encoding = "utf-8",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Express the samples of a file in the parts: one column a part (Z of the paper's eq. 5).

    The .npz holds one array Z, with a row a sample. The other formats keep what identifies a row.
    """
    from marginparts.app import writers

    n = 0
    with (
        _console.sentences(),
        opened(
            model, file, encoding, text, quiet or as_json, "mapping", out, embeddings=embeddings
        ) as (
            fitted,
            batches,
        ),
    ):
        writers.check_ending(out, (*writers.TABLES, *writers.ARRAYS))
        texts = text or fitted.layout.text  # long, and not what codes are for
        if out.suffix.lower() in writers.ARRAYS:
            with writers.open_array_writer(out, "Z", fitted.n_parts) as write:
                for batch in batches:
                    Z = fitted.transform(batch.samples, batch.vectors)
                    write(Z)
                    n += len(Z)
        else:
            with writers.open_table_writer(out, raw=raw) as writer:
                for batch in batches:
                    Z = fitted.transform(batch.samples, batch.vectors)
                    columns = {k: v for k, v in batch.columns.items() if k != texts}
                    parts = {f"part {k + 1}": [short(z) for z in c] for k, c in enumerate(Z.T)}
                    writer.write(beside(columns, parts))
                    n += len(Z)
    if as_json:
        _console.print_json({"out": str(out), "samples": n, "parts": fitted.n_parts})
    else:
        show(f"{n} samples in {fitted.n_parts} parts, written to {out}", quiet=quiet)
