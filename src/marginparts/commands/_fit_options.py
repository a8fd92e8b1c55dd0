"""The options of ``marginparts fit``."""

import csv
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from marginparts.commands._console import option, refuse


def complete_column(ctx: typer.Context, incomplete: str) -> list[str]:
    """Offer the columns of the table on the command line."""
    path = ctx.params.get("file")
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:  # type: ignore[arg-type]
            header = next(csv.reader(file, delimiter="\t" if str(path).endswith("tsv") else ","))
    except Exception:  # a completion must never complain
        return []
    return [name for name in header if name.startswith(incomplete)]


_method = partial(option, rich_help_panel="The method")
_texts = partial(option, rich_help_panel="The texts")
_COLUMN: dict[str, Any] = {"autocompletion": complete_column}
_WEIGHTINGS = "auto, counts (as they are), l2-log or tf-idf"
_SCORES = "accuracy, balanced_accuracy, f1, f1_macro, f1_micro"

File = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="A table (.csv .tsv .jsonl .parquet), an svmlight file, a matrix (.npz .npy .mtx), "
        ".h5ad, or a folder of images with one subfolder a class.",
    ),
]
Text = Annotated[str | None, option("--text", "COLUMN", "The column of texts.", **_COLUMN)]
Label = Annotated[
    str | None,
    option("--label", "COLUMN", "The column of labels; empty means unlabeled.", **_COLUMN),
]
LabelSep = Annotated[
    str | None, option("--label-sep", "SEP", "What separates several labels in a cell.")
]
Weight = Annotated[
    str | None,
    option("--weight", "COLUMN", "How much each text counts; 0 leaves it out.", **_COLUMN),
]
Out = Annotated[
    Path | None,
    option(
        "--out", "MODEL", "Where to write the model.", show_default="FILE with the ending .model"
    ),
]
LabelsFile = Annotated[
    Path | None, option("--labels", "FILE", "The labels of a matrix, one a line.")
]
WordsFile = Annotated[
    Path | None, option("--words", "FILE", "The names of a matrix's columns, one a line.")
]
Seeds = Annotated[
    Path | None,
    option(
        "--seeds", "FILE",
        "Words that speak for classes: a .csv with class, word, strength, or .json, .yaml.",
    ),
]  # fmt: skip
FeatureWeight = Annotated[
    Path | None,
    option(
        "--feature-weight", "FILE",
        "How much words count: a .csv with word, weight; 1 is usual, 0 leaves a word out.",
    ),
]  # fmt: skip
Embed = Annotated[
    str | None,
    _texts(
        "--embed", "NAME",
        "Make vectors of the texts with an installed encoder: wordllama, model2vec:FOLDER or "
        "sentence-transformers:NAME.",
    ),
]  # fmt: skip

Components = Annotated[
    str, _method("--components", "N", "The number of parts; several to try as 16,32,64.")
]
Lam = Annotated[str, _method("--lam", "X", "The weight of the labels; several to try as 1,3,10.")]
Cost = Annotated[str, _method("--cost", "C", "C of the last SVM; several to try as 0.5,2.")]
ClassWeight = Annotated[
    str | None, _method("--class-weight", "HOW", "'balanced' where some labels are rare.")
]
Scoring = Annotated[
    str | None,
    _method(
        "--scoring", "NAME", f"The score by which settings are compared: {_SCORES}.",
        show_default="accuracy, or the F-measure of several labels",
    ),
]  # fmt: skip
Prior = Annotated[
    Path | None, _method("--prior", "MODEL", "A model whose parts the new ones are to stay near.")
]
Strength = Annotated[
    float | None,
    _method("--strength", "X", "What the prior counts beside the data.", min=0.0, show_default="1"),
]
Exclusivity = Annotated[
    float,
    _method("--exclusivity", "X", "A charge for words that parts share; 0.1 is little.", min=0.0),
]
AlphaW = Annotated[
    float | None,
    _method("--alpha-W", "X", "A charge for large codes, as in scikit-learn; 1e-4 is little.",
            min=0.0, show_default="0"),
]  # fmt: skip
AlphaH = Annotated[
    float | None,
    _method("--alpha-H", "X", "A charge for large entries of parts.", min=0.0,
            show_default="as --alpha-W"),
]  # fmt: skip
L1Ratio = Annotated[
    float,
    _method("--l1-ratio", "X", "The share of both charges that is for sums, not squares.",
            min=0.0, max=1.0),
]  # fmt: skip
Fixed = Annotated[
    Path | None,
    _method("--fixed", "MODEL", "A model whose parts come first and stay; 16 more are learned."),
]
Consensus = Annotated[
    int,
    _method("--consensus", "N", "Base the parts on what N short runs agree on, and say how stable "
            "each is; 10 are usual.", min=0),
]  # fmt: skip
Missing = Annotated[
    str | None,
    _method("--missing", "nan", "Take empty cells and NaN of a matrix for values not known."),
]
MaxIter = Annotated[int, _method("--max-iter", "N", "Iterations at most.", min=1)]
Seed = Annotated[int, _method("--seed", "N", "The same seed gives the same model.", min=0)]
BackendName = Annotated[
    str, _method("--backend", "NAME", "Where the kernels run: auto, numba, torch, reference.")
]
KeepPath = Annotated[
    bool, _method("--path", None, "Keep the parts for several lam, for the report's slider.")
]
CheckpointFile = Annotated[
    Path | None,
    _method("--checkpoint", "FILE", "Keep the position there; the same command goes on from it."),
]

MinDf = Annotated[int, _texts("--min-df", "N", "Leave out words in fewer texts.", min=1)]
MaxDf = Annotated[
    float,
    _texts(
        "--max-df", "SHARE", "Leave out words in a larger share of the texts.", min=0.0, max=1.0
    ),
]
StopWords = Annotated[
    str | None,
    _texts("--stop-words", "WHAT", "Words to leave out: 'english', or a file with one a line."),
]
NGrams = Annotated[int, _texts("--ngrams", "N", "Also use runs of up to N words.", min=1, max=5)]
Weighting = Annotated[
    str, _texts("--weighting", "NAME", f"How counts are weighted: {_WEIGHTINGS}.")
]


def numbers(
    text: str, name: str, kind: Callable[[str], float], least: float, most: float = 1e30
) -> tuple[float, ...] | str:
    """Return "auto", or one number or several."""
    if text == "auto":
        return text
    try:
        values = tuple(kind(part) for part in text.split(","))
    except ValueError:
        what = "whole numbers" if kind is int else "numbers"
        how = f"give 'auto', or {what} with commas between"
        refuse(f"{name} {text!r} is not understood: {how}.")
    if not all(least <= value <= most for value in values):
        refuse(f"{name} has a value that cannot be used; it is between {least:g} and {most:g}.")
    return values
