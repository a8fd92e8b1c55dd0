"""The end of a labeling: the model, its page and the table, beside the file."""

from __future__ import annotations

import logging
from pathlib import Path
from threading import Lock, Thread
from typing import Any

from marginparts.app.model_file import save
from marginparts.app.preparation import PreparationError
from marginparts.app.replacement import changed_mind, replaced
from marginparts.app.report import headline_sentence
from marginparts.files.atomic import FileProblemError
from marginparts.labeling.outcome import write_page
from marginparts.labeling.session import Labeling

_log = logging.getLogger("marginparts")


class Finish:
    """Makes the model in a thread, when it is asked to, and says how far it is."""

    def __init__(self, labeling: Labeling) -> None:
        self.labeling = labeling
        beside = labeling.journal.path or Path("labeling.labels.jsonl")
        self.table, self.model, self.page = (
            beside.with_suffix(ending) for ending in (".csv", ".model", ".html")
        )
        self._lock = Lock()
        self._stage, self._sentence, self._problem = "", "", ""

    @property
    def made(self) -> bool:
        """Whether there is a model, of this time or an earlier one."""
        return self.model.exists()

    def begin(self) -> None:
        """Begin to make the model, unless that is under way."""
        if not self._lock.acquire(blocking=False):
            return
        self._stage, self._sentence, self._problem = "reading", "", ""
        Thread(target=self._run, daemon=True).start()

    def make(self) -> str:
        """Make the model and wait for it; return how good it is, and what it chose otherwise."""
        labeling, before = self.labeling, replaced(self.model)
        model = labeling.fit(on_stage=self._at)
        self._at("writing")
        save(model, self.model)
        write_page(model, labeling.pool, labeling.targets(), self.page)
        labeling.export(self.table)
        return " ".join(filter(None, [headline_sentence(model), changed_mind(before, model)]))

    def status(self) -> dict[str, Any]:
        """Return the stage under way, and what came out."""
        return {
            "stage": self._stage, "sentence": self._sentence, "problem": self._problem,
            "model": str(self.model) if self.made else None,
        }  # fmt: skip

    def page_bytes(self) -> bytes:
        """Return the report."""
        if not self.page.exists():
            raise FileProblemError("There is no report yet; make the model first.")
        return self.page.read_bytes()

    def _at(self, stage: str) -> None:
        self._stage = stage

    def _run(self) -> None:
        try:
            self._sentence = self.make()
        except (PreparationError, FileProblemError, ValueError) as error:
            self._problem = str(error)
        except Exception as error:
            _log.exception("The model could not be made.")
            self._problem = f"The model could not be made: {type(error).__name__}."
        finally:
            self._stage = ""
            self._lock.release()
