"""How many parts, without labels: fit some of the entries, and predict the others.

More parts fit what they see ever better, but not what they do not see. ``docs/math.md``, section
20, says which entries are hidden, and why that costs next to nothing on sparse data.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product

import numpy as np
import scipy.sparse as sp

from marginparts._types import Array, Callback, Data, Samples, Seed
from marginparts.backends import Backend
from marginparts.losses.nmf_alpha import Steering
from marginparts.solve.factorize import factorize
from marginparts.solve.gaps import Blocks
from marginparts.solve.run_spec import RunSpec
from marginparts.solve.start import random_start
from marginparts.validation import check_count, check_mass, check_matrix, seed_of

#: The share of a fit that is the product of the row's and the column's sums.
_SHARE = 0.01

#: Hidden entries whose fit is computed at a time, times parts.
_CHUNK = 1 << 22


@dataclass(frozen=True)
class PartsChoice:
    """How well parts predict entries that were hidden from them; what `how_many_parts` returns.

    Attributes
    ----------
    ranks : (m,) array of int
        The numbers of parts that were tried.
    losses : (m, groups) array
        The divergence of a hidden entry from its prediction, on average over each of several
        groups of hidden entries, which are the same for all numbers of parts.

    Examples
    --------
    >>> import numpy as np
    >>> from marginparts import PartsChoice
    >>> tried = PartsChoice(np.array([1, 2, 4]), np.array([[3.0, 3.2], [1.0, 1.2], [0.8, 1.25]]))
    >>> tried.least, tried.best
    (4, 2)
    """

    ranks: Array
    losses: Array

    @property
    def mean(self) -> Array:
        """The divergence of a hidden entry for each number of parts (m,)."""
        return self.losses.mean(axis=1)

    @property
    def error(self) -> Array:
        """The standard error of each mean's distance from the least of them (m,)."""
        apart = self.losses - self.losses[self.mean.argmin()]
        return apart.std(axis=1, ddof=1) / np.sqrt(apart.shape[1])

    @property
    def least(self) -> int:
        """The number of parts that predicts best."""
        return int(self.ranks[self.mean.argmin()])

    @property
    def best(self) -> int:
        """The smallest number of parts that is no more than one standard error behind."""
        near = self.mean - self.mean.min() <= self.error
        return int(self.ranks[near].min())


def how_many_parts(
    X: Samples,
    ranks: Iterable[int],
    *,
    share: float = 0.1,
    folds: int = 3,
    max_iter: int = 200,
    tol: float = 1e-4,
    backend: str | Backend = "auto",
    random_state: Seed = None,
    callback: Callback | None = None,
) -> PartsChoice:
    """Try numbers of parts on entries of X that are hidden from the fit.

    Parameters
    ----------
    X : (n, d) array or sparse matrix
        Nonnegative data. Its zeros are known, and hidden like all other entries.
    ranks : iterable of int
        Numbers of parts to try.
    share : float
        The share of entries that is hidden, at most one half.
    folds : int
        How often other entries are hidden. Each costs one fit for each number of parts.
    max_iter, tol, backend
        As for `nmf_alpha`.
    random_state : int, RandomState, Generator or None
        Seed of what is hidden and of the starts.
    callback : callable or None
        Called with a `Progress` that counts the fits; a true answer ends the fit under way.

    Returns
    -------
    PartsChoice
        With ``best``, ``least``, ``ranks``, ``mean`` and ``error``.

    Examples
    --------
    >>> import numpy as np
    >>> from marginparts import how_many_parts
    >>> rng = np.random.default_rng(0)
    >>> X = rng.poisson(rng.gamma(0.3, 4.0, (80, 3)) @ rng.gamma(0.3, 1.0, (3, 60)))
    >>> how_many_parts(X, range(1, 6), random_state=0).best
    3
    """
    data = check_matrix(X, "how_many_parts")
    check_mass(data, "how_many_parts")
    tried = np.unique([check_count(rank, "ranks") for rank in ranks])
    count, (n, d) = _groups(share, data.shape), data.shape
    if check_count(folds, "folds") > count:
        raise ValueError(f"folds={folds!r} times share={share!r} is more than all entries.")
    if not len(tried):
        raise ValueError("ranks has no number of parts to try.")
    run = RunSpec("random", "mue", max_iter, tol, backend)
    seed = seed_of(random_state)
    rng = np.random.default_rng(seed)
    rows, columns = rng.permutation(n) % count, rng.permutation(d) % count
    losses: list[Array] = []
    for done, (rank, fold) in enumerate(product(tried, range(folds))):
        heard = None if callback is None else _counted(callback, done, len(tried) * folds)
        gaps = Blocks(rows, columns, fold, count)
        losses.append(_predicted(data, gaps, int(rank), run, seed, heard))
    return PartsChoice(tried, np.reshape(losses, (len(tried), folds * count)))


