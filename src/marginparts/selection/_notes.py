"""A race of candidates, and its outcome, as notes for a checkpoint."""

from __future__ import annotations

from typing import NamedTuple

from marginparts._types import Array
from marginparts.checkpoint import Notes
from marginparts.selection._choice import Choice, HeldOut
from marginparts.selection._settings import Candidate, Setting


class Standing(NamedTuple):
    """Where a race is after a trial: the fold, the ranks done in it, who runs, and how they did."""

    trials: int
    fold: int
    done: list[int]
    running: set[Candidate]
    scores: dict[Candidate, list[float]]
    codes: dict[Candidate, list[Array]]


def standing_notes(standing: Standing) -> Notes:
    """Return a standing as notes; of those who run the codes as well."""
    rows = [
        [
            list(candidate),
            scores,
            candidate in standing.running,
            len(standing.codes.get(candidate, [])),
        ]
        for candidate, scores in standing.scores.items()
    ]
    arrays = {
        f"{i}.{k}": Z
        for i, candidate in enumerate(standing.scores)
        for k, Z in enumerate(standing.codes.get(candidate, []))
    }
    tree = {"trials": standing.trials, "fold": standing.fold, "done": standing.done}
    return Notes({**tree, "candidates": rows}, arrays)


def read_standing(notes: Notes) -> Standing:
    """Return the standing that was noted."""
    tree = notes.tree
    running, scores, codes = set(), {}, {}
    for i, (names, values, runs, count) in enumerate(tree["candidates"]):
        candidate = tuple(names)
        scores[candidate] = values
        if runs:
            running.add(candidate)
            codes[candidate] = [notes.arrays[f"{i}.{k}"] for k in range(count)]
    return Standing(tree["trials"], tree["fold"], tree["done"], running, scores, codes)


def choice_notes(choice: Choice) -> Notes:
    """Return a `Choice` as notes."""
    arrays = {} if choice.held_out is None else choice.held_out._asdict()
    scores = [[list(setting), values] for setting, values in choice.scores.items()]
    tree = {"best": list(choice.best), "scores": scores, "honest": choice.honest_scores}
    return Notes(tree, arrays)


def read_choice(notes: Notes) -> Choice:
    """Return the choice that was noted."""
    scores = {Setting(*names): values for names, values in notes.tree["scores"]}
    held_out = HeldOut(**notes.arrays) if notes.arrays else None  # type: ignore[arg-type]
    return Choice(Setting(*notes.tree["best"]), scores, held_out, notes.tree["honest"])
