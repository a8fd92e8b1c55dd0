"""The data of the experiments: the paper's, and the small embedded sets for a try without files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from marginparts.datasets import PaperData, load_digits_49, load_docstrings, load_paper_data

#: Shares of the embedded samples for training and validation; the others are for the test.
_TRAINING, _VALIDATION = 0.5, 0.25

EMBEDDED: dict[str, Callable[[], Any]] = {"digits": load_digits_49, "docstrings": load_docstrings}


def load_data(name: str, data_dir: str | None = None) -> PaperData:
    """Return a data set of the paper, or an embedded one in the same form."""
    if name not in EMBEDDED:
        return load_paper_data(name, data_dir)
    found = EMBEDDED[name]()
    n = found.data.shape[0]
    order = np.random.default_rng(0).permutation(n)
    n_train, n_validation = round(_TRAINING * n), round(_VALIDATION * n)
    pool, test = order[: n_train + n_validation], order[n_train + n_validation :]
    X = found.data.astype(np.float32)
    return PaperData(
        name=name,
        kind="binary" if len(found.target_names) == 2 else "multiway",
        X_train=X[pool],
        y_train=found.target[pool],
        X_test=X[test],
        y_test=found.target[test],
        feature_names=None,
        class_names=np.asarray(found.target_names, dtype=str),
        n_train=n_train,
        n_validation=n_validation,
    )
