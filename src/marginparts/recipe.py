"""From labels and rows to parts, in one place: for the candidates of a race and for the fit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from marginparts._types import Callback, Result
from marginparts.backends import Backend
from marginparts.checkpoint import Logbook
from marginparts.directions import Directions, Source, find_directions
from marginparts.labels import Labels
from marginparts.solve.factorize import factorize_path, start_from
from marginparts.svm.class_weights import ClassWeight


class Recipe(NamedTuple):
    """How labels and rows become parts; the number of parts and lam are said when it is used.

    The fields are the parameters of `NMFAlpha` with the same names; ``cost`` is its ``C``.
    """

    directions: str | Source = "svm"
    multiclass: str = "ovr"
    cost: float = 1.0
    scale: bool = True
    features: Any = None
    pseudo: str | None = None
    class_weight: ClassWeight = None
    init: Any = "auto"
    solver: str = "auto"
    max_iter: int = 100
    tol: float = 1e-4
    backend: str | Backend = "auto"

    def margin(self, X: Any, labels: Labels, seed: int) -> Directions:
        """Return the directions that are to survive."""
        return find_directions(
            X, labels, features=self.features, source=self.directions, multiclass=self.multiclass,
            C=self.cost, scale=self.scale, pseudo=self.pseudo, class_weight=self.class_weight,
            seed=seed,
        )  # fmt: skip

    def parts(
        self,
        X: Any,
        labels: Labels | None,
        S: Any,
        rank: int,
        lams: Iterable[float],
        seed: int,
        *,
        callback: Callback | None = None,
        logbook: Logbook | None = None,
    ) -> Iterator[tuple[float, Result]]:
        """Factorize for each of some weights.

        Parameters
        ----------
        X : (n, d) trusted data
        labels : Labels or None
            For the start.
        S : (n, 2p) or None
            What `margin` found for these labels.
        rank : int
        lams : iterable of float
            Each starts afresh: what comes of it does not depend on the others.
        seed : int
        callback, logbook : see `factorize_path`

        Yields
        ------
        (lam, Result)
            The largest weight first.
        """
        H, V = start_from(self.init, X, rank, seed, labels)
        return factorize_path(
            X, H, V, S=S, lams=lams, solver=self.solver, max_iter=self.max_iter, warm_iter=None,
            tol=self.tol, backend=self.backend, callback=callback, logbook=logbook,
        )  # fmt: skip
