"""Small real data sets that need no download."""

import functools
import importlib
import inspect
import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from sklearn.utils import Bunch

# The class of a document is the first two parts of its module. An object that several modules
# export belongs to the first of them, so an owner comes before those that only pass it on.
# fmt: off
_MODULES = (
    "numpy", "numpy.linalg", "numpy.ma", "numpy.polynomial", "numpy.polynomial.chebyshev",
    "numpy.polynomial.hermite", "numpy.polynomial.hermite_e", "numpy.polynomial.laguerre",
    "numpy.polynomial.legendre", "numpy.polynomial.polynomial", "numpy.random", "numpy.testing",
    "scipy.cluster.hierarchy", "scipy.cluster.vq", "scipy.integrate", "scipy.interpolate",
    "scipy.linalg", "scipy.ndimage", "scipy.optimize", "scipy.signal", "scipy.signal.windows",
    "scipy.sparse", "scipy.sparse.csgraph", "scipy.sparse.linalg", "scipy.spatial",
    "scipy.spatial.distance", "scipy.spatial.transform", "scipy.special", "scipy.stats",
    "scipy.stats.contingency", "scipy.stats.mstats", "scipy.stats.qmc", "scipy.stats.sampling",
    "sklearn.cluster", "sklearn.datasets", "sklearn.decomposition", "sklearn.ensemble",
    "sklearn.feature_extraction", "sklearn.feature_extraction.image",
    "sklearn.feature_extraction.text", "sklearn.feature_selection", "sklearn.linear_model",
    "sklearn.metrics", "sklearn.metrics.cluster", "sklearn.model_selection", "sklearn.neighbors",
    "sklearn.preprocessing",
)
# fmt: on
# These exist only after an opt-in import, which would make the corpus depend on the caller.
_OPT_IN = {"HalvingGridSearchCV", "HalvingRandomSearchCV"}
_MIN_WORDS, _MIN_CLASS_SIZE, _NEAR_DUPLICATE = 15, 25, 0.9
_WORD = re.compile(r"[a-z]{2,}")
# What names a module, or is code or boilerplate and not prose.
_NOISE = re.compile(
    r"""
    ^[ ]*>>>.*(?:\n[ ]*\S.*)*                       # a doctest and its output
    | ^See[ ]Also\n-+\n(?:(?!.*\n---).*\n)*         # up to the next section
    | ^\w[\w ]*\n---+$                              # the title of any other section
    | ^(?:The[ ]documentation|Array[ ]arg).*\n(?:.+\n)*?.*`linalg_batch`.*(?:\n.+)*
    | \*\*Array[ ]API[ ]Standard[ ]Support\*\*[\s\S]*?for[ ]more[ ]information\.
    | ^[ ]*(?:import[ ]+[\w.]+|from[ ]+[\w.]+[ ]+import\b).*
    | ^(?P<indent>[ ]*)\.\.[ ]*(?:version\w+|deprecated)::.*
      (?:\n(?:(?P=indent)[ ]+\S.*|[ ]*(?=\n)))*     # with the deeper lines below
    | (?:Read[ ]more[ ]in[ ]the\s+)?:ref:`[^`]*`
    | ^[ ]*\.\.[ ]*[\w-]+::|:[a-z:]+:(?=`)          # the name of a directive or a role
    | \bhttps?://\S+
    | \b\w+(?:\.\w+)+                               # a dotted path
    | \\[A-Za-z]+                                   # a LaTeX command
    """,
    re.MULTILINE | re.VERBOSE,
)


def _label(module: str) -> str:
    return ".".join(module.split(".")[:2])


# The words of all class names go from every document. To drop only a document's own would let
# the label shape the text, and a missing word would give the label away.
_LABEL_WORDS = {word for module in _MODULES for word in _WORD.findall(_label(module))}


def load_digits_49() -> Bunch:
    """Load the handwritten fours and nines of scikit-learn's digits.

    Returns
    -------
    Bunch
        - ``data`` : array of shape (361, 64), pixels in [0, 1];
        - ``target`` : int array of shape (361,), 0 for a four and 1 for a nine;
        - ``images`` : array of shape (361, 8, 8), the rows of ``data`` as images;
        - ``target_names``, ``feature_names``, ``DESCR`` : class names, pixel names, description.

    Examples
    --------
    >>> from marginparts.datasets import load_digits_49
    >>> digits = load_digits_49()
    >>> digits.data.shape
    (361, 64)
    """
    from sklearn.datasets import load_digits

    digits = load_digits()
    chosen = np.isin(digits.target, (4, 9))
    return Bunch(
        data=digits.data[chosen] / 16.0,
        target=(digits.target[chosen] == 9).astype(np.int64),
        target_names=np.array(["4", "9"]),
        feature_names=list(digits.feature_names),
        images=digits.images[chosen] / 16.0,
        DESCR=inspect.getdoc(load_digits_49),
    )


