"""What the site is made of: every public name is listed, and its checks find what is wrong.

The site itself is built by ``.ci/site``, since that takes Sphinx and a minute.
"""

import importlib.util
import re
from pathlib import Path

import pytest

import marginparts

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def check_site():
    spec = importlib.util.spec_from_file_location("check_site", ROOT / "docs" / "check_site.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_public_name_is_in_the_reference():
    listed, module = set(), ""
    for line in (ROOT / "docs" / "api.rst").read_text(encoding="utf-8").splitlines():
        if match := re.fullmatch(r"\.\. currentmodule:: (\S+)", line):
            module = match[1]
        elif re.fullmatch(r"   \w+", line):
            listed.add(f"{module}.{line.strip()}")
    names = {f"marginparts.{name}" for name in marginparts.__all__}
    names |= {f"marginparts.datasets.{name}" for name in marginparts.datasets.__all__}
    names -= {"marginparts.__version__", "marginparts.datasets"}
    assert names - listed == set()
    assert {n for n in listed - names if not n.startswith("marginparts.sc")} == set()


def test_every_page_is_in_a_table_of_contents():
    docs = ROOT / "docs"
    inside = set()
    for page in docs.glob("*.md"):
        for body in re.findall(r":::\{toctree\}\n(.*?):::", page.read_text("utf-8"), re.DOTALL):
            inside |= {line.split("<")[-1].strip(" >") for line in body.splitlines()}
    pages = {path.stem for path in (*docs.glob("*.md"), *docs.glob("*.rst"))}
    assert pages - {"index", "sg_execution_times"} <= inside


def test_every_example_has_a_title_a_picture_and_a_text():
    examples = sorted((ROOT / "examples").glob("*/plot_*.py"))
    assert len(examples) >= 15
    for path in examples:
        text = path.read_text(encoding="utf-8")
        assert re.match(r'r?"""\n[^\n]+\n=+\n\n\S', text), path.name
        assert "plt.show()" in text or "figure = plot_" in text, path.name
        assert "\n# %%\n# " in text, path.name


def test_broken_links_are_found(check_site, tmp_path):
    (tmp_path / "a.html").write_text(
        '<h1 id="top"></h1><a href="b.html#there">x</a><a href="https://example.org/none">x</a>'
    )
    (tmp_path / "b.html").write_text('<h1 id="there"></h1><a href="a.html#top">x</a>')
    assert list(check_site.broken_links(tmp_path)) == []
    (tmp_path / "b.html").write_text(
        '<a href="c.html">x</a><img src="none.png"><a href="#no">x</a>'
    )
    assert len(list(check_site.broken_links(tmp_path))) == 4


def test_names_without_a_page_are_found(check_site, tmp_path):
    said = list(check_site.undocumented(tmp_path))
    assert any("marginparts.NMFAlpha has no page" in sentence for sentence in said)
