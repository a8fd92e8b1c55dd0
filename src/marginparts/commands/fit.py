"""The command ``marginparts fit``: a file with a few labels in, a model out."""

from __future__ import annotations

import shlex
import signal
import sys
from collections.abc import Callable, Container, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.progress import TextColumn

from marginparts.commands import _console as console
from marginparts.commands import _fit_options as options
from marginparts.commands._fit_notes import notes, spent
from marginparts.commands._fit_options import numbers
from marginparts.files.atomic import FileProblemError, check_destination

if TYPE_CHECKING:
    from marginparts._types import Progress
    from marginparts.app.model import Model

EPILOG = console.examples(
    "fit tickets.csv --text body --label team --out tickets.model",
    "fit reports.csv --text report --label causes --label-sep ';' --out reports.model",
    "fit counts.npz --labels labels.txt --words genes.txt --out counts.model",
    "fit cells.h5ad --label cell_type --out cells.model",
    "fit digits/ --path --out digits.model",
    "fit tickets.csv --text body --seeds seeds.csv --out tickets.model",
    "fit tickets.csv --text body --label team --feature-weight weights.csv --out tickets.model",
    "fit march.csv --text body --label team --prior february.model --out march.model",
    "fit march.csv --text body --label team --fixed february.model --out march.model",
    "fit tickets.csv --text body --label team --consensus 10 --out tickets.model",
    "fit tickets.csv --text body --label team --alpha-W 1e-4 --l1-ratio 0.5 --out few.model",
    "fit sensors.csv --label state --missing nan --out sensors.model",
    "fit tickets.csv --text body --label team --embeddings vectors.npy --out tickets.model",
    "fit tickets.csv --text body --label team --embed wordllama --out tickets.model",
    "fit large.npz --labels labels.txt --checkpoint large.ckpt --out large.model",
)


def fit(
    file: options.File,
    text: options.Text = None,
    label: options.Label = None,
    label_sep: options.LabelSep = None,
    weight: options.Weight = None,
    out: options.Out = None,
    labels: options.LabelsFile = None,
    words: options.WordsFile = None,
    seeds: options.Seeds = None,
    feature_weight: options.FeatureWeight = None,
    embeddings: console.Embeddings = None,
    components: options.Components = "auto",
    lam: options.Lam = "auto",
    cost: options.Cost = "auto",
    class_weight: options.ClassWeight = None,
    scoring: options.Scoring = None,
    prior: options.Prior = None,
    strength: options.Strength = None,
    exclusivity: options.Exclusivity = 0.0,
    alpha_w: options.AlphaW = None,
    alpha_h: options.AlphaH = None,
    l1_ratio: options.L1Ratio = 0.0,
    fixed: options.Fixed = None,
    consensus: options.Consensus = 0,
    missing: options.Missing = None,
    max_iter: options.MaxIter = 100,
    seed: options.Seed = 0,
    backend: options.BackendName = "auto",
    path: options.KeepPath = False,
    checkpoint: options.CheckpointFile = None,
    min_df: options.MinDf = 2,
    max_df: options.MaxDf = 0.7,
    stop_words: options.StopWords = None,
    ngrams: options.NGrams = 1,
    weighting: options.Weighting = "auto",
    embed: options.Embed = None,
    encoding: console.Encoding = "utf-8",
    as_json: console.AsJson = False,
    quiet: console.Quiet = False,
) -> None:
    """Learn parts from a file in which a few samples have labels.

    Nothing but the columns need be said: the number of parts, the weight of the labels and the
    rest are chosen by cross-validation over the labeled samples. With --seeds a few words a class
    do instead of labels; then nothing says how good the model is. Ctrl-C ends the search, or the
    fit, and keeps the best so far. With --checkpoint a killed command goes on where it was.
    """
    with console.sentences(), console.spoken_warnings():
        from marginparts.app.fitting import fit_file
        from marginparts.app.model_file import save
        from marginparts.app.options import Options, check_alone
        from marginparts.app.replacement import changed_mind, replaced

        wanted: dict[str, Any] = {
            "min_df": min_df, "max_df": max_df, "stop_words": stop_words, "ngrams": ngrams,
            "weight": weight, "weighting": weighting, "max_iter": max_iter, "backend": backend,
            "scoring": scoring, "random_state": seed, "keep_path": path, "prior": prior,
            "strength": 1.0 if strength is None else strength, "exclusivity": exclusivity,
            "missing": missing, "seeds": seeds, "embeddings": embeddings, "embed": embed,
            "fixed": fixed, "consensus": consensus, "feature_weight": feature_weight,
            "alpha_W": alpha_w or 0.0, "alpha_H": "same" if alpha_h is None else alpha_h,
            "l1_ratio": l1_ratio, **_tried(components, lam, cost, class_weight),
        }  # fmt: skip
        # what costs nothing to find out comes before the question where the model goes
        _check(class_weight, scoring, backend, encoding, label_sep)
        if strength is not None and prior is None:
            console.refuse("--strength is that of a prior; give its model with --prior, or none.")
        if l1_ratio and alpha_w is None and alpha_h is None:
            console.refuse(
                "--l1-ratio shares out the charges for large entries; give them with --alpha-W."
            )
        check_alone(Options(**wanted))
        others = (stop_words, seeds, feature_weight, prior, fixed, embeddings)
        path_out = _destination((file, labels, words, *others), out, checkpoint)
        asked = partial(
            fit_file, file, text=text, label=label, label_sep=label_sep, labels=labels, words=words,
            encoding=encoding, **wanted,
        )  # fmt: skip
        before = replaced(path_out)
        extra = {"encoding": embed is not None, "following lam": path}
        left_out = [stage for stage, wanted in extra.items() if not wanted]
        model, heard = watched(asked, left_out, checkpoint, shown=not (quiet or as_json))
        save(model, path_out)
        changed = changed_mind(before, model)
    inputs = [str(file), *(["--embeddings", str(embeddings)] if embeddings else [])]
    tell(model, path_out, changed, inputs, as_json=as_json, quiet=quiet)
    _end(checkpoint, path_out, heard)


