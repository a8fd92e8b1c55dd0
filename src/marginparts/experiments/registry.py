"""Methods by name: the paper's, those past it, and any transformer of your own."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from functools import partial
from typing import Any

from marginparts.experiments.factorizations import (
    Way,
    lee2010,
    liu_wu2010,
    nmf,
    nmf_alpha,
    own_method,
)
from marginparts.experiments.grid import Method
from marginparts.experiments.linear import lda, pca, raw_svm, raw_tsvm
from marginparts.experiments.past_paper import SHARES, pseudo_parts, transductive_parts
from marginparts.experiments.rivals import label_spreading, lsa, nb_em, self_training

_MAPPED = ("map_iter", "map_iters", "C", "steps")
_ON_CODES = (*_MAPPED, "max_iter")
_ALPHA = (*_ON_CODES, "lam", "direction_C", "direction_steps", "warm_iter")


def _alpha(title: str, **options: Any) -> Method:
    """Return NMF-alpha with one thing changed."""
    settings: tuple[str, ...] = _ALPHA
    if not options.get("scale", True):
        settings = (*settings, "literal_lam")
    if options.get("anneal"):
        settings = (*settings, "lams")
    run = partial(nmf_alpha, way=Way(**options))
    return Method(f"NMF-alpha{title}", run, settings, ranks="all")


METHODS = {
    "svm": Method("raw SVM", raw_svm, ("raw_C", "steps"), labels=False, ranks="none"),
    "tsvm": Method("raw TSVM", raw_tsvm, ("tsvm_C", "raw_C", "steps"), ranks="none"),
    "self_training": Method("self-training SVM", self_training, ("raw_C", "steps"), ranks="none"),
    "nb_em": Method("naive Bayes with EM", nb_em, ("steps",), ranks="none"),
    "label_spreading": Method(
        "label spreading", label_spreading, ("steps",), labels=False, ranks="all"
    ),
    "lsa": Method("LSA", lsa, ("raw_C", "steps"), labels=False, ranks="all"),
    "pca": Method("PCA", pca, ("raw_C", "steps"), labels=False, ranks="all"),
    "lda": Method("LDA", lda, ("lda_inputs", "steps"), labels=False, ranks="none"),
    "nmf": Method("NMF", nmf, _ON_CODES, labels=False),
    "lee2010": Method(
        "Lee et al. 2010", lee2010, (*_MAPPED, "squared_iter", "lee_lam"), ranks="all"
    ),
    "liu_wu2010": Method("Liu & Wu 2010", liu_wu2010, (*_MAPPED, "squared_iter")),
    "nmf_alpha": _alpha(""),
    "nmf_alpha_annealed": _alpha(", a path down lam (annealing)", anneal=True),
    "nmf_alpha_ovr": _alpha(", one-vs-rest", multiclass="ovr"),
    "nmf_alpha_hellinger": _alpha(", hellinger features", features="hellinger"),
    "nmf_alpha_pseudo": _alpha(", pseudo-labels", pseudo="svm"),
    "nmf_alpha_class": _alpha(", class sums", source="class"),
    "nmf_alpha_perceptron": _alpha(", perceptron", source="perceptron"),
    "nmf_alpha_pa": _alpha(", passive-aggressive", source="pa"),
    "nmf_alpha_h": _alpha(", H for Z", gram=False),
    "nmf_alpha_literal": _alpha(", S not scaled", scale=False),
    "nmf_alpha_random": _alpha(", random start", init="random"),
    "nmf_alpha_defaults": _alpha(
        ", the classifier's defaults", multiclass="ovr", features="hellinger", pseudo="svm"
    ),
    "pseudo_parts": Method(
        "class sums with guessed labels", pseudo_parts, (*_ON_CODES, "lams", "warm_iter")
    ),
    "transductive_parts": Method(
        "transductive SVM on parts",
        transductive_parts,
        (*_ON_CODES, "lams", "direction_C", "tsvm_C"),
    ),
    "tsvm_shares": Method(
        "raw TSVM, class share tuned",
        partial(raw_tsvm, shares=SHARES),
        ("tsvm_C", "raw_C", "steps"),
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
    return Method(cls, partial(own_method, make=make), ("C", "steps"), source=source)


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
