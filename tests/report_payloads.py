"""Payloads for the report page that look like real ones: text, images, the least there can be."""

import base64
from itertools import pairwise

import numpy as np

#: Words of reports on incidents in the air, by theme.
VOCABULARY = [
    theme.split()
    for theme in (
        "engine fuel oil pressure shutdown compressor stall vibration exhaust turbine throttle",
        "runway takeoff landing taxiway threshold centerline rollout braking crosswind flare hold",
        "tower clearance controller frequency readback vector heading instruction radar handoff",
        "altitude climb descent feet level assigned deviation autopilot crossing restriction",
        "weather icing turbulence thunderstorm visibility fog windshear ceiling rain gust",
        "cabin passenger attendant smoke odor fumes evacuation seat galley lavatory medical oxygen",
        "gear door hydraulic flap rudder aileron spoiler brake tire strut actuator warning",
        "maintenance inspection logbook mechanic bolt panel crack corrosion misidentification",
        "traffic collision separation tcas resolution advisory parallel pattern overtaking midair",
        "airport ramp gate pushback tug marshaller wingtip vehicle jetway baggage deicing signage",
    )
]
NASTY = "</script><img src=x onerror=\"document.title='broken'\"><!--\u2028'\"&amp;{{script}}"

LABELS = [
    "engine trouble", "runway incursion", "altitude deviation", "weather", "cabin event", "fuel",
    "maintenance", "airborne conflict", "ground conflict", "communication", "landing gear", "icing",
    "bird strike", "smoke or fumes", "loss of control", "navigation error", "passenger misconduct",
    "flight control surfaces and their actuators", "wake turbulence", "unstable approach",
    "fatigue", "other",
]  # fmt: skip


def text_payload():
    """22 labels, 44 parts, all sections."""
    rng = np.random.default_rng(0)
    parts = [_word_part(rng, k, n_classes=len(LABELS)) for k in range(44)]
    for k, part in enumerate(parts[:5]):
        part |= {"carried": 0 < k < 3, "fixed": k == 0, "stability": 0.97 - 0.05 * k}
        part |= {"own": [["propeller", 4.0], ["runway", 1.25]]}
    return {
        "title": "incidents.csv",
        "subtitle": "22 labels, 2,944 samples, 589 of them labeled",
        "footer": "marginparts 0.5.0, 2026-11-15",
        "kind": "text",
        "image_shape": None,
        "headline": {
            "metric": "F-measure",
            "rows": [
                {"name": "NMF-alpha, 44 parts", "score": 0.612, "error": 0.018, "ours": True},
                {"name": "linear SVM on the inputs", "score": 0.552, "error": 0.027},
                {"name": "plain NMF, 44 parts", "score": 0.487, "error": 0.024},
            ],
            "sentence": "44 parts keep what 5,821 words say about the labels: the F-measure is "
            "0.612, and 0.552 for a linear SVM on the words themselves.",
            "warning": "Three labels have fewer than five examples. Their scores say little.",
        },
        "parts": parts,
        "classes": [
            {
                "name": name,
                "n_labeled": int(rng.integers(3, 140)),
                "parts": _votes(rng, len(parts), 8),
            }
            for name in LABELS
        ],
        "margins": [_word_margin(rng, name) for name in LABELS],
        "loss": _loss(rng),
        "choice": _choice(rng, "F-measure", [22, 44, 88, 176]),
        "settings": [["parts", "44"], ["prior", "3 parts of march.csv, strength 1"]],
        "examples": {
            "certain": [_report(rng, i, sure=True) for i in range(8)],
            "doubtful": [_report(rng, i, sure=False) for i in range(8, 16)],
        },
        "path": [
            {"lam": lam, "score": 0.5 + 0.03 * i, "parts": _drifted(rng, parts, i)}
            for i, lam in enumerate([0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0])
        ],
    }


