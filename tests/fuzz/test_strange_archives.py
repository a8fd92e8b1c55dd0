"""Model files, streams and checkpoints of strangers: a sentence, or a model that works.

The checksums of every file agree, so all that stands between its content and compiled loops are the
tables of `marginparts.files.invariants`.
"""

import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

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

#: Cases of the short form, and of the long one.
SHORT, LONG = 250, 10_000

X = np.random.default_rng(0).random((60, 9)) * (np.random.default_rng(1).random((60, 9)) < 0.7)
Y = np.where(np.arange(60) % 2, np.arange(60) % 3, -1)


#: What is said of parameters that make no sense, and of labels that the classes do not have.
SENTENCES = ("=", "There are no probabilities", "not declared", "mix strings and numbers")


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


def run_models(name, n, seed, tmp_path):
    """Return how many files were refused, and how many gave a model that works."""
    path, counts = tmp_path / "model", [0, 0]
    save(MODELS[name](), path)
    whole = read_archive(path)
    for case in range(n):
        rng = np.random.default_rng([seed, case])
        write_archive(path, *mutated(rng, *whole))
        began = time.perf_counter()
        try:
            model = load(path)
        except FileProblemError as error:
            counts[0] += 1
            is_a_sentence(error, path)
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                use(model)
        except (ValueError, AttributeError) as error:
            if not any(word in str(error) for word in SENTENCES):
                raise AssertionError(f"case {seed, case}") from error
        except Exception as error:
            raise AssertionError(f"case {seed, case}") from error
        assert time.perf_counter() - began < 5, f"case {seed, case}"
        counts[1] += 1
    return counts


@pytest.mark.wide
@pytest.mark.parametrize("name", MODELS)
def test_a_strange_model_is_refused_or_works(name, tmp_path):
    refused, works = run_models(name, SHORT, 0, tmp_path)
    assert refused > works > 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", MODELS)
def test_many_strange_models(name, seed, tmp_path):
    print(name, seed, run_models(name, LONG, seed, tmp_path))


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


def run_checkpoints(name, n, seed, tmp_path):
    """Return how many files were refused, and how many fits went on to finite numbers."""
    fit, at = FITS[name]
    path, counts = tmp_path / "fit.ckpt", [0, 0]
    with pytest.raises(StopError):
        fit(path, stopping(at))
    whole = read_archive(path)
    for case in range(n):
        write_archive(path, *mutated(np.random.default_rng([seed, case]), *whole))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = fit(path)
        except FileProblemError as error:
            counts[0] += 1
            is_a_sentence(error, path)
            continue
        except Exception as error:
            raise AssertionError(f"case {seed, case}") from error
        counts[1] += 1
        assert all(np.isfinite(each).all() for each in found), f"case {seed, case}"
    return counts


@pytest.mark.wide
@pytest.mark.parametrize("name", FITS)
def test_a_strange_checkpoint_is_refused_or_goes_on(name, tmp_path):
    refused, goes_on = run_checkpoints(name, SHORT, 0, tmp_path)
    assert refused > goes_on > 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", FITS)
def test_many_strange_checkpoints(name, seed, tmp_path):
    print(name, seed, run_checkpoints(name, LONG, seed, tmp_path))
