"""What people put beside their data: seeds, vectors, labels, words, and a labeling's journal."""

import json
from functools import partial

import numpy as np
from attacking import Target
from strange_readers import flipped

from marginparts import Labeling
from marginparts.app.readers import open_source, read_all
from marginparts.app.readers._seeds import read_seeds
from marginparts.files.atomic import FileProblemError
from marginparts.labeling.server import _json
from marginparts.seeds import seeds_of
from mutations import STRANGE, changed_array, changed_tree, is_a_sentence

SEEDS = {"cat": ["purr", "meow"], "dog": {"bark": 2.0, "purr": -1, "run": 0.5}, "no": ["1", "yes"]}
WORDS = ["bark", "meow", "purr", "run", "yes", "1"]
DEEP = 1_200  # more than Python's stack


def _bomb(depth=9, width=9):
    """YAML whose aliases stand for each other: a few lines that would be written out as many."""
    lines = ["a0: &a0 [x, x]"]
    lines += [f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * width)}]" for k in range(1, depth)]
    return "\n".join(lines)


#: Texts that are no seeds.
NO_SEEDS = [
    "[" * DEEP, "{" * DEEP, '{"a":' * DEEP, "- " * DEEP, _bomb(), "a: &a [*a]", "a: &a {b: *a}",
    "? [1, 2]\n: [3]", "!!python/object/apply:os.getcwd []", '{"a": {"b": 1e999}}',
    '{"a": {"b": NaN}, "c": ["d"]}', "a: {b: .inf}\nc: [d]", '{"a": {"b": "' + "9" * 5000 + '"}}',
    '{"a": {"b": ' + "9" * 5000 + "}}", "class,word,strength\na,b,nan\nc,d,1\n", "\x00", "a: b: c",
    "--- a\n--- b", "%YAML 9.9\n---\na: [b]", "class,word\n" + "a,b\n" * 3, "<<: {a: [b]}\nc: [d]",
]  # fmt: skip


def attack_seeds(ending, folder):
    """A file of seeds that is another."""
    import yaml

    path = folder / f"seeds.{ending}"
    rare = 40 if ending == "yaml" else 8  # PyYAML takes half a second for what is deep

    def text_of(rng, tree):
        if ending == "json":
            return json.dumps(tree)
        if ending == "yaml":
            return yaml.safe_dump(tree)
        rows = [[c, w, "1"] for c, words in SEEDS.items() for w in words]
        for _ in range(rng.integers(3)):
            column = rng.integers(3)
            good = (list(SEEDS), WORDS, ["", "2", "0.5", "-1"])[column]
            known = rng.random() < 0.5
            cell = good[rng.integers(len(good))] if known else STRANGE[rng.integers(len(STRANGE))]
            rows[rng.integers(len(rows))][column] = f'"{cell}"' if rng.random() < 0.5 else str(cell)
        return "\n".join(["class,word,strength", *(",".join(row) for row in rows)])

    def attack(rng):
        way = rng.integers(rare)
        if way == 0:
            path.write_text(NO_SEEDS[rng.integers(len(NO_SEEDS))])
        elif way < rare * 3 // 8:
            flipped(path, rng, text_of(rng, SEEDS).encode())
        else:
            tree = SEEDS
            for _ in range(rng.integers(1, 3)):
                tree = changed_tree(rng, tree) or SEEDS
            path.write_text(text_of(rng, tree))
        before = path.read_bytes()
        try:
            found = read_seeds(path)
        except FileProblemError as error:
            is_a_sentence(error, path)
            return False
        assert path.read_bytes() == before
        assert all(isinstance(name, str) for name in found)
        for words in found.values():
            assert all(isinstance(word, str) for word in words)
            assert np.isfinite(list(words.values())).all()
        try:
            checked = seeds_of(found, WORDS, len(WORDS))
        except ValueError as error:
            is_a_sentence(error)
            return False
        assert np.isfinite(checked.strengths.data).all()
        return True

    return attack


