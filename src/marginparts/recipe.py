"""How a model is made, as one value: checked once, and the same for the race and for the fit.

An estimator turns its parameters into a `Recipe`; everything below it takes that or a part of it.
What makes no sense is refused when a part is made, so a recipe that exists is a valid one. The
number of parts and lam are not in it: they are given when it is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from marginparts._types import Array, Callback, Data, Result
from marginparts.checkpoint import Logbook
from marginparts.directions import DirectionSpec
from marginparts.labels import Labels
from marginparts.rows.base import OutOfCore
from marginparts.solve.factorize import factorize_path, parts_of
from marginparts.solve.gaps import Gaps
from marginparts.solve.map import gram_root, map_rows, map_rows_each, mixed_codes, projection
from marginparts.solve.run_spec import RunSpec, Scales
from marginparts.solve.semi import semi_codes, semi_parts, semi_path
from marginparts.svm.class_weights import ClassWeight, check_class_weight
from marginparts.validation import check_cost, check_count, check_option

#: What a sample's codes can be: Z (eq. 5), H, the projection onto the parts, or two blocks of
#: columns ("mixed"), that projection and the square roots of the shares that each part has.
OUTPUTS = ("gram", "coefficients", "projection", "mixed")


@dataclass(frozen=True)
class MapSpec:
    """How samples are expressed in the parts: updates of H (None: to the optimum), and Z or H."""

    map_iter: int | None = 40
    output: str = "gram"

    def __post_init__(self) -> None:
        if self.map_iter is not None:
            check_count(self.map_iter, "map_iter")
        check_option(self.output, "output", OUTPUTS)


@dataclass(frozen=True)
class HeadSpec:
    """The last SVM: its cost, whether it sees codes of length 1, and the weights of the classes.

    ``normalize`` is None where that is decided later.
    """

    C: float = 2.0
    normalize: bool | None = True
    class_weight: ClassWeight = None

    def __post_init__(self) -> None:
        check_cost(self.C, "C")
        check_class_weight(self.class_weight)


@dataclass(frozen=True)
class Recipe:
    """How labels and rows become directions, parts, codes and a classifier.

    Examples
    --------
    >>> recipe = Recipe(DirectionSpec("pa"), RunSpec(max_iter=50))
    >>> recipe.tuned(direction_C=0.5, map_iter=5, C=1.0, normalize=True).map
    MapSpec(map_iter=5, output='gram')
    """

    directions: DirectionSpec = field(default_factory=DirectionSpec)
    run: RunSpec = field(default_factory=RunSpec)
    map: MapSpec = field(default_factory=MapSpec)
    head: HeadSpec = field(default_factory=HeadSpec)
    embedded: int = 0  # the last so many columns have either sign

    def tuned(
        self, *, direction_C: float, map_iter: int | None, C: float, normalize: bool
    ) -> Recipe:
        """Return the recipe with values for what may be chosen by cross-validation."""
        return replace(
            self,
            directions=replace(self.directions, C=direction_C),
            map=replace(self.map, map_iter=map_iter),
            head=replace(self.head, C=C, normalize=normalize),
        )

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of the `NMFAlpha` that is made in this way."""
        parts = (self.directions, self.run, self.map)
        found = {each.name: getattr(part, each.name) for part in parts for each in fields(part)}
        found["directions"], found["direction_C"] = found.pop("source"), found.pop("C")
        return found

    def parts(
        self,
        X: Data | OutOfCore,
        labels: Labels | None,
        S: sp.csr_array | None,
        rank: int,
        lams: Iterable[float],
        seed: int,
        *,
        weights: Array | None = None,
        S_beside: sp.csr_array | None = None,
        gaps: Gaps | None = None,
        callback: Callback | None = None,
        logbook: Logbook | None = None,
    ) -> Iterator[tuple[float, Result]]:
        """Factorize trusted data (n, d) with directions S (n, 2p), for each of some weights.

        The labels are for the start; ``weights`` (n,) say how much each row counts; what is in
        ``gaps`` of X is not known, and counts for the start and S alone. The largest
        weight of the margin components comes first; each starts afresh, so what comes of it does
        not depend on the others. See `factorize_path` for the rest. Of columns with signs there
        are parts of their own: ``beside`` in the result, with directions ``S_beside`` (n, 2q).
        """
        run = self.run
        if self.embedded:
            *words, vectors = blocks_of(X, self.embedded)
            signed = semi_path(
                vectors, S_beside if words else S, rank, lams, seed, run,
                scale=self.directions.scale, weights=weights, callback=callback,
                logbook=None if words else logbook,
            )  # fmt: skip
            if not words:
                return signed
            plain = replace(self, embedded=0).parts(
                words[0], labels, S, rank, lams, seed, weights=weights, callback=callback,
                logbook=logbook,
            )  # fmt: skip
            pairs = zip(plain, signed, strict=True)
            return ((lam, replace(own, beside=other)) for (lam, own), (_, other) in pairs)
        H, V = run.start(X, rank, seed, labels)
        scales = Scales.of(X, weights, run.feature_weight)
        found = factorize_path(
            scales.data(X), scales.start(H, V), S=scales.margins(S), lams=lams, solver=run.solver,
            max_iter=run.max_iter, warm_iter=None, tol=run.tol, backend=run.backend,
            callback=callback, logbook=logbook, steering=run.steering(X, rank, scales, gaps),
        )  # fmt: skip
        if scales.are_one:
            return found
        return ((lam, scales.back(result)) for lam, result in found)

    def codes(
        self, X: Data, result: Result, map_iters: tuple[int | None, ...],
        weights: Array | None = None,
    ) -> dict[int | None, Array]:  # fmt: skip
        """Return the codes of rows for every map into what `parts` has found.

        ``weights`` (d,) are those of the columns, for a projection.
        """
        output, backend = self.map.output, self.run.backend
        if self.embedded:
            *words, vectors = blocks_of(X, self.embedded)
            own = result if not words else result.beside
            assert own is not None
            V = np.ascontiguousarray(semi_parts(own.V).T)
            H = {}
            if output != "projection":
                mixed = output == "mixed"
                H = {n: semi_codes(vectors, V, n, backend, from_zero=mixed) for n in map_iters}
            signed = _codes_of(vectors, V, H, map_iters, output)
            if not words:
                return signed
            plain = replace(self, embedded=0).codes(words[0], result, map_iters, weights)
            return {n: np.hstack([plain[n], signed[n]]) for n in plain}
        V = parts_of(result.V, self.run.fixed).T.copy()
        H = {}
        if output != "projection":
            if counts := sorted(n for n in map_iters if n is not None):
                H.update(zip(counts, map_rows_each(X, V, counts, backend), strict=True))
            if None in map_iters:  # from the flat start too, so that it is what `map_rows` gives
                H[None] = map_rows(X, V, None, backend)
        return _codes_of(X, V, H, map_iters, output, weights)


