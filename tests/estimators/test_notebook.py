"""How estimators look in a notebook, and bars while they are fitted."""

import io
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from sklearn import config_context
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_html_repr

from marginparts import (
    NMFAlpha,
    NMFAlphaClassifier,
    NMFAlphaConsensus,
    OnlineNMFAlphaClassifier,
    Progress,
    ProgressBar,
    SemiNMFAlpha,
)
from marginparts.estimators.progress import _InNotebook

EVIL = "<script>alert(1)</script>"


def data():
    rng = np.random.default_rng(0)
    X = rng.random((40, 8))
    y = np.arange(40) % 2
    X[:, :4] *= 1 + 3 * y[:, None]
    return pd.DataFrame(X, columns=[EVIL, *(f"word{j}" for j in range(7))]), y


@pytest.fixture(scope="module")
def classifier():
    X, y = data()
    names = np.array(["good & bad", EVIL])[y]
    return NMFAlphaClassifier(3, max_iter=5, rehearse=False, random_state=0).fit(X, names)


class Checked(HTMLParser):
    """Tags are closed in the order in which they were opened."""

    def __init__(self, text):
        super().__init__()
        self.open, self.seen = [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        if tag not in ("input", "br", "rect", "path", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in ("input", "br", "rect", "path", "img"):
            assert self.open.pop() == tag


def without_numbers(text):
    """The diagram numbers its elements over all that a process shows."""
    return re.sub(r"(sk-container-id|sk-estimator-id)-\d+", r"\1", text)


def own(text):
    return text[text.index("<style>\n.marginparts") :]


@pytest.mark.parametrize("kind", [NMFAlpha, NMFAlphaClassifier, NMFAlphaConsensus, SemiNMFAlpha])
def test_an_unfitted_estimator_looks_as_in_scikit_learn(kind):
    expected = without_numbers(estimator_html_repr(kind()))
    assert without_numbers(kind()._repr_html_()) == expected
    assert without_numbers(kind()._repr_mimebundle_()["text/html"]) == expected


def test_a_fitted_one_shows_its_parts_below_the_diagram(classifier):
    for shown in (classifier._repr_html_(), classifier._repr_mimebundle_()["text/html"]):
        assert shown.count("sk-top-container") >= 1
        parts = own(shown)
        Checked(parts)
        assert parts.count('class="mp-part"') == 3
        assert "word" in parts
        assert "part 1: " in parts
    assert "mp-part" not in clone(classifier)._repr_html_()


def test_names_are_text_and_not_code(classifier):
    parts = own(classifier._repr_html_())
    assert "<script" not in parts
    assert "&lt;script&gt;" in parts


def test_with_the_diagram_switched_off_there_is_text_alone(classifier):
    with config_context(display="text"):
        assert set(classifier._repr_mimebundle_()) == {"text/plain"}
        assert not hasattr(classifier, "_repr_html_")


def test_features_without_names_are_a_strip_of_bars():
    X, y = data()
    shown = own(NMFAlpha(2, max_iter=5, random_state=0).fit(X.to_numpy(), y)._repr_html_())
    assert Checked(shown).seen.count("rect") == 2 * 8
    signed = SemiNMFAlpha(2, max_iter=5, random_state=0).fit(X.to_numpy() - 0.5, y)
    heights = [float(h) for h in re.findall(r'height="([\d.]+)"', own(signed._repr_html_()))]
    assert len(heights) == 2 * 8
    assert 0 <= min(heights) <= max(heights) <= 100.1


def test_all_kinds_of_fitted_estimators_can_be_shown(classifier):
    X, y = data()
    stream = OnlineNMFAlphaClassifier(2, random_state=0).partial_fit(X, y, classes=[0, 1])
    consensus = NMFAlphaConsensus(NMFAlpha(2, max_iter=5), n_runs=2, random_state=0).fit(X)
    for each in (stream, consensus):
        assert "2 parts" in own(each._repr_html_())
    assert "sk-top-container" in make_pipeline(classifier)._repr_html_()


def test_a_bar_in_a_terminal_shows_each_stage_and_fills():
    X, y = data()
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=100, color_system=None)
    with ProgressBar(console) as bar:
        NMFAlphaClassifier(2, max_iter=5, random_state=0, callback=bar).fit(X, y)
    assert bar.stages == ["choosing", "parts"]
    last = screen.getvalue().rpartition("choosing")[2]
    assert "trials" in last
    assert "finding parts" in last
    assert "loss" in last
    assert "╺" not in last  # no bar has a rest


def test_nothing_is_shown_where_nobody_looks(capsys):
    X, _ = data()
    with ProgressBar() as bar:
        NMFAlpha(2, max_iter=5, random_state=0, callback=bar).fit(X)
    assert bar.stages == ["parts"]
    assert capsys.readouterr() == ("", "")


def test_a_bar_is_for_a_with_statement():
    with pytest.raises(RuntimeError, match="with ProgressBar"):
        ProgressBar()(Progress(1, 2, 3.0, 4.0, 5.0))


class Handle:
    """What IPython's display gives for a cell's output that can be written anew."""

    def __init__(self):
        self.shown = []

    def __call__(self, bundle, *, raw, display_id):
        assert raw
        assert display_id
        return self

    def update(self, bundle, *, raw):
        assert raw
        self.shown.append(bundle)


def test_a_bar_in_a_notebook_is_html_and_text_that_needs_no_widgets():
    handle = Handle()
    bar = _InNotebook(handle)
    bar.tell(0, Progress(3, 9, 1.0, 0.5, 0.1, stage="choosing"))
    bar.tell(1, Progress(2, 50, 123.456, 0.7, 0.1))
    bar.end(done=True)
    last = handle.shown[-1]
    Checked(last["text/html"])
    assert re.findall(r'max="(\d+)" value="(\d+)"', last["text/html"]) == [("9", "9"), ("50", "50")]
    assert last["text/plain"] == "choosing: 3 of 9 trials\nfinding parts: 2 of 50, loss 123.46"
