"""What must be true of each class that a model file may hold.

n samples, d features, r parts, c classes, p hyperplanes, q columns of codes, m rows or margins.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from marginparts.app.encoders import is_encoder
from marginparts.app.preparation import WEIGHTINGS
from marginparts.files.invariants import (
    Field,
    InvariantError,
    Items,
    Letter,
    Part,
    Rule,
    Table,
    Value,
)
from marginparts.scores import SCORINGS

#: More updates than this are no map, but a way to keep a machine busy.
_MOST_UPDATES = 100_000

_INF = float("inf")

#: What is 1 at most, up to rounding.
_ONE = 1.001

#: Numbers that are multiplied with codes; their squares must stay within range.
_HUGE = 1e150


def _hyperplanes(fields: Mapping[str, Any], sizes: dict[str, int]) -> int:
    """One hyperplane for two classes, one a class or label otherwise."""
    return 1 if sizes["c"] == 2 and not fields["multilabel_"] else sizes["c"]


def _all_parts(fields: Mapping[str, Any]) -> list[Any]:
    """Return the parts, and those of embedded columns where there are any beside others."""
    parts = (fields["parts_"], fields.get("embedding_parts_"))
    return [part for part in parts if part is not None]


def _code_columns(fields: Mapping[str, Any], sizes: dict[str, int]) -> int:
    return sum(
        (2 if part.output == "mixed" else 1) * len(part.components_) for part in _all_parts(fields)
    )


def _columns_fit(fields: Mapping[str, Any], sizes: dict[str, int]) -> bool:
    """Whether there are parts for all columns."""
    return sum(part.n_features_in_ for part in _all_parts(fields)) == sizes["d"]


def _codes_fit(fields: Mapping[str, Any], sizes: dict[str, int]) -> bool:
    """Whether codes of a stream's rows are those of its classes: (m,), or (m, c) of -1, 0, 1."""
    codes, m, c = fields["codes"], sizes["m"], sizes["c"]
    if codes.shape not in ((m,), (m, c)):
        return False
    return bool(codes.max(initial=-1) < (c if codes.ndim == 1 else 2))


def _scale_fits(fields: Mapping[str, Any], sizes: dict[str, int]) -> bool:
    """Whether the rows of a stream stay within range in its units, and in those of its user."""
    largest = [float(fields[name].X.data.max(initial=0)) for name in ("pending", "memory")]
    return bool(largest[0] / fields["scale"] <= _HUGE and largest[1] * fields["scale"] <= _HUGE)


_UPDATES = Value("map_iter", "int", 1, _MOST_UPDATES, optional=True)


def _can_be_shown(fields: Mapping[str, Any], sizes: dict[str, int]) -> bool:
    """Whether the parts have what a report shows, which those of old files need not."""
    shown = (
        "history_", "margin_names_", "margin_components_", "margin_codes_", "margin_kept_",
        "n_iter_", "solver_",
    )  # fmt: skip
    classifier = fields["classifier"]
    found = vars(classifier.parts_)
    chosen = getattr(classifier, "choice_", None) is not None
    return chosen and all(found.get(name) is not None for name in shown)


def _without_vectors(fields: Mapping[str, Any], sizes: dict[str, int]) -> int:
    """Return how many columns a model's own preparation makes, beside vectors."""
    vectors = getattr(fields["layout"], "vectors", 0)
    beside = getattr(fields["classifier"], "embedding_parts_", None)
    if vectors != (0 if beside is None else beside.n_features_in_):
        raise InvariantError("of the vectors does not fit the layout")
    return int(fields["classifier"].n_features_in_ - vectors)


def _codes_can_be_made(fields: Mapping[str, Any], sizes: dict[str, int]) -> bool:
    """Whether the map is there that codes with a projection need."""
    linear = fields.get("output") in ("projection", "mixed")
    return not linear or fields.get("projection_") is not None


def _are_scores(fields: Mapping[str, Any], sizes: dict[str, int]) -> bool:
    """Whether there is a list of numbers for each setting."""
    scores = fields["scores"]
    return isinstance(scores, dict) and all(
        type(setting).__name__ == "Setting"
        and isinstance(values, list)
        and all(isinstance(value, float) for value in values)
        for setting, values in scores.items()
    )


def _are_counts(fields: Mapping[str, Any], sizes: dict[str, int]) -> bool:
    counts = fields["nonzeros"]
    return isinstance(counts, dict) and all(isinstance(n, int) and n >= 0 for n in counts.values())