def load_docstrings(*, min_df: int | float = 3, max_df: int | float = 0.5) -> Bunch:
    """Load the docstrings of numpy, scipy and scikit-learn as word counts.

    A document is the docstring of a public function, class or method. Its class is the
    subpackage, such as ``scipy.stats``. The text changes with the installed versions.

    Parameters
    ----------
    min_df, max_df : int or float, default=3 and 0.5
        Leave out words in fewer documents than `min_df` or in more than `max_df`: a count of
        documents if int, a share of them if float.

    Returns
    -------
    Bunch
        - ``data`` : CSR array of shape (n_documents, n_words), word counts as float64;
        - ``target`` : int array of shape (n_documents,), the class of each document;
        - ``target_names``, ``feature_names`` : arrays of the class names and of the words;
        - ``documents`` : list of the cleaned texts;
        - ``names`` : list of the qualified names, in sorted order;
        - ``DESCR`` : description.

    Notes
    -----
    The text does not print its label. Doctests, imports, "See Also" sections, cross references
    and dotted paths are dropped, and so are the words of all class names, from all documents.
    A word is a run of two or more ASCII letters, in lower case; stop words are not counted.

    Texts of fewer than 15 words are left out. Of near duplicates (cosine of the log counts at
    least 0.9) within a class the first stays. A text with a near duplicate in another class
    has no clear label and is left out; this removes the boilerplate that classes share.
    Classes with fewer than 25 documents are dropped. Three documents in ten are methods. The
    first call in a process takes a few seconds.

    Examples
    --------
    >>> from marginparts.datasets import load_docstrings
    >>> corpus = load_docstrings()
    >>> "scipy.stats" in corpus.target_names
    True
    """
    names, labels, documents = _corpus()
    data, words = _count(documents, stop_words="english", min_df=min_df, max_df=max_df)
    target_names, target = np.unique(labels, return_inverse=True)
    return Bunch(
        data=data,
        target=target.astype(np.int64),
        target_names=target_names.astype(str),
        feature_names=words,
        documents=list(documents),
        names=list(names),
        DESCR=inspect.getdoc(load_docstrings),
    )


def _attributes(owner: Any, names: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """Yield the public callables among `names`; one that cannot be read is skipped."""
    for name in sorted(names):
        try:
            value = None if name.startswith("_") else getattr(owner, name)
        except (AttributeError, ImportError):
            continue
        if callable(value):
            yield name, value


def _documented(module_name: str) -> Iterator[tuple[str, Any, Any]]:
    """Yield name, object and docstring of what a module exports, methods included."""
    # Older versions lack some of the modules, or do not say what these export.
    try:
        module = importlib.import_module(module_name)
        exports = set(module.__all__) - _OPT_IN
    except (AttributeError, ImportError):
        return
    for name, value in _attributes(module, exports):
        yield name, value, value.__doc__
        for base in inspect.getmro(value) if inspect.isclass(value) else ():
            # A method from another subpackage says nothing about this one.
            if _label(base.__module__) == _label(module_name):
                for method, bound in _attributes(base, vars(base)):
                    yield f"{name}.{method}", vars(base)[method], bound.__doc__


def _clean(docstring: str) -> str:
    """Return the words of the prose, without those that name a class."""
    prose = _NOISE.sub(" ", inspect.cleandoc(docstring)).lower()
    return " ".join(word for word in _WORD.findall(prose) if word not in _LABEL_WORDS)


def _collect() -> dict[str, tuple[str, str]]:
    """Return the label and the text of every name; an object has only its first name."""
    seen: dict[int, Any] = {}
    found: dict[str, tuple[str, str]] = {}
    for module in _MODULES:
        for name, value, docstring in _documented(module):
            origin = inspect.unwrap(value)
            if id(origin) in seen or not isinstance(docstring, str):
                continue
            seen[id(origin)] = origin
            text = _clean(docstring)
            if len(text.split()) >= _MIN_WORDS:
                found.setdefault(f"{module}.{name}", (_label(module), text))
    return found


def _count(documents: Iterable[str], **options: Any) -> tuple[Any, npt.NDArray[np.str_]]:
    """Return the word counts of the documents as a CSR array, and the words."""
    from sklearn.feature_extraction.text import CountVectorizer

    vectorizer = CountVectorizer(token_pattern=_WORD.pattern, dtype=np.float64, **options)
    counts = csr_array(vectorizer.fit_transform(documents))
    counts.sort_indices()
    return counts, vectorizer.get_feature_names_out().astype(str)


def _distinct(labels: npt.NDArray[Any], documents: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Mark the documents with no near duplicate before them, nor in another class."""
    from sklearn.preprocessing import normalize

    unit = normalize(_count(documents)[0].log1p())
    keep = np.ones(len(documents), dtype=bool)
    # All pairs at once would take hundreds of megabytes.
    for start in range(0, len(documents), block := 500):
        cosine = (unit[start : start + block] @ unit.T).toarray()
        rows, others = np.nonzero(cosine >= _NEAR_DUPLICATE)
        rows += start
        keep[rows[(others < rows) | (labels[others] != labels[rows])]] = False
    return keep


@functools.lru_cache(maxsize=1)
def _corpus() -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return the names, labels and texts of the documents, in order of name."""
    if sys.flags.optimize > 1:
        raise RuntimeError("load_docstrings needs docstrings, and Python run with -OO has none")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = _collect()
    names = np.array(sorted(found), dtype=object)
    labels = np.array([found[name][0] for name in names], dtype=object)
    documents = np.array([found[name][1] for name in names], dtype=object)
    keep = _distinct(labels, documents)
    classes, sizes = np.unique(labels[keep], return_counts=True)
    keep &= np.isin(labels, classes[sizes >= _MIN_CLASS_SIZE])
    return tuple(names[keep]), tuple(labels[keep]), tuple(documents[keep])
