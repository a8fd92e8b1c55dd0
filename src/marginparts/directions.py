"""From labels to margin components: dual coefficients, gathered in S (eqs. 6-9, 13, 17).

Each two-class question gets a linear classifier; its weight vector is a weighted sum of labeled
samples, ``w = sum_i alpha_i y_i x_i`` with ``alpha_i >= 0``. The samples with positive labels give
``w+``, the others ``w-``, both nonnegative when the data is: two columns of S.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_array

from marginparts._types import Array, Data, Samples, Seed, Targets
from marginparts.labels import BinaryTask, Labels, encode_labels
from marginparts.rows.base import OutOfCore
from marginparts.solve.map import row_lengths
from marginparts.svm.class_weights import ClassWeight, check_class_weight, task_weights
from marginparts.svm.duals import SOURCES, DualSource, Questions, duals_of
from marginparts.svm.head import counts_of
from marginparts.svm.pseudo_labels import pseudo_labels
from marginparts.validation import (
    check_cost,
    check_matrix,
    check_option,
    check_sum,
    has_signs,
    seed_of,
)
from marginparts.weighting import hellinger


@dataclass(frozen=True)
class DirectionSpec:
    """How labels become directions; `margin_directions` says what the fields mean.

    What makes no sense is refused here, in the words of the estimators: ``source`` is their
    ``directions``, and ``C`` their ``direction_C``.
    """

    source: str | DualSource = "svm"
    multiclass: str = "ovr"
    features: str | None = None
    pseudo: str | None = None
    C: float = 1.0
    scale: bool = True
    class_weight: ClassWeight = None

    def __post_init__(self) -> None:
        if not callable(self.source):
            check_option(self.source, "directions", SOURCES)
        check_option(self.multiclass, "multiclass", ("ovr", "ovo"))
        if self.features is not None:
            check_option(self.features, "features", ("hellinger",))
        if self.pseudo is not None:
            check_option(self.pseudo, "pseudo", ("svm", "tsvm"))
        check_cost(self.C, "direction_C")
        check_class_weight(self.class_weight)


class Whole(NamedTuple):
    """Of all rows: the mass of X, the mean length of the features, the mass of columns beside X."""

    mass: float
    length: float
    beside: float | None = None


class Directions(NamedTuple):
    """Dual coefficients S (n, 2p), and the names of the p two-class questions they answer.

    The questions themselves are kept where they are asked for. ``beside`` are the directions of
    other columns of the same rows, from the same classifiers.
    """

    S: sp.csr_array
    names: tuple[str, ...]
    asked: Questions | None = None
    beside: Directions | None = None

    def spread_over(self, rows: NDArray[np.intp], n: int) -> Directions:
        """Return the same for n rows, of which these are some; the others are zero."""
        counts = np.zeros(n + 1, self.S.indptr.dtype)
        counts[rows + 1] = np.diff(self.S.indptr)
        arrays = (self.S.data, self.S.indices, np.cumsum(counts, dtype=counts.dtype))
        beside = None if self.beside is None else self.beside.spread_over(rows, n)
        return self._replace(S=sp.csr_array(arrays, shape=(n, self.S.shape[1])), beside=beside)


def margin_directions(
    X: Samples,
    y: Targets,
    *,
    directions: str | DualSource = "svm",
    multiclass: str = "ovr",
    features: str | Samples | None = None,
    pseudo: str | None = None,
    C: float = 1.0,
    scale: bool = True,
    class_weight: ClassWeight = None,
    random_state: Seed = None,
) -> sp.csr_array:
    """Return the dual coefficients S of linear classifiers trained on the labeled rows.

    Parameters
    ----------
    X : (n, d) array or sparse matrix
        The nonnegative data that will be factorized.
    y : (n,) or (n, c) array-like
        Labels; -1, None and NaN mark unlabeled rows (see `marginparts.labels`). A row without
        entries in a sparse y is labeled: no label applies.
    directions : {"svm", "perceptron", "averaged-perceptron", "pa", "cw", "arow", "class"}, callable
        Where the coefficients come from: SVMs with the squared hinge, mistake counts, learners
        that see one sample at a time (passive-aggressive, confidence-weighted, AROW), all ones
        (class sums), or a function ``directions(features, signs) -> alpha``.
    multiclass : {"ovr", "ovo"}
        More than two classes: one classifier for each class, or one for each pair as in the paper.
    features : (n, f) array or sparse matrix, "hellinger" or None
        What the classifiers see: X when None, the square roots of X in rows of length 1 when
        ``"hellinger"`` (whatever the units and lengths of the rows, and damping large counts).
        Coefficients are carried over to the rows of X by the ratio of the rows' lengths, which
        is exact when features are rescaled rows of X.
    pseudo : {None, "svm", "tsvm"}
        Let the half of the unlabeled rows about which an SVM, or a transductive one, is surest
        enter S with their predicted labels. None uses given labels alone.
    C : float
        Cost of the SVMs, longest step of ``"pa"`` and ``"cw"``, and ``1 / r`` of AROW. Perceptrons,
        class sums and functions of your own know no cost; the SVMs of ``pseudo`` do.
    scale : bool
        Take all units out. The classifiers see features whose rows have length 1 on average, so
        that C means the same for any data; and each column of S is scaled so that all margin
        components together have the mass of X: lam is then the ratio of supervised to
        unsupervised mass. False does neither, as in the paper.
    class_weight : None, "balanced" or dict
        What C is multiplied by for the samples of each class.
    random_state : int, RandomState, Generator or None
        Seed of the order in which the classifiers visit samples.

    Returns
    -------
    S : (n, 2p) CSR array
        All plus columns, then all minus columns (eq. 17). Unlabeled and empty rows are zero.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[2., 0.], [0., 1.], [1., 1.]])
    >>> margin_directions(X, [1, 0, -1], directions="class").toarray()
    array([[1.25, 0.  ],
           [0.  , 2.5 ],
           [0.  , 0.  ]])
    """
    X = check_matrix(X, "margin_directions")
    check_sum(X, "margin_directions")
    own_features = None
    if not isinstance(features, str) and features is not None:
        own_features, features = check_features(features, X.shape[0]), None
    C = check_cost(C, "C")
    spec = DirectionSpec(directions, multiclass, features, pseudo, C, scale, class_weight)
    labels = encode_labels(y, X.shape[0])
    check_class_weight(class_weight, labels)
    return find_directions(X, labels, spec, seed_of(random_state), features=own_features).S


def check_features(features: Samples, n: int) -> Data:
    """Return the classifiers' own features, which may have any sign."""
    features = check_array(features, accept_sparse="csr", dtype=np.float64, input_name="features")
    if features.shape[0] != n:
        raise ValueError(
            f"features has {features.shape[0]} rows and X has {n}; they must be equal."
        )
    return features


