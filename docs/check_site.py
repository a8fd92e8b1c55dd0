"""Check a built site: no broken link inside it, a page for every public name, pictures.

python docs/check_site.py docs/_build/html
"""

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Iterator
from enum import Enum
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: Where public names are looked for; the last are there only with what they need.
MODULES = ("marginparts", "marginparts.datasets", "marginparts.sc.tl", "marginparts.sc.pl")
#: Public names that a page of their own would say nothing about.
WITHOUT_PAGE = {"marginparts.__version__", "marginparts.datasets"}


class Page(HTMLParser):
    """The anchors of a page, what it links to, and how many pictures it has."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.text = path.read_text("utf-8")
        self.feed(self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep what is of interest."""
        for name, value in attrs:
            if value and (name == "id" or (tag == "a" and name == "name")):
                self.anchors.add(value)
            if value and name in ("href", "src"):
                self.links.append(value)


def pages_of(site: Path) -> list[Path]:
    """Return the pages, without the templates that the theme leaves among its files."""
    return [p for p in sorted(site.rglob("*.html")) if "_static" not in p.relative_to(site).parts]


def broken_links(site: Path) -> Iterator[str]:
    """Yield a sentence for every link inside the site that leads nowhere."""
    pages = {path.resolve(): Page(path) for path in pages_of(site)}
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            to = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not to.is_file():
                yield f"{path.relative_to(site.resolve())} links to {link}, which is not there"
            elif to in pages and unquote(parts.fragment) not in {"", *pages[to].anchors}:
                yield f"{path.relative_to(site.resolve())} links to {link}: no such anchor"


def loaded_from_elsewhere(site: Path) -> Iterator[str]:
    """Yield a sentence for every page that needs the network to be shown."""
    for path in pages_of(site):
        for line in path.read_text("utf-8").splitlines():
            if "<script" in line and 'src="http' in line:
                yield f"{path.relative_to(site)} loads a script from elsewhere: {line.strip()}"


def public_names() -> Iterator[tuple[str, object]]:
    """Yield every public name and what it stands for."""
    for name in MODULES:
        try:
            module = importlib.import_module(name)
        except ImportError as error:
            if name.startswith("marginparts.sc"):  # not in every version, and not without AnnData
                print(f"{name} is not here: {error}")
                continue
            raise
        own = [n for n, v in vars(module).items() if getattr(v, "__module__", "") == name]
        for each in getattr(module, "__all__", [n for n in own if not n.startswith("_")]):
            if f"{name}.{each}" not in WITHOUT_PAGE:
                yield f"{name}.{each}", getattr(module, each)


def undocumented(site: Path) -> Iterator[str]:
    """Yield a sentence for every public name without a page, parameters or an example."""
    for name, value in public_names():
        path = site / "api" / f"{name}.html"
        if not path.exists():
            yield f"{name} has no page: add it to docs/api.rst"
            continue
        page = Page(path)
        if name not in page.anchors:
            yield f"the page of {name} does not document it"
        is_error = inspect.isclass(value) and issubclass(value, Exception)
        if callable(value) and not is_error:
            if "Examples" not in page.text:
                yield f"{name} has no example"
            named = "Parameters" in page.text or "Attributes" in page.text
            is_choice = inspect.isclass(value) and issubclass(value, Enum)
            if not named and not is_choice and inspect.signature(value).parameters:
                yield f"the page of {name} does not name its parameters"


def pictureless(site: Path) -> Iterator[str]:
    """Yield a sentence for every example of the gallery without a picture."""
    examples = sorted(site.glob("auto_examples/*/plot_*.html"))
    if len(examples) < 15:
        yield f"the gallery has {len(examples)} examples, and should have 15 or more"
    for path in examples:
        if not any("sphx_glr" in link for link in Page(path).links):
            yield f"{path.relative_to(site)} has no picture"


def main() -> None:
    """Print what is wrong, and fail if something is."""
    site = Path(sys.argv[1])
    checks = (broken_links, loaded_from_elsewhere, undocumented, pictureless)
    wrong = [sentence for check in checks for sentence in check(site)]
    good = f"{len(pages_of(site))} pages: all links, public names and pictures are there"
    print("\n".join(wrong) or good)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
