"""`Labeling`: the loop of asking, answering and learning, for the page, notebooks and tests."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginparts.app.fitting import Options
from marginparts.app.readers import Label
from marginparts.labeling import asking, outcome
from marginparts.labeling.journal import Event, Journal, user_name
from marginparts.labeling.pool import Pool
from marginparts.labeling.refit import Insight, Refit
from marginparts.labeling.state import ANSWERS, Answer, State, last_action, plain_event

#: The ending of a journal's name, behind that of the file.
ENDING = ".labels.jsonl"

#: The longest name of a label, and the longest note.
_NAME, _NOTE = 100, 2000


class Labeling:
    """Ask for labels, one sample at a time, and learn from the answers.

    Where several pages are open at once, ``tab`` of its methods is the name of one of them.

    Parameters
    ----------
    data : path, list of str, or (n, d) array or sparse matrix
        A file or a folder of images, texts, or nonnegative rows.
    text, label, label_sep, labels, words, encoding
        How the file is read, see `fit_file`; labels that it has are known from the start.
    min_df, max_df, missing
        Which words of the file count, and whether its gaps are values that are missing, see
        `marginparts.app.options.Options`.
    names : sequence of str or None
        The names of a matrix's columns.
    several : bool
        Whether a sample can have several labels; so it is if ``label_sep`` is given.
    journal : path or None
        Where answers are kept: beside the file with the ending ``.labels.jsonl``, or in memory.
    who : str or None
        Who answers; None is the user's name.
    background : bool
        Learn in a thread after every few answers; else only when `learn` is called.

    Attributes
    ----------
    pool, state : Pool, State
        The samples, and the answers that the journal has so far.

    Examples
    --------
    >>> from marginparts import Labeling
    >>> docs = ["cats purr", "cats sleep and purr", "dogs bark", "dogs bark and run"] * 3
    >>> labeling = Labeling(docs, who="ann", background=False)
    >>> sample = labeling.next()
    >>> _ = labeling.answer(sample["id"], ["cat" if "purr" in sample["text"] else "dog"])
    >>> labeling.status()["labeled"]
    1
    >>> _ = labeling.undo()
    >>> labeling.status()["labeled"]
    0
    """

    def __init__(
        self,
        data: Any,
        *,
        text: str | None = None,
        label: str | None = None,
        label_sep: str | None = None,
        labels: str | os.PathLike[str] | None = None,
        words: str | os.PathLike[str] | None = None,
        encoding: str = "utf-8",
        min_df: int = Options().min_df,
        max_df: float = Options().max_df,
        missing: str | None = None,
        names: Sequence[str] | None = None,
        several: bool = False,
        journal: str | os.PathLike[str] | None = None,
        who: str | None = None,
        background: bool = True,
    ) -> None:
        if isinstance(data, str | os.PathLike):
            self.pool = Pool.read(
                data, Options(min_df=min_df, max_df=max_df, missing=missing), text=text,
                label=label, label_sep=label_sep, labels=labels, words=words, encoding=encoding,
            )  # fmt: skip
            journal = journal or Path(data).with_name(Path(data).resolve().name + ENDING)
        else:
            self.pool = data if isinstance(data, Pool) else Pool.of(data, names)
        self.several = several or any(isinstance(each, tuple) for each in self.pool.labels)
        self.who = who or user_name()
        self.journal = Journal(journal)
        self._lock = RLock()
        self._given, self._given_names = self.pool.given, self.pool.given_names
        self.state = State.of(self._given, self._given_names, self.journal.events)
        self._order = asking.random_order(self.pool.ids)
        self._place = np.argsort(self._order)
        self._shown: dict[str, tuple[str, bool]] = {}
        self.refit = Refit(self)
        if background:
            self.refit.start()

    # ---- asking and answering ----

    def next(self, tab: str = "") -> dict[str, Any] | None:
        """Return the sample to label, the same until it is answered; None when all are.

        ``tab`` names who asks, where several do: each is shown another sample.
        """
        with self._lock:
            self._catch_up()
            shown, _ = self._shown.get(tab, ("", False))
            if not shown or not self._is_open(self.pool.rows[shown]):
                row, random = self._chosen(tab)
                if row is None:
                    self._shown.pop(tab, None)
                    return None
                self._shown[tab] = (self.pool.ids[row], random)
            name, random = self._shown[tab]
            return {**self.sample(name), "random": random}

    def sample(self, name: str) -> dict[str, Any]:
        """Return a sample with its guesses, the evidence of its words, its answer and its note."""
        with self._lock:
            row = self._row(name)
            answer = self.state.answers.get(name)
            return {
                **self.pool.shown(row), **self.refit.insight.of_sample(row),
                "answer": None if answer is None else answer.labels,
                "note": self.state.notes.get(name, ""),
            }  # fmt: skip

    def answer(
        self, sample: str, labels: Sequence[str] | None, *, note: str = "", tab: str = "",
        event: str | None = None, checked: bool = False,
    ) -> dict[str, Any]:  # fmt: skip
        """Record an answer: the labels of a sample, () for none of these, None to skip it.

        Parameters
        ----------
        sample : str
            The ``id`` of what `next` returned, or of any other sample.
        labels : sequence of str or None
            Its labels; () if none of the known ones applies, None to skip the sample.
        note : str
            A remark, kept beside the answer.
        tab, event : str
            Which open page asks; an identifier of the answer: one that is sent twice counts once.
        checked : bool
            True where a suspected label was looked at: the sample is not suspected again.

        Returns
        -------
        dict
            `summary`: counts of samples and answers.
        """
        row = self._row(sample)
        clean = [self._name(name) for name in labels or ()]
        kind = Answer(None if labels is None else tuple(clean)).kind
        if len(clean) > 1 and not self.several:
            raise ValueError("A sample has one label here; say several=True for more.")
        with self._lock:
            guess = self.refit.insight.guess(row)
            shown, random = self._shown.get(tab, ("", False))
            self._tell(
                plain_event(
                    kind, id=event, sample=sample, row=row + 1, labels=clean or None, guess=guess,
                    note=note.strip()[:_NOTE], random=random and shown == sample, checked=checked,
                    who=self.who, tab=tab,
                )
            )  # fmt: skip
        self.refit.wake()
        return self.summary()

    def note(self, sample: str, text: str, *, tab: str = "") -> None:
        """Keep a note on a sample."""
        self._row(sample)
        content = {"sample": sample, "text": text.strip()[:_NOTE]}
        self._tell({"kind": "note", **content, "who": self.who, "tab": tab})

    def confirm(self, sample: str, *, tab: str = "") -> dict[str, Any]:
        """Say that a suspected label is right."""
        self._row(sample)
        self._tell(plain_event("confirm", sample=sample, who=self.who, tab=tab))
        return self.summary()

    def undo(self, *, tab: str = "") -> dict[str, Any]:
        """Take back the last action (of this tab, if it has done anything)."""
        with self._lock:
            self._catch_up()
            last = last_action(self.journal.events, tab)
            if last is None:
                return {**self.summary(), "undone": None}
            self._tell(plain_event("undo", of=last["id"], who=self.who, tab=tab))
            if last["kind"] in ANSWERS and last.get("sample") in self.pool.rows:
                self._shown[tab] = (last["sample"], bool(last.get("random")))
        self.refit.wake(now=True)
        return {**self.summary(), "undone": last}

    # ---- labels ----

    def rename(self, label: str, into: str, *, tab: str = "") -> dict[str, Any]:
        """Give a label another name; one that exists is refused, see `merge`."""
        if self._name(into) in self.state.names:
            raise ValueError(f"There is a label {into!r} already; merge the two instead.")
        return self._relabel("rename", tab, labels=[self._known(label)], into=self._name(into))

    def merge(self, labels: Sequence[str], into: str, *, tab: str = "") -> dict[str, Any]:
        """Make one label of several."""
        known = [self._known(label) for label in labels]
        if not known:
            raise ValueError("Say which labels to join.")
        return self._relabel("merge", tab, labels=known, into=self._name(into))

    def split(self, label: str, into: str, having: str, *, tab: str = "") -> dict[str, Any]:
        """Give the samples of a label that have a word another label."""
        self._known(label)
        mask = self.pool.having(having)
        answers = self.state.answers
        some = [s for s, a in answers.items() if label in (a.labels or ()) and self._has(s, mask)]
        if not some:
            raise ValueError(f"No sample with the label {label!r} has the word {having!r}.")
        return self._relabel("split", tab, label=label, into=self._name(into), samples=some)

    def forbid(self, label: str, *, tab: str = "") -> dict[str, Any]:
        """Take a label away; samples that had no other are asked about again."""
        return self._relabel("forbid", tab, label=self._known(label))

    # ---- what is known ----

    def summary(self) -> dict[str, Any]:
        """Return counts: samples, answers of each kind, samples of each label."""
        with self._lock:
            answers = [self.state.answers[s] for s in self.state.answers if s in self.pool.rows]
            return {
                "samples": int(self.pool.full.sum()),
                "labeled": sum(bool(answer.labels) for answer in answers),
                "none": sum(answer.labels == () for answer in answers),
                "skipped": sum(answer.labels is None for answer in answers),
                "elsewhere": len(self.state.answers) - len(answers),
                "asked": self.state.asked,
                "labels": self.state.counts,
                "several": self.several,
            }

    def status(self) -> dict[str, Any]:
        """Return `summary` with the accuracy, its history, what more labels bring, and advice."""
        with self._lock:
            self._catch_up()
            history = [
                {name: event.get(name) for name in ("labeled", "accuracy", "error")}
                for event in self.state.estimates
            ]
            seen = self.refit.insight.progress(self.state.counts, self.state.estimates)
            return {**self.summary(), **seen, "history": history, "learning": self.refit.busy}

    def suspects(self, n: int = 50) -> list[dict[str, Any]]:
        """Return the samples whose label a model of the others contradicts, the worst first."""
        with self._lock:
            found = []
            for row, evidence, instead in self.refit.insight.suspected():
                name = self.pool.ids[row]
                answer = self.state.answers.get(name)
                if answer is None or not answer.labels or answer.confirmed:
                    continue
                content = {"id": name, "row": row + 1, "labels": answer.labels, "instead": instead}
                found.append({**content, "evidence": evidence, "shown": self.pool.shown(row)})
            return found[:n]

    def parts(self) -> list[dict[str, Any]]:
        """Return the parts as they are by now: their words, and the labels of their samples."""
        return self.refit.insight.parts(self.pool)

    def learn(self) -> Insight:
        """Learn from all answers now, and wait for it."""
        return self.refit.learn()

    def close(self) -> None:
        """End the thread."""
        self.refit.stop()

    # ---- what comes out ----

    def export(self, path: str | os.PathLike[str]) -> Path:
        """Write all samples with their labels, who gave them and when, to a table."""
        with self._lock:
            self._catch_up()
            return outcome.export(self.pool, self.state, Path(path))

    def fit(self, options: Options | None = None, **how: Any) -> Any:
        """Return a `Model` fitted to all answers, as `fit_file` makes it of a file."""
        with self._lock:
            self._catch_up()
            labels = self.targets()
        return outcome.fit(self.pool, labels, self.several, options or Options(), **how)

    def targets(self) -> list[Label]:
        """Return the label of each row, None where there is none."""
        found: list[Label] = [None] * len(self.pool.ids)
        for row, answer in self.by_row().items():
            if self.several:
                found[row] = answer.labels
            elif answer.labels:
                found[row] = answer.labels[0]
        return found

    def by_row(self) -> dict[int, Answer]:
        """Return the answers other than skipped ones, by row, in the order they were given."""
        rows, answers = self.pool.rows, self.state.answers
        return {rows[s]: a for s, a in answers.items() if a.labels is not None and s in rows}

    def drawn(self) -> NDArray[np.bool_]:
        """Return which rows (n,) count as drawn at random, with those that the file had labels for.

        All that the random order has passed, whatever they were asked for.
        """
        mask = np.zeros(len(self.pool.ids), dtype=bool)
        passed = [
            self._place[self.pool.rows[s]]
            for s, answer in self.state.answers.items()
            if answer.random and s in self.pool.rows
        ]
        if passed:
            mask[self._order[: max(passed) + 1]] = True
        mask[[self.pool.rows[sample] for sample in self._given]] = True
        return mask

    # ---- inside ----

    def _catch_up(self) -> None:
        """Take in what others have written to the journal."""
        self._add(self.journal.read())

    def _tell(self, event: Event) -> None:
        """Write an event, and take in all that is new."""
        with self._lock:
            self._add(self.journal.append(event))

    def _add(self, news: list[Event]) -> None:
        if any(event["kind"] == "undo" for event in news):
            self.state = State.of(self._given, self._given_names, self.journal.events)
            return
        for event in news:
            self.state.add(event)

    def _relabel(self, kind: str, tab: str, **content: Any) -> dict[str, Any]:
        self._tell(plain_event(kind, **content, who=self.who, tab=tab))
        self.refit.wake(now=True)
        return self.summary()

    def _is_open(self, row: int) -> bool:
        return bool(self.pool.full[row]) and self.pool.ids[row] not in self.state.answers

    def _chosen(self, tab: str) -> tuple[int | None, bool]:
        """Return a row to ask about, and whether it was drawn at random."""
        taken = {name for other, (name, _) in self._shown.items() if other != tab}
        free = [
            [row for row in rows if self._is_open(row) and self.pool.ids[row] not in taken][:1]
            for rows in (self.refit.insight.queue, self._order)
        ]
        random = self.state.asked % asking.EVERY == asking.EVERY - 1 or not free[0]
        row = next(iter(free[1] if random else free[0]), None)
        if row is None and taken:  # a tab that was closed holds the last ones
            self._shown.clear()
            return self._chosen(tab)
        return (None if row is None else int(row)), random

    def _row(self, sample: str) -> int:
        if sample not in self.pool.rows:
            raise ValueError(f"There is no sample {sample!r}.")
        return self.pool.rows[sample]

    def _has(self, sample: str, mask: NDArray[np.bool_]) -> bool:
        return sample in self.pool.rows and bool(mask[self.pool.rows[sample]])

    def _name(self, name: str) -> str:
        if name in self.state.names:  # one of the file may have a line break in it
            return name
        seen = str(name).encode("utf-8", "replace").decode()
        clean = " ".join("".join(c if c.isprintable() else " " for c in seen).split())
        if not clean or len(clean) > _NAME:
            raise ValueError(f"The name of a label has 1 to {_NAME} characters.")
        if clean in self.state.forbidden:
            raise ValueError(f"The label {clean!r} is not to be given any more; undo that first.")
        return clean

    def _known(self, label: str) -> str:
        if label not in self.state.names:
            raise ValueError(f"There is no label {label!r}.")
        return label
