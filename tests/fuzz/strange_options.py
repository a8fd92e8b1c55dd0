"""The command with options that make no sense, alone and together: exit 0, or a sentence and 2."""

import json
import os
import tempfile
from functools import cache
from pathlib import Path
from unittest import mock

import numpy as np
from attacking import Target, short_of
from strange_archives import command
from typer.main import get_command
from typer.testing import CliRunner

from marginparts.app.model_file import save
from marginparts.cli import app

NUMBERS = (
    "0", "1", "2", "-1", "1,2", "", " ", "nan", "inf", "-inf", "1e308", "1e-320", "9" * 30, "0x10",
    "1_000", "auto", "\u0661", "1;2", "2.5", "1,", "true", "1e400",
)  # fmt: skip
NAMES = (
    "body", "team", "", "nothing", "\x1b[31m", "=1+1", "x" * 300, "a\nb", "../t.csv", "é", "--out",
    "size", ";", "utf-8", "utf-16", "rot13", "idna", "latin-1", "english", "balanced", "f1",
    "reference", "numba", "nan", "zeros", "tf-idf", "l2-log", "counts", "wordllama", "model2vec:x",
)  # fmt: skip
FILES = (
    "t.csv", "x.npy", "y.txt", "seeds.json", "t.model", "nothing.csv", ".", "", "/dev/null", "link",
    "pipe", "folder", "empty.csv", "t.csv/x", "x" * 300, "\udcff.csv", "v.npy", "missing/out.csv",
    "new.csv", "new.model", "new.html", "new.parquet", "new.jsonl", "t.csv.gz",
)  # fmt: skip

#: Options by what they take: a number, a name, a file, or nothing.
COMMANDS = {
    "fit": {
        "number": "--components --lam --cost --strength --exclusivity --max-iter --seed --min-df "
        "--max-df --ngrams",
        "name": "--text --label --label-sep --weight --class-weight --scoring --missing --backend "
        "--weighting --encoding --stop-words --embed",
        "file": "--out --labels --words --seeds --prior --checkpoint --embeddings",
        "flag": "--path --quiet --json",
    },
    "predict": {
        "name": "--encoding --text", "file": "--out --embeddings", "flag": "--raw --json -q --all",
    },
    "transform": {
        "name": "--encoding --text", "file": "--out --embeddings", "flag": "--raw --json -q",
    },
    "topics": {"number": "--words --parts", "file": "", "flag": "--json"},
    "next": {
        "name": "--text --label --encoding", "file": "--out --embeddings",
        "flag": "--suspects --json",
    },
    "report": {"name": "--encoding", "file": "--out --embeddings", "flag": "-q --json"},
    "ranks": {
        "number": "--components --folds --seed --min-df --max-df",
        "name": "--text --weighting --label",
        "file": "", "flag": "--json",
    },
}  # fmt: skip
CHOICES = {"number": NUMBERS, "name": NAMES, "file": FILES}


def _drawn(rng, values):
    return values[rng.integers(len(values))]


def _arguments(rng):
    """A command line, most of which may be right."""
    name = _drawn(rng, ("fit", "fit", *COMMANDS))
    usual = {
        "fit": ["t.csv", "--text", "body", "--label", "team", "--components", "2", "--max-iter",
                "2", "--lam", "1", "--cost", "1"],
        "ranks": ["x.npy", "--components", "1,2", "--folds", "2"],
        "topics": ["t.model"], "next": ["t.csv", "--text", "body", "--label", "team"],
    }.get(name, ["t.model", "t.csv"])  # fmt: skip
    if name == "next" and rng.random() < 0.5:
        usual = ["t.model", "t.csv"]
    found = list(usual)
    if rng.random() < 0.15:
        found[0] = _drawn(rng, FILES)
    if len(found) > 1 and rng.random() < 0.1:
        found[1] = _drawn(rng, FILES)
    for _ in range(rng.integers(4)):
        kind = _drawn(rng, list(COMMANDS[name]))
        flags = COMMANDS[name][kind].split()
        if flags:
            found.append(_drawn(rng, flags))
            if kind != "flag":
                found.append(_drawn(rng, CHOICES[kind]))
    return [name, *found]


def _folder(folder):
    """Write what the names stand for."""
    rng = np.random.default_rng(0)
    X = rng.random((40, 6))
    np.save(folder / "x.npy", X)
    np.save(folder / "v.npy", rng.normal(size=(40, 3)))
    (folder / "y.txt").write_text("a\nb\n" * 20)
    rows = [
        f"word{k % 7} word{k % 5} {'red' if k % 2 else 'green'} word{k % 3},"
        f"{('=a', 'b')[k % 2] if k < 30 else ''},{k}"
        for k in range(40)
    ]
    (folder / "t.csv").write_text("\n".join(["body,team,size", *rows]))
    (folder / "seeds.json").write_text(json.dumps({"=a": ["green"], "b": ["red"]}))
    (folder / "empty.csv").touch()
    (folder / "folder").mkdir()
    (folder / "link").symlink_to("t.csv")
    os.mkfifo(folder / "pipe")
    (folder / "t.csv.gz").write_bytes(b"no gzip")
    save(command(), folder / "t.model")


def _seen(folder):
    """What is in a folder, with its content but for pipes."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


def attack_options(folder):
    """Command lines in a folder of files, next to which nothing may be written."""
    inside = folder / "inside"
    inside.mkdir()
    _folder(inside)
    before = _seen(inside)
    made_once = mock.patch("typer.testing._get_command", cache(get_command))  # else half the time

    def attack(rng):
        arguments = _arguments(rng)
        old, kept = Path.cwd(), tempfile.tempdir
        os.chdir(inside)
        try:
            with made_once:
                result = CliRunner().invoke(app, arguments)
        finally:
            os.chdir(old)
            tempfile.tempdir = kept
        try:
            _judge(result, arguments, inside, before)
        finally:
            for path in inside.iterdir():
                if path.name not in before:
                    path.unlink()
        assert [path.name for path in folder.iterdir()] == ["inside"]
        return result.exit_code == 0

    return attack


def _judge(result, arguments, inside, before):
    said = f"{arguments}: {result.output[-300:]}"
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise AssertionError(f"{short_of(result.exception)}: {arguments}") from result.exception
    assert result.exit_code in (0, 2), said
    assert "Traceback" not in result.output, said
    assert not set(result.output) & {"\x1b", "\x07"}, said
    after = _seen(inside)
    # what was there is as it was, unless it was named as the place to write to
    outs = {arguments[k + 1] for k, word in enumerate(arguments[:-1]) if word in ("--out",)}
    changed = {name for name in before if after.get(name, b"") != before[name]}
    asked = changed & outs
    for name in asked:
        (inside / name).write_bytes(before[name])
    assert not changed - outs, f"{changed}: {said}"
    assert not [name for name in after if name.endswith(".part")], said
    if "--json" in arguments and result.exit_code == 0 and "--out" not in arguments:
        assert "NaN" not in result.stdout, said


TARGETS = {"options": Target(attack_options, 100)}