def blocks_of(X: Any, embedded: int) -> list[Any]:
    """Return the columns without signs, if there are any, and the last ones, which may have them.

    The latter, if there are any, are dense beside others.
    """
    first = X.shape[1] - embedded
    if not embedded or not first:
        return [X]
    if isinstance(X, np.ndarray):
        return [np.ascontiguousarray(X[:, :first]), np.ascontiguousarray(X[:, first:])]
    return [X[:, :first], X[:, first:].toarray()]


def _codes_of(
    X: Data, V: Array, H: dict[int | None, Array], map_iters: tuple[int | None, ...], output: str,
    weights: Array | None = None,
) -> dict[int | None, Array]:  # fmt: skip
    """Return the codes of rows (n, d) for every map into parts V (d, r), from their coefficients.

    A projection has none, and is the same for all maps; ``weights`` (d,) are for it.
    """
    if output in ("projection", "mixed"):
        linear = X @ projection(V, weights)
        if output == "projection":
            return dict.fromkeys(map_iters, np.asarray(linear, dtype=X.dtype))
        return {n: np.asarray(mixed_codes(linear, each), dtype=X.dtype) for n, each in H.items()}
    if output == "gram":
        root = gram_root(V)
        H = {n: each @ root for n, each in H.items()}
    return {n: np.asarray(each, dtype=X.dtype) for n, each in H.items()}
