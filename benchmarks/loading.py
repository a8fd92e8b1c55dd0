"""What the checks of a model file cost: a model of 100 MB, loaded with and without them.

    python benchmarks/loading.py > benchmarks/results/loading.txt

Times are of the processor, since others may use the machine. Two loads of equal files differ by
more than the checks take, so that they are also timed within each load, and compared with the rest
of it. Without means: checksums, sizes and decoding as always, but nothing is compared with the
tables of `marginparts.app.model_file` any more, and no sparse matrix is checked.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
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


@contextmanager
def timed() -> Iterator[list[float]]:
    """Note the seconds of each outermost comparison."""
    seconds: list[float] = []
    depth = 0

    def measured(check: Callable[..., None]) -> Callable[..., None]:
        def around(*given: Any, **named: Any) -> None:
            nonlocal depth
            began, depth = time.process_time(), depth + 1
            try:
                check(*given, **named)
            finally:
                depth -= 1
                if not depth:
                    seconds.append(time.process_time() - began)

        return around

    with (
        mock.patch.object(Scope, "check", measured(Scope.check)),
        mock.patch.object(_decode, "check_compressed", measured(_decode.check_compressed)),
    ):
        yield seconds


def share_of(path: Path) -> float:
    """Return how much longer one load takes by its checks, in percent."""
    with timed() as seconds:
        began = time.process_time()
        load(path)
        whole = time.process_time() - began
    return 100 * sum(seconds) / (whole - sum(seconds))


def main() -> None:
    """Print both times and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small model, few rounds")
    asked = parser.parse_args()
    rounds = 3 if asked.quick else 31
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "large.model")
        save(model_of(10 if asked.quick else 1_000), path)
        size = path.stat().st_size / 1e6

        def without() -> None:
            with unchecked():
                load(path)

        load(path)
        both = {"with": lambda: load(path), "without": without}
        found = race(both, rounds, clock=time.process_time)
        shares = sorted(share_of(path) for _ in range(rounds))
    best = {name: times.best_seconds for name, times in found.items()}
    middle = {name: times.median_seconds for name, times in found.items()}
    print(f"a model file of {size:.1f} MB, {rounds} loads of each kind in turns")
    for name, seconds in best.items():
        print(f"{name:8} checks: best {1e3 * seconds:7.1f} ms, median {1e3 * middle[name]:7.1f} ms")
    for how, seconds in (("best", best), ("median", middle)):
        more = 100 * (seconds["with"] / seconds["without"] - 1)
        print(f"more with checks, by the {how}: {more:.1f} %")
    print(
        f"the checks against the rest of the same load: median {shares[rounds // 2]:.1f} %, "
        f"at most {shares[-1]:.1f} %"
    )


if __name__ == "__main__":
    main()