def _end(checkpoint: Path | None, model_path: Path, interrupted: int | None) -> None:
    """Remove the checkpoint now that the model is safe; after a signal, say that it stays."""
    if checkpoint is None:
        return
    if interrupted is not None:
        console.refuse(
            f"Interrupted: {model_path} is what was found so far, and the same command goes on "
            f"from {checkpoint}.",
            128 + interrupted,
        )
    checkpoint.unlink(missing_ok=True)


def _destination(
    sources: tuple[Path | str | None, ...], out: Path | None, checkpoint: Path | None
) -> Path:
    """Return where the model goes; find out now, not after the work, that it cannot.

    The file is the first of the sources; none of them is written over.
    """
    file, *_ = given = [Path(source) for source in sources if source is not None]
    if not (name := file.resolve().name.removesuffix(".gz")):
        raise FileProblemError(f"{file} is no file or folder with a name; give one.")
    path = out or Path(name).with_suffix(".model")
    if checkpoint is not None:
        for source in given:
            console.refuse_same(source, checkpoint)
        if checkpoint.resolve() == path.resolve():
            raise FileProblemError(f"{path} is to be the model; give --checkpoint another name.")
    goes_on = checkpoint is not None and checkpoint.exists()
    if out is None and path.exists() and not goes_on:
        raise FileProblemError(
            f"{path} is there already; say --out {path} to replace it, or give another name."
        )
    for source in given:
        console.refuse_same(source, path)
    check_destination(path)
    return path


def _tried(components: str, lam: str, cost: str, class_weight: str | None) -> dict[str, Any]:
    """Return what is to be tried, and how classes count."""
    return {
        "class_weight": "balanced" if class_weight == "balanced" else None,
        "n_components": numbers(components, "--components", int, 1, 100_000),
        "lam": numbers(lam, "--lam", float, 0),
        "C": numbers(cost, "--cost", float, 1e-12),
    }


def _check(
    class_weight: str | None, scoring: str | None, backend: str, encoding: str,
    label_sep: str | None,
) -> None:  # fmt: skip
    """Refuse unknown names."""
    from marginparts.app.readers import check_separator
    from marginparts.backends import get_backend
    from marginparts.commands._wording import spoken
    from marginparts.files.streams import check_encoding
    from marginparts.scores import check_scoring

    if class_weight not in (None, "none", "balanced"):
        console.refuse(f"--class-weight {class_weight!r} is unknown; it is none or balanced.")
    check_encoding(encoding)
    check_separator(label_sep)
    try:
        check_scoring(scoring)
        get_backend(backend)
    except (ValueError, ImportError) as error:
        console.refuse(spoken(str(error)))


#: What the stages of a fit are called on the screen, in their order.
_STAGES = {
    "reading": "reading",
    "preparing": "preparing",
    "encoding": "making vectors",
    "choosing": "choosing settings",
    "parts": "finding the parts",
    "comparing": "comparing with others",
    "following lam": "following lam",
}

