"""What the page shows of a model, as plain values. Nothing is fitted here, and nothing drawn."""

from typing import Any

import numpy as np

from marginparts._types import Array, Data
from marginparts._version import __version__
from marginparts.app.explanation import distinctive, part_weights, picture, top_features
from marginparts.app.model import Model
from marginparts.selection import Setting, standard_error
from marginparts.topics import TopicView

#: Words shown of a part or of a margin component, and of those that are surely a part's own.
_WORDS, _OWN = 12, 5


def payload_of(
    model: Model, examples: dict[str, Any] | None = None, view: TopicView | None = None
) -> dict[str, Any]:
    """Return the page's data; see `marginparts.app.report._page` for its form.

    Examples are what `find_examples` returns, and the view is that of samples on their words.
    """
    card, history = model.card, model.classifier.parts_.history_
    labels = "labels" if model.multilabel else "classes"
    found: dict[str, Any] = {
        "title": card.source,
        "subtitle": f"{len(model.class_names)} {labels}, {card.n_samples} samples, "
        f"{card.n_labeled} of them labeled" + _of_vectors(model),
        "footer": f"marginparts {__version__}",
        "kind": model.layout.kind,
        "image_shape": model.layout.image_shape,
        "headline": {
            "metric": model.metric,
            "rows": [{**each._asdict(), "ours": k == 0} for k, each in enumerate(card.rated)],
            "sentence": headline_sentence(model),
            "warning": card.doubt,
        },
        "parts": _looked_at(model, view),
        "classes": _classes(model),
        "margins": _margins(model),
        "loss": {
            "iteration": [check.iteration for check in history],
            "loss": [check.loss for check in history],
            "stop": str(model.classifier.parts_.stop_),
        },
        "choice": _choice(model),
        "settings": _settings(model),
    }
    if examples is not None:
        found["examples"] = examples
    if model.path:
        found["path"] = [
            {"lam": step.lam, "score": None, "parts": _parts(model, step.components)}
            for step in model.path
        ]
    return found


def _of_vectors(model: Model) -> str:
    """Say that vectors have parts, too: what is shown are those of words."""
    if not model.layout.vectors:
        return ""
    return (
        f". Beside each stands a vector of {model.layout.vectors} numbers; vectors have parts of "
        "their own, which mean nothing to a reader and are not shown."
    )


def headline_sentence(model: Model) -> str:
    """Say in words how good a model is."""
    rated, card = model.card.rated, model.card
    if not rated:
        return card.doubt or "How good it is was not looked at."
    ours, svm, nmf, *others = rated
    above_svm, above_nmf = (_lead(ours.score - each.score, model.metric) for each in (svm, nmf))
    sentence = (
        f"On hidden labels the {model.metric} is {as_score(ours.score, model.metric)} with "
        f"{model.n_parts} parts: {above_svm} a linear SVM on all "
        f"{model.classifier.n_features_in_} inputs, and {above_nmf} the parts of plain NMF."
    )
    if not others:
        return sentence
    best = max(others, key=lambda each: each.score)
    lead = _lead(ours.score - best.score, model.metric)
    return f"{sentence} It is {lead} the best of the others that were tried, {best.name}."


def as_score(score: float, metric: str) -> str:
    """Write a score as people do: an accuracy in percent, an F-measure between 0 and 1."""
    return f"{100 * score:.1f} %" if "accuracy" in metric else f"{score:.3f}"


def _lead(difference: float, metric: str) -> str:
    if abs(difference) < 0.0005:
        return "as good as"
    points = f"{100 * abs(difference):.1f} points"
    size = points if "accuracy" in metric else f"{abs(difference):.3f}"
    return f"{size} {'above' if difference > 0 else 'below'}"


def _parts(
    model: Model, components: Data, shares: list[float] | None = None, *, weigh: bool = False
) -> list[dict[str, Any]]:
    weights = part_weights(model.classifier) if weigh else None
    if weigh and model.layout.image_shape is None:
        components = distinctive(components, shares or None)
    place = {c: k for k, c in enumerate(model.display_order)}
    found = []
    for k in range(components.shape[0]):
        row = components[[k]]
        part: dict[str, Any] = {"top": [], "image": None}
        if model.layout.image_shape is not None:
            part["image"] = picture(row)
        else:
            part["top"] = top_features(row, model.feature_names, _WORDS)
        part["share"] = shares[k] if shares else None
        if weights is not None:
            shown = _for_and_against(weights[k], 3, 1)
            part["classes"] = [(place[c], float(weights[k, c])) for c in shown]
        found.append(part)
    return found


