"""Rows of measurements, each with the circumstances it was made in."""

from __future__ import annotations

import csv
import datetime
import os
import platform
import subprocess
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RESULTS = HERE / "results"

_LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba", "marginparts")


class Table:
    """A CSV file that gets its rows as they are measured, so that a run cut short keeps them.

    Parameters
    ----------
    name : str
        The benchmark's name: the file is ``results/NAME.csv``.
    columns : tuple of str
        What is measured; the circumstances come on top.
    quick : bool
        Write to ``results/quick`` instead: these numbers mean nothing.
    more : bool
        Add to a file that is there.
    keep : callable or None
        Which rows of a file that is there, as dicts of strings, are not measured anew, and stay.
    """

    def __init__(
        self, name: str, columns: tuple[str, ...], quick: bool, more: bool = False,
        keep: Callable[[dict[str, str]], bool] | None = None,
    ) -> None:  # fmt: skip
        folder = RESULTS / "quick" if quick else RESULTS
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"{name}.csv"
        self.circumstances = circumstances()
        self.columns = (*columns, *self.circumstances)
        if more and self.path.exists():
            return
        kept = []
        if keep is not None and self.path.exists():
            with self.path.open(newline="") as file:
                kept = [row for row in csv.DictReader(file) if keep(row)]
        with self.path.open("w", newline="") as file:
            writer = csv.DictWriter(file, self.columns, extrasaction="ignore")
            writer.writeheader()
            writer.writerows(kept)

    def add(self, **measured: Any) -> None:
        """Append one row; columns that are not given stay empty."""
        with self.path.open("a", newline="") as file:
            csv.DictWriter(file, self.columns).writerow({**measured, **self.circumstances})


def circumstances() -> dict[str, str]:
    """Return the machine, the versions, the commit and the date."""
    return {
        "machine": f"{_processor()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        **{name.replace("-", "_"): _version(name) for name in _LIBRARIES},
        "commit": _commit(),
        "date": datetime.date.today().isoformat(),
    }


def _version(name: str) -> str:
    """Return a version; nothing for a package that runs from its sources."""
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    named = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()


def _commit() -> str:
    """Return the short commit, with a plus where the package's sources differ from it."""
    commit = _git("rev-parse", "--short", "HEAD")
    changed = commit and _git("status", "--porcelain", "--", str(HERE.parent / "src"))
    return f"{commit}+" if changed else commit


def _git(*arguments: str) -> str:
    # without the optional locks a look never gets in the way of a commit made meanwhile
    command = ["git", "--no-optional-locks", "-C", str(HERE), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()
