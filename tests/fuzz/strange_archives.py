"""Model files, streams and checkpoints of strangers: a sentence, or a model that works.

The checksums of every file agree, so all that stands between its content and compiled loops are the
tables of `marginparts.files.invariants`.
"""

import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from attacking import Target

from marginparts import (
    Checkpoint,
    NMFAlpha,
    NMFAlphaClassifier,
    OnlineNMFAlphaClassifier,
    TransductiveSVM,
    nmf_alpha,
)
from marginparts.app.fitting import fit_file
from marginparts.app.model import Model
from marginparts.app.model_file import load, save
from marginparts.app.report import payload_of, render
from marginparts.files.atomic import FileProblemError
from mutations import is_a_sentence, mutated, read_archive, write_archive

X = np.random.default_rng(0).random((60, 9)) * (np.random.default_rng(1).random((60, 9)) < 0.7)
Y = np.where(np.arange(60) % 2, np.arange(60) % 3, -1)


#: What is said of parameters that make no sense, and of labels that the classes do not have.
SENTENCES = (
    "=",
    "There are no probabilities",
    "not declared",
    "mix strings and numbers",
    "keep to that",
)


def stream():
    model = OnlineNMFAlphaClassifier(3, batch_size=20, memory=15, random_state=0)
    return model.partial_fit(X, Y, classes=[0, 1, 2])


def command():
    """Return what the command makes of a table of texts."""
    rng = np.random.default_rng(0)
    lines = ["body,team"]
    for i in range(40):
        words = rng.integers(10 * (i % 2), 10 * (i % 2) + 12, 8)
        lines.append(f"{' '.join(f'word{k}' for k in words)},{'ab'[i % 2] if i < 30 else ''}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "t.csv")
        path.write_text("\n".join(lines))
        return fit_file(
            path, text="body", label="team", n_components=(2,), max_iter=3, random_state=0,
            keep_path=True,
        )  # fmt: skip


MODELS = {
    "command": command,
    "parts": lambda: NMFAlpha(3, max_iter=5, random_state=0).fit(X, Y),
    "classifier": lambda: NMFAlphaClassifier(3, max_iter=5, random_state=0).fit(X, Y),
    "tsvm": lambda: TransductiveSVM(random_state=0).fit(X, Y),
    "stream": stream,
}


def use(model):
    """Do with a model what people do, and look at what comes out."""
    if isinstance(model, Model):
        render(payload_of(model, None))
    rows = ["word1 word2", "word3"] * 2 + [""] if isinstance(model, Model) else X[:5]
    for name in ("transform", "decision_function", "predict", "predict_proba"):
        if hasattr(model, name):
            found = np.asarray(getattr(model, name)(rows))
            assert len(found) == 5
            if name in ("transform", "decision_function"):
                assert not np.isnan(found).any()
    if hasattr(model, "partial_fit"):
        model.partial_fit(sp.csr_array(rows), Y[:5])


def attack_models(name, folder):
    """Files that stay well formed."""
    path = folder / "model"
    save(MODELS[name](), path)
    whole = read_archive(path)

    def attack(rng):
        write_archive(path, *mutated(rng, *whole))
        before = path.read_bytes()
        try:
            model = load(path)
        except FileProblemError as error:
            is_a_sentence(error, path)
            return False
        try:
            use(model)
        except (ValueError, AttributeError) as error:
            if not any(word in str(error) for word in SENTENCES):
                raise
        assert path.read_bytes() == before
        return True

    return attack


class StopError(Exception):
    pass


def stopping(at):
    """Return a callback that ends a fit with an exception."""
    calls = []

    def callback(progress):
        calls.append(progress)
        if len(calls) == at:
            raise StopError

    return callback


def fit_parts(path, callback=None):
    result = nmf_alpha(
        X, 3, random_state=0, solver="mue", max_iter=12, tol=0, callback=callback,
        checkpoint=Checkpoint(path, every_iterations=1),
    )  # fmt: skip
    return result.V, result.H, result.losses


def fit_classifier(path, callback=None):
    model = NMFAlphaClassifier(
        2, lam="auto", map_iter=3, C=1.0, max_iter=3, pseudo=None, random_state=0,
        callback=callback, checkpoint=Checkpoint(path, every_iterations=1),
    ).fit(X, Y)  # fmt: skip
    return (model.parts_.components_, model.head_.coef)


#: A fit, and the calls after which it is ended: in the race of the second, and behind it.
FITS = {"run": (fit_parts, 6), "race": (fit_classifier, 30), "choice": (fit_classifier, 62)}


def attack_checkpoints(name, folder):
    """A fit that goes on from a checkpoint that is another."""
    fit, at = FITS[name]
    path = folder / "fit.ckpt"
    try:
        fit(path, stopping(at))
    except StopError:
        whole = read_archive(path)

    def attack(rng):
        write_archive(path, *mutated(rng, *whole))
        try:
            found = fit(path)
        except FileProblemError as error:
            is_a_sentence(error, path)
            return False
        assert all(np.isfinite(each).all() for each in found), "not finite"
        return True

    return attack


TARGETS = {
    **{f"model {name}": Target(partial(attack_models, name)) for name in MODELS},
    **{f"checkpoint {name}": Target(partial(attack_checkpoints, name)) for name in FITS},
}
