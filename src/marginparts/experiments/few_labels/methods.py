"""The methods of the race: each chooses its settings by folds of the labeled rows, then predicts.

Rivals are those of `marginparts.rivals` but for two things: the rows are prepared already, so
nothing weighs them again, and plain linear models and factorizations take part too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginparts._types import Array, Data
from marginparts.estimators import (
    ConstrainedNMF,
    NMFAlpha,
    NMFAlphaClassifier,
    SemiSupervisedNMF,
)
from marginparts.labels import Labels
from marginparts.rivals.contest import (
    LSA,
    NAIVE_BAYES,
    RIVALS,
    SELF_TRAINING,
    SPREADING,
    TSVM,
    Matrix,
    Rival,
    as_they_are,
    best_setting,
    latent_rows,
    scores_of,
)
from marginparts.rivals.label_spreading import find_neighbors
from marginparts.selection.folds import Fold, folds_of
from marginparts.svm.head import fit_head
from marginparts.svm.thresholds import choose_thresholds

#: Costs of linear models; the first of equals is chosen, hence not in order.
_COSTS = (1.0, 10.0, 0.1, 100.0)

#: Parts at most, iterations at most, and folds: fewer for what is slow.
PARTS, _ITERATIONS, _FOLDS, _FEW_FOLDS = 64, 100, 3, 2

#: Dimensions of LSA, the likeliest first, and those in which neighbors of texts are sought.
_DIMENSIONS, _NEAR = (100, 50, 200), 100

#: Neighbors that label spreading may go by.
_NEIGHBORS = (10, 5, 20, 3)

Setting = tuple[Any, ...]
Guess = NDArray[np.int64]


class Trial(NamedTuple):
    """What a method sees: all training rows, the few labels, and rows to judge.

    The labels know only the classes that occur among them, so no other one is ever predicted.
    """

    X: Data
    labels: Labels
    X_test: Data
    seed: int


class Contestant(NamedTuple):
    """A rival, the number of its folds, and whether it is for texts only.

    ``bounded(values, setting)`` brings what it says of several labels to the scale of an SVM, where
    thresholds are sought.
    """

    title: str
    rival: Rival
    folds: int = _FOLDS
    texts_only: bool = False
    bounded: Callable[[Array, Setting], Array] = lambda values, setting: values

    def predict(self, trial: Trial) -> tuple[Guess, Setting]:
        """Return the codes of the test rows (or an indicator), and the setting that was chosen."""
        X, labels, X_test, seed = trial
        known = np.flatnonzero(labels.labeled)
        folds = folds_of(labels, seed, self.folds)
        prepared = self.rival.prepare(X, [X[known], X_test], seed)
        said: dict[Setting, list[Array]] = {each: [] for each in self.rival.worth_trying(X)}
        for fold, (setting, own) in product(folds, said.items()):
            values, _ = self._values(prepared, fold.left, setting)
            own.append(values[np.searchsorted(known, fold.hidden)])
        chosen = best_setting(scores_of(folds, said)) if folds else next(iter(said))
        _, values = self._values(prepared, labels, chosen)
        if labels.multilabel:
            return (values > _thresholds(folds, said[chosen], values)).astype(np.int64), chosen
        codes = values[:, 0] > 0 if values.shape[1] == 1 else values.argmax(axis=1)
        return codes.astype(np.int64), chosen

    def _values(self, prepared: Any, labels: Labels, setting: Setting) -> list[Array]:
        """Return decision values; what no labeled row has is never predicted."""
        absent = [k for k in range(len(labels.classes)) if not len(labels.members(k))]
        found = []
        for values in self.rival.values(prepared, labels, setting):
            told = self.bounded(values, setting) if labels.multilabel else np.array(values)
            if told.shape[1] > 1 or labels.multilabel:
                told[:, absent] = -np.inf
            found.append(told)
        return found


def _thresholds(folds: list[Fold], said: list[Array], values: Array) -> Array:
    """Return the thresholds above which labels are given, chosen on the values of hidden rows."""
    if not folds:
        return np.zeros(values.shape[1])
    hidden = np.concatenate([fold.hidden for fold in folds])
    return choose_thresholds(np.concatenate(said), folds[0].labels.take(hidden))


def _linear_svm(rows: list[Data], labels: Labels, setting: Setting) -> list[Matrix]:
    train, *others = rows
    head = fit_head(train, labels, *setting)
    return [head.values(each) for each in others]


def _logistic(rows: list[Data], labels: Labels, setting: Setting) -> list[Matrix]:
    """Logistic regression: multinomial, or one for each of several labels."""
    from sklearn.linear_model import LogisticRegression

    train, *others = rows
    known = np.flatnonzero(labels.labeled)
    some, codes = train[known], labels.codes[known]
    found = []
    for column in codes.T if labels.multilabel else [codes]:
        if len(np.unique(column)) < 2:  # what all rows have is always given, or never
            found.append([np.full((each.shape[0], 1), 2.0 * column[0] - 1) for each in others])
            continue
        model = LogisticRegression(C=setting[0], max_iter=1000).fit(some, column)
        found.append([_columns(model.decision_function(each)) for each in others])
    return [np.hstack(each) for each in zip(*found, strict=True)]


def _columns(values: Array) -> Array:
    return values if values.ndim == 2 else values[:, None]


def _near(X: Data, others: list[Data], seed: int) -> Any:
    """Return the neighbors by the angle, of texts in their latent space."""
    from sklearn.preprocessing import normalize

    rows = latent_rows(X, others, seed, _NEAR, weighted=True) if sp.issparse(X) else [X, *others]
    train, *rest = (normalize(each) for each in rows)
    return {True: find_neighbors(train, rest, max(_NEIGHBORS))}


class _Parts:
    """Codes of parts; those that labels have shaped are learned anew for other labels."""

    def __init__(self, make: Callable[..., Any], taught: bool, rows: list[Data], seed: int) -> None:
        (self._X, *self._others), self._taught = rows, taught
        r = min(PARTS, *self._X.shape)
        self._model = make(n_components=r, max_iter=_ITERATIONS, random_state=seed)
        self._codes: list[Array] = []
        self._labels: Labels | None = None

    def codes(self, labels: Labels) -> list[Array]:
        """Return the codes of the labeled rows and of the others."""
        if labels is not self._labels:
            if self._taught or self._labels is None:
                self._model.fit(self._X, labels.codes if self._taught else None)
                self._codes = [self._model.transform(each) for each in self._others]
            self._labels = labels
            self._known = self._model.transform(self._X[np.flatnonzero(labels.labeled)])
        return [self._known, *self._codes]


def _factorized(
    make: Callable[..., Any], taught: bool, X: Data, others: list[Data], seed: int
) -> _Parts:
    return _Parts(make, taught, [X, *others], seed)


def _on_parts(parts: _Parts, labels: Labels, setting: Setting) -> list[Matrix]:
    Z, *others = parts.codes(labels)
    head = fit_head(Z, labels.take(np.flatnonzero(labels.labeled)), *setting)
    return [head.values(each) for each in others]


def _rival(name: str) -> Rival:
    return next(rival for rival in RIVALS if rival.name == name)


def _with_parts(title: str, make: Callable[..., Any], taught: bool) -> Contestant:
    prepare = partial(_factorized, make, taught)
    rival = Rival(title, tuple(product(_COSTS)), prepare, _on_parts)
    return Contestant(title, rival, _FEW_FOLDS if taught else _FOLDS)


def _log_odds(values: Array, setting: Setting) -> Array:
    return np.asarray(np.tanh(values / 2))


def _votes(values: Array, setting: Setting) -> Array:
    return values / setting[0]


_LSA = _rival(LSA)._replace(
    settings=tuple(product(_DIMENSIONS, (1.0, 5.0, 0.3), (True,))),
    prepare=partial(latent_rows, dimensions=max(_DIMENSIONS), weighted=True),
)
# the likeliest settings first here too: few labels often cannot tell them apart
_NAIVE_BAYES = _rival(NAIVE_BAYES)._replace(
    settings=tuple(product((0.1, 1.0, 0.0), (0.1, 0.01, 1.0)))
)
_SPREADING = _rival(SPREADING)._replace(
    settings=tuple(product(_NEIGHBORS, (0.8, 0.2), (True,))), prepare=_near
)
_PLAIN_NMF = partial(NMFAlpha, lam=0.0, solver="mue")

CONTESTANTS = {
    "svm": Contestant(
        "linear SVM", Rival("linear SVM", tuple(product(_COSTS)), as_they_are, _linear_svm)
    ),
    "logistic": Contestant(
        "logistic regression", Rival("logistic", tuple(product(_COSTS)), as_they_are, _logistic),
        bounded=_log_odds,
    ),
    "nb_em": Contestant(
        "naive Bayes with EM", _NAIVE_BAYES, texts_only=True, bounded=_log_odds
    ),
    "lsa": Contestant("LSA + linear SVM", _LSA),
    "label_spreading": Contestant(
        "label spreading", _SPREADING, bounded=_votes
    ),
    "self_training": Contestant("self-training", _rival(SELF_TRAINING)),
    "nmf": _with_parts("plain NMF", _PLAIN_NMF, False),
    "lee2010": _with_parts("Lee et al. 2010", SemiSupervisedNMF, True),
    "liu_wu2010": _with_parts("Liu & Wu 2010", ConstrainedNMF, True),
    "tsvm": Contestant("TSVM", _rival(TSVM), _FEW_FOLDS),
}  # fmt: skip


def predict_with_parts(trial: Trial, *, guessed: bool = True, **options: Any) -> Guess:
    """Return what `NMFAlphaClassifier` predicts for the test rows, with ``options`` changed.

    Hiding labels to predict them is for thresholds of several labels a sample; it takes time and
    changes no other prediction. Without ``guessed`` labels its last SVM is trained anew.
    """
    told: dict[str, Any] = {
        "n_components": PARTS, "rehearse": trial.labels.multilabel, "random_state": trial.seed,
        **options,
    }  # fmt: skip
    told["n_components"] = min(told["n_components"], *trial.X.shape)
    model = NMFAlphaClassifier(**told).fit(trial.X, trial.labels.codes)
    if not guessed:
        known = np.flatnonzero(trial.labels.labeled)
        codes, labels = model.parts_.transform(trial.X[known]), trial.labels.take(known)
        head = fit_head(codes, labels, model.C_, normalize=model.normalize_, center=True)
        moved = head.intercept - model.thresholds_
        model.head_, model.intercept_ = head._replace(intercept=moved), moved
        model.coef_ = head.coef
    return np.asarray(model.predict(trial.X_test)).astype(np.int64)
