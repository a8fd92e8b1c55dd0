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

#: Seconds to live, at most: from the first look at the loss on, and (one time in five) from the
#: start of the process, to be hit while the checkpoint is read as well.
FROM_FIRST_LOOK, FROM_START = 0.5, 3.0


def data(n=1500, d=1000, dense=False):
    rng = np.random.default_rng(0)
    X = sp.random_array((n, d), density=0.02, format="csr", random_state=rng)
    S = sp.random_array((n, 6), density=0.05, format="csr", random_state=rng)
    return (X.toarray() if dense else X), S


def say_ready(progress):
    """Say once that the fit is under way."""
    if not hasattr(say_ready, "said"):
        say_ready.said = True
        print("ready", flush=True)


def factors(kept, solver, *, r=16, n_iter=400, supervised=False, dense=False, **options):
    X, S = data(dense=dense)
    result = nmf_alpha(
        X, r, S=S if supervised else None, solver=solver, max_iter=n_iter, tol=0, random_state=0,
        **kept, **options,
    )  # fmt: skip
    return result.V, result.H, np.array(result.losses)


def classifier(kept):
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=400)
    X = rng.poisson(1 + 2 * (np.arange(60) % 3 == y[:, None])).astype(float)
    y[60:] = -1
    model = NMFAlphaCV((4, 8), lam=(1.0, 3.0), max_iter=300, tol=0, random_state=0, **kept)
    model.fit(X, y)
    return model.parts_.components_, model.coef_, model.predict_proba(X), model.cv_results_["C"]


def baseline(kept):
    X, _ = data()
    rows = np.arange(X.shape[0])
    y = np.where(rows < 200, rows % 3, -1)
    model = SemiSupervisedNMF(16, max_iter=400, tol=0, random_state=0, **kept)
    return model.fit(X, y).components_, model.loss_curve_


CASES = {
    "mu": lambda kept: factors(kept, "mu"),
    # large enough to be looked at every tenth iteration only
    "mue with S, seldom looked at": lambda kept: factors(
        kept, "mue", r=96, supervised=True, n_iter=150
    ),
    "cd": lambda kept: factors(kept, "cd"),
    "reference": lambda kept: factors(
        kept, "mue", supervised=True, n_iter=150, backend="reference"
    ),
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


def checksum(case, **kept):
    """All that a fit found, in short."""
    found = hashlib.sha256()
    for array in CASES[case](kept):
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def campaign(cases, n_kills, folder, seed=0):
    """Kill fits until there were enough kills, and yield them; each fit ends with its right bits.

    A checkpoint that cannot be read raises.
    """
    rng, kills, path = random.Random(seed), 0, Path(folder) / "fit.ckpt"
    expected = {case: checksum(case) for case in cases}
    while kills < n_kills:
        for case in cases:
            share = min(-(-n_kills // len(cases)), n_kills - kills)
            found = ""
            while not found:
                seconds, found = live_and_die(case, path, rng, forever=share == 0)
                if not found:
                    kills, share = kills + 1, share - 1
                    yield seen(case, seconds, path)
            assert found == expected[case], f"{case} ended with other bits"
            assert not path.exists()


def live_and_die(case, path, rng, *, forever):
    """Start a fit and kill it at a random moment; return that, and the checksum if it was done."""
    with start(case, path) as running:
        seconds = rng.uniform(0, FROM_START)
        if forever or rng.random() < 0.8:
            seconds = rng.uniform(0, FROM_FIRST_LOOK)
            assert running.stdout.readline() == "ready\n"
        try:
            running.wait(600 if forever else seconds)
        except subprocess.TimeoutExpired:
            running.send_signal(signal.SIGKILL)
        found = running.stdout.read().replace("ready\n", "")
    # a process may also be killed when it has just said what it found
    assert found or running.returncode == -signal.SIGKILL
    return seconds, found.strip()


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


if __name__ == "__main__":
    checkpoint = Checkpoint(sys.argv[2], every_seconds=None, every_iterations=1)
    print(checksum(sys.argv[1], checkpoint=checkpoint, callback=say_ready), flush=True)