def _looked_at(model: Model, view: TopicView | None) -> list[dict[str, Any]]:
    """Return the parts with what else is known of them: where they are from, words of their own."""
    card = model.card
    parts = _parts(model, model.classifier.parts_.components_, model.card.shares, weigh=True)
    for k, part in enumerate(parts):
        part["fixed"] = k < card.n_fixed
        part["carried"] = card.n_fixed <= k < card.n_fixed + card.carried
        part["stability"] = card.stability[k] if card.stability else None
        if view is not None:
            part["own"] = [(found.word, 2.0**found.low) for found in view.distinctive(k, _OWN)]
    return parts


def _weighed(model: Model) -> str:
    """Say which columns have a weight of their own, the most unusual first."""
    own = getattr(model.preparation, "feature_weight", None)  # which old files do not have
    if own is None:
        return ""
    places = np.flatnonzero(own != 1)
    with np.errstate(divide="ignore"):
        places = places[np.argsort(-np.abs(np.log(own[places])), kind="stable")]
    told = [f"{model.feature_names[k]} {own[k]:g}" for k in places[:_OWN]]
    more = f" and {len(places) - _OWN} more" if len(places) > _OWN else ""
    return ", ".join(told) + more


def _settings(model: Model) -> list[tuple[str, str]]:
    """Return how a model was made: what was chosen, and what was asked for."""
    classifier, card = model.classifier, model.card
    parts, best = classifier.parts_, classifier.choice_.best
    words = sum(map(len, (classifier.seeds or {}).values()))
    filler = getattr(classifier, "filler_", None)
    found = {
        "parts": str(model.n_parts),
        "lam, the weight of the labels": f"{best.lam:g}",
        "C of the last SVM": f"{best.C:g}",
        "mapping updates": str(best.map_iter or "to the optimum"),
        "weighting of counts": model.preparation.weighting,
        "weights of words": _weighed(model),
        "class weight": classifier.class_weight and str(classifier.class_weight),
        "chosen by": classifier.scoring,
        "seeds": words and f"{words} words for {len(classifier.seeds or {})} classes",
        "prior": card.prior
        and f"{card.carried} parts of {card.prior}, strength {classifier.strength:g}",
        "exclusivity": classifier.exclusivity and f"{classifier.exclusivity:g}",
        "penalties": (classifier.alpha_W or classifier.alpha_H not in (0, "same"))
        and f"alpha_W {classifier.alpha_W:g}, alpha_H {classifier.alpha_H}, "
        f"l1_ratio {classifier.l1_ratio:g}",
        "fixed parts": card.n_fixed and f"the first {card.n_fixed}",
        "learned from": model.n_learned < card.n_samples
        and f"{model.n_learned} of the {card.n_samples} samples: a draw of the unlabeled ones",
        "weights of samples": getattr(parts, "sample_weight_", None) is not None and "given",
        "consensus": card.stability
        and f"{classifier.consensus} runs; stability {np.mean(card.stability):.2f} on average",
        "vectors": model.layout.vectors
        and f"{model.layout.vectors} numbers, {model.layout.encoder or 'from a file'}",
        "missing values": filler and f"filled by {filler.n_components_} plain parts",
        "iterations": f"{parts.n_iter_} ({parts.solver_})",
        "seconds": f"{card.seconds:.0f}",
    }
    return [(name, str(value)) for name, value in found.items() if value]


def _classes(model: Model) -> list[dict[str, Any]]:
    weights = part_weights(model.classifier)
    return [
        {
            "name": model.class_names[c],
            "n_labeled": model.card.label_counts[c],
            "seeds": _seeds(model, c),
            "parts": [(k, float(weights[k, c])) for k in _for_and_against(weights[:, c], 5, 3)],
        }
        for c in model.display_order
    ]


