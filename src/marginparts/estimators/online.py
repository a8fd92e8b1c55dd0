"""The classifier for streams: parts, directions and the last SVM from one batch after another."""

from __future__ import annotations

import logging
from copy import copy
from typing import Any

import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from marginparts._types import DEFAULT_LAM, Array, Data, Samples, Seed, Targets
from marginparts.backends import Backend
from marginparts.estimators._base import PartlyLabeledClassifier
from marginparts.estimators._inputs import Counted, spoken, validated
from marginparts.estimators._notebook import ShowsParts
from marginparts.estimators.nmf_alpha import NMFAlpha
from marginparts.labels import Labels
from marginparts.online import Rows, Stream, StreamSpec, View
from marginparts.online._classes import declared_classes, labels_of, places_in
from marginparts.recipe import HeadSpec, MapSpec
from marginparts.svm.head import Head
from marginparts.validation import (
    as_nonnegative,
    check_count,
    check_mass,
    check_option,
    check_squares,
    seed_of,
)

logger = logging.getLogger("marginparts")


class OnlineNMFAlphaClassifier(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, PartlyLabeledClassifier, ShowsParts
):
    """NMF-alpha for streams: learn from batches, labeled, unlabeled or mixed, one after another.

    Like `NMFAlphaClassifier`, but nothing is chosen by cross-validation, the directions come from
    a passive-aggressive learner, and only a bounded number of samples is kept. It can predict at
    any time, and goes on where it was from a model file. Without a single label it is NMF with the
    I-divergence, whatever ``lam`` is. See ``docs/online.md`` for what is guaranteed.

    Parameters
    ----------
    n_components : int
        The number r of parts.
    lam : float
        Weight of the margin components against the data of the whole stream.
    C : float
        Cost of the final SVM, on codes of length 1 (on average, without ``normalize``).
    map_iter : int
        Updates of H that map a sample into the parts.
    normalize : bool or "auto"
        Whether the SVM sees each code with length 1, or all codes scaled alike; ``"auto"`` is what
        predicts hidden labels of the samples at hand better.
    pseudo : {None, "pa"}
        Let unlabeled samples that are still kept take part in the directions with guessed labels:
        those of which the passive-aggressive learner is surest. None uses given labels alone.
    half_life : float or None
        The number of samples after which one counts half; None forgets nothing.
    batch_size : int
        Samples that are learned from at a time. Batches of other sizes are gathered or cut to
        this one, so the result does not depend on them.
    memory : int
        Samples that are kept as they are, labeled ones before others; of all others only sums are
        kept.
    n_iter : int
        Updates of the factors for each batch.
    backend : {"auto", "numba", "torch", "reference"} or Backend
        Where the kernels run, as for `NMFAlpha`.
    random_state : int, RandomState or None
        Seed of everything random; None gives another result each time.
    verbose : int
        1 shows how much of the stream was seen, by the logger ``"marginparts"``.

    Attributes
    ----------
    components_ : (r, d) array
        The parts; each sums to one.
    gram_root_ : (r, r) array
        Turns H into Z (eq. 5).
    coef_ : (p, r) array
        Hyperplanes over the parts' codes.
    intercept_ : (p,) array
    classes_ : array
        The labels declared, or seen so far.
    n_components_ : int
        The number of parts.
    n_samples_seen_ : int
    stream_ : Stream
        All that is kept of the stream.
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from marginparts import OnlineNMFAlphaClassifier
    >>> from marginparts.datasets import load_digits_49
    >>> digits = load_digits_49()
    >>> y = np.where(np.arange(361) % 4 == 0, digits.target, -1)  # three in four are unlabeled
    >>> model = OnlineNMFAlphaClassifier(16, batch_size=100, random_state=0)
    >>> for rows in np.array_split(np.arange(300), 5):
    ...     model = model.partial_fit(digits.data[rows], y[rows], classes=[0, 1])
    >>> model.score(digits.data[300:], digits.target[300:]) > 0.9
    True
    """

    def __init__(
        self,
        n_components: int = 32,
        *,
        lam: float = DEFAULT_LAM,
        C: float = 2.0,
        map_iter: int = 10,
        normalize: bool | str = "auto",
        pseudo: str | None = "pa",
        half_life: float | None = None,
        batch_size: int = 500,
        memory: int = 4096,
        n_iter: int = 5,
        backend: str | Backend = "auto",
        random_state: Seed = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.lam = lam
        self.C = C
        self.map_iter = map_iter
        self.normalize = normalize
        self.pseudo = pseudo
        self.half_life = half_life
        self.batch_size = batch_size
        self.memory = memory
        self.n_iter = n_iter
        self.backend = backend
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self, X: Samples, y: Targets | None = None, sample_weight: ArrayLike | None = None
    ) -> OnlineNMFAlphaClassifier:
        """Forget what was learned, and go once over samples as if they came in a stream.

        Their order counts. Weight 2 is a sample given twice, to the last bit and in any order, only
        where all are fewer than ``batch_size`` and at least half of those given are repeats.

        Parameters
        ----------
        X : (n, d) array or sparse matrix
            Nonnegative data, labeled and unlabeled.
        y : (n,) or (n, c) array-like, or None
            Labels, -1, None or NaN for unlabeled; at least two classes. All labels are at hand,
            so that -1 and 1 alone are two classes, as in any other fit. None is plain NMF: parts,
            and no predictions until labels come.
        sample_weight : (n,) array-like or None
            As for `partial_fit`.

        Returns
        -------
        OnlineNMFAlphaClassifier
            The fitted estimator.
        """
        self._spec()  # wrong parameters are refused before the data is read
        model = copy(self)
        X = model._check_data(X, reset=True)
        check_mass(X, type(self).__name__)
        X, y, weights, _ = Counted.of(X, y, sample_weight, type(self).__name__)
        n = X.shape[0]
        labels = labels_of(None, n) if y is None else model._check_labels(y, n)
        model._begin(X, labels, declared=y is not None)
        return self._become(model._take(X, labels, weights))

    def partial_fit(
        self,
        X: Samples,
        y: Targets | None = None,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> OnlineNMFAlphaClassifier:
        """Learn from the next samples of a stream.

        Parameters
        ----------
        X : (n, d) array or sparse matrix
            Nonnegative data; d as at the first call.
        y : (n,) or (n, c) array-like, or None
            Labels, -1, None or NaN for unlabeled; None for all unlabeled. -1 is a class only if
            it is declared. A row without entries in a sparse y is labeled: no label applies.
        classes : array-like or None
            All labels that the stream will have, at the first call; for several labels a sample
            the names of the columns. Without them a new label becomes a new class, and a batch
            may have one class only or none.
        sample_weight : (n,) array-like or None
            How much each sample counts in the loss, in the steps of the learners, in the last SVM
            and in the lot that keeps it in the memory; 0 leaves it out. Batches and half-lives
            count samples, whatever their weights.

        Returns
        -------
        OnlineNMFAlphaClassifier
            The fitted estimator.
        """
        self._spec()
        model, first = copy(self), not hasattr(self, "stream_")
        X = model._check_data(X, reset=first)
        X, y, weights, _ = Counted.of(X, y, sample_weight, None)
        if first:
            check_mass(X, type(self).__name__)
            declared = None if classes is None else declared_classes(classes)
            labels = labels_of(y, X.shape[0], declared, closed=classes is not None)
            model._begin(X, labels, declared=classes is not None)
        else:
            self._check_rank()
            if classes is not None:
                declared_classes(classes, self.classes_)
            labels = labels_of(
                y, X.shape[0], self.classes_, closed=self.declared_, multilabel=self.multilabel_
            )
        return self._become(model._take(X, labels, weights))

    def _become(self, model: OnlineNMFAlphaClassifier) -> OnlineNMFAlphaClassifier:
        """Take over all that a copy has learned."""
        # at once: what is refused or interrupted leaves the model as it was
        self.__dict__ = model.__dict__
        return self

    def _begin(self, X: Data, labels: Labels, *, declared: bool) -> None:
        """Begin an empty stream."""
        self.classes_, self.multilabel_ = labels.classes, labels.multilabel
        self.declared_ = declared
        self.n_samples_seen_ = 0
        self.stream_ = Stream.begun(
            sp.csr_array(X), labels.codes, len(labels.classes), seed_of(self.random_state)
        )

    def _take(self, X: Data, labels: Labels, weights: Array | None) -> OnlineNMFAlphaClassifier:
        """Pass samples on to the stream."""
        stream, c = self.stream_, len(labels.classes)
        if c > len(self.classes_):
            stream = stream.with_classes(places_in(self.classes_, labels.classes), c)
        X = sp.csr_array(X).astype(stream.pending.X.dtype, copy=False)
        # a stream counts in units of its first rows; later ones may be out of all proportion
        check_squares(X.data.max(initial=0, keepdims=True) / stream.scale, type(self).__name__)
        stream = stream.then(Rows.arrived(X, labels.codes, c, weights), self._spec())
        self.stream_, self.classes_ = stream, labels.classes
        self.n_samples_seen_ += X.shape[0]
        with spoken(self.verbose):
            waiting = stream.pending.X.shape[0]
            logger.info("%d samples seen, %d waiting", self.n_samples_seen_, waiting)
        return self

    def _spec(self) -> StreamSpec:
        """Return the parameters, or refuse what makes no sense."""
        if isinstance(self.normalize, str):
            check_option(self.normalize, "normalize", ("auto",))
        normalize = None if isinstance(self.normalize, str) else bool(self.normalize)
        return StreamSpec(
            self.n_components, self.lam, MapSpec(check_count(self.map_iter, "map_iter")),
            HeadSpec(self.C, normalize), self.pseudo, self.half_life, self.batch_size, self.memory,
            self.n_iter, self.backend,
        )  # fmt: skip

    def _check_rank(self) -> None:
        V = self.stream_.V
        if V is not None and V.shape[1] != self.n_components:
            raise ValueError(
                f"n_components={self.n_components} cannot replace the {V.shape[1]} parts of a "
                "stream that has begun; fit anew."
            )

    def _check_data(self, X: Samples, *, reset: bool) -> Data:
        return as_nonnegative(validated(self, X, reset=reset), type(self).__name__)

    def __sklearn_is_fitted__(self) -> bool:
        """Whether the stream has begun; a batch that was refused does not begin it."""
        return hasattr(self, "stream_")

    def _view(self) -> View:
        """Return the present parts, labels and classifier of the stream."""
        check_is_fitted(self)
        return self.stream_.view(self._spec())

    @property
    def components_(self) -> Array:
        """The parts (r, d); each sums to one."""
        return self._view().V.T

    @property
    def n_components_(self) -> int:
        """The number of parts."""
        return self._n_features_out

    @property
    def gram_root_(self) -> Array:
        """The root of the parts' inner products (r, r)."""
        return self._view().gram_root

    @property
    def coef_(self) -> Array:
        """Hyperplanes over the parts' codes (p, r)."""
        return self._head().coef

    @property
    def intercept_(self) -> Array:
        """Their intercepts (p,)."""
        return self._head().intercept

    @property
    def _n_features_out(self) -> int:
        return int(self._view().V.shape[1])

    def transform(self, X: Samples) -> Array:
        """Return Z (n, r): the samples expressed in the present parts, see `NMFAlpha.transform`."""
        view = self._view()
        return view.codes(self._check_data(X, reset=False))

    def inverse_transform(self, X: Samples) -> Array:
        """Rebuild samples (n, d) from what `transform` returns, see `NMFAlpha`."""
        return self._as_parts().inverse_transform(X)

    def _as_parts(self) -> NMFAlpha:
        """Return the present parts as a fitted `NMFAlpha`, for functions that need no more."""
        parts = NMFAlpha(self.n_components, map_iter=self.map_iter, backend=self.backend)
        parts.components_, parts.gram_root_ = self.components_, self.gram_root_
        parts.n_features_in_ = self.n_features_in_
        return parts

    def _head(self) -> Head:
        view = self._view()
        if not view.labels.labeled.any():
            had = "has seen no labeled sample yet, and cannot predict; transform needs none."
            if self._was_told:
                had = (
                    "has forgotten all labeled samples that it had seen, and cannot predict; give "
                    "it new ones, and a longer half_life if they are to last."
                )
            raise NotFittedError(f"This {type(self).__name__} {had}")
        return view.head

    @property
    def _was_told(self) -> bool:
        """Whether there were labels, which may be forgotten since."""
        found = len(self.classes_) > 0 and not (self.declared_ or self.multilabel_)
        stream = self.stream_  # a learner may have faded to nothing, what parts began with does not
        return found or bool(stream.labels_at_start.any() or stream.W.any())

    def _values(self, X: Samples) -> Array:
        X = self._check_data(X, reset=False)
        return self._head().values(self._view().codes(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
