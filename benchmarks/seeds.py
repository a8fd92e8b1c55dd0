"""News without one label: three seed words a class, and what each method makes of them.

    pip install corextopic tomotopy six
    MARGINPARTS_DATA=path/to/data python benchmarks/seeds.py

Seeds come from the names of the classes alone, by `seed_words`. All methods get the same ones,
learn from the 11,269 training documents without labels, and are scored on the 7,505 test documents.
Of the rivals several settings are run, some with topics beside those of the classes; ours runs as
it is by default. A rival that is not installed is skipped with a sentence.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from common import parser
from marginparts import NMFAlphaClassifier, seed_columns
from marginparts.datasets import PaperData, load_paper_data
from marginparts.seeds import seeds_of
from marginparts.weighting import usual_weights, weighted_rows
from records import Table

#: Parts of names that say where a group stands among others, and not what it is about.
STRUCTURE = {"alt", "comp", "misc", "os", "rec", "sci", "soc", "sys", "talk"}

#: What abbreviations and contractions stand for.
MEANING = {
    "autos": ["auto", "automobile"], "crypt": ["cryptography"], "forsale": ["sale"],
    "mac": ["macintosh"], "med": ["medicine", "medical"], "mideast": ["middle", "east"],
    "ms": ["microsoft"],
}  # fmt: skip

#: A form of a word must be in so many documents.
COMMON = 10

#: Settings of the rivals.
COREX = [{"strength": s} for s in (3, 6, 12, 24)] + [{"strength": s, "free": 20} for s in (3, 6)]
LDA = [{"prior": 1.0}, {"prior": 1.0, "free": 20}, {"prior": 10.0}]

Seeds = dict[str, list[str]]


def seed_words(name: str, words: list[str], documents: np.ndarray, n: int = 3) -> list[str]:
    """Return n seeds of a class by its name.

    First the parts of the name, the last one first, each followed by what it stands for; then other
    forms of these: words that begin alike, the most common ones first. Only words of the
    vocabulary. Beginning alike is: without a final s, and if more than five letters are left,
    without the last of these.
    """
    tokens = [part for part in reversed(re.split(r"[.-]", name)) if part not in STRUCTURE]
    found = [word for token in tokens for word in (token, *MEANING.get(token, []))]
    for word in [word for word in found if word not in MEANING]:
        stem = word.removesuffix("s")
        stem = stem[:-1] if len(stem) > 5 else stem
        forms = [k for k, w in enumerate(words) if w.startswith(stem) and documents[k] >= COMMON]
        found += [words[k] for k in sorted(forms, key=lambda k: -documents[k])]
    known = set(words)
    return list(dict.fromkeys(word for word in found if word in known))[:n]


def all_of(seeds: Seeds) -> list[str]:
    """Return all seeds, each once."""
    return list(dict.fromkeys(word for own in seeds.values() for word in own))


def counted(data: PaperData, seeds: Seeds) -> np.ndarray:
    """Predict the class whose seeds weigh most in a document; without any, the first one."""
    found = seeds_of(seeds, data.feature_names, data.X_train.shape[1])
    rows = weighted_rows(data.X_test, usual_weights(data.X_train))
    codes, _ = found.codes(sp.csr_array(rows))
    return found.classes[np.maximum(codes, 0)]


def ours(data: PaperData, seeds: Seeds) -> np.ndarray:
    """Predict with the classifier as it is by default."""
    model = NMFAlphaClassifier(seeds=seed_columns(seeds, data.feature_names), random_state=0)
    return model.fit(data.X_train).predict(data.X_test)


def corex(data: PaperData, seeds: Seeds, strength: float, free: int = 0) -> np.ndarray:
    """Predict the most probable topic of anchored CorEx, on the 20,000 commonest words."""
    from corextopic.corextopic import Corex

    words = data.feature_names
    common = np.bincount(data.X_train.indices, minlength=len(words))
    common[np.isin(words, list(ENGLISH_STOP_WORDS))] = 0
    common[np.isin(words, all_of(seeds))] += len(words)  # seeds stay
    columns = np.argsort(-common)[:20_000]
    train, test = (
        sp.csr_matrix((X[:, columns] > 0).astype(float)) for X in (data.X_train, data.X_test)
    )
    model = Corex(n_hidden=len(seeds) + free, max_iter=200, seed=0)
    anchors = list(seeds.values())
    model.fit(train, words=words[columns].tolist(), anchors=anchors, anchor_strength=strength)
    shares = np.asarray(model.transform(test, details=True)[0])[:, : len(seeds)]
    return np.array(list(seeds))[shares.argmax(axis=1)]


def seeded_lda(data: PaperData, seeds: Seeds, prior: float, free: int = 0) -> np.ndarray:
    """Predict the largest topic of LDA whose priors of seed words are large in their topics."""
    import tomotopy

    words, other = data.feature_names, 0.01
    stop = np.isin(words, list(ENGLISH_STOP_WORDS))
    model = tomotopy.LDAModel(k=len(seeds) + free, min_df=5, alpha=0.1, eta=other, seed=0)
    for word in all_of(seeds):
        own = [prior if word in words else other for words in seeds.values()]
        model.set_word_prior(word, own + [other] * free)

    def documents(X: Any) -> list[list[str]]:
        rows = zip(X.indptr[:-1], X.indptr[1:], strict=True)
        tokens = (np.repeat(X.indices[a:b], X.data[a:b].astype(int)) for a, b in rows)
        return [words[row[~stop[row]]].tolist() or ["-"] for row in tokens]

    for document in documents(data.X_train):
        model.add_doc(document)
    model.train(1000, workers=1)
    shares, _ = model.infer([model.make_doc(d) for d in documents(data.X_test)], workers=1)
    return np.array(list(seeds))[np.array(shares)[:, : len(seeds)].argmax(axis=1)]


def main() -> None:
    options = parser(__doc__).parse_args()
    data = load_paper_data("news")
    words = data.feature_names.tolist()
    documents = np.bincount(data.X_train.indices, minlength=len(words))
    seeds = {str(name): seed_words(str(name), words, documents) for name in data.class_names}
    for name, own in seeds.items():
        print(f"{name:26} {' '.join(own)}")
    table = Table("seeds", ("method", "setting", "accuracy", "seconds"), options.quick)
    runs: list[tuple[str, str, Callable[..., np.ndarray], dict[str, Any]]] = [
        ("seed words counted", "", counted, {}),
        ("NMF-alpha, seeds alone", "defaults", ours, {}),
        *(
            (name, ", ".join(f"{key} {value}" for key, value in how.items()), run, how)
            for name, run, settings in (
                ("anchored CorEx", corex, COREX),
                ("seeded LDA", seeded_lda, LDA),
            )
            for how in settings
        ),
    ]
    for method, setting, run, how in runs[: 3 if options.quick else None]:
        began = time.perf_counter()
        try:
            predicted = run(data, seeds, **how)
        except ImportError as error:
            print(f"{method} is skipped: {error}; pip install corextopic tomotopy six.")
            continue
        accuracy = float(np.mean(predicted == data.class_names[data.y_test]))
        seconds = time.perf_counter() - began
        table.add(
            method=method, setting=setting, accuracy=round(accuracy, 4), seconds=round(seconds)
        )
        print(f"{method:24} {setting:22} {100 * accuracy:5.1f} %  {seconds:5.0f} s", flush=True)


if __name__ == "__main__":
    main()
