"""A folder of results: which records are in it, what is still to be done, and the tables in it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from marginparts.datasets import MissingDataError
from marginparts.datasets._catalog import entry_named, find_files
from marginparts.experiments.data import EMBEDDED
from marginparts.experiments.plan import Study, Unit, quick, with_methods
from marginparts.experiments.runner import OnUnit, Outcome, run_units
from marginparts.experiments.store import Record, Store
from marginparts.experiments.tables import Curves, curves
from marginparts.files.atomic import written_beside


@dataclass(frozen=True)
class Results:
    """A folder of records, tables and figures.

    Results of small versions of the studies (``quick``) and of other backends than the CPU's are
    kept apart, in subfolders.
    """

    folder: Path
    data_dir: str | os.PathLike[str] | None = None
    quick: bool = False
    methods: tuple[str, ...] = ()  # to run beside the paper's, see `method_named`
    backend: str = "numba"

    @property
    def place(self) -> Path:
        """Where everything is written."""
        folder = self.folder if self.backend == "numba" else self.folder / self.backend
        return folder / "quick" if self.quick else folder

    def store(self, study: Study) -> Store:
        """Return the records of a study."""
        return Store(self.place / "records" / f"{study.name}.jsonl")

    def planned(self, study: Study) -> Study:
        """Return a study as it is run here."""
        study = with_methods(study, self.methods)
        return quick(study) if self.quick else study

    def missing_data(self, study: Study) -> str | None:
        """Return why a study cannot be run, in one sentence, or None."""
        if study.data in EMBEDDED:
            return None
        try:
            find_files(entry_named(study.data), self.data_dir)
        except MissingDataError as error:
            return str(error)
        return None

    def left(self, study: Study) -> list[Unit]:
        """Return the units of a study that are not in the records."""
        done = self.store(study).units()
        return [unit for unit in self.planned(study).units() if unit.key not in done]

    def run(
        self,
        study: Study,
        *,
        n_jobs: int | None = None,
        deadline: float | None = None,
        on_unit: OnUnit | None = None,
    ) -> Outcome:
        """Do what is left of a study, see `run_units`."""
        return run_units(
            self.planned(study).units(), self.store(study), data_dir=self.data_dir,
            backend=self.backend, n_jobs=n_jobs, deadline=deadline, on_unit=on_unit,
        )  # fmt: skip

    def records(self, studies: Iterable[Study]) -> list[Record]:
        """Return the records of some studies, as they are planned: not those of other grids."""
        return [
            record
            for study in studies
            for record in self.store(study).of({u.key for u in self.planned(study).units()})
        ]

    def curves(self, studies: Iterable[Study]) -> Curves:
        """Return what the tables and figures are made of."""
        return curves(self.records(studies))

    def write(self, name: str, content: Any) -> Path:
        """Write a table as JSON, whole or not at all."""
        path = self.place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with written_beside(path, "w", encoding="utf-8") as file:
            file.write(json.dumps(content, indent=1) + "\n")
        return path