def find_directions(
    X: Data | OutOfCore,
    labels: Labels,
    spec: DirectionSpec,
    seed: int = 0,
    *,
    features: Data | None = None,
    whole: Whole | None = None,
    weights: Array | None = None,
    by_mass: bool = False,
    keep: bool = False,
    beside: Data | None = None,
) -> Directions:
    """`margin_directions` on trusted data (n, d).

    The classifiers see ``features`` (n, f) where they are given. ``whole`` says what is known of
    all rows, where these are only some. ``weights`` (n,) multiply the cost of each row, (n, p) that
    of each entry. With ``by_mass`` components keep the proportions that their duals give them. With
    ``keep`` the questions are kept. Columns ``beside`` X get directions from the same classifiers.
    """
    if isinstance(X, OutOfCore):
        return _gathered_directions(X, labels, spec, seed)
    seen = _seen(X, labels, spec, features, whole)
    if spec.pseudo is not None:
        labels = pseudo_labels(seen, labels, spec.pseudo, spec.C, seed, spec.class_weight)
    masses = [row_mass(block) for block in (X, beside) if block is not None]
    mass = np.sum(masses, axis=0)
    tasks = [_without_empty(task, mass) for task in labels.tasks(spec.multiclass)]
    numbers = [k for k, task in enumerate(tasks) if len(np.unique(task.signs)) == 2]
    usable = [tasks[k] for k in numbers]
    counts = None if weights is None else [counts_of(weights, tasks[k], k) for k in numbers]
    costs, alphas = _costs_and_alphas(seen, usable, labels, spec, seed, counts)
    same, end = features is None and spec.features is None, X.shape[1]
    carry = np.ones(len(mass)) if same else _carry(X, seen if beside is None else seen[:, :end])
    asked = Questions(seen, usable, costs, alphas, carry, np.ones(0))
    scale = _Scale(spec.scale, labels.weights, None if whole is None else whole.mass, by_mass)
    found = _carried(X, masses[0], asked, scale, keep=keep)
    if beside is None:
        _report_left_out(tasks, {*found.names})
        return found
    scale = scale._replace(total=None if whole is None else whole.beside)
    asked = asked._replace(carry=_carry(beside, seen[:, end:]))
    other = _carried(beside, masses[1], asked, scale)
    _report_left_out(tasks, {*found.names, *other.names})
    return found._replace(beside=other)


