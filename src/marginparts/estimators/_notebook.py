"""How estimators look in notebooks: scikit-learn's diagram, and below it the parts of a fitted one.

Parts with named features are shown by the most telling of these, others by a strip of bars over
all features. Nothing in it runs code, and every name is escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from marginparts._types import Array
from marginparts.topics import distinctive, part_weights, top_features

#: Parts, features of a part, and bars of a strip that are shown at most.
_PARTS, _WORDS, _BARS = 12, 6, 64

#: Letters of a name at most.
_LETTERS = 24

_STYLE = """<style>
.marginparts-parts{font:12px/1.35 system-ui,sans-serif;margin:6px 0}
.marginparts-parts summary{cursor:pointer}
.marginparts-parts .mp-grid{display:flex;flex-wrap:wrap;gap:8px 14px;margin-top:6px}
.marginparts-parts .mp-part{width:150px}
.marginparts-parts .mp-name{font-weight:600;white-space:nowrap;overflow:hidden;
text-overflow:ellipsis}
.marginparts-parts .mp-word{white-space:nowrap;overflow:hidden;padding-left:3px;margin:1px 0;
background-repeat:no-repeat;background-image:linear-gradient(rgba(0,114,178,.28),rgba(0,114,178,.28))}
.marginparts-parts svg{display:block;width:150px;height:36px;fill:#0072b2}
</style>"""


class ShowsParts(BaseEstimator):
    """An estimator that shows its parts in a notebook once it is fitted."""

    def _repr_html_inner(self) -> str:
        """Return the diagram and the parts; scikit-learn's ``_repr_html_`` gives this out."""
        return str(super()._repr_html_inner()) + parts_html(self)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """Return what notebooks show: with the diagram switched off it is the text alone."""
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] += parts_html(self)
        return bundle


def parts_html(estimator: Any) -> str:
    """Return the parts of an estimator as HTML, nothing if it is not fitted."""
    parts = getattr(estimator, "parts_", getattr(estimator, "estimator_", estimator))
    components = getattr(parts, "components_", None)
    if components is None:
        return ""
    components = np.asarray(components, dtype=np.float64)
    labels = None
    if hasattr(estimator, "parts_") and hasattr(estimator, "head_"):
        labels = [str(estimator.classes_[k]) for k in part_weights(estimator).argmax(axis=1)]
    names = getattr(estimator, "feature_names_in_", getattr(parts, "feature_names_in_", None))
    shown = _cards(components, names, labels)
    r = len(components)
    told = f"{r} parts" if r <= _PARTS else f"{r} parts, the first {_PARTS}"
    return (
        f'{_STYLE}<details class="marginparts-parts" open><summary>{told}</summary>'
        f'<div class="mp-grid">{"".join(shown)}</div></details>'
    )


def _cards(
    components: Array, names: Sequence[str] | None, labels: Sequence[str] | None
) -> list[str]:
    named = names is not None and len(names) == components.shape[1] and components.min() >= 0
    telling = distinctive(components) if named else components
    cards = []
    for k in range(min(len(components), _PARTS)):
        title = f"part {k + 1}" + (f": {labels[k]}" if labels else "")
        body = _words(telling[k], names) if named and names is not None else _strip(components[k])
        shown = escape(title)
        cards.append(
            f'<div class="mp-part"><div class="mp-name" title="{shown}">{shown}</div>{body}</div>'
        )
    return cards


def _words(row: Array, names: Sequence[str]) -> str:
    """Return the most telling features, each on a bar."""
    found = top_features(row, names, _WORDS)
    largest = max((value for _, value in found), default=1.0)
    return "".join(
        f'<div class="mp-word" style="background-size:{100 * value / largest:.0f}% 100%">'
        f"{escape(name[:_LETTERS])}</div>"
        for name, value in found
    )


def _strip(row: Array) -> str:
    """Return bars over all features, each for the largest of some neighbors, up or down."""
    groups = np.array_split(row, min(_BARS, len(row)))
    values = np.array([group[np.abs(group).argmax()] for group in groups])
    values = values / max(float(np.abs(values).max()), 1e-300)
    low = min(float(values.min()), 0.0)
    scale = 100 / (max(float(values.max()), 0.0) - low or 1.0)
    zero = 100 + scale * low
    drawn = "".join(
        f'<rect x="{i}" y="{zero - scale * max(value, 0):.1f}" width=".8" '
        f'height="{scale * abs(value):.1f}"/>'
        for i, value in enumerate(values)
    )
    return f'<svg viewBox="0 0 {len(values)} 100" preserveAspectRatio="none">{drawn}</svg>'