def _weights_fit(fields: Mapping[str, Any], sizes: dict[str, int]) -> bool:
    """Whether there is a number, 0 or larger, for each feature; a list of them will do."""
    if fields.get("feature_weight") is None:
        return True
    try:
        weights = np.asarray(fields["feature_weight"], dtype=np.float64)
    except (TypeError, ValueError):
        return False
    return weights.shape == (sizes["d"],) and bool(np.all((weights >= 0) & (weights < _INF)))


def _are_seeds(fields: Mapping[str, Any], sizes: dict[str, int]) -> bool:
    """Whether there are columns with finite strengths for each class that has seeds."""
    seeds = fields.get("seeds")
    return seeds is None or (
        isinstance(seeds, dict)
        and all(isinstance(words, dict | list | tuple) for words in seeds.values())
        and all(
            isinstance(strength, int | float) and -_HUGE < strength < _HUGE
            for words in seeds.values()
            if isinstance(words, dict)
            for strength in words.values()
        )
    )


def _seeds_can_be_shown(fields: Mapping[str, Any], sizes: dict[str, int]) -> bool:
    """Whether the seeds are columns, as the command's are."""
    seeds = fields["classifier"].seeds or {}
    return all(
        isinstance(words, dict) and all(isinstance(k, int) and 0 <= k < sizes["d"] for k in words)
        for words in seeds.values()
    )


def _each(value: Any) -> list[Any]:
    """Return the values to try, which may be one."""
    return list(value) if isinstance(value, list | tuple) else [value]


def _are_updates(fields: Mapping[str, Any], sizes: dict[str, int]) -> bool:
    """Whether the numbers of updates are words, None, or within bounds; several may be tried."""
    return all(
        each is None
        or isinstance(each, str)
        or (isinstance(each, int | np.integer) and 1 <= each <= _MOST_UPDATES)
        for each in _each(fields.get("map_iter"))
    )


def _are_choices(fields: Mapping[str, Any], sizes: dict[str, int]) -> bool:
    """Whether to normalize is a word, yes or no; several may be tried."""
    return all(
        isinstance(each, str | bool | np.bool_ | None) for each in _each(fields.get("normalize"))
    )


_BACKEND = Value("backend", "str")
_MISSING = Value("missing", "str", options=("nan", "zeros"), optional=True)

#: Weights and costs: their squares must stay within range.
_STRENGTHS: Table = tuple(
    Value(name, "float", 0, _HUGE, word=name == "alpha_H", optional=True)
    for name in ("strength", "exclusivity", "alpha_W", "alpha_H", "l1_ratio")
)

_PARTS: Table = (
    _BACKEND,
    _MISSING,
    _UPDATES,
    Value("output", "str", options=("gram", "coefficients", "projection", "mixed")),
    Value("n_features_in_", "int", 1, letter="d"),
    Field("classes_", ("c",), "labels", optional=True),
    Field("components_", ("r", "d"), least=0, most=_HUGE),  # fixed ones sum to any number
    Rule("components_", lambda fields, sizes: sizes["r"] > 0, "has no rows"),
    Field("gram_root_", ("r", "r"), least=-_HUGE, most=_HUGE),
    Field("projection_", ("d", "r"), least=-_HUGE, most=_HUGE, optional=True),
    Rule("projection_", _codes_can_be_made, "is not there"),
    Field("column_weights_", ("d",), least=0, optional=True),
    Field("loss_curve_", ("k",), least=-_INF, most=_INF, nan=True),
    Items("history_", Part("history_", ("Check",)), optional=True),
    Part("stop_", ("Stop",)),
    Value("_scale", "float", np.finfo(float).tiny, np.finfo(float).max, optional=True),
)

_MARGINS: Table = (
    Rule("feature_weight", _weights_fit),
    Field("directions_", ("n", "2m"), least=0, optional=True),
    Field("sample_weight_", ("n",), least=0, optional=True),
    Field("margin_names_", ("m",), "any", optional=True),
    Field("margin_components_", ("2m", "d"), least=0, optional=True),
    Field("margin_codes_", ("2m", "r"), least=0, optional=True),
    Field("margin_kept_", ("m",), least=-_INF, most=_INF, nan=True, optional=True),
    Field("stability_", ("r",), least=0, most=_ONE, optional=True),
    Value("n_fixed_", "int", 0, optional=True),
    Rule("n_fixed_", lambda fields, sizes: (fields.get("n_fixed_") or 0) < sizes["r"]),
)

#: Parts of data of either sign have length one, up to rounding.
_LIMITS: dict[str, Any] = {"components_": (-_ONE, _ONE), "margin_components_": (-_HUGE, _HUGE)}
_SIGNED: Table = tuple(
    replace(row, least=_LIMITS[row.name][0], most=_LIMITS[row.name][1])
    if isinstance(row, Field) and row.name in _LIMITS else row
    for row in (*_PARTS, *_MARGINS) if row is not _MARGINS[0]
)  # fmt: skip