class _Scale(NamedTuple):
    """Whether components are scaled, and to what: a mass of all rows, or that of those given."""

    wanted: bool
    counts: Array | None
    total: float | None
    by_mass: bool

    def factors(self, S: sp.csr_array, mass: Array) -> Array:
        """Return what the columns of S are multiplied by (2p,)."""
        if not self.wanted or not S.shape[1]:
            return np.ones(S.shape[1])
        count = np.sum if self.counts is None else self.counts.dot
        total = count(mass) if self.total is None else self.total
        divisors = _divisors(S, mass, by_mass=self.by_mass)
        return np.asarray(total / np.where(divisors > 0, divisors, np.inf))


def _carried(
    X: Data, mass: Array, asked: Questions, scale: _Scale, *, keep: bool = False
) -> Directions:
    """Return what the classifiers' coefficients are for the rows of X, which have these masses."""
    asked = asked.some(_with_both_sides(asked, enough=any if has_signs(X) else all))
    asked = asked._replace(factors=scale.factors(asked.directions(), mass))
    S = _in_range(asked.directions())
    names = tuple(task.name for task in asked.tasks)
    return Directions(S.astype(X.dtype), names, asked if keep else None)


def _costs_and_alphas(
    seen: sp.csr_array,
    tasks: list[BinaryTask],
    labels: Labels,
    spec: DirectionSpec,
    seed: int,
    counts: list[Array] | None,
) -> tuple[list[NDArray[np.float64]], list[Array]]:
    """Return the cost and the coefficient (m,) of each sample of each task.

    ``counts`` say how often each of them counts: by its cost, where the source knows one, and in
    class sums by its coefficient.
    """
    costs = [spec.C * task_weights(task, labels, spec.class_weight) for task in tasks]
    if counts is not None:
        costs = [cost * count for cost, count in zip(costs, counts, strict=True)]
    alphas = duals_of(seen, tasks, spec.source, costs, seed)
    if spec.source != "class":
        return costs, alphas
    alphas = alphas if counts is None else counts
    if labels.weights is not None:
        pairs = zip(tasks, alphas, strict=True)
        alphas = [labels.weights[task.rows] * alpha for task, alpha in pairs]
    return costs, alphas


def _in_range(S: sp.csr_array) -> sp.csr_array:
    """Refuse directions of data whose smallest and largest rows have no common measure."""
    if not np.isfinite(S.data).all():
        raise ValueError(
            "The entries of X differ too much in size for margin directions; leave out the "
            "smallest or the largest of them."
        )
    return S


def _seen(
    X: Data, labels: Labels, spec: DirectionSpec, features: Data | None, whole: Whole | None
) -> sp.csr_array:
    """Return what the classifiers see, in rows of length 1 on average if it is to be scaled."""
    if features is None and spec.features == "hellinger":
        seen = hellinger(X)
    else:
        seen = sp.csr_array(X if features is None else features).astype(np.float64)
    if not spec.scale:
        return seen
    if whole is not None:
        return seen * (1 / whole.length)
    return seen * (1 / _root_mean_square(row_lengths(seen), labels.weights))


