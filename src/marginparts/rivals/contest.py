"""Other ways to classify partly labeled rows, for a fair word on what the parts are worth.

Each rival has a few settings, learns from all rows and the labels that are known, and judges other
rows. What it makes of the rows alone (`Rival.prepare`) serves all settings and all folds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import product
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.preprocessing import normalize
from sklearn.utils.extmath import row_norms

from marginparts._types import Array, Data
from marginparts.backends import work_of
from marginparts.labels import Labels
from marginparts.rivals.label_spreading import find_neighbors, spread_values
from marginparts.selection.folds import Fold
from marginparts.svm.head import Head, fit_head
from marginparts.svm.pseudo_labels import with_surest
from marginparts.svm.transductive import transductive_weights
from marginparts.teaching.naive_bayes import naive_bayes_values
from marginparts.weighting import has_unit_rows, idf_of, weighted_rows

#: What is tried: costs, dimensions, what unlabeled rows count, what is added to counts, the share
#: of each predicted class that is taught, neighbors, and how much comes from them.
_COSTS, _TSVM_COSTS = (0.3, 1.0, 5.0), (1.0, 5.0)
_DIMENSIONS = (50, 100, 200)
_WEIGHTS, _SMOOTHING = (0.0, 0.1, 1.0), (0.01, 0.1, 1.0)
_ROUNDS, _SHARES = (0.5, 1.0), (0.5, 1.0)
_NEIGHBORS, _SPREADING = (3, 5, 10, 20), (0.2, 0.8)

#: Dimensions in which neighbors of texts are sought.
_NEAR = 100

#: A transductive SVM takes this many entries times classes at most.
_TSVM_WORK = 500_000

Matrix = NDArray[np.float64]

#: A setting, whatever it is.
S = TypeVar("S")


class Rival(NamedTuple):
    """A way to classify, in two stages.

    ``prepare(X, others, seed)`` looks at the rows alone. ``values(prepared, labels, setting)``
    gives decision values for each of ``others``. ``suits(X, labels)`` says whether it makes sense,
    and can be afforded. In one that ``scales`` the last entry of a setting says whether rows get
    length 1.
    """

    name: str
    settings: tuple[tuple[Any, ...], ...]
    prepare: Callable[[Any, list[Any], int], Any]
    values: Callable[[Any, Labels, tuple[Any, ...]], list[Matrix]]
    suits: Callable[[Any, Labels], bool] = lambda X, labels: True
    scales: bool = False

    def worth_trying(self, X: Data) -> list[tuple[Any, ...]]:
        """Return the settings that differ on X: rows of length 1 are not scaled to it again."""
        if not self.scales or not has_unit_rows(X):
            return list(self.settings)
        return [setting for setting in self.settings if setting[-1]]


def hidden_values(
    rival: Rival, X: Data, labels: Labels, folds: list[Fold], seed: int
) -> dict[tuple[Any, ...], list[Array]]:
    """Return a rival's decision values for hidden labels in each fold, by its settings."""
    known = np.flatnonzero(labels.labeled)
    prepared = rival.prepare(X, [X[known]], seed)
    said: dict[tuple[Any, ...], list[Array]] = {setting: [] for setting in rival.worth_trying(X)}
    for fold in folds:
        places = np.searchsorted(known, fold.hidden)
        for setting, found in said.items():
            (values,) = rival.values(prepared, fold.left, setting)
            found.append(values[places])
    return said


def scores_of(folds: list[Fold], said: dict[S, list[Array]]) -> dict[S, list[float]]:
    """Return the scores of settings in each fold, from their decision values there."""
    return {
        setting: [fold.quality(values) for fold, values in zip(folds, own, strict=True)]
        for setting, own in said.items()
    }


def best_setting(scores: dict[tuple[Any, ...], list[float]]) -> tuple[Any, ...]:
    """Return the setting with the best mean score, the first of equals."""
    return max(scores, key=lambda setting: float(np.mean(scores[setting])))


def latent_rows(
    X: Data, others: list[Data], seed: int, dimensions: int, *, weighted: bool = False
) -> list[Array]:
    """Return rows in the space of the leading singular vectors of X.

    They are those of tf-idf rows when X is sparse, unless it is ``weighted`` already.
    """
    from sklearn.utils.extmath import randomized_svd

    rows = [X, *others]
    if sp.issparse(X) and not weighted:
        idf = idf_of(X)
        rows = [weighted_rows(each, idf) for each in rows]
    rank = max(1, min(dimensions, min(X.shape) - 1))
    _, _, axes = randomized_svd(rows[0], rank, n_iter=4, random_state=seed)
    return [np.asarray(each @ axes.T) for each in rows]


