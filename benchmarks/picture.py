"""The picture of the README: parts of a corpus, and how much of the margin they keep.

    python benchmarks/picture.py          # writes docs/parts-and-margin.png, in a minute

The docstrings of NumPy, SciPy and scikit-learn, one in ten labeled with its subpackage. As many
parts from the same start, with and without the margin of the labeled ones; for each of the twelve
subpackages with the most labels, the words of the part that speaks for it, and the share of its
hyperplane (of the squared length) that lies in the span of the parts.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from drawing import BLUE
from marginparts import NMFAlpha, top_words
from marginparts.datasets import load_docstrings
from marginparts.plots import save_figure

TARGET = Path(__file__).parents[1] / "docs" / "parts-and-margin.png"
PARTS, SHOWN, WORDS, GRAY = 32, 12, 5, "#a8a8a8"


def main():
    docs = load_docstrings()
    y = np.where(np.arange(len(docs.target)) % 10 == 0, docs.target, -1)
    settings = {"max_iter": 300, "tol": 0, "random_state": 0}
    ours, plain = (NMFAlpha(PARTS, lam=lam, **settings).fit(docs.data, y) for lam in (10, 0))
    p = len(ours.margin_kept_)
    speaks = (ours.margin_codes_[:p] - ours.margin_codes_[p:]).argmax(axis=1)
    table = top_words(ours, docs.feature_names, n=WORDS)
    counts = np.bincount(y[y >= 0], minlength=p)
    rows = []
    for k in np.argsort(-counts, kind="stable")[:SHOWN]:
        words = ", ".join(table[table["part"] == speaks[k] + 1]["word"])
        rows.append((docs.target_names[k], words, ours.margin_kept_[k], plain.margin_kept_[k]))
        print(f"{rows[-1][0]:22} {rows[-1][2]:.2f} {rows[-1][3]:.2f} {words}")
    means = ours.margin_kept_.mean(), plain.margin_kept_.mean()
    print(f"means over all {p}: {means[0]:.3f} with the margin, {means[1]:.3f} without")
    n = (y >= 0).sum()
    subtitle = f"{len(y):,} docstrings, {n} of them labeled; {PARTS} parts each"
    save_figure(draw(rows, subtitle), TARGET)


def draw(rows, subtitle):
    figure = Figure(figsize=(9.6, 4.6), layout="constrained", facecolor="white")
    words, bars = figure.subplots(1, 2, sharey=True, width_ratios=[1.75, 1])
    places = -np.arange(len(rows))
    for place, (name, text, kept, without) in zip(places, rows, strict=True):
        words.text(0.0, place, name, weight="bold", size=9.5, va="center")
        words.text(0.30, place, text, size=9.5, va="center")
        bars.barh(place + 0.19, kept, 0.36, color=BLUE)
        bars.barh(place - 0.19, without, 0.36, color=GRAY)
        for at, value, color in ((0.19, kept, BLUE), (-0.19, without, "#555555")):
            bars.text(value + 0.015, place + at, f"{100 * value:.0f}", size=7.5, va="center",
                      color=color)  # fmt: skip
    words.set_title("a label, and the words of the part that speaks for it", loc="left", size=10)
    bars.set_title("% of its hyperplane that the parts keep", loc="left", size=10)
    words.set_axis_off()
    bars.set(xlim=(0, 1.08), ylim=(places[-1] - 0.6, 0.6), xticks=[], yticks=[])
    bars.spines[["top", "right", "bottom"]].set_visible(False)
    handles = [bars.patches[0], bars.patches[1]]
    bars.legend(
        handles, ["NMF-alpha", "plain NMF"], loc="upper center", bbox_to_anchor=(0.5, 0.0),
        ncols=2, frameon=False, fontsize=9.5,
    )  # fmt: skip
    words.text(0.0, places[-1] - 0.95, subtitle, size=9, color="#555555", va="center")
    return figure


if __name__ == "__main__":
    main()
