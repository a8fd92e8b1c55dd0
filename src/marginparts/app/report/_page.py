"""One self-contained HTML page from a payload: no library, no network, nothing computed here.

``page.html`` holds the sections with their prose, ``page.css`` the look; ``page.js`` draws the
data. The payload travels in the page as JSON. It is a dictionary, and all of its entries are
optional; a section without data is left out of the page, and so is its entry in the table of
contents:

``title``, ``subtitle``, ``footer``
    Plain text.
``kind``, ``image_shape``
    "text", "image" or "matrix"; (height, width) of the images.
``headline``
    ``metric``, ``rows`` (``name``, ``score``, ``error``, ``ours``), ``sentence``, ``warning``.
``parts``
    A list of ``share``, ``top``, ``image``, ``classes``, ``carried`` (whether it is from a prior),
    ``fixed`` (whether it stayed as it was given), ``stability`` (0 to 1, where it is known),
    ``own`` (words with the least factor by which they are more frequent here than in any other).
``classes``
    A list of ``name``, ``n_labeled``, ``seeds`` (words), ``parts``.
``margins``
    A list of ``name``, ``sides`` (what w+ and w- stand for), ``plus``, ``plus_rebuilt``, ``minus``,
    ``minus_rebuilt`` (each with ``top`` and ``image``), ``kept``.
``loss``
    ``iteration``, ``loss``, ``stop``.
``choice``
    ``metric``, ``chosen``, ``trials``, ``sentence``.
``settings``
    A list of (name, text).
``examples``
    ``certain`` and ``doubtful``: lists of ``name``, ``text``, ``image``, ``labels``, ``known``,
    ``score``, ``probability``, ``words``.
``path``
    A list, with lam rising, of ``lam``, ``score``, ``parts``.

A ``top`` is a list of (word, weight), largest first; an ``image`` is the base64 of its bytes, row
by row, 255 for full ink; parts and classes are referred to by their index from 0, as
(index, weight).
"""

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from marginparts.app.writers import plain

#: The sections of the page, and which entries of a section make it worth showing (any of them).
SECTIONS: dict[str, tuple[str, ...]] = {
    "headline": ("rows", "sentence", "warning"),
    "parts": (),
    "classes": (),
    "margins": (),
    "loss": ("loss",),
    "choice": ("trials", "sentence"),
    "settings": (),
    "examples": ("certain", "doubtful"),
    "path": (),
}

_SLOT = re.compile(r"\{\{(\w+)\}\}")
_SECTION = re.compile(
    r'<section id="(?P<name>\w+)" data-short="(?P<short>[^"]+)".*?</section>\n', re.S
)


def render(payload: Mapping[str, Any]) -> str:
    """Return the HTML page that shows a payload; the same page for the same payload.

    Numbers that are not finite are shown as missing. The page is to be written as UTF-8.

    Examples
    --------
    >>> page = render({"title": "tickets.csv", "parts": [{"share": 1.0, "top": [["engine", 0.3]]}]})
    >>> page.splitlines()[0]
    '<!doctype html>'
    """
    payload = plain(payload)
    shown = [name for name, keys in SECTIONS.items() if _is_shown(payload.get(name), keys)]
    folder = files("marginparts.app.report")
    style, script, page = (
        (folder / f"page.{ending}").read_text(encoding="utf-8") for ending in ("css", "js", "html")
    )
    slots = {
        # this style, this script, and nothing from anywhere
        "policy": f"default-src 'none'; style-src '{_digest(style)}'; "
        f"script-src '{_digest(script)}'; base-uri 'none'; form-action 'none'",
        "title": html.escape(str(payload.get("title") or "Report")),
        "subtitle": _paragraph(payload.get("subtitle")),
        "footer": _paragraph(payload.get("footer")),
        "contents": _contents(page, shown),
        "style": style,
        "script": script,
        "data": _embed(payload),
    }
    page = _SECTION.sub(lambda section: section[0] if section["name"] in shown else "", page)
    # one pass, so that what is put in is never searched for slots
    return _SLOT.sub(lambda slot: slots[slot[1]], page)


def _is_shown(section: Any, keys: tuple[str, ...]) -> bool:
    """Return whether a section has anything to show."""
    return any(section.get(key) for key in keys) if section and keys else bool(section)


def _paragraph(text: str | None) -> str:
    return f"<p>{html.escape(str(text))}</p>" if text else ""


def _contents(page: str, shown: list[str]) -> str:
    """Return the table of contents. One section alone needs none."""
    if len(shown) < 2:
        return ""
    items = "\n".join(
        f'        <li><a href="#{section["name"]}">{section["short"]}</a></li>'
        for section in _SECTION.finditer(page)
        if section["name"] in shown
    )
    return f'<nav aria-label="Contents">\n      <ol>\n{items}\n      </ol>\n    </nav>'


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _embed(payload: Mapping[str, Any]) -> str:
    """Return a payload as JSON that no text in it can break out of.

    All that is not ASCII is escaped, and so are the characters that mean something in HTML.
    """
    text = json.dumps(payload, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
