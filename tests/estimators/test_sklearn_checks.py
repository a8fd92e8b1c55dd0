"""scikit-learn's own checks of an estimator: none fails but two that say why, none is off."""

import warnings

import numba
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.utils import estimator_checks, get_tags
from sklearn.utils.estimator_checks import check_estimator
from threadpoolctl import threadpool_limits

from marginparts import (
    ConstrainedNMF,
    NMFAlpha,
    NMFAlphaClassifier,
    NMFAlphaConsensus,
    NMFAlphaCV,
    OnlineNMFAlphaClassifier,
    SemiNMFAlpha,
    SemiSupervisedNMF,
    TransductiveSVM,
)
from marginparts.solve.start import uniform_rows

#: Few parts and iterations: what is checked does not depend on them, only the time it takes.
LITTLE = {"n_components": 4, "max_iter": 20, "random_state": 0}
QUICK = [
    NMFAlpha(**LITTLE),
    NMFAlphaConsensus(NMFAlpha(4, max_iter=5), n_runs=2, run_iter=3, random_state=0),
    SemiNMFAlpha(**LITTLE),
    SemiSupervisedNMF(**LITTLE),
    ConstrainedNMF(**LITTLE),
    TransductiveSVM(),
]
#: As a user makes them, with what they choose by themselves; the slowest are here alone.
AS_MADE = [
    NMFAlpha(),
    NMFAlphaConsensus(),
    NMFAlphaClassifier(lam=3.0, map_iter=5),  # few candidates, to save time
    NMFAlphaCV((2, 4), lam=3.0, map_iter=5, C=(0.5, 2.0), cv=2),
    OnlineNMFAlphaClassifier(batch_size=30),
    NMFAlphaClassifier(4, embedded="all", rehearse=False),
    SemiNMFAlpha(),
    SemiSupervisedNMF(),
    ConstrainedNMF(),
]
estimators = pytest.mark.parametrize(
    "estimator",
    [
        *(pytest.param(e, id=type(e).__name__) for e in QUICK),
        pytest.param(NMFAlpha(missing="nan", **LITTLE), id="NMFAlpha-nan"),
        pytest.param(
            NMFAlphaClassifier(
                missing="nan",
                lam=3.0,
                map_iter=5,
                C=2.0,
                normalize=False,
                pseudo=None,
                rehearse=False,
                **LITTLE,
            ),
            id="NMFAlphaClassifier-nan",
            marks=pytest.mark.wide,
        ),
        *(pytest.param(e, id=f"{type(e).__name__}()", marks=pytest.mark.wide) for e in AS_MADE),
    ],
)

#: Checks that skip themselves, and the only reason for which they may.
MAY_SKIP = {
    "check_array_api_input": "SCIPY_ARRAY_API is not set",
    "check_classifiers_multilabel_output_format_predict_proba": "does not have a predict_proba",
    # it ignores the tag for nonnegative data; done with such data below
    "check_class_weight_classifiers": "Negative values in data",
}


#: The random start of a row depends on its place, so rows in another order, or given twice, start
#: elsewhere and end in another minimum, with or without weights. (One fit of the check has no
#: weights: a start by what is in a row would change all fits.) From one start for all rows both
#: checks pass: `test_weights_are_equivalent_where_the_start_is`.
MAY_FAIL = {
    f"check_sample_weight_equivalence_on_{kind}_data": "revealed that fitting with `sample_weight`"
    for kind in ("dense", "sparse")
}


@pytest.fixture(autouse=True)
def one_thread():
    """Keep to one thread: on data this small several only wait for each other."""
    threads = numba.get_num_threads()
    numba.set_num_threads(1)
    with threadpool_limits(1):
        yield
    numba.set_num_threads(threads)


@estimators
def test_every_check_passes(estimator):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(estimator, on_fail=None, on_skip=None)
    assert len(results) > 40
    assert not any(result["expected_to_fail"] for result in results)
    unhappy = {r["check_name"]: r["exception"] for r in results if r["status"] != "passed"}
    excuses = MAY_SKIP if isinstance(estimator, SemiNMFAlpha) else MAY_SKIP | MAY_FAIL
    if "cv" in estimator.get_params():  # these two give folds, and cv is a number here
        excuses |= dict.fromkeys(MAY_FAIL, "cv=[")
    unexcused = {
        name: exception
        for name, exception in unhappy.items()
        if name not in excuses or excuses[name] not in str(exception)
    }
    assert unexcused == {}


@pytest.mark.parametrize("sparse", [None, sp.csr_array])
@pytest.mark.parametrize(
    "estimator",
    [
        NMFAlpha(4, directions="class"),
        NMFAlphaClassifier(
            4, lam=3.0, map_iter=5, C=2.0, normalize=False, directions="class", rehearse=False
        ),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_weights_are_equivalent_where_the_start_is(estimator, sparse, monkeypatch):
    def alike(seed, stream, shape, first=0):
        return np.ones(shape) if stream == 0 else uniform_rows(seed, stream, shape, first)

    monkeypatch.setattr("marginparts.solve.start.uniform_rows", alike)
    estimator.set_params(solver="mu", max_iter=20, tol=0)
    estimator_checks._check_sample_weight_equivalence("it", estimator, sparse)


@estimators
def test_no_tag_switches_checks_off(estimator):
    tags = get_tags(estimator)
    assert not tags.no_validation
    assert not tags.non_deterministic
    assert not tags._skip_test
    if tags.classifier_tags is not None:
        assert not tags.classifier_tags.poor_score


@pytest.mark.parametrize(
    "make", [NMFAlphaClassifier, NMFAlphaCV, TransductiveSVM], ids=lambda cls: cls.__name__
)
def test_the_check_of_class_weights_passes_with_nonnegative_data(make, monkeypatch):
    def blobs(**options):
        X, y = make_blobs(**options)
        return X - X.min(), y

    make_blobs = estimator_checks.make_blobs
    monkeypatch.setattr(estimator_checks, "make_blobs", blobs)
    given = {"C": 2.0}
    if make is not TransductiveSVM:
        given |= {"lam": 3.0, "map_iter": 5, "normalize": False, "n_components": 2}
        given |= {"rehearse": False, "tol": 0.01}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator_checks.check_class_weight_classifiers(make.__name__, make(**given))
