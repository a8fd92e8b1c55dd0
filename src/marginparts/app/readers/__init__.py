"""People's files in: tables of texts or numbers, sparse and dense matrices, cells, images.

`open_source` knows a file by the ending of its name and gives a `SampleSource`, which yields
samples, labels and what identifies the rows in batches. Its `Layout` is what a fitted model
remembers, so that a later file is read in the same way. What is wrong with a file is one sentence.
"""

from marginparts.app.readers._feature_weights import read_feature_weights
from marginparts.app.readers._labels import settle_minus_one, targets
from marginparts.app.readers._seeds import SeedWords, read_seeds
from marginparts.app.readers._source import FORMATS, check_separator, open_source, read_all
from marginparts.files.layout import Batch, Label, Layout, SampleSource

__all__ = [
    "FORMATS",
    "Batch",
    "Label",
    "Layout",
    "SampleSource",
    "SeedWords",
    "check_separator",
    "open_source",
    "read_all",
    "read_feature_weights",
    "read_seeds",
    "settle_minus_one",
    "targets",
]