def image_payload():
    """Two classes of 28 x 28 images, 36 parts, a path of 7 steps."""
    rng = np.random.default_rng(1)
    strokes = [_stroke(rng) for _ in range(36)]
    digits = [_digit(rng, nine=k % 2 == 1) for k in range(36)]

    def parts(weight):
        mixed = [
            (1 - weight) * stroke + weight * digit
            for stroke, digit in zip(strokes, digits, strict=True)
        ]
        return [
            {"share": float(share), "top": [], "image": encode(image)}
            for share, image in zip(rng.dirichlet(np.full(36, 8.0)), mixed, strict=True)
        ]

    chosen = parts(0.35)
    for k, part in enumerate(chosen):
        part["classes"] = [[k % 2, round(float(rng.gamma(2, 0.3)), 3)]]
        part["classes"].append([1 - k % 2, -part["classes"][0][1]])
    nine, four = sum(digits[1::2]), sum(digits[::2])
    return {
        "title": "digits-4-9.npz",
        "subtitle": "2 classes, 11,791 samples, 236 of them labeled",
        "footer": "marginparts 0.5.0, 2026-11-15",
        "kind": "image",
        "image_shape": [28, 28],
        "headline": {
            "metric": "accuracy",
            "rows": [
                {"name": "NMF-alpha, 36 parts", "score": 0.958, "error": 0.004, "ours": True},
                {"name": "linear SVM on the inputs", "score": 0.949, "error": 0.005},
                {"name": "plain NMF, 36 parts", "score": 0.941, "error": None},
            ],
            "sentence": "36 parts are as good as 784 pixels: 95.8% of the images are told apart.",
            "warning": None,
        },
        "parts": chosen,
        "classes": [
            {"name": "4", "n_labeled": 118, "parts": _votes(rng, 36, 8)},
            {"name": "9", "n_labeled": 118, "parts": _votes(rng, 36, 8)},
        ],
        "margins": [
            {
                "name": "4 v 9",
                "sides": ["4", "9"],
                "plus": {"top": [], "image": encode(four)},
                "plus_rebuilt": {"top": [], "image": encode(four + 0.6 * strokes[0])},
                "minus": {"top": [], "image": encode(nine)},
                "minus_rebuilt": {"top": [], "image": encode(nine + 0.6 * strokes[1])},
                "kept": [0.982, 0.974],
            }
        ],
        "loss": _loss(rng),
        "choice": _choice(rng, "accuracy", [16, 36, 64]),
        "examples": {
            "certain": [_drawn(rng, i, sure=True) for i in range(6)],
            "doubtful": [_drawn(rng, i, sure=False) for i in range(6, 12)],
        },
        "path": [
            {"lam": lam, "score": None if i == 0 else 0.94 + 0.004 * i, "parts": parts(i / 6)}
            for i, lam in enumerate([0.0, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0])
        ],
    }


def least_payload():
    """Only a title and a few parts."""
    rng = np.random.default_rng(2)
    parts = [_word_part(rng, k, n_classes=0) for k in range(8)]
    return {"title": "counts.npz", "kind": "matrix", "parts": parts, "path": [], "loss": None}


def nasty_payload():
    """Every text of the user tries to be markup."""
    return _spoil(text_payload())


