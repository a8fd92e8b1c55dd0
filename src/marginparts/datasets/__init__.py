"""Data sets: small ones that need no download, and the paper's three."""

from marginparts.datasets._catalog import (
    PAPER_DATA,
    DamagedDataError,
    DataError,
    DownloadError,
    MissingDataError,
    UnknownDataError,
    data_folder,
)
from marginparts.datasets.download import fetch
from marginparts.datasets.embedded import load_digits_49, load_docstrings
from marginparts.datasets.paper import PaperData, load_paper_data

__all__ = [
    "PAPER_DATA",
    "DamagedDataError",
    "DataError",
    "DownloadError",
    "MissingDataError",
    "PaperData",
    "UnknownDataError",
    "data_folder",
    "fetch",
    "load_digits_49",
    "load_docstrings",
    "load_paper_data",
]
