"""What is known, as the sum of a journal's events. Undone events are left out of the sum."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from marginparts.labeling.journal import Event

#: Kinds of events that answer for a sample.
ANSWERS = ("label", "none", "skip")

#: Kinds that can be taken back.
UNDOABLE = (*ANSWERS, "note", "confirm", "rename", "merge", "split", "forbid")

#: Who is said to have given the labels that were in the file.
IN_FILE = "file"


@dataclass(frozen=True)
class Answer:
    """What was said of a sample; ``labels`` is None for a skipped one, () for none of these."""

    labels: tuple[str, ...] | None
    who: str = IN_FILE
    when: str = ""
    confirmed: bool = False
    random: bool = False

    @property
    def kind(self) -> str:
        """Which of `ANSWERS` it is."""
        return "skip" if self.labels is None else "label" if self.labels else "none"


@dataclass
class State:
    """The answers, the labels' names in the order of their keys, and what is noted.

    Attributes
    ----------
    answers : dict of sample to Answer
        In the order in which they were given.
    names : list of str
    forbidden : set of str
        Labels that are not to be given any more.
    notes : dict of sample to str
    estimates : list of Event
        What the accuracy was believed to be in the course of time.
    asked : int
        How many answers were given here.
    """

    answers: dict[str, Answer] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    forbidden: set[str] = field(default_factory=set)
    notes: dict[str, str] = field(default_factory=dict)
    estimates: list[Event] = field(default_factory=list)
    asked: int = 0

    @classmethod
    def of(
        cls, given: Mapping[str, tuple[str, ...]], names: list[str], events: list[Event]
    ) -> State:
        """Sum up the labels in the file and the events that were not undone."""
        state = cls({sample: Answer(labels) for sample, labels in given.items()}, list(names))
        undone = {event.get("of") for event in events if event["kind"] == "undo"}
        for event in events:
            if event["id"] not in undone:
                state.add(event)
        return state

    @property
    def counts(self) -> dict[str, int]:
        """How many samples have each label."""
        counts = dict.fromkeys(self.names, 0)
        for answer in self.answers.values():
            for name in answer.labels or ():
                counts[name] = counts.get(name, 0) + 1
        return counts

    def add(self, event: Event) -> None:
        """Take an event in; one that makes no sense is passed over: no journal is unreadable."""
        kind = event["kind"]
        try:
            if kind in ANSWERS:
                self._answer(event)
            elif kind == "note":
                self.notes[event["sample"]] = str(event["text"])
            elif kind == "confirm":
                answer = self.answers[event["sample"]]
                self.answers[event["sample"]] = replace(answer, confirmed=True)
            elif kind == "estimate":
                if isinstance(event["labeled"], int):
                    self.estimates.append(event)
            elif kind in ("rename", "merge"):
                self._rename(set(event["labels"]), str(event["into"]))
            elif kind == "split":
                self._split(event)
            elif kind == "forbid":
                self._forbid(str(event["label"]))
        except (KeyError, TypeError):
            return

    def _answer(self, event: Event) -> None:
        sample = str(event["sample"])
        labels = None if event["kind"] == "skip" else tuple(map(str, event.get("labels", ())))
        self.answers.pop(sample, None)  # the latest stand last
        self.answers[sample] = Answer(
            labels, str(event.get("who", "")), str(event["when"]),
            random=bool(event.get("random")), confirmed=bool(event.get("checked")),
        )  # fmt: skip
        if event.get("note"):
            self.notes[sample] = str(event["note"])
        self.names += [name for name in labels or () if name not in self.names]
        self.asked += not event.get("checked")

    def _change(self, changed: Callable[[tuple[str, ...]], Iterable[str]]) -> None:
        """Change the labels of all samples that have some."""
        for sample, answer in self.answers.items():
            if answer.labels:
                labels = tuple(dict.fromkeys(changed(answer.labels)))
                self.answers[sample] = replace(answer, labels=labels)

    def _rename(self, old: set[str], new: str) -> None:
        place = min((self.names.index(name) for name in old if name in self.names), default=0)
        rest = [name for name in self.names if name not in old and name != new]
        # those before stay where they are, so that keys do
        before = sum(name in rest for name in self.names[:place])
        self.names = [*rest[:before], new, *rest[before:]]
        self._change(lambda labels: (new if name in old else name for name in labels))

    def _split(self, event: Event) -> None:
        old, new, some = str(event["label"]), str(event["into"]), set(event["samples"])
        if new not in self.names:
            self.names.append(new)
        for sample in some & set(self.answers):
            answer = self.answers[sample]
            labels = tuple(new if name == old else name for name in answer.labels or ())
            self.answers[sample] = replace(answer, labels=tuple(dict.fromkeys(labels)))

    def _forbid(self, label: str) -> None:
        """Take a label away: samples that had no other are asked about again."""
        self.forbidden.add(label)
        self.names = [name for name in self.names if name != label]
        had = [sample for sample, a in self.answers.items() if label in (a.labels or ())]
        for sample in had:
            rest = tuple(name for name in self.answers[sample].labels or () if name != label)
            if rest:
                self.answers[sample] = replace(self.answers[sample], labels=rest)
            else:
                del self.answers[sample]


def last_action(events: list[Event], tab: str) -> Event | None:
    """Return what an undo takes back: the last action of a tab, or of anyone if it has none."""
    undone = {event.get("of") for event in events if event["kind"] == "undo"}
    left = [e for e in events if e["kind"] in UNDOABLE and e["id"] not in undone]
    own = [event for event in left if event.get("tab", "") == tab]
    return next(reversed(own or left), None)


def plain_event(kind: str, **content: Any) -> Event:
    """Return an event without empty entries."""
    return {"kind": kind, **{k: v for k, v in content.items() if v not in (None, "", False)}}