def _counted(callback: Callback, done: int, planned: int) -> Callback:
    """Return a callback that is told how many fits are done."""
    return lambda progress: callback(
        progress._replace(stage="choosing", iteration=done, max_iter=planned)
    )


def _groups(share: float, shape: tuple[int, ...]) -> int:
    """Return the number of groups of rows, and of columns."""
    if not 0 < share <= 0.5:
        raise ValueError(f"share={share!r} must be a number above 0, and at most 0.5.")
    count = round(1 / share)
    if min(shape) < count:
        raise ValueError(
            f"X has {min(shape)} rows or columns, too few to hide a share of {share:g} of each; "
            "hide more."
        )
    return count


def _predicted(
    X: Data, gaps: Blocks, rank: int, run: RunSpec, seed: int, callback: Callback | None
) -> Array:
    """Return the mean divergence of the hidden entries of each group of rows."""
    known = gaps.known(X)
    check_mass(known, "how_many_parts")
    H, V = random_start(known, rank, seed)
    found = factorize(
        known, H, V, solver=run.solver, max_iter=run.max_iter, tol=run.tol, backend=run.backend,
        steering=Steering(gaps=gaps), callback=callback,
    )  # fmt: skip
    H, V = _with_a_share_of_the_margins(known, found.H, found.V)
    groups = np.arange(gaps.count)
    partners = (gaps.fold - groups) % gaps.count
    own, other = (
        np.array([A[of == group].sum(axis=0) for group in groups])
        for A, of in ((H, gaps.rows), (V, gaps.columns))
    )
    fit = np.einsum("gk,gk->g", own, other[partners])
    sizes = np.bincount(gaps.rows) * np.bincount(gaps.columns)[partners]
    return np.asarray((fit + _log_terms(X, gaps, H, V)) / sizes)


def _with_a_share_of_the_margins(known: Data, H: Array, V: Array) -> tuple[Array, Array]:
    """Return factors with one more part, in float64: no entry of their product is 0."""
    rows, columns = (np.asarray(known.sum(axis=a, dtype=np.float64)).ravel() for a in (1, 0))
    sums = [margin + _SHARE * margin.mean() for margin in (rows, columns)]
    least = (sums[0] * (_SHARE / rows.sum()))[:, None]
    return np.hstack([(1 - _SHARE) * H.astype(np.float64), least]), np.column_stack([V, sums[1]])


def _log_terms(X: Data, gaps: Blocks, H: Array, V: Array) -> Array:
    """Return ``sum x log(x / h.v) - x`` over the hidden entries of each group of rows."""
    hidden = sp.coo_array(gaps.hidden(X))
    terms = np.zeros(gaps.count)
    step = max(_CHUNK // V.shape[1], 1)
    for first in range(0, hidden.nnz, step):
        i, j, x = (part[first : first + step] for part in (hidden.row, hidden.col, hidden.data))
        x = x.astype(np.float64)
        fitted = np.einsum("ek,ek->e", H[i], V[j])
        terms += np.bincount(gaps.rows[i], x * np.log(x / fitted) - x, gaps.count)
    return terms
