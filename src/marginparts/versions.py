"""What to say in a report of a bug: the versions of all that a result may depend on."""

from __future__ import annotations

import os
import platform
from importlib import metadata

from marginparts._version import __version__

#: What is always there, and what may be.
NEEDED = ("numpy", "scipy", "scikit-learn", "joblib", "numba", "typer", "rich")
OPTIONAL = ("torch", "dask", "pandas", "matplotlib", "pyarrow", "anndata", "zarr")


def show_versions() -> None:
    """Print the versions of marginparts and of what it works with, one a line.

    Nothing is imported for it, so it takes no time. Give what it prints with a report of a bug.

    Examples
    --------
    >>> import marginparts
    >>> marginparts.show_versions()  # doctest: +ELLIPSIS
    marginparts ...
    Python ...
    """
    print("\n".join(f"{name} {version}" for name, version in versions().items()))


def versions() -> dict[str, str]:
    """Return the versions by name, and how many threads the compiled loops take.

    Examples
    --------
    >>> "numpy" in versions()
    True
    """
    found = {
        "marginparts": __version__,
        "Python": f"{platform.python_version()} on {platform.system()} {platform.machine()}",
    }
    found |= {name: _version(name) for name in (*NEEDED, *OPTIONAL)}
    return {**found, "threads": f"{_threads()} of {os.cpu_count()} cores"}


def _version(name: str) -> str:
    """Return the version of an installed distribution, read from its metadata."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def _threads() -> str:
    """Return what numba will take: what its variable says, else the cores for this process."""
    if asked := os.environ.get("NUMBA_NUM_THREADS"):
        return asked
    allowed = getattr(os, "sched_getaffinity", None)
    return str(len(allowed(0)) if allowed else os.cpu_count())