def _seeds(model: Model, c: int) -> list[str]:
    """Return the words that speak for a class, those with the largest strength first."""
    name = c if model.multilabel else model.class_names[c]
    seeds = (model.classifier.seeds or {}).get(name, {})
    words = sorted((word for word in seeds if seeds[word] > 0), key=lambda word: -seeds[word])
    return [model.feature_names[word] for word in words]


def _for_and_against(weights: Array, most_for: int, most_against: int) -> list[int]:
    """Return the largest positive weights, then the largest negative ones."""
    order = np.argsort(-weights, kind="stable")
    speaking = [int(k) for k in order[:most_for] if weights[k] > 0]
    return speaking + [int(k) for k in order[::-1][:most_against] if weights[k] < 0]


def _margins(model: Model) -> list[dict[str, Any]]:
    """Return w+ and w- of every classifier beside their reconstruction by the parts."""
    parts = model.classifier.parts_
    p = len(parts.margin_names_)
    rebuilt = parts.margin_codes_ @ parts.components_
    two = not model.multilabel and len(model.class_names) == 2
    in_span = vars(parts).get("margin_kept_")  # models of earlier versions do not have it
    components = parts.margin_components_
    components = components.toarray() if hasattr(components, "toarray") else components
    found = []
    for t, name in enumerate(_question_names(model)):
        plus, minus = components[t], components[p + t]
        margin: dict[str, Any] = {"name": name, "sides": model.class_names[::-1] if two else None}
        margin |= _side(model, "plus", plus, rebuilt[t], plus - minus)
        margin |= _side(model, "minus", minus, rebuilt[p + t], minus - plus)
        margin["kept"] = [_cosine(plus, rebuilt[t]), _cosine(minus, rebuilt[p + t])]
        margin["span"] = None if in_span is None else float(in_span[t])
        found.append(margin)
    if model.multilabel:
        place = {model.class_names[c]: k for k, c in enumerate(model.display_order)}
        found.sort(key=lambda margin: place[str(margin["name"])])
    return found


def _side(model: Model, side: str, actual: Array, rebuilt: Array, lead: Array) -> dict[str, Any]:
    """Return one margin component beside its reconstruction.

    Of words those are shown by which it leads over the other side; what both have decides nothing.
    """
    both = {side: actual, f"{side}_rebuilt": rebuilt}
    if model.layout.image_shape is not None:
        return {name: {"top": [], "image": picture(row)} for name, row in both.items()}
    names = model.feature_names
    columns = [j for j in np.argsort(-lead, kind="stable")[:_WORDS] if lead[j] > 0]
    return {
        name: {"top": [(names[j], float(row[j])) for j in columns], "image": None}
        for name, row in both.items()
    }


def _question_names(model: Model) -> list[str]:
    """Return the names of the two-class questions, with labels by name."""
    names = [str(name) for name in model.classifier.parts_.margin_names_]
    if not model.multilabel:
        return names
    by_column = dict(zip(map(str, model.classifier.classes_), model.class_names, strict=True))
    return [by_column[name] for name in names]


def _cosine(a: Array, b: Array) -> float | None:
    lengths = np.linalg.norm(a) * np.linalg.norm(b)
    return float(a @ b / lengths) if lengths > 0 else None


def _choice(model: Model) -> dict[str, Any] | None:
    scores: dict[Setting, list[float]] = model.classifier.selection_
    if not scores:
        return None
    most = max(map(len, scores.values()))
    best: Setting = model.classifier.choice_.best
    trials = [
        {
            **setting._asdict(),
            "score": float(np.mean(values)),
            "error": standard_error(values),
            "folds": len(values),
            "dropped": len(values) < most,
        }
        for setting, values in scores.items()
    ]
    dropped = sum(bool(trial["dropped"]) for trial in trials)
    early = f", {dropped} of them dropped early" if dropped else ""
    counted = "1 candidate was" if len(trials) == 1 else f"{len(trials)} candidates were"
    return {
        "metric": model.metric,
        "chosen": best._asdict(),
        "trials": trials,
        "sentence": f"{counted} tried on {most} folds of the labels{early}. "
        f"Chosen: {best.n_components} parts, lam {best.lam:g}, "
        f"{best.map_iter or 'all'} mapping updates, C {best.C:g}.",
    }
