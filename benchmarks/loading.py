"""What the checks of a model file cost: a model of 100 MB, loaded with and without them.

    python benchmarks/loading.py > benchmarks/results/loading.txt

Without means: checksums, sizes and decoding as always, but nothing is compared with the tables of
`marginparts.app.model_file` any more, and no sparse matrix is checked.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import numpy as np

from common import race
from marginparts import NMFAlpha
from marginparts.app.model_file import _decode, load, save
from marginparts.files.invariants import Scope


def model_of(times: int, d: int = 200, r: int = 64) -> NMFAlpha:
    """Return a model whose columns are those of a small fit, many times over."""
    X = np.random.default_rng(0).random((150, d))
    y = np.where(np.arange(150) < 50, np.arange(150) % 3, -1)
    model = NMFAlpha(r, max_iter=1, tol=0, solver="mu", random_state=0).fit(X, y)
    model.n_features_in_ = d * times
    for name, value in vars(model).items():
        if isinstance(value, np.ndarray) and d in value.shape:
            share = times if name == "components_" else 1  # parts sum to one
            tiles = [times if n == d else 1 for n in value.shape]
            tiled = np.tile(value / share, tiles)
            # other digits in each, so that the file is as large as its numbers
            setattr(model, name, tiled * np.random.default_rng(1).uniform(0.5, 1, tiled.shape))
    return model


@contextmanager
def unchecked() -> Iterator[None]:
    """Leave out the comparisons."""
    nothing = lambda *_, **__: None  # noqa: E731
    with (
        mock.patch.object(Scope, "check", nothing),
        mock.patch.object(_decode, "check_compressed", nothing),
    ):
        yield


def main() -> None:
    """Print both times and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small model, few rounds")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "large.model")
        save(model_of(10 if asked.quick else 1_000), path)
        size = path.stat().st_size / 1e6

        def without() -> None:
            with unchecked():
                load(path)

        load(path)
        found = race({"with": lambda: load(path), "without": without}, 3 if asked.quick else 15)
    best = {name: times.best_seconds for name, times in found.items()}
    middle = {name: times.median_seconds for name, times in found.items()}
    print(f"a model file of {size:.1f} MB, {found['with'].rounds} loads of each kind in turns")
    for name, seconds in best.items():
        print(f"{name:8} checks: best {1e3 * seconds:7.1f} ms, median {1e3 * middle[name]:7.1f} ms")
    for how, seconds in (("best", best), ("median", middle)):
        more = 100 * (seconds["with"] / seconds["without"] - 1)
        print(f"more with checks, by the {how}: {more:.1f} %")


if __name__ == "__main__":
    main()
