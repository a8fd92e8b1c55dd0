"""A race that survives: after each trial it is noted in a checkpoint, and so is its outcome."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from marginparts._types import Array
from marginparts.checkpoint import Logbook, Notes
from marginparts.selection._choice import Candidate, Choice, HeldOut, Setting

if TYPE_CHECKING:
    from marginparts.selection._race import Race


class Standing(NamedTuple):
    """Where a race is: trials done, the fold, the ranks done in it, and the candidates."""

    trials: int
    fold: int
    done: list[int]
    running: set[Candidate]
    scores: dict[Candidate, list[float]]
    codes: dict[Candidate, list[Array]]


def kept_choice(race: Race, run: Callable[[Callable[[], bool]], bool], logbook: Logbook) -> Choice:
    """Run a race from where it was when it was last noted, and return its outcome.

    ``run`` is given what to ask after each trial (a true answer ends the race), and returns whether
    the race came to its end.
    """
    if (notes := logbook.recall("choice")) is not None:
        choice = _read_choice(notes)
    else:
        if (notes := logbook.recall("race")) is not None:
            race.resume(_read_standing(notes))
        race.interrupted = lambda: logbook.interrupted
        complete = run(lambda: logbook.offer("race", lambda: _standing_notes(race.standing())))
        choice = race.finish()
        if logbook.interrupted and not complete:
            # what follows is for a model to end with: the same call resumes the race instead
            logbook.offer("race", lambda: _standing_notes(race.standing()))
            logbook.break_off()
    logbook.settle("choice", _choice_notes(choice))
    return choice


def _standing_notes(standing: Standing) -> Notes:
    """Return a standing as notes, with the codes of the candidates that are still running."""
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


def _read_standing(notes: Notes) -> Standing:
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


def _choice_notes(choice: Choice) -> Notes:
    """Return a `Choice` as notes."""
    arrays = {} if choice.held_out is None else choice.held_out._asdict()
    scores = [[list(setting), values] for setting, values in choice.scores.items()]
    tree = {"best": list(choice.best), "scores": scores, "honest": choice.honest_scores}
    return Notes(tree, arrays)


def _read_choice(notes: Notes) -> Choice:
    """Return the choice that was noted."""
    scores = {Setting(*names): values for names, values in notes.tree["scores"]}
    held_out = HeldOut(**notes.arrays) if notes.arrays else None  # type: ignore[arg-type]
    return Choice(Setting(*notes.tree["best"]), scores, held_out, notes.tree["honest"])
