"""Methods by name: the paper's, those past it, and any transformer of your own."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from functools import partial
from typing import Any

from marginparts.experiments.methods import (
    Method,
    lda,
    lee2010,
    liu_wu2010,
    nmf,
    nmf_alpha,
    own_method,
    pca,
    raw_svm,
    raw_tsvm,
)
from marginparts.experiments.past_paper import SHARES, pseudo_parts, transductive_parts

_ON_CODES = ("map_iters", "costs", "max_iter")
_ALPHA = (*_ON_CODES, "lams", "direction_costs", "warm_iter")


def _alpha(title: str, **options: Any) -> Method:
    """Return NMF-alpha with one thing changed."""
    settings = _ALPHA if options.get("scale", True) else (*_ALPHA, "literal_lams")
    return Method(f"NMF-alpha{title}", partial(nmf_alpha, **options), settings)


METHODS = {
    "svm": Method("raw SVM", raw_svm, ("raw_costs",), labels=False, ranks="none"),
    "tsvm": Method("raw TSVM", raw_tsvm, ("tsvm_costs", "raw_costs"), ranks="none"),
    "pca": Method("PCA", pca, ("costs",), labels=False, ranks="all"),
    "lda": Method("LDA", lda, ("lda_inputs", "shrinkages", "costs"), labels=False, ranks="none"),
    "nmf": Method("NMF", nmf, _ON_CODES, labels=False),
    "lee2010": Method("Lee et al. 2010", lee2010, (*_ON_CODES, "lee_lams")),
    "liu_wu2010": Method("Liu & Wu 2010", liu_wu2010, _ON_CODES),
    "nmf_alpha": _alpha(""),
    "nmf_alpha_ovr": _alpha(", one-vs-rest", multiclass="ovr"),
    "nmf_alpha_class": _alpha(", class sums", source="class"),
    "nmf_alpha_perceptron": _alpha(", perceptron", source="perceptron"),
    "nmf_alpha_pa": _alpha(", passive-aggressive", source="pa"),
    "nmf_alpha_h": _alpha(", H for Z", gram=False),
    "nmf_alpha_literal": _alpha(", S not scaled", scale=False),
    "nmf_alpha_random": _alpha(", random start", init="random"),
    "pseudo_parts": Method(
        "class sums with guessed labels", pseudo_parts, (*_ON_CODES, "lams", "warm_iter")
    ),
    "transductive_parts": Method(
        "transductive SVM on parts",
        transductive_parts,
        (*_ON_CODES, "lams", "direction_costs", "tsvm_costs"),
    ),
    "tsvm_shares": Method(
        "raw TSVM, class share tuned",
        partial(raw_tsvm, shares=SHARES),
        ("tsvm_costs", "raw_costs"),
        ranks="none",
    ),
}


def title_of(name: str) -> str:
    """Return how a method is named in print; a transformer is named by its class."""
    return METHODS[name].title if name in METHODS else name.rpartition(":")[2]


def method_named(name: str) -> Method:
    """Return a method of the paper by its name, or a transformer by ``package.module:Class``."""
    if name in METHODS:
        return METHODS[name]
    module, _, cls = name.partition(":")
    if not cls:
        raise ValueError(
            f"Unknown method {name!r}; it is one of {', '.join(METHODS)}, or a scikit-learn "
            "transformer written as package.module:Class."
        )
    make = _class_named(name, module, cls)
    try:
        source = inspect.getsource(make)
    except (OSError, TypeError):  # it has none, or it was typed at a prompt
        source = ""
    return Method(cls, partial(own_method, make=make), ("costs",), source=source)


def _class_named(name: str, module: str, cls: str) -> Any:
    """Import a transformer, also from the current folder, and see that it is one."""
    here = os.getcwd()
    if here not in sys.path:
        sys.path.append(here)
    try:
        make = getattr(importlib.import_module(module), cls)
        allowed = make().get_params()
    except Exception as error:  # whatever the module of a stranger does
        raise ValueError(f"Method {name!r} cannot be used: {error}.") from error
    missing = [part for part in ("fit", "transform") if not hasattr(make, part)]
    if missing or "n_components" not in allowed:
        wanted = missing[0] if missing else "parameter n_components"
        raise ValueError(f"Method {name!r} cannot be used: it has no {wanted}.")
    return make
