"""Encoders of texts that are installed here: texts to vectors, and nothing is ever downloaded."""

import importlib
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from threading import Lock
from types import SimpleNamespace
from typing import Any, TypeAlias

import numpy as np

from marginparts._types import Array
from marginparts.app.preparation import PreparationError

#: Texts (n) to vectors (n, k).
Encoder: TypeAlias = Callable[[Sequence[str]], Any]

#: What keeps encoders off the network, and quiet, is set for the whole process and put back.
_ONE_AT_A_TIME = Lock()


def _wordllama(which: str) -> Encoder:
    library = _library("wordllama", "wordllama")
    # the wheel has the weights of its default
    home = Path(library.__file__).parent
    loaded = library.WordLlama.load(cache_dir=home, disable_download=True)
    return lambda texts: loaded.embed(list(texts))


def _model2vec(which: str) -> Encoder:
    if not Path(which).is_dir():
        raise PreparationError(f"--embed model2vec:{which} needs the folder of a saved model.")
    library = _library("model2vec", "model2vec")
    try:
        loaded = library.StaticModel.from_pretrained(which)
    except Exception as error:  # damaged files make its libraries raise anything
        raise PreparationError(
            f"{which} holds no model that model2vec can load; save the model there again."
        ) from error
    return lambda texts: loaded.encode(list(texts))


def _sentence_transformers(which: str) -> Encoder:
    library = _library("sentence_transformers", "sentence-transformers")
    with _without_bars():
        loaded = library.SentenceTransformer(which, local_files_only=True)
    return lambda texts: loaded.encode(list(texts), show_progress_bar=False)


#: How encoders are loaded, by name; what stands behind a colon says which one.
LOADERS: dict[str, Callable[[str], Encoder]] = {
    "wordllama": _wordllama,
    "model2vec": _model2vec,
    "sentence-transformers": _sentence_transformers,
}


def is_encoder(name: str) -> bool:
    """Whether a name may be that of an encoder."""
    kind, _, which = name.partition(":")
    return kind in LOADERS and (kind != "wordllama") == bool(which)


def check_encoder(name: str) -> None:
    """Refuse a name that is not that of an encoder."""
    if not is_encoder(name):
        raise PreparationError(
            f"--embed {name!r} is unknown; it is wordllama, model2vec:FOLDER or "
            "sentence-transformers:NAME."
        )


def settled(name: str) -> str:
    """Return the name of an encoder, with a folder in full: it is the same wherever one is."""
    kind, _, which = name.partition(":")
    return f"{kind}:{Path(which).absolute()}" if os.path.isdir(which) else name


def encoded(name: str, texts: Sequence[str]) -> Array:
    """Return what an encoder makes of texts: vectors (n, k), finite and in float32."""
    check_encoder(name)
    name = settled(name)  # what is loaded is kept by its name
    given = list(texts) or [""]
    with _ONE_AT_A_TIME, _offline():
        made = _loaded(name)(given)
    try:
        with np.errstate(over="ignore"):  # too large is infinite
            vectors = np.asarray(made, dtype=np.float32)
    except (TypeError, ValueError):  # vectors of several lengths, or no numbers
        vectors = np.empty(0, dtype=np.float32)
    if vectors.ndim != 2 or not np.isfinite(vectors).all():
        raise PreparationError(
            f"{name} does not make a vector of as many finite numbers of each text; use another "
            "encoder, or give vectors in a file."
        )
    if len(vectors) != len(given):
        raise PreparationError(
            f"{name} was given {len(given)} texts and made {len(vectors)} vectors; use another "
            "encoder, or give one vector for each text in a file."
        )
    return vectors[: len(texts)]


@lru_cache(maxsize=1)
def _loaded(name: str) -> Encoder:
    kind, _, which = name.partition(":")
    try:
        return LOADERS[kind](which)
    except (OSError, ValueError, RuntimeError, TypeError) as error:  # also of another version
        if isinstance(error, PreparationError):
            raise
        raise PreparationError(
            f"{name} cannot be loaded without a download, and nothing is downloaded here; get it "
            "with its own tools first."
        ) from error


def _library(module: str, package: str) -> Any:
    """Import a library, which must not begin to log what all others have to say."""
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    try:
        return importlib.import_module(module)
    except ImportError as error:
        why = f"cannot be imported here ({error}); install it again"
        if isinstance(error, ModuleNotFoundError) and error.name == module:
            why = f"is not installed: pip install {package}"
        raise PreparationError(f"The vectors are made with {package}, which {why}.") from error
    finally:
        root.setLevel(level)
        root.handlers[:] = handlers


@contextmanager
def _without_bars() -> Iterator[None]:
    """Keep transformers from drawing a progress bar while a model is loaded."""
    bars = importlib.import_module("transformers.utils.logging")
    shown = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            bars.enable_progress_bar()


@contextmanager
def _offline() -> Iterator[None]:
    """Tell the libraries that fetch models to leave the network alone."""
    names = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
    try:
        # it reads the environment once, when it is imported: now, so that it can be put back
        hub: Any = importlib.import_module("huggingface_hub.constants")
    except ImportError:
        hub = SimpleNamespace()
    before = {name: os.environ.get(name) for name in names}
    known = getattr(hub, "HF_HUB_OFFLINE", False)
    os.environ.update(dict.fromkeys(names, "1"))
    hub.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        hub.HF_HUB_OFFLINE = known
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
