"""What comes out of a labeling: a table with labels, a model, and its page."""

from __future__ import annotations

from itertools import chain, count
from pathlib import Path
from typing import Any

import numpy as np

from marginparts.app.fitting import Options, fit_model
from marginparts.app.model import Model
from marginparts.app.preparation import PreparationError
from marginparts.app.readers import Label, targets
from marginparts.app.report import find_examples, payload_of, render
from marginparts.app.writers import open_table_writer
from marginparts.files.atomic import FileProblemError, written_beside
from marginparts.files.layout import SampleSource
from marginparts.labeling.pool import Pool
from marginparts.labeling.state import State


def export(pool: Pool, state: State, path: Path) -> Path:
    """Write the columns of the file, and answer, label, labeled_by, labeled_at and note behind.

    ``answer`` is label, none (of these) or skip, and empty for a sample that nobody was asked
    about. Only the first has a label.
    """
    if pool.source is not None and path.exists() and pool.source.samefile(path):
        raise FileProblemError(f"{path} is the file that is read; give the table another name.")
    answers = [state.answers.get(name) for name in pool.ids]
    ours: dict[str, list[Any]] = {
        "answer": ["" if a is None else a.kind for a in answers],
        "label": [";".join(a.labels) if a is not None and a.labels else "" for a in answers],
        "labeled_by": ["" if a is None else a.who for a in answers],
        "labeled_at": ["" if a is None else a.when for a in answers],
        "note": [state.notes.get(name, "") for name in pool.ids],
    }
    columns = dict(pool.columns)
    for name, cells in ours.items():
        names = chain([name], (f"{name} ({number})" for number in count(2)))
        columns[next(free for free in names if free not in pool.columns)] = cells
    with open_table_writer(path) as writer:
        writer.write(columns)
    return path


def fit(pool: Pool, labels: list[Label], several: bool, options: Options, **how: Any) -> Model:
    """Fit a model to labels, one a row, None for unlabeled."""
    known = [label for label in labels if label]
    if len({name for label in known for name in np.atleast_1d(np.array(label)).tolist()}) < 2:
        raise PreparationError("A model needs samples of at least two labels; label some more.")
    if pool.layout.gaps:
        options = options._replace(missing="nan")
    source = _Named(pool.source or Path("labeling"), pool.layout, len(labels))
    y, names = targets(labels, source)
    return fit_model(pool.prepared(y, names), options, **how)


class _Named(SampleSource):
    """A source that is there for its name alone."""

    def batches(self, size: int = 10_000) -> Any:
        raise NotImplementedError


def write_page(model: Model, pool: Pool, labels: list[Label], path: Path) -> Path:
    """Write the report of a model, with examples of the samples."""
    examples = find_examples(model, [pool.batch(labels)])
    with written_beside(path, "w", encoding="utf-8") as target:
        target.write(render(payload_of(model, examples)))
    return path
