"""Pictures of the results: ``results/*.csv`` to ``results/*.png``.

    python benchmarks/plots.py

What has not been measured is skipped. With ``--quick`` the results of quick runs are drawn.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.ticker import NullLocator

from drawing import (
    BLUE,
    SKY,
    STYLES,
    Rows,
    bare,
    bars,
    color_of,
    grouped,
    label_ends,
    numbers,
    read,
    save,
)
from records import RESULTS


def draw_convergence(rows: Rows, folder: Path) -> None:
    """Draw the loss against seconds, one picture a rank."""
    rows = [row for row in rows if row["start"] == "common" and row["loss"]]
    for rank, found in grouped(rows, "rank").items():
        figure, axis = plt.subplots(figsize=(7.5, 4.5))
        curves = grouped(found, "method")
        plain = curves["marginparts mu"]
        best = numbers(found, "loss").min()
        late = numbers([row for row in plain if int(row["iteration"]) <= 100], "loss")[-1]
        # the way down from the start is alike for all; what differs is near the end
        top = best + 4 * (late - best)
        ends = []
        for method, curve in curves.items():
            seconds, loss = numbers(curve, "seconds"), numbers(curve, "loss")
            axis.plot(
                seconds[1:], loss[1:] / 1e6, **STYLES.get(method, {"color": color_of(method)})
            )
            if loss[-1] <= top:
                ends.append((method, seconds[-1], loss[-1] / 1e6, color_of(method)))
            else:
                print(f"  r = {rank}: {method} stays above the picture")
        axis.axhline(late / 1e6, color="0.6", linewidth=0.8)
        axis.set_xscale("log")
        axis.xaxis.set_major_formatter("{x:g}")
        axis.set_ylim((best - 0.06 * (top - best)) / 1e6, top / 1e6)
        shown = [r for r in found if float(r["loss"]) <= top and float(r["seconds"]) > 0]
        axis.set_xlim(0.8 * numbers(shown, "seconds").min(), 1.1 * numbers(found, "seconds").max())
        axis.text(
            0.01, late / 1e6, "100 plain updates", transform=axis.get_yaxis_transform(),
            fontsize=8, color="0.4", va="bottom",
            zorder=0,
        )  # fmt: skip
        axis.set_xlabel("seconds")
        axis.set_ylabel("loss (millions)")
        axis.set_title(f"I-divergence NMF with {rank} parts, all from one start", loc="left")
        bare(axis)
        label_ends(axis, ends)
        save(figure, folder, f"convergence_r{rank}", found)


def draw_update(rows: Rows, folder: Path) -> None:
    """Draw the time of an update: all methods, then kernels alone, then NMF-alpha."""
    plain = [row for row in rows if not row["directions"]]
    whole = [
        row for row in plain
        if row["measured"] == "fit"
        or (row["measured"] == "whole update" and row["method"] != "marginparts")
    ]  # fmt: skip
    kernels = [row for row in plain if row["measured"] == "kernels"]
    titles = {
        "update": ("One multiplicative update of V and H", whole),
        "update_kernels": ("The kernels alone, without column sums", kernels),
    }
    for name, (title, chosen) in titles.items():
        ranks = grouped(chosen, "rank")
        n = max(len(found) for found in ranks.values())
        figure, axes = plt.subplots(
            len(ranks), 1, figsize=(7, (0.33 * n + 0.9) * len(ranks) + 0.4), squeeze=False
        )
        for axis, (rank, found) in zip(axes[:, 0], ranks.items(), strict=True):
            colors = [color_of(row["method"]) for row in found]
            names = [row["method"] for row in found]
            bars(axis, names, numbers(found, "median_seconds"), colors)
            axis.set_title(f"{title}, {rank} parts", loc="left", fontsize=10)
            if axis is not axes[-1, 0]:
                axis.set_xlabel("")
        save(figure, folder, name, chosen)
    draw_alpha([row for row in rows if row["directions"]], folder)


def draw_alpha(rows: Rows, folder: Path) -> None:
    """Draw the time of an update with margin components."""
    solvers = grouped(rows, "solver")
    figure, axes = plt.subplots(
        len(solvers), 1, figsize=(7, 1.75 * len(solvers) + 0.5), squeeze=False
    )
    kinds = {"none": "plain NMF", "ovr": "one against the rest", "ovo": "one against one"}
    for axis, (solver, found) in zip(axes[:, 0], solvers.items(), strict=True):
        names = [
            kinds[row["directions"]]
            + ("" if row["directions"] == "none" else f", 2p = {row['columns_of_S']}")
            for row in found
        ]
        bars(axis, names, numbers(found, "median_seconds"), [SKY, BLUE, BLUE][: len(found)])
        rank = found[0]["rank"]
        axis.set_title(f"NMF-alpha, one iteration of {solver}, r = {rank}", loc="left", fontsize=10)
        if axis is not axes[-1, 0]:
            axis.set_xlabel("")
    save(figure, folder, "update_alpha", rows)


def draw_scaling(rows: Rows, folder: Path) -> None:
    """Draw the cost of a nonzero against nonzeros, and against rank and threads."""
    rows = [row for row in rows if row["measured"] == "whole update"]
    series = grouped(rows, "series")
    _draw_lines(
        series.get("nonzeros", []), "nonzeros", folder, "scaling_nonzeros",
        "One update, 64 parts: cost of a nonzero", log_cost=False,
    )  # fmt: skip
    _draw_lines(
        series.get("rank and threads", []), "rank", folder, "scaling_rank",
        "One update: cost of a nonzero by rank and threads", log_cost=True,
    )  # fmt: skip


def _draw_lines(rows: Rows, x: str, folder: Path, name: str, title: str, log_cost: bool) -> None:
    if not rows:
        return
    figure, axis = plt.subplots(figsize=(7.5, 4.2))
    several = len(grouped(rows, "threads")) > 1
    ends = []
    for (method, threads), found in grouped(rows, "method", "threads").items():
        places, cost = numbers(found, x), numbers(found, "nanoseconds_per_nonzero")
        # one thread is drawn hollow
        fill = "white" if several and threads == "1" else STYLES[method]["color"]
        axis.plot(places, cost, marker="o", markersize=5, markerfacecolor=fill, **STYLES[method])
        label = f"{method}, {threads} thread{'s' * (threads != '1')}" if several else method
        ends.append((label, places[-1], cost[-1], STYLES[method]["color"]))
    axis.set_xscale("log")
    if log_cost:
        axis.set_yscale("log")
        low, high = axis.get_ylim()
        steps = [m * 10.0**e for e in range(-1, 5) for m in (1, 2, 5)]
        axis.set_yticks([s for s in steps if low <= s <= high])
        axis.yaxis.set_major_formatter("{x:g}")
        axis.yaxis.set_minor_locator(NullLocator())
        axis.set_ylim(low, high)
    else:
        axis.set_ylim(0, 1.15 * numbers(rows, "nanoseconds_per_nonzero").max())
    if x == "rank":
        ranks = sorted({int(row["rank"]) for row in rows})
        axis.set_xticks(ranks, [str(rank) for rank in ranks])
        axis.xaxis.set_minor_locator(NullLocator())
    axis.set_xlabel(x)
    axis.set_ylabel("nanoseconds for each nonzero")
    axis.set_title(title, loc="left")
    bare(axis)
    label_ends(axis, ends)
    save(figure, folder, name, rows)


def draw_transform(rows: Rows, folder: Path) -> None:
    """Draw the gap to the optimum against the seconds of a map."""
    figure, axis = plt.subplots(figsize=(7.5, 4.2))
    least = 1e-8  # what lies below is rounding
    for method, found in grouped(rows, "method").items():
        style = STYLES[method]
        found = [row for row in found if float(row["median_seconds"]) > 0]
        optimum = [row for row in found if not row["iterations"]]
        steps = [row for row in found if row["iterations"]]
        seconds, gap = numbers(steps, "median_seconds"), np.maximum(numbers(steps, "gap"), least)
        marker = {"marker": "o", "markersize": 5} if method == "marginparts" else {}
        axis.plot(seconds, gap, **style, **marker)
        axis.annotate(
            f"{method}, {steps[-1]['iterations']} updates" if marker else method,
            (seconds[-1], gap[-1]), xytext=(6, -2), textcoords="offset points",
            color=style["color"], fontsize=9, va="top",
        )  # fmt: skip
        for row in optimum:
            at = float(row["median_seconds"]), max(float(row["gap"]), least)
            axis.plot(*at, "D", color=style["color"], markersize=8)
            axis.annotate(
                "marginparts, to the optimum", at, xytext=(-8, 0), textcoords="offset points",
                color=style["color"], fontsize=9, ha="right", va="center",
            )  # fmt: skip
    axis.axhline(1e-4, color="0.6", linewidth=0.8)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.xaxis.set_major_formatter("{x:g}")
    axis.margins(x=0.25)
    axis.set_xlabel("seconds")
    axis.set_ylabel("loss above the optimum, relative")
    documents, rank = rows[0]["rows"], rows[0]["rank"]
    axis.set_title(f"The map of {documents} new documents into {rank} parts", loc="left")
    bare(axis)
    save(figure, folder, "transform", rows)


PICTURES: dict[str, Callable[[Rows, Path], None]] = {
    "convergence": draw_convergence,
    "update": draw_update,
    "scaling": draw_scaling,
    "transform": draw_transform,
}


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--quick", action="store_true", help="draw the results of quick runs")
    folder = RESULTS / "quick" if options.parse_args().quick else RESULTS
    plt.rcParams.update({"font.size": 10, "axes.titlesize": 11, "figure.facecolor": "white"})
    for name, draw in PICTURES.items():
        rows = read(folder, name)
        if rows:
            draw(rows, folder)


if __name__ == "__main__":
    main()
