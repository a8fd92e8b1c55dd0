"""The state of a stream, and the step that takes a batch in.

A bounded number of rows stays at hand (the *memory*) and is factorized anew with every batch, as
in a fit; what has left it is summed up (the *past*): A and B of ``losses/stream.py``, and its
dual-weighted sums, the past's share of the margin components.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginparts._types import Array, Data
from marginparts.backends import Backend, get_backend, work_of
from marginparts.backends.base import column_sums
from marginparts.labels import Labels
from marginparts.losses.stream import StreamProblem
from marginparts.online._learner import directions_of, learn
from marginparts.online._past import Past, scaled_margins
from marginparts.online._rows import Rows
from marginparts.recipe import HeadSpec, MapSpec
from marginparts.selection.folds import folds_of
from marginparts.solve.factorize import parts_of
from marginparts.solve.loop import minimize
from marginparts.solve.map import extreme_scale, gram_root, map_rows
from marginparts.solve.start import start_from
from marginparts.svm.head import Head, fit_head
from marginparts.validation import check_count, check_nonnegative, check_option, check_positive

#: The parts begin anew when the labels at hand have grown by this factor or have a new class, as
#: long as the past has no more than so many times the mass of the rows at hand.
_GROWN, _SHORT_PAST = 1.5, 2.0

#: A start is worth so many times the usual updates.
_BEGIN = 4

#: What all parts get of a feature that was never seen before, as a share of an even spread. Its
#: size hardly matters: the update of such a row of V does not depend on it.
_UNSEEN = 1e-3

#: Labeled rows on which lengths of codes are compared, at most, and the folds.
_COMPARED, _FOLDS = 1000, 2


@dataclass(frozen=True)
class StreamSpec:
    """How a stream is learned from; `OnlineNMFAlphaClassifier` says what the fields mean.

    ``head.normalize`` is None where it is chosen on the samples in memory.
    """

    n_components: int
    lam: float
    map: MapSpec
    head: HeadSpec
    pseudo: str | None
    half_life: float | None
    batch_size: int
    memory: int
    n_iter: int
    backend: str | Backend

    def __post_init__(self) -> None:
        check_count(self.n_components, "n_components")
        check_nonnegative(self.lam, "lam")
        if self.pseudo is not None:
            check_option(self.pseudo, "pseudo", ("pa",))
        if self.half_life is not None:
            check_positive(self.half_life, "half_life")
        for name in ("batch_size", "memory", "n_iter"):
            check_count(getattr(self, name), name)
        get_backend(self.backend)


@dataclass(frozen=True, eq=False)
class View:
    """Parts, and labeled rows to learn the last SVM from."""

    V: Array  # (d, r), each column sums to one
    X: sp.csr_array  # (m, d): the labeled rows at hand, in the units of the stream's user
    labels: Labels
    map_iter: int | None
    spec: HeadSpec  # ``normalize`` is None for what predicts hidden labels better
    backend: str | Backend

    @cached_property
    def gram_root(self) -> Array:
        """Turns H into Z (eq. 5), (r, r)."""
        return gram_root(self.V)

    @cached_property
    def head(self) -> Head:
        """The SVM on the present codes: parts move, so it is trained when it is asked for."""
        return fit_head(self.codes(self.X), self.labels, self.spec.C, normalize=self.normalized)

    @cached_property
    def normalized(self) -> bool:
        """Whether the SVM sees each code with length 1, or all codes scaled alike."""
        if self.spec.normalize is not None:
            return self.spec.normalize
        m = self.X.shape[0]
        some = np.linspace(0, m - 1, min(m, _COMPARED)).astype(int)  # of all times
        folds = folds_of(self.labels.take(some), seed=0, n_splits=_FOLDS)
        if not folds:
            return True
        Z = self.codes(self.X[some])
        each, alike = (
            np.mean([fold.score(Z, self.spec.C, normalize=choice) for fold in folds])
            for choice in (True, False)
        )
        return bool(each >= alike)

    def codes(self, X: Data) -> Array:
        """Return Z (n, r) of checked data."""
        H = map_rows(X.astype(self.V.dtype, copy=False), self.V, self.map_iter, self.backend)
        return np.asarray(H @ self.gram_root, dtype=X.dtype)


@dataclass(frozen=True, eq=False)
class Stream:
    """All that is kept of a stream, and nothing else: what it does next depends on this alone."""

    pending: Rows  # wait for a batch to be full, in the units of the user
    V: Array | None  # (d, r), each column sums to one; None before the first step
    past: Past | None
    memory: Rows  # in units of ``scale``
    W: Array  # (c, d): the online learners
    labels_at_start: NDArray[np.int64]  # (c,), of each class when the parts last began anew
    scale: float  # a power of two that keeps extreme data within range
    seed: int
    steps: int = 0  # the number of batches taken in

    @classmethod
    def begun(cls, X: sp.csr_array, codes: NDArray[np.int64], c: int, seed: int) -> Stream:
        """Return an empty stream for data like the first rows."""
        nothing = Rows.arrived(X[:0], codes[:0], c)
        W = np.zeros((c, X.shape[1]))
        return cls(nothing, None, None, nothing, W, np.zeros(c, int), extreme_scale(X), seed)

    def with_classes(self, places: NDArray[np.intp], c: int) -> Stream:
        """Return the stream with class k of before at ``places[k]`` of c classes."""
        W = np.zeros((c, self.W.shape[1]))
        W[places] = self.W
        past = None if self.past is None else self.past.with_classes(places, c)
        pending, memory = (rows.with_classes(places, c) for rows in (self.pending, self.memory))
        sizes = np.zeros(c, int)
        sizes[places] = self.labels_at_start
        return replace(self, pending=pending, W=W, memory=memory, past=past, labels_at_start=sizes)

    def then(self, new: Rows, how: StreamSpec) -> Stream:
        """Add rows to those that wait, and take in what makes full batches."""
        stream, rows = self, self.pending.then(new)
        taken = len(rows) - len(rows) % how.batch_size
        for start in range(0, taken, how.batch_size):
            stream = stream.step(rows.take(slice(start, start + how.batch_size)), how)
        return replace(stream, pending=rows.take(slice(taken, None)))

    def view(self, how: StreamSpec) -> View:
        """Return the present parts, labels and classifier, which are made once.

        Rows that wait for a batch to be full take part: what is shown is the stream after a step
        with them, which it does not take.
        """
        known = self.__dict__.get("_view")
        if known is None or known[0] != how:
            known = how, self._shown(how)
            self.__dict__["_view"] = known
        return known[1]

    def _shown(self, how: StreamSpec) -> View:
        shown = self
        if self.V is None:  # rows of one age, which have no order: a weight is a repeat
            shown = self.step(self.pending.together(), how)
        elif len(self.pending):
            shown = self.step(self.pending, how)
        rows = shown.memory.take(np.flatnonzero(shown.memory.labeled))
        unscaled = rows.X * rows.X.dtype.type(self.scale)
        labels = Labels(np.arange(len(self.W)), rows.codes, _or_none(rows.sample_weight))
        assert shown.V is not None, "there was a step"
        return View(shown.V, unscaled, labels, how.map.map_iter, how.head, how.backend)

    def step(self, new: Rows, how: StreamSpec) -> Stream:
        """Take a batch in, in the units of the stream's user."""
        rng = np.random.default_rng([self.seed, self.steps])
        lots = rng.random(len(new))
        new = replace(new, X=new.X * new.X.dtype.type(1 / self.scale), lots=lots)
        rho = 1.0 if how.half_life is None else 0.5 ** (len(new) / how.half_life)
        rows = self.memory.faded(rho).then(new)
        duals, W = learn(rows, rho * self.W, rng.permutation(len(rows)))
        rows = replace(rows, duals=duals)
        past = self.past
        if past is None:
            past = Past.none(rows.X.shape[1], how.n_components, len(W))
        kernels = get_backend(how.backend, work_of(rows.X, how.n_components))
        V, past, labels, n_iter = self._begun(rows, past.faded(rho), how, kernels)
        V, H = factorized(rows, V, past, W, how, kernels, n_iter)
        sums = column_sums(V)  # to parts that sum to one, whose codes are masses
        V, H = np.ascontiguousarray(parts_of(V).T), H * sums.astype(H.dtype)
        stays = rows.staying(how.memory)
        gone = np.flatnonzero(~stays)
        past = past.rescaled(sums).joined_by(rows.take(gone), V, H[gone], kernels)
        return replace(
            self, V=V, past=past, memory=rows.take(stays), W=W, labels_at_start=labels,
            steps=self.steps + 1,
        )  # fmt: skip

    def _begun(
        self, rows: Rows, past: Past, how: StreamSpec, kernels: Backend
    ) -> tuple[Array, Past, NDArray[np.int64], int]:
        """Return V as it was, or begun anew from labels that have become many more.

        With it comes the past, the labels that V began with, and the number of updates.

        Parts that began with a few labels keep to them: few updates cannot undo that, and a new
        start costs no more than a few batches. It is for young streams, most of which is still at
        hand: all else is re-coded, and loses what the new parts do not hold.
        """
        labels = rows.class_sizes
        new_class = bool((labels[self.labels_at_start == 0] > 0).any())
        grown = new_class or labels.sum() > _GROWN * self.labels_at_start.sum()
        mass = float(rows.weighted.sum(dtype=np.float64))
        if self.V is not None and not (grown and past.mass <= _SHORT_PAST * mass):
            return _with_unseen(self.V, rows.X), past, self.labels_at_start, how.n_iter
        known = Labels(np.arange(self.W.shape[0]), rows.codes, _or_none(rows.sample_weight))
        _, V = start_from("auto", rows.X, how.n_components, self.seed, known)
        V = np.ascontiguousarray(parts_of(V).T)
        if past.mass > 0:
            past = past.recoded(V, kernels)
        return V, past, labels, _BEGIN * how.n_iter