def _lsa(Z: list[Array], labels: Labels, setting: tuple[Any, ...]) -> list[Matrix]:
    dimensions, C, unit = setting
    train, *others = (rows[:, :dimensions] for rows in Z)
    known = np.flatnonzero(labels.labeled)
    # as if sparse: with few labels and many dimensions the solver for such rows is the faster one
    head = fit_head(sp.csr_array(train[known]), labels.take(known), C, normalize=unit)
    return [head.values(rows) for rows in others]


def as_they_are(X: Data, others: list[Data], seed: int) -> list[Data]:
    """Return the rows as they are: a `Rival.prepare`."""
    return [X, *others]


def _naive_bayes(rows: list[Data], labels: Labels, setting: tuple[Any, ...]) -> list[Matrix]:
    weight, alpha = setting
    return naive_bayes_values(rows[0], labels, rows[1:], weight=weight, alpha=alpha)


def _self_training(rows: list[Data], labels: Labels, setting: tuple[Any, ...]) -> list[Matrix]:
    """Teach with a linear SVM, more of each predicted class in each round, up to a share."""
    C, most, unit = setting
    train, *others = rows
    shares = [0.0, *(share for share in _ROUNDS if share <= most)]
    *_, head = taught_heads(train, labels, C, shares, normalize=unit)
    return [head.values(each) for each in others]


def taught_heads(
    train: Data, labels: Labels, C: float, shares: Iterable[float], *, normalize: bool = True
) -> Iterator[Head]:
    """Yield linear SVMs; the last one labels a share of each class that it predicts for the next.

    The first share is 0: the first SVM learns from the labels alone.
    """
    head = None
    for share in shares:
        taught = labels if head is None else with_surest(labels, head.values(train), share)
        known = np.flatnonzero(taught.labeled)
        head = fit_head(train[known], taught.take(known), C, normalize=normalize)
        yield head


def _near(X: Data, others: list[Data], seed: int) -> Any:
    """Return the neighbors by the angle and by the distance."""
    rows = latent_rows(X, others, seed, _NEAR) if sp.issparse(X) else [X, *others]
    ways = {True: [normalize(each) for each in rows], False: rows}
    return {
        unit: find_neighbors(train, rest, max(_NEIGHBORS)) for unit, (train, *rest) in ways.items()
    }


def _spread(near: Any, labels: Labels, setting: tuple[Any, ...]) -> list[Matrix]:
    k, alpha, unit = setting
    return spread_values(near[unit], labels, k=k, alpha=alpha)


def _both_ways(X: Data, others: list[Data], seed: int) -> dict[bool, list[Data]]:
    """Return rows of length 1, and rows that are all scaled by one number, for an intercept."""
    rows = [sp.csr_array(each) for each in (X, *others)]
    size = float(np.sqrt(np.mean(row_norms(rows[0], squared=True)))) or 1.0
    ways = {True: [normalize(each) for each in rows], False: [each / size for each in rows]}
    return {
        unit: [sp.hstack([each, np.ones((each.shape[0], 1))], format="csr") for each in some]
        for unit, some in ways.items()
    }


def _transductive(
    rows: dict[bool, list[Data]], labels: Labels, setting: tuple[Any, ...]
) -> list[Matrix]:
    C, unit = setting
    train, *others = rows[unit]
    W = transductive_weights(train, labels, C)
    return [np.asarray(each @ W.T) for each in others]


_UNIT = (True, False)

TSVM, SELF_TRAINING = "transductive SVM on the inputs", "self-training SVM on the inputs"
NAIVE_BAYES, LSA, SPREADING = "naive Bayes with EM", "LSA and a linear SVM", "label spreading"

#: In the order in which they are shown.
RIVALS = (
    Rival(
        TSVM, tuple(product(_TSVM_COSTS, _UNIT)), _both_ways, _transductive,
        lambda X, labels: work_of(X, len(labels.classes)) <= _TSVM_WORK, scales=True,
    ),
    Rival(
        SELF_TRAINING, tuple(product(_COSTS[1:], _SHARES, _UNIT)), as_they_are,
        _self_training, scales=True,
    ),
    Rival(
        NAIVE_BAYES, tuple(product(_WEIGHTS, _SMOOTHING)), as_they_are, _naive_bayes,
        lambda X, labels: sp.issparse(X),
    ),
    Rival(
        LSA, tuple(product(_DIMENSIONS, _COSTS, _UNIT)),
        partial(latent_rows, dimensions=max(_DIMENSIONS)), _lsa, scales=True,
    ),
    Rival(
        SPREADING, tuple(product(_NEIGHBORS, _SPREADING, _UNIT)), _near, _spread, scales=True
    ),
)  # fmt: skip
