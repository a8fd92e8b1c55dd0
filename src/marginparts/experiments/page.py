"""The tables of results as Markdown, and their places in a page: no number is typed by hand."""

from __future__ import annotations

import re
from typing import Any

from marginparts.experiments.registry import METHODS, title_of


def score(result: dict[str, Any]) -> str:
    """Return a mean and its spread over the splits."""
    return f"{result['mean']:.1f} ± {result['std']:.1f}"


def markdown_table(header: list[str], rows: list[list[str]], left: int = 1) -> str:
    """Return a table in which the first columns are aligned to the left."""
    marks = ["---"] * left + ["---:"] * (len(header) - left)
    lines = [header, marks, *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines).replace("| --", "|--")


def table2_page(table: dict[str, Any]) -> str:
    """Return one table a data set: methods by rows, shares of labels by columns."""
    parts = []
    for name, shares in table.items():
        methods = dict.fromkeys(method for row in shares.values() for method in row)
        rows = []
        for method in sorted(methods, key=[*METHODS, *methods].index):
            cells = [title_of(method), *(_cell(row.get(method)) for row in shares.values())]
            rows.append([f"**{cell}**" for cell in cells] if method == "nmf_alpha" else cells)
        header = ["method", *(f"{share} labels" for share in shares)]
        parts.append(f"### {name}\n\n{markdown_table(header, rows)}\n\n{places(shares)}")
    return "\n\n".join(parts)


def places(shares: dict[str, Any], method: str = "nmf_alpha") -> str:
    """Return a sentence with a method's place by its mean test score for each share of labels."""
    told = []
    for share, row in shares.items():
        if method in row:
            better = [other for other in row if row[other]["mean"] > row[method]["mean"]]
            behind = f", after {_and(better)}" if better else ""
            told.append(f"{len(better) + 1} of {len(row)} with {share} of the labels{behind}")
    return f"Place of {title_of(method)}: {'; '.join(told)}." if told else ""


def _and(methods: list[str]) -> str:
    titles = [title_of(method) for method in methods]
    return " and ".join(filter(None, [", ".join(titles[:-1]), titles[-1]]))


def _cell(result: dict[str, Any] | None) -> str:
    if result is None:
        return "-"
    paper = f" (paper {result['paper']})" if "paper" in result else ""
    rank = f", r = {result['rank']}" if "rank" in result else ""
    return f"{score(result)}{paper}{rank}"


def edges_page(counts: dict[str, Any]) -> str:
    """Return the methods and parameters with choices at an edge, by data set."""
    rows = [
        [name, title_of(method), parameter, f"{count['at_edge']} of {count['choices']}"]
        for name, methods in counts.items()
        for method, parameters in methods.items()
        for parameter, count in parameters.items()
        if count["at_edge"]
    ]
    all_of, at_edge = totals(counts)
    sentence = f"{at_edge} of {all_of} choices lie at an edge."
    if not rows:
        return sentence
    header = ["data", "method", "parameter", "choices at an edge"]
    return f"{sentence}\n\n{markdown_table(header, rows, left=3)}"


def totals(counts: dict[str, Any]) -> tuple[int, int]:
    """Return how many choices there are, and how many of them lie at an edge."""
    every = [
        count for methods in counts.values() for row in methods.values() for count in row.values()
    ]
    return sum(count["choices"] for count in every), sum(count["at_edge"] for count in every)


def ablation_page(table: dict[str, list[dict[str, Any]]]) -> str:
    """Return one column a data set; in brackets the difference from the first row."""
    names = dict.fromkeys(row["what"] for rows in table.values() for row in rows)
    by_name = {name: {row["what"]: row for row in rows} for name, rows in table.items()}
    rows = [[what, *(_change(found.get(what)) for found in by_name.values())] for what in names]
    return markdown_table(["what is changed", *table], rows)


def _change(row: dict[str, Any] | None) -> str:
    if row is None:
        return "-"
    if row["change"] is None:
        return score(row)
    return f"{score(row)} ({row['change']:+.1f} ± {row['change_std']:.1f})"


def open_goal_page(table: dict[str, Any]) -> str:
    """Return one row a data set and share of labels."""
    header = ["data", "labels", "ours", "dimensions", "best rival"]
    rows = []
    for name, shares in table.items():
        for share, row in shares.items():
            raw = row.get("best_rival")
            rival = f"{score(raw)} ({raw['method']})" if raw else "-"
            rows.append([name, share, score(row), str(row["dims"]), rival])
    return markdown_table(header, rows)


def replaced(page: str, name: str, content: str) -> str:
    r"""Return a page with what lies between the marks of a name replaced.

    Examples
    --------
    >>> replaced("<!-- begin: x -->old<!-- end: x -->", "x", "new")
    '<!-- begin: x -->\n\nnew\n\n<!-- end: x -->'
    """
    begin, end = f"<!-- begin: {name} -->", f"<!-- end: {name} -->"
    if begin not in page or end not in page:
        raise ValueError(f"The page has no marks {begin} and {end}.")
    between = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    return between.sub(lambda _: f"{begin}\n\n{content}\n\n{end}", page)
