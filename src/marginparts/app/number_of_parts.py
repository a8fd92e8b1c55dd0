"""How many parts a model of a file may have, beside those that it takes from other models."""

from typing import Any, NamedTuple

import numpy as np

from marginparts._types import Array
from marginparts.app.preparation import PreparationError
from marginparts.app.readers import Layout
from marginparts.solve.prior import count_parts

#: Parts that are learned beside fixed ones, unless their number is given.
_BESIDE = 16


class OtherParts(NamedTuple):
    """Parts (k, d) of other models: some to stay near, some that stay as they are, or None."""

    prior: Array | None
    fixed: Array | None

    @property
    def number(self) -> int | str:
        """The number of parts that these ask for."""
        if self.fixed is not None:
            return len(self.fixed) + (_BESIDE if self.prior is None else len(self.prior))
        return "auto" if self.prior is None else len(self.prior)

    @property
    def least(self) -> int:
        """The least number of parts that has room for these."""
        kept = count_parts(self.fixed)
        return kept + max(count_parts(self.prior), 1 if kept else 0)

    def check_room(self, ranks: Any) -> None:
        """Refuse numbers of parts that have no room for these."""
        if ranks == "auto" or np.min(ranks) >= self.least:
            return
        counts = {"fixed model": count_parts(self.fixed), "prior": count_parts(self.prior)}
        given = " and ".join(f"the {what} has {n} parts" for what, n in counts.items() if n)
        raise PreparationError(
            f"{given[0].upper()}{given[1:]}, so --components must be {self.least} or more; raise "
            "it, or leave it out."
        )


def check_most(
    ranks: Any, others: OtherParts, shape: tuple[int, ...], layout: Layout, source: str
) -> None:
    """Refuse more parts than rows or columns, unless other models have as many.

    The estimators only warn of it; here the work would be minutes, and the warning is not shown.
    """
    n, d = shape
    most = max(min(n, d), others.least)
    if ranks == "auto" or np.max(ranks) <= most:
        return
    columns = "words" if layout.kind == "text" and not layout.vectors else "columns"
    raise PreparationError(
        f"--components {np.max(ranks)} is too much: {source} has {n} rows and {d} {columns} that "
        f"count, and more parts than the smaller number are not unique; give {most} or less, best "
        "far less."
    )