#: The stages that a checkpoint is about. They hear signals themselves then.
_KEPT_STAGES = ("choosing", "parts")


def _place(stage: str, left_out: Container[str]) -> str:
    """Say which stage it is, and of how many; what stands behind a colon is said as it is."""
    stage, _, more = stage.partition(": ")
    stages = [each for each in _STAGES if each not in left_out]
    doing = f"comparing with {more}" if more else _STAGES[stage]
    return f"{stages.index(stage) + 1} of {len(stages)}: {doing}"


def watched(
    asked: Callable[..., Model], left_out: Container[str], checkpoint: Path | None, *, shown: bool
) -> tuple[Model, int | None]:
    """Fit with bars; Ctrl-C ends the stage under way, and what it has found is kept.

    Some stages are left out of this fit.

    With a checkpoint, Ctrl-C and SIGTERM end all stages. Returns the signal heard as well.
    """
    from marginparts.checkpoint import Interruption

    stopped: set[str] = set()
    kept = checkpoint is not None
    # two, as a key that is pressed twice by chance should not throw the work away
    signals = (signal.SIGINT, signal.SIGTERM) if kept else (signal.SIGINT,)
    interruption = Interruption(signals, patience=2)
    loss = TextColumn("{task.fields[loss]}")
    with ExitStack() as stack, console.bars(loss, quiet=not shown) as bars:
        task = bars.add_task(_place("reading", left_out), total=None, loss="")

        def on_stage(stage: str) -> None:
            if stage == "choosing":  # before, there is nothing to keep
                stack.enter_context(interruption)
            bars.reset(task, total=None, description=_place(stage, left_out), loss="")

        def callback(progress: Progress) -> bool:
            if kept and interruption.heard is not None:
                stopped.add(progress.stage)
            elif interruption.take():
                stopped.add(progress.stage)
                what = "the search" if progress.stage == "choosing" else "the fit"
                bars.console.print(f"Ending {what}; the best so far is kept.", highlight=False)
            bars.update(
                task, description=_place(progress.stage, left_out), total=progress.max_iter,
                completed=progress.iteration, loss=f"loss {progress.loss:.4g}",
            )  # fmt: skip
            return progress.stage in stopped and not (kept and progress.stage in _KEPT_STAGES)

        at = {"checkpoint": checkpoint} if kept else {}
        model = asked(callback=callback, on_stage=on_stage, **at)
    # a search that was ended leaves no trace in the fit
    model.card.stopped = bool(stopped) or (kept and interruption.heard is not None)
    if "choosing" in stopped and not model.card.rated:
        # it is not for want of labels that nothing is known
        model.card.doubt = "It was ended before it could be said how good it is."
    return model, interruption.heard


def tell(
    model: Model, path: Path, changed: str | None, inputs: Sequence[str] = ("FILE",), *,
    as_json: bool, quiet: bool,
) -> None:  # fmt: skip
    """Say what was fitted and how good it is, and whether it was chosen otherwise than before.

    ``inputs`` are what `predict` is to be given for the samples of this fit.
    """
    from marginparts.app.report import headline_sentence

    card = model.card
    if as_json:
        console.print_json(
            {
                "model": str(path), "samples": card.n_samples, "labeled": card.n_labeled,
                "labels": dict(zip(model.class_names, card.label_counts, strict=True)),
                "chosen": model.classifier.best_params_, "metric": model.metric,
                "scores": [rated._asdict() for rated in card.rated], "notes": notes(model),
                "features": model.classifier.n_features_in_, "stopped": card.stopped,
                "seconds": round(card.seconds, 2),
            }
        )  # fmt: skip
        return
    early = " The search or the fit was ended early." if card.stopped else ""
    drawn = "" if model.n_learned == card.n_samples else f"{model.n_learned} of "
    console.show(
        f"{model.n_parts} parts from {drawn}{card.n_samples} samples, {card.n_labeled} of them "
        f"labeled ({len(model.class_names)} labels), in {spent(card.seconds)}.{early} "
        f"{headline_sentence(model)}",
        quiet=quiet,
    )
    for note in (*notes(model), *filter(None, [changed])):
        console.show(note, quiet=quiet)
    console.show(f"Written to {path}", quiet=quiet)
    if sys.stdout.isatty():
        words = shlex.join([str(path), *inputs])
        console.show(f"Next: marginparts predict {words} --out labeled.csv", quiet=quiet)
        console.show(f"  or: marginparts topics {shlex.quote(str(path))}", quiet=quiet)
