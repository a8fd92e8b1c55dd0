"""The race as Markdown: a summary in sentences, the means of every entry, and every cell."""

from __future__ import annotations

from typing import Any

from marginparts.experiments.few_labels.race import OURS, Entry, Race
from marginparts.experiments.few_labels.tables import Cell, Scores, cells_of
from marginparts.experiments.page import markdown_table


def race_page(race: Race, scores: Scores, told: dict[str, Any], missing: str, figure: str) -> str:
    """Return the whole section, from what `summary` told."""
    parts = [missing, *sentences(told), f"![Gains over the linear SVM]({figure})", means(told)]
    for k in race.labels:
        parts += [f"### {k} labels a class", _cells(race, scores, k)]
    return "\n\n".join(parts)


def sentences(told: dict[str, Any]) -> list[str]:
    """Return what matters most, one sentence for each way to prepare texts."""
    found = []
    for title, ours in told["ours"].items():
        said = [f"**{title}**:"]
        lead, single = ours["over_best_single"], told["best_single_rival"]
        if lead:
            cells = _many(lead["cells"], "cell")
            said.append(f"{_pm(lead)} points against the best single rival, {single} ({cells});")
        if ours["over_svm"]:
            said.append(f"{_pm(ours['over_svm'])} against the linear SVM on the same rows;")
        hindsight = ours["against_best_of_cell"]
        if hindsight:
            worst = hindsight["worst"]
            said.append(
                f"within one standard error of the best rival of a cell, or above it, in "
                f"{hindsight['level']} of {_many(hindsight['cells'], 'cell')} "
                f"({100 * hindsight['share']:.0f} %); the worst of these is {worst['cell']} "
                f"({worst['mean']:+.1f} against {worst['rival']});"
            )
        against = ours["worst_against_svm"]
        if against:
            said.append(
                f"against the linear SVM the worst is {against['cell']} ({against['mean']:+.1f})."
            )
        found.append(" ".join(said))
    return found


def _many(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


def _pm(found: dict[str, Any]) -> str:
    return f"{found['mean']:+.1f} ± {found['error']:.1f}"


def means(told: dict[str, Any]) -> str:
    """Return the mean score and the mean gain of every entry, the largest gain first."""
    rows = []
    for each in sorted(told["entries"], key=lambda each: -(each["gain"] or 0.0)):
        gain = "-" if each["gain"] is None else f"{each['gain']:+.1f} ± {each['error']:.1f}"
        cells = [each["title"], f"{each['score']:.1f}", gain, str(each["cells"])]
        bold = each["method"].partition(":")[0] == OURS
        rows.append([f"**{cell}**" for cell in cells] if bold else cells)
    return markdown_table(["method, rows of texts", "mean score", "gain over SVM", "cells"], rows)


def _cells(race: Race, scores: Scores, labels: int) -> str:
    """Return one table: entries by rows, collections by columns."""
    cells = [cell for cell in cells_of(race, scores) if cell.labels == labels]
    rows = [
        [entry.title, *(_cell(scores, entry, cell) for cell in cells)]
        for entry in scores
        if any(cell in scores[entry] for cell in cells)
    ]
    return markdown_table(["method, rows of texts", *(cell.data for cell in cells)], rows)


def _cell(scores: Scores, entry: Entry, cell: Cell) -> str:
    mean, gain = scores.mean(entry, cell), scores.gain(entry, cell)
    if mean is None:
        return "-"
    shown = f"{mean:.1f}" if gain is None else f"{mean:.1f} ({gain.mean:+.1f})"
    best = max(filter(None, (scores.mean(each, cell) for each in scores)))
    return f"**{shown}**" if mean == best else shown


def changes_page(found: list[dict[str, Any]], missing: str) -> str:
    """Return what each variant changes."""
    rows = [[each["title"], _pm(each), str(each["cells"])] for each in found]
    table = markdown_table(["what is changed", "against NMF-alpha", "cells"], rows)
    return f"{missing}\n\n{table}" if rows else missing


def curve_page(race: Race, scores: Scores, missing: str, figure: str) -> str:
    """Return one table a collection: entries by rows, labels a class by columns."""
    parts = [missing, f"![Score by labels a class]({figure})"]
    for data, (header, *rows) in curve_rows(race, scores).items():
        parts += [f"### {data}", markdown_table(header, rows)]
    return "\n\n".join(parts)


def curve_rows(race: Race, scores: Scores) -> dict[str, list[list[str]]]:
    """Return the mean scores of each collection by labels a class, below a header."""
    cells, found = cells_of(race, scores), {}
    for data in dict.fromkeys(cell.data for cell in cells):
        own = [cell for cell in cells if cell.data == data]
        means = {entry: [scores.mean(entry, cell) for cell in own] for entry in scores}
        found[data] = [
            ["method, rows of texts", *(str(cell.labels) for cell in own)],
            *([e.title, *("-" if m is None else f"{m:.1f}" for m in means[e])] for e in means),
        ]
    return found
