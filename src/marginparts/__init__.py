"""marginparts: semi-supervised nonnegative matrix factorization. Parts that keep the margin.

Names are imported when first used, so that ``import marginparts`` is quick and loads no kernels.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from marginparts._version import __version__

if TYPE_CHECKING:
    from marginparts import datasets
    from marginparts._types import Progress, Result, Stop
    from marginparts._version import show_versions
    from marginparts.app.fitting import fit_file
    from marginparts.app.model_file import load, save
    from marginparts.checkpoint import Checkpoint
    from marginparts.directions import margin_directions
    from marginparts.estimators import (
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
    from marginparts.estimators.editing import edit_parts
    from marginparts.estimators.landmarks import Landmarks
    from marginparts.estimators.progress import ProgressBar
    from marginparts.labeling import Labeling
    from marginparts.matching import match_parts
    from marginparts.partly_labeled import LabeledKFold, LabeledOnly
    from marginparts.plots import (
        plot_choice,
        plot_components,
        plot_loss,
        plot_path,
        plot_ranks,
        plot_stability,
        top_words,
    )
    from marginparts.rows.disk import open_rows
    from marginparts.seeds import seed_columns
    from marginparts.selection.held_out import PartsChoice, how_many_parts
    from marginparts.solve.factorize import nmf_alpha, nmf_alpha_path
    from marginparts.solve.prior import carried_parts
    from marginparts.solve.start import class_start
    from marginparts.topics import TopicView, to_pyldavis, topic_view

#: The module each public name lives in.
_HOME = {
    "Checkpoint": "checkpoint",
    "ConstrainedNMF": "estimators",
    "LabeledKFold": "partly_labeled",
    "LabeledOnly": "partly_labeled",
    "Labeling": "labeling",
    "Landmarks": "estimators.landmarks",
    "NMFAlpha": "estimators",
    "NMFAlphaCV": "estimators",
    "NMFAlphaClassifier": "estimators",
    "NMFAlphaConsensus": "estimators",
    "OnlineNMFAlphaClassifier": "estimators",
    "PartsChoice": "selection.held_out",
    "Progress": "_types",
    "ProgressBar": "estimators.progress",
    "Result": "_types",
    "SemiNMFAlpha": "estimators",
    "SemiSupervisedNMF": "estimators",
    "Stop": "_types",
    "TopicView": "topics",
    "TransductiveSVM": "estimators",
    "carried_parts": "solve.prior",
    "class_start": "solve.start",
    "edit_parts": "estimators.editing",
    "fit_file": "app.fitting",
    "how_many_parts": "selection.held_out",
    "load": "app.model_file",
    "margin_directions": "directions",
    "match_parts": "matching",
    "nmf_alpha": "solve.factorize",
    "nmf_alpha_path": "solve.factorize",
    "open_rows": "rows.disk",
    "plot_choice": "plots",
    "plot_components": "plots",
    "plot_loss": "plots",
    "plot_path": "plots",
    "plot_ranks": "plots",
    "plot_stability": "plots",
    "save": "app.model_file",
    "seed_columns": "seeds",
    "show_versions": "_version",
    "to_pyldavis": "topics",
    "top_words": "plots",
    "topic_view": "topics",
}

__all__ = [
    "Checkpoint",
    "ConstrainedNMF",
    "LabeledKFold",
    "LabeledOnly",
    "Labeling",
    "Landmarks",
    "NMFAlpha",
    "NMFAlphaCV",
    "NMFAlphaClassifier",
    "NMFAlphaConsensus",
    "OnlineNMFAlphaClassifier",
    "PartsChoice",
    "Progress",
    "ProgressBar",
    "Result",
    "SemiNMFAlpha",
    "SemiSupervisedNMF",
    "Stop",
    "TopicView",
    "TransductiveSVM",
    "__version__",
    "carried_parts",
    "class_start",
    "datasets",
    "edit_parts",
    "fit_file",
    "how_many_parts",
    "load",
    "margin_directions",
    "match_parts",
    "nmf_alpha",
    "nmf_alpha_path",
    "open_rows",
    "plot_choice",
    "plot_components",
    "plot_loss",
    "plot_path",
    "plot_ranks",
    "plot_stability",
    "save",
    "seed_columns",
    "show_versions",
    "to_pyldavis",
    "top_words",
    "topic_view",
]


def __getattr__(name: str) -> Any:
    if name == "datasets":
        return importlib.import_module("marginparts.datasets")
    if name not in _HOME:
        raise AttributeError(f"module 'marginparts' has no attribute {name!r}")
    return getattr(importlib.import_module(f"marginparts.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
