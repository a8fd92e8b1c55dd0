"""Write a small model of every class that can be saved: later versions must load them.

    python tests/app/old_models/write.py

It was run once, for 0.1.0. What each model said of some rows is in ``said-0.1.0.npz``.
"""

from pathlib import Path

import numpy as np

import marginparts as mp

X = np.random.default_rng(0).random((40, 6)) * (np.random.default_rng(1).random((40, 6)) < 0.7)
Y = np.where(np.arange(40) % 2, np.arange(40) % 3, -1)
FEW = {"max_iter": 5, "random_state": 0}

MODELS = {
    "ConstrainedNMF": lambda: mp.ConstrainedNMF(3, **FEW),
    "NMFAlpha": lambda: mp.NMFAlpha(3, **FEW),
    "NMFAlphaCV": lambda: mp.NMFAlphaCV((2, 3), lam=(1.0,), C=(1.0,), map_iter=(3,), **FEW),
    "NMFAlphaClassifier": lambda: mp.NMFAlphaClassifier(3, **FEW),
    "NMFAlphaConsensus": lambda: mp.NMFAlphaConsensus(
        mp.NMFAlpha(2, **FEW), n_runs=2, random_state=0
    ),
    "OnlineNMFAlphaClassifier": lambda: mp.OnlineNMFAlphaClassifier(
        3, batch_size=20, memory=15, random_state=0
    ),
    "SemiNMFAlpha": lambda: mp.SemiNMFAlpha(3, **FEW),
    "SemiSupervisedNMF": lambda: mp.SemiSupervisedNMF(3, **FEW),
    "TransductiveSVM": lambda: mp.TransductiveSVM(random_state=0),
}


def said_by(model, rows):
    """What a model says of rows."""
    scored = hasattr(model, "decision_function")
    return np.asarray(model.decision_function(rows) if scored else model.transform(rows))


if __name__ == "__main__":
    folder = Path(__file__).parent
    said = {"X": X[:5]}
    for name, make in MODELS.items():
        model = make().fit(X, Y)
        mp.save(model, folder / f"{name}-0.1.0.model")
        said[name] = said_by(model, X[:5])
    np.savez(folder / "said-0.1.0.npz", **said)
