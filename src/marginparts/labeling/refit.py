"""Learning beside the page: a thread that learns after every few answers and publishes insights.

What the page asks for comes from the last insight, a finished value that is replaced as a whole:
nobody ever waits for a fit.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from threading import Event as Signal
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any

import numpy as np

from marginparts._types import Array
from marginparts.app.explanation import distinctive, picture, top_features
from marginparts.labeling import asking, progress
from marginparts.labeling.journal import Event
from marginparts.labeling.learning import Beliefs, HeldOut, Learner, labels_of
from marginparts.labeling.pool import Pool
from marginparts.labeling.suspicion import suspects

if TYPE_CHECKING:
    from marginparts.labeling.session import Labeling

#: Answers after which it learns anew, and after which it hides labels to see how good it is.
_FEW, _MORE = 5, 10

#: Guesses shown, and labels whose words are marked; words of a part.
_GUESSES, _MARKED, _WORDS = 5, 12, 8

_log = logging.getLogger("marginparts")


@dataclass(frozen=True)
class Insight:
    """What is known at a time. Nothing in it changes."""

    queue: asking.Rows = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    beliefs: Beliefs | None = None
    factors: tuple[Array, Array] | None = None
    held: HeldOut | None = None
    suspicious: tuple[tuple[int, float, str], ...] = ()
    estimate: progress.Estimate | None = None
    gain: progress.Gain | None = None
    n_labels: int = 0
    several: bool = False
    inputs: Any = None

    def guess(self, row: int) -> str | None:
        """Return the most probable label of a row."""
        if self.beliefs is None:
            return None
        return self.beliefs.names[int(self.beliefs.P[row].argmax())]

    def of_sample(self, row: int) -> dict[str, Any]:
        """Return the guesses for a sample, and the evidence of its words for each label.

        ``guesses`` are (label, probability); ``speaks`` has for each of ``marked`` labels what
        each column of the sample adds to its decision value.
        """
        if self.beliefs is None:
            return {"guesses": [], "marked": [], "speaks": {}}
        P, names = self.beliefs.P[row], self.beliefs.names
        order = np.argsort(-P, kind="stable")
        coef = self.beliefs.words.coef
        if len(names) == 2 and not self.several:
            coef = np.vstack([-coef, coef])
        marked, entries = order[:_MARKED], self.inputs[[row]]
        terms = coef[np.ix_(marked, entries.indices)] * entries.data
        return {
            "guesses": [(names[k], float(P[k])) for k in order[:_GUESSES]],
            "marked": [names[k] for k in marked],
            "speaks": dict(zip(entries.indices.tolist(), terms.T.tolist(), strict=True)),
        }

    def suspected(self) -> tuple[tuple[int, float, str], ...]:
        """Return rows with a suspected label, how strongly, and the label predicted instead."""
        return self.suspicious

    def progress(self, counts: dict[str, int], history: list[Event]) -> dict[str, Any]:
        """Return the accuracy, what more labels would bring, and advice by what was seen so far."""
        measured = [_measured(event) for event in history if event["labeled"] <= self.n_labels]
        return progress.as_shown(self.estimate, self.gain, progress.advice(measured, counts))

    def parts(self, pool: Pool) -> list[dict[str, Any]]:
        """Return the parts, the largest first: words or a picture, and labels of their samples."""
        if self.factors is None:
            return []
        H, V = self.factors
        mass = H.sum(axis=0, dtype=np.float64)
        shares = mass / max(float(mass.sum()), 1e-12)
        telling, names = distinctive(V.T, shares.tolist()), list(pool.words)
        found = []
        for k in np.argsort(-shares, kind="stable"):
            part: dict[str, Any] = {"part": int(k) + 1, "share": float(shares[k]), "labels": []}
            if pool.layout.image_shape is not None:
                part["image"], part["image_shape"] = picture(V[:, k]), pool.layout.image_shape
            else:
                part["words"] = [word for word, _ in top_features(telling[k], names, _WORDS)]
            if self.beliefs is not None and mass[k] > 0:
                W = (H[:, k] @ self.beliefs.P) / mass[k]
                top = [int(c) for c in np.argsort(-W, kind="stable")[:2] if W[c] > 0.2]
                part["labels"] = [(self.beliefs.names[c], float(W[c])) for c in top]
            found.append(part)
        return found


class Refit:
    """Learns from the answers of a labeling, now or in a thread."""

    def __init__(self, labeling: Labeling) -> None:
        self.labeling = labeling
        self.insight = Insight(several=labeling.several)
        self._learner: Learner | None = None
        self._one = Lock()
        self._signal, self._ended = Signal(), False
        self._thread: Thread | None = None
        self._seen = self._checked = -1
        #: Counts what was published.
        self.version = 0

    @property
    def busy(self) -> bool:
        """Whether it is learning."""
        return self._one.locked()

    def start(self) -> None:
        """Begin to learn in a thread; what is there is learned first."""
        self._thread = Thread(target=self._run, name="marginparts-labeling", daemon=True)
        self._signal.set()
        self._thread.start()

    def stop(self) -> None:
        """End the thread, and wait for it."""
        self._ended = True
        self._signal.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def wake(self, now: bool = False) -> None:
        """Say that there was an answer; every few it learns anew."""
        asked = len(self.labeling.journal.events)
        short = len(self.insight.queue) == 0 or self.insight.n_labels < 10
        if now or short or asked - self._seen >= _FEW:
            self._signal.set()

    def _run(self) -> None:
        while True:
            self._signal.wait()
            self._signal.clear()
            if self._ended:
                return
            try:
                count = sum(1 for a in self.labeling.state.answers.values() if a.labels is not None)
                self.learn(check=self._checked < 0 or abs(count - self._checked) >= _MORE)
            except Exception:  # the page goes on with what is known, and the log says why
                _log.exception("Learning from the labels failed; labeling goes on.")

    def learn(self, check: bool = True) -> Insight:
        """Learn from all answers: what to ask first, then how good it is, maybe."""
        with self._one:
            if self._learner is None:
                pool = self.labeling.pool
                self._learner = Learner.of(pool.X, self.labeling.several)
            answers = self._learn_all(self._learner)
            if check and self.insight.beliefs is not None:
                self._checked = len(answers)
                self._check(self._learner, answers)
        return self.insight

    def _learn_all(self, learner: Learner) -> dict[int, tuple[str, ...]]:
        """Learn from the answers that there are, and return them."""
        labeling = self.labeling
        with labeling._lock:
            self._seen = len(labeling.journal.events)
            answers = {row: a.labels or () for row, a in labeling.by_row().items()}
            told = set(labeling.state.answers)
        self._learn(learner, answers, told)
        return answers

    def _urgent(self) -> None:
        """Learn anew while it checks, if there were answers: suggestions come first."""
        if self._signal.is_set() and not self._ended and self._learner is not None:
            self._signal.clear()
            self._learn_all(self._learner)

    def _learn(self, learner: Learner, answers: dict[int, tuple[str, ...]], told: set[str]) -> None:
        """Publish beliefs and what to ask next, then the parts."""
        pool, last = self.labeling.pool, self.insight
        labels, names = labels_of(answers, len(pool.ids), learner.several)
        beliefs = None
        if len(names) > 1:
            beliefs = learner.understand(labels, names, {} if last.held is None else last.held.hits)
        labeled = np.zeros(len(pool.ids), dtype=bool)
        labeled[list(answers)] = True
        masks = pool.full & ~np.isin(pool.ids, list(told)), labeled

        def asked(factors: tuple[Array, Array] | None) -> asking.Rows:
            parts = np.maximum(learner.views.latent, 0) if factors is None else factors[0]
            return asking.to_ask(
                beliefs, parts, learner.density, learner.views.latent, masks, learner.several
            )

        self.insight = replace(
            last,
            queue=asked(last.factors),
            beliefs=beliefs,
            n_labels=len(answers),
            inputs=learner.views.inputs,
        )
        self.version += 1
        factors = learner.parts(labels if len(names) > 1 else None, last.factors)
        self.insight = replace(
            self.insight, factors=factors,
            queue=asked(factors) if last.factors is None else self.insight.queue,
        )  # fmt: skip

    def _check(self, learner: Learner, answers: dict[int, tuple[str, ...]]) -> None:
        """Publish how good it is by hidden labels, what the last step brought, and suspects."""
        labeling, n = self.labeling, len(self.labeling.pool.ids)
        labels, names = labels_of(answers, n, learner.several)
        if int(labels.labeled.sum()) < 4:
            return
        held = learner.hidden(labels, between=self._urgent)
        with labeling._lock:
            drawn = labeling.drawn()
        known = progress.estimate(held, drawn)
        doubted = tuple(
            (row, evidence, names[instead]) for row, evidence, instead in suspects(held, labels)
        )
        what = None
        step = progress.STEP
        if len(answers) > 1.5 * step:
            fewer = dict(list(answers.items())[:-step])
            old, old_names = labels_of(fewer, n, learner.several)
            if len(old_names) > 1 and self.insight.beliefs is not None:
                before = learner.understand(old, old_names, held.hits)
                self._urgent()
                now = learner.understand(labels, names, held.hits)
                what = progress.gain(before, now, len(answers), learner.several)
        self.version += 1
        self.insight = replace(
            self.insight, held=held, suspicious=doubted, estimate=known, gain=what
        )
        if known is not None:
            labeling._tell(_estimate_event(known, what, len(answers)))


def _estimate_event(known: progress.Estimate, what: progress.Gain | None, labeled: int) -> Event:
    seen = {"accuracy": known.accuracy, "error": known.error}
    if what is not None:
        seen |= {"changed": what.changed, "behind": what.behind}
    rounded = {name: round(value, 4) for name, value in seen.items()}
    return {"kind": "estimate", "labeled": labeled, **rounded, "drawn": known.n}


def _measured(event: Event) -> progress.Measurement:
    values = [
        event.get(name) for name in progress.Measurement._fields[1:]
    ]  # of an older file, or odd
    known = (value if isinstance(value, int | float) else None for value in values)
    return progress.Measurement(event["labeled"], *known)
