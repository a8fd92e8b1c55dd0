"""Open people's files so that whatever is wrong with one becomes a sentence."""

import codecs
import gzip
import importlib
import io
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TextIO

from marginparts.files.atomic import FileProblemError, check_origin, problems_with


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that may be compressed (``.gz``)."""
    check_origin(path)
    with problems_with(path, "read"):
        try:
            with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
                yield file  # type: ignore[misc]
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise FileProblemError(
                f"{path} is cut short or is no gzip file; fetch or compress it again."
            ) from error


@contextmanager
def opened_text(path: Path, encoding: str) -> Iterator[TextIO]:
    """Open a text file that may be compressed; its line ends stay as they are."""
    name = check_encoding(encoding)
    with opened(path) as raw, io.TextIOWrapper(raw, encoding=name, newline="") as text:
        try:
            yield text
        except UnicodeError as error:
            raise FileProblemError(_wrong_encoding(path, name)) from error


def check_encoding(encoding: str) -> str:
    """Return the name of an encoding of texts; that of UTF-8 takes a byte order mark for none."""
    try:
        codec = codecs.lookup(encoding)
        if not codec._is_text_encoding:
            raise LookupError
    except (LookupError, ValueError) as error:
        raise FileProblemError(
            f"There is no encoding {encoding!r}; say --encoding utf-8, latin-1, cp1252 or the like."
        ) from error
    return "utf-8-sig" if codec.name == "utf-8" else codec.name


def _wrong_encoding(path: Path, encoding: str) -> str:
    """Return what to say of a file that cannot be decoded; the line is found by reading again."""
    decoder = codecs.getincrementaldecoder(encoding)()
    line, better = 1, "latin-1"
    with opened(path) as file:
        while piece := file.read(1 << 16):
            if line == 1 and piece.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                better = "utf-16"
            try:
                line += decoder.decode(piece).count("\n")
            except UnicodeError as error:
                if isinstance(error, UnicodeDecodeError):
                    line += error.object[: error.start].count(b"\n")
                break
    shown = encoding.removesuffix("-sig").upper()
    return f"{path} is not {shown} at line {line}; say --encoding {better} or the like."


@contextmanager
def library_reads(path: Path, what: str) -> Iterator[None]:
    """Turn whatever a library raises on a broken file into a sentence."""
    try:
        with warnings.catch_warnings():
            # what a library warns about files is for those who call the library
            warnings.simplefilter("ignore")
            yield
    except FileProblemError:
        raise
    except MemoryError as error:
        raise FileProblemError(
            f"{path} needs more memory than there is; use a smaller or a sparse file."
        ) from error
    except Exception as error:  # broken files make libraries raise anything
        raise FileProblemError(
            f"{path} is cut short or is no {what}; write or fetch it again."
        ) from error


def optional_library(module: str, extra: str, path: Path) -> Any:
    """Import a library that not everybody has installed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module(module)
    except ImportError as error:
        library = module.partition(".")[0]
        raise FileProblemError(
            f"{path} can only be read with {library}: pip install 'marginparts[{extra}]'."
        ) from error