def _or_none(weights: Array) -> Array | None:
    """Return the weights of rows, None where they are all 1."""
    return None if (weights == 1).all() else weights


def _with_unseen(V: Array, X: sp.csr_array) -> Array:
    """Return V with small, even rows for features that have come up: a zero would stay a zero."""
    unseen = np.flatnonzero(V.sum(axis=1) == 0)
    unseen = unseen[np.isin(unseen, X.indices)]
    if len(unseen):
        V = V.copy()
        V[unseen] = _UNSEEN / len(V)
    return V


def factorized(
    rows: Rows, V: Array, past: Past, W: Array, how: StreamSpec, kernels: Backend, n_iter: int
) -> tuple[Array, Array]:
    """Update V (d, r) and the codes H (m, r) of the rows at hand, with a past; W is (c, d)."""
    X, r, dtype = rows.weighted, V.shape[1], V.dtype
    problem = StreamProblem(kernels, X=kernels.prepare(X), lam=how.lam)
    if past.mass > 0:
        problem.A = kernels.factor(past.A.astype(dtype))
        problem.B = kernels.factor(past.B[None].astype(dtype))
    S = directions_of(rows, W, pseudo=how.pseudo is not None)
    S, XS, XS_past = scaled_margins(S, X, past)
    if XS.nnz:
        problem.S = kernels.coefficients(S.astype(dtype))
        problem.XS = kernels.prepare(XS.astype(dtype), like=problem.X)
        if XS_past.nnz:
            HS = map_rows(XS_past.astype(dtype), V, how.map.map_iter, kernels)
            problem.HS_past = kernels.factor(HS)
    H = map_rows(X, V, how.map.map_iter, kernels)
    state = {"V": kernels.factor(V), "H": kernels.factor(H)}
    run = minimize(problem, state, solver="mu", max_iter=n_iter, watch=False)
    V, H = (kernels.release(run.state[block], r) for block in ("V", "H"))
    return V, H
