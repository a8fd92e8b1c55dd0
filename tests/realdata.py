"""The paper's data for tests, where it is at hand."""

import os

import pytest

from marginparts.datasets import MissingDataError, load_paper_data

FOLDER = os.environ.get("MARGINPARTS_DATA", "")

#: Marks of a test that needs it.
REAL = [
    pytest.mark.realdata,
    pytest.mark.skipif(not FOLDER, reason="MARGINPARTS_DATA names no folder of data"),
]


def real_data(name):
    """Return a data set, or skip the test with a reason."""
    try:
        return load_paper_data(name, FOLDER)
    except MissingDataError as error:
        pytest.skip(str(error))
