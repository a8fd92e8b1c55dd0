"""What a person should know before trusting a model that was just fitted."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from marginparts.app.model import Model

#: What people and programs write where they know nothing; empty cells, nan and null are unlabeled.
_LIKE_NOTHING = {"na", "n/a", "#n/a", "<na>", "none", "nil", "?", "-", "unknown", "unlabeled"}


def spent(seconds: float) -> str:
    """Return a time in words.

    >>> spent(1.2)
    '1 second'
    """
    return f"{seconds:.0f} second" + ("" if f"{seconds:.0f}" == "1" else "s")


def notes(model: Model) -> list[str]:
    """Return what a person should know before trusting a model."""
    found = [model.card.doubt] if model.card.doubt and model.card.rated else []
    pairs = zip(model.class_names, model.card.label_counts, strict=True)
    single = [name for name, count in pairs if count == 1]
    if single:
        some = ", ".join(single[:5]) + (", ..." if len(single) > 5 else "")
        found.append(f"Labels with a single example, which cannot be learned well: {some}.")
    if model.layout.label_sep is None and not model.multilabel:
        names = model.class_names
        signs = (s for s in ";|," if sum(s in name for name in names) > len(names) / 3)
        if sign := next(signs, None):
            found.append(
                f"Many labels contain {sign!r}: if a cell holds several labels, say "
                f"--label-sep {sign!r}."
            )
    return [*found, *_misread(model.class_names)]


def _misread(names: Sequence[str]) -> Iterator[str]:
    """Say which labels are probably none, and which are probably one."""
    nothing = [name for name in names if name.lower() in _LIKE_NOTHING]
    if nothing:
        read = f"{', '.join(map(repr, nothing))} {'is' if len(nothing) == 1 else 'are'} read as"
        yield f"{read} a label like any other; where a label is not known, leave the cell empty."
    first: dict[str, str] = {}
    for name in names:
        other = first.setdefault(" ".join(name.casefold().split()), name)
        if other != name:
            yield (
                f"The labels {other!r} and {name!r} differ only in case or spaces; write them "
                "alike if they are one."
            )
            return
