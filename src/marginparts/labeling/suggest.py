"""What the page knows, for those without a page: what to label first, and which labels to check."""

from __future__ import annotations

import math
from typing import Any

from marginparts.app.preparation import PreparationError
from marginparts.app.suggestion import Suggestion
from marginparts.labeling.pool import Pool
from marginparts.labeling.session import Labeling


def to_label(pool: Pool, n: int) -> list[Suggestion]:
    """Return samples to label, without a model: by the parts, or by the labels in the file."""
    labeling = Labeling(pool, background=False)
    insight = labeling.refit.learn(check=False)
    assert insight.factors is not None
    found = []
    for row in map(int, insight.queue[:n]):
        P = None if insight.beliefs is None else sorted(insight.beliefs.P[row].tolist())
        found.append(
            Suggestion(
                row + 1, insight.guess(row) or "", math.nan if P is None else P[-1] - P[-2],
                int(insight.factors[0][row].argmax()) + 1,
                pool.samples[row] if pool.layout.kind == "text" else None, _cells(pool, row),
            )
        )  # fmt: skip
    return found


def to_check(pool: Pool, n: int) -> list[dict[str, Any]]:
    """Return the rows whose label a model of the other labels contradicts, the worst first."""
    if not pool.given:
        raise PreparationError(f"{pool.source} has no labels to check; name them with --label.")
    labeling = Labeling(pool, background=False)
    labeling.learn()
    return [
        {
            "row": each["row"], "labels": ";".join(each["labels"]), "instead": each["instead"],
            "evidence": each["evidence"], "columns": _cells(pool, each["row"] - 1),
        }
        for each in labeling.suspects(n)
    ]  # fmt: skip


def _cells(pool: Pool, row: int) -> dict[str, Any]:
    return {name: cells[row] for name, cells in pool.columns.items()}
