"""Checks at the boundary. Past this point arrays are trusted.

Every error message is one sentence that says what to do.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, DTypeLike
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array

from marginparts._types import Array, Data, Init, Samples, Seed

DTYPES = (np.float64, np.float32)

LEAST_COST, MOST_COST = 1e-100, 1e100

_NO_TEXTS = (
    "X holds texts; count their words first, with sklearn.feature_extraction.text.CountVectorizer "
    "for example, or give a file of texts to marginparts.fit_file."
)


def check_matrix(X: Samples, whom: str) -> Data:
    """Return X as a C-ordered array or canonical CSR of float32 or float64; X is never changed."""
    with plain_words():
        X = check_array(
            on_the_host(X), accept_sparse="csr", dtype=DTYPES, order="C", input_name="X"
        )
    return as_nonnegative(X, whom)


@contextmanager
def plain_words(*, signs: bool = False) -> Iterator[None]:
    """Say what to do about missing values and texts; scikit-learn names another model.

    Nothing can be left out of data with ``signs``, and 0 is not "nothing" there.
    """
    try:
        yield
    except ValueError as error:
        if "could not convert string to float" in str(error):
            raise ValueError(_NO_TEXTS) from None
        if "X contains NaN" not in str(error):
            raise
        way_out = (
            "set it to 0 where nothing was counted, leave it out with "
            'missing="nan", which NMFAlpha and its classifiers take, '
        )
        raise ValueError(
            f"Input X contains NaN, a value that is missing; {'' if signs else way_out}fill it "
            "with sklearn.impute.SimpleImputer, or drop its row."
        ) from None


def on_the_host(X: Any) -> Any:
    """Return a torch tensor, dense or CSR and on any device, as an array or CSR; all else as it is.

    Torch is not imported for it: who has a tensor has done so. Texts are refused.
    """
    if _are_texts(X):
        raise ValueError(_NO_TEXTS)
    if type(X).__module__.partition(".")[0] != "torch":
        return X
    X = X.detach().cpu()
    if X.layout == type(X)().layout:  # strided
        return X.numpy()
    X = X.to_sparse_csr()
    parts = (X.values(), X.col_indices(), X.crow_indices())
    return sp.csr_array(tuple(part.numpy() for part in parts), shape=tuple(X.shape))


def _are_texts(X: Any) -> bool:
    """Whether X is a list, an array or a column of strings."""
    if isinstance(X, str):
        return True
    if isinstance(X, list | tuple) or (getattr(X, "ndim", 0) == 1 and not is_dask(X)):
        return isinstance(next(iter(X), None), str)
    return False


def is_dask(X: object) -> bool:
    """Whether X is a Dask array or DataFrame. Dask is not imported for it."""
    return type(X).__module__.startswith(("dask.", "dask_expr"))


def as_nonnegative(X: Data, whom: str) -> Data:
    """Check the sign of numeric data, and bring sparse data into canonical form."""
    check_signs(X, whom)
    return canonical(X)


def check_signs(X: Data, whom: str) -> None:
    """Refuse entries below zero."""
    if has_signs(X):
        raise ValueError(
            f"Negative values in data passed to {whom}; every entry of X must be 0 or larger, so "
            "shift, clip or rescale it first, or if its columns are coordinates of an embedding, "
            "use NMFAlphaClassifier(embedded='all') or SemiNMFAlpha."
        )


def has_signs(X: Data) -> bool:
    """Whether there is an entry below zero; one that is missing is not."""
    entries: Any = X.data if sp.issparse(X) else X
    return bool(np.fmin.reduce(entries, axis=None, initial=0) < 0)


def canonical(X: Data) -> Data:
    """Bring sparse data into canonical form: no duplicates, no stored zeros, short indices."""
    if not sp.issparse(X):
        return X
    X = with_short_indices(sp.csr_array(X))
    if not X.has_canonical_format or (X.data == 0).any():
        X = X.copy()
        X.sum_duplicates()
        X.eliminate_zeros()
    return X


def with_short_indices(X: sp.csr_array) -> sp.csr_array:
    """Return X with indices of 32 bits where they suffice: half the memory, and one kernel."""
    if X.indices.dtype == np.int32 or max(X.nnz, *X.shape) >= 2**31:
        return X
    arrays = X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return sp.csr_array(arrays, shape=X.shape, copy=False)


def check_mass(X: Data, whom: str) -> None:
    """Refuse data without a single positive entry, or with a sum that leaves the range."""
    total = check_sum(X, whom)
    if total <= 0:
        raise ValueError(f"{whom} needs at least one positive entry in X; all are zero.")
    if total / (X.shape[0] * X.shape[1]) < float(np.finfo(X.dtype).tiny):
        raise ValueError(
            f"The entries of X passed to {whom} are too small for {X.dtype}; multiply X so that "
            "its mean is near 1."
        )


def check_signed(X: Data, whom: str, embedded: int) -> None:
    """Refuse data that is all zero, or whose squares leave the range of its type.

    The last columns are the ``embedded`` ones, which may have either sign. Beside words, they must
    be large enough by themselves, or all zero.
    """
    entries: Any = X.data if sp.issparse(X) else X
    if not (largest := _largest(X)):
        raise ValueError(f"{whom} needs at least one entry of X that is not zero.")
    check_squares(np.array([[largest * entries.size**0.5]]), whom, X.dtype)
    if embedded < X.shape[1]:
        largest = _largest(X[:, X.shape[1] - embedded :])
    # entries that count beside the largest have squares of full precision, too
    least = float(np.sqrt(np.finfo(X.dtype).tiny / np.finfo(X.dtype).eps))
    if 0 < largest < least:
        what, way_out = "entries of X", "divide X by its largest entry"
        if embedded < X.shape[1]:
            what, way_out = "embedded columns of X", "divide them by their largest entry"
        raise ValueError(
            f"The {what} passed to {whom} are too small to be squared in {X.dtype}; {way_out}."
        )


def _largest(X: Data) -> float:
    """Return the largest magnitude in data, without a copy of it."""
    entries: Any = X.data if sp.issparse(X) else X
    return max(float(entries.max(initial=0)), -float(entries.min(initial=0)))


def check_sum(X: Data, whom: str) -> float:
    """Return the sum of X, which must be finite."""
    with np.errstate(over="ignore"):
        # of the stored entries: SciPy's sum of a matrix would put them in order, in place
        entries: Any = X.data if sp.issparse(X) else X
        total = float(entries.sum(dtype=np.float64))
        if np.isnan(total):  # what is missing was allowed to be
            total = float(np.nansum(entries, dtype=np.float64))
    if not np.isfinite(total):
        raise ValueError(
            f"The entries of X passed to {whom} are too large to be summed; divide X by its "
            "largest entry."
        )
    return total


def check_squares(X: Data, whom: str, dtype: DTypeLike = np.float64) -> None:
    """Refuse data whose squares leave the range of a type."""
    entries = np.asarray(X.data if sp.issparse(X) else X)
    most = float(np.finfo(dtype).max)
    largest = float(np.abs(entries).max(initial=0))
    if largest > 0 and not entries.size * largest * largest < most:
        raise ValueError(
            f"The entries of X passed to {whom} are too large to be squared; divide X by its "
            "largest entry."
        )


def check_nonnegative(value: object, name: str) -> float:
    """Return a finite number, 0 or larger."""
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 <= float(value) < np.inf:
        raise ValueError(f"{name}={value!r} must be a finite number, 0 or larger.")
    return float(value)


def check_positive(value: object, name: str) -> float:
    """Return a finite number larger than zero."""
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 < float(value) < np.inf:
        raise ValueError(f"{name}={value!r} must be a finite number larger than 0.")
    return float(value)


def check_cost(value: object, name: str) -> float:
    """Return a cost of an SVM, whose multiples stay within range."""
    if check_positive(value, name) > MOST_COST:
        raise ValueError(f"{name}={value!r} must be at most {MOST_COST:g}.")
    if check_positive(value, name) < LEAST_COST:
        raise ValueError(f"{name}={value!r} must be at least {LEAST_COST:g}.")
    return check_positive(value, name)


def check_count(value: object, name: str, least: int = 1) -> int:
    """Return an integer that is not too small."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name}={value!r} must be an integer, {least} or larger.")
    return int(value)


