"""Tests of the data sets."""

import os
import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import normalize
from sklearn.svm import LinearSVC

from marginparts.datasets import load_digits_49, load_docstrings
from marginparts.datasets.embedded import _clean

DOCSTRING = """Fit a curve, as scipy.stats.norm does.

    .. versionadded:: 1.2
       Broadcasting.

    Parameters
    ----------
    x : array of floats in :ref:`the guide <guide_stats>`

    See Also
    --------
    curve : Elsewhere.

    Notes
    -----
    Uses linear_model; see https://example.org/stats .

    >>> from scipy import stats
    >>> stats.norm
    output

    The end of scipy.
    """


@pytest.fixture(scope="module")
def corpus():
    return load_docstrings()


def test_digits_are_fours_and_nines_in_the_unit_interval():
    digits = load_digits_49()
    assert digits.data.shape == (361, 64)
    assert digits.data.dtype == np.float64
    assert digits.data.min() == 0.0
    assert digits.data.max() == 1.0
    np.testing.assert_array_equal(np.bincount(digits.target), [181, 180])
    np.testing.assert_array_equal(digits.images.reshape(-1, 64), digits.data)
    nines = load_digits().data[load_digits().target == 9]
    np.testing.assert_array_equal(digits.data[digits.target == 1] * 16, nines)


def test_corpus_parts_agree(corpus):
    n_documents, n_words = corpus.data.shape
    assert len(corpus.target) == len(corpus.documents) == len(corpus.names) == n_documents
    assert len(corpus.feature_names) == n_words
    assert corpus.data.format == "csr"
    assert corpus.data.dtype == np.float64
    assert corpus.data.data.min() >= 1.0
    assert corpus.data.sum(axis=1).min() > 0.0
    assert corpus.names == sorted(corpus.names)
    for name, label in zip(corpus.names, corpus.target_names[corpus.target], strict=True):
        assert name.startswith(f"{label}.")


def test_corpus_is_of_useful_size(corpus):
    assert 2000 <= corpus.data.shape[0] <= 5000
    assert 12 <= len(corpus.target_names) <= 30
    assert np.bincount(corpus.target).min() >= 25


def test_counts_are_those_of_the_documents(corpus):
    row = corpus.data[[7]].toarray()[0]
    words = corpus.documents[7].split()
    for column in np.flatnonzero(row):
        assert row[column] == words.count(corpus.feature_names[column])


def test_no_near_duplicates(corpus):
    assert len(set(corpus.documents)) == len(corpus.documents)
    counts = CountVectorizer(token_pattern="[a-z]{2,}", dtype=float).fit_transform(corpus.documents)
    unit = normalize(counts.log1p())
    cosine = (unit @ unit.T).toarray()
    np.fill_diagonal(cosine, 0.0)
    assert cosine.max() < 0.9


def test_label_is_not_in_the_text(corpus):
    label_words = set(" ".join(corpus.target_names).replace(".", " ").replace("_", " ").split())
    assert {"scipy", "stats", "linear"} <= label_words
    for document in corpus.documents:
        assert label_words.isdisjoint(document.split())


def test_clean_keeps_prose_only():
    assert _clean(DOCSTRING) == "fit curve as does array of floats in uses see the end of"


def test_few_labels_are_hard_and_many_are_easier(corpus):
    unit = normalize(corpus.data.log1p())
    order = np.random.default_rng(0).permutation(len(corpus.target))

    def accuracy(n_train):
        train, test = order[:n_train], order[-500:]
        model = LinearSVC().fit(unit[train], corpus.target[train])
        return model.score(unit[test], corpus.target[test])

    few, many = accuracy(len(order) // 20), accuracy(len(order) - 500)
    assert 0.45 < few < 0.8
    assert few + 0.1 < many < 0.98


def test_two_loads_are_equal_and_independent(corpus):
    other = load_docstrings()
    assert (corpus.data != other.data).nnz == 0
    assert corpus.documents == other.documents
    other.data.data[:] = -1.0
    other.target[:] = -1
    other.documents.clear()
    other.names.clear()
    fresh = load_docstrings()
    assert (corpus.data != fresh.data).nnz == 0
    np.testing.assert_array_equal(corpus.target, fresh.target)
    assert corpus.documents == fresh.documents
    assert corpus.names == fresh.names


@pytest.mark.wide
def test_corpus_does_not_depend_on_hash_seed_or_imports(corpus):
    # Experimental classes and a module loaded early must leave no trace in the corpus.
    code = (
        "import sklearn.experimental.enable_halving_search_cv, scipy.stats, sys\n"
        "from marginparts.datasets import load_docstrings\n"
        "sys.stdout.write('\\n'.join(load_docstrings().documents))"
    )
    assert _run(code, PYTHONHASHSEED="7").split("\n") == corpus.documents


def test_import_is_cheap():
    code = "import marginparts.datasets, sys; print('sklearn.datasets' in sys.modules)"
    assert _run(code).strip() == "False"


def _run(code, **environment):
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return result.stdout
