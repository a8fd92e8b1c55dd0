"""Model files, streams and checkpoints of strangers: a sentence, or a model that works.

The checksums of every file agree, so all that stands between its content and compiled loops are the
tables of `marginparts.files.invariants`.
"""

import time
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from fuzz.mutations import mutated, read_archive, write_archive
from marginparts import (
    Checkpoint,
    NMFAlpha,
    NMFAlphaClassifier,
    OnlineNMFAlphaClassifier,
    TransductiveSVM,
    nmf_alpha,
)
from marginparts.app.model_file import load, save
from marginparts.files.atomic import FileProblemError

#: Cases of the short form, and of the long one.
SHORT, LONG = 250, 10_000

X = np.random.default_rng(0).random((60, 9)) * (np.random.default_rng(1).random((60, 9)) < 0.7)
Y = np.where(np.arange(60) % 2, np.arange(60) % 3, -1)


#: What is said of parameters that make no sense, and of labels that the classes do not have.
SENTENCES = ("=", "There are no probabilities", "not declared", "mix strings and numbers")


def stream():
    model = OnlineNMFAlphaClassifier(3, batch_size=20, memory=15, random_state=0)
    return model.partial_fit(X, Y, classes=[0, 1, 2])


MODELS = {
    "parts": lambda: NMFAlpha(3, max_iter=5, random_state=0).fit(X, Y),
    "classifier": lambda: NMFAlphaClassifier(3, max_iter=5, random_state=0).fit(X, Y),
    "tsvm": lambda: TransductiveSVM(random_state=0).fit(X, Y),
    "stream": stream,
}


def use(model):
    """Do with a model what people do, and look at what comes out."""
    rows = X[:5]
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
            assert str(path) in str(error)
            assert "\n" not in str(error)
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
