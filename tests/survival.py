"""Fits that are killed over and over: one process that fits, and one that kills it.

Run as a program it fits one case with a checkpoint after every iteration, and prints a checksum of
all that the fit found. `campaign` starts it, kills it at random moments, and starts it again.
"""

import hashlib
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from marginparts import Checkpoint, NMFAlphaCV, SemiSupervisedNMF, nmf_alpha
from marginparts.checkpoint._file import read_checkpoint

#: A fit that is killed later than this after its start has mostly come further.
LATEST = 1.5


def data(n=1500, d=1000, dense=False):
    rng = np.random.default_rng(0)
    X = sp.random_array((n, d), density=0.02, format="csr", rng=rng)
    S = sp.random_array((n, 6), density=0.05, format="csr", rng=rng)
    return (X.toarray() if dense else X), S


def factors(checkpoint, solver, *, r=16, n_iter=400, supervised=False, dense=False, **options):
    X, S = data(dense=dense)
    result = nmf_alpha(
        X, r, S=S if supervised else None, solver=solver, max_iter=n_iter, tol=0, random_state=0,
        checkpoint=checkpoint, **options,
    )  # fmt: skip
    return result.V, result.H, np.array(result.losses)


def classifier(checkpoint):
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=400)
    X = rng.poisson(1 + 2 * (np.arange(60) % 3 == y[:, None])).astype(float)
    y[60:] = -1
    model = NMFAlphaCV(
        (4, 8), lam=(1.0, 3.0), max_iter=300, tol=0, random_state=0, checkpoint=checkpoint
    ).fit(X, y)
    return model.parts_.components_, model.coef_, model.predict_proba(X), model.cv_results_["C"]


def baseline(checkpoint):
    X, _ = data()
    y = np.where(np.arange(len(np.diff(X.indptr))) < 200, np.arange(X.shape[0]) % 3, -1)
    model = SemiSupervisedNMF(16, max_iter=400, tol=0, random_state=0, checkpoint=checkpoint)
    return model.fit(X, y).components_, model.loss_curve_


CASES = {
    "mu": lambda c: factors(c, "mu"),
    # large enough to be looked at every tenth iteration only
    "mue with S, seldom looked at": lambda c: factors(c, "mue", r=96, supervised=True, n_iter=150),
    "cd": lambda c: factors(c, "cd"),
    "reference": lambda c: factors(c, "mue", supervised=True, n_iter=150, backend="reference"),
    "classifier": classifier,
    "baseline": baseline,
}


class Kill(NamedTuple):
    """One kill, and what was found after it."""

    case: str
    seconds: float
    at: str
    size: int
    while_writing: bool


def start(case, path):
    command = [sys.executable, __file__, case, str(path)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def checksum(case, checkpoint=None):
    """All that a fit found, in short."""
    found = hashlib.sha256()
    for array in CASES[case](checkpoint):
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def campaign(cases, n_kills, folder, seed=0):
    """Kill fits until there were enough kills, and yield them; each fit ends with its right bits.

    A checkpoint that cannot be read raises.
    """
    rng, kills = random.Random(seed), 0
    while kills < n_kills:
        for case in cases:
            path, expected = Path(folder) / "fit.ckpt", checksum(case)
            while True:
                with start(case, path) as running:
                    assert running.stdout.readline() == "ready\n"
                    wait = rng.uniform(0, LATEST)
                    if kills >= n_kills:
                        wait = 600  # enough: to the end now
                    try:
                        running.wait(wait)
                    except subprocess.TimeoutExpired:
                        running.send_signal(signal.SIGKILL)
                    found = running.stdout.read()
                if found:
                    assert running.returncode == 0
                    assert found.split()[-1] == expected, f"{case} ended with other bits"
                    assert not path.exists()
                    break
                assert running.returncode == -signal.SIGKILL
                kills += 1
                yield seen(case, wait, path)
            if kills >= n_kills:
                return


def seen(case, seconds, path):
    """Look at what a kill left: the checkpoint, if there is one, must be whole."""
    parts = [p for p in path.parent.iterdir() if p.name.endswith(".part")]
    if not path.exists():
        return Kill(case, seconds, "nothing yet", 0, bool(parts))
    notes = read_checkpoint(path).notes
    if "run" in notes:
        at = f"iteration {notes['run'].tree['iteration']}"
    else:
        at = f"trial {notes['race'].tree['trials']}"
    return Kill(case, seconds, at, path.stat().st_size, bool(parts))


def main(case, path):
    print("ready", flush=True)
    checkpoint = Checkpoint(path, every_seconds=None, every_iterations=1)
    print(checksum(case, checkpoint), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
