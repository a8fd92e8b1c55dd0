"""What Figure 2 shows: one start for every lam, and one digit in its most used parts."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from marginparts.datasets import PaperData
from marginparts.experiments import bases
from marginparts.experiments.bases import find_bases, load_bases, most_used, save_bases

RANK = 4


def tiny_data(name, data_dir=None):
    """Pictures of 3 x 3 pixels with a bar on the left or on the right, by class."""
    rng = np.random.default_rng(0)

    def part(n):
        y = rng.integers(2, size=n)
        X = 0.2 * rng.random((n, 3, 3), dtype=np.float32)
        X[np.arange(n), :, 2 * y] += 1
        return X.reshape(n, 9), y

    X_train, y_train = part(150)
    X_test, y_test = part(10)
    return PaperData(
        name, "binary", X_train, y_train, X_test, y_test, None, np.array(["4", "9"]), 100, 50
    )  # fmt: skip


#: A figure of the experiments; its kernels are compiled for nothing else.
pytestmark = pytest.mark.wide


@pytest.fixture(autouse=True)
def data(monkeypatch):
    monkeypatch.setattr(bases, "load_paper_data", tiny_data)
    monkeypatch.setattr(bases, "FRACTION", 0.2)
    return tiny_data("mnist")


@pytest.fixture
def found():
    return find_bases(lams=(0, 10, 1000), rank=RANK, quick=True)


@pytest.mark.parametrize(
    ("coefficients", "used"),
    [
        ([1, 6, 0, 3], [1, 3]),  # 9 of 10 is just enough
        ([1.1, 6, 0, 2.9], [1, 3, 0]),
        ([0, 5], [1]),
        ([0, 0], []),
        ([1] * 10, range(9)),
    ],
)
def test_the_fewest_parts_with_nine_tenths_are_used(coefficients, used):
    assert_array_equal(most_used(np.array(coefficients, np.float32)), list(used))


def test_every_lam_starts_afresh_from_the_same_factors(found):
    for panel in found.panels:
        (alone,) = find_bases(lams=(panel.lam,), rank=RANK, quick=True).panels
        assert_array_equal(alone.parts, panel.parts)
        assert_array_equal(alone.coefficients, panel.coefficients)


def test_the_labels_matter_with_lam_and_without_it_do_not(monkeypatch, found, data):
    flipped = PaperData(**{**vars(data), "y_train": np.roll(data.y_train, 1)})
    monkeypatch.setattr(bases, "load_paper_data", lambda *_: flipped)
    other = find_bases(lams=(0, 10), rank=RANK, quick=True)
    assert_array_equal(other.panels[0].parts, found.panels[0].parts)
    assert np.abs(other.panels[1].parts - found.panels[1].parts).max() > 0.01


def test_parts_have_sum_one_and_make_up_the_digit(found, data):
    assert_array_equal(found.digit, data.X_test[0])
    assert found.name == data.class_names[data.y_test[0]]
    assert [panel.lam for panel in found.panels] == [0, 10, 1000]
    for panel in found.panels:
        assert panel.parts.shape == (RANK, 9)
        assert_allclose(panel.parts.sum(axis=1, dtype=float), 1, rtol=2e-3)
        assert_allclose(panel.coefficients.sum(), found.digit.sum(), rtol=1e-3)


def test_the_digit_is_rebuilt_from_its_used_parts_alone(found):
    for panel in found.panels:
        used = panel.used
        assert 0 < len(used) <= RANK
        unused = np.setdiff1d(np.arange(RANK), used)
        assert panel.coefficients[unused].max(initial=0) <= panel.coefficients[used].min()
        parts = panel.parts[used].astype(float)
        assert_allclose(panel.rebuilt, panel.coefficients[used] @ parts, rtol=2e-3, atol=1e-4)


def test_another_digit_can_be_asked_for(found, data):
    other = find_bases(lams=(0,), rank=RANK, quick=True, digit=3)
    assert_array_equal(other.digit, data.X_test[3])
    assert_array_equal(other.panels[0].parts, found.panels[0].parts)
    assert np.abs(other.panels[0].coefficients - found.panels[0].coefficients).max() > 0.01


def test_quick_is_shorter(monkeypatch):
    counts = []
    factorize = bases.factorize

    def watched(*args, **options):
        counts.append(options["max_iter"])
        return factorize(*args, **options)

    monkeypatch.setattr(bases, "factorize", watched)
    find_bases(lams=(0,), rank=2, quick=True)
    find_bases(lams=(0,), rank=2)
    assert counts[0] < counts[1]


def test_what_is_saved_comes_back(found, tmp_path):
    path = tmp_path / "records" / "fig2.npz"  # the folder does not exist yet
    save_bases(path, found)
    again = load_bases(path)
    assert again.name == found.name
    assert_array_equal(again.digit, found.digit)
    assert len(again.panels) == len(found.panels)
    for panel, before in zip(again.panels, found.panels, strict=True):
        assert panel.lam == before.lam
        assert panel.parts.dtype == np.float16
        for name in ("parts", "coefficients", "rebuilt", "used"):
            assert_array_equal(getattr(panel, name), getattr(before, name))


def test_the_file_has_the_name_it_was_given_and_is_always_the_same(found, tmp_path):
    for name in ("a", "b"):
        save_bases(tmp_path / name, found)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
