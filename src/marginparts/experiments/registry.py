"""Methods by name: the paper's, those past it, and any transformer of your own."""

from __future__ import annotations

import importlib
from functools import partial

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
from marginparts.experiments.past_paper import pseudo_parts, transductive_parts

METHODS = {
    "svm": Method("raw SVM", raw_svm, labels=False, ranks="none"),
    "tsvm": Method("raw TSVM", raw_tsvm, ranks="none"),
    "pca": Method("PCA", pca, labels=False, ranks="all"),
    "lda": Method("LDA", lda, labels=False, ranks="none"),
    "nmf": Method("NMF", nmf, labels=False),
    "lee2010": Method("Lee et al. 2010", lee2010),
    "liu_wu2010": Method("Liu & Wu 2010", liu_wu2010),
    "nmf_alpha": Method("NMF-alpha", nmf_alpha),
    "nmf_alpha_ovr": Method("NMF-alpha, one-vs-rest", partial(nmf_alpha, multiclass="ovr")),
    "nmf_alpha_class": Method("NMF-alpha, class sums", partial(nmf_alpha, source="class")),
    "nmf_alpha_perceptron": Method(
        "NMF-alpha, perceptron", partial(nmf_alpha, source="perceptron")
    ),
    "nmf_alpha_pa": Method("NMF-alpha, passive-aggressive", partial(nmf_alpha, source="pa")),
    "nmf_alpha_h": Method("NMF-alpha, H for Z", partial(nmf_alpha, gram=False)),
    "nmf_alpha_literal": Method("NMF-alpha, S not scaled", partial(nmf_alpha, scale=False)),
    "nmf_alpha_random": Method("NMF-alpha, random start", partial(nmf_alpha, init="random")),
    "pseudo_parts": Method("class sums with guessed labels", pseudo_parts),
    "transductive_parts": Method("transductive SVM on parts", transductive_parts),
}


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
    try:
        make = getattr(importlib.import_module(module), cls)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"Method {name!r} cannot be imported: {error}.") from error
    return Method(cls, partial(own_method, make=make))
