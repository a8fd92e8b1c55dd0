"""Configuration of the site: ``sphinx-build -W -b html docs docs/_build/html``."""

import importlib.util
import re
import shutil
import sys
import warnings
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE / "_ext"), str(ROOT / "src")]

from marginparts import __version__  # noqa: E402

project = "marginparts"
copyright = "the marginparts developers"
version = release = __version__
language = "en"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "command_reference",
]
exclude_patterns = [
    "_build",
    "_ext",
    "_templates",
    "**/sg_execution_times.rst",
    "sg_execution_times.rst",
]
templates_path = ["_templates"]
smartquotes = False  # types such as "auto" are to be typed
toc_object_entries_show_parents = "hide"
default_role = "py:obj"  # a name in single backticks is a link where there is a page for it
suppress_warnings = ["myst.header"]  # tables that commands write have their own headings

# --- pages

myst_enable_extensions = ["colon_fence", "dollarmath", "deflist"]
myst_heading_anchors = 4  # the anchors that links between the pages use
myst_dmath_double_inline = True

# --- reference

autosummary_generate = True
autodoc_typehints = "none"  # the docstrings say it for people
autodoc_member_order = "groupwise"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# --- gallery

warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")
sphinx_gallery_conf = {
    "examples_dirs": str(ROOT / "examples"),
    "gallery_dirs": "auto_examples",
    "backreferences_dir": "api/backreferences",
    "doc_module": ("marginparts",),
    "reference_url": {"marginparts": None},
    "image_scrapers": ("returned_figures.returned_figures", "matplotlib"),
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "matplotlib_animations": False,
    "remove_config_comments": True,
    "show_memory": False,
    "min_reported_time": 0,
    "thumbnail_size": (480, 336),
    "download_all_examples": True,
    "promote_jupyter_magic": False,
    "plot_gallery": True,
    "parallel": 2,
}

# --- looks

html_theme = "pydata_sphinx_theme"
html_title = "marginparts"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "marginparts"},
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    "header_links_before_dropdown": 7,
    "show_prev_next": False,
    "show_toc_level": 2,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "project/*": [], "which-method": []}

# Formulas are drawn by a MathJax that lies on the site, so that they show without a network.
MATHJAX = Path(importlib.util.find_spec("sphinx-mathjax-offline").origin).parent / "static/mathjax"
mathjax_path = "mathjax/tex-chtml.js"


def copy_mathjax(app, error):
    """Put what a page with formulas loads beside the site's other files."""
    if error is None and app.builder.format == "html":
        for part in ("tex-chtml.js", "input/tex/extensions", "output/chtml/fonts"):
            target = Path(app.outdir) / "_static" / "mathjax" / part
            target.parent.mkdir(parents=True, exist_ok=True)
            if (MATHJAX / part).is_dir():
                shutil.copytree(MATHJAX / part, target, dirs_exist_ok=True)
            else:
                shutil.copy2(MATHJAX / part, target)


# --- pages that are kept elsewhere

# Files of the repository's root that are pages of the site, too.
PROJECT = {
    "CONTRIBUTING.md": "contributing",
    "CHANGELOG.md": "changelog",
    "SECURITY.md": "security",
    "benchmarks/README.md": "benchmark-scripts",
}
LINK = re.compile(r"(?<!\!)\[(?P<text>[^\]]*)\]\((?P<path>[^)\s#:]+)(?P<anchor>#[^)\s]*)?\)")
TITLE = re.compile(r'^```python title="(?P<file>[^"]+)"$', re.MULTILINE)


def target(path):
    """Return where a file of the repository is on the site, as an absolute page, or None."""
    if path == ROOT / "README.md":
        return "/index.md"
    try:
        name = path.relative_to(ROOT).as_posix()
    except ValueError:
        return None
    if name in PROJECT:
        return f"/project/{PROJECT[name]}.md"
    if name == "examples":
        return "/auto_examples/index.rst"
    if name.startswith("examples/"):
        return f"/auto_{name.removesuffix('.py')}.rst"
    if path.parent == HERE and path.suffix in (".md", ".rst"):
        return f"/{path.name}"
    return None


def with_links(text, folder):
    """Make links between files of the repository links between pages of the site."""

    def replace(match):
        page = target((folder / match["path"]).resolve())
        if page is None:  # a file that is no page: its name is all that can be shown
            return match["text"]
        return f"[{match['text']}]({page}{match['anchor'] or ''})"

    return LINK.sub(replace, text)


def bring_pages(app, config):
    """Write the pages that are kept outside this folder into ``project/``."""
    folder = HERE / "project"
    folder.mkdir(exist_ok=True)
    for source, name in PROJECT.items():
        text = with_links((ROOT / source).read_text("utf-8"), (ROOT / source).parent)
        page = folder / f"{name}.md"
        if not page.exists() or page.read_text("utf-8") != text:
            page.write_text(text, "utf-8")


def adapt(app, docname, source):
    """Adapt a page to the site: links, and the names of quoted files."""
    if "/" in docname or not (HERE / f"{docname}.md").exists():
        return
    text = with_links(source[0], HERE)
    source[0] = TITLE.sub(r"```{code-block} python\n:caption: src/marginparts/\g<file>\n", text)


def is_of_others(app, what, name, obj, skip, options):
    """Leave out of a class's page what scikit-learn and Python give to every class."""
    own = getattr(obj, "__module__", "marginparts") or "marginparts"
    if re.fullmatch(r"set_\w+_request", name) or not own.startswith("marginparts"):
        return True
    return None


def setup(app):
    """Connect the above."""
    app.connect("config-inited", bring_pages)
    app.connect("source-read", adapt)
    app.connect("autodoc-skip-member", is_of_others)
    app.connect("build-finished", copy_mathjax)