def attack_beside(kind, folder):
    """Vectors, labels or words beside a matrix that are others."""
    data = folder / "x.npy"
    np.save(data, np.random.default_rng(0).random((12, 5)))
    arrays = kind in ("embeddings", "labels.npy")
    path = folder / {"embeddings": "v.npy", "labels.npy": "y.npy"}.get(kind, f"{kind}.txt")
    option = "labels" if kind.startswith("labels") else kind
    whole = {
        "embeddings": np.random.default_rng(1).normal(size=(12, 4)).astype(np.float32),
        "labels.npy": np.arange(12) % 3 - 1,
        "labels": "\n".join("ab"[k % 2] for k in range(12)).encode(),
        "words": "\n".join(f"w{k}" for k in range(5)).encode(),
    }[kind]

    def attack(rng):
        if not arrays:
            flipped(path, rng, whole)
        else:
            np.save(path, changed_array(rng, whole))
            if rng.random() < 0.3:
                flipped(path, rng, path.read_bytes())
        before = path.read_bytes()
        try:
            batch = read_all(open_source(data, **{option: path}))
        except FileProblemError as error:
            is_a_sentence(error, path if str(path) in str(error) else data)
            return False
        assert path.read_bytes() == before
        assert len(batch.labels) == 12
        if batch.vectors is not None:
            assert batch.vectors.shape[0] == 12
            assert np.isfinite(batch.vectors).all()
        return True

    return attack


DOCS = ["cats purr", "cats sleep and purr", "dogs bark", "dogs bark and run"] * 5
KINDS = (
    "label", "none", "skip", "note", "confirm", "estimate", "rename", "merge", "split", "forbid",
    "undo", "later", None, 3, [], {},
)  # fmt: skip


def _event(rng, ids):
    """An event, of which some things are strange."""
    some = [ids[k] for k in rng.integers(len(ids), size=2)]
    event = {
        "id": f"e{rng.integers(50)}", "kind": KINDS[rng.integers(len(KINDS))], "when": "now",
        "sample": some[0], "labels": ["cat", "dog", "cow"][: rng.integers(4)], "into": "cow",
        "label": "cat", "samples": some, "of": f"e{rng.integers(50)}", "text": "hm", "tab": "t",
        "accuracy": 0.5, "error": 0.1, "labeled": 3, "who": "ann", "random": True,
    }  # fmt: skip
    for _ in range(rng.integers(3)):
        key = list(event)[rng.integers(len(event))]
        if rng.random() < 0.3:
            del event[key]
        else:
            event[key] = STRANGE[rng.integers(len(STRANGE))]
    return event


def attack_journal(folder):
    """A journal with events that nobody wrote, and broken lines; what it knows is used."""
    path = folder / "docs.labels.jsonl"
    ids = Labeling(DOCS, background=False).pool.ids

    def attack(rng):
        lines = [json.dumps(_event(rng, ids)) for _ in range(rng.integers(1, 12))]
        path.write_text("\n".join(lines) + "\n")
        if rng.random() < 0.3:
            flipped(path, rng, path.read_bytes())
        before = path.read_bytes()
        try:
            labeling = Labeling(DOCS, journal=path, who="bob", background=False)
        except FileProblemError as error:
            is_a_sentence(error, path)
            return False
        _use(labeling, rng, folder)
        assert path.read_bytes().startswith(before)  # lines are only ever added
        again = Labeling(DOCS, journal=path, who="eve", background=False)
        assert again.state.answers == labeling.state.answers
        return True

    return attack


def _use(labeling, rng, folder):
    """Do what a page and its reader do."""
    for found in (labeling.status(), labeling.next("t"), labeling.suspects(), labeling.parts()):
        _json(found)  # what the page is told: no NaN, nothing that JSON does not know
    for name in labeling.pool.ids[:3]:
        _json(labeling.sample(name))
    before = labeling.state.answers.copy()
    labeling.answer(labeling.pool.ids[5], ["horse"], tab="mine")
    labeling.undo(tab="mine")
    assert labeling.state.answers == before
    for name in list(labeling.state.names)[:2]:
        labeling.merge([name], "all")
    labeling.targets()
    labeling.export(folder / "out.csv")
    if rng.random() < 0.02:
        labeling.learn()
        _json(labeling.status())


TARGETS = {
    **{
        f"seeds {ending}": Target(partial(attack_seeds, ending), 150)
        for ending in ("json", "yaml", "csv")
    },
    **{
        f"beside {kind}": Target(partial(attack_beside, kind), 150)
        for kind in ("embeddings", "labels", "labels.npy", "words")
    },
    "journal": Target(attack_journal, 150, both=False),
}
