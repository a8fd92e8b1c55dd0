"""What can be said about a fit, and what does not go together."""

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from marginparts.app.encoders import check_encoder
from marginparts.app.preparation import PreparationError, check_weighting, stop_words_from
from marginparts.app.readers import SampleSource
from marginparts.checkpoint import Checkpoint
from marginparts.svm.class_weights import ClassWeight


class Options(NamedTuple):
    """What can be said about a fit; everything else is chosen.

    Attributes
    ----------
    n_components, lam, C : number, sequence of numbers or "auto"
        The number of parts, the weight of the labels and the cost of the last SVM; several are
        tried. See `NMFAlphaCV`, also for the next five.
    class_weight : {None, "balanced"} or dict
    scoring : str or None
    max_iter : int
    backend : str
    random_state : int
    keep_path : bool
        Keep the parts for several lam, for the report's slider.
    checkpoint : path, Checkpoint or None
        Where the choice and the fit survive a kill. The file stays: remove it when the model is
        safe.
    min_df, max_df : int, float
        Texts that must have a word, and the largest share of them that may have it.
    stop_words : "english", a file with one word a line, a sequence of words, or None
        What to leave out of texts.
    ngrams : int
        Also count runs of up to this many words.
    weighting : {"auto", "counts", "l2-log", "tf-idf"}
        Of counts.
    weight : str or None
        The column of a table of texts that says how much each of them counts; 0 leaves it out.
    seeds : dict, path or None
        Words that speak for classes, see `NMFAlphaClassifier`, or a file of them (``.csv`` with
        the columns class, word and maybe strength, ``.json`` or ``.yaml``). No label is needed.
    prior : Model, path or None
        A model whose parts those of the fit are to stay near, its words matched by name. Unless
        the number of parts is given, there are as many.
    strength : float
        What the prior counts, see `NMFAlpha`.
    exclusivity : float
        A charge for features that parts share, see `NMFAlpha`.
    alpha_W, alpha_H, l1_ratio : float
        Charges for large entries of codes and parts, see `NMFAlpha`.
    fixed : Model, path or None
        A model whose parts are the first ones of the fit and stay as they are, its words matched
        by name. Unless the number of parts is given, 16 are learned beside them.
    consensus : int
        Short runs on whose agreement the parts are based, each with a number for how stable it is,
        see `NMFAlphaConsensus`; 0 for none.
    missing : {None, "nan"}
        Take empty cells and NaN of a matrix for values that are missing, see `NMFAlphaClassifier`.
        Counts are not weighted then.
    feature_weight : dict, path or None
        How much words, or other columns, count, ``{"regards": 0.1}``, or a ``.csv`` with the
        columns word and weight: all that looks at the samples sees the column times its weight.
        1 is usual, and 0 leaves it out.
    embeddings : path or None
        An ``.npy`` array with a vector of an encoder a sample, to be used beside its words.
    embed : str or None
        An installed encoder that makes such vectors of texts: ``"wordllama"``,
        ``"model2vec:FOLDER"`` or ``"sentence-transformers:NAME"``. Nothing is downloaded.
    """

    n_components: int | Sequence[int] | str = "auto"
    lam: float | Sequence[float] | str = "auto"
    C: float | Sequence[float] | str = "auto"
    class_weight: ClassWeight = None
    scoring: str | None = None
    max_iter: int = 100
    backend: str = "auto"
    random_state: int = 0
    keep_path: bool = False
    checkpoint: str | os.PathLike[str] | Checkpoint | None = None
    min_df: int = 2
    max_df: float = 0.7
    stop_words: str | os.PathLike[str] | Sequence[str] | None = None
    ngrams: int = 1
    weighting: str = "auto"
    weight: str | None = None
    seeds: Any = None
    prior: Any = None
    strength: float = 1.0
    exclusivity: float = 0.0
    alpha_W: float = 0.0  # noqa: N815 - scikit-learn's names
    alpha_H: float | str = "same"  # noqa: N815
    l1_ratio: float = 0.0
    fixed: Any = None
    consensus: int = 0
    missing: str | None = None
    feature_weight: Any = None
    embeddings: str | os.PathLike[str] | None = None
    embed: str | None = None


#: What the command calls options that it does not call by their names with dashes.
_FLAGS = {"n_components": "components", "C": "cost", "random_state": "seed", "keep_path": "path"}


def flag_of(name: str) -> str:
    """Return what the command calls an option."""
    return "--" + _FLAGS.get(name, name).replace("_", "-")


def check_alone(options: Options) -> None:
    """Refuse what makes no sense whatever the file, which costs nothing to find out."""
    check_weighting(options.weighting)
    stop_words_from(options.stop_words)
    _check_kind_of_gaps(options)
    if options.consensus == 1:
        raise PreparationError(
            "--consensus must be 2 or more, or 0 for none: one run agrees with itself."
        )
    if options.embed is not None:
        check_encoder(options.embed)
        if options.embeddings is not None:
            raise PreparationError("--embed and --embeddings both give vectors; leave out one.")


def _check_kind_of_gaps(options: Options) -> None:
    if options.missing not in (None, "nan"):
        raise PreparationError(
            f"--missing {options.missing} does not go with labels, for which most of each row must "
            'be known; it is nan, or use the codes of NMFAlpha(missing="zeros") in Python.'
        )
    if options.missing and options.weighting not in ("auto", "counts"):
        raise PreparationError(
            f"--weighting {options.weighting} needs whole rows, and does not go with --missing."
        )


def check_missing(options: Options, source: SampleSource) -> None:
    """Refuse gaps that nothing can be made of."""
    _check_kind_of_gaps(options)
    if options.missing is None:
        return
    if source.layout.kind != "matrix":
        raise PreparationError(f"--missing is for matrices and numeric tables; {source.path} is "
                               "none.")  # fmt: skip


def check_vectors(options: Options, source: SampleSource) -> None:
    """Refuse what does not go with vectors."""
    if options.embed is not None:
        if source.layout.kind != "text":
            raise PreparationError(f"--embed is for texts, and {source.path} is no table of them.")
    elif options.embeddings is None:
        return
    for name in (
        "seeds", "prior", "missing", "exclusivity", "alpha_W", "alpha_H", "fixed", "consensus",
    ):  # fmt: skip
        # alpha_H="same" is that of W, which is none here
        if getattr(options, name) and getattr(options, name) != "same":
            raise PreparationError(
                f"{flag_of(name)} does not go with vectors; leave out one of them."
            )
