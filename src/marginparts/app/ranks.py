"""How many parts there are in a file: what ``marginparts ranks`` does."""

import os
from collections.abc import Iterable
from typing import Any

from marginparts._types import Callback
from marginparts.app import preparation
from marginparts.app.fitting import Options, matrix_of
from marginparts.app.preparation import EstimatorError
from marginparts.app.readers import open_source, read_all
from marginparts.selection.held_out import PartsChoice, how_many_parts


def ranks_of_file(
    path: str | os.PathLike[str],
    ranks: Iterable[int],
    *,
    text: str | None = None,
    label: str | None = None,
    encoding: str = "utf-8",
    folds: int = 3,
    random_state: int = 0,
    callback: Callback | None = None,
    **options: Any,
) -> PartsChoice:
    """Read and prepare samples as `fit_file` does, and try numbers of parts on hidden entries.

    See `how_many_parts`; ``options`` are those fields of `Options` that prepare a matrix.
    """
    wanted = Options(**options)
    preparation.check_weighting(wanted.weighting)
    source = open_source(path, text=text, label=label, encoding=encoding, gaps=None)
    _, X = matrix_of(read_all(source, keep_columns=False), source, wanted)
    try:
        return how_many_parts(X, ranks, folds=folds, random_state=random_state, callback=callback)
    except ValueError as error:
        raise EstimatorError(str(error)) from error
