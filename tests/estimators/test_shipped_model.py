"""What is scored while candidates are compared is the model that `fit` makes."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from marginparts import NMFAlphaClassifier, NMFAlphaCV
from marginparts.directions import find_directions
from marginparts.labels import encode_labels
from marginparts.recipe import Recipe, RunSpec
from marginparts.scores import quality
from marginparts.selection.folds import folds_of

KINDS = ("binary", "multiway", "multilabel")


def samples(kind, seed, n=60, d=12, labeled=40):
    """Return counts and labels: each class uses some features more."""
    rng = np.random.default_rng(seed)
    classes = 2 if kind == "binary" else 3
    truth = rng.integers(classes, size=n)
    rates = rng.gamma(1.0, size=(classes, d))
    X = rng.poisson(3 * rates[truth] + 0.3).astype(float)
    X[X.sum(axis=1) == 0, 0] = 1
    y = truth
    if kind == "multilabel":
        y = np.column_stack([truth == k for k in range(classes)]).astype(int)
        y[rng.random(y.shape) < 0.15] ^= 1
    y = y.copy()
    y[labeled:] = -1
    return X, y


def drawn(seed):
    """Return data, labels and the settings of a classifier, all at random."""
    rng = np.random.default_rng(1000 + seed)
    X, y = samples(KINDS[seed % 3], seed)
    if seed % 2:
        X = sp.csr_array(X)
    if seed % 5 == 0:
        X = X.astype(np.float32)
    given = {
        "n_components": int(rng.integers(2, 5)),
        "directions": str(rng.choice(["svm", "class", "pa"])),
        "multiclass": str(rng.choice(["ovr", "ovo"])),
        "features": [None, "hellinger"][rng.integers(2)],
        "pseudo": [None, "svm", "tsvm"][rng.integers(3)],
        "init": str(rng.choice(["auto", "random", "nndsvdar"])),
        "solver": str(rng.choice(["auto", "mu", "mue", "cd"])),
        "max_iter": int(rng.integers(5, 30)),
        "tol": float(rng.choice([0.0, 1e-3])),
        "output": str(rng.choice(["gram", "coefficients"])),
        "scale": bool(rng.random() < 0.7),
        "class_weight": [None, "balanced", {1: 3.0}][rng.integers(3)],
        "scoring": [None, "f1_macro", "balanced_accuracy"][rng.integers(3)],
        "thresholds": None,  # they are chosen when the race is over
        "random_state": seed,
    }
    lams = tuple(float(lam) for lam in rng.choice([0.0, 0.1, 0.5, 1.0, 3.0, 8.0, 50.0], 3, False))
    tried = {"lam": lams, "map_iter": (3, 9), "normalize": (True, False), "C": (0.5, 3.0)}
    tried["direction_C"] = (0.3, 1.0) if seed % 4 == 0 else (1.0,)
    if seed % 7 == 0:
        tried["map_iter"] = (5, None)
    return X, y, given, tried


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.filterwarnings("ignore:Left out", "ignore:The SVMs behind")
def test_a_candidates_fold_score_is_that_of_the_model_which_fit_makes(seed):
    X, y, given, tried = drawn(seed)
    race = NMFAlphaCV(**given, **tried, cv=3).fit(X, y)
    rng = np.random.default_rng(seed)
    setting = list(race.selection_)[rng.integers(len(race.selection_))]
    hidden = folds_of(encode_labels(y), seed, 3)[0].hidden
    left = y.copy()
    left[hidden] = -1
    for candidate in (setting, race.choice_.best):
        settings = {**given, **candidate._asdict()}
        shipped = NMFAlphaClassifier(**settings, rehearse=False).fit(X, left)
        values = np.asarray(shipped.decision_function(X[hidden])).reshape(len(hidden), -1)
        truth = encode_labels(y).take(hidden)
        score = quality(values, truth, given["scoring"])
        assert_allclose(score, race.selection_[candidate][0], atol=1e-9)
    # and what was said of hidden labels is what the model says
    assert_allclose(values, race.choice_.held_out.values[: len(hidden)], rtol=1e-4, atol=1e-4)


def test_what_comes_of_a_weight_does_not_depend_on_the_other_weights():
    X, y = samples("multiway", 0)
    labels, recipe = encode_labels(y), Recipe(run=RunSpec(max_iter=12))
    S = find_directions(X, labels, recipe.directions).S
    together = dict(recipe.parts(X, labels, S, 4, (0.0, 0.3, 10.0), 0))
    assert list(together) == [10.0, 0.3, 0.0]
    for lam, result in together.items():
        ((_, alone),) = recipe.parts(X, labels, S, 4, (lam,), 0)
        assert_allclose(alone.V, result.V, rtol=1e-10)
        assert alone.losses == pytest.approx(result.losses, rel=1e-12)
