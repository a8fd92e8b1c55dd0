"""The version, in one place: the build reads it from here. And those of what results depend on.

What is imported here, ``import marginparts`` imports; so nothing is, until it is asked for.
"""

__version__ = "0.1.0"

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
    import os
    import platform

    found = {
        "marginparts": __version__,
        "Python": f"{platform.python_version()} on {platform.system()} {platform.machine()}",
    }
    found |= {name: _version(name) for name in (*NEEDED, *OPTIONAL)}
    return {**found, "threads": f"{_threads()} of {os.cpu_count()} cores"}


def _version(name: str) -> str:
    """Return the version of an installed distribution, read from its metadata."""
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def _threads() -> str:
    """Return what numba will take: what its variable says, else the cores for this process."""
    import os

    if asked := os.environ.get("NUMBA_NUM_THREADS"):
        return asked
    allowed = getattr(os, "sched_getaffinity", None)
    return str(len(allowed(0)) if allowed else os.cpu_count())
