"""How the pictures look, and how they get their rows."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot as plt

Rows = list[dict[str, str]]

# Colors that color-blind readers can tell apart (Okabe & Ito), with a line style for print in gray.
BLUE, ORANGE, GREEN, RED = "#0072B2", "#E69F00", "#009E73", "#D55E00"
SKY, PURPLE, BLACK = "#56B4E9", "#CC79A7", "#000000"
STYLES: dict[str, dict[str, Any]] = {
    "marginparts": {"color": BLUE, "linewidth": 2.4},
    "marginparts cd": {"color": BLUE, "linewidth": 2.4},
    "marginparts mue": {"color": BLUE, "linewidth": 2.0, "linestyle": "--"},
    "marginparts mu": {"color": BLUE, "linewidth": 2.0, "linestyle": ":"},
    "scikit-learn mu": {"color": RED},
    "scikit-learn mu, V by rows": {"color": RED, "linestyle": "--"},
    "scikit-learn mini-batch": {"color": ORANGE},
    "enstop PLSA": {"color": GREEN},
    "torchnmf mu": {"color": PURPLE},
    "C loop": {"color": BLACK, "linestyle": "--"},
    "C loop, rank known": {"color": BLACK, "linestyle": ":"},
}


def read(folder: Path, name: str) -> Rows:
    """Return the rows of a benchmark, none if it has not been run."""
    path = folder / f"{name}.csv"
    if not path.exists():
        print(f"{path.name} is missing: its pictures are skipped.")
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def grouped(rows: Rows, *columns: str) -> dict[Any, Rows]:
    """Return rows by the values of some columns, in the order of their first appearance."""
    groups: dict[Any, Rows] = defaultdict(list)
    for row in rows:
        key = tuple(row[column] for column in columns)
        groups[key[0] if len(key) == 1 else key].append(row)
    return dict(groups)


def numbers(rows: Rows, column: str) -> np.ndarray:
    """Return a column as numbers."""
    return np.array([float(row[column]) for row in rows])


def save(figure: Any, folder: Path, name: str, rows: Rows) -> None:
    """Write a picture, with the data and the machine below it."""
    facts = dict.fromkeys(row["data"] for row in rows)
    note = f"{', '.join(facts)}; {rows[0]['machine']}; {rows[0]['date']}, {rows[0]['commit']}"
    figure.text(0.01, 0.01, note, fontsize=7, color="0.4")
    figure.tight_layout(rect=(0, 0.03, 1, 1))
    figure.savefig(folder / f"{name}.png", dpi=150)
    plt.close(figure)
    print(f"{name}.png")


def apart(heights: list[float], gap: float) -> list[float]:
    """Move label heights up and down until neighbors are a gap apart."""
    order = np.argsort(heights)
    placed = np.array(heights, float)[order]
    for _ in range(500):
        close = np.flatnonzero(np.diff(placed) < 0.999 * gap)
        if not len(close):
            break
        for k in close:
            lack = gap - (placed[k + 1] - placed[k])
            placed[k] -= lack / 2
            placed[k + 1] += lack / 2
    result = np.empty(len(placed))
    result[order] = placed
    return list(result)


def label_ends(axis: Any, ends: list[tuple[str, float, float, str]]) -> None:
    """Write the name of each line at the right edge, level with the line's last point.

    Takes (name, x, y, color). Where lines end close together the names are moved apart, and a thin
    line leads to each.
    """
    to_axes = axis.transData + axis.transAxes.inverted()
    points = [to_axes.transform((x, y)) for _, x, y, _ in ends]
    heights = apart([float(np.clip(y, 0, 1)) for _, y in points], 0.055)
    for (name, _, _, color), (x, y), height in zip(ends, points, heights, strict=True):
        axis.annotate(
            name, (min(x, 1), np.clip(y, 0, 1)), (1.02, height), xycoords="axes fraction",
            textcoords="axes fraction", color=color, va="center", fontsize=9,
            arrowprops={"arrowstyle": "-", "color": color, "linewidth": 0.5, "shrinkB": 0},
        )  # fmt: skip


def color_of(method: str) -> str:
    """Return the color of a method, gray for one that has none."""
    return str(STYLES.get(method, {"color": "0.5"})["color"])


def bare(axis: Any) -> None:
    """Leave out the frame where it says nothing."""
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(axis="y", color="0.9", linewidth=0.6)
    axis.set_axisbelow(True)


def bars(axis: Any, names: list[str], seconds: np.ndarray, colors: list[str]) -> None:
    """Draw horizontal bars from the top, each with its name and its value."""
    places = np.arange(len(names))[::-1]
    axis.barh(places, 1e3 * seconds, color=colors, height=0.7)
    for place, value in zip(places, seconds, strict=True):
        axis.text(1e3 * value, place, f" {_short(1e3 * value)}", va="center", fontsize=9)
    axis.set_yticks(places, names)
    axis.spines[["top", "right"]].set_visible(False)
    axis.set_xlim(0, 1.18e3 * seconds.max())
    axis.set_xlabel("milliseconds")


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
