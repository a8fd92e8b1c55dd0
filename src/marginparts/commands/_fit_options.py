"""The options of ``marginparts fit``."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Annotated, Any

import typer


def complete_column(ctx: typer.Context, incomplete: str) -> list[str]:
    """Offer the columns of the table on the command line."""
    path = ctx.params.get("file")
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:  # type: ignore[arg-type]
            header = next(csv.reader(file, delimiter="\t" if str(path).endswith("tsv") else ","))
    except Exception:  # a completion must never complain
        return []
    return [name for name in header if name.startswith(incomplete)]


def _option(flag: str, metavar: str, text: str, **more: Any) -> Any:
    return typer.Option(flag, metavar=metavar, help=text, **more)


def _method(flag: str, metavar: str, text: str, **more: Any) -> Any:
    return _option(flag, metavar, text, rich_help_panel="The method", **more)


def _texts(flag: str, metavar: str, text: str, **more: Any) -> Any:
    return _option(flag, metavar, text, rich_help_panel="The texts", **more)


#: No default to speak of.
_NONE: dict[str, Any] = {"show_default": False}
_COLUMN: dict[str, Any] = {"show_default": False, "autocompletion": complete_column}

File = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="A table (.csv .tsv .jsonl .parquet), an svmlight file, a matrix (.npz .npy .mtx), "
        ".h5ad, or a folder of images with one subfolder a class.",
    ),
]
Text = Annotated[str | None, _option("--text", "COLUMN", "The column of texts.", **_COLUMN)]
Label = Annotated[
    str | None,
    _option("--label", "COLUMN", "The column of labels; empty means unlabeled.", **_COLUMN),
]
LabelSep = Annotated[
    str | None,
    _option("--label-sep", "SEP", "What separates several labels in a cell.", **_NONE),
]
Out = Annotated[
    Path | None,
    _option(
        "--out", "MODEL", "Where to write the model.", show_default="FILE with the ending .model"
    ),
]
LabelsFile = Annotated[
    Path | None, _option("--labels", "FILE", "The labels of a matrix, one a line.", **_NONE)
]
WordsFile = Annotated[
    Path | None,
    _option("--words", "FILE", "The names of a matrix's columns, one a line.", **_NONE),
]
Encoding = Annotated[str, _option("--encoding", "NAME", "The encoding of text files.")]

Components = Annotated[
    str, _method("--components", "N", "The number of parts; several to try as 16,32,64.")
]
Lam = Annotated[str, _method("--lam", "X", "The weight of the labels; several to try as 1,3,10.")]
Cost = Annotated[str, _method("--cost", "C", "C of the last SVM; several to try as 0.5,2.")]
ClassWeight = Annotated[
    str | None,
    _method("--class-weight", "HOW", "'balanced' where some labels are rare.", **_NONE),
]
Scoring = Annotated[
    str | None,
    _method(
        "--scoring",
        "NAME",
        "What the choice is to make large: accuracy, balanced_accuracy, f1, f1_macro, f1_micro.",
        show_default="accuracy, or the F-measure of several labels",
    ),
]
MaxIter = Annotated[int, _method("--max-iter", "N", "Iterations at most.", min=1)]
Seed = Annotated[int, _method("--seed", "N", "The same seed gives the same model.", min=0)]
BackendName = Annotated[
    str, _method("--backend", "NAME", "Where the kernels run: auto, numba, torch, reference.")
]
KeepPath = Annotated[
    bool,
    typer.Option(
        "--path",
        help="Keep the parts for several lam, for the report's slider.",
        rich_help_panel="The method",
    ),
]
CheckpointFile = Annotated[
    Path | None,
    _method(
        "--checkpoint",
        "FILE",
        "Keep the position there; the same command goes on from it.",
        **_NONE,
    ),
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
    _texts(
        "--stop-words", "WHAT", "Words to leave out: 'english', or a file with one a line.", **_NONE
    ),
]
NGrams = Annotated[int, _texts("--ngrams", "N", "Also use runs of up to N words.", min=1, max=5)]
Weighting = Annotated[
    str,
    _texts(
        "--weighting",
        "NAME",
        "How counts are weighted: auto, counts (as they are), l2-log or tf-idf.",
    ),
]