def check_option(value: object, name: str, options: tuple[str, ...]) -> str:
    """Return one of a few words."""
    if not isinstance(value, str) or value not in options:
        raise ValueError(f"{name}={value!r} is unknown; choose one of {', '.join(options)}.")
    return str(value)


def seed_of(random_state: Seed) -> int:
    """Return one integer seed from ``None``, an int, a RandomState or a Generator.

    It has 32 bits, which is what scikit-learn takes; a larger int is hashed to that.

    Examples
    --------
    >>> seed_of(7), seed_of(2**40) == seed_of(0)
    (7, False)
    """
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    if not isinstance(random_state, Integral):
        try:
            return int(check_random_state(random_state).randint(2**31 - 1))
        except ValueError:
            raise ValueError(
                f"random_state={random_state!r} must be an int, 0 or larger, a RandomState, a "
                "Generator or None."
            ) from None
    seed = int(random_state)
    if seed < 0:
        raise ValueError(f"random_state={seed} must be 0 or larger.")
    return seed if seed < 2**32 else int(np.random.SeedSequence(seed).generate_state(1)[0])


def check_rank(n_components: object, shape: tuple[int, int]) -> int:
    """Return the number of components; warn when it is larger than the data."""
    r = check_count(n_components, "n_components")
    if r > min(shape):
        warnings.warn(
            f"n_components={r} is larger than the number of samples or features {shape}; "
            "the factorization is not unique then, and a smaller number is usually better.",
            UserWarning,
            stacklevel=3,
        )
    return r


