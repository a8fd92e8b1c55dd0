"""The columns of a matrix: that they are those of the model, and that their entries are fit."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginparts.files.atomic import FileProblemError
from marginparts.files.layout import Layout, Wanted

#: What a model reads, and what a file is, by kind.
_KINDS = {
    "text": ("texts", "a table of texts"),
    "matrix": ("a matrix", "a matrix"),
    "image": ("images", "a folder of images"),
}


#: What to say of a value below 0.
SIGNED_IF = (
    "; vectors of an encoder may have signs: fit a file of texts or counts, and give them beside "
    "it with --embeddings FILE (vectors alone are for Python: "
    "NMFAlphaClassifier(embedded='all'))"
)


def listed(names: Iterable[str], most: int = 10) -> str:
    """Return some names for a sentence."""
    names = list(names)
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(_short, names[:most])) + rest


def _short(name: str) -> str:
    """Return a name on one line: a file that is no table can have whole pages for names."""
    name = name if name.isprintable() and name else repr(name)
    return name if len(name) <= 40 else name[:37] + "..."


def check_kind(path: Path, kind: str, like: Layout | None) -> None:
    """Raise unless a model reads what the file is."""
    if like is not None and like.kind != kind:
        (reads, _), (_, found) = _KINDS[like.kind], _KINDS[kind]
        raise FileProblemError(f"The model reads {reads}, and {path} is {found}.")


def refuse(path: Path, wanted: Wanted, *options: str, instead: str) -> None:
    """Raise if an option is given that means nothing for a file; say what does."""
    for option in options:
        if getattr(wanted, option) is not None:
            raise FileProblemError(f"{path} does not go with --{option}: {instead}.")


def check_column(what: str, name: str | None, columns: Iterable[str]) -> None:
    """Raise if a column is asked for that is not there."""
    columns = list(columns)
    if name is not None and name not in columns:
        its = f"its columns are {listed(columns)}" if columns else "it has no columns"
        raise FileProblemError(f"{what} has no column {name!r}; {its}.")


def check_distinct(path: Path, names: Iterable[str]) -> None:
    """Raise if two columns have one name."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise FileProblemError(f"{path} has two columns named {name!r}; rename one of them.")
        seen.add(name)


def column_order(
    path: Path, names: Sequence[str] | None, n_columns: int, like: Layout | None
) -> NDArray[np.intp] | None:
    """Return which columns of a file are the model's, in its order; None for all as they are.

    Where both have names, columns are found by name, and others in the file are left out.
    """
    if like is None:
        return None
    if names is None or like.names is None:
        if n_columns != like.n_columns:
            raise FileProblemError(
                f"{path} has {n_columns} columns, and the model was fitted on {like.n_columns}; "
                "give a file with the same columns in the same order."
            )
        return None
    if tuple(names) == like.names:
        return None
    place = {name: j for j, name in enumerate(names)}
    if missing := [name for name in like.names if name not in place]:
        raise FileProblemError(
            f"{path} lacks {len(missing)} of the {len(like.names)} columns of the model: "
            f"{listed(missing)}."
        )
    needed = set(like.names)
    check_distinct(path, (name for name in names if name in needed))
    return np.array([place[name] for name in like.names], dtype=np.intp)


def as_floats(X: Any, path: Path) -> Any:
    """Return a matrix in float32 or float64, CSR if it is sparse."""
    if X.dtype.kind not in "buif":
        raise FileProblemError(f"{path} holds {X.dtype} entries; save a matrix of real numbers.")
    # longer floats are of no use here, shorter ones too coarse to count in
    dtype = np.float32 if X.dtype in (np.float32, np.float16) else np.float64
    return sp.csr_array(X, dtype=dtype) if sp.issparse(X) else np.array(X, dtype=dtype)


def check_entries(
    X: Any,
    path: Path,
    places: Sequence[int],
    name_of: Callable[[int], str] = lambda column: str(column + 1),
    place: str = "row",
    gaps: bool = False,
    if_missing: str = "",
) -> Any:
    """Return the matrix (n, d), or raise if an entry is negative, infinite, or NaN without gaps.

    ``places`` say in which line or row of the file (``place``) each row is, and ``if_missing``
    what to do about NaN.
    """
    values = X.data if sp.issparse(X) else X
    # NaN is not at least 0 either; what cannot be squared ends in one later
    most = np.sqrt(np.finfo(values.dtype).max) if values.dtype.kind == "f" else np.inf
    bad = ~((values >= 0) & (values < most))
    if gaps:
        bad &= ~np.isnan(values)
    if not bad.any():
        return X
    first = int(np.argmax(bad))
    if sp.issparse(X):
        row, column = int(np.searchsorted(X.indptr, first, "right")) - 1, int(X.indices[first])
    else:
        row, column = divmod(first, X.shape[1])
    found = values.ravel()[first]
    raise FileProblemError(
        f"{path}, {place} {places[row]}, column {name_of(column)}: the entry is "
        f"{found:g}, and entries must be 0 or larger, and "
        f"{f'below {most:.0e}' if most <= found < np.inf else 'finite'}"
        f"{if_missing if np.isnan(found) else ''}"
        f"{SIGNED_IF if found < 0 else ''}."
    )


def namer(names: Sequence[str] | None) -> Callable[[int], str]:
    """Return what gives a column's name for a sentence: its name, or its number from 1."""
    return lambda column: str(column + 1) if names is None else repr(names[column])
