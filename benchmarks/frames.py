"""How many files and how deep a stack it takes to fit and to predict.

    python benchmarks/frames.py

Counted with a profiler over the frames of this package alone: what a reader has to follow. Callers
are counted through what is not ours, so a callback does not hide its depth.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import marginparts
from marginparts.datasets import load_digits_49

PACKAGE = str(Path(marginparts.__file__).parent)


def watched(call: Callable[[], Any]) -> tuple[Any, set[str], list[str]]:
    """Return what a call returns, the files it touches, and its deepest stack."""
    files: set[str] = set()
    deepest: list[str] = []
    stack: list[str] = []

    def hook(frame: Any, event: str, _: Any) -> None:
        nonlocal deepest
        code = frame.f_code
        if not code.co_filename.startswith(PACKAGE) or code.co_name == "<module>":
            return
        if event == "call":
            files.add(code.co_filename)
            stack.append(f"{Path(code.co_filename).relative_to(PACKAGE)}:{code.co_name}")
            if len(stack) > len(deepest):
                deepest = stack.copy()
        elif event == "return" and stack:
            stack.pop()

    sys.setprofile(hook)
    try:
        result = call()
    finally:
        sys.setprofile(None)
    return result, files, deepest


def main() -> None:
    digits = load_digits_49()
    y = digits.target.copy()
    y[40:] = -1
    model = marginparts.NMFAlphaClassifier(8, random_state=0)
    model.fit(digits.data, y)  # imports and compiles what it needs
    for name, call in (
        ("fit", lambda: model.fit(digits.data, y)),
        ("predict", lambda: model.predict(digits.data)),
    ):
        _, files, deepest = watched(call)
        print(f"{name}: {len(files)} files, {len(deepest)} frames deep")
        for place in sorted(str(Path(file).relative_to(PACKAGE)) for file in files):
            print(f"    {place}")
        print("  deepest: " + " > ".join(deepest))


if __name__ == "__main__":
    main()
