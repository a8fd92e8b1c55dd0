"""A model that takes the place of another: whether it was made otherwise."""

from __future__ import annotations

from pathlib import Path

from marginparts.app.model import Model
from marginparts.app.model_file import load
from marginparts.files.atomic import FileProblemError


def replaced(path: Path) -> Model | None:
    """Return the model that is about to be replaced, if there is one."""
    try:
        found = load(path) if path.exists() else None
    except FileProblemError:
        return None
    return found if isinstance(found, Model) else None


def changed_mind(before: Model | None, now: Model) -> str | None:
    """Say what was chosen otherwise than in the model that is replaced, if anything was."""
    if before is None:
        return None
    pairs = {
        "parts": (before.n_parts, now.n_parts),
        "lam": (before.classifier.lam_, now.classifier.lam_),
        "C": (before.classifier.C_, now.classifier.C_),
    }
    changes = [
        f"{name} {new:g} and not {old:g}" for name, (old, new) in pairs.items() if old != new
    ]
    if not changes:
        return None
    return (
        f"It chose otherwise than in the model that it replaces: {', '.join(changes)}; scores of "
        "the two differ for that reason too."
    )