_LABELED: Table = (
    Value("n_features_in_", "int", 1, letter="d"),
    Field("classes_", ("c",), "labels", unique=True),
    Value("multilabel_", "bool"),
)

_CLASSIFIER: Table = (
    *_LABELED,
    Letter("p", _hyperplanes),
    _BACKEND,
    _MISSING,
    *_STRENGTHS,
    Rule("seeds", _are_seeds),
    Value("embedded", "int", 0, word=True, optional=True),
    Value("max_unlabeled", "int", 1, optional=True),
    Rule("normalize", _are_choices),
    Rule("map_iter", _are_updates, f"is not between 1 and {_MOST_UPDATES}"),
    Value("map_iter_", "int", 1, _MOST_UPDATES, optional=True),
    Value("scoring", "str", options=tuple(SCORINGS), optional=True),
    Part("parts_", ("NMFAlpha", "SemiNMFAlpha"), own="nmkd"),
    Part("embedding_parts_", ("SemiNMFAlpha",), own="nmkdr", optional=True),
    Rule("parts_", _columns_fit, "has not the columns of the classifier"),
    Part("filler_", ("NMFAlpha",), own="nmkrc", optional=True),
    Rule(
        "filler_",
        lambda fields, sizes: fields.get("missing") is None or fields.get("filler_") is not None,
    ),
    Letter("q", _code_columns),
    Field("coef_", ("p", "q"), least=-_HUGE, most=_HUGE),
    Field("intercept_", ("p",), least=-_INF),
    Part("head_", ("Head",)),
    Field("thresholds_", ("p",), least=-_INF, most=_INF, optional=True),
    Letter("s", lambda fields, sizes: 1 if sizes["p"] > 1 and not fields["multilabel_"] else 2),
    Letter("t", lambda fields, sizes: 1 if sizes["s"] == 1 else sizes["p"]),
    Part("calibration_", ("Calibration",), optional=True),
    Rule("calibration_", lambda fields, sizes: "calibration_" in fields, "is missing"),
    Rule(
        "calibration_",
        lambda fields, sizes: (
            fields.get("calibration_") is None
            or fields["calibration_"].multilabel == fields["multilabel_"]
        ),
    ),
    Part("choice_", ("Choice",), own="h", optional=True),
)

_WEIGHED: Table = (
    Value("weighting", "str", options=WEIGHTINGS),
    Field("idf", ("d",), least=0, optional=True),
    Field("feature_weight", ("d",), least=0, most=_HUGE, optional=True),
)

