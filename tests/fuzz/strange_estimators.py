"""Estimators and functions with strange arguments, or data at the edge of the numbers."""

import numpy as np
import scipy.sparse as sp
from attacking import Target

import marginparts as mp

#: Factors of the data, and types of its entries.
SCALES = (
    1.0,
    1.0,
    1.0,
    1.0,
    100.0,
    1e-3,
    1e6,
    1e-40,
    1e-300,
    1e150,
    1e300,
    1e307,
    "mixed",
    "tiny and large",
)
TYPES = (np.float64, np.float32, np.int64, np.uint8, bool, np.float16, object)

#: What any parameter may be instead.
ODD = (None, -1, 0, 1, 2, 3.5, 1e-320, 1e12, 1e308, float("nan"), float("inf"), "", "auto", [], {})

PARAMETERS = {
    "lam": (3.0, 0.0, 1e-6, 1e12), "solver": ("auto", "mu", "mue", "cd"),
    "init": ("auto", "random"), "output": ("gram", "coefficients"), "map_iter": (10, 1, None),
    "tol": (1e-4, 0.0), "directions": ("svm", "pa", "perceptron"), "multiclass": ("ovr", "ovo"),
    "direction_C": (1.0, 1e-8, 1e8), "scale": (True, False), "class_weight": (None, "balanced"),
    "alpha_W": (0.0, 0.1, 1e6), "l1_ratio": (0.0, 0.5, 1.0), "exclusivity": (0.0, 0.1),
    "missing": (None, "nan", "zeros"), "C": (1.0, 1e-8, 1e8), "normalize": (True, False),
    "half_life": (None, 1.0), "memory": (20, 0), "batch_size": (10, 1), "backend": ("auto",),
    "n_landmarks": (3,), "gamma": ("median", 1.0), "n_runs": (2,), "pseudo": (None,),
}  # fmt: skip

ESTIMATORS = {
    "NMFAlpha": {"max_iter": 4}, "SemiSupervisedNMF": {"max_iter": 4},
    "ConstrainedNMF": {"max_iter": 4}, "SemiNMFAlpha": {"max_iter": 4}, "TransductiveSVM": {},
    "OnlineNMFAlphaClassifier": {"batch_size": 10, "memory": 20, "n_iter": 2},
    "NMFAlphaClassifier": {
        "max_iter": 3, "lam": 1.0, "C": 1.0, "map_iter": 3, "pseudo": None, "rehearse": False,
    },
    "Landmarks": {"n_landmarks": 3},
}  # fmt: skip


def data(choose, rng):
    """Rows that may be empty, huge, tiny, of any type, sparse, read-only or no numbers at all."""
    n, d = choose((12, 12, 12, 4, 30, 30, 2, 1, 0)), choose((5, 5, 5, 2, 9, 9, 1, 0))
    X = rng.random((n, d)) * (rng.random((n, d)) < choose((1.0, 0.5, 0.1)))
    scale = choose(SCALES)
    if scale == "mixed":
        X = X * np.where(rng.random((n, d)) < 0.5, 1e-300, 1e300)
    elif scale == "tiny and large":
        X = X * 10.0 ** rng.integers(-30, 30, (n, d))
    else:
        X = X * scale
    if choose((False, False, True)):
        X[rng.random(n) < 0.4] = 0
    if X.size and choose((False, False, False, True)):
        X.reshape(-1)[rng.integers(X.size)] = choose((np.nan, np.inf, -1.0, -0.0))
    with np.errstate(all="ignore"):
        X = X.astype(choose((*[np.float64] * 5, *TYPES)))
    form = choose(
        ("dense", "dense", "csr", "csr", "csc", "fortran", "frozen", "list", "coo", "one row")
    )
    if form in ("csr", "csc", "coo") and X.dtype.kind in "fiub" and X.dtype != np.float16:
        return sp.coo_array(X).asformat(form)
    if form == "fortran":
        return np.asfortranarray(X)
    if form == "frozen":
        X.setflags(write=False)
    return X.tolist() if form == "list" else X[0] if form == "one row" and n else X


def labels(choose, rng, n):
    """Labels, most of them such that they can be used."""
    y = rng.integers(-1, 3, n)
    return choose(
        (y, y, y, y, np.where(y > 1, 1, y), np.array(["", "a", "b", "c"], object)[y + 1],
         np.full(n, -1), np.zeros(n, int), y.astype(float), y[:-1], None, y.tolist(),
         np.full(n, np.nan), (rng.random((n, 3)) < 0.4).astype(int),
         np.array([None, "a"], object)[y % 2])
    )  # fmt: skip


