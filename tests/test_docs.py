"""The documentation says what is so: quoted code is there, examples run, links resolve."""

import contextlib
import io
import re
from pathlib import Path
from typing import NamedTuple

import pytest

import marginparts
from marginparts import selection
from marginparts.backends import Backend

ROOT = Path(__file__).parents[1]
PACKAGE = Path(marginparts.__file__).parent
PAGES = sorted((ROOT / "docs").glob("*.md"))
LINKED = [*PAGES, *sorted(ROOT.glob("*.md"))]

FENCE = re.compile(
    r"^(?P<indent> *)```(?P<info>[^`\n]*)\n(?P<body>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL
)
TITLE = re.compile(r'^python title="(?P<file>[\w/]+\.py)"$')
LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")


class Block(NamedTuple):
    info: str
    body: str
    line: int
    follows: bool  # whether only blank lines are between the block before and this one


def blocks(page):
    text = page.read_text(encoding="utf-8")
    found, end = [], 0
    for match in FENCE.finditer(text):
        line = text.count("\n", 0, match.start()) + 2
        follows = bool(found) and not text[end : match.start()].strip()
        found.append(Block(match["info"].strip(), match["body"], line, follows))
        end = match.end()
    return found


def prose(page):
    """The text of a page without its blocks and its inline code."""
    return re.sub(r"`[^`\n]*`", "", FENCE.sub("", page.read_text(encoding="utf-8")))


def squeeze(text):
    return " ".join(text.split())


def quotes():
    for page in PAGES:
        for block in blocks(page):
            if match := TITLE.match(block.info):
                yield pytest.param(match["file"], block.body, id=f"{page.stem}-{block.line}")


def name(page):
    return page.name


def test_no_block_is_of_an_unknown_kind():
    kinds = {b.info for page in PAGES for b in blocks(page) if not TITLE.match(b.info)}
    assert kinds <= {"python", "text", "sh"}


@pytest.mark.parametrize("page", LINKED, ids=name)
def test_no_page_waits_to_be_filled_in(page):
    assert "@@" not in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(("file", "quoted"), list(quotes()))
def test_quoted_lines_are_in_their_file(file, quoted):
    assert squeeze(quoted) in squeeze((PACKAGE / file).read_text(encoding="utf-8"))


def test_every_equation_of_the_method_is_on_the_page():
    text = (ROOT / "docs" / "math.md").read_text(encoding="utf-8")
    tags = {n for tag in re.findall(r"\\tag\{([\d, ]+)\}", text) for n in tag.split(", ")}
    assert tags == {str(n) for n in range(1, 21)}


@pytest.mark.parametrize(
    "page",
    [
        *(pytest.param(page, id=name(page), marks=pytest.mark.wide) for page in PAGES),
        pytest.param(ROOT / "README.md", id="README.md"),
    ],
)
def test_examples_run_and_print_what_they_say(page):
    namespace = {"__name__": f"docs.{page.stem}"}
    printed = None
    for block in blocks(page):
        if block.info == "python":
            # blank lines in front make tracebacks name the line of the page
            code = compile("\n" * (block.line - 1) + block.body, str(page), "exec")
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(code, namespace)
            printed = out.getvalue()
        elif block.info == "text" and block.follows and printed is not None:
            assert printed == block.body, f"{page.name}, line {block.line}"
            printed = None


def slugs(page):
    """The anchors that GitHub gives the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text(encoding="utf-8")), re.M)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


@pytest.mark.parametrize("page", LINKED, ids=name)
def test_relative_links_resolve(page):
    for target in LINK.findall(prose(page)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{page.name} links to {target}"
        if anchor:
            assert anchor in slugs(file), f"{page.name} links to {target}"


def test_all_that_a_backend_may_override_is_on_its_page():
    told = re.findall(r"`(\w+)", (ROOT / "docs" / "backends.md").read_text(encoding="utf-8"))
    assert {name for name in vars(Backend) if not name.startswith("_")} - {*told} == {"name"}


def test_every_page_is_in_the_table_of_contents():
    index = ROOT / "docs" / "index.md"
    linked = {(index.parent / target).resolve() for target in LINK.findall(prose(index))}
    assert {page.resolve() for page in PAGES} - {index.resolve()} <= linked


def test_versions_agree():
    version = marginparts.__version__
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\n## {version} - " in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def commands():
    for page in LINKED:
        for block in blocks(page):
            for line in block.body.splitlines() if block.info == "sh" else ():
                for piece in line.split("&&"):
                    if piece.strip().startswith("marginparts "):
                        yield pytest.param(piece.strip(), id=f"{page.stem}: {piece.strip()}")


@pytest.mark.parametrize("line", list(commands()))
def test_commands_on_the_pages_are_understood(line):
    import shlex

    import typer.main

    from marginparts.cli import app

    args = shlex.split(line, comments=True)[1:]
    command = typer.main.get_command(app)
    context = command.make_context("marginparts", args[:0], resilient_parsing=True)
    while hasattr(command, "resolve_command"):
        name, command, args = command.resolve_command(context, args)
        if name is None:
            break
        if hasattr(command, "resolve_command"):
            context = command.make_context(name, [], parent=context, resilient_parsing=True)
    command.make_context(name, args, parent=context)  # parses, and runs nothing


def test_the_table_of_candidates_has_the_grids():
    page = (ROOT / "docs" / "math.md").read_text(encoding="utf-8")
    grids = {
        "lam": selection.LAM_GRID, "map_iter": selection.MAP_GRID, "C": selection.C_GRID,
    }  # fmt: skip
    defaults = selection.DEFAULT._asdict()
    for name, grid in grids.items():
        tried, usual = re.search(rf"^\| `{name}`.*? \| (.+?) \| (.+?) \|$", page, re.M).groups()
        assert tried.partition(";")[0] == ", ".join(f"{value:g}" for value in grid)
        assert usual.partition(";")[0] == f"{defaults[name]:g}"
    several = ", ".join(f"{value:g}" for value in selection.LAM_GRID_SEVERAL)
    assert f"for samples with several labels {several} |" in page


def figures_of_the_race(page):
    """The points above the best single rival, those above the SVM, and the cells, of a race."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    found = re.search(
        r"\*\*NMF-alpha, log\*\*: \+(\S+ ± \S+) points against.*? \+(\S+ ± \S+) against the linear "
        r"SVM.*? in (\d+ of \d+) cells",
        text,
    )
    assert found, page
    return found.groups()


def test_pages_that_tell_of_the_race_have_its_figures():
    above, svm, cells = figures_of_the_race("few-labels.md")
    others, _, other_cells = figures_of_the_race("few-labels-others.md")
    chooser = (ROOT / "docs" / "which-method.md").read_text(encoding="utf-8")
    assert f"{above} points above the best single rival in the race, {others} on" in chooser
    assert f"in {cells} and {other_cells} cells" in chooser
    assert f"| NMF-alpha | +{svm} |" in chooser
    front = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert f"{above} points above the best single rival, and on twelve others {others}" in front
    readme = squeeze((ROOT / "README.md").read_text(encoding="utf-8"))
    assert f"{svm.split()[0]} points above a linear SVM and {above.split()[0]} above" in readme