TABLES: dict[str, Table] = {
    "NMFAlpha": (*_PARTS, *_MARGINS),
    "NMFAlphaConsensus": (
        Value("n_features_in_", "int", 1, letter="d"),
        Part("estimator_", ("NMFAlpha",), own="nmkc"),
        Field("components_", ("r", "d"), least=0, most=_HUGE),  # fixed ones sum to any number
        Field("agreement_", ("m", "r"), least=0, most=_ONE),
        Field("stability_", ("r",), least=0, most=_ONE),
    ),
    "SemiNMFAlpha": _SIGNED,
    "SemiSupervisedNMF": _PARTS,
    "ConstrainedNMF": _PARTS,
    "NMFAlphaClassifier": _CLASSIFIER,
    "NMFAlphaCV": _CLASSIFIER,
    "TransductiveSVM": (
        *_LABELED, Letter("p", _hyperplanes),
        Field("coef_", ("p", "d"), least=-_HUGE, most=_HUGE),
        Field("intercept_", ("p",), least=-_INF),
    ),
    "OnlineNMFAlphaClassifier": (
        *_LABELED, _BACKEND, _UPDATES,
        Value("n_components", "int", 1), Value("n_iter", "int", 1, _MOST_UPDATES),
        Value("batch_size", "int", 1), Value("memory", "int", 0),
        Value("n_samples_seen_", "int", 0), Value("declared_", "bool"),
        Value("normalize", "bool", word=True, optional=True),
        Value("lam", "float", 0, _HUGE), Value("C", "float", 0, _HUGE),
        Value("half_life", "float", 0, optional=True),
        Part("stream_", ("Stream",), own="r"),
    ),
    "Head": (
        Field("coef", ("p", "q"), least=-_HUGE, most=_HUGE),
        Field("intercept", ("p",), least=-_INF),
        Value("size", "float", np.finfo(float).tiny, np.finfo(float).max, optional=True),
    ),
    "Calibration": (
        Field("slopes", ("s", "t"), least=-_INF, most=_INF, nan=True), Value("multilabel", "bool"),
    ),
    "Setting": (
        Value("n_components", "int", 1), Value("lam", "float", 0), _UPDATES,
        Value("normalize", "bool"), Value("C", "float", 0), Value("direction_C", "float", 0),
    ),
    "HeldOut": (
        Field("rows", ("h",), "i", least=0),
        Field("values", ("h", "p"), least=-_INF, most=_INF, nan=True),
    ),
    "Choice": (
        Part("best", ("Setting",)), Rule("scores", _are_scores),
        Part("held_out", ("HeldOut",), optional=True), Rule("folds", lambda f, _: not f["folds"]),
        Items("honest_scores", Value("honest_scores", "float", nan=True)),
    ),
    "Stop": (),
    "Check": (
        Value("iteration", "int", 0), Value("loss", "float", nan=True),
        Value("seconds", "float", nan=True), Value("residual", "float", nan=True),
        Rule("nonzeros", _are_counts),
    ),
    "Past": (
        Field("A", ("d", "r"), least=0), Field("B", ("r",), least=0),
        Field("XS", ("2c", "d"), least=0),
    ),
    "Rows": (
        Field("X", ("m", "d"), least=0, most=_HUGE), Field("codes", None, "i", least=-1),
        Rule("codes", _codes_fit), Field("duals", ("m", "c"), least=0),
        Field("weights", ("m",), least=0, most=1), Field("lots", ("m",), least=0, most=1),
        Field("sample_weight", ("m",), least=0, most=_HUGE),
    ),
    "Stream": (
        Field("V", ("d", "r"), least=0, most=_ONE, optional=True),
        Rule("V", lambda fields, sizes: sizes.get("r") != 0, "has no columns"),
        Field("W", ("c", "d")), Field("labels_at_start", ("c",), "i", least=0),
        Part("pending", ("Rows",), own="m"), Part("memory", ("Rows",), own="m"),
        Part("past", ("Past",), optional=True),
        Value("scale", "float", np.finfo(float).tiny, np.finfo(float).max),
        Rule("scale", _scale_fits), Value("seed", "int", 0), Value("steps", "int", 0),
    ),
    "TextPreparation": (
        Items("words", Value("words", "str"), "d", unique=True),
        Items("ngrams", Value("ngrams", "int", 1, 100), 2), *_WEIGHED,
    ),
    "MatrixPreparation": (
        Items("names", Value("names", "str"), "d", optional=True),
        *_WEIGHED,
    ),
    "Layout": (
        Value("kind", "str", options=("text", "matrix", "image")),
        *(Value(name, "str", optional=True) for name in ("text", "label", "label_sep")),
        Items("names", Value("names", "str"), "d", optional=True),
        Value("n_columns", "int", 1, letter="d", optional=True),
        *(Value(name, "bool", optional=True) for name in ("zero_based", "invert", "gaps")),
        Value("vectors", "int", 0, optional=True), Value("encoder", "str", optional=True),
        Rule("encoder", lambda fields, sizes: is_encoder(fields.get("encoder") or "wordllama")),
        Items("image_shape", Value("image_shape", "int", 1, 2**16), 2, optional=True),
        Rule(
            "image_shape",
            lambda fields, sizes: (
                fields["kind"] != "image" or np.prod(fields["image_shape"]) == sizes["d"]
            ),
        ),
    ),
    "Rated": (
        Value("name", "str"), Value("score", "float", nan=True), Value("error", "float", nan=True),
    ),
    "PathStep": (Value("lam", "float", 0), Field("components", ("r", "d"), least=0)),
    "Card": (
        Value("source", "str"), Value("n_samples", "int", 0), Value("n_labeled", "int", 0),
        Items("label_counts", Value("label_counts", "int", 0), "c"),
        Items("rated", Part("rated", ("Rated",))), Value("doubt", "str", optional=True),
        Items("shares", Value("shares", "float", nan=True), ("r", 0)),
        Value("seconds", "float", 0), Value("stopped", "bool"), Value("carried", "int", 0),
        Value("prior", "str", optional=True), Value("n_fixed", "int", 0),
        Items("stability", Value("stability", "float", 0, _ONE), ("r", 0), optional=True),
    ),
    "Model": (
        Part("classifier", ("NMFAlphaClassifier", "NMFAlphaCV"), own="d"),
        Letter("d", _without_vectors),
        Rule("classifier", _can_be_shown, "has no choice, no history or no margin components"),
        Rule("classifier", _seeds_can_be_shown, "has seeds that are no columns"),
        Items("class_names", Value("class_names", "str"), "c"),
        Part("preparation", ("TextPreparation", "MatrixPreparation")),
        Part("layout", ("Layout",)), Part("card", ("Card",)),
        Items("path", Part("path", ("PathStep",))),
    ),
}  # fmt: skip