def _carry(X: Data, seen: sp.csr_array) -> Array:
    """Return what a coefficient of each row that is seen is as one of X; some have nothing in X."""
    lengths = row_lengths(X)
    return np.divide(row_lengths(seen), lengths, out=np.zeros(len(lengths)), where=lengths > 0)


def _with_both_sides(asked: Questions, enough: Callable[..., bool]) -> list[int]:
    """Return which tasks have coefficients above 0 on both sides, or on as many as are ``enough``.

    Among points of either sign one side is: the hyperplane goes through the origin, and samples of
    one class alone can then hold it in place.
    """
    return [
        k
        for k, (task, alpha) in enumerate(zip(asked.tasks, asked.alphas, strict=True))
        if enough(
            np.any((alpha * asked.carry[task.rows])[task.signs == sign] > 0) for sign in (1, -1)
        )
    ]


def _gathered_directions(
    X: OutOfCore, labels: Labels, spec: DirectionSpec, seed: int
) -> Directions:
    """Directions for data elsewhere, from its labeled rows, which are taken into memory."""
    if spec.pseudo is not None:
        raise ValueError(f"pseudo={spec.pseudo!r} needs all rows in memory; set pseudo=None.")
    known = np.flatnonzero(labels.labeled)
    known = known if len(known) else np.arange(1)  # without a label there still is one row to read
    # square roots of shares have length 1
    lengths = X.lengths if spec.features is None else (X.mass > 0).astype(np.float64)
    whole = Whole(float(X.mass.sum()), _root_mean_square(lengths))
    found = find_directions(X[known], labels.take(known), spec, seed, whole=whole)
    return found.spread_over(known, X.shape[0])


def _root_mean_square(lengths: Array, weights: Array | None = None) -> float:
    """Return the root mean square of the rows' lengths, or 1 for an empty matrix."""
    largest = float(lengths.max()) or 1.0
    mean = np.average((lengths / largest) ** 2, weights=weights)
    return largest * (float(np.sqrt(mean)) or 1.0)


def total_mass(X: Data | OutOfCore, weights: Array | None) -> float:
    """Return the mass of all rows, each as often as it counts."""
    if weights is not None:
        return float(weights @ row_mass(X))
    signs = not isinstance(X, OutOfCore) and has_signs(X)
    return float(row_mass(X).sum() if signs else X.sum(dtype=np.float64))


def row_mass(X: Data | OutOfCore) -> Array:
    """Return the sums of the rows (n,), of absolute values where there are signs."""
    if not isinstance(X, OutOfCore) and has_signs(X):
        X = abs(X)
    return np.asarray(X.sum(axis=1, dtype=np.float64)).ravel()


def _without_empty(task: BinaryTask, mass: Array) -> BinaryTask:
    """Leave out samples without mass: they can carry no direction."""
    full = mass[task.rows] > 0
    return task if full.all() else BinaryTask(task.name, task.rows[full], task.signs[full])


def _divisors(S: sp.csr_array, mass: Array, *, by_mass: bool) -> Array:
    """Return what the columns of S are divided by (2p,), so that all components have mass 1.

    They have it together, each as much as the others or by its own mass.
    """
    XS_mass = S.T @ mass  # the column sums of S.T @ X without forming it
    if by_mass:
        return np.full(S.shape[1], XS_mass.sum())
    return np.asarray(S.shape[1] * XS_mass)


def _report_left_out(tasks: list[BinaryTask], names: set[str]) -> None:
    """Say which classifiers could not be trained: those that have no name here."""
    left_out = [task.name for task in tasks if task.name not in names]
    if left_out and names:
        warnings.warn(
            f"Left out {len(left_out)} of {len(tasks)} classifiers, because one of their two "
            f"sides has no labeled sample with any weight: {', '.join(left_out[:8])}"
            f"{', ...' if len(left_out) > 8 else ''}.",
            UserWarning,
            stacklevel=4,
        )
    elif not names:
        warnings.warn(
            "There are no labeled samples of two classes, so there is no margin to keep and this "
            "is plain NMF; label at least one sample of each of two classes.",
            UserWarning,
            stacklevel=4,
        )