def _copied(value):
    return value.copy() if hasattr(value, "copy") else value


def _same(a, b):
    if sp.issparse(a):
        return all(_same(getattr(a.tocsr(), k), getattr(b.tocsr(), k)) for k in ("data", "indices"))
    if isinstance(a, np.ndarray) and a.dtype.kind != "O":
        return a.dtype == b.dtype and a.tobytes() == b.tobytes()
    return repr(a) == repr(b)


def _finite(name, value, *, least=None):
    value = value.data if sp.issparse(value) else np.asarray(value)
    assert np.isfinite(value).all(), f"{name} is not finite"
    if least is not None and value.size:
        assert value.min() >= least, f"{name} has {value.min()}"


def look(model, X):
    """What came out is finite, and parts are 0 or larger."""
    signed = type(model).__name__ == "SemiNMFAlpha"
    if hasattr(model, "components_") and not callable(model.components_):
        _finite("components_", model.components_, least=None if signed else 0)
    if hasattr(model, "loss_curve_"):
        _finite("loss_curve_", model.loss_curve_, least=None if signed else 0)
    for name in ("transform", "decision_function", "predict_proba"):
        if hasattr(model, name):
            _finite(name, getattr(model, name)(X))
    if hasattr(model, "predict"):
        model.predict(X)


def fit_estimator(choose, X, y):
    """Fit one with some parameters, of which one may make no sense."""
    name = choose(tuple(ESTIMATORS))
    cls = getattr(mp, name)
    known = cls._get_param_names()
    given = dict(ESTIMATORS[name], random_state=0)
    if "n_components" in known:
        given["n_components"] = choose((2, 1, 3))
    for _ in range(choose((0, 1, 2))):
        key = choose(tuple(key for key in PARAMETERS if key in known))
        given[key] = choose(PARAMETERS[key])
    if choose((False, False, True)):
        given[choose(tuple(k for k in known if k not in ("callback", "checkpoint")))] = choose(ODD)
    if isinstance(given.get("max_iter"), int | float) and given["max_iter"] > 1e4:
        given["max_iter"] = 4  # that many would be done
    model = cls(**given)
    look(model.fit(X, y), X)


def call_function(choose, X, y):
    """Call a function."""
    name = choose(("nmf_alpha", "nmf_alpha_path", "margin_directions", "class_start"))
    if name == "margin_directions":
        _finite(name, mp.margin_directions(X, y, C=choose((1.0, 1e-8, 1e8, -1, "x"))), least=0)
    elif name == "class_start":
        for each in mp.class_start(X, y, choose((2, 1, 5, 0, "x")), random_state=0):
            _finite(name, each, least=0)
    else:
        S = mp.margin_directions(X, y)
        how = {"max_iter": 4, "random_state": 0, "solver": choose(("auto", "mu", "mue", "cd"))}
        if name == "nmf_alpha":
            lam = choose((3.0, 0.0, 1e12, 1e308, -1, "x"))
            found = [mp.nmf_alpha(X, choose((2, 3)), S=choose((S, None)), lam=lam, **how)]
        else:
            lams = choose(((0.0, 1.0), (1.0, 1e8), (), (-1,)))
            found = mp.nmf_alpha_path(X, 2, S=S, lams=lams, **how)
        for each in found:
            _finite("V", each.V, least=0)
            _finite("H", each.H, least=0)
            _finite("losses", each.losses, least=0)


def one_case(choose, rng):
    """Return whether it was fitted; else it was refused, with a sentence."""
    X = data(choose, rng)
    y = labels(choose, rng, X.shape[0] if hasattr(X, "shape") else len(X))
    before = _copied(X), _copied(y)
    try:
        (fit_estimator if choose((True, True, False)) else call_function)(choose, X, y)
    except (ValueError, TypeError) as error:
        said = str(error)
        if not said.rstrip().endswith((".", "instead", "required")) or len(said) > 2000:
            raise
        return False
    finally:
        assert _same(X, before[0]), "X was changed"
        assert _same(y, before[1]), "y was changed"
    return True


def attack_estimators(folder):
    """Arguments drawn at random."""
    return lambda rng: one_case(lambda options: options[rng.integers(len(options))], rng)


TARGETS = {"estimators": Target(attack_estimators, 0)}
