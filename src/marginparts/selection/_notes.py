"""A race that survives: after each trial it is noted in a checkpoint, and so is its outcome."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from marginparts._types import Array
from marginparts.checkpoint import Logbook, Notes
from marginparts.files.invariants import Field, InvariantError, Items, Scope, Table, Value
from marginparts.selection._choice import Candidate, Choice, HeldOut, Setting
from marginparts.validation import LEAST_COST, MOST_COST

if TYPE_CHECKING:
    from marginparts.selection._race import Race


_INF = float("inf")

_SCORES = Items("scores", Value("scores", "float", nan=True))
_HONEST = Items("honest", Value("honest", "float", nan=True))

_STANDING: Table = (
    Value("trials", "int", 0),
    Value("fold", "int", 0),
    Items("done", Value("done", "int", 1)),
)

#: Yes counts as 1 where values are compared, and is refused later on.
_CODES: Table = (
    Value("n_components", "int"), Value("lam", "float"), Value("map_iter", "int", optional=True),
    Value("direction_C", "float"),
)  # fmt: skip

_SETTING: Table = (*_CODES, Value("normalize", "bool"), Value("C", "float", LEAST_COST, MOST_COST))


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
        with logbook.reading():
            choice = _read_choice(notes, race)
    else:
        if (notes := logbook.recall("race")) is not None:
            with logbook.reading():
                race.resume(_read_standing(notes, race))
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


def _read_standing(notes: Notes, race: Race) -> Standing:
    """Return the standing that was noted, of the candidates of this race."""
    tree = notes.tree
    _check(_STANDING, tree)
    known, labeled = set(race.codes), int(race.folds[0].labels.labeled.sum())
    running, scores, codes = set(), {}, {}
    for i, (names, values, runs, count) in enumerate(tree["candidates"]):
        candidate = tuple(names)
        if candidate not in known:
            raise InvariantError("candidates has one of another race")
        _check(_CODES, dict(zip((line.name for line in _CODES), candidate, strict=True)))
        _check((_SCORES,), {"scores": values})
        scores[candidate] = values
        if runs:
            running.add(candidate)
            codes[candidate] = [notes.arrays[f"{i}.{k}"] for k in range(count)]
            whole = tree["fold"] + (candidate[0] in tree["done"])
            if not len(values) == count == whole:
                raise InvariantError("candidates has one with too many or too few trials")
            for Z in codes[candidate]:
                _check((Field("codes", (labeled, ("q", "2q"))),), {"codes": Z})
    if tree["fold"] > len(race.folds) or set(scores) != known or not running:
        raise InvariantError("fold or candidates are of another race")
    return Standing(tree["trials"], tree["fold"], tree["done"], running, scores, codes)


def _choice_notes(choice: Choice) -> Notes:
    """Return a `Choice` as notes."""
    arrays = {} if choice.held_out is None else choice.held_out._asdict()
    scores = [[list(setting), values] for setting, values in choice.scores.items()]
    tree = {"best": list(choice.best), "scores": scores, "honest": choice.honest_scores}
    return Notes(tree, arrays)


def _read_choice(notes: Notes, race: Race) -> Choice:
    """Return the choice that was noted, of the candidates of this race."""
    tree = notes.tree
    settings = [Setting(*names) for names, _ in tree["scores"]]
    if not {setting.codes for setting in settings} <= set(race.codes):
        raise InvariantError("scores has a setting of another race")
    for setting, (_, values) in zip(settings, tree["scores"], strict=True):
        _check((*_SETTING, _SCORES), {**setting._asdict(), "scores": values})
    best = Setting(*tree["best"])
    _check((*_SETTING, _HONEST), {**best._asdict(), "honest": tree["honest"]})
    if best.codes not in set(race.codes):
        raise InvariantError("best is a setting of another race")
    held_out = None
    if notes.arrays:
        held_out = HeldOut(**notes.arrays)  # type: ignore[arg-type]
        n = len(race.folds[0].labels.labeled)
        tasks = race.folds[0].labels.tasks("ovr")
        rows = Field("rows", ("h",), "i", least=0, most=n - 1)
        values = Field("values", ("h", len(tasks)), least=-_INF)
        _check((rows, values), held_out._asdict())
    scores = {
        setting: values for setting, (_, values) in zip(settings, tree["scores"], strict=True)
    }
    folds = [fold.rows for fold in race.folds[: len(scores.get(best, []))]]
    return Choice(best, scores, held_out, tree["honest"], folds)


def _check(table: Table, fields: Any) -> None:
    Scope().check(table, fields)
