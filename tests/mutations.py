"""Changes to archives of JSON and arrays that keep them well formed: checksums are made anew."""

import hashlib
import io
import json
import zipfile

import numpy as np

#: What may stand in the place of a value.
STRANGE = (
    None, True, -1, 0, 1, 3, 10**12, 2**63, 1e308, "", "auto", "\x1b[31m", "x" * 5000, [], [1, 2],
    {}, {"float": "nan"}, {"float": "-inf"}, {"tuple": []}, {"dict": [[1, 2]]},
    {"array": "classes_"}, {"scalar": ["int8", 3]}, {"objects": {"shape": [2], "values": ["a", 1]}},
)  # fmt: skip


def read_archive(path):
    """Return the JSON and the arrays of an archive, and the name of its text."""
    with zipfile.ZipFile(path) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    text = next(name for name in contents if name.endswith(".json"))
    arrays = {
        name: np.lib.format.read_array(io.BytesIO(data))
        for name, data in contents.items()
        if name.endswith(".npy")
    }
    return text, json.loads(contents[text]), arrays


def write_archive(path, text, tree, arrays):
    """Write an archive as a stranger might, with checksums that agree."""
    contents = {text: json.dumps(tree).encode()}
    for name, array in arrays.items():
        out = io.BytesIO()
        np.lib.format.write_array(out, array, version=(1, 0))
        contents[name] = out.getvalue()
    sums = "".join(f"{hashlib.sha256(d).hexdigest()}  {n}\n" for n, d in contents.items())
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in {**contents, "SHA256SUMS": sums.encode()}.items():
            archive.writestr(name, data)


def changed_array(rng, array):
    """Return an array with another shape, type or entry."""
    ways = [
        lambda a: a.T.copy(), lambda a: a[:-1] if a.ndim else a, lambda a: a[:0] if a.ndim else a,
        lambda a: np.concatenate([a, a[:1]]) if a.ndim else a, lambda a: a.reshape(-1),
        lambda a: a[..., :-1] if a.ndim else a, lambda a: a[..., :0] if a.ndim else a,
        lambda a: a.reshape(1, *a.shape), lambda a: a.astype(a.dtype.newbyteorder(">")),
        lambda a: a.astype(np.float16 if a.dtype.kind == "f" else np.int8)
        if a.dtype.kind in "if" else a.astype(str), lambda a: a.astype("U3"),
        lambda a: np.asfortranarray(a), lambda a: np.array(3), lambda a: np.zeros((0, 2**40)),
        *[lambda a, value=value: _with(rng, a, value)
          for value in (np.nan, np.inf, -np.inf, -1, 0, 2**31, 2**62, 1e308)],
    ]  # fmt: skip
    with np.errstate(all="ignore"):
        return ways[rng.integers(len(ways))](array)


def _with(rng, array, value):
    if array.dtype.kind not in "iuf" or not array.size:
        return array
    array = array.copy()
    if array.dtype.kind != "f":
        value = int(np.clip(np.nan_to_num(value), *_range(array.dtype)))
    array.reshape(-1)[rng.integers(array.size)] = value
    return array


def _range(dtype):
    return np.iinfo(dtype).min, min(np.iinfo(dtype).max, 2**62)


def places(tree, path=()):
    """Yield where the values of a tree are."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in items:
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from places(value, (*path, key))


def changed_tree(rng, tree):
    """Return a tree in which a value is another, is missing, or is there twice."""
    tree = json.loads(json.dumps(tree))
    found = list(places(tree))
    *path, key = found[rng.integers(len(found))]
    node = tree
    for step in path:
        node = node[step]
    way = rng.integers(4)
    if way == 0:
        del node[key]
    elif way == 1 and isinstance(node, list):
        node.append(node[key])
    else:
        node[key] = STRANGE[rng.integers(len(STRANGE))]
    return tree


def mutated(rng, text, tree, arrays):
    """Return an archive with one to three changes."""
    arrays = dict(arrays)
    for _ in range(rng.integers(1, 4)):
        if arrays and rng.random() < 0.6:
            names = sorted(arrays)
            name = names[rng.integers(len(names))]
            other = names[rng.integers(len(names))]
            swap = rng.random() < 0.15
            arrays[name] = arrays[other] if swap else changed_array(rng, arrays[name])
        else:
            tree = changed_tree(rng, tree)
    return text, tree, arrays


def is_a_sentence(error, path=""):
    """Check that an error is one sentence that names the file."""
    said = str(error)
    assert str(path) in said
    assert len(said) < 1000
    assert "\n" not in said
    assert said.endswith(".")