def check_start(
    start: Init, shape: tuple[int, int], r: int, dtype: DTypeLike
) -> tuple[Array, Array]:
    """Return a pair ``(H, V)`` of nonnegative factors in the data's type."""
    if not isinstance(start, tuple | list) or len(start) != 2:
        raise ValueError("init must be the name of a start or a pair (H, V).")
    factors = []
    for name, factor, rows in (("H", start[0], shape[0]), ("V", start[1], shape[1])):
        factor = check_array(factor, dtype=dtype, order="C", input_name=f"init {name}")
        if factor.shape != (rows, r):
            raise ValueError(f"{name} of init has shape {factor.shape}; it must be {(rows, r)}.")
        if factor.min() < 0:
            raise ValueError(f"{name} of init has negative entries; all must be 0 or larger.")
        factors.append(factor)
    return factors[0], factors[1]


def check_weights(weights: ArrayLike, name: str, count: int | None = None) -> Array:
    """Return weights in float64, finite, 0 or larger and not all 0, in a copy."""
    try:
        weights = np.array(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numbers, one for each of them.") from None
    if weights.ndim != 1 or count not in (None, len(weights)):
        raise ValueError(
            f"{name} has shape {weights.shape}; it must have one number for each of "
            f"{'them' if count is None else count}."
        )
    if not np.isfinite(weights).all() or (weights < 0).any() or not (weights > 0).any():
        raise ValueError(f"{name} must be finite numbers, 0 or larger and not all zero.")
    return weights


def check_directions(S: Samples, n: int, dtype: DTypeLike) -> sp.csr_array:
    """Return S (n, 2p) as nonnegative CSR in the data's type."""
    S = check_array(S, accept_sparse="csr", dtype=dtype, ensure_min_features=0, input_name="S")
    if S.shape[0] != n:
        raise ValueError(f"S has {S.shape[0]} rows and X has {n}; they must be equal.")
    S = sp.csr_array(S)
    if S.nnz and S.data.min() < 0:
        raise ValueError("S has negative entries; dual coefficients must be 0 or larger.")
    return S
