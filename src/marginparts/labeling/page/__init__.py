"""The page: one HTML file with its style and script inside, and a policy that allows no other."""

import base64
import hashlib
import html
from importlib.resources import files


def rendered(title: str) -> tuple[bytes, str]:
    """Return the page, and the policy that goes with it: its own style and script only."""
    folder = files("marginparts.labeling.page")
    page, style, script = (
        (folder / f"label.{ending}").read_text(encoding="utf-8") for ending in ("html", "css", "js")
    )
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )
    whole = page.replace("{{style}}", style).replace("{{script}}", script)
    return whole.replace("{{title}}", html.escape(title)).encode(), policy


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