def _spoil(value, key=None):
    if isinstance(value, dict):
        return {name: _spoil(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [_spoil(item) for item in value]
    return f"{value} {NASTY}" if isinstance(value, str) and key != "kind" else value


def encode(image):
    """The base64 of an image's bytes, its largest value full ink."""
    scaled = np.clip(255 * image / image.max(), 0, 255).astype(np.uint8)
    return base64.b64encode(scaled.tobytes()).decode()


def _weights(rng, count):
    return [round(float(w), 4) for w in np.sort(rng.gamma(1.2, 0.012, count) + 0.002)[::-1]]


def _word_part(rng, k, n_classes):
    own = list(rng.permutation(VOCABULARY[k % len(VOCABULARY)])[:9])
    other = list(rng.permutation(VOCABULARY[(k * 3 + 1) % len(VOCABULARY)])[:3])
    words = list(dict.fromkeys(str(word) for word in own + other))
    count = min(int(rng.integers(1, 7)), n_classes)
    return {
        "share": round(float(rng.gamma(4, 0.006)), 4),
        "top": [list(pair) for pair in zip(words, _weights(rng, len(words)), strict=True)],
        "image": None,
        "classes": [
            [int(c), round(float(rng.normal(0.15, 0.5)), 3)]
            for c in rng.permutation(n_classes)[:count]
        ],
    }


def _drifted(rng, parts, step):
    """The parts with some words exchanged, more of them further along the path."""
    drifted = []
    for part in parts:
        top = [list(pair) for pair in part["top"]]
        for i in rng.permutation(len(top))[: step % 4]:
            theme = VOCABULARY[int(rng.integers(len(VOCABULARY)))]
            top[i][0] = theme[int(rng.integers(len(theme)))]
        top = [list(pair) for pair in dict(top).items()]
        drifted.append({"share": part["share"], "top": top, "image": None})
    return drifted


def _votes(rng, n_parts, count):
    weights = rng.normal(0.1, 0.6, count)
    order = np.argsort(-np.abs(weights))
    chosen = rng.permutation(n_parts)[:count]
    return [[int(chosen[i]), round(float(weights[i]), 3)] for i in order]


def _word_margin(rng, name):
    def features(words, noise):
        weights = np.array(_weights(rng, len(words))) if noise is None else noise
        top = [[w, round(float(x), 4)] for w, x in zip(words, weights, strict=True)]
        return {"top": top, "image": None}

    margin = {"name": name, "kept": [round(float(k), 3) for k in 1 - rng.beta(2, 14, 2)]}
    for side in ("plus", "minus"):
        theme = VOCABULARY[int(rng.integers(len(VOCABULARY)))]
        words = [str(word) for word in rng.permutation(theme)[:10]]
        margin[side] = features(words, None)
        weights = np.array([weight for _, weight in margin[side]["top"]])
        margin[f"{side}_rebuilt"] = features(words, weights * rng.uniform(0.6, 1.1, len(words)))
    return margin


def _loss(rng):
    iteration = list(range(0, 600, 10))
    loss = [1.9e5 + 2.4e6 * np.exp(-i / 28) + 8e4 * np.exp(-i / 150) for i in iteration]
    return {
        "iteration": iteration,
        "loss": [float(x) for x in loss],
        "stop": "The loss no longer falls by more than a ten-thousandth in ten iterations: "
        "it stopped after 590.",
    }


def _choice(rng, metric, ranks):
    trials = []
    for i, rank in enumerate(ranks):
        for lam in (0.0, 0.3, 1.0, 3.0, 10.0, 30.0):
            for C in (0.5, 2.0):
                peak = 0.52 + 0.03 * i - 0.02 * (i > 1) * i
                score = (
                    peak + 0.07 * np.exp(-((np.log10(lam + 0.1) - 0.4) ** 2)) + rng.normal(0, 0.004)
                )
                dropped = bool((i == 0 and lam > 5) or lam == 0.0)
                trials.append(
                    {
                        "n_components": rank, "lam": lam, "map_iter": 40, "C": C, "normalize": True,
                        "score": round(float(score), 4),
                        "error": round(float(rng.uniform(0.008, 0.02)), 4),
                        "folds": 2 if dropped else 5, "dropped": dropped,
                    }
                )  # fmt: skip
    return {
        "metric": metric,
        "chosen": {"n_components": ranks[1], "lam": 3.0, "map_iter": 40, "C": 2.0},
        "trials": trials,
        "sentence": f"{ranks[1]} parts at lam = 3: the fewest parts that cannot be told from the "
        "best, by one standard error over five folds.",
    }


def _report(rng, i, sure):
    words = [
        str(w) for theme in rng.permutation(len(VOCABULARY))[:3] for w in VOCABULARY[theme][:6]
    ]
    text = "During the approach we noticed the " + " and then the ".join(rng.permutation(words))
    labels = [LABELS[int(c)] for c in rng.permutation(len(LABELS))[: 1 + i % 2]]
    weights = sorted(rng.normal(0.1, 0.3, 6), key=abs, reverse=True)
    return {
        "name": f"row {int(rng.integers(3000))}",
        "text": "Short note: bird seen."
        if i % 5 == 4
        else text + ".\nThe captain filed this report the next day.",
        "image": None,
        "labels": labels,
        "known": [None, labels, [LABELS[3]]][i % 3],
        "score": round(float(rng.uniform(1.1, 2.2) if sure else rng.normal(0, 0.06)), 3),
        "probability": round(
            float(rng.uniform(0.93, 0.99) if sure else rng.uniform(0.45, 0.55)), 3
        ),
        "words": [
            [word, round(float(weight), 3)]
            for word, weight in zip(rng.permutation(words)[:6].tolist(), weights, strict=True)
        ],
    }


def _drawn(rng, i, sure):
    nine = bool(i % 2)
    return {
        "name": f"row {int(rng.integers(11_000))}",
        "text": None,
        "image": encode(_digit(rng, nine)),
        "labels": ["9" if nine else "4"],
        "known": None if i % 3 else ["9"],
        "score": round(float(rng.uniform(2, 3) if sure else rng.normal(0, 0.05)), 3),
        "probability": None,
        "words": [],
    }


def _line(points, width):
    """An image of a line through points (x, y) in the unit square, by the distance from it."""
    y, x = (np.mgrid[0:28, 0:28] + 0.5) / 28
    ink = np.zeros((28, 28))
    for (x0, y0), (x1, y1) in pairwise(points):
        for t in np.linspace(0, 1, 12):
            distance = (x - x0 - t * (x1 - x0)) ** 2 + (y - y0 - t * (y1 - y0)) ** 2
            ink = np.maximum(ink, np.exp(-distance / width**2))
    return ink


def _stroke(rng):
    start, angle, bend = rng.uniform(0.25, 0.75, 2), rng.uniform(0, np.pi), rng.uniform(-1, 1)
    points = [start]
    for i in range(4):
        turned = angle + bend * i / 2
        points.append(points[-1] + 0.09 * np.array([np.cos(turned), np.sin(turned)]))
    return _line(points, 0.045)


def _digit(rng, nine):
    shift, slant = rng.normal(0, 0.03, 2), rng.normal(0.08, 0.06)
    top = [
        (0.65, 0.2),
        (0.45, 0.15),
        (0.32, 0.28),
        (0.35, 0.45),
        (0.5, 0.5),
        (0.66, 0.4),
        (0.67, 0.2),
        (0.6, 0.85),
    ]
    open_top = [(0.35, 0.18), (0.3, 0.5), (0.68, 0.5), (0.68, 0.2), (0.66, 0.85)]
    points = np.array(top if nine else open_top) + shift
    points[:, 0] -= slant * (points[:, 1] - 0.5)
    return _line(points + rng.normal(0, 0.015, points.shape), rng.uniform(0.04, 0.06))
