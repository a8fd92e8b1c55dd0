"""marginparts: semi-supervised nonnegative matrix factorization. Parts that keep the margin.

Names are imported when first used, so that ``import marginparts`` is quick and loads no kernels.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from marginparts._version import __version__

if TYPE_CHECKING:
    from marginparts import datasets
    from marginparts._types import Result, Stop
    from marginparts.factorization import nmf_alpha

_HOME = {
    "Result": "_types",
    "Stop": "_types",
    "nmf_alpha": "factorization",
}

__all__ = [
    "Result",
    "Stop",
    "__version__",
    "datasets",
    "nmf_alpha",
]


def __getattr__(name: str) -> Any:
    if name == "datasets":
        return importlib.import_module("marginparts.datasets")
    if name not in _HOME:
        raise AttributeError(f"module 'marginparts' has no attribute {name!r}")
    return getattr(importlib.import_module(f"marginparts.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
