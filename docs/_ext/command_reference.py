"""The directive ``command-reference``: every command with its options, from the command itself."""

import re
from typing import Any

import typer.main
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

from marginparts.cli import app


def commands(command: Any, name: str) -> list[tuple[str, Any]]:
    """Return the commands below `command` with their full names, those of groups too."""
    if not hasattr(command, "commands"):
        return [(name, command)]
    below = command.commands.items()
    return [found for own, sub in below for found in commands(sub, f"{name} {own}")]


def plain(text: str | None) -> str:
    """Return help as reST in which nothing is markup but code."""
    text = " ".join((text or "").split())
    text = re.sub(r"([*_|\\])", r"\\\1", text)
    text = re.sub(r"(?<![\w`-])(--[a-zA-Z][a-zA-Z0-9-]*)", r"``\1``", text)
    return re.sub(r"`+([^`]*)`+", lambda m: "``" + m[1].replace("\\", "") + "``", text)


def rest(name: str, command: Any) -> list[str]:
    """Return the section of one command."""
    context = command.make_context(name, [], resilient_parsing=True)
    usage = " ".join(command.collect_usage_pieces(context))
    lines = [name, "-" * len(name), "", ".. code-block:: sh", "", f"    {name} {usage}", ""]
    for paragraph in re.split(r"\n\s*\n", command.help or ""):
        lines += [plain(paragraph), ""]
    for param in command.params:
        record = param.get_help_record(context)  # None for hidden ones
        if record is not None:
            names, text = record
            lines += [f"``{names}``", f"    {plain(text) or '...'}", ""]
    examples = [line.strip() for line in (command.epilog or "").splitlines()]
    examples = [line for line in examples if line.startswith("marginparts ")]
    if examples:
        lines += [".. code-block:: sh", "", *(f"    {line}" for line in examples), ""]
    return lines


class CommandReference(SphinxDirective):
    """A section for each command, made of its own help."""

    def run(self) -> list[nodes.Node]:
        """Parse the sections of all commands."""
        lines = []
        for name, command in commands(typer.main.get_command(app), "marginparts"):
            lines += rest(name, command)
        node = nodes.section()
        node.document = self.state.document
        self.state.nested_parse(StringList(lines, "commands"), 0, node, match_titles=True)
        return node.children


def setup(app: Any) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("command-reference", CommandReference)
    return {"parallel_read_safe": True}
