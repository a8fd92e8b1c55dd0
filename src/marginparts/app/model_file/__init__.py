"""Fitted models in files that can be opened without running anything.

A model file is a zip archive of JSON, arrays and checksums; ``docs/model-files.md`` describes it.
"""

import json
import os
from pathlib import Path
from typing import Any

from marginparts import estimators
from marginparts._types import Check, PathStep, Stop
from marginparts._version import __version__
from marginparts.app.evaluation import Rated
from marginparts.app.model import Card, Model
from marginparts.app.model_file._decode import decode
from marginparts.app.model_file._encode import encode
from marginparts.app.model_file._registry import UnknownClassError, is_registered, register
from marginparts.app.model_file._tables import TABLES
from marginparts.app.preparation import MatrixPreparation, TextPreparation
from marginparts.app.readers import Layout
from marginparts.files.archive import Archive, damage, write_archive
from marginparts.files.atomic import FileProblemError, check_origin, problems_with, written_beside
from marginparts.files.invariants import InvariantError, Scope, fields_of
from marginparts.files.json_text import plain_word, read_json
from marginparts.online import Past, Rows, Stream
from marginparts.selection import Choice, HeldOut, Setting
from marginparts.svm.calibration import Calibration
from marginparts.svm.head import Head

__all__ = ["load", "register", "save"]

FORMAT = "marginparts-model"

#: Raised when files written from now on could not be read by what came before.
VERSION = 1

#: What model files may hold besides plain values: further classes of the package are added here. A
#: module above this one calls `register` itself, and must then be imported before `load`.
_KEPT: tuple[type, ...] = (
    *(getattr(estimators, name) for name in estimators.__all__),
    # what estimators hold
    *(Calibration, Check, Choice, Head, HeldOut, Past, Rows, Setting, Stop, Stream),
    # what the command's models hold
    *(Card, Layout, MatrixPreparation, Model, PathStep, Rated, TextPreparation),
)

for _cls in _KEPT:
    register(_cls)


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a file.

    Parameters
    ----------
    model : estimator
        Fitted. Its ``callback`` and ``checkpoint`` are left out, and a ``random_state`` that is
        not an int.
    path : path
        Used as it is. A file of that name is replaced when all is written, and not before.

    Raises
    ------
    ValueError
        The model is not fitted, or holds what cannot be kept without running code later.
    FileProblemError
        The file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from marginparts import TransductiveSVM
    >>> from marginparts.app.model_file import load, save
    >>> model = TransductiveSVM().fit([[0.], [1.], [3.], [4.]], [0, -1, -1, 1])
    >>> path = Path(tempfile.mkdtemp()) / "model.zip"
    >>> save(model, path)
    >>> load(path).predict([[0.5], [3.5]])
    array([0, 1])
    """
    if not is_registered(model):
        raise ValueError(
            f"A {type(model).__name__} cannot be saved; give a fitted estimator of marginparts "
            "that has parts or predicts (skops.io.dump takes others)."
        )
    encoded = encode(model)
    tree = {"format": FORMAT, "version": VERSION, "marginparts": __version__}
    tree["model"] = encoded.tree
    text = json.dumps(tree, sort_keys=True, allow_nan=False, separators=(",", ":")) + "\n"
    with written_beside(path) as file:
        write_archive(file, text.encode("ascii"), encoded.arrays)


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that `save` wrote. Nothing in the file is run.

    Parameters
    ----------
    path : path
        A file that `save` wrote.

    Returns
    -------
    estimator
        It predicts, transforms and is saved again bit for bit as the one that was saved.

    Raises
    ------
    FileProblemError
        There is no such file, or it is not a model, damaged, altered, or from a newer version.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from marginparts import NMFAlpha, load, save
    >>> X = np.eye(6) + 1
    >>> parts = NMFAlpha(2, tol=0, max_iter=5, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(parts, f"{folder}/parts.model")
    ...     again = load(f"{folder}/parts.model")
    >>> np.array_equal(again.transform(X), parts.transform(X))
    True
    """
    with problems_with(path, "read"):
        if Path(path).is_dir():
            raise FileProblemError(f"{path} is a folder; give the name of a file.")
        check_origin(Path(path))
        with Path(path).open("rb") as file:
            archive = Archive(path, file)
            with damage(path, "model.json cannot be understood"):
                tree = _described(path, archive.text())
            return _rebuilt(path, tree, archive.arrays())


def _described(path: str | os.PathLike[str], text: bytes) -> Any:
    """Return the tree of the model, if it is in a format that we read."""
    found = read_json(text, parse_constant=_no_constant)
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise FileProblemError(f"{path} is not a model of marginparts.")
    version = found["version"]
    if type(version) is not int or version < 1:
        raise ValueError("no version")
    if version > VERSION:
        raise FileProblemError(
            f"{path} was written by marginparts {plain_word(found.get('marginparts'))} in format "
            f"{version}; this version reads up to {VERSION}: upgrade marginparts."
        )
    return found["model"]


def _rebuilt(path: str | os.PathLike[str], tree: Any, arrays: dict[str, Any]) -> Any:
    with damage(path, "what it says about the model does not fit together"):
        try:
            model = decode(tree, arrays)
        except UnknownClassError as error:
            raise FileProblemError(
                f"{path} holds a {plain_word(error.args[0])}, which this version of marginparts "
                f"({__version__}) does not know: upgrade marginparts."
            ) from error
        if not is_registered(model):
            raise ValueError("no model")
        try:
            Scope(TABLES).check(TABLES.get(type(model).__name__, ()), fields_of(model))
        except InvariantError as error:
            raise FileProblemError(f"{path} is damaged or not a model: {error}.") from error
        return model


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
